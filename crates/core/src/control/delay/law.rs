//! The delay law: a model predicts how much of the actuator a delay takes, and P or PI corrects the residual (QM 2).
//!
//! `u(k) = feed-forward(k) + U(k)`, and U is QM eq. 4, `U(k) = U(k-1) + g (e(k) - r e(k-1))`, e being measured minus wanted.
//! More of the actuator shortens the delay: it is a quota of workers in the engine, and the speed of the workers in the
//! paper's experiments. g is in units of `1 / |slope|`, slope being dD/du of the model at D_ref, so that one pair of
//! constants fits every load.
//!
//! **Gains.** The delay measured is the mean of the last N departures, renewed every n. The queue itself settles much faster
//! than that window, so the loop is `L(z) = g z^-1 (1 - z^-M) / (M (1 - z^-1))`, M = N / n: an integrator that forgets. Its
//! phase reaches -pi only beside the zeros of the window, where its gain is small, so that g may be large: P alone is stable
//! up to g = M, where the paper takes k = 0.25 at a slope of -4, g = 1. What bounds g is the time in which the queue settles.
//! g = 4 and r = 0.9 have a true gain margin above 3 with a queue that settles in 3 updates (30 departures; tested); QM's
//! queue with one worker settles in 1 to 2. A queue in front of 8 workers at a load of 0.9 takes 40 updates, and no margin
//! is claimed there. Short updates have the effect of QM Fig. 5: noise in a window is corrected before the window ends. By
//! theory about 0.9 / g of the variance of the window's mean is left if the noise is new with every update; a quarter was
//! measured at g = 4.
//!
//! **Recent departures count twice.** The change of a queue that settles within 400 departures shows in the mean of a window
//! of 1,000 departures only when half of the window is over. So the error of the last twentieth, `e'`, is added with a gain
//! g' of its own: `g e + g' e'` takes the place of `g e`. The long window holds the error still to be corrected, and the
//! short one the error being added; together they act as a proportional and a derivative part, without a difference of noisy
//! means. With g' = 1 the true margin stays above 3 with a queue of 1 to 3 updates, and the error in front of 8 workers is a
//! third of what g alone leaves (`crates/sim/tests/queueing_model/main.rs`).
//!
//! **Gains are per window, not per update.** g and r are those of a loop that updates once a window (n = N). The proportional
//! part is the same at any n; for the integral part 1 - r is multiplied by n / N.
//!
//! **Anti-windup.** The integral is a low-pass of the correction that was applied, which is `applied - feed-forward`:
//! `I += (1 - r) (n/N) (applied - feed-forward - I)`. Where nothing is clamped and no error is negative, that is eq. 4; where
//! the actuator is clamped, I converges to the correction that was applied. In velocity form a clamped U would forget its
//! proportional part instead, and noise would move it away from the end of its range. While higher ranks leave the class far
//! less than it asks for, the integral stands still: what it misses then is no effect of what it asked for.
//!
//! **A delay that is too short moves the actuator less than one that is too long.** Delay against capacity is a hyperbola (QM
//! Fig. 2), so the capacity that may be taken from a class whose delay is below D_ref is bounded: by `1/D_ref - 1/(D_ref +
//! x)` for M/M/1 and a feedback of -x. As x grows this approaches 1/D_ref, beyond which the queue would be unstable. So P is
//! linear for positive errors and follows the hyperbola for negative ones.
//!
//! **Errors that vary leave a small one.** The integral takes in P, whose mean is above zero where errors vary about zero. With
//! a deviation s of the relative error PI comes to rest at about `-g s^2 / 2`, -2.2 % of D_ref at s = 0.104: on the safe side
//! of the promise. An integral without this bias was tried: where 5 % may be late 4.4 % were, instead of 4.1, and after a
//! slow-down 0.9956 were in time, below the bound of 0.996.

use crate::telemetry::status::DelayTerms;

/// The feedback that is added to the feed-forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// No feedback: the quota is the model's prediction.
    None,
    /// A part of the error. A lasting error is reduced to 1 / (1 + g) of itself.
    P,
    /// A part of the error and its integral, so that no lasting error stays but what errors that vary leave below D_ref.
    #[default]
    PI,
}

/// The law's inputs when a window is renewed.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// The model's prediction for D_ref, in units of the actuator.
    pub feed_forward: f64,
    /// 1 / |dD/du| of the model at D_ref: units of the actuator per unit of delay.
    pub gain: f64,
    /// D_ref, the delay that was promised, in the unit of `error`.
    pub wanted: f64,
    /// Measured minus wanted: positive asks for more.
    pub error: f64,
    /// The same error over the most recent departures alone; in the engine over the last 50 of contended times
    /// (`contention.rs`).
    pub recent_error: f64,
    /// n / N: the share of the window that is new.
    pub fresh: f64,
    /// The least value that the actuator may be given.
    pub least: f64,
    /// The greatest value that the actuator may be given.
    pub most: f64,
    /// Whether the actuator limited the class. If not, it did not cause the error, and the integral stands still.
    pub binding: bool,
}

