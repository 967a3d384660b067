//! Reading TOML into typed values, for every file format of Plimsoll.
//!
//! Input: the text of a file, and a table of its keys (`section!`). Output: a struct of located values, and the shape of the
//! table, from which reference, schema and suggestions are made. A key whose value is refused gives one finding and is left
//! out; reading never stops at the first error.

mod compounds;
mod elsewhere;
mod field;
pub(crate) mod number;
mod quantity;
pub(crate) mod section;
mod shape;
pub(crate) mod text;
pub(crate) mod word;

pub(crate) use compounds::{Either, NamedSections, OneOrMany, Pairs, Sections, Table, listed};
pub(crate) use field::{Field, Located, OptionalKey, Section};
pub(crate) use number::{GainMargin, Part, Percentile, Ratio, Share, Weight, Whole, numbers};
pub(crate) use quantity::{DURATION, Rate, RequestRate, Seconds, Size, parse_seconds};
pub(crate) use section::section;
pub(crate) use shape::{KeyShape, Presence, SectionShape, Shape, TextShape, sections};
pub(crate) use text::{Name, Refusal, Text, TextField, bad, texts};
pub use word::nearest;
pub(crate) use word::words;

use crate::diagnostic::{Code, Complaint, Diagnostics, Findings, refuse};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Reads a file of any format: first its keys, then, if the file is TOML, their meaning. The meaning is absent only if there
/// are findings.
///
/// The parser is `DeTable::parse_recoverable` of `toml`, because it keeps the span of every key and value, and goes on after an
/// error of syntax. `toml-span` stops at the first error and has no dates; `toml_edit` keeps comments and layout, which are not
/// needed.
pub(crate) fn read_file<F: Section, T>(
    source: &str,
    name: &str,
    resolve: impl FnOnce(&F, &mut Findings) -> Option<T>,
) -> Result<T, Diagnostics> {
    let mut findings = Findings::of(F::shape);
    let (table, errors) = DeTable::parse_recoverable(source);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let (code, complaint) = not_toml(error.message());
        findings.add(code, &span, complaint, None);
    }
    let file = F::read_table(table.get_ref(), 0..0, &mut findings);
    if errors.is_empty() {
        match resolve(&file, &mut findings) {
            Some(meaning) if findings.is_empty() => return Ok(meaning),
            None if findings.is_empty() => {
                refuse!(findings, MissingKey at &(0..0),
                    "this file means nothing", help: "start from one of the examples");
            }
            _ => {}
        }
    } else {
        findings.drop_consequences_of_syntax_errors(source);
    }
    Err(findings.into_diagnostics(source, name))
}

/// The path of a file that another file names: a relative path is taken from the folder of that other file.
pub(crate) fn beside(name: &str, path: impl AsRef<Path>) -> PathBuf {
    Path::new(name).parent().unwrap_or(Path::new("")).join(path)
}

/// The error for a text that is not TOML, with advice in the common cases.
fn not_toml(message: &str) -> (Code, Complaint) {
    if message.contains("duplicate key") {
        let complaint =
            Complaint::new("this key is given twice", "keep one of them; several values go into a list");
        return (Code::Duplicate, complaint);
    }
    let message = message.trim_end_matches(", expected nothing");
    // The parser takes an address or a duration without quotes for the beginning of a number.
    let help = if ["string", "float", "integer", "date", "time"].iter().any(|kind| message.contains(kind)) {
        "text, addresses and durations stand in double quotes: `name = \"shop\"`, `max_wait = \"10s\"`"
    } else {
        "TOML is lines of `key = value` under `[section]` headers; see https://toml.io"
    };
    (Code::Syntax, Complaint::new(format!("this is not TOML: {message}"), help))
}
