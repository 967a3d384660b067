//! The counters of the lanes: blocks of integers with a fixed layout, each written by one lane and read by `tick`.
//!
//! A counter is an atomic only so that another thread may read it. Its one writer loads and stores, and never needs an
//! atomic addition. Counters wrap, so readers take differences. A block holds no pointer, so that it can lie in memory
//! that several processes map.

use crate::promises::MAX_LEVELS;
use crate::request::{Outcome, Reason};
use crate::sync::shared::Shared;
use crate::telemetry::life_table::PARTS;
use crate::telemetry::service_by_target::SERVICE_PARTS;
use crate::telemetry::status::{DurationHistogram, STATUS_CLASSES};
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};

/// A monotone count with one writer.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An array that is too long to have a `Default` otherwise, laid out as the array.
#[repr(transparent)]
pub(crate) struct LongArray<T, const N: usize>([T; N]);

impl<T: Default, const N: usize> Default for LongArray<T, N> {
    fn default() -> Self {
        LongArray(core::array::from_fn(|_| T::default()))
    }
}

impl<T, const N: usize> Deref for LongArray<T, N> {
    type Target = [T; N];

    #[inline]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

/// Upper bounds of the size bins by which service times are summed (bytes); the last bin is open. Bins give the
/// regression of service time on bytes an excitation that the mean size alone does not have.
pub(crate) const SIZE_BINS: [u64; 3] = [4 << 10, 32 << 10, 256 << 10];
/// The number of size bins.
pub(crate) const BINS: usize = SIZE_BINS.len() + 1;

/// Requests released in one size bin at one level.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ServiceCounters {
    pub(crate) requests: Counter,
    pub(crate) work_ns: Counter,
    pub(crate) bytes: Counter,
}

/// Requests released at one level of a class with a deadline and no D_ref.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ClippedServiceCounters {
    pub(crate) requests: Counter,
    /// The sum of their service times, each clipped at the deadline.
    pub(crate) service_ns: Counter,
}

/// The number of recent clients that a lane notes of a class. The heavy hitters are found among them.
pub(crate) const RECENT: usize = 256;

/// What the loop of a promised delay or ratio reads of its class. Squares are of microseconds, so that they do not
/// overflow.
#[derive(Default)]
#[repr(C)]
pub(crate) struct TimingCounters {
    /// Responses that took longer than D_ref, and clients that hung up after it.
    pub(crate) late: Counter,
    /// Delivered answers. A failed request has no answer, however quick it was.
    pub(crate) answered: Counter,
    /// The sum of their response times, and of how long clients waited that hung up after D_ref.
    pub(crate) answer_ns: Counter,
    /// Answers by the part of D_ref, the sums of their response times, and clients that hung up.
    pub(crate) answered_in: [Counter; PARTS],
    pub(crate) answer_in_ns: [Counter; PARTS],
    pub(crate) left_in: [Counter; PARTS],
    /// Requests that the gateway dropped after they had waited.
    pub(crate) dropped: Counter,
    /// Requests that the plant or the gateway failed.
    pub(crate) failed: Counter,
    /// The sums of the service times, each clipped at [`ServiceTime::clip`](crate::model::ServiceTime::clip).
    pub(crate) service_ns: Counter,
    pub(crate) service_us2: Counter,
    /// Requests whose service took no longer than D_ref, by the part of it.
    pub(crate) served_in: [Counter; SERVICE_PARTS],
    /// Gaps between admitted arrivals of busy times (`ArrivalGaps`).
    pub(crate) gaps: Counter,
    pub(crate) gap_ns: Counter,
    pub(crate) gap_us2: Counter,
    /// Admitted arrivals after an idle gap, which `gaps` leaves out: the first ones of bursts.
    pub(crate) bursts: Counter,
}

impl TimingCounters {
    /// Counts an admitted arrival and the gap that it ends; `None` if the gap was idle.
    pub(crate) fn arrive(&self, gap_ns: Option<u64>) {
        let Some(gap_ns) = gap_ns else { return self.bursts.add(1) };
        self.gaps.add(1);
        self.gap_ns.add(gap_ns);
        self.gap_us2.add((gap_ns / 1000).saturating_mul(gap_ns / 1000));
    }

    /// Counts an answer and its response time.
    pub(crate) fn answer(&self, response_ns: u64, target_ns: u64) {
        self.answered.add(1);
        self.answer_ns.add(response_ns);
        match part(response_ns, target_ns, PARTS) {
            Some(part) => {
                self.answered_in[part].add(1);
                self.answer_in_ns[part].add(response_ns);
            }
            None => self.late.add(1),
        }
    }

