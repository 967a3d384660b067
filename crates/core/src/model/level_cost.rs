//! The cost of one request at one level, from its own service times.
//!
//! Each period gives n requests, their bytes and their work (their service time, if no more requests are in service than there
//! are workers). Sums decay with a time constant of about five periods of traffic, so a cost is the mean of many requests. A
//! run is the latest periods whose means all lie on one side of the cost. If a run differs by more than four standard errors
//! from what was known before it, the server or the content has changed, and the run replaces the cost. One period is usually
//! enough; if requests are few or their work varies much, it is too little evidence. If a period alone is more evidence than
//! together with the run before it, it begins a new run: the periods before it were noise.
//!
//! The standard error is that of gamma service times (their deviance), since service times are skewed: half of the expected
//! work is less likely by chance than one and a half times of it.
//!
//! A line `a + b x` would not do, because costs differ for other reasons than size: a script costs more than a file of the same
//! size. The line ([`LinearModel`](super::LinearModel)) is for the costs of contracts and of sizes that no request has shown.

use core::ops::Add;
use libm::{log, sqrt};

/// The mean work and size of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct CostEstimate {
    weight: f64,
    seconds: f64,
    bytes: f64,
    /// The variance of one request's work.
    variance: f64,
    run: CostRun,
    /// The cost before the latest period.
    pub(super) expected: f64,
    /// `CostRun::before` of a step up that no later period has confirmed.
    before_rise: Option<[f64; 3]>,
    /// The cost before the latest period, if that period made it step or fall back.
    stepped_from: Option<f64>,
}

/// The latest periods on one side of the mean: all of them, or only the last if it is more evidence alone.
#[derive(Clone, Copy, Debug, Default)]
struct CostRun {
    above: bool,
    sums: Served,
    /// The cost, its weight and the variance before the run; the run itself has moved them since.
    before: [f64; 3],
}

/// The part of a cost that is kept in a file: a [`CostEstimate`] without the run that may become a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownCost {
    /// The number of requests behind the mean, in which the latest count most; 0 while none was seen.
    #[cfg_attr(feature = "serde", serde(rename = "requests"))]
    pub weight: f64,
    /// Mean work of a request [server seconds].
    pub seconds: f64,
    /// Mean body bytes of a request.
    pub bytes: f64,
    /// The variance of one request's work.
    pub variance: f64,
}

impl KnownCost {
    /// Whether the values are possible: a kept file may have been damaged.
    pub(crate) fn is_possible(&self) -> bool {
        let KnownCost { weight, seconds, bytes, variance } = *self;
        let whole = [weight, seconds, bytes, variance].iter().all(|value| *value >= 0.0 && value.is_finite());
        whole && (weight == 0.0 || (seconds > 0.0 && variance > 0.0))
    }
}

/// The requests of one period: how many were released, their work and their body bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Served {
    /// n, the number of requests released.
    pub requests: f64,
    /// Sum of work [server seconds].
    pub work_seconds: f64,
    /// Sum of body bytes.
    pub bytes: f64,
}

impl Add for Served {
    type Output = Served;
    fn add(self, other: Served) -> Served {
        Served {
            requests: self.requests + other.requests,
            work_seconds: self.work_seconds + other.work_seconds,
            bytes: self.bytes + other.bytes,
        }
    }
}

pub(super) const REMEMBER: f64 = 0.8;
const STEP_DEVIATIONS: f64 = 4.0;
/// Below this many requests a period's mean is no evidence of a step.
pub(crate) const EVIDENCE: f64 = 8.0;

impl CostEstimate {
    /// The estimate that goes on from a kept cost.
    pub(crate) fn from_known(known: KnownCost) -> Self {
        let KnownCost { weight, seconds, bytes, variance } = known;
        CostEstimate { weight, seconds, bytes, variance, expected: seconds, ..CostEstimate::default() }
    }

    /// The part to keep.
    pub(crate) fn known(&self) -> KnownCost {
        let CostEstimate { weight, seconds, bytes, variance, .. } = *self;
        KnownCost { weight, seconds, bytes, variance }
    }

