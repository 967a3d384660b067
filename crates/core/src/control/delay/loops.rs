//! The loops of promised delays: each class's law asks for workers, and a plant's workers go to its classes by rank.

use crate::control::response::{Now, Promise, Promised, UPDATE, WINDOW};
use crate::control::{DelayLaw, Feedback, Residual};
use crate::model::Traffic;
use crate::promises::{Delay, DelayParts};
use crate::telemetry::departure_window::{Seen, Window};
use crate::telemetry::status::ResponseStatus;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use libm::{log, sqrt};

/// The fewest departures whose mean or share is evidence of a miss.
const EVIDENCE: f64 = 100.0;
/// A promise counts as missed beyond this multiple of the promised mean, or of the share that may be late.
const MISSED_MEAN: f64 = 1.1;
const MISSED_SHARE: f64 = 1.3;
/// The least quota, in workers and as a multiple of the class's load: a class without traffic is served when it comes.
const LEAST: f64 = 0.05;
const LEAST_SPARE: f64 = 1.03;
/// The law aims at this part of the share that may be late, because a burst of late requests cannot be made up for when
/// all workers are used.
const AIM: f64 = 0.9;
/// The largest error: a response time that exceeds the promise by more is a transient.
const MOST_ERROR: f64 = 8.0;
/// g and r of the law, per window, where a share was promised. They are below the law's own, since lateness comes in bursts
/// and lent workers make the real slope smaller than the model's at D_ref.
const SHARE_GAIN: f64 = 2.0;
const SHARE_ZERO: f64 = 0.5;
/// The longest gap between arrivals, in mean gaps; a longer gap counts as this. The queue is empty long before such a gap
/// ends, so its square in c_a^2 stands for no wait. Poisson arrivals have no gap that long; in a Pareto process with a shape
/// below 2 such gaps make up the variance.
const MOST_GAP: f64 = 20.0;
/// A class below with less than this part of the class's rate has nothing to yield.
const SILENT: f64 = 0.01;
/// What an error of 1 adds to the set-point reduction over a window, or over the time in which the levels follow if that
/// is longer.
const PRESSED: f64 = 1.0;
const FOLLOWED_SECONDS: f64 = 5.0;
/// What the set-point reduction loses over that time while no other class is in the way. With a part `MUCH_IDLE` of the
/// workers left, it loses as much as it may gain.
const EASED: f64 = 0.02;
const MUCH_IDLE: f64 = 0.4;
/// A class without departures in the time of this many updates is gone.
const SILENT_UPDATES: f64 = 100.0;
/// The load line leaves room for this multiple of the work of the classes with a delay.
const OWN_SPARE: f64 = 1.05;

/// The loops of all plants, in the order of the classes' ranks.
#[derive(Default)]
pub(crate) struct Delays {
    loops: Vec<DelayLoop>,
}

struct DelayLoop {
    promised: Promised,
    delay: Delay,
    parts: DelayParts,
    /// The prediction and its gain when the first window was full, where feedback runs alone.
    offset: Option<(f64, f64)>,
    law: DelayLaw,
    window: Window,
    /// Workers that the law asks for, and the least it may ask for.
    wanted: f64,
    least: f64,
    /// Arrivals per second; the share of the workers that their work takes, and that share smoothed as slowly as the
    /// set-point reduction.
    rate: f64,
    load: f64,
    share: f64,
    /// Whether all workers could keep the promise; if it is missed then, other classes are in the way.
    possible: bool,
    /// The part by which the class lowers the load line.
    pressure: f64,
    /// The time of the last update.
    updated: Instant,
    /// Whether no class below could yield. Then the class's late requests are rejected instead of started.
    lowest: bool,
    status: ResponseStatus,
}

impl Delays {
    pub(crate) fn promise(&mut self, promised: Vec<Promised>, parts: DelayParts) {
        let mut before = core::mem::take(&mut self.loops);
        for one in promised {
            let Promise::Delay(delay) = one.promise else { continue };
            let same = |known: &DelayLoop| {
                (known.promised.class, known.delay, known.parts) == (one.class, delay, parts)
            };
            self.loops.push(match before.iter().position(same) {
                Some(place) => DelayLoop { promised: one, ..before.swap_remove(place) },
                None => DelayLoop::new(one, delay, parts),
            });
        }
        self.loops.sort_by_key(|one| (one.promised.plant, one.promised.rank, one.promised.class));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = usize> + '_ {
        self.loops.iter().map(|one| one.promised.class)
    }

