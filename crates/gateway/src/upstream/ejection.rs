//! Which servers of an upstream are in use: the one state machine that requests and health checks feed.
//!
//! ```text
//!             cannot be reached, or an outlier of errors          time over, and the one request that
//!  in use ------------------------------------------------> ejected -- tries it cannot reach it -.
//!    ^ '-------------------- checks fail -----------> down     ^  |                             |
//!    |                                                 |       '------- for twice as long ------'
//!    '- starting <------------- checks succeed --------'----------'  reached, or an answer
//! ```
//!
//! **A server that cannot be reached** is ejected at the first failure, however many servers are out already, since it could
//! serve no request. The time out of use doubles with each failure in a row, from half a second to half a minute. It begins
//! anew once the server was in use for as long as its last ejection lasted.
//!
//! **A server that answers with errors** (500 and more, or no answer) is ejected if it is an outlier: if this many errors in a
//! row, five at least, would come by chance once in a million, by the share of errors of the other servers. So an application
//! that fails everywhere ejects no server. Such an ejection leaves at least half of the servers in use, since errors may be the
//! requests' own fault. Both conditions are checked in one step, under the roster's lock.
//!
//! **What is over says nothing new.** Requests that began before an ejection fail together, and count once.
//!
//! **If all servers are out, all are used** ([`choose`](super::choice::choose)); so the only server of an upstream is always
//! used. The first ejected server that answers is in use again. A server that is down stays down until its checks succeed.
//!
//! **A server that comes into use starts slowly**: its share grows for as long as it was out, at most over `slow_start`, which
//! is the time for a new server. At the start of the gateway all servers are new, and none starts slowly.
//!
//! Time is an argument, and no code here uses a socket.

use super::recent_counts::RecentCounts;
use super::retry_budget::RetryBudget;
use super::server::Server;
use super::server_log::Said;
use super::trouble::{CheckFault, Trouble};
use crate::settings::HealthCheck;
use plimsoll_core::time::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const FIRST_EJECTION: Duration = Duration::from_millis(500);
const LONGEST_EJECTION: Duration = Duration::from_secs(30);

/// The fewest errors in a row that eject a server.
pub(super) const FEWEST_ERRORS: u32 = 5;
/// The probability with which chance alone may eject a server.
const BY_CHANCE: f64 = 1e-6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerState {
    InUse,
    Ejected,
    Down,
}

#[derive(Debug)]
struct Member {
    server: Arc<Server>,
    state: ServerState,
    since: Instant,
    /// Why the server is out of use, or was the last time.
    why: Option<Trouble>,
    /// The number of ejections in a row, and the length of the last one.
    strikes: u32,
    last_ejection: Duration,
    recent: RecentCounts,
    failed_checks: u32,
    good_checks: u32,
    /// Whether the server was added to others, and has never been out of use.
    is_new: bool,
    /// How long the server was out of use the last time.
    out_for: Duration,
    said: Said,
}

/// The servers of an upstream, and what is known of them.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    members: Vec<Member>,
    slow_start: Duration,
    retries: RetryBudget,
    lookup_failure: Option<String>,
}

/// What the operator's log is to say of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerNews {
    /// The name of the upstream.
    pub upstream: String,
    /// The server's address.
    pub server: String,
    /// Whether the server is out of use.
    pub is_bad: bool,
    /// How many servers are in use, and how many there are.
    pub in_use: [usize; 2],
    /// The line, without the upstream.
    pub text: String,
}

/// An upstream's servers as the operator sees them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RosterStatus {
    pub servers: Vec<ServerStatus>,
    /// The number of requests that were tried again, and of those that were not because the budget was used up.
    pub retries: [u64; 2],
    /// Why the last lookup of a name failed, if it did; the servers are those of an earlier lookup.
    pub lookup_failure: Option<String>,
}

impl RosterStatus {
    /// Whether all servers are out of use, so that all are used.
    pub(crate) fn is_panic(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.weight == 0.0)
    }
}

