//! Values that are written as text of a certain form.

use super::field::{Field, wrong_type};
use super::shape::{Shape, TextShape};
use crate::diagnostic::{Code, Complaint, Findings, quoted};
use toml::Spanned;
use toml::de::DeValue;

/// Why a text is refused.
pub(crate) type Refusal = (Code, Complaint);

/// A value written as text.
pub(crate) trait TextField: Sized {
    const SHAPE: TextShape;
    fn parse(text: &str) -> Result<Self, Refusal>;
    /// The value as it would be written; only defaults are shown.
    fn show(&self) -> String;
}

impl<T: TextField> Field for T {
    fn shape() -> Shape {
        Shape::Text(T::SHAPE)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let number = match value.get_ref() {
            DeValue::String(text) => {
                return T::parse(text)
                    .map_err(|(code, complaint)| findings.add(code, &value.span(), complaint, None))
                    .ok();
            }
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            _ => None,
        };
        let help = match (number, T::SHAPE.unit) {
            (Some(number), Some(unit)) => format!("write it with its unit, such as `\"{number}{unit}\"`"),
            _ => format!("write text, such as `\"{}\"`", T::SHAPE.example),
        };
        wrong_type(value, T::SHAPE.what, help, findings)
    }

    fn show(&self) -> String {
        format!("\"{}\"", TextField::show(self).escape_debug())
    }
}

/// Makes types of text: `Name(Type, "what", "example", Some("pattern"), unit "s") = parse, show |value| text;`, where `parse`
/// returns the value to keep. The pattern may be `None`; `unit` may be left out, and `show` if the value is shown as it prints.
macro_rules! texts {
    ($(
        $(#[$attribute:meta])+
        $name:ident($kind:ty, $what:literal, $example:literal, $pattern:expr $(, unit $unit:literal)?)
            = $parse:expr $(, show $show:expr)?;
    )+) => { $(
        $(#[$attribute])+
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name(pub(crate) $kind);

        impl crate::syntax::TextField for $name {
            const SHAPE: crate::syntax::TextShape = crate::syntax::TextShape {
                what: $what,
                example: $example,
                pattern: $pattern,
                unit: crate::syntax::text::texts!(@unit $($unit)?),
            };

            fn parse(text: &str) -> Result<Self, crate::syntax::Refusal> {
                let parse: fn(&str) -> Result<$kind, crate::syntax::Refusal> = $parse;
                parse(text).map($name)
            }

            fn show(&self) -> String {
                let show: fn(&$kind) -> String = crate::syntax::text::texts!(@show $($show)?);
                show(&self.0)
            }
        }
    )+ };
    (@unit) => { None };
    (@unit $unit:literal) => { Some($unit) };
    (@show) => { ToString::to_string };
    (@show $show:expr) => { $show };
}
pub(crate) use texts;

/// Refuses a text that cannot be read.
pub(crate) fn bad<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Refusal> {
    Err((Code::BadValue, Complaint::new(message, help)))
}

/// Refuses a text whose value is too small or too large.
pub(crate) fn out_of_range<T>(message: impl Into<String>, help: impl Into<String>) -> Result<T, Refusal> {
    Err((Code::OutOfRange, Complaint::new(message, help)))
}

texts! {
    /// Any text.
    Text(String, "text", "text", None) = |text| Ok(text.to_owned());
    /// A name that metrics, headers and logs can carry as it is.
    Name(String, "a name", "shop", Some("^[A-Za-z0-9_.-]{1,64}$")) =
        |text| check_name(text).map(|()| text.to_owned()).map_err(|complaint| (Code::BadValue, complaint));
}

/// Refuses a text that cannot be a name.
pub(crate) fn check_name(name: &str) -> Result<(), Complaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let help = "use 1 to 64 letters, digits, `-`, `_` or `.`: it appears in metrics and headers";
    Err(Complaint::new(format!("`{}` cannot be a name", quoted(name)), help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::values::Variable;
    use crate::gateway::health_check::StatusRange;
    use crate::syntax::{Rate, RequestRate, Seconds, Size};
    use plimsoll_core::time::Duration;

    /// The schema's pattern and the parser both take the one and refuse the other.
    fn agree<T: TextField>(taken: &[&str], refused: &[&str]) {
        let pattern = regex::Regex::new(T::SHAPE.pattern.expect("a pattern")).expect("a pattern is sound");
        for (texts, takes) in [(taken, true), (refused, false), (&[T::SHAPE.example], true)] {
            for text in texts {
                assert_eq!(T::parse(text).is_ok(), takes, "the parser: {text:?}");
                assert_eq!(pattern.is_match(text), takes, "the pattern {pattern}: {text:?}");
            }
        }
    }

    #[test]
    fn an_editor_takes_what_the_parser_takes() {
        agree::<StatusRange>(&["200", "599", "200-399"], &["100", "100-199", "150-200", "600", "200-", ""]);
        agree::<Size>(&["1 B", "1 kB", "1 KB", "1 KiB", "2TiB"], &["1 kiB", "1 iB", "1", "1 Kb", "kB"]);
        agree::<Rate>(&["1 kB/s", "1 KiB/s", "1 Mbit/s"], &["1 kiB/s", "1 KB", "1 Kibit/s"]);
        agree::<RequestRate>(&["1/s", "3 /min"], &["1", "1/year"]);
        agree::<Seconds>(&["0s", "1.6ms"], &["1", "1 week"]);
        agree::<Duration>(&["10s", "1 min", "5µs"], &["1", "1 week"]);
        agree::<Variable>(&["plimsoll_tree", "$plimsoll_tree"], &["", "$", "$$a", "a-b"]);
        agree::<Name>(&["a.b-c_1"], &["", "a b", "ä"]);
    }
}
