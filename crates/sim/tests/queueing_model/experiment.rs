//! A run of QM 2.3: a queue, a window of its last departures, and the law that sets the workers' speed from it.
//!
//! The window is the engine's own, and so are lambda, c_a^2 and c_s^2. The mean service time that it measures is not used, or
//! the predictor would know a plant that is slower than its model. The
//! engine's own actuator, a quota, is in the same experiment in `delays.rs`. What is judged is the mean delay of the sliding
//! window, the paper's user observation window, at every update.

use crate::queue::{Arrivals, Queue, UNIT};
use plimsoll_core::control::{DelayLaw, Feedback, Residual};
use plimsoll_core::model::Traffic;
use plimsoll_core::scheduling::ArrivalGaps;
use plimsoll_core::telemetry::DepartureWindow;
use plimsoll_core::time::Duration;

/// N, departures.
pub(crate) const WINDOW: usize = 1_000;
/// D_ref.
pub(crate) const WANTED: f64 = 2.0;
/// Windows that are not judged: the first fills, the next two are where the loop is switched on.
const WARM_UP: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    pub(crate) workers: u32,
    pub(crate) arrivals: Arrivals,
    /// Those of the second half, where they are others (QM Fig. 6d).
    pub(crate) later: Option<Arrivals>,
    /// Arrivals per worker in the first half, and in the second.
    pub(crate) rates: [f64; 2],
    /// The workers' true speed over what they are told.
    pub(crate) plant: f64,
    pub(crate) feedback: Feedback,
    /// g, r and g', where they are not the law's own.
    pub(crate) gains: Option<(f64, f64, f64)>,
    /// Whether the predictor runs; without it the first rate's speed stays as an offset (QM Fig. 6c).
    pub(crate) predicts: bool,
    /// Whether the predictor uses the measured c_a^2; without it arrivals count as Poisson's, as the formula of M/M/1 has them.
    pub(crate) sees_variability: bool,
    /// Nothing is measured or fed back: the plant's speed is that which D_ref takes at the true rate, at once when it steps.
    pub(crate) oracle: bool,
    /// n, departures.
    pub(crate) update: usize,
    /// Windows of each half.
    pub(crate) windows: usize,
}

impl Experiment {
    pub(crate) fn new(workers: u32, arrivals: Arrivals) -> Self {
        Experiment {
            workers,
            arrivals,
            later: None,
            rates: [0.65, 0.85],
            plant: 1.0,
            feedback: Feedback::PI,
            gains: None,
            predicts: true,
            sees_variability: true,
            oracle: false,
            update: 10,
            windows: 20,
        }
    }

    pub(crate) fn slower(self) -> Self {
        Experiment { plant: 0.9, ..self }
    }

    pub(crate) fn predictor_alone(self) -> Self {
        Experiment { feedback: Feedback::None, ..self }
    }

    pub(crate) fn pi_alone(self) -> Self {
        Experiment { predicts: false, ..self }
    }

    /// What the first rate takes stays as an offset, which a proportional controller corrects (QM Fig. 6c).
    pub(crate) fn fixed_offset(self) -> Self {
        Experiment { predicts: false, feedback: Feedback::P, gains: Some((1.0, 1.0, 0.0)), ..self }
    }

    /// The predictor with P of the paper's gain, 1 / |slope|.
    pub(crate) fn papers_p(self) -> Self {
        Experiment { feedback: Feedback::P, gains: Some((1.0, 1.0, 0.0)), ..self }
    }

    /// The predictor takes all arrivals for Poisson's.
    pub(crate) fn blind_to_variability(self) -> Self {
        Experiment { sees_variability: false, ..self }
    }

    /// From these arrivals to others when the rate steps.
    pub(crate) fn to(self, later: Arrivals) -> Self {
        Experiment { later: Some(later), ..self }
    }

    /// What the predictor is told of the traffic.
    fn seen(&self, traffic: Traffic) -> Traffic {
        if self.sees_variability { traffic } else { Traffic { arrival_variability: 1.0, ..traffic } }
    }

