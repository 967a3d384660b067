//! The delays: each class's law asks for workers, and a plant's go round by rank.

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
/// A promise counts as missed beyond these: of a mean its multiple, of a share of late ones too.
const MISSED_MEAN: f64 = 1.1;
const MISSED_SHARE: f64 = 1.3;
/// A quota is never less, nor less than carries the class's load: a class without traffic is served when it comes.
const LEAST: f64 = 0.05;
const LEAST_SPARE: f64 = 1.03;
/// Of the share that may be late: lateness comes in bursts, which more workers than there are cannot make up for.
const AIM: f64 = 0.9;
/// More than so many times too long is a transient.
const MOST_ERROR: f64 = 8.0;
/// g and r of the law, per window, where a share was promised: below the law's own, since lateness comes in bursts, and what is
/// lent makes the slope at D_ref larger than the slope there is.
const SHARE_GAIN: f64 = 2.0;
const SHARE_ZERO: f64 = 0.5;
/// A longer pause than so many mean ones counts as that: the queue is empty long before it ends, and what c_a^2 would make of it
/// is no wait. Of Poisson's none is that long; of a Pareto with a shape below 2 the variance is all in those.
const MOST_GAP: f64 = 20.0;
/// A class below with less of its rate is nobody who could yield.
const SILENT: f64 = 0.01;
/// What an error of 1 adds to the pressure: over a window, or over the time in which the levels follow, if that is longer.
const PRESSED: f64 = 1.0;
const FOLLOWED_SECONDS: f64 = 5.0;
/// What it loses over that time while nobody is in the way; with such a part of the workers left to ask for, as much as it may gain.
const EASED: f64 = 0.02;
const MUCH_IDLE: f64 = 0.4;
/// A class from which nothing was heard in the time of so many updates is gone.
const SILENT_UPDATES: f64 = 100.0;
/// The load line leaves so many times the work of the classes with a delay.
const OWN_SPARE: f64 = 1.05;

/// All of them, in the order of their ranks.
#[derive(Default)]
pub(crate) struct Delays {
    loops: Vec<DelayLoop>,
}

struct DelayLoop {
    promised: Promised,
    delay: Delay,
    parts: DelayParts,
    /// What was predicted when the first window was full, and the gain at it: where nothing else is.
    offset: Option<(f64, f64)>,
    law: DelayLaw,
    window: Window,
    /// Workers that the law asks for, and the least it may ask for.
    wanted: f64,
    least: f64,
    /// Arrivals per second; the share of the workers that their work takes, and the same followed as slowly as the pressure.
    rate: f64,
    load: f64,
    share: f64,
    /// All workers would give what was promised: if it is missed, others are in the way.
    possible: bool,
    /// The part by which it lowers the load line.
    pressure: f64,
    /// When enough of its requests had ended for an update.
    updated: Instant,
    /// Nobody ranks below it who could yield: its late requests are answered instead of started.
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

/// Of one plant, on the way down its ranks.
#[derive(Default)]
struct Left {
    plant: Option<usize>,
    /// Workers that nobody above asks for.
    workers: f64,
    /// What the work of those above takes, of all workers.
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

    /// Asks for as many workers as the promise takes, if an update is due. Before anything is known, for all.
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
                // Not in logarithms: it is the mean share that was promised, and lateness comes in bursts.
                // One in twenty of the recent ones is a few, and says nothing.
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
            // Idle workers are lent: a quota that does not limit goes down to its least, and no further.
            binding: true,
        });
        self.bound_waits(&seen);
        Some(seen)
    }

    /// The prediction, or what it was once.
    fn around(&mut self, seen: &Seen, predicted: (f64, f64)) -> (f64, f64) {
        if self.parts == DelayParts::Feedback && self.offset.is_none() && seen.departures >= WINDOW as f64 {
            self.offset = Some(predicted);
        }
        self.offset.unwrap_or(predicted)
    }

    /// Of a percentile, who waited as long as leaves only the service time that the promise allows for is due at once; and of the lowest
    /// class, who could be in time only by luck is answered instead of started.
    fn bound_waits(&self, seen: &Seen) {
        let target = self.delay.target.as_secs_f64();
        let deviation = seen.service * sqrt(seen.service_variability);
        let left = |deviations: f64| {
            let wait = (target - seen.service - deviations * deviation).max(0.1 * target);
            self.delay.percentile.filter(|_| seen.service > 0.0).map(|_| Duration::from_secs_f64(wait))
        };
        // The rarer it may be late, the sooner this steps in; of one in twenty the quota decides alone until then.
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

    /// By what part of it the promise is missed.
    fn error(&self, seen: &Seen) -> f64 {
        let reached = match self.late() {
            None => seen.response / self.delay.target.as_secs_f64(),
            Some(late) => seen.late / late,
        };
        reached - 1.0
    }

    /// With all workers its own, what it is late by is for others in service: the load line is lowered until it is in time. An
    /// integral that is slower than the window it looks at, and than the levels that follow the line; and no lower than
    /// leaves room for the work of all that were promised a delay, or they would be degraded themselves. Of a class that has `idle`
    /// of the workers left to ask for nobody is in the way, whatever the window remembers.
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

    /// Of 100 ms, with nobody below it yet.
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

    /// What the feedback goes around while the prediction grows, before the first window is full and after it.
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

    /// A class that needs half of the workers, has them all or such a part left to ask for, and takes so long (s); the pressure
    /// after so many seconds at 200/s.
    fn pressed(one: &mut DelayLoop, idle: Option<f64>, response: f64, seconds: u32) -> f64 {
        (one.rate, one.load) = (200.0, 0.5);
        let seen = Seen { departures: 1000.0, fresh: 10.0, response, ..Seen::default() };
        (0..20 * seconds).for_each(|_| one.press(&seen, idle, 0.3));
        one.pressure
    }

    #[test]
    fn who_is_late_with_all_workers_presses_until_it_is_in_time_and_no_longer_than_it_needs_them() {
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
