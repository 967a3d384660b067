//! What clients do by themselves: leave when their patience ends, and retry.

use crate::request::Request;
use plimsoll_core::random::Random;
use plimsoll_core::request::Token;
use plimsoll_core::time::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A retry; or, if `attempt` is 0, the next request of a user that waited for its answer.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) request: Box<Request>,
    pub(super) stream: usize,
    pub(super) attempt: u32,
}

/// When clients will leave, and when they will retry.
#[derive(Debug)]
pub(super) struct ClientTimers {
    /// Requests whose clients will leave; some may have been answered meanwhile.
    leaving: BinaryHeap<Reverse<(Instant, u64)>>,
    returning: BTreeMap<(Instant, u64), Again>,
    /// The time of the first event of both kinds.
    due: Instant,
    returned: u64,
    scheduled: u64,
    random: Random,
}

impl ClientTimers {
    pub(super) fn new(seed: u64) -> Self {
        ClientTimers {
            leaving: BinaryHeap::new(),
            returning: BTreeMap::new(),
            due: Instant::FAR,
            returned: 0,
            scheduled: 0,
            random: Random::new(seed),
        }
    }

    /// Lets a request's client leave at `until`, if it is still there.
    pub(super) fn waits(&mut self, token: Token, until: Instant) {
        self.leaving.push(Reverse((until, token.0)));
        self.due = self.due.min(until);
    }

    /// Lets a client retry after a random time, `mean` on average.
    pub(super) fn returns(&mut self, now: Instant, mean: Duration, again: Again) {
        let after = Duration::try_from_secs_f64(self.random.exponential(mean.as_secs_f64()));
        self.returns_at(now + after.unwrap_or(Duration::MAX), again);
    }

    /// Lets a client retry at this time.
    pub(super) fn returns_at(&mut self, at: Instant, again: Again) {
        self.scheduled += 1;
        self.returning.insert((at, self.scheduled), again);
        self.due = self.due.min(at);
    }

    /// When the next client leaves or retries. It is kept ready because it is asked for at each event.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    fn leaves(&self) -> Instant {
        self.leaving.peek().map_or(Instant::FAR, |Reverse((until, _))| *until)
    }

    fn comes(&self) -> Instant {
        self.returning.first_key_value().map_or(Instant::FAR, |((at, _), _)| *at)
    }

    /// A request whose client's patience ends now.
    pub(super) fn who_leaves(&mut self, now: Instant) -> Option<Token> {
        if self.leaves() > now {
            return None;
        }
        let first = self.leaving.pop().map(|Reverse((_, token))| Token(token));
        self.due = self.leaves().min(self.comes());
        first
    }

    /// A request that is retried now.
    pub(super) fn who_returns(&mut self, now: Instant) -> Option<Again> {
        if self.comes() > now {
            return None;
        }
        let first = self.returning.pop_first().map(|(_, again)| again);
        // A user's next request is not a retry.
        self.returned += u64::from(first.as_ref().is_some_and(|again| again.attempt > 0));
        self.due = self.leaves().min(self.comes());
        first
    }

    pub(super) fn nobody_returns(&self) -> bool {
        self.returning.is_empty()
    }

    /// How many requests were retries.
    pub(super) fn returned(&self) -> u64 {
        self.returned
    }
}
