//! Service times with known moments, drawn here: the truth is not to be judged by its own draws.

use plimsoll_core::random::Random;

/// A distribution of service times (s).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    Exponential { mean: f64 },
    Deterministic { mean: f64 },
    BoundedPareto { shape: f64, least: f64, most: f64 },
    Lognormal { log_mean: f64, log_deviation: f64 },
}

impl Service {
    pub(crate) fn draw(self, random: &mut Random) -> f64 {
        match self {
            Service::Exponential { mean } => random.exponential(mean),
            Service::Deterministic { mean } => mean,
            Service::BoundedPareto { shape, least, most } => {
                let beyond = random.uniform() * (1.0 - (least / most).powf(shape));
                least * (1.0 - beyond).powf(-1.0 / shape)
            }
            // Box and Muller's normal.
            Service::Lognormal { log_mean, log_deviation } => {
                let radius = (2.0 * random.exponential(1.0)).sqrt();
                let normal = radius * (std::f64::consts::TAU * random.uniform()).cos();
                (log_mean + log_deviation * normal).exp()
            }
        }
    }

    /// E S, E S^2, E S^3.
    pub(crate) fn moments(self) -> [f64; 3] {
        [1, 2, 3].map(|k| {
            let power = f64::from(k);
            match self {
                Service::Exponential { mean } => f64::from((1..=k).product::<i32>()) * mean.powi(k),
                Service::Deterministic { mean } => mean.powi(k),
                Service::BoundedPareto { shape, least, most } => {
                    let span = most.powf(power - shape) - least.powf(power - shape);
                    shape * least.powf(shape) * span / ((power - shape) * (1.0 - (least / most).powf(shape)))
                }
                Service::Lognormal { log_mean, log_deviation } => {
                    (power * log_mean + (power * log_deviation).powi(2) / 2.0).exp()
                }
            }
        })
    }
}
