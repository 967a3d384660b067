//! From what a file says to what it means: names become numbers, defaults that depend on other keys are filled in, and
//! what cannot be is refused.
//!
//! Nothing stops at the first error. Where a value is missing its finding exists already, and something harmless takes
//! its place: the result is thrown away whenever there are findings.

mod deadlines;
mod plants;
mod response_times;
mod sites;
mod workers;

use super::Gateway;
use super::values::LawName;
use crate::Configuration;
use crate::diagnostic::{Code, Complaint, Findings, Other};
use crate::gateway::keys::{ControlKeys, File, GatewayKeys, LimitKeys};
use crate::syntax::Located;
use plimsoll_core::promises::{Control, Network, Promises, UtilizationLaw};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{Limits, Rejection, Report, Settings, Timeouts};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The configuration that `file` means. Not to be used if there are findings.
pub(crate) fn resolve(file: &File, name: &str, findings: &mut Findings) -> Configuration {
    let mut plants = plants::resolve(file, name, findings);
    let (sites, rewrites) = sites::resolve(file, &plants, findings);
    workers::set_load_lines(file, &mut plants.plants, &sites, findings);
    let keys = &file.gateway.value;
    let control = control(&file.control.value, keys, findings);
    listeners(keys, findings);
    let settings = Settings {
        listen: keys
            .listen
            .iter()
            .flat_map(|listen| listen.value.0.iter().map(|address| address.value))
            .collect(),
        admin: keys.admin.value.0,
        threads: keys.threads.as_ref().map_or(0, |threads| threads.value.0 as usize),
        trusted_proxies: networks(keys),
        forwarded: keys.forwarded.value,
        report: report(file),
        rejection: rejection(file),
        limits: limits(&file.limits.value, findings),
        timeouts: timeouts(file),
        backends: Vec::new(),
        rewrites,
        hash_seed: keys.seed.value.0,
    };
    let trends = trends(&file.control.value, name, findings);
    let gateway = Gateway { settings, backends: plants.backends, trends };
    Configuration { promises: Promises { plants: plants.plants, sites, control }, gateway }
}

fn networks(keys: &GatewayKeys) -> Vec<Network> {
    keys.trusted_proxies.iter().flat_map(|list| list.value.0.iter().map(|network| network.value)).collect()
}

fn report(file: &File) -> Report {
    let keys = &file.report.value;
    Report { mode: keys.when.value, name: keys.header.value.0.clone() }
}

fn rejection(file: &File) -> Rejection {
    let keys = &file.rejection.value;
    Rejection {
        status: keys.status.value.0 as u16,
        body: keys.body.value.0.clone(),
        content_type: keys.content_type.value.0.clone(),
    }
}

/// The gateway reads a head into one buffer of this size.
const LONGEST_HEAD: u64 = 64 << 10;

fn limits(keys: &LimitKeys, findings: &mut Findings) -> Limits {
    if keys.head.value.0 > LONGEST_HEAD {
        let complaint = Complaint::new("a request's head cannot be this long", "write at most `\"64 KiB\"`");
        findings.add(Code::OutOfRange, &keys.head.span, complaint);
    }
    Limits {
        head_bytes: keys.head.value.0 as usize,
        body_bytes: keys.body.value.0,
        connections: keys.connections.value.0 as usize,
    }
}

fn timeouts(file: &File) -> Timeouts {
    let keys = &file.timeouts.value;
    Timeouts {
        head: keys.head.value,
        body_idle: keys.body.value,
        keep_alive: keys.keep_alive.value,
        send: keys.send.value,
        connect: keys.connect.value,
        first_byte: keys.first_byte.value,
        upstream_idle: keys.upstream_idle.value,
        upstream_keep_alive: keys.upstream_keep_alive.value,
        tunnel_idle: keys.tunnel.value,
        drain: keys.drain.value,
    }
}

/// The paper's gain margin where none is given.
const GAIN_MARGIN: f64 = 4.0;

