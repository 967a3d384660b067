//! The last N departures of a class, renewed after every n of them (QM 2.2: a long window of observation, a short one of
//! control). Departures of more than ten minutes ago are no part of it, however few came since. The window keeps sums of
//! counters at the updates, so nothing is kept by request.
//!
//! The window's traffic is what the queueing model takes. Variabilities are over the whole window, so a step of the rate makes
//! them too large until the window has passed. That gives the class more workers while its law learns: a promised mean of 100
//! ms was 101 ms in the ten seconds after a step from 30/s to 100/s, and 118 ms with variabilities since the step alone. lambda
//! and S are needed sooner after a step, and with less noise than few departures have, so gaps and services have a long memory
//! that steps ([`ServiceTime`], for both). An S from the last 50 departures moved the predicted number of workers by a seventh,
//! by chance alone.
//!
//! **Gaps that depend on each other.** c_a^2 of single gaps does not see that short ones follow short ones. Arrivals that
//! come three times as fast for a second as in the two seconds before have a c_a^2 of 1.6, as if they were nearly Poisson's.
//! So the window takes the index of dispersion over blocks of gaps where that is larger (Fendick and Whitt 1989).

use crate::model::{Batch, ServiceTime, Traffic};
use crate::promises::Delay;
use crate::request::Reason;
use crate::telemetry::counters::{ClassCounters, Counter, LaneCounters};
use crate::telemetry::life_table::{Beyond, LifeTable, PARTS};
use crate::telemetry::service_by_target::{SERVICE_PARTS, ServiceByTarget};
use crate::telemetry::snapshot::sum_over;
use crate::time::{Duration, Instant};
use alloc::{collections::VecDeque, sync::Arc};

/// The counts of one class up to an instant. They may wrap, since only differences are used.
#[derive(Clone, Copy, Debug, Default)]
pub struct DepartureCounts {
    /// The instant up to which was counted.
    pub at: Instant,
    /// Gaps between admitted arrivals, without idle ones ([`ArrivalGaps`](crate::scheduling::ArrivalGaps)).
    pub gaps: u64,
    /// The sum of these gaps (ns).
    pub gap_ns: u64,
    /// The sum of their squares (us^2).
    pub gap_us2: u64,
    /// Admitted arrivals that ended no such gap: the first ones of bursts.
    pub bursts: u64,
    /// The number of requests released.
    pub released: u64,
    /// The number of answers delivered.
    pub answered: u64,
    /// The sum of their response times, and of the times after which clients hung up that were late.
    pub response_ns: u64,
    /// Answers that took longer than promised, and clients that hung up later than that.
    pub late: u64,
    /// The other answers, by the part of the promised time that they took.
    pub answered_in: [u64; PARTS],
    /// The sums of their response times.
    pub response_in_ns: [u64; PARTS],
    /// Clients that hung up sooner than promised, by the part of the promised time.
    pub left_in: [u64; PARTS],
    /// Clients that hung up while they waited, sooner or later than promised.
    pub left_waiting: u64,
    /// Requests dropped after waiting.
    pub dropped: u64,
    /// Requests that failed, and those that were turned away for whatever reason, dropped ones too.
    pub lost: u64,
    /// The sum of the service times, each clipped at [`ServiceTime::clip`].
    pub service_ns: u64,
    /// The sum of their squares.
    pub service_us2: u64,
    /// Requests by the part of the promised time that their service took.
    pub served_in: [u64; SERVICE_PARTS],
}

/// The departures of a class.
pub struct DepartureWindow {
    updates: VecDeque<DepartureCounts>,
    departures: u64,
    update: u64,
    /// D_ref (s); 0 where none was promised.
    target: f64,
    /// Departures and their response times (s), of the last [`RECENT`] or so.
    recent: (f64, f64),
    gap: ServiceTime,
    service: ServiceTime,
    /// The requests that had ended before S last stepped.
    ended_before_step: u64,
}