/// A server as the operator sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerStatus {
    pub address: String,
    pub state: &'static str,
    /// How long the server has been in this state.
    pub since: Duration,
    /// Why the server is out of use.
    pub why: Option<String>,
    /// The part of its turns that the server gets.
    pub weight: f64,
    pub in_service: u32,
    pub served: u64,
    pub errors: u64,
    pub unreachable: u64,
    pub ejections: u32,
}

impl Roster {
    /// How many servers there are.
    pub(crate) fn servers(&self) -> usize {
        self.members.len()
    }

    /// Replaces the list of servers. Servers that stay keep their state; new ones start slowly, unless there were none before.
    pub(super) fn follow(&mut self, now: Instant, servers: &[Arc<Server>], slow_start: Duration) {
        (self.slow_start, self.lookup_failure) = (slow_start, None);
        let mut before = std::mem::take(&mut self.members);
        let is_first = before.is_empty();
        for server in servers {
            let known = before.iter().position(|member| Arc::ptr_eq(&member.server, server));
            let member = known.map_or_else(
                || {
                    if !is_first {
                        server.start(now, slow_start);
                    }
                    Member { is_new: !is_first, ..Member::new(server.clone(), now) }
                },
                |known| before.swap_remove(known),
            );
            self.members.push(member);
        }
        before.iter().for_each(|member| member.server.leave());
    }

    /// Notes the result of a lookup of the servers' names: why it failed, if it did.
    pub(crate) fn looked_up(&mut self, failure: Option<String>) {
        self.lookup_failure = failure;
    }

    /// No connection to a server could be made. `is_trial`: the request was the one that tries a server out of use.
    pub(super) fn unreachable(&mut self, now: Instant, server: &Arc<Server>, why: Trouble, is_trial: bool) {
        server.counts.unreachable.fetch_add(1, Relaxed);
        let Some(member) = self.member(server) else { return };
        if member.state == ServerState::InUse || (member.state == ServerState::Ejected && is_trial) {
            member.eject(now, why);
        }
    }

    /// A connection to a server was made.
    pub(super) fn reached(&mut self, now: Instant, server: &Arc<Server>, is_trial: bool) {
        let slow_start = self.slow_start;
        let Some(member) = self.member(server) else { return };
        if member.state == ServerState::Ejected && (is_trial || member.why != Some(Trouble::Errors)) {
            member.bring_back(now, slow_start);
        }
    }

    /// A server that is out of use has answered a request that began after its ejection.
    pub(super) fn answered(&mut self, now: Instant, server: &Arc<Server>) {
        let slow_start = self.slow_start;
        if let Some(member) = self.member(server).filter(|member| member.state == ServerState::Ejected) {
            member.bring_back(now, slow_start);
        }
    }

