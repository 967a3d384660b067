//! The law of the search: the limit of requests in service, and the number of workers, from the [`Evidence`].
//!
//! The limit is the largest s, the number of workers, that the evidence allows: a request started too soon waits a little in
//! the server instead of here, but a limit that is one too low leaves a worker idle. While service takes longer than the guard
//! (`guard.rs`), it is the middle between the likeliest s and the largest. No request is rejected for an experiment.
//!
//! Where the traffic itself does not vary the number in service, the limit does. It rises while throughput rises with it and
//! requests wait. It falls, to what the evidence allows or by a quarter, while throughput does not fall. While
//! service takes longer than the guard it rises only by little, and only if throughput fell when it was lowered. Nor does it
//! rise by more than a place at a time where service would take longer if throughput did not rise with it: before a server
//! that has just become slower, requests that were promised a time would stand behind all that its workers have no room for.
//! Where a deadline refuses requests because service takes too long, none waits, and the limit falls whether or not it is
//! reached: what is in service may be all that makes service long.
//! Where the guard leaves no room for twice the limit, half of it is tried first, as before a slow server. The tests are
//! repeated several times a second for as long as the process runs, so they require more than three deviations: with two, one
//! in twenty servers of eight workers was taken for one of five within a minute.
//!
//! Where requests wait before a slow server (`Counted::departs_rarely`), departures are few, and what each decision waits for
//! is most of the time of the search. So there a limit does not rise where the times that requests took speak for half as many
//! workers (`crowded_starts.rs`): half of it is tried instead. Nor does it rise before what was counted at it has been judged.
//! Once throughput has levelled off, the limit goes from the likeliest number to half of it or to the middle between it and
//! the largest that the evidence allows, in turn, and back, until half does less and the largest is close to the likeliest. If
//! half of a limit does less work, fifty departures show it; at three quarters it takes three hundred.
//!
//! Whenever the load is held back, by waiting, by lighter levels or by rejections, a higher limit is tried from time to time.
//! A number that is too low shows in nothing else: what it turns away is not there to be counted. A trial goes on while it
//! speaks for more workers, and one that does not is repeated after a longer pause.
//!
//! If the server reports its number of workers, the limit is that number and nothing is fitted.
//!
//! A gradient limiter would use the ratio of a response time to the least one seen instead; but the least drifts, and the
//! limit with it.

use super::evidence::{Counted, Evidence, Fit, STRETCH};
use crate::promises::WorkerBounds;
use alloc::vec::Vec;
use libm::sqrt;

/// Departures at a limit before it moves up (`SETTLED`), and before it moves down or back from a trial (`SETTLED_LONG`; more,
/// since a limit that is too low leaves workers idle).
const SETTLED: f64 = 40.0;
const SETTLED_LONG: f64 = 120.0;
/// Departures before a higher limit is tried: at first, and at most.
const FIRST_PAUSE: f64 = 1000.0;
const LONGEST_PAUSE: f64 = 2000.0;
/// What must speak against more workers for the limit not to rise further at once.
const DOUBT: f64 = 1.5;
/// What a trial must say for more workers to go on.
const SPEAKS: f64 = 1.0;
const UP: f64 = 1.25;
const DOWN: f64 = 0.75;
/// The larger step up until throughput was seen to level off, so that a difference shows sooner.
const FIRST_UP: f64 = 2.0;

/// The largest number that the evidence allows is close to the likeliest if it is less than so many times as large.
const WIDE: f64 = 1.5;

/// What was found of a plant's workers, to be kept.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownWorkers {
    /// How many there are.
    pub workers: u32,
    /// The most requests in service at once.
    pub limit: u32,
    /// The largest number that the evidence allows.
    pub possible: u32,
    /// Whether throughput was seen to level off.
    pub found: bool,
    /// The highest number in service that was seen.
    pub highest: u32,
    /// What speaks for each number in service against the one below it.
    pub evidence: Vec<f64>,
    /// The share of the plant that was there when the number was found, in (0, 1].
    #[cfg_attr(feature = "serde", serde(default = "whole"))]
    pub found_with: f64,
}

/// The share in states that do not say.
#[cfg(feature = "serde")]
fn whole() -> f64 {
    1.0
}