    /// Counts a client that hung up after this time, waiting or in service.
    pub(crate) fn leave(&self, waited_ns: u64, target_ns: u64) {
        match part(waited_ns, target_ns, PARTS) {
            Some(part) => self.left_in[part].add(1),
            None => {
                self.answer_ns.add(waited_ns);
                self.late.add(1);
            }
        }
    }

    /// Counts a service time, which adds no more than `clip_ns` to the sums.
    pub(crate) fn release(&self, service_ns: u64, target_ns: u64, clip_ns: u64) {
        if let Some(part) = part(service_ns, target_ns, SERVICE_PARTS) {
            self.served_in[part].add(1);
        }
        let service_ns = service_ns.min(clip_ns);
        self.service_ns.add(service_ns);
        self.service_us2.add((service_ns / 1000).saturating_mul(service_ns / 1000));
    }
}

/// The part of D_ref in which a time ends, where D_ref is divided into `parts`; `None` beyond it.
fn part(time_ns: u64, target_ns: u64, parts: usize) -> Option<usize> {
    let part = time_ns / (target_ns / parts as u64).max(1);
    (time_ns <= target_ns).then_some((part as usize).min(parts - 1))
}

/// Durations from 1 ms on, by the octave of their milliseconds: 1 to 2 ms, 2 to 4 ms, and so on; the last is open, from
/// 65.5 s. Shorter ones are not counted here, which keeps the fast path short: readers get them from the count of all.
#[derive(Default)]
#[repr(C)]
pub(crate) struct DurationCounters([Counter; DurationHistogram::BOUNDS]);

impl DurationCounters {
    /// The shortest duration that is counted.
    pub(crate) const LEAST_NS: u64 = 1_000_000;

    #[inline]
    pub(crate) fn add(&self, duration_ns: u64) {
        if duration_ns >= Self::LEAST_NS {
            let octave = (duration_ns / 1_000_000).ilog2() as usize;
            self.0[octave.min(DurationHistogram::BOUNDS - 1)].add(1);
        }
    }

    /// The counts so far, shortest first.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(Counter::get)
    }
}

/// One lane's counters of one class. The alignment keeps them off the cache lines that another lane writes; it is two
/// lines, because a processor fetches two at a time.
#[derive(Default)]
#[repr(C, align(128))]
pub struct ClassCounters {
    pub(crate) arrivals: Counter,
    pub(crate) bytes: Counter,
    /// Arrivals that ended before a start: rejected, dropped, or left.
    pub(crate) unserved: Counter,
    pub(crate) started: Counter,
    pub(crate) queue_delay_ns: Counter,
    pub(crate) released: Counter,
    pub(crate) response_ns: Counter,
    pub(crate) outcomes: [Counter; 3],
    pub(crate) reasons: [Counter; Reason::ALL.len()],
    /// Requests by the level that the service level gave them at arrival. A request that waits is given its level again
    /// at its start. Requests inside a contract are not counted here, since the service level does not decide on them.
    pub(crate) decided: [Counter; MAX_LEVELS + 1],
    pub(crate) served: [Counter; MAX_LEVELS + 1],
    pub(crate) timing: TimingCounters,
    /// Queue delays of requests started, and response times of requests released.
    pub(crate) queue_delays: DurationCounters,
    pub(crate) response_times: DurationCounters,
    /// Releases by level and size, which the cost models learn from.
    pub(crate) services: [[ServiceCounters; BINS]; MAX_LEVELS + 1],
    /// The clients of every 2^k-th arrival, the latest of them.
    pub(crate) recent: LongArray<AtomicU64, RECENT>,
    /// Service times of requests released.
    pub(crate) service_times: DurationCounters,
    /// The sum of the queue delays of requests released whose response time is counted in `response_times`. The sum of the
    /// service times is the rest of `response_ns`, so that a request that did not wait adds nothing here.
    pub(crate) waited_ns: Counter,
    /// Responses by the first digit of their status, from 1.
    pub(crate) responses: [Counter; STATUS_CLASSES],
    /// Requests that were started, and released or left by their clients later than their deadline. A class may have a D_ref
    /// too, by which `timing` counts.
    pub(crate) past_deadline: Counter,
    pub(crate) clipped_services: [ClippedServiceCounters; MAX_LEVELS + 1],
}

