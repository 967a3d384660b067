//! Round numbers for an axis.
//!
//! Steps are 1, 2 or 5 times a power of ten; for time, also the steps of a clock. The step is the largest that puts at least
//! four ticks into the range. No step is more than 2.5 times the one before, so there are four to ten ticks.

use crate::number::{order, push_exact, push_fixed};
use std::fmt::Write;

/// The fewest ticks in a range.
const LEAST: f64 = 4.0;

/// A clock's steps (s), from a second to a day; below and above these, steps are 1, 2, 5 times powers of ten.
const CLOCK: [f64; 18] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0,
    21_600.0, 43_200.0, 86_400.0,
];

/// The ticks of an axis, ascending, within its range.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) ticks: Vec<Tick>,
    /// The difference between neighbouring ticks.
    pub(crate) step: f64,
    /// The unit in which time is written; empty for plain numbers.
    pub(crate) unit: &'static str,
}

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
    /// Whether the tick is an odd multiple of the step, which is left unlabelled if there is little room.
    pub(crate) odd: bool,
}

/// Ticks for plain numbers. `low` < `high`, both finite.
pub(crate) fn plain(low: f64, high: f64) -> Ticks {
    let (mantissa, exponent) = decimal_step(low, high);
    let step = scaled(mantissa, exponent);
    let label = labels(low.abs().max(high.abs()), exponent);
    let tick = |multiple: f64| {
        let value = scaled(multiple * mantissa, exponent);
        Tick { value, label: label(value), odd: multiple % 2.0 != 0.0 }
    };
    Ticks { ticks: multiples(low, high, step).map(tick).collect(), step, unit: "" }
}

/// Ticks for time (s). `low` < `high`, both finite.
pub(crate) fn time(low: f64, high: f64) -> Ticks {
    let clock = CLOCK.iter().rev().find(|&&step| count(low, high, step) >= LEAST).copied();
    let days = decimal_step(low / 86_400.0, high / 86_400.0);
    let (step, seconds, unit) = match clock {
        None => return Ticks { unit: "s", ..plain(low, high) },
        // Whole days, in steps of 1, 2, 5 times powers of ten if there are many.
        Some(86_400.0) => (scaled(days.0, days.1.max(0)) * 86_400.0, 86_400.0, "d"),
        Some(step) if step >= 3600.0 => (step, 3600.0, "h"),
        Some(step) if step >= 60.0 => (step, 60.0, "min"),
        Some(step) => (step, 1.0, "s"),
    };
    let tick = |multiple: f64| {
        let value = multiple * step;
        let mut label = String::new();
        push_fixed(&mut label, value / seconds, 3);
        Tick { value, label, odd: multiple % 2.0 != 0.0 }
    };
    Ticks { ticks: multiples(low, high, step).map(tick).collect(), step, unit }
}

/// The largest step of 1, 2, 5 · 10^k with at least four multiples in the range, as (1, 2 or 5; k).
fn decimal_step(low: f64, high: f64) -> (f64, i32) {
    let mut exponent = order(high - low);
    loop {
        for mantissa in [5.0, 2.0, 1.0] {
            if count(low, high, scaled(mantissa, exponent)) >= LEAST {
                return (mantissa, exponent);
            }
        }
        exponent -= 1;
    }
}

/// `mantissa` · 10^`exponent`, rounded once, so that 3 · 10^-1 is 0.3 and not 0.30000000000000004.
fn scaled(mantissa: f64, exponent: i32) -> f64 {
    if exponent < 0 { mantissa / 10f64.powi(-exponent) } else { mantissa * 10f64.powi(exponent) }
}

/// The first and last multiple of the step within the range. A bound that misses a multiple only by rounding counts as on it.
fn bounds(low: f64, high: f64, step: f64) -> (f64, f64) {
    ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor())
}

fn count(low: f64, high: f64, step: f64) -> f64 {
    let (first, last) = bounds(low, high, step);
    last - first + 1.0
}

fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let (first, last) = bounds(low, high, step);
    // Adding zero turns -0 into 0.
    (0..16).map(move |index| first + f64::from(index) + 0.0).take_while(move |multiple| *multiple <= last)
}

