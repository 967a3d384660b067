//! The ratio law: `T_i / T_j = delta_i / delta_j` (PR eq. 1), by the order of service instead of by shares of workers.
//!
//! The scheduler serves the class whose first request has the longest normalized response time, `(waited + S_i) w_i`. With `w_i
//! = 1 / delta_i` alone (waiting-time priority) the ratios are right only as the load goes to 1: at lower loads many requests
//! do not wait at all, which brings all means closer together. So the law feeds back by how much a class's T_i / delta_i
//! exceeds that of the other classes; a class with a positive error is served sooner. (The error as printed in PR has the sign
//! of positive feedback.)
//!
//! The proportional part works on a short window, so that noise is corrected within the long window: a class whose normalized
//! mean is above the least one gets a head start, in seconds of normalized response time. That is hybrid proportional delay
//! (Dovrolis, Stiliadis, Ramanathan 2002). (A factor of the weight instead favoured requests that had waited long, not recent
//! ones, and the ratios of windows spread wider by half.) The integral part finds the weights that this load needs. PR's own
//! law, quotas of processes with PID around the M/M/1 allocation, is a comparator in `sim`. It moves whole workers, and each
//! queue is served without regard to the other, so the ratio of the two means varies several times as much.
//!
//! No worker is idle while requests wait, so no ratio beyond that of strict priority can be reached. If such a ratio is
//! promised, the weights stay at the end of their range, and the remaining error shows it (`feasibility.rs`).
//!
//! **With `strict`** a request of a class that is faster than its ratio allows is then held until `hold` after its arrival, so
//! that the ratio is reached although workers are idle meanwhile. The hold is an integral of the same errors. The order of
//! service comes first: a hold follows the errors only while some weight is so high that the order is nearly that of strict
//! priority, and only if the class's own weight is lowered; otherwise the hold fades slowly. So at least one class is never
//! held: two holds that grow together would leave the ratio as it is and the workers idle. The condition is on the weight and
//! not on the error, since an error has both signs by chance, and a hold that grew with one sign only would be too short.
//!
//! **A class that falls silent** leaves the others to be compared with what it reached before, and the errors of a load that
//! changes meanwhile would be taken for errors of the ratio. So what the law learns is *tentative* until each class has
//! departed again. When a class is found to be silent, what is tentative is taken back. If only one other class went on, it was
//! compared with no present class, so this is done for all classes; if several went on, only for the silent class. The verdict
//! on feasibility never counts what is tentative.

use super::feasibility::{self, FeasibilityTest};
use libm::exp;

/// The response times of one class; only its delta while the class is silent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// delta, the promised weight of the class's response time.
    pub delta: f64,
    /// T over a short window (s); 0 where nothing departed.
    pub short: f64,
    /// The departures of the short window.
    pub ends: f64,
    /// T over a long window (s); 0 where nothing departed.
    pub long: f64,
    /// The class's share of the departures.
    pub share: f64,
    /// Departures since the last step, and the sum of their response times (s).
    pub fresh: (f64, f64),
}

/// The law's decision for one class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// The weight of the class's normalized response time.
    pub weight: f64,
    /// The head start that is added to the normalized response time (s).
    pub start: f64,
    /// The least time from arrival to start (s).
    pub hold: f64,
}

/// The law's state, for the classes of one site.
#[derive(Clone, Debug)]
pub struct RatioLaw {
    learned: Learned,
    /// What had been learned when every class had last departed.
    settled: Learned,
    /// Whether each class has departed since then.
    departed: Vec<bool>,
    /// The unit of errors: the mean normalized response time, followed slowly (s).
    unit: f64,
    /// The longest hold (s); 0 where no request is held.
    longest_hold: f64,
}

/// What the law has learned of each class.
#[derive(Clone, Debug)]
struct Learned {
    integral: Vec<f64>,
    hold: Vec<f64>,
    /// The test for errors that the order of service does not correct.
    feasibility: Vec<FeasibilityTest>,
    /// Whether the class has a part in the ratio.
    present: Vec<bool>,
}

use alloc::vec::Vec;