    /// Learns from a period's sums; returns whether the cost stepped.
    pub(crate) fn learn(&mut self, served: Served) -> bool {
        let n = served.requests;
        self.stepped_from = None;
        if n <= 0.0 {
            return false;
        }
        let (seconds, bytes) = (served.work_seconds / n, served.bytes / n);
        if self.weight == 0.0 {
            // Until more is known, service times are taken as exponential.
            let variance = seconds * seconds;
            *self = CostEstimate { weight: n, seconds, bytes, variance, ..CostEstimate::default() };
            return true;
        }
        let unconfirmed = if n >= EVIDENCE { self.before_rise.take() } else { None };
        let confirmed = unconfirmed.is_some_and(|before| is_step(served, before));
        if let Some(before) = unconfirmed.filter(|_| !confirmed) {
            // The next period contradicts the rise, as when a machine stood still for a moment. The cost before it holds.
            self.stepped_from = Some(self.seconds);
            [self.seconds, self.weight, _] = before;
            self.run = CostRun::default();
        }
        self.expected = self.seconds;
        let innovation = seconds - self.seconds;
        let above = innovation > 0.0;
        let now = [self.seconds, self.weight, self.variance];
        let run = CostRun { sums: self.run.sums + served, ..self.run };
        let goes_on = above == run.above && evidence(run.sums, run.before) >= evidence(served, now);
        self.run = if goes_on { run } else { CostRun { above, sums: served, before: now } };
        let stepped = is_step(self.run.sums, self.run.before);
        if stepped && above && !confirmed {
            self.before_rise = Some(self.run.before);
        }
        if stepped {
            let Served { requests, work_seconds, bytes } = self.run.sums;
            (self.weight, self.bytes) = (requests, bytes / requests);
            self.step_to(work_seconds / requests);
        } else {
            self.variance += 0.125 * (n * innovation * innovation - self.variance);
            self.weight = REMEMBER * self.weight + n;
            self.seconds += n / self.weight * innovation;
            self.bytes += n / self.weight * (bytes - self.bytes);
        }
        // The standard error is at least 1 % of the mean, because the mix of the next period differs by that much.
        self.variance = self.variance.max(1e-4 * self.seconds * self.seconds * n);
        stepped
    }

    /// Whether the cost rose by a step that no later period has confirmed.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.before_rise.is_some()
    }

    /// Takes over a fall of all services of the plant by `factor`, below 1 ([`CommonFall`](super::CommonFall)), unless this
    /// cost's own requests, `served` in the latest period, fit the old cost at least as well. The new cost is the mean of these
    /// requests and of [`EVIDENCE`] requests at `factor` times the old cost. Returns whether the cost has fallen.
    pub(crate) fn fall(&mut self, factor: f64, served: Served) -> bool {
        let was = self.expected;
        if self.run.sums.requests == 0.0 || served.requests <= 0.0 || was <= 0.0 {
            return false;
        }
        let unchanged = [was, f64::INFINITY, self.variance];
        let fallen = [factor * was, f64::INFINITY, factor * factor * self.variance];
        if evidence(served, fallen) >= evidence(served, unchanged) {
            return false;
        }
        self.weight = served.requests + EVIDENCE;
        self.step_to((served.work_seconds + EVIDENCE * factor * was) / self.weight);
        true
    }

    /// The factor by which the latest period made the cost step or fall back, if it did.
    pub(crate) fn step(&self) -> Option<f64> {
        self.stepped_from.map(|before| self.seconds / before)
    }

    /// Whether `requests`, in the latest period, are too few to change the cost much beside what was known before.
    pub(crate) fn hardly_knows(&self, requests: f64) -> bool {
        self.stepped_from.is_none() && requests < EVIDENCE.min(0.5 * self.weight)
    }

    /// Follows a step of other requests of the same server. A rise multiplies the cost by `factor`, and lowers its weight to
    /// that of few requests, so that the next ones weigh more; unless the rise `is_sure` to last, a later fall takes it back.
    pub(crate) fn follow_step(&mut self, factor: f64, is_sure: bool) {
        let before = self.before_rise.take();
        if factor > 1.0 {
            self.before_rise = (!is_sure).then_some([self.seconds, self.weight, self.variance]);
            self.seconds *= factor;
            self.variance *= factor * factor;
            self.weight = self.weight.min(EVIDENCE);
        } else if let Some(before) = before {
            [self.seconds, self.weight, self.variance] = before;
        } else {
            return;
        }
        (self.run, self.expected) = (CostRun::default(), self.seconds);
    }

    /// Replaces the cost. The deviation of service times is scaled by the same factor as their mean.
    fn step_to(&mut self, seconds: f64) {
        let [before, _, variance] = core::mem::take(&mut self.run).before;
        self.stepped_from.get_or_insert(before);
        self.variance = variance * (seconds / before) * (seconds / before);
        self.seconds = seconds;
    }

    /// Lowers a cost that keeps requests out of an idle plant. Otherwise one slow episode could make the cost so large
    /// that no request is admitted to correct it.
    pub(crate) fn doubt(&mut self) {
        self.seconds *= REMEMBER;
        self.weight *= REMEMBER;
    }

    /// Work of one request [server seconds], if any request was seen.
    pub(crate) fn seconds(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.seconds)
    }

    /// How well the cost is known: 1 less its relative standard error, in [0, 1].
    pub(crate) fn confidence(&self) -> f64 {
        if self.weight <= 0.0 || self.seconds <= 0.0 {
            return 0.0;
        }
        (1.0 - sqrt(self.variance / self.weight) / self.seconds).max(0.0)
    }

    /// Body bytes of one request, if any request was seen.
    pub(crate) fn bytes(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.bytes)
    }
}

