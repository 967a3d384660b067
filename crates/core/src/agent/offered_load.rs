//! The offered load, and the utilization that it would make at another fraction of full quality.
//!
//! If a fraction F of the clients gets full quality, a request costs `C(F) = C_l + F (C_f - C_l)` on average: C_f is the cost
//! of a request to the full tree, C_l to the degraded one. C(F) is linear in F, and is learned by the same least squares with
//! directional forgetting as the engine's cost over bytes. So the cost of the degraded tree is not forgotten while every client
//! gets full quality, nor the cost of the full tree while all are degraded. Then `U(F) = R C(F)` for any F, and C(F) is CA's S,
//! 1 / throughput, at the present mix.
//!
//! While requests queue before the server, nothing is learned about a tree whose cost is known: some servers count the requests
//! that they reject (nginx: 502), so a full server's requests would seem cheap. The cost of an unknown tree is learned even
//! then, because the completed requests took the whole server. The weight of a sample is its number of requests.
//!
//! Before a tree has served enough requests its cost is unknown. If one tree's cost is known, a request to the degraded tree is
//! assumed to cost a quarter of one to the full tree.

use super::Sample;
use crate::control::Demand;
use crate::model::{LinearModel, Served, Tracker};
use crate::time::Duration;
use alloc::collections::VecDeque;
use libm::sqrt;

/// The assumed cost of the degraded tree as a part of the full tree's, while the cost of one is unknown.
const ASSUMED: f64 = 0.25;
/// The cost of a tree counts as known after this number of requests.
const ENOUGH: f64 = 20.0;
/// The gain with which the smoothed utilization follows the utilization of a period, which is a mean of only four samples if it
/// is sensed by gaps.
const SMOOTHING: f64 = 0.25;
/// The span of the recent samples.
pub(super) const LATELY: Duration = Duration::from_secs(4);
/// A rate is averaged over this span (s), or over this many requests if they come sooner: the standard error is then 4 % at
/// twenty requests a second, and 2 % at a hundred and above. A tracker's gain would keep the first value after a step for
/// a minute, and that value is the mean of very few requests.
const FOLLOWED: f64 = 30.0;
const MANY: f64 = 3000.0;
/// The recent rate differs from the true one by at most this number of standard deviations.
const CHANCE: f64 = 3.0;
/// The linear model's second column, elsewhere bytes, counts requests at full quality in this unit.
const UNIT: f64 = 1024.0;

#[derive(Default)]
pub(super) struct OfferedLoad {
    /// Detects steps of the rate.
    steps: Tracker,
    /// The mean rate since the last step, over at most the averaging span (1/s).
    rate: f64,
    /// Requests and seconds of each sample within [`LATELY`].
    lately: VecDeque<(f64, f64)>,
    cost: LinearModel,
    /// The sums of this period, for the model.
    period: Served,
    /// The number of requests that the full and the degraded tree have served, at most [`ENOUGH`].
    served: [f64; 2],
    seconds: f64,
    work: f64,
    utilization: f64,
    /// Whether the rate stepped in this period, and in the last complete one.
    stepping: bool,
    stepped: bool,
    /// Time since the last step of the rate, with the sample of the step (s).
    since_step: f64,
}

impl OfferedLoad {
    /// Takes a sample. `queueing` says whether requests queue before the server.
    pub(super) fn take(&mut self, sample: &Sample, queueing: bool) {
        let Some((requests, utilization)) = sample.load else { return };
        if sample.seconds <= 0.0 {
            return;
        }
        let n = requests as f64;
        if self.steps.count(requests, sample.seconds) {
            (self.stepping, self.since_step, self.rate) = (true, sample.seconds, self.steps.mean());
        } else {
            self.since_step += sample.seconds;
            let span = self.since_step.min(FOLLOWED).min(MANY / self.rate).max(sample.seconds);
            self.rate += sample.seconds / span * (n / sample.seconds - self.rate);
        }
        self.lately.push_back((n, sample.seconds));
        while self.lately.iter().skip(1).map(|(_, seconds)| seconds).sum::<f64>() >= LATELY.as_secs_f64() {
            self.lately.pop_front();
        }
        let known = self.served[usize::from(sample.applied < 0.5)] >= ENOUGH;
        for (served, part) in self.served.iter_mut().zip([sample.applied, 1.0 - sample.applied]) {
            *served = (*served + n * part).min(ENOUGH);
        }
        self.seconds += sample.seconds;
        let work_seconds = utilization * sample.seconds;
        self.work += work_seconds;
        if queueing && known {
            return;
        }
        // The utilization by gaps is that of an instant, the number of requests that of an interval, so the model learns from
        // sums over a period.
        let period = &mut self.period;
        period.requests += n;
        period.work_seconds += work_seconds;
        period.bytes += n * sample.applied * UNIT;
    }

