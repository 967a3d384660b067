//! QM's figures 3, 4, 6c and 6d.

use crate::experiment::{Experiment, Outcome, mean};
use crate::identification::{Identification, slope};
use crate::queue::Arrivals;

fn halves(name: &str, experiment: &Experiment) -> Outcome {
    let found = mean(experiment, 20);
    let [(first, of_first), (second, of_second)] = found.halves;
    println!(
        "{name}, s = {}: error {first:.3}, variance {of_first:.4}; then {second:.3}, {of_second:.4}",
        experiment.workers
    );
    found
}

/// Fig. 6c: what was right for the first rate leaves a steady error after the step, and a larger variance. Where the
/// proportional correction of the paper's gain, 1 / D_ref^2, stands still, `x = 1 / (0.5 - 0.2 + (x - 2) / 4)`: x = 2.44.
#[test]
fn a_fixed_offset_leaves_a_steady_error() {
    let fixed = halves("fixed offset, P", &Experiment::new(1, Arrivals::Poisson).fixed_offset());
    let predicted = halves("predictor, PI", &Experiment::new(1, Arrivals::Poisson));
    let [(before, of_before), (after, of_after)] = fixed.halves;
    assert!(before.abs() < 0.03, "{before}");
    assert!((0.3..0.5).contains(&after), "{after}");
    assert!(of_after > 1.3 * of_before, "{of_after} after {of_before}");
    let [_, (beside, of_beside)] = predicted.halves;
    assert!(beside.abs() < 0.06 && of_beside < 0.5 * of_after, "{beside}, {of_beside}");
}

/// Fig. 6d: neither the rate's step nor the change of the distribution with it is seen in the mean. What was right for the
/// first rate, corrected by P, is one twin; the other, below, follows the rate.
#[test]
fn from_poisson_to_pareto_within_a_run() {
    for (workers, shape, most) in [(1, 2.0, 0.03), (1, 1.5, 0.04), (8, 2.0, 0.08)] {
        let both = Experiment::new(workers, Arrivals::Poisson).to(Arrivals::Pareto(shape));
        let found = halves(&format!("to Pareto {shape}, predictor, PI"), &both);
        let fixed = halves(&format!("to Pareto {shape}, fixed offset, P"), &both.fixed_offset());
        let [(before, _), (after, of_after)] = found.halves;
        assert!(before.abs() < 0.05 && after.abs() < 0.12, "{before}, then {after}");
        assert!((0.002..most).contains(&of_after), "{of_after}");
        let [_, (offset, of_offset)] = fixed.halves;
        assert!(offset.abs() > 0.2 && of_offset > 2.0 * of_after, "{offset}, {of_offset} beside {of_after}");
    }
}

/// The same with P of the paper's gain, which leaves a part of the model's error. The predictor that follows the rate and
/// takes the arrivals for Poisson's is no worse, and better at 1.5: for gaps without a variance the formula asks for more
/// than they need. So it is the rate that has to be followed, as the fixed offset above shows.
#[test]
fn the_rate_is_what_the_predictor_has_to_follow() {
    for (shape, sees, blind) in [(2.0, -0.32..-0.12, -0.32..-0.12), (1.5, -0.36..-0.16, -0.1..0.12)] {
        let both = Experiment::new(1, Arrivals::Poisson).to(Arrivals::Pareto(shape)).papers_p();
        let [seen, unseen] = [both, both.blind_to_variability()].map(|one| {
            halves(&format!("to Pareto {shape}, the paper's P, {}", one.sees_variability), &one).halves
        });
        assert!(seen[0].0.abs() < 0.06 && unseen[0].0.abs() < 0.06, "{seen:?}, {unseen:?}");
        assert!(sees.contains(&seen[1].0) && blind.contains(&unseen[1].0), "{seen:?}, {unseen:?}");
    }
}

/// Fig. 6a: Pareto's gaps with the predictor alone, "quite well by itself". By the measured c_a^2 delays are a fifth too
/// short, at both rates; feedback takes that away.
#[test]
fn the_predictor_alone_before_pareto_arrivals() {
    for (shape, short, blind) in [(2.0, -0.55..-0.3, -0.55..-0.3), (1.5, -0.6..-0.35, -0.15..0.15)] {
        let both = Experiment::new(1, Arrivals::Pareto(shape));
        let alone = both.predictor_alone();
        let of = |name: &str, one: &Experiment| halves(&format!("Pareto {shape}, {name}"), one).halves;
        let (alone, unseen) =
            (of("predictor alone", &alone), of("Poisson's predictor alone", &alone.blind_to_variability()));
        let fed = of("predictor, PI", &both);
        for half in [0, 1] {
            assert!(
                short.contains(&alone[half].0) && blind.contains(&unseen[half].0),
                "{alone:?}, {unseen:?}"
            );
            assert!((-0.1..0.05).contains(&fed[half].0) && fed[half].1 < 0.5 * alone[half].1, "{fed:?}");
        }
    }
}

const WINDOWS: usize = 40;

/// Fig. 3 and 4, over the window's size: the sample variance falls as one over it, and the error of the slope is its root over
/// the excitation. A small excitation so needs a long window; a large one's variance stays at that of its own effect, and its
/// slope at the chord's.
#[test]
fn the_slope_is_found_as_the_window_grows() {
    let found = |excitation: f64, window: usize| {
        let run = |seed| slope(&Identification { excitation, window, windows: WINDOWS }, seed);
        let runs: Vec<(f64, f64)> = (1..=10).map(run).collect();
        let count = runs.len() as f64;
        let chord = -1.0 / (0.25 - excitation * excitation);
        let off = (runs.iter().map(|(slope, _)| (slope - chord).powi(2)).sum::<f64>() / count).sqrt();
        let variance = runs.iter().map(|(_, variance)| variance).sum::<f64>() / count;
        let own = (chord * excitation).powi(2);
        println!(
            "excitation {excitation}, window {window}: variance {variance:.5}, its own {own:.5}, off {off:.2}"
        );
        (off, variance, own)
    };
    let [short, long] = [2_000, 20_000].map(|window| [0.01, 0.1].map(|excitation| found(excitation, window)));
    for [small, large] in [short, long] {
        let chance = (small.1 - small.2).sqrt() / (WINDOWS as f64).sqrt();
        for (excitation, off) in [(0.01, small.0), (0.1, large.0)] {
            let error = chance / excitation;
            assert!((0.5..1.9).contains(&(off / error)), "{off} beside {error} at {excitation}");
        }
    }
    assert!(long[0].1 < 0.2 * short[0].1, "{short:?}, {long:?}");
    assert!((0.9..1.2).contains(&(long[1].1 / long[1].2)), "{long:?}");
}