/// Labels with as many digits as the step needs; large numbers are written in thousands, millions and so on.
fn labels(greatest: f64, exponent: i32) -> impl Fn(f64) -> String {
    let (power, suffix) = match order(greatest) {
        4..6 => (3, "k"),
        6..9 => (6, "M"),
        9..12 => (9, "G"),
        12..15 => (12, "T"),
        _ => (0, ""),
    };
    let decimals = (power - exponent).max(0);
    let digits = usize::try_from(order(greatest).saturating_sub(exponent)).unwrap_or(0);
    let plain = (-5..15).contains(&order(greatest)) && decimals <= 12;
    move |value| {
        let mut label = String::new();
        if value == 0.0 {
            label.push('0');
        } else if plain {
            push_exact(&mut label, value / 10f64.powi(power), decimals);
            label.push_str(if suffix.is_empty() { "" } else { "\u{202F}" });
            label.push_str(suffix);
        } else {
            let _ = write!(label, "{value:.digits$e}");
        }
        label.replace('-', "\u{2212}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ticks: &Ticks) -> Vec<&str> {
        ticks.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    /// Ranges of all sizes and places.
    fn ranges() -> impl Iterator<Item = (f64, f64)> {
        let mut random = 7u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..4000).map(move |_| {
            let width = 10f64.powf(next() * 24.0 - 12.0);
            let low = (next() - 0.5) * width * 10f64.powf(next() * 4.0);
            let low = if next() < 0.3 { 0.0 } else { low };
            (low, low + width)
        })
    }

    fn sound(ticks: &Ticks, low: f64, high: f64) {
        let at = format!("{low} to {high}: {ticks:?}");
        assert!((3..=10).contains(&ticks.ticks.len()), "{at}");
        let slack = ticks.step * 1e-6;
        assert!(
            ticks.ticks.iter().all(|tick| tick.value >= low - slack && tick.value <= high + slack),
            "{at}"
        );
        assert!(
            ticks.ticks.windows(2).all(|two| (two[1].value - two[0].value - ticks.step).abs() < slack),
            "{at}"
        );
        assert!(ticks.ticks.windows(2).all(|two| two[0].label != two[1].label), "{at}");
    }

    #[test]
    fn three_to_ten_round_ticks_in_any_range() {
        for (low, high) in ranges() {
            let ticks = plain(low, high);
            sound(&ticks, low, high);
            let mantissa = ticks.step / 10f64.powi(order(ticks.step * (1.0 + 1e-12)));
            assert!(
                [1.0, 2.0, 5.0].iter().any(|round| (mantissa - round).abs() < 1e-6),
                "{low} {high} {mantissa}"
            );
            assert!(shown(&ticks).iter().all(|label| label.chars().count() <= 14), "{ticks:?}");
        }
    }

    #[test]
    fn three_to_ten_clock_ticks_in_any_range() {
        for (low, high) in ranges() {
            let ticks = time(low, high);
            sound(&ticks, low, high);
            let whole = ticks.step < 1.0 || (ticks.step - ticks.step.round()).abs() < 1e-6;
            assert!(whole && ["s", "min", "h", "d"].contains(&ticks.unit), "{ticks:?}");
        }
    }

    #[test]
    fn labels_are_what_a_person_would_write() {
        assert_eq!(shown(&plain(0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(shown(&plain(-4.0, 4.0)), ["\u{2212}4", "\u{2212}2", "0", "2", "4"]);
        assert_eq!(
            shown(&plain(0.0, 43_000.0)),
            ["0", "10\u{202F}k", "20\u{202F}k", "30\u{202F}k", "40\u{202F}k"]
        );
        assert_eq!(shown(&plain(0.0, 4e6)), ["0", "1\u{202F}M", "2\u{202F}M", "3\u{202F}M", "4\u{202F}M"]);
        assert_eq!(
            shown(&plain(0.0, 4e-7)),
            ["0", "1e\u{2212}7", "2e\u{2212}7", "3e\u{2212}7", "4e\u{2212}7"]
        );
        assert_eq!(shown(&plain(0.0012, 0.0019)), ["0.0012", "0.0014", "0.0016", "0.0018"]);
    }

    #[test]
    fn time_reads_like_a_clock() {
        let unit_and_labels = |high: f64| {
            let ticks = time(0.0, high);
            format!("{} {}", shown(&ticks).join(" "), ticks.unit)
        };
        assert_eq!(unit_and_labels(0.5), "0 0.1 0.2 0.3 0.4 0.5 s");
        assert_eq!(unit_and_labels(60.0), "0 15 30 45 60 s");
        assert_eq!(unit_and_labels(300.0), "0 1 2 3 4 5 min");
        assert_eq!(unit_and_labels(3600.0), "0 15 30 45 60 min");
        assert_eq!(unit_and_labels(86_400.0), "0 6 12 18 24 h");
        assert_eq!(unit_and_labels(7.0 * 86_400.0), "0 2 4 6 d");
        assert_eq!(unit_and_labels(61.0 * 86_400.0), "0 20 40 60 d");
    }
}
