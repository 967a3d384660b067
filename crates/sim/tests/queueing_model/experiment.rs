//! A run of QM 2.3: a queue, a window of its last departures, and the law that sets the workers' speed from it.
//!
//! c_a^2 and c_s^2 are measured as the engine measures them, from sums over the window, and so is lambda, which the engine takes from
//! its monitors. The mean service time is not measured, or the predictor would know a plant that is slower than its model. The
//! engine's own actuator, a quota, is in the same experiment in `delays.rs`. What is judged is the mean delay of the sliding window,
//! the paper's user observation window, at every update.

use crate::queue::{Arrivals, Departure, Queue};
use plimsoll_core::control::{DelayLaw, Feedback, RECENT, Residual, slope};
use plimsoll_core::model::Traffic;
use std::collections::VecDeque;

/// N, departures.
pub(crate) const WINDOW: usize = 1_000;
/// D_ref.
pub(crate) const WANTED: f64 = 2.0;
/// Windows that are not judged: the first fills, the next two are where the loop is switched on.
const WARM_UP: usize = 3;

/// A longer pause than so many mean ones counts as that, for lambda and c_a^2 (as in the engine): one of a Pareto with a shape
/// below 2 would else take a tenth of lambda away for as long as it is in the window, and the queue is empty long before it ends.
const MOST_GAP: f64 = 20.0;
/// What c_a^2 and c_s^2 are taken for at most (as in the engine): the measured one of a Pareto with a shape up to 2 never settles.
const MOST_VARIABILITY: f64 = 8.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    pub(crate) workers: u32,
    pub(crate) arrivals: Arrivals,
    /// Arrivals per worker in the first half, and in the second.
    pub(crate) rates: [f64; 2],
    /// The workers' true speed over what they are told.
    pub(crate) plant: f64,
    pub(crate) feedback: Feedback,
    /// g, r and g', where they are not the law's own.
    pub(crate) gains: Option<(f64, f64, f64)>,
    /// Whether the predictor runs; without it the first rate's speed stays as an offset (QM Fig. 6c).
    pub(crate) predicts: bool,
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
            rates: [0.65, 0.85],
            plant: 1.0,
            feedback: Feedback::PI,
            gains: None,
            predicts: true,
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
}

/// The mean over so many seeds, none of which had a part in the choice of g, r, g' and the clamps (those were 0 to 40 and 2001 to 2020).
pub(crate) fn mean(experiment: &Experiment, seeds: u64) -> Outcome {
    let mut sum = Outcome::default();
    for seed in 1_001..=1_000 + seeds {
        let run = run(experiment, seed);
        sum.error += run.error / seeds as f64;
        sum.effort += run.effort / seeds as f64;
    }
    sum
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
        Some((g, r, recent)) => DelayLaw::with_gains(experiment.feedback, g, r).with_recent(recent),
        None => DelayLaw::new(experiment.feedback),
    };
    let mut window = Window::default();
    let (mut outcome, mut updates) = (Outcome::default(), 0.0);
    for departed in 1..=2 * experiment.windows * WINDOW {
        if departed == experiment.windows * WINDOW {
            queue.rate = rates[1];
        }
        if experiment.oracle {
            queue.speed = model(&Traffic { rate: queue.rate, ..known }, experiment.workers).0;
        }
        window.push(queue.departure());
        if departed % experiment.update != 0 || departed < WINDOW {
            continue;
        }
        let (feed_forward, gain) =
            if experiment.predicts { model(&window.traffic(), experiment.workers) } else { fixed };
        let error = window.delay() - WANTED;
        let seen = Residual {
            feed_forward,
            gain,
            wanted: WANTED,
            error,
            recent_error: window.recent_delay() - WANTED,
            fresh: experiment.update as f64 / WINDOW as f64,
            least: 0.05,
            most: 10.0,
            binding: true,
        };
        let speed = law.next(&seen);
        if !experiment.oracle {
            queue.speed = speed * experiment.plant;
        }
        if departed > WARM_UP * WINDOW {
            updates += 1.0;
            outcome.error += error * error;
            outcome.effort += (speed - seen.feed_forward).abs();
        }
    }
    Outcome { error: outcome.error / updates, effort: outcome.effort / updates }
}

/// What the model says: the speed that D_ref takes, and the gain there.
fn model(traffic: &Traffic, workers: u32) -> (f64, f64) {
    let speed = 1.0 / traffic.service_for_mean(workers, WANTED);
    let response = |speed: f64| {
        Traffic { service_seconds: 1.0 / speed, ..*traffic }.response_seconds(f64::from(workers))
    };
    (speed, 1.0 / slope(response, speed).abs())
}

/// Sums and sums of squares of the last [`WINDOW`] departures.
#[derive(Default)]
struct Window {
    last: VecDeque<Departure>,
    delay: f64,
    /// The delays of the last [`RECENT`] departures.
    recent: VecDeque<f64>,
    gap: [f64; 2],
    service: [f64; 2],
}

impl Window {
    fn push(&mut self, mut departure: Departure) {
        if self.last.len() > 20 {
            departure.gap = departure.gap.min(MOST_GAP * self.gap[0] / self.last.len() as f64);
        }
        self.recent.push_back(departure.delay);
        if self.recent.len() as f64 > RECENT * WINDOW as f64 {
            self.recent.pop_front();
        }
        self.add(&departure, 1.0);
        self.last.push_back(departure);
        if self.last.len() > WINDOW
            && let Some(oldest) = self.last.pop_front()
        {
            self.add(&oldest, -1.0);
        }
    }

    fn add(&mut self, departure: &Departure, sign: f64) {
        self.delay += sign * departure.delay;
        for (sums, value) in [(&mut self.gap, departure.gap), (&mut self.service, departure.service)] {
            sums[0] += sign * value;
            sums[1] += sign * value * value;
        }
    }

    fn delay(&self) -> f64 {
        self.delay / self.last.len() as f64
    }

    fn recent_delay(&self) -> f64 {
        self.recent.iter().sum::<f64>() / self.recent.len() as f64
    }

    fn traffic(&self) -> Traffic {
        let count = self.last.len() as f64;
        let variability =
            |sums: [f64; 2]| (count * sums[1] / (sums[0] * sums[0]) - 1.0).clamp(0.0, MOST_VARIABILITY);
        Traffic {
            rate: count / self.gap[0],
            service_seconds: 1.0,
            arrival_variability: variability(self.gap),
            service_variability: variability(self.service),
        }
    }
}
