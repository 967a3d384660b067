//! Active health checks: each server of an upstream is asked for a page at intervals, in addition to its requests.
//!
//! One thread makes all checks, and looks ten times a second which are due. A check opens a connection of its own and closes
//! it: it is no request, holds no place, and teaches no loop. A server has one check at a time, so that slow answers do not
//! pile up. Intervals vary at random around the configured one, and the first check comes at a random time within it, so that
//! neither the servers of a gateway nor the gateways of a server are checked in step.
//!
//! The result of a check goes to the [`Roster`](super::ejection::Roster). A server that has left is no longer checked.

use super::connect::{Secured, connect};
use super::pool::Pool;
use super::server::Server;
use super::servers::Upstream;
use super::trouble::{CheckFault, own_lack};
use crate::clock::Clock;
use crate::http1::response::ResponseHead;
use crate::http1::scan::HeadScan;
use crate::settings::HealthCheck;
use plimsoll_core::random::Random;
use plimsoll_core::time::Instant;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The part by which an interval may be shorter or longer than the configured one.
const JITTER: f64 = 0.1;

/// The longest head of an answer, with the interim heads before it.
const LONGEST_HEAD: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Checks {
    random: Random,
    watched: Vec<Watched>,
}

/// A server that is checked.
#[derive(Debug)]
struct Watched {
    server: Arc<Server>,
    pool: Arc<Pool>,
    due: Instant,
    under_way: Rc<Cell<bool>>,
}

/// A check that is due.
#[derive(Debug)]
pub(crate) struct DueCheck {
    server: Arc<Server>,
    pool: Arc<Pool>,
    secured: Option<Arc<Secured>>,
    http2: bool,
    rule: HealthCheck,
    under_way: Rc<Cell<bool>>,
}

impl Checks {
    pub(crate) fn new(seed: u64) -> Self {
        Checks { random: Random::new(seed), watched: Vec::new() }
    }

    /// The checks that are due now, of these upstreams.
    pub(crate) fn due<'a>(
        &mut self,
        now: Instant,
        upstreams: impl Iterator<Item = (&'a Upstream, &'a HealthCheck)>,
    ) -> Vec<DueCheck> {
        let mut before = std::mem::take(&mut self.watched);
        let mut due = Vec::new();
        for (upstream, rule) in upstreams {
            for server in &upstream.servers {
                let known = before.iter().position(|watched| Arc::ptr_eq(&watched.server, server));
                let mut watched = known.map_or_else(
                    || {
                        let due = now + rule.interval.mul_f64(self.random.uniform());
                        let (server, pool) = (server.clone(), upstream.pool.clone());
                        Watched { server, pool, due, under_way: Rc::default() }
                    },
                    |known| before.swap_remove(known),
                );
                if watched.due <= now && !watched.under_way.get() {
                    let part = 1.0 - JITTER + 2.0 * JITTER * self.random.uniform();
                    watched.due = now + rule.interval.mul_f64(part);
                    watched.under_way.set(true);
                    let (server, pool) = (watched.server.clone(), watched.pool.clone());
                    let (secured, http2, rule) = (upstream.secured.clone(), upstream.http2, rule.clone());
                    due.push(DueCheck {
                        server,
                        pool,
                        secured,
                        http2,
                        rule,
                        under_way: watched.under_way.clone(),
                    });
                }
                // If the configured interval became shorter, the next check comes earlier.
                watched.due = watched.due.min(now + rule.interval.mul_f64(1.0 + JITTER));
                self.watched.push(watched);
            }
        }
        before.iter().for_each(|watched| watched.pool.roster().end_checks(now, &watched.server));
        due
    }
}

impl DueCheck {
    /// Makes the check, and reports what it found.
    pub(crate) async fn run(self, clock: Clock) {
        let asked = tokio::time::timeout(self.rule.timeout, self.ask()).await;
        self.under_way.set(false);
        let found = match asked.unwrap_or(Err(CheckFault::Late)) {
            Ok(None) => return,
            Ok(Some(status)) if self.rule.statuses.contains(&status) => Ok(()),
            Ok(Some(status)) => Err(CheckFault::Status(status)),
            Err(fault) => Err(fault),
        };
        self.pool.roster().checked(clock.now(), &self.server, found, &self.rule);
    }

