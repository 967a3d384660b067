//! The scheduling state of a class that was promised a delay or a ratio of delays: a quota of workers, or a weight.
//!
//! Threads share these words. `tick` writes quotas and weights, and a dispatch reads them under the queue's lock. The count
//! of requests in service has many writers, each of which changes the gate first and then this count. A dispatch in
//! between may choose a request of another class, and has no other effect: only the gate's word counts the requests at the
//! plant, so none is forgotten in the queue. `model_check.rs` checks that under loom.

use crate::scheduling::arrival_gaps::ArrivalGaps;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What decides when the first waiting request of a class is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TurnRule {
    /// A delay: the class comes before others while fewer of its requests than its quota are in service, and after all
    /// others otherwise.
    Quota,
    /// A ratio: among the classes of this site with a ratio, the one whose first request has the longest normalized
    /// response time comes first.
    Weight {
        /// The site's number.
        site: u16,
    },
}

/// The words of one class.
pub(crate) struct Quota {
    pub(crate) turn: TurnRule,
    /// D_ref (ns); the largest number without one.
    pub(crate) target_ns: u64,
    /// The quota, in 65536ths of a worker. While a search allows more requests in service than there are workers, the quota
    /// counts places: it is larger by the ratio of the limit to the workers ([`Capacity`](crate::actuator::capacity::Capacity);
    /// decision 8).
    quota: AtomicU32,
    /// One count over all promises of the class: a thread that has not seen a reload yet counts the requests that it starts
    /// and ends in the words from before it.
    in_service: Arc<AtomicU32>,
    /// Requests of the class in service that this count leaves out: they started before the class had a promise.
    before: AtomicU32,
    /// The weight of the normalized response time `(waited + S) weight + start`, as f64 bits.
    weight: AtomicU64,
    /// The start of the normalized response time (ns), as f64 bits.
    start: AtomicU64,
    /// S (ns).
    service_ns: AtomicU64,
    /// A request that has waited this long (ns) is dropped.
    bound_ns: AtomicU64,
    /// A request that has waited this long (ns) is urgent: it is served as one within its quota, whatever the quota.
    urgent_ns: AtomicU64,
    /// A service time (ns) counts for no more than this.
    clip_ns: AtomicU64,
    /// A strict ratio holds each request for this long after its arrival (ns).
    hold_ns: AtomicU64,
    pub(crate) gaps: ArrivalGaps,
}

/// A time in nanoseconds; the largest number if there is no time, or it does not fit.
fn nanos(time: Option<Duration>) -> u64 {
    time.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(u64::MAX)
}

/// One worker, as a quota counts it.
pub(crate) const WORKER: u32 = 65_536;

impl Quota {
    pub(crate) fn new(turn: TurnRule, target: Option<Duration>) -> Self {
        Quota {
            turn,
            target_ns: nanos(target),
            quota: AtomicU32::new(u32::MAX),
            in_service: Arc::new(AtomicU32::new(0)),
            before: AtomicU32::new(0),
            weight: AtomicU64::new(1.0_f64.to_bits()),
            start: AtomicU64::new(0.0_f64.to_bits()),
            service_ns: AtomicU64::new(0),
            bound_ns: AtomicU64::new(u64::MAX),
            urgent_ns: AtomicU64::new(u64::MAX),
            clip_ns: AtomicU64::new(u64::MAX),
            hold_ns: AtomicU64::new(0),
            gaps: ArrivalGaps::default(),
        }
    }

    /// Takes over the count of requests in service, for a promise that changed.
    pub(crate) fn counting(self, before: &Quota) -> Self {
        let left_out = AtomicU32::new(before.before.load(Ordering::Relaxed));
        Quota { in_service: before.in_service.clone(), before: left_out, ..self }
    }

    /// Counts the requests of the class that start from now on. `in_service` requests of the class started before, since this
    /// is its first promise.
    pub(crate) fn beside(self, in_service: u32) -> Self {
        Quota { before: AtomicU32::new(in_service), ..self }
    }

    /// Whether some requests in service may have started before the promise.
    pub(crate) fn leaves_out(&self) -> bool {
        self.before.load(Ordering::Relaxed) > 0
    }

    /// Takes the number of requests of the class that are in service altogether. Another thread may have started a request
    /// since, so the number that the count leaves out only falls.
    pub(crate) fn see(&self, in_service: u32) {
        let counted = self.in_service.load(Ordering::Relaxed);
        let before = self.before.load(Ordering::Relaxed).min(in_service.saturating_sub(counted));
        self.before.store(before, Ordering::Relaxed);
    }

    pub(crate) fn set_workers(&self, workers: f64) {
        self.quota.store((workers * f64::from(WORKER)) as u32, Ordering::Relaxed);
    }

    /// Whole workers, and the fraction of one more in 65536ths.
    pub(crate) fn workers(&self) -> (u32, u32) {
        let quota = self.quota.load(Ordering::Relaxed);
        (quota >> 16, quota & 0xffff)
    }

    /// `start` and `service` (s).
    pub(crate) fn set_weight(&self, weight: f64, start: f64, service: f64) {
        self.weight.store(weight.to_bits(), Ordering::Relaxed);
        self.start.store((start * 1e9).to_bits(), Ordering::Relaxed);
        self.service_ns.store((service * 1e9) as u64, Ordering::Relaxed);
    }

    /// The normalized response time of a request that would start now.
    pub(crate) fn urgency(&self, now: Instant, arrived: Instant) -> f64 {
        let response_ns = now.nanos_since(arrived) + self.service_ns.load(Ordering::Relaxed);
        let [weight, start] =
            [&self.weight, &self.start].map(|word| f64::from_bits(word.load(Ordering::Relaxed)));
        response_ns as f64 * weight + start
    }

    pub(crate) fn set_bound(&self, bound: Option<Duration>) {
        self.bound_ns.store(nanos(bound), Ordering::Relaxed);
    }

    pub(crate) fn bound_ns(&self) -> u64 {
        self.bound_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_urgent(&self, wait: Option<Duration>) {
        self.urgent_ns.store(nanos(wait), Ordering::Relaxed);
    }

    pub(crate) fn is_urgent(&self, now: Instant, arrived: Instant) -> bool {
        now.nanos_since(arrived) >= self.urgent_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_clip(&self, longest: Option<Duration>) {
        self.clip_ns.store(nanos(longest), Ordering::Relaxed);
    }

    pub(crate) fn clip_ns(&self) -> u64 {
        self.clip_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn set_hold(&self, hold: Duration) {
        self.hold_ns.store(hold.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn hold_ns(&self) -> u64 {
        self.hold_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn in_service(&self) -> u32 {
        self.in_service.load(Ordering::Relaxed) + self.before.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(&self) {
        self.in_service.fetch_add(1, Ordering::Relaxed);
    }

    /// The count never falls below 0: it may start with 0 while requests are in service, if a promise was withdrawn and made
    /// again.
    pub(crate) fn leave(&self) {
        let _ = self.in_service.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }
}
