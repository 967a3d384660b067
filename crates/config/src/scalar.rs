//! Values that are numbers, words of a fixed list, or true and false.

use crate::diagnostic::{Code, Complaint, Findings, quoted};
use crate::field::{Field, wrong_type};
use crate::shape::Shape;
use crate::suggest::nearest;
use plimsoll_core::promises::{Admission, Choice, DelayParts, Mode, Prefer, Sense};
use plimsoll_gateway::settings::{ForwardedFields, ReportMode};
use std::ops::{Bound, RangeBounds};
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

impl Field for bool {
    fn shape() -> Shape {
        Shape::Boolean
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        if let DeValue::Boolean(read) = value.get_ref() {
            return Some(*read);
        }
        wrong_type(value, "true or false", "write `true` or `false`, without quotes".to_owned(), findings);
        None
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
        let DeValue::Integer(number) = value.get_ref() else {
            let help = match value.get_ref() {
                DeValue::String(text) if text.trim().parse::<u64>().is_ok() => {
                    format!("write `{}`, without quotes", text.trim())
                }
                _ => format!("write a number from {MIN} to {MAX}"),
            };
            wrong_type(value, "a whole number", help, findings);
            return None;
        };
        match whole(number) {
            Some(read) if (MIN..=MAX).contains(&read) => Some(Whole(read)),
            _ => {
                let complaint = Complaint::new(
                    "this number is out of range",
                    format!("write a number from {MIN} to {MAX}"),
                );
                findings.add(Code::OutOfRange, &value.span(), complaint);
                None
            }
        }
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

/// Reads a number with these bounds.
pub(crate) fn bounded(
    value: &Spanned<DeValue<'_>>,
    from: Bound<f64>,
    to: f64,
    findings: &mut Findings,
) -> Option<f64> {
    let least = match from {
        Bound::Included(least) => format!("from {least}"),
        Bound::Excluded(least) => format!("above {least}"),
        Bound::Unbounded => "of any size".to_owned(),
    };
    let help = format!("write a number {least}, at most {to}");
    match number(value.get_ref()) {
        Some(read) if (from, Bound::Included(to)).contains(&read) => return Some(read),
        Some(_) => {
            let complaint = Complaint::new("this number is out of range", help);
            findings.add(Code::OutOfRange, &value.span(), complaint);
        }
        None => wrong_type(value, "a number", help, findings),
    }
    None
}

/// Makes types of numbers with bounds: `Name: Excluded(1.0), to 1000.0`.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident: $bound:ident($from:literal), to $to:literal;)+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub(crate) f64);

        impl crate::field::Field for $name {
            fn shape() -> crate::shape::Shape {
                crate::shape::Shape::Number { from: std::ops::Bound::$bound($from), to: $to }
            }

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Option<Self> {
                crate::scalar::bounded(value, std::ops::Bound::$bound($from), $to, findings).map($name)
            }

            fn show(&self) -> String {
                self.0.to_string()
            }
        }
    )+ };
}
pub(crate) use numbers;

/// From here on a number that should have been a share was surely meant in percent.
const PERCENT: f64 = 5.0;