    pub(crate) fn oracle(self) -> Self {
        Experiment { oracle: true, ..self }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Mean squared error of the window's mean delay.
    pub(crate) error: f64,
    /// Mean change of the speed by the feedback.
    pub(crate) effort: f64,
    /// Mean error of the window's mean delay, and its variance about that, in each half; of the second from a quarter of it on.
    pub(crate) halves: [(f64, f64); 2],
}

/// The mean over so many seeds, none of which had a part in the choice of g, r, g' and the clamps (those were 0 to 40 and 2001
/// to 2020).
pub(crate) fn mean(experiment: &Experiment, seeds: u64) -> Outcome {
    let mut sum = Outcome::default();
    for seed in 1_001..=1_000 + seeds {
        let run = run(experiment, seed);
        sum.error += run.error / seeds as f64;
        sum.effort += run.effort / seeds as f64;
        for (sum, run) in sum.halves.iter_mut().zip(run.halves) {
            *sum = (sum.0 + run.0 / seeds as f64, sum.1 + run.1 / seeds as f64);
        }
    }
    sum
}

/// The traffic in units of time, of requests that are one unit of work.
fn in_units(traffic: Traffic) -> Traffic {
    Traffic { rate: UNIT * traffic.rate, service_seconds: 1.0, ..traffic }
}

fn run(experiment: &Experiment, seed: u64) -> Outcome {
    let workers = f64::from(experiment.workers);
    let rates = experiment.rates.map(|rate| rate * workers);
    let known =
        Traffic { rate: rates[0], service_seconds: 1.0, arrival_variability: 1.0, service_variability: 1.0 };
    let mut queue = Queue::new(seed, experiment.workers as usize, experiment.arrivals, rates[0]);
    let fixed = model(&known, experiment.workers);
    queue.speed = experiment.plant * fixed.0;
    let mut law = match experiment.gains {
        Some((g, r, recent)) => DelayLaw::with_gains(experiment.feedback, (g, recent), r),
        None => DelayLaw::new(experiment.feedback),
    };
    let mut window = DepartureWindow::new(WINDOW as u64, experiment.update as u64);
    window.observe(queue.counts);
    let (mut outcome, mut updates) = (Outcome::default(), 0.0);
    let mut halves = Halves::default();
    for departed in 1..=2 * experiment.windows * WINDOW {
        if departed == experiment.windows * WINDOW {
            queue.rate = rates[1];
            queue.arrivals = experiment.later.unwrap_or(queue.arrivals);
        }
        if experiment.oracle {
            queue.speed = model(&Traffic { rate: queue.rate, ..known }, experiment.workers).0;
        }
        queue.departure();
        let Some(seen) = window.observe(queue.counts) else { continue };
        let traffic = experiment.seen(in_units(window.traffic()));
        queue.gaps.set_longest(Duration::from_secs_f64(UNIT * ArrivalGaps::LONGEST / traffic.rate));
        if departed < WINDOW {
            continue;
        }
        let (feed_forward, gain) =
            if experiment.predicts { model(&traffic, experiment.workers) } else { fixed };
        let error = seen.response / UNIT - WANTED;
        let residual = Residual {
            feed_forward,
            gain,
            wanted: WANTED,
            error,
            recent_error: seen.recent_response / UNIT - WANTED,
            fresh: experiment.update as f64 / WINDOW as f64,
            least: 0.05,
            most: 10.0,
            binding: true,
        };
        let speed = law.next(&residual);
        if !experiment.oracle {
            queue.speed = speed * experiment.plant;
        }
        if departed > WARM_UP * WINDOW {
            updates += 1.0;
            outcome.error += error * error;
            halves.add(departed as f64 / (experiment.windows * WINDOW) as f64, error);
            outcome.effort += (speed - residual.feed_forward).abs();
        }
    }
    Outcome {
        error: outcome.error / updates,
        effort: outcome.effort / updates,
        halves: halves.means_and_variances(),
    }
}

/// Count, sum and sum of squares of the errors in each half.
#[derive(Default)]
struct Halves([(f64, f64, f64); 2]);

impl Halves {
    /// `part` is 1 where the second half begins, whose first quarter is left out.
    fn add(&mut self, part: f64, error: f64) {
        if !(1.0..1.25).contains(&part) {
            let (count, sum, squares) = &mut self.0[usize::from(part >= 1.0)];
            (*count, *sum, *squares) = (*count + 1.0, *sum + error, *squares + error * error);
        }
    }

    fn means_and_variances(&self) -> [(f64, f64); 2] {
        self.0.map(|(count, sum, squares)| (sum / count, squares / count - (sum / count).powi(2)))
    }
}

/// What the model says: the speed that D_ref takes, and the gain there.
fn model(traffic: &Traffic, workers: u32) -> (f64, f64) {
    let speed = 1.0 / service_for_mean(traffic, f64::from(workers));
    let response = |speed: f64| {
        Traffic { service_seconds: 1.0 / speed, ..*traffic }.response_seconds(f64::from(workers))
    };
    (speed, 1.0 / slope(response, speed).abs())
}

/// The service time with which these workers have the mean response time D_ref.
fn service_for_mean(traffic: &Traffic, workers: f64) -> f64 {
    let (mut low, mut high) = (0.0, WANTED.min(workers / traffic.rate));
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        let tried = Traffic { service_seconds: middle, ..*traffic };
        *(if tried.response_seconds(workers) <= WANTED { &mut low } else { &mut high }) = middle;
    }
    low
}

/// Central difference of `response` at `at`.
fn slope(response: impl Fn(f64) -> f64, at: f64) -> f64 {
    let step = 1e-4 * at;
    (response(at + step) - response(at - step)) / (2.0 * step)
}

/// QM 2.2: a delay of 2 takes mu = 1.5 at lambda = 1, where the slope is -4, and 3.5 at lambda = 3.
#[test]
fn the_model_has_the_speeds_and_the_slope_of_the_papers_example() {
    let mm1 = Traffic { rate: 1.0, service_seconds: 1.0, arrival_variability: 1.0, service_variability: 1.0 };
    let [(slow, gain), (fast, _)] = [1.0, 3.0].map(|rate| model(&Traffic { rate, ..mm1 }, 1));
    assert!((slow - 1.5).abs() < 1e-6 && (fast - 3.5).abs() < 1e-6, "{slow} and {fast}");
    assert!((1.0 / gain - 4.0).abs() < 1e-3, "{gain}");
}