/// The law of one plant.
pub(crate) struct WorkersLaw {
    bounds: WorkerBounds,
    /// Beyond how many the server refuses, where it does, and whether the limit would be higher without that.
    ceiling: Option<u32>,
    is_lowered: bool,
    evidence: Evidence,
    limit: u32,
    workers: u32,
    /// The largest number of workers that the evidence allows; their number, until throughput was seen to level off.
    possible: u32,
    found: bool,
    /// Whether the server reports its number of workers.
    reported: bool,
    /// Departures at this limit, and departures since a higher limit was tried.
    settled: f64,
    untried: f64,
    /// Departures at this limit as they are, and the seconds that they took.
    served: (f64, f64),
    /// Departures until a higher limit is tried, and what speaks against more workers while one is.
    pause: f64,
    trial: Option<f64>,
    /// Whether the last trial was one of a higher limit.
    is_above: bool,
}

impl WorkersLaw {
    pub(crate) fn new(bounds: WorkerBounds, start: u32) -> Self {
        let start = start.clamp(bounds.least, bounds.most);
        WorkersLaw {
            bounds,
            ceiling: None,
            is_lowered: false,
            evidence: Evidence::new(),
            limit: start,
            workers: start,
            possible: start,
            found: false,
            reported: false,
            settled: 0.0,
            untried: 0.0,
            served: (0.0, 0.0),
            pause: FIRST_PAUSE,
            trial: None,
            is_above: false,
        }
    }

    pub(crate) fn known(&self) -> KnownWorkers {
        let WorkersLaw { workers, limit, possible, found, .. } = *self;
        let (highest, evidence) = (self.evidence.highest, self.evidence.gains());
        KnownWorkers { workers, limit, possible, found, highest, evidence, found_with: 1.0 }
    }

    pub(crate) fn restore(&mut self, known: &KnownWorkers) -> bool {
        let bounds = self.bounds.least..=self.bounds.most;
        let within =
            [known.workers, known.limit, known.possible].iter().all(|number| bounds.contains(number));
        if !within || !self.evidence.restore(&known.evidence, known.highest) {
            return false;
        }
        (self.workers, self.limit, self.possible) = (known.workers, known.limit, known.possible);
        self.found = known.found;
        true
    }

    pub(crate) fn bounds(&self) -> WorkerBounds {
        self.bounds
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers
    }

