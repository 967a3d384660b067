//! An access log, line by line: what can be understood, and notes of what cannot.

use super::common_format::{self, COMBINED, COMMON};
use super::entry::Record;
use super::input::{LONGEST, Piece, Text};
use super::json_format;
use super::skipped::skip;
use super::{FoundFormat, LogNotes};
use crate::workload::{Input, JsonFields, LogFormat};
use std::borrow::Cow;
use std::io;

/// A log that is read.
pub(super) struct AccessLog {
    text: Text,
    line: Vec<u8>,
    format: LogFormat,
    /// With the names in common use where none are given.
    fields: JsonFields,
    pub(super) notes: LogNotes,
}

impl AccessLog {
    /// Opens it.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(super) fn open(input: &Input, format: &LogFormat) -> io::Result<Self> {
        let given = if let LogFormat::Json(given) = format { given } else { &JsonFields::default() };
        Ok(AccessLog {
            text: Text::open(input)?,
            line: Vec::new(),
            format: format.clone(),
            fields: json_format::fields(given),
            notes: LogNotes::default(),
        })
    }

    /// Reads the next line that can be understood; false after the last.
    ///
    /// # Errors
    /// The file cannot be read, or none of its lines is one of an access log.
    pub(super) fn read(&mut self, record: &mut Record) -> io::Result<bool> {
        loop {
            let piece = self.text.line(&mut self.line)?;
            if piece == Piece::End {
                return self.end();
            }
            self.notes.lines += 1;
            if piece == Piece::TooLong {
                skip(&mut self.notes, &self.line, &format!("longer than {LONGEST} bytes"));
                continue;
            }
            // Nearly all lines are UTF-8, which is quicker to see than to repair.
            let text = str::from_utf8(&self.line)
                .map_or_else(|_| String::from_utf8_lossy(&self.line), Cow::Borrowed);
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() {
                continue;
            }
            match understand(&self.format, &self.fields, text, record) {
                Ok(found) => {
                    self.settle(found);
                    return Ok(true);
                }
                Err(why) => skip(&mut self.notes, &self.line, &why),
            }
        }
    }

    /// How much of it was read, in [0, 1].
    pub(super) fn progress(&self) -> Option<f64> {
        self.text.progress()
    }

    /// The first line that is understood tells the format of all.
    fn settle(&mut self, found: FoundFormat) {
        if self.notes.format.is_none() {
            self.notes.format = Some(found);
            self.format = match found {
                FoundFormat::Common | FoundFormat::Combined => LogFormat::Common,
                FoundFormat::Json => LogFormat::Json(Box::default()),
            };
        }
    }

    fn end(&self) -> io::Result<bool> {
        if self.notes.format.is_none() && self.notes.skipped == 0 {
            return Err(self.invalid("there is nothing in it; expected are the lines of an access log"));
        }
        let Some((line, text, why)) =
            self.notes.first_skipped.as_ref().filter(|_| self.notes.format.is_none())
        else {
            return Ok(false);
        };
        let common = format!("\n  common:   {COMMON}\n  combined: {COMMON}{COMBINED}");
        let json = format!("\n  json:     {}", json_format::EXAMPLE);
        let expected = match self.format {
            LogFormat::Auto => common + &json,
            LogFormat::Common => common,
            LogFormat::Json(_) => json,
        };
        Err(self.invalid(&format!(
            "none of its {} lines is one of an access log. Line {line} is `{text}`: {why}. Expected are lines \
             like{expected}",
            self.notes.lines
        )))
    }

    /// An error that names the file.
    pub(super) fn invalid(&self, what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", self.text.name))
    }
}

/// Reads one line in the format that is known, or in the one that it looks like.
fn understand(
    format: &LogFormat,
    fields: &JsonFields,
    line: &str,
    record: &mut Record,
) -> Result<FoundFormat, Cow<'static, str>> {
    let json = match format {
        LogFormat::Auto => line.starts_with('{'),
        LogFormat::Common => false,
        LogFormat::Json(_) => true,
    };
    if json {
        let object = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        record.fill(&json_format::parse(&object, fields)?);
        return Ok(FoundFormat::Json);
    }
    let (entry, combined) = common_format::parse(line)?;
    record.fill(&entry);
    Ok(if combined { FoundFormat::Combined } else { FoundFormat::Common })
}