/// A share of one: above 0, at most 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl Field for Share {
    fn shape() -> Shape {
        Shape::Number { from: Bound::Excluded(0.0), to: 1.0 }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
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
        match (value.get_ref(), meant) {
            (DeValue::Integer(_) | DeValue::Float(_), Some(share)) if share > 0.0 && share <= 1.0 => {
                return Some(Share(share));
            }
            (DeValue::Integer(_) | DeValue::Float(_), _) => {
                findings.add(
                    Code::OutOfRange,
                    &value.span(),
                    Complaint::new("this is no share of one", help),
                );
            }
            _ => wrong_type(value, "a number", help, findings),
        }
        None
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

numbers! {
    /// A share of what several have or want, relative to the others'.
    Weight: Excluded(0.0), to 1_000_000_000.0;
    /// A response time relative to others'.
    Ratio: Excluded(0.0), to 1_000.0;
}

/// Of a hundred, so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percentile(pub(crate) f64);

impl Percentile {
    const LEAST: f64 = 50.0;
    const MOST: f64 = 99.9;
}

impl Field for Percentile {
    fn shape() -> Shape {
        Shape::Number { from: Bound::Included(Self::LEAST), to: Self::MOST }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let meant = match value.get_ref() {
            DeValue::String(text) => {
                text.trim().trim_start_matches('p').trim_end_matches('%').trim().parse().ok()
            }
            other => number(other),
        };
        let possible = Self::LEAST..=Self::MOST;
        let help = match meant {
            // Text with the right number in it, or a share of one. Rounded: 0.999 of a hundred is 99.9.
            Some(percent) if possible.contains(&percent) => format!("write `{percent}`"),
            Some(share) if possible.contains(&(share * 100.0)) => {
                format!("write it of a hundred: `{}`", (share * 1e5).round() / 1e3)
            }
            _ => "write a number from 50, at most 99.9, such as `95`".to_owned(),
        };
        match (value.get_ref(), meant) {
            (DeValue::Integer(_) | DeValue::Float(_), Some(percent)) if possible.contains(&percent) => {
                return Some(Percentile(percent));
            }
            (DeValue::Integer(_) | DeValue::Float(_), _) => {
                let complaint = Complaint::new("a percentile lies between 50 and 99.9", help);
                findings.add(Code::OutOfRange, &value.span(), complaint);
            }
            _ => wrong_type(value, "a number", help, findings),
        }
        None
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A gain margin: above 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GainMargin(pub(crate) f64);

impl Field for GainMargin {
    fn shape() -> Shape {
        Shape::Number { from: Bound::Excluded(1.0), to: 1000.0 }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let help = "write a number above 1, such as `4`";
        match number(value.get_ref()) {
            Some(margin) if margin > 1.0 && margin <= 1000.0 => return Some(GainMargin(margin)),
            Some(_) => {
                let complaint = Complaint::new("a gain margin is above 1, and at most 1000", help);
                findings.add(Code::OutOfRange, &value.span(), complaint);
            }
            None => wrong_type(value, "a number", help.to_owned(), findings),
        }
        None
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// The law's name; its numbers are keys of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LawName {
    FeedForward,
    Paper,
}

/// Makes a type a word of a fixed list: `"word" => Variant, "its meaning"`.
macro_rules! words {
    ($name:ident { $($word:literal => $variant:ident, $meaning:literal;)+ }) => {
        impl crate::field::Field for $name {
            fn shape() -> crate::shape::Shape {
                crate::shape::Shape::Word(&[$(($word, $meaning)),+])
            }

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Option<Self> {
                match crate::scalar::read_word(value, &[$($word),+], findings)? {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            fn show(&self) -> String {
                match self { $($name::$variant => concat!("\"", $word, "\"")),+ }.to_owned()
            }
        }
    };
}
pub(crate) use words;

words!(Mode {
    "control" => Control, "decisions are acted on";
    "observe" => Observe, "everything is decided, counted and logged, and every request passes at full quality";
    "off" => Off, "nothing is decided: no level, no rejection, no queue; for comparison";
});
words!(Choice {
    "client" => Client, "by a keyed hash of the client: a client keeps its level while the load stands still";
    "random" => Random, "at random, request by request";
});
words!(Prefer {
    "throughput" => Throughput, "no worker is left idle: who can be done just in time is admitted";
    "delay" => Delay, "short waits: no longer than a fifth of the deadline, though a worker may idle now and then for it";
});
words!(DelayParts {
    "both" => Both, "a queueing model's prediction, and feedback (PI) on what is left";
    "predictor-p" => PredictorP, "the prediction and a part of the error (P); for comparison";
    "predictor" => Predictor, "the prediction alone; for comparison";
    "feedback" => Feedback, "feedback (PI) alone, around what was predicted once; for comparison";
});
words!(Admission {
    "work" => Work, "the work that is unfinished";
    "budget" => Budget, "what is left of a period's budget, by rates predicted by the hour of day (ACES); a period is the shortest deadline";
    "synthetic" => Synthetic, "the instantaneous synthetic utilization, at most 0.58; shorter waits, for a part of the server";
});
words!(Sense {
    "gap" => Gap, "from the time that the workers have nothing to do, as the gateway sees it";
    "reported" => Reported, "from the upstream's own `endpoint-load-metrics` response header (ORCA)";
});
words!(ForwardedFields {
    "x-forwarded" => XForwarded, "`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`";
    "forwarded" => Forwarded, "`Forwarded`, RFC 7239";
    "both" => Both, "both of them";
    "none" => None, "neither";
});
words!(ReportMode {
    "rejections" => Rejections, "on rejections";
    "always" => Always, "on every response";
    "never" => Off, "on none";
});
words!(LawName {
    "feed-forward" => FeedForward, "from the measured rate and costs, with feedback on what is left";
    "paper" => Paper, "the PI controller of the utilization control paper with its constants as printed; for comparison";
});

pub(crate) fn read_word<'a>(
    value: &Spanned<DeValue<'_>>,
    words: &[&'a str],
    findings: &mut Findings,
) -> Option<&'a str> {
    let all: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
    let all = all.join(" or ");
    let DeValue::String(text) = value.get_ref() else {
        wrong_type(value, "a word", format!("write {all}"), findings);
        return None;
    };
    if let Some(word) = words.iter().find(|word| **word == text.as_ref()) {
        return Some(word);
    }
    let help = match nearest(text, words.iter().copied()) {
        Some(word) => format!("did you mean `\"{word}\"`?"),
        None => format!("write {all}"),
    };
    let complaint = Complaint::new(format!("`{}` is none of the words known here", quoted(text)), help);
    findings.add(Code::UnknownWord, &value.span(), complaint);
    None
}