/// The gain of the integral part: an error of 1 over a whole long window adds this to ln w.
const INTEGRAL: f64 = 3.5;
/// The head start for each second by which a class's mean lags.
const PROPORTIONAL: f64 = 20.0;
/// From this number of departures on, a class's head start counts in full.
const ENOUGH: f64 = 100.0;
/// The largest head start, in mean normalized response times. When a burst ends, the class that lagged keeps its head start
/// until the short window has forgotten the burst. Without a bound it would have all of the server meanwhile, and the others
/// would lag in turn.
const LONGEST_START: f64 = 8.0;
/// The gain of the unit per window, and at least per second. The unit is slower than bursts come and go: if it followed each
/// burst, an error between bursts, when response times are short, would count as much as the same part of the long ones in a
/// burst. If a window takes minutes, it holds many bursts.
const SLOW: f64 = 0.1;
const LEAST_SLOW: f64 = 1.0 / 30.0;
/// The least unit, in mean normalized response times. In a unit from before an overload, errors of its first requests would be
/// hundreds, and would drive the weights to the ends of their range, from where the way back is long.
const LEAST_UNIT: f64 = 0.5;
/// The largest |ln w|; two classes this far apart are served nearly by strict priority.
const REACH: f64 = 3.0;
/// From this ln w on the order counts as strict priority. If the ratios cannot be reached, |ln w| is at most the sum of this
/// and `SPENT`.
const NEARLY: f64 = 0.5 * REACH;
const SPENT: f64 = 0.9;
/// An error of 1 over a whole window adds this to a hold, in mean response times.
const HOLD: f64 = 0.5;
/// A window takes this from a hold that is not needed, in mean response times.
const FORGOTTEN: f64 = 0.05;

impl RatioLaw {
    /// The law for `classes` classes. No request is held for longer than `longest_hold` (s); 0 means that the ratios are not
    /// strict.
    pub fn new(classes: usize, longest_hold: f64) -> Self {
        let zeros = alloc::vec![0.0; classes];
        let feasibility = alloc::vec![FeasibilityTest::default(); classes];
        let present = alloc::vec![false; classes];
        let learned = Learned { integral: zeros.clone(), hold: zeros, feasibility, present: present.clone() };
        RatioLaw { settled: learned.clone(), learned, departed: present, unit: 0.0, longest_hold }
    }

    /// The turns of the classes, given what they reached, `elapsed` seconds after the last step; `window` is the number of
    /// departures in a long window.
    pub fn next(&mut self, reached: &[Reached], window: f64, elapsed: f64) -> Vec<Turn> {
        self.take_back_if_silent(reached);
        let lag = lags(reached);
        let fresh = reached.iter().map(|one| one.fresh.0).sum::<f64>() / window;
        let follows = if self.unit > 0.0 { (SLOW * fresh).max(LEAST_SLOW * elapsed).min(1.0) } else { 1.0 };
        let mean = mean_normalized(reached);
        self.unit = (self.unit + follows * (mean - self.unit)).max(LEAST_UNIT * mean);
        let steps = steps(reached, self.unit, window);
        // If the ratios cannot be reached, larger weights change little, and returning from them takes long.
        let reach = if self.learned.is_infeasible() { NEARLY + SPENT } else { REACH };
        let Learned { integral, feasibility, .. } = &mut self.learned;
        for ((own, feasibility), (one, step)) in
            integral.iter_mut().zip(feasibility).zip(reached.iter().zip(&steps))
        {
            *own = (*own + INTEGRAL * step).clamp(-reach, reach);
            feasibility.add(*step, one.share, fresh);
        }
        if self.longest_hold > 0.0 {
            self.learned.hold_back((reached, &steps), fresh, self.longest_hold);
        }
        self.settle(reached);
        let turn = |((one, own), (lag, hold)): ((&Reached, &f64), (&f64, &f64))| Turn {
            weight: exp(*own) / one.delta,
            start: (PROPORTIONAL * lag).min(LONGEST_START * mean),
            hold: *hold,
        };
        let Learned { integral, hold, .. } = &self.learned;
        reached.iter().zip(integral).zip(lag.iter().zip(hold)).map(turn).collect()
    }

    /// If a class falls silent, takes back what was learned since its last departure.
    fn take_back_if_silent(&mut self, reached: &[Reached]) {
        let others = reached.iter().filter(|one| one.is_known()).count();
        for (class, one) in reached.iter().enumerate() {
            if self.learned.present[class] && !one.is_known() {
                if others < 2 {
                    self.learned.clone_from(&self.settled);
                    break;
                }
                self.learned.take_over(class, &self.settled, class);
            }
        }
        self.learned.present = reached.iter().map(Reached::is_known).collect();
    }

    /// The law for classes that were promised anew; `before` has the number of each class in this law, or none.
    pub fn of_known(&self, before: &[Option<usize>], longest_hold: f64) -> RatioLaw {
        let mut law = RatioLaw::new(before.len(), longest_hold);
        for (class, known) in before.iter().enumerate() {
            let Some(known) = *known else { continue };
            law.learned.take_over(class, &self.learned, known);
            law.settled.take_over(class, &self.settled, known);
        }
        law
    }