    pub(crate) fn status(&self) -> impl Iterator<Item = (usize, ResponseStatus)> + '_ {
        self.loops.iter().map(|one| (one.promised.class, one.status))
    }

    pub(crate) fn pressure(&self, plant: usize) -> f64 {
        self.of(plant).map(|one| one.pressure).fold(0.0, f64::max)
    }

    pub(crate) fn sheds(&self, plant: usize) -> bool {
        self.of(plant).any(|one| one.lowest && one.delay.percentile.is_some())
    }

    fn of(&self, plant: usize) -> impl Iterator<Item = &DelayLoop> {
        self.loops.iter().filter(move |one| one.promised.plant == plant)
    }

    pub(crate) fn run(&mut self, now: &Now<'_>) {
        let mut left = Left::default();
        for one in &mut self.loops {
            let plant = one.promised.plant;
            let workers = f64::from((now.workers)(plant));
            if left.plant != Some(plant) {
                left = Left { plant: Some(plant), workers, share: 0.0 };
            }
            let updated = one.update(now, workers);
            let quota = one.wanted.min(left.workers.max(LEAST));
            left.workers -= quota;
            left.share += one.share;
            one.promised.quota.set_workers(quota);
            one.status.quota = Some(quota);
            one.status.at_limit = quota <= one.least || quota >= workers || quota < one.wanted;
            if let Some(seen) = updated {
                one.judge(&seen);
                let has_all = quota >= workers || quota < one.wanted;
                let idle = (!has_all).then_some(1.0 - one.wanted / workers);
                one.press(&seen, idle, 1.0 - OWN_SPARE * left.share / (now.line)(plant));
                one.updated = now.at;
            } else if now.at.since(one.updated).as_secs_f64() * one.rate > SILENT_UPDATES * UPDATE as f64 {
                one.pressure = 0.0;
            }
        }
    }
}

/// The workers of one plant that are left on the way down the ranks.
#[derive(Default)]
struct Left {
    plant: Option<usize>,
    /// Workers that no class above asks for.
    workers: f64,
    /// The share of all workers that the work of the classes above takes.
    share: f64,
}

impl DelayLoop {
    fn new(promised: Promised, delay: Delay, parts: DelayParts) -> Self {
        let window = Window::new(WINDOW, UPDATE);
        let feedback = match parts {
            DelayParts::Both | DelayParts::Feedback => Feedback::PI,
            DelayParts::PredictorP => Feedback::P,
            DelayParts::Predictor => Feedback::None,
        };
        let law = match delay.percentile {
            None => DelayLaw::new(feedback),
            Some(_) => DelayLaw::with_gains(feedback, SHARE_GAIN, SHARE_ZERO),
        };
        DelayLoop {
            promised,
            delay,
            parts,
            offset: None,
            law,
            window,
            wanted: f64::INFINITY,
            least: LEAST,
            rate: 0.0,
            load: 0.0,
            share: 0.0,
            possible: false,
            pressure: 0.0,
            updated: Instant::default(),
            lowest: false,
            status: ResponseStatus::default(),
        }
    }