    pub(crate) fn possible(&self) -> u32 {
        self.possible
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether throughput was seen to level off.
    pub(crate) fn found(&self) -> bool {
        self.found
    }

    /// Whether the limit would be higher if the server did not refuse.
    pub(crate) fn is_lowered(&self) -> bool {
        self.is_lowered
    }

    /// Takes the number beyond which the server refuses.
    pub(crate) fn set_ceiling(&mut self, ceiling: Option<u32>) {
        self.ceiling = ceiling;
    }

    /// Takes the number of workers that the server reports.
    pub(crate) fn report(&mut self, workers: u32) {
        self.workers = workers.clamp(self.bounds.least, self.bounds.most);
        (self.limit, self.possible) = (self.workers, self.workers);
        (self.found, self.reported) = (true, true);
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.reported
    }

    /// Goes on with the search from the reported number, which may not hold any more.
    pub(crate) fn resume_search(&mut self) {
        self.reported = false;
    }

    pub(crate) fn observe(&mut self, counted: &Counted) {
        if self.reported {
            return;
        }
        self.evidence.observe(counted);
        // What is refused because service takes too long waits for no place: a limit that is not reached is bound then too.
        let bound = counted.waits && (counted.is_at(self.limit) || counted.slack < 0.0);
        let ended = counted.pace();
        if bound {
            self.settled += ended;
            self.served.0 += counted.departures();
            self.served.1 += counted.seconds.iter().sum::<f64>();
        }
        self.untried += ended;
        if self.evidence.highest == 0 {
            return;
        }
        let fit = self.evidence.fit(self.limit);
        self.found = fit.flat;
        // Costs depend on this number, so it is the middle between the likeliest and the largest that the evidence allows.
        // Where the limit was lowered because departures are rare, a larger one was not judged, and says nothing.
        let seen = if counted.departs_rarely() { self.workers.min(self.limit) } else { self.workers };
        self.workers = if fit.flat { (fit.best + fit.upper) / 2 } else { seen.max(self.evidence.highest) };
        self.possible = if fit.flat { fit.upper } else { self.workers };
        self.move_limit(&fit, bound, counted);
    }

    fn move_limit(&mut self, fit: &Fit, bound: bool, counted: &Counted) {
        let mut next = if fit.flat {
            self.next_of_flat(fit, bound, counted)
        } else {
            (self.pause, self.trial) = (FIRST_PAUSE, None);
            if bound { self.next_of_rising(fit, counted) } else { self.limit }
        };
        // A search that fell because it may not rise is lowered until throughput determines the number.
        let is_cut = next > self.most() || (!fit.flat && self.limit.max(next) >= self.most());
        self.is_lowered = self.ceiling.is_some() && (is_cut || (self.is_lowered && !fit.flat));
        next = next.clamp(self.bounds.least, self.most());
        if next != self.limit {
            self.evidence.end_stretch();
            (self.limit, self.settled, self.served) = (next, 0.0, (0.0, 0.0));
        }
    }

    /// The next limit where throughput has levelled off.
    fn next_of_flat(&mut self, fit: &Fit, bound: bool, counted: &Counted) -> u32 {
        if counted.departs_rarely()
            && bound
            && let Some(narrowed) = self.narrow(fit)
        {
            self.trial = None;
            return narrowed;
        }
        // Below the least limit there is nothing to be seen.
        if fit.lower_seen || self.limit == self.bounds.least {
            // What is let in beyond the workers waits in the server, before promised requests too.
            let upper = if counted.slack < 0.0 { self.workers } else { fit.upper };
            let fit = Fit { upper, ..*fit };
            return self.search_above(&fit, bound, counted.held_back && counted.slack >= 0.0);
        }
        if bound && fit.upper < self.limit {
            fit.upper
        } else if bound && fit.best > self.limit && fit.against_limit >= DOUBT {
            // The rate has fallen with the limit: going back gives more evidence.
            fit.best
        } else if bound && self.settled >= SETTLED_LONG {
            down(self.limit)
        } else {
            self.limit
        }
    }

    /// The next limit where throughput may still rise with it, while the limit is bound.
    fn next_of_rising(&self, fit: &Fit, counted: &Counted) -> u32 {
        let slack = self.slack(counted);
        let (is_rare, healthy) = (counted.departs_rarely(), self.healthy(slack));
        let (is_slow, exceeds) = (slack < 0.0, fit.best > self.limit && fit.against_limit >= DOUBT);
        let (next, settled) = if fit.against_more >= DOUBT && fit.best < self.limit {
            // What few departures say may be chance; half as many in service show more of it.
            (if is_rare { fit.best.max(self.limit / 2) } else { fit.best }, SETTLED_LONG)
        } else if (is_rare || healthy < up(self.limit, FIRST_UP)) && self.tries_half() {
            (self.limit / 2, SETTLED)
        } else if is_slow && exceeds {
            // Throughput has fallen with the limit, so service takes long for another reason than too many in it.
            let highest = self.evidence.highest;
            let goes_beyond = fit.best >= highest && !self.has_far_too_many(slack);
            (
                if goes_beyond { up(highest, UP) } else { fit.best.min(highest) },
                if is_rare { SETTLED } else { 0.0 },
            )
        } else if is_slow || self.ceiling.is_some_and(|ceiling| self.limit >= ceiling) {
            // It may not rise, and a limit that stays gives no evidence.
            (down(self.limit), SETTLED_LONG)
        } else {
            (up(self.limit, FIRST_UP).min(healthy), if is_rare { STRETCH } else { SETTLED })
        };
        if self.settled >= settled { next } else { self.limit }
    }

    /// By how much service may take longer (s). If requests take as long behind few others as behind many, a promised class is
    /// slow for another reason than the number in service, for instance because its promise leaves its service no room. A lower
    /// limit would make no request faster then, and there is room for a step up.
    fn slack(&self, counted: &Counted) -> f64 {
        if self.evidence.starts_speak_for_half(self.limit) > -DOUBT {
            return counted.slack;
        }
        let step = (UP - 1.0) * f64::from(self.limit) / counted.rate.max(1e-9);
        counted.slack.max(step).min(counted.slack_of_plant)
    }

    /// Whether half of the limit is tried before a higher one: the times that requests took speak for no more workers, and
    /// throughput does not speak for more than half of the limit.
    fn tries_half(&self) -> bool {
        self.limit > self.bounds.least
            && self.evidence.against_half_of(self.limit) < DOUBT
            && self.evidence.starts_speak_for_half(self.limit) >= DOUBT
    }

    /// The limit while throughput has levelled off and leaves a wide range of numbers; nothing if it leaves a narrow one. The
    /// likeliest number takes turns with half of it and with one in the middle of the range.
    fn narrow(&mut self, fit: &Fit) -> Option<u32> {
        let is_wide = f64::from(fit.upper) >= WIDE * f64::from(fit.best);
        let half_may_do = fit.best > self.bounds.least && self.evidence.against_half_of(fit.best) < DOUBT;
        if !is_wide && !half_may_do {
            return None;
        }
        let falls = fit.best > self.limit && fit.against_limit >= DOUBT;
        if self.limit != fit.best && (falls || self.settled >= SETTLED) {
            return Some(fit.best);
        }
        if self.settled < SETTLED {
            return Some(self.limit);
        }
        self.is_above = is_wide && !(self.is_above && half_may_do);
        let middle = sqrt(f64::from(fit.best) * f64::from(fit.upper)) + 0.5;
        Some(if self.is_above { (middle as u32).max(fit.best + 1) } else { fit.best / 2 })
    }

    /// How high a limit leaves service within the guard if throughput does not rise with it: what is let in beyond this one
    /// then waits in the server for as long as throughput takes for it.
    fn healthy(&self, slack: f64) -> u32 {
        let (departures, seconds) = self.served;
        let room = slack * departures / seconds.max(1e-9);
        if self.settled < SETTLED { u32::MAX } else { self.limit.saturating_add((room as u32).max(1)) }
    }

    /// Whether service exceeds the guard by more than a step down would mend if too many in service were the reason.
    fn has_far_too_many(&self, slack: f64) -> bool {
        let (departures, seconds) = self.served;
        -slack * departures > (1.0 - DOWN) * f64::from(self.limit) * seconds
    }

    /// The most that the limit may be.
    fn most(&self) -> u32 {
        self.ceiling.map_or(self.bounds.most, |ceiling| ceiling.clamp(self.bounds.least, self.bounds.most))
    }

    /// The limit where the evidence allows no more than `fit.upper`: that, or another one while it is tried. Trials of a
    /// higher limit take turns with those of the likeliest number, for at the limit itself throughput is no evidence.
    fn search_above(&mut self, fit: &Fit, bound: bool, tries: bool) -> u32 {
        match self.trial {
            Some(_) if self.untried < SETTLED_LONG => self.limit,
            Some(before) if self.limit > fit.upper && fit.against_more < before - SPEAKS => {
                (self.trial, self.untried) = (Some(fit.against_more), 0.0);
                self.limit
            }
            Some(_) => {
                let longer = if self.is_above { 2.0 } else { 1.0 };
                (self.trial, self.pause) = (None, (longer * self.pause).min(LONGEST_PAUSE));
                fit.upper
            }
            None if tries && self.untried >= self.pause => {
                (self.trial, self.untried) = (Some(fit.against_more), 0.0);
                self.is_above = !self.is_above || !bound || fit.best == fit.upper;
                if self.is_above { up(fit.upper, UP) } else { fit.best }
            }
            None => fit.upper,
        }
    }
}

fn down(limit: u32) -> u32 {
    ((f64::from(limit) * DOWN) as u32).min(limit - 1)
}

fn up(limit: u32, factor: f64) -> u32 {
    ((f64::from(limit) * factor) as u32).max(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::telemetry::counters::{LOADS, load_bin};

    const BOUNDS: WorkerBounds = WorkerBounds { least: 1, most: 1024 };

    /// A quarter of a second of a plant of `workers` with `speed` departures a second each: about `in_service` at once, and
    /// never more than the limit.
    fn quarter(law: &mut WorkersLaw, plant: (f64, f64), in_service: f64, random: &mut Random) {
        slow_quarter(law, plant, in_service, random, false);
    }

    /// The same, and whether its service takes longer than the guard.
    fn slow_quarter(
        law: &mut WorkersLaw,
        plant: (f64, f64),
        in_service: f64,
        random: &mut Random,
        slow: bool,
    ) {
        let wanted = |random: &mut Random| in_service * (0.5 + random.uniform());
        let mut counted = counted(law.limit(), plant, wanted, random);
        counted.slack = if slow { -0.1 } else { f64::INFINITY };
        law.observe(&counted);
    }

    /// What is counted in a quarter of a second.
    fn counted(
        limit: u32,
        plant: (f64, f64),
        wanted: impl Fn(&mut Random) -> f64,
        random: &mut Random,
    ) -> Counted {
        let (seconds, work) = ([0.0; LOADS], [0.0; LOADS]);
        let mut counted = Counted {
            seconds,
            work,
            service: [0.0; LOADS],
            work_started: [0.0; LOADS],
            squares: 0.0,
            waits: false,
            held_back: false,
            slack: f64::INFINITY,
            slack_of_plant: f64::INFINITY,
            rate: 0.0,
        };
        for _ in 0..250 {
            let wanted = wanted(random);
            counted.waits |= wanted > f64::from(limit);
            let n = wanted.min(f64::from(limit)).max(1.0) as u32;
            counted.seconds[load_bin(n)] += 0.001;
            let mean = 0.001 * f64::from(n).min(plant.0) * plant.1;
            let departed = f64::from(u8::from(random.uniform() < mean));
            counted.work[load_bin(n)] += departed;
            counted.squares += departed;
        }
        counted.held_back = counted.waits;
        counted.rate = 4.0 * counted.departures();
        counted
    }

    fn after(seconds: usize, workers: f64, in_service: f64) -> WorkersLaw {
        let mut law = WorkersLaw::new(BOUNDS, 16);
        let mut random = Random::new(7);
        (0..4 * seconds).for_each(|_| quarter(&mut law, (workers, 10.0), in_service, &mut random));
        law
    }

    #[test]
    fn the_knee_is_found_from_traffic_below_and_above_it() {
        for workers in [4.0, 8.0, 12.0] {
            let law = after(60, workers, workers * 1.2);
            assert!(law.found());
            let found = f64::from(law.workers());
            assert!((found - workers).abs() <= 0.25 * workers, "{found} instead of {workers}");
            assert!(law.limit() >= law.workers());
        }
    }

    #[test]
    fn an_overload_from_the_first_moment_moves_the_limit_to_the_knee() {
        for workers in [6.0, 40.0] {
            let law = after(90, workers, 500.0);
            let limit = f64::from(law.limit());
            assert!(law.found() && (0.85 * workers..=1.7 * workers).contains(&limit), "{limit}");
        }
    }

    #[test]
    fn the_limit_is_not_raised_while_service_takes_longer_than_the_guard() {
        for slow in [false, true] {
            let (mut law, mut random) = (WorkersLaw::new(BOUNDS, 16), Random::new(7));
            let mut most = 0;
            for _ in 0..4 * 90 {
                slow_quarter(&mut law, (40.0, 10.0), 500.0, &mut random, slow);
                most = most.max(law.limit());
            }
            assert_eq!(most > 16, !slow, "{most}, slow: {slow}");
        }
    }

    /// Requests of 80 ms, whose workers are more than ever are in service: forty milliseconds are room for half as many again.
    #[test]
    fn the_limit_rises_a_place_at_a_time_beyond_what_leaves_service_within_the_guard() {
        for (slack, highest) in [(0.0, 17..=24), (0.04, 60..=130), (f64::INFINITY, 131..=1024)] {
            let (mut law, mut random) = (WorkersLaw::new(BOUNDS, 16), Random::new(7));
            let mut most = 0;
            for _ in 0..4 * 2 {
                let mut counted = counted(law.limit(), (1000.0, 12.5), |_| 2000.0, &mut random);
                counted.slack = slack;
                law.observe(&counted);
                most = most.max(law.limit());
            }
            assert!(highest.contains(&most), "slack {slack}: {most}");
        }
    }

    /// Below what the server takes throughput says nothing, so the limit goes to and fro there: for the refusals, not because
    /// there are so few workers. Where there are, they are the reason.
    #[test]
    fn a_limit_below_what_the_server_takes_is_lowered_until_throughput_determines_the_workers() {
        for (workers, lowered) in [(40.0, true), (5.0, false)] {
            let (mut law, mut random, mut limits) = (WorkersLaw::new(BOUNDS, 16), Random::new(7), Vec::new());
            law.set_ceiling(Some(12));
            for _ in 0..4 * 60 {
                quarter(&mut law, (workers, 10.0), 500.0, &mut random);
                limits.push((law.limit(), law.is_lowered(), law.found()));
            }
            let settled = &limits[4 * 30..];
            assert!(
                settled.iter().all(|(limit, own, found)| *limit <= 12 && !(*own && *found)),
                "{settled:?}"
            );
            if lowered {
                assert!(settled.iter().any(|(limit, own, _)| *limit < 12 && *own), "{settled:?}");
            } else {
                assert!(settled[4 * 15..].iter().all(|(_, own, found)| !own && *found), "{settled:?}");
            }
            law.set_ceiling(None);
            quarter(&mut law, (workers, 10.0), 500.0, &mut random);
            assert!(!law.is_lowered());
        }
    }

    #[test]
    fn a_calm_plant_is_not_said_to_be_known() {
        assert!(!after(60, 64.0, 4.0).found());
    }

    #[test]
    fn a_calm_plant_is_not_taken_for_a_smaller_one() {
        for seed in 1..=40 {
            let (mut law, mut random) = (WorkersLaw::new(BOUNDS, 16), Random::new(seed));
            for _ in 0..4 * 120 {
                quarter(&mut law, (8.0, 25.0), 2.4, &mut random);
                assert!(law.limit() >= 7, "{} with seed {seed}", law.limit());
            }
        }
    }

    #[test]
    fn the_reported_number_is_used_within_the_bounds() {
        let bounds = WorkerBounds { least: 2, most: 20 };
        let mut law = WorkersLaw::new(bounds, 16);
        let mut random = Random::new(9);
        for (reported, expected) in [(5, 5), (1, 2), (64, 20), (8, 8)] {
            law.report(reported);
            // However the throughput looks.
            (0..4 * 60).for_each(|_| quarter(&mut law, (3.0, 10.0), 30.0, &mut random));
            assert_eq!((law.workers(), law.limit(), law.found()), (expected, expected, true));
        }
        law.resume_search();
        (0..4 * 60).for_each(|_| quarter(&mut law, (3.0, 10.0), 30.0, &mut random));
        assert!((3..=5).contains(&law.limit()), "{}", law.limit());
    }

    /// Nobody waits: the load that so few workers could not carry is turned away, or served light. So nothing that is counted
    /// is evidence of the other workers, and only a trial is.
    #[test]
    fn a_number_that_holds_the_load_back_is_tried_upward() {
        for seed in 1..=20 {
            let (mut law, mut random) = (WorkersLaw::new(BOUNDS, 16), Random::new(seed));
            let mut held_back = |law: &mut WorkersLaw, plant: (f64, f64), held_back: bool| {
                // Nothing is held back while the number is not known.
                let load = if law.found() { 0.85 * f64::from(law.workers()) } else { 20.0 };
                // As many as are there of a Poisson stream.
                let there = |random: &mut Random| {
                    let (mut n, mut sum) = (0.0, random.exponential(1.0));
                    while sum < load {
                        (n, sum) = (n + 1.0, sum + random.exponential(1.0));
                    }
                    n
                };
                let mut counted = counted(law.limit(), plant, there, &mut random);
                counted.held_back = held_back;
                law.observe(&counted);
            };
            (0..4 * 120).for_each(|_| held_back(&mut law, (2.0, 25.0), true));
            assert!(law.workers() <= 3, "{} with seed {seed}", law.workers());
            // The server has eight from now on, which nothing shows where no load is held back.
            (0..4 * 120).for_each(|_| held_back(&mut law, (8.0, 25.0), false));
            assert!(law.workers() <= 3, "{} with seed {seed}", law.workers());
            let risen = (0..4 * 120).position(|_| {
                held_back(&mut law, (8.0, 25.0), true);
                law.workers() >= 7
            });
            assert!(risen.is_some(), "{} with seed {seed}", law.workers());
            (0..4 * 60).for_each(|_| held_back(&mut law, (8.0, 25.0), true));
            assert!((7..=12).contains(&law.limit()), "{} with seed {seed}", law.limit());
        }
    }

    #[test]
    fn a_slower_server_has_as_many_workers() {
        let mut law = after(60, 8.0, 10.0);
        let mut random = Random::new(8);
        for _ in 0..4 * 60 {
            quarter(&mut law, (8.0, 5.0), 30.0, &mut random);
            assert!((6..=14).contains(&law.limit()), "{}", law.limit());
        }
    }
}