/// The figures of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Departures in the window.
    pub departures: f64,
    /// Departures since the last update.
    pub fresh: f64,
    /// Mean response time (s).
    pub response: f64,
    /// The mean response time of the last 50 or so (s).
    pub recent_response: f64,
    /// The sum of the response times since the last update, and of what they would have been where clients hung up (s).
    pub fresh_sum: f64,
    /// Requests since the last update that were answered, or whose clients hung up.
    pub fresh_ends: f64,
    /// How many of these, and of the requests dropped since the last update, were late or would have been.
    pub fresh_late: f64,
    /// Requests dropped since the last update.
    pub fresh_dropped: f64,
    /// The share of requests that took longer than D_ref, or would have, or were dropped after waiting.
    pub late: f64,
    /// The share of all requests that failed or were turned away.
    pub lost: f64,
}

/// The bound of c_a^2, which has none for a Pareto process with a shape below 2.
const MOST_VARIABILITY: f64 = 8.0;
/// Departures that count as recent.
const RECENT: f64 = 50.0;
/// The number of gaps in a block: about as many as come while a queue settles.
const BLOCK: usize = 20;
/// The fewest samples that give a variance.
const ENOUGH: f64 = 30.0;

impl DepartureWindow {
    /// The last `departures`, seen after each `update`.
    pub fn new(departures: u64, update: u64) -> Self {
        DepartureWindow {
            updates: VecDeque::new(),
            departures,
            update,
            target: 0.0,
            recent: (0.0, 0.0),
            gap: ServiceTime::expected(0.0),
            service: ServiceTime::expected(0.0),
            ended_before_step: 0,
        }
    }

    /// The same window, for a class that was promised this delay.
    pub(crate) fn within(self, target: Duration) -> Self {
        DepartureWindow { target: target.as_secs_f64(), ..self }
    }

    /// An empty window for another delay of the same class. It keeps what is known of the class's gaps and service times.
    pub(crate) fn begun_again(self, departures: u64, target: Duration) -> Self {
        let DepartureWindow { update, gap, service, ended_before_step, .. } = self;
        let empty = DepartureWindow::new(departures, update).within(target);
        DepartureWindow { gap, service, ended_before_step, ..empty }
    }

    /// Takes the counts; returns the figures of the window if an update is due.
    pub fn observe(&mut self, counts: DepartureCounts) -> Option<Seen> {
        let Some(last) = self.updates.back() else {
            self.updates.push_back(counts);
            return None;
        };
        let new = CountedBetween { first: last, last: &counts };
        let fresh = counts.ended().wrapping_sub(last.ended());
        // Requests that are turned away move the window too, but ten times as many are needed.
        if fresh < self.update && new.of(|c| c.lost) < 10.0 * self.update as f64 {
            return None;
        }
        let new_ends = new.ends(self.target);
        let ended = last.ended();
        if self.service.learn(&new.services()) {
            self.ended_before_step = ended;
        }
        self.gap.learn(&new.gaps());
        self.updates.push_back(counts);
        while self.updates.len() > 2
            && (counts.ended().wrapping_sub(self.updates[1].ended()) >= self.departures
                || counts.at.since(self.updates[1].at) > Delay::EXPIRY)
        {
            self.updates.pop_front();
        }
        let window = CountedBetween { first: &self.updates[0], last: &counts };
        let ends = window.ends(self.target);
        let (fresh_sum, fresh_ends) = (ends.seconds_of(&new_ends), new_ends.all());
        let kept = (1.0 - fresh_ends / RECENT).max(0.0);
        self.recent = (self.recent.0 * kept + fresh_ends, self.recent.1 * kept + fresh_sum);
        let (count, responses) = self.recent;
        let response = ends.mean();
        Some(Seen {
            departures: counts.ended().wrapping_sub(self.updates[0].ended()) as f64,
            fresh: fresh as f64,
            response,
            recent_response: if count > 0.0 { responses / count } else { response },
            fresh_sum,
            fresh_ends,
            fresh_late: ends.late_of(&new_ends),
            fresh_dropped: new_ends.dropped,
            late: ends.late_share(),
            lost: window.lost(),
        })
    }

    /// The traffic of busy times. Variabilities are 1 while too little is known.
    pub fn traffic(&self) -> Traffic {
        let (Some(first), Some(last)) = (self.updates.front(), self.updates.back()) else {
            return Traffic::default();
        };
        let window = CountedBetween { first, last };
        Traffic {
            rate: if self.gap.mean() > 0.0 { 1.0 / self.gap.mean() } else { 0.0 },
            service_seconds: self.service.mean(),
            arrival_variability: variability(&window.gaps()).max(self.dispersion()),
            service_variability: variability(&window.services()),
        }
    }