    /// Notes that a server made `in_row` errors in a row, which are at least `FEWEST_ERRORS`.
    pub(super) fn erred(&mut self, now: Instant, server: &Arc<Server>, in_row: u32) {
        let Some(own) = self.number(server) else { return };
        let others = self.members.iter_mut().enumerate().filter(|(number, _)| *number != own);
        let recent = others.map(|(_, other)| other.recent.of(now, other.server.counts.requests()));
        let [requests, errors] = recent.fold([0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]]);
        let out = self.members.iter().filter(|member| member.state != ServerState::InUse).count();
        let leaves_half = 2 * (out + 1) <= self.members.len();
        if self.members[own].state == ServerState::InUse
            && leaves_half
            && is_outlier(in_row, requests, errors)
        {
            self.members[own].eject(now, Trouble::Errors);
        }
    }

    /// A health check has ended with this result.
    pub(super) fn checked(
        &mut self,
        now: Instant,
        server: &Arc<Server>,
        found: Result<(), CheckFault>,
        rule: &HealthCheck,
    ) {
        let slow_start = self.slow_start;
        let Some(member) = self.member(server) else { return };
        match found {
            Ok(()) => (member.good_checks, member.failed_checks) = (member.good_checks.saturating_add(1), 0),
            Err(_) => {
                (member.good_checks, member.failed_checks) = (0, member.failed_checks.saturating_add(1))
            }
        }
        let is_reached = member.state == ServerState::Ejected && member.why != Some(Trouble::Errors);
        if (member.state == ServerState::Down || is_reached) && member.good_checks >= rule.successes {
            member.bring_back(now, slow_start);
        } else if let Err(fault) = found
            && (member.state == ServerState::Down || member.failed_checks >= rule.failures)
        {
            member.take_down(now, fault);
        }
    }

    /// Checks of the server have ended, so that a server that checks took down is in use again.
    pub(super) fn end_checks(&mut self, now: Instant, server: &Arc<Server>) {
        let slow_start = self.slow_start;
        let Some(member) = self.member(server) else { return };
        (member.good_checks, member.failed_checks) = (0, 0);
        if member.state == ServerState::Down {
            member.bring_back(now, slow_start);
        }
    }

    /// Whether a request may be tried again, after its server could not be reached or may have begun the request. If it may, it
    /// counts as a retry.
    pub(crate) fn may_retry(&mut self, now: Instant) -> bool {
        let requests = self.requests();
        self.retries.take(now, requests)
    }

    /// Moves the windows of recent counts on.
    pub(crate) fn look(&mut self, now: Instant) {
        for member in &mut self.members {
            member.recent.of(now, member.server.counts.requests());
        }
        let requests = self.requests();
        self.retries.look(now, requests);
    }

    fn requests(&self) -> u64 {
        self.members.iter().map(|member| member.server.counts.requests()[0]).sum()
    }

    /// The share of the servers that is in use, in (0, 1]. A server that comes back counts by its weight relative to the
    /// greatest. A new server counts only once it gets all of its turns, since the others carried the load without it. If all
    /// servers are out, the share is 1, since all are used.
    pub(crate) fn share(&self, now: Instant) -> f64 {
        let (mut there, mut most, mut all) = (0.0, 0.0_f64, 0_u32);
        for member in &self.members {
            let weight = member.weight(now);
            if !member.is_new || weight >= 1.0 {
                (there, most, all) = (there + weight, most.max(weight), all + 1);
            }
        }
        if there > 0.0 { there / (most * f64::from(all)) } else { 1.0 }
    }

    /// What the operator's log is to say of the servers since the last call.
    pub(crate) fn news(&mut self, now: Instant, upstream: &str) -> Vec<ServerNews> {
        let (all, in_use) = self.in_use();
        let rest = match in_use {
            0 => "no server is in use, so all are used".to_owned(),
            _ => format!("{in_use} of {all} servers are in use"),
        };
        let slow_start = self.slow_start;
        let members = self.members.iter_mut().filter_map(|member| member.news(now, slow_start));
        members
            .map(|(is_bad, server, text)| ServerNews {
                upstream: upstream.to_owned(),
                text: format!("{server} {text}; {rest}"),
                server,
                is_bad,
                in_use: [in_use, all],
            })
            .collect()
    }

    /// The number of servers, and the number of those in use.
    fn in_use(&self) -> (usize, usize) {
        let in_use = self.members.iter().filter(|member| member.state == ServerState::InUse).count();
        (self.members.len(), in_use)
    }

    pub(crate) fn status(&self, now: Instant) -> RosterStatus {
        RosterStatus {
            servers: self.members.iter().map(|member| member.status(now)).collect(),
            retries: self.retries.counts(),
            lookup_failure: self.lookup_failure.clone(),
        }
    }

    fn number(&self, server: &Arc<Server>) -> Option<usize> {
        self.members.iter().position(|member| Arc::ptr_eq(&member.server, server))
    }

    /// The state of a server; `None` if the server has left.
    fn member(&mut self, server: &Arc<Server>) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| Arc::ptr_eq(&member.server, server))
    }
}