    /// Ends a period.
    pub(super) fn end_period(&mut self) {
        self.cost.learn(core::iter::once(core::mem::take(&mut self.period)));
        if self.seconds > 0.0 {
            // A step of the rate is not noise, so the utilization follows it at once.
            let gain = if self.stepping { 1.0 } else { SMOOTHING };
            self.utilization += gain * (self.work / self.seconds - self.utilization);
        }
        (self.seconds, self.work, self.stepped) = (0.0, 0.0, self.stepping);
        self.stepping = false;
    }

    /// C(F): the mean cost of a request (s of the whole server), which is S, 1 / throughput; `None` while no cost is
    /// known.
    pub(super) fn cost(&self, fraction: f64) -> Option<f64> {
        let [full, degraded] = self.ends()?;
        Some(degraded + fraction * (full - degraded))
    }

    /// C_f and C_l.
    fn ends(&self) -> Option<[f64; 2]> {
        self.ends_after(ENOUGH)
    }

    /// C_f and C_l, if a tree's cost counts as known after `enough` requests.
    fn ends_after(&self, enough: f64) -> Option<[f64; 2]> {
        let (degraded, more) = self.cost.costs();
        let full = degraded + more * UNIT;
        match self.served.map(|served| served >= enough) {
            [true, true] => Some([full, degraded]),
            // Only one tree was served, so the model knows nothing about the other.
            [true, false] => Some([full, ASSUMED * full]),
            [false, true] => Some([degraded / ASSUMED, degraded]),
            [false, false] => None,
        }
    }

    /// U(F) of the offered load. At a rate of 0 it needs no cost, so an agent that starts without load and with all clients
    /// degraded returns to full quality.
    pub(super) fn at(&self, fraction: f64) -> Option<f64> {
        self.of(self.rate(), fraction)
    }

    /// The largest rate that the recent samples allow, and its utilization at full quality.
    pub(super) fn lately(&self) -> Option<(f64, f64)> {
        let [_, rate] = self.rate_lately()?;
        // A load of no requests needs no cost.
        let nothing = self.lately.iter().all(|(requests, _)| *requests == 0.0).then_some(0.0);
        Some((rate, self.of(rate, 1.0).or(nothing)?))
    }

    /// The least and the largest rate at which the recent count is not improbable.
    fn rate_lately(&self) -> Option<[f64; 2]> {
        let (n, seconds) = self.lately.iter().fold((0.0, 0.0), |(n, s), (m, t)| (n + m, s + t));
        // The means of the two Poisson distributions for which n is CHANCE of their deviations away.
        let middle = n + CHANCE * CHANCE / 2.0;
        let deviation = CHANCE * sqrt(n + CHANCE * CHANCE / 4.0);
        (seconds >= LATELY.as_secs_f64())
            .then(|| [middle - deviation, middle + deviation].map(|mean| mean.max(0.0) / seconds))
    }

    /// Whether all recent samples come after the last step of the rate.
    pub(super) fn is_settled(&self) -> bool {
        self.since_step >= LATELY.as_secs_f64()
    }

    fn of(&self, rate: f64, fraction: f64) -> Option<f64> {
        if rate <= 0.0 {
            return Some(0.0);
        }
        let [full, degraded] = self.ends().or_else(|| self.ends_after(1.0))?;
        Some(rate * (degraded + fraction * (full - degraded)))
    }

    /// U as a function of m = 1 + F. The agent cannot reject, so level 0 costs as much as level 1: a law whose m falls below 1
    /// is saturated, and does not wind up.
    pub(super) fn demand(&self) -> Option<Demand> {
        let [full, degraded] = self.ends()?;
        let rate = self.rate();
        Some(Demand::arriving(&[rate * degraded, rate * degraded, rate * full]))
    }