    /// The work of the window's departures over its time, pauses included (erlangs). The rate of busy times says how long
    /// requests wait, but for a class that comes in bursts that rate is many times the use of the workers.
    pub fn load(&self) -> f64 {
        let (Some(first), Some(last)) = (self.updates.front(), self.updates.back()) else { return 0.0 };
        let requests = CountedBetween { first, last }.of(|c| c.released);
        requests * self.service.mean() / last.at.since(first.at).as_secs_f64().max(1e-9)
    }

    /// The part of busy times in which requests come, if a burst may be served until `wait` (s) after its last request came. A
    /// burst that is shorter than `wait` never meets a settled queue: planned at the rate at which its requests come, a page of
    /// thirty at once would take all workers, of which its class needs half.
    pub(crate) fn coming_share(&self, wait: f64) -> f64 {
        let (Some(first), Some(last)) = (self.updates.front(), self.updates.back()) else { return 1.0 };
        let window = CountedBetween { first, last };
        let (gaps, bursts) = (window.gaps().sum, (window.of(|c| c.bursts) - 1.0).max(0.0));
        if gaps > 0.0 { gaps / (gaps + bursts * wait) } else { 1.0 }
    }

    /// How the service times of the window are distributed up to the promised time.
    pub(crate) fn service_shares(&self) -> ServiceByTarget {
        self.shares_of_latest(f64::INFINITY)
    }

    /// The same distribution since S last stepped, but over at least about `least` departures.
    pub(crate) fn present_service_shares(&self, least: f64) -> ServiceByTarget {
        let last = self.updates.back().map_or(0, DepartureCounts::ended);
        self.shares_of_latest(least.max(last.wrapping_sub(self.ended_before_step) as f64))
    }

    fn shares_of_latest(&self, departures: f64) -> ServiceByTarget {
        let none = ServiceByTarget { target: self.target, ..ServiceByTarget::default() };
        let Some(last) = self.updates.back() else { return none };
        let is_latest = |own: &&DepartureCounts| last.ended().wrapping_sub(own.ended()) as f64 <= departures;
        let Some(first) = self.updates.iter().rev().take_while(is_latest).last() else { return none };
        let within = |part: usize| last.served_in[part].wrapping_sub(first.served_in[part]) as f64;
        let requests = CountedBetween { first, last }.of(|c| c.released);
        ServiceByTarget { requests, within: core::array::from_fn(within), ..none }
    }

    /// S (s).
    pub(crate) fn service_seconds(&self) -> f64 {
        self.service.mean()
    }

    /// What one service time counts for at most, from now on; `None` until one is known.
    pub(crate) fn service_clip(&self) -> Option<Duration> {
        let clip = ServiceTime::clip(self.service.mean(), self.service.deviation());
        self.service.is_known().then(|| Duration::from_secs_f64(clip.clamp(1e-6, 1e6)))
    }

    /// The index of dispersion over blocks of gaps: `Var(sum of m gaps) / (m mean^2)`, which is c_a^2 at m = 1 and for gaps
    /// that are independent of each other. 0 while too little is known, and above 3,333 departures a second, where the window
    /// is shorter than thirty blocks of two updates; means are kept there without it (`sim long_means`).
    fn dispersion(&self) -> f64 {
        let sums = self.updates.iter().step_by(BLOCK.div_ceil(self.update as usize));
        let blocks =
            sums.clone().zip(sums.skip(1)).map(|(first, last)| CountedBetween { first, last }.gaps());
        let (mut count, mut all) = (0.0, Batch::default());
        for Batch { requests, sum, .. } in blocks.clone() {
            (count, all.requests, all.sum) = (count + 1.0, all.requests + requests, all.sum + sum);
        }
        if count < ENOUGH || all.sum <= 0.0 {
            return 0.0;
        }
        let mean = all.sum / all.requests;
        let off =
            blocks.map(|block| (block.sum / mean - block.requests) * (block.sum / mean - block.requests));
        (off.sum::<f64>() / all.requests).min(MOST_VARIABILITY)
    }
}

