//! What requests ask for, and from which client they come.

use super::alias::Alias;
use crate::distribution::Distribution;
use crate::request::Request;
use crate::workload::{self, Clients};
use plimsoll_core::random::Random;
use std::net::{IpAddr, Ipv4Addr};

/// Pages and their shares.
pub(super) struct Pages {
    pages: Vec<CompiledPage>,
    shares: Alias,
}

struct CompiledPage {
    /// What all requests for the page share. If the path has a number, `path` is the part before it.
    request: Request,
    /// What follows the number in the path.
    after_number: Option<String>,
    bytes: f64,
    bytes_law: Distribution,
    work: Option<Distribution>,
}

/// A `*` in a path is replaced by one of this many numbers.
const NUMBERS: u64 = 1000;

impl Pages {
    pub(super) fn new(pages: &[workload::Page]) -> Self {
        let weights: Vec<f64> = pages.iter().map(|page| page.weight).collect();
        Pages { pages: pages.iter().map(CompiledPage::new).collect(), shares: Alias::new(&weights) }
    }

    /// Fills in a request for a random page. If the request already holds the same page, only what is drawn changes.
    pub(super) fn draw(&self, request: &mut Request, random: &mut Random) {
        let number = self.shares.draw(random);
        let Some(page) = self.pages.get(number) else { return };
        if request.page != Some(number) || page.after_number.is_some() {
            request.copy_from(&page.request);
            request.page = Some(number);
        }
        if let Some(after) = &page.after_number {
            push_number(&mut request.path, random.below(NUMBERS));
            request.path.push_str(after);
        }
        request.bytes = (page.bytes * page.bytes_law.draw(random)).round() as u64;
        request.work = page.work.as_ref().map(|law| law.draw(random));
    }
}

impl CompiledPage {
    fn new(page: &workload::Page) -> Self {
        let (path, query) = page.path.split_once('?').unwrap_or((&page.path, ""));
        let (path, after_number) = match path.split_once('*') {
            Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
            None => (path.to_owned(), None),
        };
        let query = query.to_owned();
        let (method, host, headers) = (page.method.clone(), page.host.clone(), page.headers.clone());
        CompiledPage {
            request: Request {
                method,
                host,
                path,
                query,
                headers,
                service: page.service,
                ..Request::default()
            },
            after_number,
            bytes: page.bytes,
            bytes_law: Distribution::new(&page.bytes_law),
            work: page.service_law.as_ref().map(Distribution::new),
        }
    }
}

/// Fills in a random client: a uniform number to the power of `skew`, times the number of clients, is the client's index.
pub(super) fn set_client(request: &mut Request, clients: &Clients, random: &mut Random) {
    let uniform = random.uniform();
    // `powf` costs as much as the rest of an arrival, so it is left out if it changes nothing.
    let place = if clients.skew == 1.0 { uniform } else { uniform.powf(clients.skew) };
    let last = clients.count.max(1) - 1;
    let place = ((place * f64::from(clients.count)) as u32).min(last);
    request.client = IpAddr::V4(Ipv4Addr::from(clients.first_address.wrapping_add(place)));
}

/// Appends a number below 1000 in decimal; cheaper than the formatting of the standard library.
fn push_number(to: &mut String, number: u64) {
    for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
        if number >= least {
            to.push(char::from(b'0' + (number / unit % 10) as u8));
        }
    }
}
