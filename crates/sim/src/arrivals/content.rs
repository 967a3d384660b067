//! What requests ask for, and from which client they come.

use super::alias::Alias;
use crate::distribution::Distribution;
use crate::request::Request;
use crate::workload::{self, Clients};
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;
use std::net::{IpAddr, Ipv4Addr};

/// Pages and their shares.
pub(super) struct Pages {
    pages: Vec<CompiledPage>,
    shares: Alias,
}

struct CompiledPage {
    method: String,
    host: String,
    path: Path,
    headers: Vec<(String, String)>,
    bytes: f64,
    bytes_law: Distribution,
    service: Option<Duration>,
    work: Option<Distribution>,
}

enum Path {
    Fixed(String),
    /// Before and after the number.
    Numbered(String, String),
}

/// `*` is one of so many numbers.
const NUMBERS: u64 = 1000;

impl Pages {
    pub(super) fn new(pages: &[workload::Page]) -> Self {
        let weights: Vec<f64> = pages.iter().map(|page| page.weight).collect();
        Pages { pages: pages.iter().map(CompiledPage::new).collect(), shares: Alias::new(&weights) }
    }

    /// Fills in one of them. Strings that are right already are left alone.
    pub(super) fn draw(&self, request: &mut Request, random: &mut Random) {
        let Some(page) = self.pages.get(self.shares.draw(random)) else { return };
        set(&mut request.method, &page.method);
        set(&mut request.host, &page.host);
        match &page.path {
            Path::Fixed(path) => set(&mut request.path, path),
            Path::Numbered(before, after) => {
                request.path.clear();
                request.path.push_str(before);
                push_number(&mut request.path, random.below(NUMBERS));
                request.path.push_str(after);
            }
        }
        set_headers(&mut request.headers, &page.headers);
        request.bytes = (page.bytes * page.bytes_law.draw(random)).round() as u64;
        request.service = page.service;
        request.work = page.work.as_ref().map(|law| law.draw(random));
    }
}

impl CompiledPage {
    fn new(page: &workload::Page) -> Self {
        let path = match page.path.split_once('*') {
            Some((before, after)) => Path::Numbered(before.to_owned(), after.to_owned()),
            None => Path::Fixed(page.path.clone()),
        };
        CompiledPage {
            method: page.method.clone(),
            host: page.host.clone(),
            path,
            headers: page.headers.clone(),
            bytes: page.bytes,
            bytes_law: Distribution::new(&page.bytes_law),
            service: page.service,
            work: page.service_law.as_ref().map(Distribution::new),
        }
    }
}

/// Fills in the client. A uniform number to the power of `skew` is the place among the clients.
pub(super) fn set_client(request: &mut Request, clients: &Clients, random: &mut Random) {
    let uniform = random.uniform();
    // A power costs as much as all the rest of an arrival.
    let place = if clients.skew == 1.0 { uniform } else { uniform.powf(clients.skew) };
    let last = clients.count.max(1) - 1;
    let place = ((place * f64::from(clients.count)) as u32).min(last);
    request.client = IpAddr::V4(Ipv4Addr::from(clients.first_address.wrapping_add(place)));
}

/// Makes one string equal to another in its own memory.
pub(super) fn set(to: &mut String, from: &str) {
    // A string that never had text has a dangling pointer. Comparing zero bytes there makes a processor whose `memcmp`
    // reads under a mask (AVX-512) ask its microcode whether the read may fault, which takes 160 ns.
    let both_empty = to.is_empty() && from.is_empty();
    if !both_empty && to != from {
        to.clear();
        to.push_str(from);
    }
}

fn set_headers(to: &mut Vec<(String, String)>, from: &[(String, String)]) {
    to.truncate(from.len());
    for ((name, value), (from_name, from_value)) in to.iter_mut().zip(from) {
        set(name, from_name);
        set(value, from_value);
    }
    if to.len() < from.len() {
        to.extend_from_slice(&from[to.len()..]);
    }
}

/// A number below 1000 in decimal, without the machinery of formatting.
fn push_number(to: &mut String, number: u64) {
    for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
        if number >= least {
            to.push(char::from(b'0' + (number / unit % 10) as u8));
        }
    }
}