impl ClassCounters {
    /// Counts the end of a request that was not started, for this reason.
    #[inline]
    pub(crate) fn end_unserved(&self, reason: Reason) {
        self.reasons[reason as usize].add(1);
        self.unserved.add(1);
    }

    /// Accounts for what a thread or process that is gone has left: the request that it was counting when it died, which it
    /// counted by an arrival first and by a start or a rejection last, and the requests that it had in service.
    pub(crate) fn settle(&self) {
        let sum = |counters: &[Counter]| counters.iter().fold(0, |sum: u64, c| sum.wrapping_add(c.get()));
        let behind = |whole: u64, part: u64| whole.wrapping_sub(part);
        let uncounted = behind(sum(&self.served), self.started.get());
        self.reasons[Reason::Full as usize].add(match behind(self.arrivals.get(), sum(&self.reasons)) {
            missing if uncounted > 0 => missing,
            _ => 0,
        });
        self.started.add(uncounted);
        self.reasons[Reason::ClientLeft as usize].add(behind(self.arrivals.get(), sum(&self.reasons)));
        self.unserved.add(behind(self.arrivals.get(), self.started.get().wrapping_add(self.unserved.get())));
        self.released.add(behind(self.started.get(), self.released.get()));
        let failed = behind(self.started.get(), sum(&self.outcomes));
        self.outcomes[Outcome::Failed as usize].add(failed);
    }

    /// Arrivals, and those of them that have ended.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let ended = self.outcomes.iter().map(Counter::get).sum::<u64>();
        (self.arrivals.get(), ended.wrapping_add(self.unserved.get()))
    }
}

/// One lane's counters of one plant, on cache lines of their own too.
#[derive(Default)]
#[repr(C, align(128))]
pub struct PlantCounters {
    /// Integral of min(in service, s) dt [server nanoseconds].
    pub(crate) busy_ns: Counter,
    pub(crate) releases: Counter,
    pub(crate) service_ns: Counter,
    /// Arrivals whose connection was counted within a second before, as in [`Target`](crate::request::Target).
    pub(crate) repeated: Counter,
    /// Refusals are counted at every plant, the rest where the number of workers is searched for.
    pub(crate) by_load: LoadCounters,
}

/// Bins of the number in service: each number up to 16, then eight to the octave, up to what a gate counts.
pub(crate) const LOADS: usize = 16 + 12 * 8;

/// Time, and the work of the requests that departed, by how many requests were in service; and their work and service times by
/// how many were in service right after their start.
#[derive(Default)]
#[repr(C)]
pub(crate) struct LoadCounters {
    pub(crate) time_ns: LongArray<Counter, LOADS>,
    pub(crate) work: LongArray<Counter, LOADS>,
    pub(crate) service_ns: LongArray<Counter, LOADS>,
    pub(crate) work_started: LongArray<Counter, LOADS>,
    pub(crate) squares: Counter,
    /// Ends of service of requests that were started before the limit was last lowered.
    pub(crate) overtaken: Counter,
    /// Requests that the plant refused, and while it refuses some, those that it answered, by how many were in service right
    /// after their start.
    pub(crate) refused: LongArray<Counter, LOADS>,
    pub(crate) answered: LongArray<Counter, LOADS>,
    /// All requests that the plant refused.
    pub(crate) refusals: Counter,
}

impl LoadCounters {
    /// Counts the departure of a request by the numbers in service after its start and at its end, with its service time and
    /// its usual cost.
    pub(crate) fn depart(&self, [start, end]: [u32; 2], service_ns: u64, usual: u32) {
        self.service_ns[load_bin(start)].add(service_ns);
        self.work_started[load_bin(start)].add(u64::from(usual));
        self.work[load_bin(end)].add(u64::from(usual));
        self.squares.add(u64::from(usual) * u64::from(usual));
    }

    /// Counts a request that the plant refused.
    pub(crate) fn refuse(&self, start: u32) {
        self.refused[load_bin(start)].add(1);
        self.refusals.add(1);
    }
}

/// The bin of a number in service, from 1.
pub(crate) fn load_bin(in_service: u32) -> usize {
    let n = in_service.max(1) as usize;
    if n <= 16 {
        return n - 1;
    }
    let octave = (n - 1).ilog2() as usize;
    let eighth = ((n - 1) >> (octave - 3)) & 7;
    (16 + (octave - 4) * 8 + eighth).min(LOADS - 1)
}