impl DepartureCounts {
    /// The counts of a class over all lanes.
    pub(crate) fn of(now: Instant, lanes: &[Arc<LaneCounters>], class: usize) -> Self {
        let sum = |counter: fn(&ClassCounters) -> &Counter| sum_over(lanes, class, counter);
        DepartureCounts {
            at: now,
            gaps: sum(|c| &c.timing.gaps),
            gap_ns: sum(|c| &c.timing.gap_ns),
            gap_us2: sum(|c| &c.timing.gap_us2),
            bursts: sum(|c| &c.timing.bursts),
            released: sum(|c| &c.released),
            answered: sum(|c| &c.timing.answered),
            response_ns: sum(|c| &c.timing.answer_ns),
            late: sum(|c| &c.timing.late),
            answered_in: parts(lanes, class, |c| &c.timing.answered_in),
            response_in_ns: parts(lanes, class, |c| &c.timing.answer_in_ns),
            left_in: parts(lanes, class, |c| &c.timing.left_in),
            left_waiting: sum(|c| &c.reasons[Reason::ClientLeft as usize]),
            dropped: sum(|c| &c.timing.dropped),
            lost: lost(lanes, class),
            service_ns: sum(|c| &c.timing.service_ns),
            service_us2: sum(|c| &c.timing.service_us2),
            served_in: parts(lanes, class, |c| &c.timing.served_in),
        }
    }

    fn ended(&self) -> u64 {
        self.released.wrapping_add(self.dropped).wrapping_add(self.left_waiting)
    }
}

/// Counts of a class by the part of the promised time.
fn parts<const N: usize>(
    lanes: &[Arc<LaneCounters>],
    class: usize,
    counters: fn(&ClassCounters) -> &[Counter; N],
) -> [u64; N] {
    let of = |part: usize| lanes.iter().map(move |lane| counters(&lane.classes[class])[part].get());
    core::array::from_fn(|part| of(part).fold(0, u64::wrapping_add))
}

/// The requests of a class that failed or were turned away.
fn lost(lanes: &[Arc<LaneCounters>], class: usize) -> u64 {
    let rejections = Reason::ALL.into_iter().filter(|reason| reason.is_rejection());
    let failed = sum_over(lanes, class, |c| &c.timing.failed);
    rejections.fold(failed, |sum, reason| {
        let counted = lanes.iter().map(|lane| lane.classes[class].reasons[reason as usize].get());
        counted.fold(sum, u64::wrapping_add)
    })
}

/// What was counted between two instants.
struct CountedBetween<'a> {
    first: &'a DepartureCounts,
    last: &'a DepartureCounts,
}

impl CountedBetween<'_> {
    fn of(&self, count: fn(&DepartureCounts) -> u64) -> f64 {
        count(self.last).wrapping_sub(count(self.first)) as f64
    }

    /// The requests that ended, by the part of `target` after which they did.
    fn ends(&self, target: f64) -> LifeTable {
        let parts = |of: fn(&DepartureCounts) -> &[u64; PARTS]| {
            core::array::from_fn(|part| of(self.last)[part].wrapping_sub(of(self.first)[part]) as f64)
        };
        let answered: [f64; PARTS] = parts(|c| &c.answered_in);
        let seconds = parts(|c| &c.response_in_ns).map(|ns: f64| ns * 1e-9);
        let late_answers = self.of(|c| c.answered) - answered.iter().sum::<f64>();
        let late = Beyond {
            answered: late_answers,
            left: (self.of(|c| c.late) - late_answers).max(0.0),
            seconds: self.of(|c| c.response_ns) * 1e-9 - seconds.iter().sum::<f64>(),
        };
        LifeTable {
            answered,
            seconds,
            left: parts(|c| &c.left_in),
            target,
            late,
            dropped: self.of(|c| c.dropped),
        }
    }

    fn lost(&self) -> f64 {
        let lost = self.of(|c| c.lost);
        lost / (self.of(|c| c.answered) + lost).max(1.0)
    }

    fn gaps(&self) -> Batch {
        Batch {
            requests: self.of(|c| c.gaps),
            sum: self.of(|c| c.gap_ns) * 1e-9,
            squares: self.of(|c| c.gap_us2) * 1e-12,
        }
    }

    fn services(&self) -> Batch {
        Batch {
            requests: self.of(|c| c.released),
            sum: self.of(|c| c.service_ns) * 1e-9,
            squares: self.of(|c| c.service_us2) * 1e-12,
        }
    }
}

