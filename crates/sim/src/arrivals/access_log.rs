//! An access log, line by line: what can be understood, and notes of what cannot.

use super::common_format::{self, COMBINED, COMMON};
use super::entry::Record;
use super::input::{LONGEST, Piece, Text};
use super::json_format;
use super::{FoundFormat, LogNotes};
use crate::workload::{Input, JsonFields, LogFormat};
use std::borrow::Cow;
use std::collections::BTreeMap;
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
                self.notes.skip(&self.line, &format!("longer than {LONGEST} bytes"));
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
                Err(why) => self.notes.skip(&self.line, &why),
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

/// Counts the `GET` requests for each path of a log, without its query, as it stands there. What could not be
/// understood is in the notes.
///
/// # Errors
/// The log cannot be read, or none of its lines is one of an access log.
pub fn views(log: &Input) -> io::Result<(BTreeMap<String, u64>, LogNotes)> {
    let mut log = AccessLog::open(log, &LogFormat::Auto)?;
    let (mut views, mut record) = (BTreeMap::new(), Record::default());
    while log.read(&mut record)? {
        if record.request.method == "GET" {
            match views.get_mut(&record.request.path) {
                Some(count) => *count += 1,
                None => drop(views.insert(record.request.path.clone(), 1)),
            }
        }
    }
    Ok((views, log.notes))
}

/// The body bytes of the response that this line of an access log tells of: Common, Combined, or a JSON object with the
/// names in common use.
///
/// # Errors
/// Why it is no such line.
pub fn logged_bytes(line: &str) -> Result<u64, Cow<'static, str>> {
    if !line.starts_with('{') {
        return Ok(common_format::parse(line)?.0.bytes);
    }
    let object = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    Ok(json_format::parse(&object, &json_format::fields(&JsonFields::default()))?.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_format() {
        assert_eq!(logged_bytes(common_format::COMMON), Ok(1713));
        let json = r#"{"time":"2024-05-01T00:00:00Z","request":"GET /a HTTP/1.1","body_bytes_sent":"42"}"#;
        assert_eq!(logged_bytes(json), Ok(42));
        assert!(logged_bytes("hello").is_err() && logged_bytes("{").is_err() && logged_bytes("{}").is_err());
    }

    #[test]
    fn paths_are_counted() {
        let line =
            |request: &str| format!("192.0.2.1 - - [01/Aug/1995:02:00:00 -0400] \"{request}\" 200 1\n");
        let requests = ["GET /a?x HTTP/1.0", "GET /a HTTP/1.0", "POST /a HTTP/1.0", "GET / HTTP/1.0"];
        let text = requests.map(line).concat() + "no line of a log\n";
        let (views, notes) = super::views(&Input::Text(text.into())).unwrap();
        assert_eq!(views.into_iter().collect::<Vec<_>>(), [("/".to_owned(), 1), ("/a".to_owned(), 2)]);
        assert_eq!((notes.lines, notes.skipped), (5, 1));
    }
}
