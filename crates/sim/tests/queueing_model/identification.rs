//! The process gain from data alone (QM 2.2): the sign of a small change of the speed is drawn anew in every window, and ARX of
//! first order by least squares, `d(n) = a d(n-1) + b du(n)`, gives b / (1 - a). (The paper writes du(n-1) for the change that
//! is made at the end of window n - 1.)

use crate::queue::{Arrivals, Queue};
use plimsoll_core::random::Random;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Identification {
    /// The change, up or down.
    pub(crate) excitation: f64,
    /// Departures of a window.
    pub(crate) window: usize,
    pub(crate) windows: usize,
}

/// dD/d mu as found around lambda = 1, mu = 1.5: one worker, Poisson arrivals, D_ref = 2; and the variance of the windows' mean
/// delay.
pub(crate) fn slope(run: &Identification, seed: u64) -> (f64, f64) {
    let mut signs = Random::new(seed ^ 0x5157);
    let mut queue = Queue::new(seed, 1, Arrivals::Poisson, 1.0);
    queue.speed = 1.5;
    for _ in 0..10_000 {
        queue.departure();
    }
    let samples: Vec<(f64, f64)> = (0..run.windows)
        .map(|_| {
            let change = if signs.below(2) == 0 { run.excitation } else { -run.excitation };
            queue.speed = 1.5 + change;
            let sum: f64 = (0..run.window).map(|_| queue.departure()).sum();
            (change, sum / run.window as f64)
        })
        .collect();
    let (a, b) = arx(&samples);
    let mean = samples.iter().map(|(_, delay)| delay).sum::<f64>() / samples.len() as f64;
    let squares: f64 = samples.iter().map(|(_, delay)| (delay - mean).powi(2)).sum();
    (b / (1.0 - a), squares / samples.len() as f64)
}

/// a and b, means taken away.
fn arx(samples: &[(f64, f64)]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean_change = samples.iter().map(|(change, _)| change).sum::<f64>() / count;
    let mean_delay = samples.iter().map(|(_, delay)| delay).sum::<f64>() / count;
    let (mut dd, mut du, mut uu, mut yd, mut yu) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for pair in samples.windows(2) {
        let (before, change, delay) =
            (pair[0].1 - mean_delay, pair[1].0 - mean_change, pair[1].1 - mean_delay);
        dd += before * before;
        du += before * change;
        uu += change * change;
        yd += delay * before;
        yu += delay * change;
    }
    let determinant = dd * uu - du * du;
    ((yd * uu - yu * du) / determinant, (yu * dd - yd * du) / determinant)
}