    /// Asks for the workers that the promise takes, if an update is due; for all workers before anything is known.
    fn update(&mut self, now: &Now<'_>, workers: f64) -> Option<Seen> {
        let class = self.promised.class;
        let seen = self.window.observe(now.at, now.lanes, class)?;
        let rate = |class: usize| now.monitors.rate(class);
        self.lowest = self.promised.below.iter().all(|other| rate(*other) <= SILENT * rate(class));
        let traffic = Traffic {
            rate: rate(class).max(1e-9),
            service_seconds: seen.service.max(1e-9),
            arrival_variability: seen.arrival_variability,
            service_variability: seen.service_variability,
        };
        self.promised.quota.set_most_gap(Duration::from_secs_f64((MOST_GAP / traffic.rate).min(1e6)));
        (self.rate, self.load) = (traffic.rate, traffic.load() / workers);
        let target = self.delay.target.as_secs_f64();
        let (feed_forward, gain, error, recent_error) = match self.late() {
            None => {
                let servers = traffic.servers_for_mean(target, workers);
                (
                    servers,
                    gain(servers, |s| traffic.response_seconds(s) / target),
                    seen.response / target - 1.0,
                    seen.recent_response / target - 1.0,
                )
            }
            Some(late) => {
                let servers = traffic.servers_for_share(target, late, workers);
                let late = AIM * late;
                // The error is not logarithmic, because the mean share was promised and lateness comes in bursts.
                // The recent departures hold too few late requests to count.
                (
                    servers,
                    gain(servers, |s| traffic.late_share(s, target) / late),
                    seen.late / late - 1.0,
                    0.0,
                )
            }
        };
        let (feed_forward, gain) = self.around(&seen, (feed_forward, gain));
        self.possible = match self.late() {
            None => traffic.response_seconds(workers) <= target,
            Some(late) => traffic.late_share(workers, target) <= late,
        };
        self.least = (LEAST_SPARE * traffic.load()).clamp(LEAST, workers);
        self.wanted = self.law.next(&Residual {
            feed_forward,
            gain,
            wanted: 1.0,
            error: error.clamp(-1.0, MOST_ERROR),
            recent_error: recent_error.clamp(-1.0, MOST_ERROR),
            fresh: seen.fresh / WINDOW as f64,
            least: self.least,
            most: workers,
            // Idle workers are lent, so a quota that does not limit goes down to its least.
            binding: true,
        });
        self.bound_waits(&seen);
        Some(seen)
    }

    /// The prediction; where feedback runs alone, the one of the first full window.
    fn around(&mut self, seen: &Seen, predicted: (f64, f64)) -> (f64, f64) {
        if self.parts == DelayParts::Feedback && self.offset.is_none() && seen.departures >= WINDOW as f64 {
            self.offset = Some(predicted);
        }
        self.offset.unwrap_or(predicted)
    }

    /// Under a percentile target a request becomes urgent when its slack falls to the service-time allowance. In the lowest
    /// class a request that could be in time only by luck is rejected instead of started.
    fn bound_waits(&self, seen: &Seen) {
        let target = self.delay.target.as_secs_f64();
        let deviation = seen.service * sqrt(seen.service_variability);
        let left = |deviations: f64| {
            let wait = (target - seen.service - deviations * deviation).max(0.1 * target);
            self.delay.percentile.filter(|_| seen.service > 0.0).map(|_| Duration::from_secs_f64(wait))
        };
        // The rarer a request may be late, the sooner it becomes urgent: the service-time allowance is the mean at one in
        // twenty, and grows with the deviation from there.
        let within = self.late().map_or(0.0, |late| (1.5 * (log(1.0 / late) - 3.0)).max(0.0));
        self.promised.quota.set_urgent(left(within));
        self.promised.quota.set_bound(left(3.0).filter(|_| self.lowest));
    }

    /// The share that may be late.
    fn late(&self) -> Option<f64> {
        self.delay.percentile.map(|percentile| 1.0 - percentile / 100.0)
    }

    fn judge(&mut self, seen: &Seen) {
        let most = if self.delay.percentile.is_none() { MISSED_MEAN } else { MISSED_SHARE };
        self.status.missed = 1.0 + self.error(seen) > most && seen.departures >= EVIDENCE;
        (self.status.response, self.status.late) = (seen.response, seen.late);
    }

    /// The part of the promise by which it is missed.
    fn error(&self, seen: &Seen) -> f64 {
        let reached = match self.late() {
            None => seen.response / self.delay.target.as_secs_f64(),
            Some(late) => seen.late / late,
        };
        reached - 1.0
    }