/// Whether these requests differ by more than chance from what was known `before`: the cost, its weight, the variance.
pub(super) fn is_step(sums: Served, before: [f64; 3]) -> bool {
    sums.requests >= EVIDENCE && evidence(sums, before) > STEP_DEVIATIONS * STEP_DEVIATIONS
}

/// The squared number of standard errors between these requests and what was known `before`.
pub(super) fn evidence(sums: Served, before: [f64; 3]) -> f64 {
    let Served { requests, work_seconds, .. } = sums;
    let [seconds, weight, variance] = before;
    let ratio = (work_seconds / requests / seconds).max(1e-9);
    let weight = 1.0 / (1.0 / requests + 1.0 / weight);
    2.0 * weight * seconds * seconds / variance * (ratio - 1.0 - log(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(requests: f64, each: f64) -> Served {
        Served { requests, work_seconds: requests * each, bytes: requests * 100.0 }
    }

    #[test]
    fn averages_noise_and_takes_a_step() {
        let mut cost = CostEstimate::default();
        assert_eq!(cost.seconds(), None);
        for i in 0..40 {
            cost.learn(served(100.0, if i % 2 == 0 { 0.011 } else { 0.009 }));
        }
        assert!((cost.seconds().expect("learned") - 0.010).abs() < 0.000_3);
        assert!(cost.learn(served(100.0, 0.020)), "a server that slows to half is a step");
        assert!((cost.seconds().expect("learned") - 0.020).abs() < 1e-9);
        assert_eq!(cost.bytes(), Some(100.0));
    }

    /// Fifty exponential services a period, so that a period's mean is off by a seventh. The server becomes slow, and then fast
    /// again, which one period does not prove. A mean that only forgets a fifth a period would know it in one run of twenty.
    #[test]
    fn what_one_period_does_not_prove_the_next_ones_do() {
        let back = |seed| {
            let mut random = crate::random::Random::new(seed);
            let mut cost = CostEstimate::default();
            for (mean, periods) in [(0.04, 10), (0.08, 10), (0.04, 4)] {
                for _ in 0..periods {
                    let work_seconds = (0..50).map(|_| random.exponential(mean)).sum();
                    cost.learn(Served { requests: 50.0, work_seconds, bytes: 0.0 });
                }
            }
            cost.seconds().expect("learned")
        };
        let known = (500..600).filter(|seed| (0.03..0.05).contains(&back(*seed))).count();
        assert!(known >= 20, "{known} of 100 runs know the fall four periods after it");
    }

    #[test]
    fn a_jump_that_falls_back_at_once_is_forgotten_and_one_that_stays_is_not() {
        let mut cost = CostEstimate::default();
        (0..20).for_each(|_| _ = cost.learn(served(400.0, 0.020)));
        assert!(cost.learn(served(100.0, 0.300)) && cost.is_unconfirmed());
        let mut stays = cost.clone();
        cost.learn(served(400.0, 0.0201));
        assert!(!cost.is_unconfirmed() && cost.seconds().is_some_and(|seconds| seconds < 0.0205), "{cost:?}");
        stays.learn(served(100.0, 0.280));
        assert!(stays.seconds().is_some_and(|seconds| seconds > 0.25), "{stays:?}");
    }

    #[test]
    fn noise_is_seldom_a_step() {
        let mut random = crate::random::Random::new(7);
        let mut cost = CostEstimate::default();
        let steps = (0..2000).filter(|_| {
            let work_seconds = (0..50).map(|_| random.exponential(0.04)).sum();
            cost.learn(Served { requests: 50.0, work_seconds, bytes: 0.0 })
        });
        let steps = steps.count();
        assert!(steps <= 5, "{steps} steps in 2,000 periods");
    }
}