    /// The status of the server's answer; `None` if this machine lacked the means to ask.
    async fn ask(&self) -> Result<Option<u16>, CheckFault> {
        let mut io = match connect(&self.server, self.secured.as_deref(), self.http2).await {
            Ok(io) => io,
            Err(error) if own_lack(&error, &self.server.address).is_some() => return Ok(None),
            Err(error) => return Err(CheckFault::of(&error)),
        };
        let ended = |_: io::Error| CheckFault::Ended;
        io.write_all(self.request().as_bytes()).await.map_err(ended)?;
        io.flush().await.map_err(ended)?;
        let (mut bytes, mut start) = (Vec::new(), 0);
        let (mut scan, mut head) = (HeadScan::default(), ResponseHead::default());
        loop {
            let invalid = |_| CheckFault::Malformed;
            if let Some(length) = scan.advance(&bytes[start..], LONGEST_HEAD).map_err(invalid)? {
                head.parse(&bytes[start..start + length], false).map_err(invalid)?;
                if !head.is_interim() {
                    return Ok(Some(head.status));
                }
                (start, scan) = (start + length, HeadScan::default());
            } else if bytes.len() >= LONGEST_HEAD {
                return Err(CheckFault::Malformed);
            } else if io.read_buf(&mut bytes).await.map_err(ended)? == 0 {
                return Err(CheckFault::Ended);
            }
        }
    }

    fn request(&self) -> String {
        let own = || match &self.server.name {
            Some(name) => name.to_str().into_owned(),
            None => self.server.host(),
        };
        let host = self.rule.host.clone().unwrap_or_else(own);
        let path = &self.rule.path;
        // HTTP/2 has no such field; its connection is simply closed.
        let close = if self.http2 { "" } else { "connection: close\r\n" };
        format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: plimsoll-check\r\naccept: */*\r\n{close}\r\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::ConnectionBounds;
    use super::*;
    use crate::settings::UpstreamSettings;
    use plimsoll_core::time::Duration;
    use std::net::SocketAddr;

    fn upstream(ports: std::ops::Range<u16>) -> Upstream {
        let addresses = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)).into()).collect();
        let bounds = ConnectionBounds { open: 1, kept: 1 };
        Upstream::new(&UpstreamSettings::new(addresses), None, (bounds, 1)).expect("an upstream")
    }

    /// The times of checks in a minute (ms), by server; each check ends at once.
    fn times(seed: u64, servers: u16) -> Vec<Vec<u64>> {
        let (upstream, rule) = (upstream(1..1 + servers), HealthCheck::default());
        let (mut checks, mut times) = (Checks::new(seed), vec![Vec::new(); servers.into()]);
        for now in (0..60_000).step_by(100) {
            let at = Instant::from_nanos(now * 1_000_000);
            for due in checks.due(at, [(&upstream, &rule)].into_iter()) {
                let number = upstream.servers.iter().position(|server| Arc::ptr_eq(server, &due.server));
                times[number.expect("one of them")].push(now);
                due.under_way.set(false);
            }
        }
        times
    }

    #[test]
    fn servers_are_checked_in_their_interval_and_not_in_step() {
        let all = times(1, 20);
        assert!(all.iter().all(|own| (10..=14).contains(&own.len())), "{all:?}");
        let gaps = || all.iter().flat_map(|own| own.windows(2).map(|pair| pair[1] - pair[0]));
        assert!(gaps().all(|gap| (4500..=5600).contains(&gap)), "{all:?}");
        let mut firsts: Vec<u64> = all.iter().map(|own| own[0] / 500).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert!(firsts.len() >= 5, "the first checks are spread over the interval: {firsts:?}");
        assert_ne!(times(1, 3), times(2, 3), "another gateway checks at other times");
    }

    #[test]
    fn a_check_under_way_is_not_joined_by_another_and_what_has_left_is_not_checked() {
        let (both, rule) = (upstream(1..3), HealthCheck::default());
        let mut checks = Checks::new(1);
        let mut due = |second: u64, upstream: &Upstream| {
            checks.due(Instant::from_nanos(second * 1_000_000_000), [(upstream, &rule)].into_iter()).len()
        };
        assert_eq!([due(0, &both), due(6, &both), due(60, &both)], [0, 2, 0]);
        let one = UpstreamSettings::new(vec![both.servers[0].address.clone()]);
        let one = both.with(&one, None).expect("an upstream");
        one.take_over(Instant::ZERO, &UpstreamSettings::new(Vec::new()));
        assert_eq!(due(120, &one), 0, "the first one's check is under way");
        assert_eq!(checks.watched.len(), 1);
        assert!(checks.due(Instant::ZERO + Duration::from_secs(200), std::iter::empty()).is_empty());
        assert!(checks.watched.is_empty());
    }
}
