//! From what a configuration says to what it means: names become numbers, defaults that depend on other keys are filled
//! in, and
//! what cannot be is refused.
//!
//! Nothing stops at the first error. Where a value is missing its finding exists already, and something harmless takes
//! its place: the result is thrown away whenever there are findings.

mod classes;
mod control;
mod deadlines;
mod hosts;
mod levels;
mod listeners;
mod plants;
mod response_times;
mod sites;
mod workers;

use super::Gateway;
use crate::Configuration;
use crate::diagnostic::{Code, Complaint, Findings, Other};
use crate::gateway::keys::{ConfigurationKeys, LimitKeys};
use crate::syntax::listed;
use plimsoll_core::promises::Promises;
use plimsoll_gateway::settings::{Limits, Rejection, Report, Settings, Timeouts};
use std::collections::BTreeMap;
use std::ops::Range;

/// The configuration that `file` means. Not to be used if there are findings.
pub(crate) fn resolve(file: &ConfigurationKeys, name: &str, findings: &mut Findings) -> Configuration {
    let mut plants = plants::resolve(file, name, findings);
    let (sites, rewrites) = sites::resolve(file, &plants, findings);
    workers::set_load_lines(file, &mut plants.plants, &sites, findings);
    let keys = &file.gateway.value;
    let control = control::control(&file.control.value, keys, findings);
    listeners::check(keys, findings);
    let settings = Settings {
        listen: listed(&keys.listen, |address| *address),
        admin: keys.admin.value.0,
        threads: keys.threads.as_ref().map_or(0, |threads| threads.value.0 as usize),
        trusted_proxies: listed(&keys.trusted_proxies, |network| *network),
        forwarded: keys.forwarded.value,
        report: report(file),
        rejection: rejection(file),
        limits: limits(&file.limits.value, findings),
        timeouts: timeouts(file),
        backends: Vec::new(),
        rewrites,
        hash_seed: keys.seed.value.0,
    };
    let trends = control::trends(&file.control.value, name, findings);
    let gateway = Gateway { settings, backends: plants.backends, trends };
    Configuration { promises: Promises { plants: plants.plants, sites, control }, gateway }
}

fn report(file: &ConfigurationKeys) -> Report {
    let keys = &file.report.value;
    Report { mode: keys.when.value, name: keys.header.value.0.clone() }
}

fn rejection(file: &ConfigurationKeys) -> Rejection {
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

fn timeouts(file: &ConfigurationKeys) -> Timeouts {
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