fn control(keys: &ControlKeys, gateway: &GatewayKeys, findings: &mut Findings) -> Control {
    if let (LawName::FeedForward, Some(margin)) = (keys.law.value, &keys.gain_margin) {
        let complaint = Complaint::new(
            "`gain_margin` belongs to `law = \"paper\"`",
            "leave it out: the feed-forward law has its margin built in",
        );
        findings.add(Code::Conflict, &margin.span, complaint);
    }
    let period = &keys.period;
    if !(Duration::from_millis(10)..=Duration::from_secs(60)).contains(&period.value) {
        let complaint = Complaint::new(
            "a control period this short or long does not work",
            "write something from `\"10ms\"` to `\"60s\"`; `\"1s\"` is what the loops were tuned with",
        );
        findings.add(Code::OutOfRange, &period.span, complaint);
    }
    if keys.retry_after.value.subsec_nanos() != 0 {
        let complaint = Complaint::new(
            "`Retry-After` counts whole seconds",
            format!("write `\"{}s\"`", keys.retry_after.value.as_secs() + 1),
        );
        findings.add(Code::BadValue, &keys.retry_after.span, complaint);
    }
    let law = match keys.law.value {
        LawName::FeedForward => UtilizationLaw::FeedForward,
        LawName::Paper => UtilizationLaw::Paper {
            gain_margin: keys.gain_margin.as_ref().map_or(GAIN_MARGIN, |margin| margin.value.0),
        },
    };
    Control {
        mode: gateway.mode.value,
        period: period.value,
        law,
        retry_after: keys.retry_after.value,
        delay_law: keys.delay_law.value,
        admission: keys.admission.value,
        shares: deadlines::shares(keys, findings),
    }
}

/// The file of trends.
fn trends(keys: &ControlKeys, name: &str, findings: &mut Findings) -> Option<PathBuf> {
    let trends = keys.trends.as_ref()?;
    deadlines::belongs_to_budget("trends", &trends.span, keys, findings);
    if trends.value.0.is_empty() {
        let complaint =
            Complaint::new("a file without a name", "write one, such as `trends = \"trends.txt\"`");
        findings.add(Code::BadValue, &trends.span, complaint);
    }
    Some(Path::new(name).parent().unwrap_or(Path::new("")).join(&trends.value.0))
}

/// Refuses two listeners on one address: the kernel would spread connections over both (`SO_REUSEPORT`), so that
/// every other request of a client would go to the wrong one.
fn listeners(keys: &GatewayKeys, findings: &mut Findings) {
    let mut known: Vec<Located<SocketAddr>> = Vec::new();
    let listen = keys.listen.iter().flat_map(|listen| listen.value.0.iter().cloned());
    let admin = keys.admin.value.0.map(|value| Located::sound(value, keys.admin.span.clone()));
    for address in listen.chain(admin) {
        if let Some(first) = known.iter().find(|known| overlap(known.value, address.value)) {
            let message = match first.value == address.value {
                true => format!("{} is listened on twice", address.value),
                false => format!("{} and {} overlap", first.value, address.value),
            };
            let what = format!("{} is given", first.value);
            let complaint = Complaint::new(message, "use another port, or keep one of them");
            findings.add_with(
                Code::Duplicate,
                &address.span,
                complaint,
                Other { span: &first.span, what: &what },
            );
        }
        known.push(address);
    }
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    // Port 0 is a fresh port each time.
    let same_family = a.is_ipv4() == b.is_ipv4();
    let covers = a.ip() == b.ip() || same_family && (a.ip().is_unspecified() || b.ip().is_unspecified());
    a.port() != 0 && a.port() == b.port() && covers
}

/// Refuses a name that was given before; `what` is what it names.
fn unique<'a>(names: impl Iterator<Item = (&'a str, &'a Range<usize>)>, what: &str, findings: &mut Findings) {
    let mut known: BTreeMap<&str, &Range<usize>> = BTreeMap::new();
    for (name, span) in names {
        match known.get(name) {
            Some(first) => {
                let complaint = Complaint::new(
                    format!("two {what} are named `{}`", crate::diagnostic::quoted(name)),
                    "give one of them another name: metrics and headers tell them apart by it",
                );
                findings.add_with(
                    Code::Duplicate,
                    span,
                    complaint,
                    Other { span: first, what: "the first is" },
                );
            }
            None => drop(known.insert(name, span)),
        }
    }
}