/// State of the law.
#[derive(Clone, Debug)]
pub struct DelayLaw {
    feedback: Feedback,
    g: f64,
    r: f64,
    recent: f64,
    integral: f64,
}

/// g, in units of 1 / |slope|.
const G: f64 = 4.0;
/// r, of a loop that updates once a window.
const R: f64 = 0.9;
/// g', of the recent departures; in the same units as g.
const G_RECENT: f64 = 1.0;

impl DelayLaw {
    /// A law with the module's constants.
    pub fn new(feedback: Feedback) -> Self {
        DelayLaw::with_gains(feedback, (G, G_RECENT), R)
    }

    /// The law with gain `g` (1 / |slope|), the gain `recent` for the error of the recent departures, which is 0 in the paper's
    /// law, and zero `r` (per window).
    pub fn with_gains(feedback: Feedback, (g, recent): (f64, f64), r: f64) -> Self {
        DelayLaw { feedback, g, r, recent, integral: 0.0 }
    }

    /// The next value of the actuator.
    pub fn next(&mut self, seen: &Residual) -> f64 {
        let bounded = |wanted: f64| wanted.clamp(seen.least, seen.most.max(seen.least));
        if self.feedback == Feedback::None {
            return bounded(seen.feed_forward);
        }
        let applied = bounded(seen.feed_forward + self.integral + self.proportional(seen));
        if self.feedback == Feedback::PI && seen.binding {
            let share = ((1.0 - self.r) * seen.fresh).clamp(0.0, 1.0);
            self.integral += share * (applied - seen.feed_forward - self.integral);
        }
        applied
    }

    /// The proportional part: linear where the delay is too long; where it is too short, a hyperbola that ends at
    /// `gain wanted`.
    fn proportional(&self, seen: &Residual) -> f64 {
        let asked = self.g * seen.error + self.recent * seen.recent_error;
        let short = (-asked).max(0.0) / seen.wanted;
        seen.gain * asked / (1.0 + short)
    }

    /// The terms after an update that saw this.
    pub fn terms(&self, seen: &Residual) -> DelayTerms {
        let gain = self.g * seen.gain;
        DelayTerms { predicted: seen.feed_forward, error: seen.error, gain, integral: self.integral }
    }
}