/// c^2 of values by their number, their sum and the sum of their squares.
fn variability(values: &Batch) -> f64 {
    if values.requests < ENOUGH || values.sum <= 0.0 {
        return 1.0;
    }
    (values.squares * values.requests / (values.sum * values.sum) - 1.0).clamp(0.0, MOST_VARIABILITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::arrival_gaps::ArrivalGaps;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn counters() -> [Arc<LaneCounters>; 1] {
        [Arc::new(LaneCounters::default().grown(1, 1))]
    }

    /// Counts requests that came 100 ms after one another and were served in 10 ms.
    fn release(lanes: &[Arc<LaneCounters>; 1], count: u64, response_ms: u64, late: bool) {
        let target_ns = if late { 0 } else { u64::MAX };
        let class = &lanes[0].classes[0];
        for _ in 0..count {
            class.arrivals.add(1);
            class.timing.arrive(Some(100_000_000));
            class.released.add(1);
            class.timing.answer(1_000_000 * response_ms, target_ns);
            class.timing.release(10_000_000, u64::MAX, u64::MAX);
        }
    }

    #[test]
    fn an_update_shows_the_departures_of_the_window_and_those_since_the_last() {
        let (lanes, at) = (counters(), |seconds: u64| Instant::from_nanos(1_000_000_000 * seconds));
        let mut window = DepartureWindow::new(100, 10);
        let mut observe = |seconds| {
            let seen = window.observe(DepartureCounts::of(at(seconds), &lanes, 0));
            seen.map(|seen| (seen, window.traffic()))
        };
        assert_eq!(observe(0), None, "the window begins here");
        release(&lanes, 9, 20, false);
        assert_eq!(observe(1), None, "an update takes ten departures");
        release(&lanes, 1, 20, false);
        let (seen, traffic) = observe(1).expect("ten departures");
        assert_eq!((seen.departures, seen.fresh, seen.late), (10.0, 10.0, 0.0));
        assert!(close(seen.response, 0.02) && close(seen.recent_response, 0.02));
        let few =
            Traffic { rate: 10.0, service_seconds: 0.01, arrival_variability: 1.0, service_variability: 1.0 };
        assert_eq!(traffic, few, "too few to determine a variance");

        release(&lanes, 40, 40, true);
        lanes[0].classes[0].timing.dropped.add(10);
        let (seen, traffic) = observe(5).expect("fifty departures");
        assert_eq!((seen.departures, seen.fresh), (60.0, 50.0));
        assert!(close(seen.late, 50.0 / 60.0), "dropped requests are late: {}", seen.late);
        assert!(close(seen.response, 0.036) && close(seen.fresh_sum, 1.6), "{seen:?}");
        // Forty of the last fifty are new, so a fifth of what was recent before is kept.
        assert!(close(seen.recent_response, (0.2 * 0.2 + 1.6) / (0.2 * 10.0 + 40.0)), "{seen:?}");
        assert!(
            close(traffic.service_variability, 0.0) && close(traffic.arrival_variability, 0.0),
            "{seen:?}"
        );
        assert!(close(traffic.rate, 10.0) && close(traffic.service_seconds, 0.01), "{seen:?}");
    }

    /// Service times that are all alike are the hardest to follow, since the clip is next to their mean.
    #[test]
    fn one_long_service_moves_s_little_and_a_step_is_followed() {
        let lanes = counters();
        let mut window = DepartureWindow::new(1000, 10);
        let mut serve = |service_ms: u64| {
            let clip = window.service_clip().map_or(u64::MAX, |clip| clip.as_nanos() as u64);
            lanes[0].classes[0].released.add(1);
            lanes[0].classes[0].timing.release(service_ms * 1_000_000, u64::MAX, clip);
            window.observe(DepartureCounts::of(Instant::ZERO, &lanes, 0));
            window.service_seconds()
        };
        (0..400).for_each(|_| {
            serve(20);
        });
        let after = (0..20).map(|index| serve(if index == 0 { 10_000 } else { 20 })).fold(0.0, f64::max);
        assert!(after < 0.022, "one of 10 s: {after}");
        let stepped = (0..100).map(|_| serve(60)).last();
        assert!(stepped.is_some_and(|seconds| seconds > 0.055), "{stepped:?}");
    }

    #[test]
    fn the_present_services_are_those_since_the_step() {
        let lanes = counters();
        let mut window = DepartureWindow::new(1000, 10).within(Duration::from_millis(160));
        let mut serve = |service_ms: u64, count: u64| {
            for _ in 0..count {
                lanes[0].classes[0].released.add(1);
                lanes[0].classes[0].timing.release(service_ms * 1_000_000, 160_000_000, u64::MAX);
                window.observe(DepartureCounts::of(Instant::ZERO, &lanes, 0));
            }
            [window.service_shares(), window.present_service_shares(50.0)].map(|own| own.quantile(0.9))
        };
        let [all, present] = serve(75, 400);
        assert!(all == present && (0.07..0.08).contains(&all), "{all} {present}");
        let [all, present] = serve(15, 200);
        assert!(all > 0.05 && (0.01..0.02).contains(&present), "{all} {present}");
    }

    #[test]
    fn departures_leave_the_window_by_whole_updates() {
        let lanes = counters();
        let mut window = DepartureWindow::new(20, 10);
        let mut update = |response_ms| {
            release(&lanes, 10, response_ms, false);
            window.observe(DepartureCounts::of(Instant::ZERO, &lanes, 0))
        };
        assert_eq!(update(0), None);
        for (response_ms, departures, response) in [(1000, 10.0, 1.0), (500, 20.0, 0.75), (500, 20.0, 0.5)] {
            let seen = update(response_ms).expect("ten departures");
            assert!(seen.departures == departures && close(seen.response, response), "{seen:?}");
        }
    }

    #[test]
    fn departures_leave_the_window_when_they_are_old() {
        let lanes = counters();
        let mut window = DepartureWindow::new(1000, 10);
        let mut update = |seconds: u64, response_ms| {
            release(&lanes, 10, response_ms, false);
            window.observe(DepartureCounts::of(Instant::ZERO + Duration::from_secs(seconds), &lanes, 0))
        };
        assert_eq!(update(0, 0), None);
        for seconds in [1, 300, 600] {
            update(seconds, 1000);
        }
        let seen = update(750, 500).expect("ten departures");
        assert_eq!((seen.departures, seen.response), (30.0, 2.5 / 3.0), "the first update is too old");
        let seen = update(5000, 500).expect("ten departures");
        assert_eq!((seen.departures, seen.response), (10.0, 0.5), "only those since the last update");
    }

    /// Poisson arrivals of 100/s for 5 s, then 30 s of silence, and so on: lambda is 100 and c_a^2 is 1, as in the busy
    /// times. The squares of all gaps over the square of the mean gap would give 70, and cut ones less than 0.
    #[test]
    fn silence_between_busy_times_is_no_part_of_the_traffic() {
        let mut random = crate::random::Random::new(3);
        let (gaps, mut counts) = (ArrivalGaps::default(), DepartureCounts::default());
        let mut window = DepartureWindow::new(1000, 10);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        for request in 1..=3000 {
            let silence = if request % 500 == 0 { 30.0 } else { 0.0 };
            now += Duration::from_secs_f64(random.exponential(0.01) + silence);
            match gaps.arrive(now, true) {
                Some(gap_ns) => {
                    counts.gaps += 1;
                    counts.gap_ns += gap_ns;
                    counts.gap_us2 += (gap_ns / 1000).pow(2);
                }
                None => counts.bursts += 1,
            }
            counts.at = now;
            (counts.released, counts.answered) = (counts.released + 1, counts.answered + 1);
            if window.observe(counts).is_some() {
                gaps.set_longest(Duration::from_secs_f64(ArrivalGaps::LONGEST / window.traffic().rate));
            }
        }
        let traffic = window.traffic();
        assert!((90.0..=110.0).contains(&traffic.rate), "{traffic:?}");
        assert!((0.8..=1.5).contains(&traffic.arrival_variability), "{traffic:?}");
        // Ten seconds of two bursts, and one between them.
        let share = window.coming_share(1.0);
        assert!((0.9..=0.92).contains(&share) && window.coming_share(0.0) == 1.0, "{share}");
    }
}
