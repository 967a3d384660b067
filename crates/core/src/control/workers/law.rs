//! The law of the search: throughput rises with the number in service until all workers are busy.
//!
//! While n requests are in service the plant completes them at a rate `mu(n) = mu min(n, s)`: each worker adds one share
//! until all are busy. Time and departures are counted by n, and s is fitted to them by the likelihood of Poisson counts,
//! `L(s) = sum D_n ln min(n, s) - D ln sum T_n min(n, s)`. So s is found from the traffic itself; no request is rejected for
//! an experiment. The limit is the largest s that the evidence allows: a request started too soon waits a little in the
//! server instead of here, but a limit that is one too low leaves a worker idle.
//!
//! Only the differences between the rates at different n are evidence of s. When all rates change together the server became
//! slower or faster, and the table is scaled to the present speed: so a long incident neither looks like fewer workers nor
//! becomes the healthy state. A server that is many times faster or slower counts as another server, and the table is
//! forgotten, because an error of the scale would stay in bins without departures: a bin is renewed by its own departures
//! alone. For the same reason a scale must not mix the old speed with the new one, so the table, the recent block, and the
//! block between them are kept apart.
//!
//! Where the traffic itself does not vary n, the limit does. It rises while throughput rises with it and requests wait. It
//! falls, to what the evidence allows or by a quarter, while throughput does not fall. It does not rise while service takes
//! longer than the guard. The tests are repeated several times a second for as long as the process runs, so they require more
//! than three deviations: with two, one in twenty servers of eight workers was taken for one of five within a minute.
//! If the server reports its number of workers, the limit is that number and nothing is fitted.
//!
//! A gradient limiter would use the ratio of a response time to the least one seen instead; but the least drifts, and the limit
//! with it.

use crate::promises::WorkerBounds;
use crate::telemetry::counters::{LOADS, bin_loads, load_bin};
use alloc::vec::Vec;
use libm::{fabs, log, sqrt};

/// Departures that a bin remembers.
const MEMORY: f64 = 400.0;
/// The fewest departures for a fit.
const KNOWN: f64 = 20.0;
/// The fewest departures from which the speed of a bin is known.
const FIRM: f64 = 100.0;
/// The fewest departures to compare the speed, those of a block, and the deviations by which the speed must differ.
const COMPARED: f64 = 40.0;
const BLOCK: f64 = 200.0;
const DIFFERENT: f64 = 4.5;
/// A server this many times faster or slower is another server.
const OTHER: f64 = 6.0;
/// A smaller difference in L is chance: half the square of three and a half deviations.
const EVIDENCE: f64 = 6.0;
/// Departures at a limit before it moves up (`SETTLED`), before it moves down or back from a trial (`SETTLED_LONG`; more, since
/// a limit that is too low leaves workers idle), and before a higher limit is tried again (`TRIED`).
const SETTLED: f64 = 40.0;
const SETTLED_LONG: f64 = 120.0;
const TRIED: f64 = 2000.0;
const UP: f64 = 1.25;
const DOWN: f64 = 0.75;
/// The larger step up until throughput was seen to level off, so that a difference shows sooner.
const FIRST_UP: f64 = 2.0;

/// The counts since the last step.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Seconds by bin of the number in service.
    pub(crate) seconds: [f64; LOADS],
    pub(crate) departures: [f64; LOADS],
    /// Whether requests wait.
    pub(crate) waits: bool,
    /// Whether service takes longer than the guard.
    pub(crate) slow: bool,
}

/// The law of one plant.
pub(crate) struct WorkersLaw {
    bounds: WorkerBounds,
    /// Departures and seconds, by how many were in service.
    bins: Vec<(f64, f64)>,
    /// The same for the present block and the block before it, which are not in `bins` yet.
    recent: Vec<(f64, f64)>,
    before: Vec<(f64, f64)>,
    /// Whether the speed has changed and the new speed is not known yet.
    changed: bool,
    limit: u32,
    workers: u32,
    found: bool,
    /// Whether the server reports its number of workers.
    reported: bool,
    /// Departures at this limit, and departures since a higher limit was tried.
    settled: f64,
    untried: f64,
}

/// The fit: the likeliest s and the largest that the evidence allows.
struct Fit {
    best: u32,
    upper: u32,
    /// Whether throughput was seen to rise, and to level off.
    lower_seen: bool,
    flat: bool,
}

impl WorkersLaw {
    pub(crate) fn new(bounds: WorkerBounds, start: u32) -> Self {
        let start = start.clamp(bounds.least, bounds.most);
        WorkersLaw {
            bounds,
            bins: alloc::vec![(0.0, 0.0); LOADS],
            recent: alloc::vec![(0.0, 0.0); LOADS],
            before: alloc::vec![(0.0, 0.0); LOADS],
            changed: false,
            limit: start,
            workers: start,
            found: false,
            reported: false,
            settled: 0.0,
            untried: 0.0,
        }
    }

