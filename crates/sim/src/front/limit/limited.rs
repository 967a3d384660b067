//! A limiter as [`Rules`]: counts the requests in flight, and lets others wait up to the limiter's bounds, in order of arrival
//! or with higher priorities first.

use super::{Ask, Limiter, RoundTrip};
use crate::front::rules::{Asked, Gone, Rules, Ruling};
use plimsoll_core::request::Reason;
use plimsoll_core::time::{Duration, Instant};

/// A limiter and the number of its requests in flight.
#[derive(Debug)]
pub(in crate::front) struct Limited<L> {
    limiter: L,
    in_flight: u32,
    by_priority: bool,
    /// As [`Rules::keeps_abandoned`].
    keeps_abandoned: bool,
}

impl<L: Limiter> Limited<L> {
    pub(in crate::front) fn new(limiter: L, by_priority: bool) -> Self {
        Limited { limiter, in_flight: 0, by_priority, keeps_abandoned: false }
    }

    pub(in crate::front) fn keeping_abandoned(self) -> Self {
        Limited { keeps_abandoned: true, ..self }
    }
}

impl<L: Limiter> Rules for Limited<L> {
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling {
        if asked.waiting == 0
            && let Some(in_flight) = self.dequeue(now, asked.service)
        {
            return Ruling::Start(in_flight);
        }
        match self.limiter.queue().most {
            0 => Ruling::Reject(Reason::Overload),
            most if asked.waiting >= most as usize => Ruling::Reject(Reason::QueueFull),
            _ => Ruling::Wait(if self.by_priority { asked.priority.into() } else { 0 }),
        }
    }

    /// A request that starts remembers how many are in flight then, itself included.
    fn dequeue(&mut self, now: Instant, service: Duration) -> Option<u32> {
        let admitted = self.limiter.admit(now, Ask { in_flight: self.in_flight, service });
        self.in_flight += u32::from(admitted);
        admitted.then_some(self.in_flight)
    }

    fn released(&mut self, now: Instant, Gone { holds, started, ended }: Gone) {
        self.in_flight -= 1;
        self.limiter.released(now, RoundTrip { started, in_flight: holds, ended });
    }

    fn keeps_abandoned(&self) -> bool {
        self.keeps_abandoned
    }

    fn wait(&self) -> Duration {
        self.limiter.queue().wait
    }

    fn tick(&mut self, now: Instant) -> Instant {
        self.limiter.tick(now)
    }
}