/// The least and the most in service that share a bin.
pub(crate) fn bin_loads(bin: usize) -> (u32, u32) {
    if bin < 16 {
        return (bin as u32 + 1, bin as u32 + 1);
    }
    let (octave, eighth) = ((bin - 16) / 8 + 4, (bin - 16) as u32 % 8);
    let least = ((8 + eighth) << (octave - 3)) + 1;
    (least, least + (1 << (octave - 3)) - 1)
}

/// One lane's counters: classes and plants by number. At a reload the lane gets a longer list of the same counters.
#[derive(Clone, Default)]
pub(crate) struct LaneCounters {
    pub(crate) classes: Vec<Shared<ClassCounters>>,
    pub(crate) plants: Vec<Shared<PlantCounters>>,
}

impl LaneCounters {
    /// The lane's counters, and new ones up to this many classes and plants.
    pub(crate) fn grown(&self, classes: usize, plants: usize) -> Self {
        let mut grown = self.clone();
        grown.classes.resize_with(classes.max(self.classes.len()), Default::default);
        grown.plants.resize_with(plants.max(self.plants.len()), Default::default);
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::snapshot::durations;
    use crate::time::Duration;

    #[test]
    fn bins_cover_all_numbers_in_order() {
        assert_eq!((bin_loads(load_bin(1)), bin_loads(load_bin(16))), ((1, 1), (16, 16)));
        for n in 1..70_000 {
            let (least, most) = bin_loads(load_bin(n));
            assert!(n > 60_000 || (least..=most).contains(&n), "{n} in {least}..={most}");
        }
    }

    #[test]
    fn durations_are_counted_below_the_bound_that_is_above_them() {
        let lanes = [DurationCounters::default(), DurationCounters::default()];
        let given = [999_999, 1_000_000, 1_999_999, 2_000_000, 65_535_999_999, 65_536_000_000, u64::MAX];
        given.iter().enumerate().for_each(|(index, ns)| lanes[index % 2].add(*ns));
        let histogram = durations(lanes.iter(), given.len() as u64, 7);
        let bounds: Vec<Duration> = DurationHistogram::bounds().collect();
        for (bucket, count) in histogram.buckets.iter().enumerate() {
            let least = bucket.checked_sub(1).map_or(Duration::ZERO, |below| bounds[below]);
            let within = |ns: &&u64| {
                let duration = Duration::from_nanos(**ns);
                least <= duration && bounds.get(bucket).is_none_or(|bound| duration < *bound)
            };
            assert_eq!(*count, given.iter().filter(within).count() as u64, "bucket {bucket}");
        }
        assert_eq!((histogram.count(), histogram.sum_ns), (7, 7));
    }

    /// Wherever on a request's way its process dies, the lane's counters are settled so that each arrival has one reason, has
    /// started or not, and has ended.
    #[test]
    fn what_a_dead_process_was_counting_is_counted_once() {
        type Step = fn(&ClassCounters);
        const SERVED: [Step; 9] = [
            |class| class.arrivals.add(1),
            |class| class.decided[2].add(1),
            |class| class.served[2].add(1),
            |class| class.reasons[Reason::Full as usize].add(1),
            |class| class.started.add(1),
            |class| class.queue_delay_ns.add(1),
            |class| class.bytes.add(1),
            |class| class.released.add(1),
            |class| class.outcomes[Outcome::Completed as usize].add(1),
        ];
        const REJECTED: [Step; 4] = [
            |class| class.arrivals.add(1),
            |class| class.decided[0].add(1),
            |class| class.reasons[Reason::Overload as usize].add(1),
            |class| class.unserved.add(1),
        ];
        let sum = |counters: &[Counter]| counters.iter().map(Counter::get).sum::<u64>();
        for (way, done) in
            [&SERVED[..], &REJECTED[..]].iter().flat_map(|way| (0..=way.len()).map(move |n| (way, n)))
        {
            let class = ClassCounters::default();
            let steps = SERVED.iter().chain(&REJECTED).chain(&SERVED[..6]).chain(&way[..done]);
            steps.for_each(|step| step(&class));
            for _ in 0..2 {
                class.settle();
                let ended = sum(&class.outcomes);
                assert_eq!(class.totals(), (3 + u64::from(done > 0), 3 + u64::from(done > 0)), "{done}");
                assert_eq!(sum(&class.reasons), class.arrivals.get(), "{done}");
                assert_eq!(
                    [sum(&class.served), class.started.get(), class.released.get()],
                    [ended; 3],
                    "{done}"
                );
            }
        }
    }
}
