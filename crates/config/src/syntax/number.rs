//! Values that are numbers, or true and false.

use super::field::{Field, wrong_type};
use super::shape::Shape;
use crate::diagnostic::{Code, Complaint, Findings, refuse};
use std::ops::{Bound, RangeBounds};
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

impl Field for bool {
    fn shape() -> Shape {
        Shape::Boolean
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        match value.get_ref() {
            DeValue::Boolean(read) => Some(*read),
            _ => wrong_type(value, "true or false", "write `true` or `false`, without quotes", findings),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Field for Whole<MIN, MAX> {
    fn shape() -> Shape {
        Shape::Whole { min: MIN, max: MAX }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let possible = format!("write a number from {MIN} to {MAX}");
        let DeValue::Integer(number) = value.get_ref() else {
            let help = match value.get_ref() {
                DeValue::String(text) if text.trim().parse::<u64>().is_ok() => {
                    format!("write `{}`, without quotes", text.trim())
                }
                _ => possible,
            };
            return wrong_type(value, "a whole number", help, findings);
        };
        let read = whole(number).filter(|read| (MIN..=MAX).contains(read));
        if read.is_none() {
            refuse!(findings, OutOfRange at &value.span(), "this number is out of range", help: possible);
        }
        read.map(Whole)
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

fn whole(number: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(number.as_str().trim_start_matches('+'), number.radix()).ok()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok().map(|whole| whole as f64)
        }
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// The range of a number type: at least (or above) the bound, and at most the second number.
pub(crate) type Bounds = (Bound<f64>, f64);

/// Reads a number within bounds; `outside` makes the complaint about a number outside.
fn number_within(
    value: &Spanned<DeValue<'_>>,
    (from, to): Bounds,
    outside: Complaint,
    findings: &mut Findings,
) -> Option<f64> {
    let Some(read) = number(value.get_ref()) else {
        return wrong_type(value, "a number", outside.help, findings);
    };
    if (from, Bound::Included(to)).contains(&read) {
        return Some(read);
    }
    findings.add(Code::OutOfRange, &value.span(), outside, None);
    None
}

/// Reads a number of a type that has only bounds.
pub(crate) fn bounded(value: &Spanned<DeValue<'_>>, bounds: Bounds, findings: &mut Findings) -> Option<f64> {
    let least = match bounds.0 {
        Bound::Included(least) => format!("from {least}"),
        Bound::Excluded(least) => format!("above {least}"),
        Bound::Unbounded => "of any size".to_owned(),
    };
    let help = format!("write a number {least}, at most {}", bounds.1);
    number_within(value, bounds, Complaint::new("this number is out of range", help), findings)
}

/// Reads a share of one. If a percentage is given, the advice is the share that it means.
fn share(value: &Spanned<DeValue<'_>>, bounds: Bounds, findings: &mut Findings) -> Option<f64> {
    /// From this number on, a share was surely meant in percent.
    const PERCENT: f64 = 5.0;
    let meant = match value.get_ref() {
        DeValue::String(text) => text.trim().trim_end_matches('%').trim_end().parse().ok(),
        other => number(other),
    };
    let help = match meant {
        Some(percent) if (PERCENT..=100.0).contains(&percent) => {
            format!("write a share of one: `{}`", percent / 100.0)
        }
        _ => "write a number above 0 and at most 1, such as `0.85`".to_owned(),
    };
    number_within(value, bounds, Complaint::new("this is no share of one", help), findings)
}

/// Reads a percentile. If a share of one or a text is given, the advice is the number that it means.
fn percentile(value: &Spanned<DeValue<'_>>, bounds: Bounds, findings: &mut Findings) -> Option<f64> {
    let meant = match value.get_ref() {
        DeValue::String(text) => {
            text.trim().trim_start_matches('p').trim_end_matches('%').trim().parse().ok()
        }
        other => number(other),
    };
    let possible = (bounds.0, Bound::Included(bounds.1));
    let help = match meant {
        Some(percent) if possible.contains(&percent) => format!("write `{percent}`"),
        // The result is rounded, because 0.999 times 100 is not 99.9 in binary.
        Some(share) if possible.contains(&(share * 100.0)) => {
            format!("write it of a hundred: `{}`", (share * 1e5).round() / 1e3)
        }
        _ => "write a number from 50, at most 99.9, such as `95`".to_owned(),
    };
    number_within(value, bounds, Complaint::new("a percentile lies between 50 and 99.9", help), findings)
}

fn gain_margin(value: &Spanned<DeValue<'_>>, bounds: Bounds, findings: &mut Findings) -> Option<f64> {
    let outside =
        Complaint::new("a gain margin is above 1, and at most 1000", "write a number above 1, such as `4`");
    number_within(value, bounds, outside, findings)
}

/// Makes types of numbers with bounds, `Name: Excluded(1.0), to 1000.0;`. A type is read by [`bounded`], or by another function
/// if it is named: `by share`.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident: $bound:ident($from:literal), to $to:literal $(, by $read:path)?;)+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) f64);

        impl crate::syntax::Field for $name {
            fn shape() -> crate::syntax::Shape {
                crate::syntax::Shape::Number { from: std::ops::Bound::$bound($from), to: $to }
            }

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Option<Self> {
                let bounds = (std::ops::Bound::$bound($from), $to);
                crate::syntax::number::numbers!(@reader $($read)?)(value, bounds, findings).map($name)
            }

            fn show(&self) -> String {
                self.0.to_string()
            }
        }
    )+ };
    (@reader) => { crate::syntax::number::bounded };
    (@reader $read:path) => { $read };
}
pub(crate) use numbers;

numbers! {
    /// A share of one.
    Share: Excluded(0.0), to 1.0, by share;
    /// A part of one, which may be none.
    Part: Included(0.0), to 1.0;
    /// The part of responses that keep a time, in hundredths.
    Percentile: Included(50.0), to 99.9, by percentile;
    /// A gain margin.
    GainMargin: Excluded(1.0), to 1000.0, by gain_margin;
    /// A share of what several have or want, relative to the others'.
    Weight: Excluded(0.0), to 1_000_000_000.0;
    /// A response time relative to others'.
    Ratio: Excluded(0.0), to 1_000.0;
}
