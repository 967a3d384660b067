//! How many workers a plant has and how many requests it is given at once: as promised or found by the worker search, and
//! reduced to the share of the plant's servers that is in use.

use crate::time::Instant;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The words of one plant. The worker search, the loop of refusals and the readings write them; requests read all but
/// `most_for_times`, `whole` and `available`.
#[repr(C)]
pub(crate) struct Capacity {
    workers: AtomicU32,
    limit: AtomicU32,
    /// The most requests in service at once for the sake of promised times.
    most_for_times: AtomicU32,
    /// The number of places of which exempt requests and streams may hold a share.
    shared: AtomicU32,
    /// The workers and the limit while all servers are in use.
    whole: [AtomicU32; 2],
    /// Whether the number of workers is promised, reported, or was seen in throughput that levels off.
    is_known: AtomicU32,
    /// The share of the plant's servers that is in use, as the bits of an `f32`.
    available: AtomicU32,
    /// While a higher limit is tried: the one that holds again after a refusal. Else 0.
    tried_from: AtomicU32,
    /// When the search last lowered the limit (ns).
    lowered_ns: AtomicU64,
    /// Whether the plant refuses requests. Then answers are counted by how many were in service, too.
    refuses: AtomicBool,
    /// Whether the number of workers is searched for. Then time and departures are counted by how many were in service.
    pub(crate) is_searched: bool,
}

impl Capacity {
    /// Where the number of workers is searched for, none is known at the beginning.
    pub(crate) fn new(workers: u32, limit: u32, is_searched: bool) -> Self {
        let word = AtomicU32::new;
        let capacity = Capacity {
            workers: word(0),
            limit: word(0),
            most_for_times: word(u32::MAX),
            shared: word(0),
            whole: [word(0), word(0)],
            is_known: word(0),
            available: word(1_f32.to_bits()),
            tried_from: word(0),
            lowered_ns: AtomicU64::new(0),
            refuses: AtomicBool::new(false),
            is_searched,
        };
        capacity.set(workers, limit, !is_searched);
        capacity
    }

    /// The number of workers of the servers in use.
    pub(crate) fn workers(&self) -> u32 {
        self.workers.load(Ordering::Relaxed)
    }

    /// The total that class quotas divide: the workers if they are searched for, else the places, of which more may be
    /// configured than workers. A request then takes the time for which it has a place.
    pub(crate) fn quota_total(&self) -> u32 {
        if self.is_searched { self.workers() } else { self.limit() }
    }

    /// The places of a quota. While the search allows more places than workers, each class has its part of these too.
    pub(crate) fn quota_places(&self, quota: f64) -> f64 {
        quota * (f64::from(self.limit()) / f64::from(self.quota_total().max(1))).max(1.0)
    }

    /// How many requests the plant works on at once at most: its workers, or the limit where the search for workers holds it
    /// lower, to see whether fewer do as much.
    pub(crate) fn serving(&self) -> u32 {
        self.workers().min(self.limit())
    }

    /// The most requests in service at once.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The number of places of which exempt requests and streams may hold a share.
    pub(crate) fn shared(&self) -> u32 {
        self.shared.load(Ordering::Relaxed)
    }

