//! Loads beyond what a server can carry, judged by the clients' own clocks and answers.

use crate::page::capacity;
use plimsoll_load::{LoadHandle, OpenLoop, Paths, Step, Tally, Target};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How long a client waits for an answer before it gives up, which is an error.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// The rates that are tried, as shares of the application's capacity: closer together than the noise of eight seconds.
const TRIED: [f64; 6] = [0.8, 1.0, 1.15, 1.3, 1.5, 1.75];

/// Open-loop load on `/page`, from 400 clients at addresses of their own. Levels are read from `x-plimsoll`.
///
/// # Panics
/// If the load cannot be started.
#[must_use]
pub fn load(server: SocketAddr, steps: &[Step]) -> LoadHandle {
    load_on(server, "e2e.test", 1, steps)
}

/// The same for one of several sites: `group` keeps its clients' addresses apart from the others'.
///
/// # Panics
/// If the load cannot be started.
#[must_use]
pub fn load_on(server: SocketAddr, host: &str, group: u8, steps: &[Step]) -> LoadHandle {
    let target = Target {
        host: host.into(),
        level_header: Some("x-plimsoll".into()),
        timeout: PATIENCE,
        ..Target::new(server)
    };
    let load = OpenLoop {
        paths: Paths::one("/page"),
        clients: 400,
        first_address: Ipv4Addr::new(127, 16 * group, 0, 1),
        seed: group.into(),
        ..OpenLoop::new(target, steps.to_vec())
    };
    load.start(None).unwrap_or_else(|error| panic!("the load does not start: {error}"))
}

/// Every request that was not answered with the page: refused, reset, out of time, or an answer other than 200.
#[must_use]
pub fn failures(tally: &Tally) -> u64 {
    tally.requests - tally.status(200)
}

/// The lowest rate per second, of those tried, at which the server alone fails anybody in eight seconds.
///
/// # Panics
/// If it carries 1.75 times its capacity, which it cannot.
#[must_use]
pub fn starts_to_fail(server: SocketAddr) -> f64 {
    let rates = TRIED.map(|share| share * capacity());
    let failing = rates.into_iter().find(|&rate| {
        let tally = load(server, &[(Duration::from_secs(8), rate)]).join();
        eprintln!("alone at {rate:.0}/s: {} requests, {} failed", tally.requests, failures(&tally));
        failures(&tally) > 0
    });
    failing.unwrap_or_else(|| panic!("{server} does not fail at {:?} requests per second", rates.last()))
}