    /// If a class holds every worker and is still late, lower the plant's load line until the class is in time. The
    /// reduction is an integral that is slower than the window and than the levels that follow the line. The line leaves
    /// room for the work of all classes with a delay, or they would be degraded themselves. While a part `idle` of the
    /// workers is left to ask for, no other class is in the way.
    fn press(&mut self, seen: &Seen, idle: Option<f64>, most: f64) {
        let followed = seen.fresh / (FOLLOWED_SECONDS * self.rate);
        let windows = (seen.fresh / WINDOW as f64).min(followed);
        self.share += if self.share > 0.0 { windows * (self.load - self.share) } else { self.load };
        let error = self.error(seen).clamp(-1.0, 1.0);
        let in_the_way = idle.is_none() && self.possible && !self.lowest && seen.departures >= EVIDENCE;
        let pressed = PRESSED * if in_the_way { error } else { error.min(0.0) };
        let eased = match idle {
            Some(idle) if idle > MUCH_IDLE => PRESSED,
            _ if in_the_way => 0.0,
            _ => EASED,
        };
        self.pressure = (self.pressure + windows * pressed - followed * eased).clamp(0.0, most.max(0.0));
    }
}

/// Workers per unit of error: one over the slope, at the operating point.
fn gain(servers: f64, reached: impl Fn(f64) -> f64) -> f64 {
    let step = 0.02 * servers.max(0.5);
    let slope = (reached(servers) - reached(servers + step)) / step;
    if slope.is_finite() && slope > 1e-6 {
        (1.0 / slope).min(0.25 * servers.max(1.0))
    } else {
        0.05 * servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::quota::{Quota, TurnRule};
    use crate::scheduling::rank::Rank;
    use alloc::sync::Arc;

    /// A loop that was promised 100 ms, with no class below.
    fn promised(parts: DelayParts) -> DelayLoop {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let promised = Promised {
            class: 0,
            site: 0,
            plant: 0,
            rank: Rank::ordinary(1, None),
            promise: Promise::Delay(delay),
            quota: Arc::new(Quota::new(TurnRule::Quota, Some(delay.target))),
            below: Vec::new(),
        };
        DelayLoop::new(promised, delay, parts)
    }

    /// The prediction used while predictions grow, before the first window is full and after it.
    fn around(parts: DelayParts) -> [(f64, f64); 3] {
        let mut one = promised(parts);
        let mut at = |departures: u64, predicted| {
            one.around(&Seen { departures: departures as f64, ..Seen::default() }, (predicted, 0.1))
        };
        [at(WINDOW - 1, 3.0), at(WINDOW, 4.0), at(WINDOW, 6.0)]
    }

    #[test]
    fn feedback_alone_goes_around_what_was_predicted_once() {
        assert_eq!(around(DelayParts::Feedback), [(3.0, 0.1), (4.0, 0.1), (4.0, 0.1)]);
        for parts in [DelayParts::Both, DelayParts::PredictorP, DelayParts::Predictor] {
            assert_eq!(around(parts), [(3.0, 0.1), (4.0, 0.1), (6.0, 0.1)]);
        }
    }

    /// The set-point reduction after `seconds` at 200/s, for a class that needs half of the workers, has the part `idle`
    /// left to ask for, and answers in `response` (s).
    fn pressed(one: &mut DelayLoop, idle: Option<f64>, response: f64, seconds: u32) -> f64 {
        (one.rate, one.load) = (200.0, 0.5);
        let seen = Seen { departures: 1000.0, fresh: 10.0, response, ..Seen::default() };
        (0..20 * seconds).for_each(|_| one.press(&seen, idle, 0.3));
        one.pressure
    }

    #[test]
    fn a_class_that_is_late_with_all_workers_lowers_the_line_until_it_is_in_time() {
        let mut one = promised(DelayParts::Both);
        one.possible = true;
        let slowly = pressed(&mut one, None, 0.11, 5);
        assert!((0.05..0.15).contains(&slowly), "a tenth late for a window: {slowly}");
        assert_eq!(pressed(&mut one, None, 0.1, 60), slowly, "in time");
        assert_eq!(pressed(&mut one, None, 0.3, 60), 0.3, "its own work has room");
        let eased = pressed(&mut one, Some(0.2), 0.11, 5);
        assert!((0.25..0.3).contains(&eased), "what is left to ask for is chance: {eased}");
        assert_eq!(
            pressed(&mut one, Some(0.5), 0.3, 5),
            0.0,
            "nobody is in the way, whatever the window remembers"
        );
        for (possible, lowest) in [(false, false), (true, true)] {
            (one.possible, one.lowest) = (possible, lowest);
            assert_eq!(pressed(&mut one, None, 0.3, 60), 0.0, "nobody who yields would help");
        }
    }
}