    /// Settles what was learned, if each class has departed since the last time that it was settled.
    fn settle(&mut self, reached: &[Reached]) {
        self.departed.iter_mut().zip(reached).for_each(|(own, one)| *own |= one.fresh.0 > 0.0);
        if self.departed.iter().zip(reached).all(|(departed, one)| *departed || !one.is_known()) {
            self.departed.fill(false);
            self.settled.clone_from(&self.learned);
        }
    }

    /// Forgets whether the ratios can be reached, since other ratios are promised.
    pub fn judge_anew(&mut self) {
        for learned in [&mut self.learned, &mut self.settled] {
            learned.feasibility.fill(FeasibilityTest::default());
        }
    }

    /// Whether the ratios cannot be reached at this load without leaving work undone.
    pub fn is_infeasible(&self) -> bool {
        self.settled.is_infeasible()
    }
}

impl Learned {
    /// Takes over for `class` what `other` has learned of its class `from`.
    fn take_over(&mut self, class: usize, other: &Learned, from: usize) {
        self.integral[class] = other.integral[from];
        self.hold[class] = other.hold[from];
        self.feasibility[class] = other.feasibility[from];
        self.present[class] = other.present[from];
    }

    /// Moves the holds: a class that is faster than its ratio allows is held once the order of service can do no more.
    fn hold_back(&mut self, (reached, steps): (&[Reached], &[f64]), fresh: f64, longest: f64) {
        let spent = self.is_spent();
        let classes = self.hold.iter_mut().zip(&self.integral);
        for ((hold, own), (one, step)) in classes.zip(reached.iter().zip(steps)) {
            let change =
                if spent && *own < 0.0 { HOLD * step / one.share.max(1e-3) } else { FORGOTTEN * fresh };
            *hold = (*hold - change * one.long).clamp(0.0, longest);
        }
    }

    fn is_infeasible(&self) -> bool {
        let tests = self.feasibility.iter().zip(&self.present).filter(|(_, present)| **present);
        self.is_spent() && feasibility::any(tests.map(|(test, _)| test))
    }

    /// Whether some class is served nearly by strict priority.
    fn is_spent(&self) -> bool {
        self.integral.iter().zip(&self.present).any(|(own, present)| *present && *own >= NEARLY)
    }
}

impl Reached {
    /// Whether the class has a part in the ratio: its response times are known, and it is not silent.
    fn is_known(&self) -> bool {
        self.long > 0.0
    }
}

/// By how much each class's mean normalized response time over the short window is above the least of them (s); zero for a
/// class without departures. The mean of a few departures is mostly chance, so it is drawn towards the mean of all classes.
fn lags(reached: &[Reached]) -> Vec<f64> {
    let known = || reached.iter().filter(|one| one.short > 0.0);
    let ends: f64 = known().map(|one| one.ends).sum();
    let mean = known().map(|one| one.ends * one.short / one.delta).sum::<f64>() / ends.max(1e-9);
    let above = |one: &Reached| (one.short / one.delta - mean) * (one.ends / ENOUGH).min(1.0);
    let least = known().map(above).fold(f64::INFINITY, f64::min);
    reached.iter().map(|one| if one.short > 0.0 { above(one) - least } else { 0.0 }).collect()
}

/// The mean normalized response time.
fn mean_normalized(reached: &[Reached]) -> f64 {
    reached.iter().map(|one| one.share * one.long / one.delta).sum()
}

