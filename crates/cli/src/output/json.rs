//! Facts as JSON.

use super::failure::Failure;
use super::text;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io::{self, Write};

/// Writes numbers without an exponent, and whole ones without a fraction.
struct PlainNumbers;

impl Formatter for PlainNumbers {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value}")
    }
}

/// Facts as one line of JSON. A number that is not finite becomes `null`.
pub(crate) fn line(facts: &impl Serialize) -> String {
    written(facts, PlainNumbers)
}

/// Prints facts on one line.
pub(crate) fn print(facts: &impl Serialize) -> Result<(), Failure> {
    text::print(line(facts))
}

/// Prints facts on one line, or as text.
pub(crate) fn print_or(
    is_json: bool,
    facts: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if is_json { print(facts) } else { text::print(text().trim_end()) }
}

pub(crate) fn print_indented(facts: &impl Serialize) -> Result<(), Failure> {
    text::print(written(facts, PrettyFormatter::new()))
}

fn written(facts: &impl Serialize, formatter: impl Formatter) -> String {
    let mut out = Vec::new();
    // The keys are text and writing to memory cannot fail, so there is no error to handle.
    let _ = facts.serialize(&mut Serializer::with_formatter(&mut out, formatter));
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain() {
        assert_eq!(
            line(&(95.0, 0.2, -1e-9, 1e21, f64::NAN)),
            "[95,0.2,-0.000000001,1000000000000000000000,null]"
        );
    }
}