impl Member {
    fn new(server: Arc<Server>, now: Instant) -> Self {
        Member {
            server,
            state: ServerState::InUse,
            since: now,
            why: None,
            strikes: 0,
            last_ejection: Duration::ZERO,
            recent: RecentCounts::default(),
            failed_checks: 0,
            good_checks: 0,
            is_new: false,
            out_for: Duration::ZERO,
            said: Said::default(),
        }
    }

    fn eject(&mut self, now: Instant, why: Trouble) {
        if self.state == ServerState::InUse {
            if now.since(self.since) >= self.last_ejection {
                self.strikes = 0;
            }
            self.since = now;
        }
        self.last_ejection = (FIRST_EJECTION * (1 << self.strikes.min(16))).min(LONGEST_EJECTION);
        self.strikes += 1;
        (self.state, self.why, self.is_new) = (ServerState::Ejected, Some(why), false);
        self.server.eject(now + self.last_ejection);
    }

    /// A server that is down already is also noted, since its checks may now fail in another way.
    fn take_down(&mut self, now: Instant, fault: CheckFault) {
        if self.state == ServerState::InUse {
            self.since = now;
        }
        if self.state != ServerState::Down {
            self.server.eject_until_checked();
        }
        (self.state, self.why, self.is_new) = (ServerState::Down, Some(Trouble::Checks(fault)), false);
    }

    fn bring_back(&mut self, now: Instant, slow_start: Duration) {
        let out = now.since(self.since);
        (self.state, self.since, self.out_for) = (ServerState::InUse, now, out);
        self.server.start(now, out.min(slow_start));
    }

    fn weight(&self, now: Instant) -> f64 {
        if self.state == ServerState::InUse { self.server.weight(now) } else { 0.0 }
    }

    fn news(&mut self, now: Instant, slow_start: Duration) -> Option<(bool, String, String)> {
        let is_out = self.state != ServerState::InUse;
        let times = self.said.take(now, is_out, self.server.ejections())?;
        // The server was ejected more often than lines were written.
        let often =
            if times > 1 { format!(" (ejected {times} times since the last line)") } else { String::new() };
        let text = if is_out {
            let why = self.why.map(|why| format!(" ({why})")).unwrap_or_default();
            format!("is out of use{why}{often}")
        } else {
            let seconds = self.out_for.min(slow_start).as_secs_f64();
            format!(
                "is in use again after {:.1} s{often}, and has its whole share in {seconds:.1} s",
                self.out_for.as_secs_f64()
            )
        };
        Some((is_out, self.server.address.to_string(), text))
    }

    fn status(&self, now: Instant) -> ServerStatus {
        let load = |count: &AtomicU64| count.load(Relaxed);
        let weight = self.weight(now);
        let state = match self.state {
            ServerState::InUse if weight < 1.0 => "starting",
            ServerState::InUse => "healthy",
            ServerState::Ejected => "ejected",
            ServerState::Down => "down",
        };
        let counts = &self.server.counts;
        ServerStatus {
            address: self.server.address.to_string(),
            state,
            since: now.since(self.since),
            why: self.why.filter(|_| self.state != ServerState::InUse).map(|why| why.to_string()),
            weight,
            in_service: self.server.busy(),
            served: load(&counts.served),
            errors: load(&counts.errors),
            unreachable: load(&counts.unreachable),
            ejections: self.server.ejections(),
        }
    }
}

/// Whether `in_row` errors in a row are more than chance, if the other servers made `errors` errors in `requests` requests.
/// With few requests their share of errors is taken to be near a half.
fn is_outlier(in_row: u32, requests: u64, errors: u64) -> bool {
    let share = (errors as f64 + 1.0) / (requests as f64 + 2.0);
    in_row >= FEWEST_ERRORS && share.powf(f64::from(in_row)) < BY_CHANCE
}

#[cfg(test)]
mod tests;
