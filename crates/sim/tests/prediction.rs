//! The rate forecast of the paper AC (section 4.1) on recorded counts, which no constant was chosen on the second half of: its
//! error against that of the last value, and against chains of other sizes.
//!
//! The first half of the counts is learned from, the second is judged. Errors are the mean of the absolute error and the root
//! of the mean square, as parts of the mean rate.

use flate2::read::GzDecoder;
use plimsoll_core::admission::aces::{RateForecast, RequestedWork};
use plimsoll_core::random::Random;
use std::io::Read;

const DAY: usize = 24 * 60;

/// Counts per minute.
fn counts(file: &[u8]) -> Vec<f64> {
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    text.split_whitespace().map(|count| count.parse().expect("a count")).collect()
}

fn nasa() -> Vec<f64> {
    counts(include_bytes!("data/nasa-1995-four-weeks-per-minute.txt.gz"))
}

fn world_cup() -> Vec<f64> {
    counts(include_bytes!("data/worldcup-1998-two-weeks-per-minute.txt.gz"))
}

/// The mean absolute error and the root of the mean square.
#[derive(Clone, Copy, Debug)]
struct Errors {
    absolute: f64,
    square: f64,
    /// What is predicted too much, on average.
    bias: f64,
}

/// The errors of a predictor over the second half; it is told each count after it has predicted it.
fn errors(counts: &[f64], mut predict_and_learn: impl FnMut(usize, f64) -> f64) -> Errors {
    let half = counts.len() / 2;
    let (mut absolute, mut square, mut bias) = (0.0, 0.0, 0.0);
    for (minute, count) in counts.iter().enumerate() {
        let error = predict_and_learn(minute, *count) - count;
        if minute >= half {
            absolute += error.abs();
            square += error * error;
            bias += error;
        }
    }
    let (judged, all) = ((counts.len() - half) as f64, counts[half..].iter().sum::<f64>());
    Errors { absolute: absolute / all, square: (square / judged).sqrt() / (all / judged), bias: bias / all }
}

fn last_value(counts: &[f64]) -> Errors {
    let mut last = 0.0;
    errors(counts, |_, count| std::mem::replace(&mut last, count))
}

/// Exponential smoothing by a half, which is what the engine predicts with until its matrix is trusted.
fn smoothing(counts: &[f64]) -> Errors {
    let mut smoothed = 0.0;
    errors(counts, |_, count| {
        let predicted = smoothed;
        smoothed += 0.5 * (count - smoothed);
        predicted
    })
}

/// Each request is kept by this chance: what a period of a second, or a small site, has of the same rates.
fn thinned(counts: &[f64], chance: f64) -> Vec<f64> {
    let mut random = Random::new(3);
    let kept = |count: &f64| (0..*count as u64).filter(|_| random.uniform() < chance).count() as f64;
    counts.iter().map(kept).collect()
}

/// The engine's own forecast, with periods of a minute.
fn forecast(counts: &[f64]) -> Errors {
    let (mut forecast, mut next) = (RateForecast::default(), 0.0);
    let hour = |minute: usize| minute / 60 % 24;
    errors(counts, |minute, count| {
        let predicted = next;
        // A request of a second each: the work that is predicted is the count.
        let requested = RequestedWork { requests: count as u64, seconds: count };
        next = forecast.turn(&requested, 60.0, (hour(minute), hour(minute + 1)));
        predicted
    })
}

/// A chain as the paper has it, without the adjustment: `2 half + 1` states of steps of 10 %, and a matrix for each of so many
/// hours.
fn chain(counts: &[f64], hours: usize, half: usize) -> Errors {
    let states = 2 * half + 1;
    let mut seen = vec![0.0_f64; hours * states * states];
    let (mut last, mut state) = (0.0, half);
    errors(counts, |minute, count| {
        let row = (minute / 60 % hours * states + state) * states;
        let all: f64 = seen[row..row + states].iter().sum();
        let mean: f64 =
            (0..states).map(|to| (to as f64 - half as f64) * seen[row + to]).sum::<f64>() / all.max(1.0);
        let predicted = last * (1.0 + 0.1 * mean);
        let step = if last > 0.0 { ((count / last - 1.0) / 0.1).round() } else { 0.0 };
        state = (step.clamp(-(half as f64), half as f64) + half as f64) as usize;
        seen[row + state] += 1.0;
        last = count;
        predicted
    })
}

fn between(what: &str, value: f64, bounds: std::ops::RangeInclusive<f64>) {
    println!("{what}: {value:.3}");
    assert!(bounds.contains(&value), "{what}: {value:.4}, not in {bounds:?}");
}

#[test]
fn the_mean_absolute_error_is_below_the_last_values() {
    for (name, counts, absolute, square) in
        [("NASA", nasa(), 0.86..=0.89, 0.86..=0.89), ("World Cup", world_cup(), 0.97..=1.0, 1.0..=1.08)]
    {
        let (own, last, printed) = (forecast(&counts), last_value(&counts), chain(&counts, 24, 1));
        println!("{name}: {own:?}, the last value {last:?}, as printed {printed:?}");
        between(
            &format!("{name}, absolute error, of the last value's"),
            own.absolute / last.absolute,
            absolute,
        );
        between(
            &format!("{name}, root of the square, of the last value's"),
            own.square / last.square,
            square,
        );
        // Without the adjustment the paper's own is hardly better than the last value.
        between(&format!("{name}, as printed"), printed.absolute / last.absolute, 0.97..=1.01);
        between(&format!("{name}, adjusted, of as printed"), own.absolute / printed.absolute, 0.87..=1.005);
    }
}

/// Where few requests come in a period, the last one's count is chance, and often none.
#[test]
fn the_forecast_is_as_near_as_smoothing_and_has_no_bias_where_few_come() {
    for (name, counts) in [("NASA", nasa()), ("World Cup", world_cup())] {
        for few in [f64::INFINITY, 20.0, 5.0, 2.0, 0.7] {
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            let thinned = if few < mean { thinned(&counts, few / mean) } else { counts.clone() };
            let (own, smoothed) = (forecast(&thinned), smoothing(&thinned));
            println!(
                "{name}, {few} a period: {own:?}, smoothed {smoothed:?}, the last value {:?}",
                last_value(&thinned)
            );
            between("absolute error, of smoothing's", own.absolute / smoothed.absolute, 0.9..=1.03);
            between("root of the square, of smoothing's", own.square / smoothed.square, 0.9..=1.03);
            between("bias", own.bias, -0.05..=0.05);
        }
    }
}

/// "There is not much difference between a three state transition matrix and more complicated ones", and the hour of the week
/// tells no more than that of the day, which tells no more than one matrix for all hours.
#[test]
fn more_states_and_more_hours_predict_no_better() {
    for (name, counts) in [("NASA", nasa()), ("World Cup", world_cup())] {
        let printed = chain(&counts, 24, 1).absolute;
        for (what, hours, half, bounds) in [
            ("one matrix", 1, 1, 0.99..=1.02),
            ("hours of the week", 7 * 24, 1, 0.98..=1.03),
            ("eleven states", 24, 5, 0.94..=1.02),
        ] {
            between(&format!("{name}, {what}"), chain(&counts, hours, half).absolute / printed, bounds);
        }
    }
    assert_eq!((nasa().len(), world_cup().len()), (28 * DAY, 14 * DAY));
}