/// Workers per unit of error: one over the slope, at the operating point.
pub(super) fn gain(servers: f64, reached: impl Fn(f64) -> f64) -> f64 {
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
    use alloc::collections::VecDeque;
    use core::f64::consts::PI as HALF_TURN;
    use libm::{cos, exp, fabs, sin};

    const FRESH: f64 = 0.01;
    /// The part of the window that counts as recent.
    const RECENT: f64 = 0.05;

    fn seen(error: f64) -> Residual {
        Residual {
            feed_forward: 1.5,
            gain: 0.25,
            wanted: 2.0,
            error,
            recent_error: 0.0,
            fresh: FRESH,
            least: 0.0,
            most: 100.0,
            binding: true,
        }
    }

    /// The true gain margin of the loop with a queue that settles as e^(-k / lag), k in updates.
    fn gain_margin(g: f64, r: f64, lag: f64) -> f64 {
        margin_with_recent((g, 0.0), r, lag)
    }

    fn margin_with_recent((g, recent): (f64, f64), r: f64, lag: f64) -> f64 {
        let mul = |a: (f64, f64), b: (f64, f64)| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
        let div = |a: (f64, f64), b: (f64, f64)| {
            let size = b.0 * b.0 + b.1 * b.1;
            let (re, im) = mul(a, (b.0, -b.1));
            (re / size, im / size)
        };
        let minus = |a: f64, w: f64| (1.0 - a * cos(w), a * sin(w));
        let pole = exp(-1.0 / lag);
        let open_loop = |w: f64| {
            let mean = |share: f64| {
                let (re, im) = div(minus(1.0, w * share / FRESH), minus(1.0, w));
                (re * FRESH / share, im * FRESH / share)
            };
            let (long, short) = (mean(1.0), mean(RECENT));
            let window = (g * long.0 + recent * short.0, g * long.1 + recent * short.1);
            let queue = div((1.0 - pole, 0.0), minus(pole, w));
            // 1 + share z^-1 / (1 - z^-1)
            let controller = div(minus(1.0 - (1.0 - r) * FRESH, w), minus(1.0, w));
            mul(mul((cos(w), -sin(w)), window), mul(queue, controller))
        };
        let (mut largest, mut last) = (0.0_f64, open_loop(1e-6));
        for step in 1..=50_000 {
            let part = f64::from(step) / 50_000.0;
            let here = open_loop(HALF_TURN * part * part);
            if last.1 * here.1 < 0.0 && here.0 < 0.0 {
                largest = largest.max(-here.0);
            }
            last = here;
        }
        1.0 / largest
    }

    #[test]
    fn the_terms_add_up_to_what_the_law_asks_for() {
        let mut law = DelayLaw::with_gains(Feedback::PI, (4.0, 0.0), 0.9);
        law.next(&seen(0.1));
        let before = law.integral;
        let asked = law.next(&seen(0.2));
        let terms = law.terms(&seen(0.2));
        assert!(before > 0.0 && terms.integral > before, "{terms:?}");
        assert!(
            (terms.predicted + terms.gain * terms.error + before - asked).abs() < 1e-12,
            "{terms:?}, {asked}"
        );
    }

    #[test]
    fn the_true_gain_margin_is_at_least_three() {
        let (quick, queue) = (gain_margin(G, R, 0.01), gain_margin(G, R, 3.0));
        assert!((3.0..5.0).contains(&queue) && quick > 10.0, "{quick}, {queue}");
        let (quick, queue) =
            (margin_with_recent((G, G_RECENT), R, 1.0), margin_with_recent((G, G_RECENT), R, 3.0));
        assert!((3.0..5.0).contains(&queue) && (3.0..5.0).contains(&quick), "recent: {quick}, {queue}");
        // Close to M / g as derived for P alone.
        let p_alone = gain_margin(1.0, 1.0, 0.01);
        assert!((95.0..105.0).contains(&p_alone), "{p_alone}");
        assert!(gain_margin(4.0 * G, R, 3.0) < 1.0, "the check can fail");
    }

    /// A negative one moves P along the hyperbola, where eq. 4 is linear.
    #[test]
    fn what_moves_by_errors_that_are_not_negative_is_equation_4_of_the_paper() {
        let mut law = DelayLaw::with_gains(Feedback::PI, (1.5, 0.0), 0.6);
        let errors = [0.3, 0.1, 0.7, 0.0, 0.2];
        let mut last = (0.0, 0.0);
        for error in errors {
            let adjusted = (law.next(&seen(error)) - 1.5) / 0.25;
            let printed = last.0 + 1.5 * (error - (1.0 - 0.4 * FRESH) * last.1);
            assert!(fabs(adjusted - printed) < 1e-12, "{adjusted} instead of {printed}");
            last = (adjusted, error);
        }
        let adjusted = (law.next(&seen(-0.2)) - 1.5) / 0.25;
        let printed = last.0 + 1.5 * (-0.2 - (1.0 - 0.4 * FRESH) * last.1);
        assert!((0.01..0.1).contains(&(adjusted - printed)), "{adjusted} instead of {printed}");
    }

    /// Relative errors one deviation above and below a mean of `-g s^2 / 2` leave the integral where it is.
    #[test]
    fn errors_that_vary_come_to_rest_below_what_was_promised() {
        let law = DelayLaw::with_gains(Feedback::PI, (G, 0.0), R);
        let moves = |part: f64| {
            let (deviation, wanted) = (0.104, seen(0.0).wanted);
            let mean = -part * G * deviation * deviation / 2.0;
            [mean + deviation, mean - deviation]
                .map(|error| law.proportional(&seen(error * wanted)))
                .iter()
                .sum::<f64>()
        };
        assert!(moves(0.0) > 0.05 && moves(0.75) > 0.0 && moves(1.25) < 0.0, "{}", moves(1.0));
    }

    /// A plant with the slope that the model says and `missing` units of the actuator less than it says, behind its window:
    /// the error that is left.
    fn left(feedback: Feedback, missing: f64) -> f64 {
        let mut law = DelayLaw::new(feedback);
        let mut window: VecDeque<f64> = (0..100).map(|_| 0.0).collect();
        for _ in 0..20_000 {
            let mean = window.iter().sum::<f64>() * FRESH;
            let given = law.next(&seen(mean)) - 1.5 - missing;
            window.pop_front();
            window.push_back(-4.0 * given);
        }
        window.iter().sum::<f64>() * FRESH
    }

    #[test]
    fn p_leaves_a_part_of_what_lasts_and_pi_nothing() {
        assert!(fabs(left(Feedback::None, 0.1) - 0.4) < 1e-9);
        assert!(fabs(left(Feedback::P, 0.1) - 0.4 / (1.0 + G)) < 1e-6);
        assert!(fabs(left(Feedback::PI, 0.1)) < 1e-3);
    }

    #[test]
    fn at_the_end_of_the_range_nothing_winds_up() {
        let mut law = DelayLaw::new(Feedback::PI);
        let short = |error: f64| Residual { most: 2.0, ..seen(error) };
        for _ in 0..100_000 {
            assert_eq!(law.next(&short(50.0)), 2.0);
        }
        assert!(fabs(law.integral - 0.5) < 1e-3, "I is what was applied, {}", law.integral);
        assert!(law.next(&short(-0.5)) < 2.0, "and is left at once");
        // Where the actuator does not limit, the error teaches nothing.
        let before = law.integral;
        law.next(&Residual { binding: false, ..seen(1.0) });
        assert_eq!(law.integral, before);
    }

    #[test]
    fn a_short_delay_never_costs_the_queue_its_stability() {
        let mut law = DelayLaw::with_gains(Feedback::P, (50.0, 0.0), R);
        // lambda = 1, D_ref = 2: the fewest that is stable is 1, and no delay is shorter than 0.
        assert!(law.next(&seen(-2.0)) > 1.0);
        assert!(law.next(&seen(-0.01)) < 1.5 && law.next(&seen(0.01)) > 1.5);
    }
}