    pub(crate) fn bounds(&self) -> WorkerBounds {
        self.bounds
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether throughput was seen to level off.
    pub(crate) fn found(&self) -> bool {
        self.found
    }

    /// Takes the number of workers that the server reports.
    pub(crate) fn report(&mut self, workers: u32) {
        self.workers = workers.clamp(self.bounds.least, self.bounds.most);
        (self.limit, self.found, self.reported) = (self.workers, true, true);
    }

    /// Goes on with the search from the reported number, which may not hold any more.
    pub(crate) fn doubt(&mut self) {
        self.reported = false;
    }

    pub(crate) fn observe(&mut self, counted: &Counted) {
        if self.reported {
            return;
        }
        for (bin, (d, t)) in self.recent.iter_mut().zip(counted.departures.iter().zip(&counted.seconds)) {
            *bin = (bin.0 + d, bin.1 + t);
        }
        let stands = !self.is_other() && self.compare();
        let total: f64 = counted.seconds.iter().sum();
        let at_limit = load_bin(self.limit);
        let there: f64 = counted.seconds[at_limit..].iter().sum();
        let bound = counted.waits && there > 0.5 * total;
        let ended: f64 = counted.departures.iter().sum();
        if bound {
            self.settled += ended;
        }
        self.untried += ended;
        let Some(fit) = self.fit().filter(|_| stands) else { return };
        self.found = fit.flat;
        // Costs depend on this number, so it is the middle between the likeliest and the largest that the evidence allows.
        self.workers = if fit.flat { (fit.best + fit.upper) / 2 } else { self.workers.max(fit.upper) };
        self.move_limit(&fit, bound, counted.slow);
    }

    fn move_limit(&mut self, fit: &Fit, bound: bool, slow: bool) {
        let settled = self.settled >= SETTLED;
        let mut next = self.limit;
        if fit.flat && fit.lower_seen {
            next = fit.upper.min(self.limit.max(fit.upper));
            let tries = bound && self.untried >= TRIED && !slow;
            if tries {
                next = up(fit.upper, UP);
                self.untried = 0.0;
            } else if self.limit > next && self.settled < SETTLED_LONG && self.untried < SETTLED_LONG {
                // A higher limit is being tried.
                next = self.limit;
            }
        } else if bound && fit.flat {
            if fit.upper < self.limit {
                next = fit.upper;
            } else if self.settled >= SETTLED_LONG {
                next = ((f64::from(self.limit) * DOWN) as u32).min(self.limit - 1);
            }
        } else if bound && settled && !slow {
            next = up(self.limit, FIRST_UP);
        }
        next = next.clamp(self.bounds.least, self.bounds.most);
        if next != self.limit {
            (self.limit, self.settled) = (next, 0.0);
        }
    }

    /// Whether the recent counts come from a server many times faster than the table's, at numbers in service for which the
    /// table has no counts. Then the table is forgotten. This happens after an incident in which each request took long:
    /// fewer requests are in service than at any time of the incident, so no bin can be compared, and rates that fall with the
    /// number in service would look like one worker.
    fn is_other(&mut self) -> bool {
        let s = f64::from(self.workers);
        let (mut work, mut done, mut expected, mut counted) = (0.0, 0.0, 0.0, 0.0);
        for (bin, ((departures, seconds), (d, t))) in self.bins.iter().zip(&self.recent).enumerate() {
            let busy = middle(bin).min(s);
            if *departures >= FIRM {
                (done, work) = (done + departures, work + seconds * busy);
            } else {
                (counted, expected) = (counted + d, expected + t * busy);
            }
        }
        let other = work > 0.0 && counted >= COMPARED && counted > OTHER * expected * done / work;
        if other {
            for table in [&mut self.bins, &mut self.before, &mut self.recent] {
                table.fill((0.0, 0.0));
            }
            self.changed = false;
        }
        other
    }

    /// Scales the table if all rates moved together, since the server is then slower or faster. Returns whether the table
    /// holds.
    ///
    /// The recent block is compared with the table, which excludes the block before, so a change in the middle of a block mixes
    /// two speeds on neither side. When a change shows, both blocks are dropped, and the next whole block gives the new speed.
    fn compare(&mut self) -> bool {
        let (mut predicted, mut counted, mut known, mut all) = (0.0, 0.0, 0.0, 0.0);
        for ((departures, seconds), (d, t)) in self.bins.iter().zip(&self.recent) {
            all += d;
            if *departures >= FIRM {
                let here = t * departures / seconds;
                predicted += here;
                counted += d;
                known += here * departures;
            }
        }
        let most: f64 = predicted.max(counted);
        let ended = all.max(most) >= BLOCK;
        let ratio = counted.max(1.0) / predicted.max(1.0);
        let variance = 1.0 / counted.max(1.0) + predicted / known.max(1.0);
        if !self.changed && most >= COMPARED && fabs(log(ratio)) > DIFFERENT * sqrt(variance) {
            self.changed = true;
            self.recent.fill((0.0, 0.0));
            self.before.fill((0.0, 0.0));
        } else if ended {
            if self.changed && most >= COMPARED {
                self.rescale(ratio);
            }
            self.changed = false;
            self.end_block();
        }
        !self.changed
    }

    /// Scales the table to another speed, or clears it if the ratio is beyond [`OTHER`].
    fn rescale(&mut self, ratio: f64) {
        if (1.0 / OTHER..=OTHER).contains(&ratio) {
            self.bins.iter_mut().for_each(|(departures, _)| *departures *= ratio);
        } else {
            self.bins.fill((0.0, 0.0));
        }
    }

    /// Moves the block before into the table and the recent block into its place.
    fn end_block(&mut self) {
        for (bin, before) in self.bins.iter_mut().zip(&self.before) {
            let (departures, seconds) = (bin.0 + before.0, bin.1 + before.1);
            let kept = (MEMORY / departures.max(1e-9)).min(1.0);
            *bin = (departures * kept, seconds * kept);
        }
        core::mem::swap(&mut self.before, &mut self.recent);
        self.recent.fill((0.0, 0.0));
    }

    fn fit(&self) -> Option<Fit> {
        let parts = self.bins.iter().zip(self.before.iter().zip(&self.recent));
        let sums = parts.map(|(a, (b, c))| (a.0 + b.0 + c.0, a.1 + b.1 + c.1));
        let seen = sums.enumerate().filter(|(_, bin)| bin.0 > 0.0 || bin.1 > 0.0);
        let seen: Vec<(f64, f64, f64)> = seen.map(|(bin, (d, t))| (middle(bin), d, t)).collect();
        let all: f64 = seen.iter().map(|(_, d, _)| d).sum();
        if all < KNOWN {
            return None;
        }
        let enough = |(_, d, _): &&(f64, f64, f64)| *d >= 0.25 * KNOWN;
        let lowest = seen.iter().find(enough)?.0;
        let highest = seen.iter().rev().find(enough)?.0;
        let likelihood = |s: f64| {
            let (mut sum, mut work) = (0.0, 0.0);
            for (n, d, t) in &seen {
                let busy = n.min(s);
                sum += d * log(busy);
                work += t * busy;
            }
            sum - all * log(work.max(1e-12))
        };
        let candidates = (0..LOADS).map(middle).filter(|s| *s >= lowest && *s <= highest);
        let likelihoods: Vec<(f64, f64)> = candidates.map(|s| (s, likelihood(s))).collect();
        let best = likelihoods.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let allowed = likelihoods.iter().rev().find(|(_, l)| best.1 - l <= EVIDENCE)?;
        // Unless the evidence rejects the highest number tried, throughput may still rise.
        let flat = best.1 - likelihoods.last()?.1 > EVIDENCE;
        let lower_seen = best.1 - likelihoods.first()?.1 > EVIDENCE;
        Some(Fit { best: best.0 as u32, upper: allowed.0 as u32, lower_seen, flat })
    }
}

fn up(limit: u32, factor: f64) -> u32 {
    ((f64::from(limit) * factor) as u32).max(limit + 1)
}

/// The middle of a bin.
fn middle(bin: usize) -> f64 {
    let (least, most) = bin_loads(bin);
    f64::from(least + most) * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

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
        let mut counted = Counted { seconds: [0.0; LOADS], departures: [0.0; LOADS], waits: false, slow };
        let limit = f64::from(law.limit());
        for _ in 0..250 {
            let wanted = in_service * (0.5 + random.uniform());
            counted.waits |= wanted > limit;
            let n = wanted.min(limit).max(1.0) as u32;
            counted.seconds[load_bin(n)] += 0.001;
            let mean = 0.001 * f64::from(n).min(plant.0) * plant.1;
            counted.departures[load_bin(n)] += f64::from(u8::from(random.uniform() < mean));
        }
        law.observe(&counted);
    }

    fn after(seconds: usize, workers: f64, in_service: f64) -> WorkersLaw {
        let mut law = WorkersLaw::new(BOUNDS, 16);
        let mut random = Random::new(7);
        (0..4 * seconds).for_each(|_| quarter(&mut law, (workers, 10.0), in_service, &mut random));
        law
    }

    #[test]
    fn bins_cover_all_numbers_in_order() {
        assert_eq!((bin_loads(load_bin(1)), bin_loads(load_bin(16))), ((1, 1), (16, 16)));
        for n in 1..70_000 {
            let (least, most) = bin_loads(load_bin(n));
            assert!(n > 60_000 || (least..=most).contains(&n), "{n} in {least}..={most}");
        }
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
        law.doubt();
        (0..4 * 60).for_each(|_| quarter(&mut law, (3.0, 10.0), 30.0, &mut random));
        assert!((3..=5).contains(&law.limit()), "{}", law.limit());
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
