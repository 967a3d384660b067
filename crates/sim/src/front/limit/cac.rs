//! CAC, conservative admission control (AC, section 5): "a hypothetical scheme, in which the server is assumed to have
//! precise knowledge of service time a request needs. [...] The allocated CQs are allocated barely enough to fulfill
//! the service time requirements. [...] The admission criteria was relaxed to allow admission if the CPU is idle, no
//! matter whether there are CQ left or not."
//!
//! Each period of T has a budget of `s T` service-seconds, less the work carried over. A request is admitted if its true
//! service time fits in the rest of the budget, or if a worker is idle. An unused budget is lost.
//!
//! Where the paper is unclear: eq. 3 gives each period the whole `c T`, which lets up to 2 T of work into T when one period
//! fills late and the next early; but section 5.1.3 says that CAC never misses the bound, "since the system stops admitting
//! tasks when it cannot serve them within the delay bounds". So carried work is deducted: unfinished work never exceeds `s T`,
//! and with one server no response takes longer than T. A worker is "idle" if fewer requests are in flight than there are
//! workers.
//!
//! Unfinished work falls at `min(n, s)` service-seconds per second, with n requests in flight, and is zero when n is 0. If the
//! server itself draws service times, only their mean is known.

use super::{Ask, Limiter, RoundTrip};
use plimsoll_core::time::{Duration, Instant};

/// A budget of work a period.
#[derive(Debug)]
pub(in crate::front) struct Cac {
    servers: u32,
    period_ns: u64,
    slot: u64,
    left_ns: u64,
    unfinished_ns: u64,
    in_flight: u32,
    last: Instant,
}

impl Cac {
    /// `period` may not be zero.
    pub(in crate::front) fn new(servers: u32, period: Duration) -> Self {
        let period_ns = period.as_nanos() as u64;
        Cac {
            servers,
            period_ns,
            slot: 0,
            left_ns: u64::from(servers) * period_ns,
            unfinished_ns: 0,
            in_flight: 0,
            last: Instant::ZERO,
        }
    }

    fn advance(&mut self, now: Instant) {
        let slot = now.as_nanos() / self.period_ns;
        if slot != self.slot {
            // The work is counted as it stood when the new period began, not at the period's first arrival.
            self.drain(Instant::from_nanos(slot * self.period_ns));
            let budget_ns = u64::from(self.servers) * self.period_ns;
            (self.slot, self.left_ns) = (slot, budget_ns.saturating_sub(self.unfinished_ns));
        }
        self.drain(now);
    }

    fn drain(&mut self, until: Instant) {
        let done_ns = u64::from(self.in_flight.min(self.servers)) * until.nanos_since(self.last);
        self.unfinished_ns = self.unfinished_ns.saturating_sub(done_ns);
        self.last = self.last.max(until);
    }
}

impl Limiter for Cac {
    fn admit(&mut self, now: Instant, ask: Ask) -> bool {
        self.advance(now);
        let service_ns = u64::try_from(ask.service.as_nanos()).unwrap_or(u64::MAX);
        if self.in_flight >= self.servers && service_ns > self.left_ns {
            return false;
        }
        self.left_ns = self.left_ns.saturating_sub(service_ns);
        self.unfinished_ns = self.unfinished_ns.saturating_add(service_ns);
        self.in_flight += 1;
        true
    }

    fn released(&mut self, now: Instant, _sample: RoundTrip) {
        self.advance(now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            self.unfinished_ns = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{after, at};
    use super::*;

    fn admitted(limiter: &mut Cac, now: f64, service_ms: u64, n: u32) -> usize {
        let ask = Ask { in_flight: 0, service: Duration::from_millis(service_ms) };
        (0..n).filter(|_| limiter.admit(at(now), ask)).count()
    }

    #[test]
    fn the_budget_is_work_not_requests() {
        let mut limiter = Cac::new(1, Duration::from_secs(1));
        assert_eq!(admitted(&mut limiter, 0.0, 100, 9), 9);
        // 100 ms are left: a request that needs more is rejected, and those that fit are admitted.
        assert_eq!(admitted(&mut limiter, 0.0, 150, 1), 0);
        assert_eq!(admitted(&mut limiter, 0.0, 10, 50), 10);
    }

    #[test]
    fn carried_work_is_deducted() {
        let mut limiter = Cac::new(1, Duration::from_secs(1));
        // 1 s of work comes at 0.75 s, and three quarters of it are carried over.
        assert_eq!(admitted(&mut limiter, 0.75, 10, 500), 100);
        assert_eq!(admitted(&mut limiter, 1.0, 10, 500), 25);
        assert_eq!(limiter.unfinished_ns, 1_000_000_000);
        assert_eq!(admitted(&mut limiter, 1.5, 10, 500), 0);
        assert_eq!(admitted(&mut limiter, 2.0, 10, 500), 100);
    }

    #[test]
    fn an_idle_worker_takes_one_without_budget() {
        let mut limiter = Cac::new(2, Duration::from_secs(1));
        assert_eq!(admitted(&mut limiter, 0.0, 100, 50), 20);
        for n in 0..19 {
            limiter.released(at(0.5), after(at(0.5), Duration::from_millis(100), n));
        }
        // One of two workers is busy and no budget is left, so one request is admitted and not two.
        assert_eq!(admitted(&mut limiter, 0.6, 5000, 2), 1);
    }
}