    /// The workers and the limit while every server is in use.
    pub(crate) fn whole(&self) -> [u32; 2] {
        self.whole.each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// The share of the plant's servers that is in use, in (0, 1].
    pub(crate) fn available(&self) -> f64 {
        f32::from_bits(self.available.load(Ordering::Relaxed)).into()
    }

    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Sets whether the plant refuses requests, and the limit that holds again if it does while a higher one is tried.
    pub(crate) fn set_refuses(&self, refuses: bool, tried_from: Option<u32>) {
        self.refuses.store(refuses, Ordering::Relaxed);
        self.tried_from.store(tried_from.unwrap_or(0), Ordering::Relaxed);
    }

    /// Notes that the search lowers the limit.
    pub(crate) fn lower(&self, now: Instant) {
        self.lowered_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Whether the limit was lowered since a request started.
    pub(crate) fn was_lowered_since(&self, started: Instant) -> bool {
        started.as_nanos() <= self.lowered_ns.load(Ordering::Relaxed)
    }

    /// Sets the bound on requests in service that keeps promised times, or removes it. The limit never falls below the
    /// number of workers.
    pub(crate) fn set_most_for_times(&self, most: Option<u32>) {
        let most = most.unwrap_or(u32::MAX);
        if self.most_for_times.swap(most, Ordering::Relaxed) != most {
            self.publish();
        }
    }

    /// Returns to the limit before a trial, if the plant refused a request that only the trial let start, as the n-th.
    pub(crate) fn refused(&self, n: u32) {
        let tried_from = self.tried_from.load(Ordering::Relaxed);
        if (1..n).contains(&tried_from) {
            self.limit.fetch_min(tried_from, Ordering::Relaxed);
        }
    }

    /// Whether the number of workers is known: configured, reported or found.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed) != 0
    }

    /// `is_known`: whether throughput was seen to level off, or the server reports its workers.
    pub(crate) fn set(&self, workers: u32, limit: u32, is_known: bool) {
        self.whole.iter().zip([workers, limit]).for_each(|(word, n)| word.store(n, Ordering::Relaxed));
        self.is_known.store(is_known.into(), Ordering::Relaxed);
        self.publish();
    }

    /// Sets the share of the plant's servers that is in use; returns whether it has changed. A share outside (0, 1) counts
    /// as 1.
    pub(crate) fn set_available(&self, share: f64) -> bool {
        let share = if share > 0.0 && share < 1.0 { share as f32 } else { 1.0 };
        let is_other = self.available.swap(share.to_bits(), Ordering::Relaxed) != share.to_bits();
        if is_other {
            self.publish();
        }
        is_other
    }

    /// Writes the numbers that requests read. Until the number of workers is known the share does not apply: the search finds
    /// the workers of the servers in use.
    fn publish(&self) {
        let is_known = self.is_known();
        let share = if is_known { self.available() } else { 1.0 };
        let of = |n: u32| ((f64::from(n) * share + 0.5) as u32).clamp(n.min(1), n);
        let [workers, limit] = self.whole().map(of);
        let limit = limit.min(self.most_for_times.load(Ordering::Relaxed).max(workers));
        self.workers.store(workers, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
        self.shared.store(shared_places(limit, is_known), Ordering::Relaxed);
    }
}

/// The places of which streams and exempt requests may have a share. While the number of workers is not known only half of the
/// limit counts: the limit is a guess then, or twice a number that was seen to work side by side, and a share of a guess could
/// be all workers that there are.
fn shared_places(limit: u32, is_known: bool) -> u32 {
    if is_known { limit } else { limit / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_plant_has_its_share_of_workers_and_places() {
        let own = Capacity::new(30, 60, false);
        let now = |own: &Capacity| [own.workers(), own.limit(), own.shared()];
        own.set_available(2.0 / 3.0);
        assert_eq!((now(&own), own.whole()), ([20, 40, 40], [30, 60]));
        own.set_available(1e-9);
        assert_eq!(now(&own), [1, 1, 1], "some of it is used in any case");
        [f64::NAN, 0.0, -1.0, 7.0].into_iter().for_each(|share| {
            own.set_available(share);
            assert_eq!((now(&own), own.available()), ([30, 60, 60], 1.0));
        });
    }

    #[test]
    fn a_number_that_is_still_searched_for_is_that_of_what_is_there() {
        let own = Capacity::new(16, 16, true);
        own.set_available(0.5);
        assert_eq!((own.workers(), own.limit(), own.shared()), (16, 16, 8));
        own.set(8, 8, true);
        assert_eq!((own.workers(), own.limit()), (4, 4));
    }
}