    /// R, smoothed, but within the bounds of the recent samples. A smoothed rate alone may take a quarter of a minute to follow
    /// a fall to two or three requests a second, or a rise after a second without requests.
    pub(super) fn rate(&self) -> f64 {
        let followed = self.rate;
        self.rate_lately()
            .filter(|_| self.is_settled())
            .map_or(followed, |[least, most]| followed.clamp(least, most))
    }

    /// U, smoothed.
    pub(super) fn utilization(&self) -> f64 {
        self.utilization
    }

    /// Whether the last period had no step of the rate.
    pub(super) fn is_steady(&self) -> bool {
        !self.stepped
    }

    /// Whether the rate rose by a step in the last sample only.
    pub(super) fn rose(&self) -> bool {
        self.steps.rose()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Probe;
    use super::*;

    fn sample(seconds: f64, load: Option<(u64, f64)>, applied: f64) -> Sample {
        Sample { seconds, load, least: 0.0, waiting: None, probe: Probe::default(), applied }
    }

    fn period(load: &mut OfferedLoad, requests: u64, applied: f64, cost: f64) {
        for _ in 0..super::super::SAMPLES {
            let utilization = requests as f64 * cost / 0.25;
            let load_seen = Some((requests, utilization));
            load.take(&sample(0.25, load_seen, applied), false);
        }
        load.end_period();
    }

    fn close(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value - wanted).abs() < 0.02 * wanted)
    }

    #[test]
    fn both_ends_of_the_line_are_learned_one_after_the_other() {
        let mut load = OfferedLoad::default();
        assert_eq!(load.cost(1.0), None);
        for _ in 0..5 {
            period(&mut load, 10, 1.0, 20e-3);
        }
        assert!(close(load.cost(1.0), 20e-3) && close(load.cost(0.0), 5e-3), "{:?}", load.ends());
        for _ in 0..5 {
            period(&mut load, 30, 0.0, 3e-3);
        }
        assert!(close(load.cost(1.0), 20e-3) && close(load.cost(0.0), 3e-3), "{:?}", load.ends());
        // A long time with the degraded tree alone does not blur the cost of the full tree.
        for _ in 0..1000 {
            period(&mut load, 30, 0.0, 4e-3);
        }
        assert!(close(load.cost(0.0), 4e-3), "{:?}", load.ends());
        assert!(load.cost(1.0).is_some_and(|full| (18e-3..23e-3).contains(&full)), "{:?}", load.ends());
        assert!(close(load.at(0.0), 0.48), "{:?}", load.at(0.0));
    }

    #[test]
    fn a_server_that_began_degraded_takes_full_quality_for_four_times_as_dear() {
        let mut load = OfferedLoad::default();
        period(&mut load, 30, 0.0, 3e-3);
        assert!(close(load.cost(1.0), 12e-3), "{:?}", load.ends());
    }

    #[test]
    fn requests_that_a_full_server_turns_away_do_not_make_it_cheap() {
        let mut load = OfferedLoad::default();
        for _ in 0..5 {
            period(&mut load, 10, 1.0, 20e-3);
        }
        for queueing in [true, false] {
            for _ in 0..20 {
                load.take(&sample(1.0, Some((200, 1.0)), 1.0), queueing);
                load.end_period();
            }
            assert_eq!(close(load.cost(1.0), 20e-3), queueing, "{:?}", load.ends());
        }
    }

    #[test]
    fn of_no_load_and_of_a_little_it_is_known_what_they_take() {
        let mut load = OfferedLoad::default();
        period(&mut load, 0, 0.0, 3e-3);
        assert_eq!((load.at(1.0), load.cost(1.0)), (Some(0.0), None));
        period(&mut load, 1, 0.0, 3e-3);
        assert!(load.at(1.0).is_some_and(|at| (1e-4..0.1).contains(&at)), "{:?}", load.at(1.0));
        assert!(load.demand().is_none(), "too little to degrade clients for");
    }

    #[test]
    fn a_standstill_teaches_next_to_nothing() {
        let mut load = OfferedLoad::default();
        for _ in 0..10 {
            period(&mut load, 10, 1.0, 20e-3);
        }
        // For five seconds the server is full and completes no request.
        for _ in 0..5 {
            load.take(&sample(1.0, Some((0, 1.0)), 1.0), false);
            load.end_period();
        }
        assert!(close(load.cost(1.0), 20e-3), "{:?}", load.ends());
    }
}