/// What the departures since the last step add to the integral parts; `window` is the length of the long window. Errors are
/// differences, not logarithms, in units of a mean that moves slowly: so each minute counts in proportion to its requests and
/// their response times, and the means over all requests have the ratio. A class of which no response time is known has no part
/// in it.
///
/// The errors of all classes need not add up to 0, since the mean is of the past. Each class bears a part of the sum in
/// proportion to its share. Then an error of the mean is the same part of the response times of each class, and changes no
/// ratio. If all classes bore equal parts, a rare class would pay for the many departures of the others.
fn steps(reached: &[Reached], unit: f64, window: f64) -> Vec<f64> {
    let mean = mean_normalized(reached);
    if unit <= 0.0 {
        return alloc::vec![0.0; reached.len()];
    }
    let step = |one: &Reached| (one.fresh.1 / one.delta - one.fresh.0 * mean) / unit / window;
    let known = reached.iter().filter(|one| one.is_known());
    let common = known.map(step).sum::<f64>();
    reached.iter().map(|one| if one.is_known() { step(one) - one.share * common } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use libm::{fabs, log};

    fn reached(times: [f64; 2]) -> [Reached; 2] {
        let one = |delta: f64, time: f64| Reached {
            delta,
            short: time,
            ends: 250.0,
            long: time,
            share: 0.5,
            fresh: (10.0, 10.0 * time),
        };
        [one(1.0, times[0]), one(3.0, times[1])]
    }

    /// ln of the first class's weight over that by its delta alone, relative to the second's, and its head start (s).
    fn favour(turns: &[Turn]) -> (f64, f64) {
        (log(turns[0].weight / (3.0 * turns[1].weight)), turns[0].start - turns[1].start)
    }

    #[test]
    fn what_is_as_promised_is_left_alone() {
        let mut law = RatioLaw::new(2, 0.0);
        for _ in 0..100 {
            let turns = law.next(&reached([0.1, 0.3]), 1000.0, 0.1);
            let (weight, start) = favour(&turns);
            assert!(fabs(weight) < 1e-9 && fabs(start) < 1e-9 && !law.is_infeasible());
        }
    }

    #[test]
    fn a_class_that_is_too_slow_gets_more_and_the_integral_stays_when_it_is_not() {
        let mut law = RatioLaw::new(2, 0.0);
        let (_, start) = favour(&law.next(&reached([0.11, 0.3]), 1000.0, 0.1));
        assert!((0.19..0.21).contains(&start), "0.01 s behind: {start}");
        let (_, start) = favour(&law.next(&reached([0.2, 0.3]), 1000.0, 0.1));
        assert!((1.19..1.21).contains(&start), "0.1 s behind, at a mean of 0.15 s: {start}");
        (0..50).for_each(|_| {
            law.next(&reached([0.2, 0.3]), 1000.0, 0.1);
        });
        let (kept, start) = favour(&law.next(&reached([0.1, 0.3]), 1000.0, 0.1));
        assert!((0.2..3.0).contains(&kept) && fabs(start) < 1e-9, "{kept}, {start}");
        assert!(favour(&law.next(&reached([0.05, 0.3]), 1000.0, 0.1)).1 < 0.0);
    }

    #[test]
    fn a_class_that_nothing_is_known_of_does_not_stop_the_others() {
        let mut law = RatioLaw::new(3, 10.0);
        let [first, second] = reached([0.1, 0.11]);
        let all = [first, second, Reached { delta: 2.0, ..Reached::default() }];
        let turns = (0..2000).map(|_| law.next(&all, 1000.0, 0.1)).last().expect("some");
        assert!(favour(&turns).0 > 1.0 && law.is_infeasible() && turns[1].hold > 0.0, "{turns:?}");
        assert_eq!(turns[2], Turn { weight: 0.5, start: 0.0, hold: 0.0 });
    }

    #[test]
    fn a_class_that_falls_silent_takes_from_several_others_nothing_that_they_have_learned() {
        let [first, second] = reached([0.2, 0.3]);
        let rare = |share: f64| Reached { share, fresh: (0.0, 0.0), ..second };
        let silent = Reached { delta: 3.0, ..Reached::default() };
        let mut three = RatioLaw::new(3, 0.0);
        (0..50).for_each(|_| {
            three.next(&[first, second, rare(0.001)], 1000.0, 0.1);
        });
        let before = three.learned.integral.clone();
        assert!(before[0] - before[1] > 0.1, "{before:?}");
        three.next(&[first, second, silent], 1000.0, 0.1);
        assert!(three.learned.integral[0] >= before[0] && three.learned.integral[2] == 0.0);
        // A class that is alone with the silent one was compared only with that.
        let mut two = RatioLaw::new(2, 0.0);
        (0..50).for_each(|_| {
            two.next(&[first, rare(0.5)], 1000.0, 0.1);
        });
        assert!(two.learned.integral[0] > 0.1, "{two:?}");
        two.next(&[first, silent], 1000.0, 0.1);
        assert!(fabs(two.learned.integral[0]) < 0.05, "{two:?}");
    }

    #[test]
    fn what_was_learned_follows_the_classes_into_another_order() {
        let mut law = RatioLaw::new(2, 0.0);
        (0..50).for_each(|_| {
            law.next(&reached([0.2, 0.3]), 1000.0, 0.1);
        });
        let Learned { integral, .. } = law.learned.clone();
        let turned = law.of_known(&[Some(1), None, Some(0)], 0.0);
        assert_eq!(turned.learned.integral, [integral[1], 0.0, integral[0]]);
    }

    #[test]
    fn at_the_end_of_the_weights_it_is_infeasible_and_strict_holds_the_slower() {
        for longest in [0.0, 0.3, 10.0] {
            let mut law = RatioLaw::new(2, longest);
            let turns = (0..2000).map(|_| law.next(&reached([0.1, 0.11]), 1000.0, 0.1)).last().expect("some");
            assert!(law.is_infeasible());
            assert_eq!(turns[0].hold, 0.0, "the class that is too slow is not held");
            assert_eq!(turns[1].hold.min(0.3), longest.min(0.3));
            assert!(turns[1].hold <= longest, "a hold is never longer than its bound");
        }
    }
}
