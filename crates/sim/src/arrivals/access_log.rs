//! An access log, line by line: what can be understood, and notes of what cannot.

use super::common_format::{self, COMBINED, COMMON};
use super::entry::Record;
use super::haproxy_format::{self, HaproxyTimer};
use super::input::{LONGEST, Piece, Text};
use super::json_format::{self, TimeNames};
use super::own_log::{LevelTimes, OwnLog, no_load};
use super::sorted::{CHUNK, SortedLines, Sorter};
use super::times::{self, PROBE};
use super::{FoundFormat, FoundTimes, LogNotes};
use crate::workload::{Input, JsonFields, LogFormat, LogOptions, LogTimes};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::{io, slice};

/// An access log that is being read.
pub(super) struct AccessLog {
    text: Text,
    /// The first lines of the log, which show where a line keeps its request's time.
    head: VecDeque<(Vec<u8>, Piece)>,
    line: Vec<u8>,
    reader: LineReader,
    progress: SortProgress,
    pub(super) notes: LogNotes,
}

/// How far the sorting of a log has come.
enum SortProgress {
    NotWanted,
    Wanted,
    Sorted(SortedLines),
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(super) fn open(input: &Input, format: &LogFormat, options: &LogOptions) -> io::Result<Self> {
        let mut log = AccessLog {
            text: Text::open(input)?,
            head: VecDeque::new(),
            line: Vec::new(),
            reader: LineReader::new(format, options),
            progress: if options.sort { SortProgress::Wanted } else { SortProgress::NotWanted },
            notes: LogNotes { sorted: options.sort, ..LogNotes::default() },
        };
        log.look_ahead(options)?;
        Ok(log)
    }

    /// Reads ahead the first lines to find the field that holds a request's time.
    fn look_ahead(&mut self, options: &LogOptions) -> io::Result<()> {
        while self.head.len() < PROBE {
            let mut line = Vec::new();
            match self.text.line(&mut line)? {
                Piece::End => break,
                piece => self.head.push_back((line, piece)),
            }
        }
        let lines: Vec<Cow<'_, str>> =
            self.head.iter().map(|(line, _)| String::from_utf8_lossy(line)).collect();
        let tails = lines.iter().filter_map(|line| Some(common_format::parse(line.trim()).ok()?.tail));
        let tails: Vec<&str> = tails.collect();
        self.reader.tail_time = times::find(&tails, &options.times);
        let objects: Vec<Value> = lines.iter().filter_map(|line| json_format::object(line)).collect();
        self.reader.times.settle(&objects);
        // A log may begin with rejected requests: reading the first lines once teaches the reader what a served request takes.
        let mut record = Record::default();
        for line in &lines {
            let _ = self.reader.understand(line.as_bytes(), &mut record);
        }
        if matches!(options.times, LogTimes::Field(_)) {
            self.notes.known_fields = match self.reader.format {
                LogFormat::Json(_) => json_format::numbered(&objects),
                LogFormat::Haproxy => haproxy_format::TIMERS.map(str::to_owned).into(),
                LogFormat::Auto | LogFormat::Common => times::numbered(&tails),
            };
        }
        Ok(())
    }

    /// Reads the next line that can be understood; false after the last.
    ///
    /// # Errors
    /// The file cannot be read, or none of its lines is one of an access log.
    pub(super) fn read(&mut self, record: &mut Record) -> io::Result<bool> {
        if matches!(self.progress, SortProgress::Wanted) {
            self.sort(record)?;
        }
        let SortProgress::Sorted(sorted) = &mut self.progress else { return self.read_next(record) };
        while sorted.line(&mut self.line)? {
            // A sorted line was understood when it was read for sorting.
            if matches!(self.reader.understand(&self.line, record), Ok(LineFound::Request(_))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads all lines, and sorts those that can be understood by time.
    fn sort(&mut self, record: &mut Record) -> io::Result<()> {
        let mut sorter = Sorter::new(CHUNK)?;
        let mut latest = i64::MIN;
        while self.read_next(record)? {
            let stamp = record.stamp.micros;
            if stamp < latest {
                self.notes.moved += 1;
                self.notes
                    .first_moved
                    .get_or_insert((self.notes.lines, (latest as f64 - stamp as f64) * 1e-6));
            }
            latest = latest.max(stamp);
            sorter.push(stamp, &self.line)?;
        }
        self.progress = SortProgress::Sorted(sorter.finish()?);
        Ok(())
    }

    /// Reads the next line that can be understood, in the order of the file.
    fn read_next(&mut self, record: &mut Record) -> io::Result<bool> {
        loop {
            let piece = match self.head.pop_front() {
                Some((line, piece)) => {
                    self.line = line;
                    piece
                }
                None => self.text.line(&mut self.line)?,
            };
            if piece == Piece::End {
                return self.end();
            }
            self.notes.lines += 1;
            if piece == Piece::TooLong {
                self.notes.skip(&self.line, &format!("longer than {LONGEST} bytes"));
                continue;
            }
            match self.reader.understand(&self.line, record) {
                Ok(LineFound::Nothing) => {}
                Ok(LineFound::NoLoad(found, status)) => {
                    self.notes.format.get_or_insert(found);
                    *self.notes.no_load.entry(status).or_default() += 1;
                }
                Ok(LineFound::Request(found)) => {
                    self.notes.format.get_or_insert(found);
                    if self.notes.times.is_none() && record.time.is_some() {
                        self.notes.times = self.reader.found_times();
                    }
                    if let Some(value) = self.reader.odd_time {
                        self.notes.odd_time(value);
                    }
                    return Ok(true);
                }
                Err(why) => self.notes.skip(&self.line, &why),
            }
        }
    }

    /// How much of the log was read, in [0, 1].
    pub(super) fn progress(&self) -> Option<f64> {
        match &self.progress {
            SortProgress::NotWanted => self.text.progress(),
            SortProgress::Wanted => Some(0.0),
            SortProgress::Sorted(sorted) => Some(sorted.progress()),
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
        let haproxy = format!("\n  haproxy:  {}", haproxy_format::EXAMPLE);
        let json = format!("\n  json:     {}", json_format::EXAMPLE);
        let expected = match self.reader.format {
            LogFormat::Auto => common + &haproxy + &json,
            LogFormat::Common => common,
            LogFormat::Haproxy => haproxy,
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

/// What a line of the log turned out to be.
enum LineFound {
    /// The line is empty.
    Nothing,
    /// The log, the gateway's own or HAProxy's, says that the line's request was no load; with the log's format and the status
    /// that answered the request.
    NoLoad(FoundFormat, u16),
    /// A request, with the format of its line.
    Request(FoundFormat),
}

/// Reads single lines, and keeps what is known of their format.
struct LineReader {
    format: LogFormat,
    /// The fields' names: those that the user gave, else those in common use.
    fields: JsonFields,
    times: TimeNames,
    /// The index in `times` of the name under which the last JSON line had its time.
    json_time: Option<usize>,
    /// The time of the last JSON line, if it is hardly in the log's unit.
    odd_time: Option<f64>,
    /// The field behind the Common or Combined format's own that holds the time.
    tail_time: Option<FoundTimes>,
    haproxy_timer: Option<HaproxyTimer>,
    own: OwnLog,
    weigh_by: Option<f64>,
}

impl LineReader {
    fn new(format: &LogFormat, options: &LogOptions) -> Self {
        let given = if let LogFormat::Json(given) = format { given } else { &JsonFields::default() };
        let fields = json_format::fields(given);
        LineReader {
            format: format.clone(),
            times: TimeNames::of(&fields, &options.times),
            fields,
            json_time: None,
            odd_time: None,
            tail_time: None,
            haproxy_timer: HaproxyTimer::of(&options.times),
            own: OwnLog::new(&options.levels),
            weigh_by: options.weigh_by,
        }
    }

    /// Which field held the time of the last line.
    fn found_times(&self) -> Option<FoundTimes> {
        if self.format == LogFormat::Haproxy {
            return self.haproxy_timer.map(HaproxyTimer::found);
        }
        let json = self.json_time.map(|which| self.times.found(which));
        json.or_else(|| self.tail_time.clone())
    }

    /// Reads one line in the log's format. Until a line is understood, the format is the one that the line looks like; the
    /// first line that is understood fixes it for the whole log.
    fn understand(&mut self, line: &[u8], record: &mut Record) -> Result<LineFound, Cow<'static, str>> {
        // Nearly all lines are valid UTF-8, and to check a line is faster than to repair it.
        let text = str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed);
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Ok(LineFound::Nothing);
        }
        let format = match self.format {
            LogFormat::Json(_) => FoundFormat::Json,
            LogFormat::Auto if text.starts_with('{') => FoundFormat::Json,
            LogFormat::Haproxy => FoundFormat::Haproxy,
            LogFormat::Auto if haproxy_format::parse(text).is_ok() => FoundFormat::Haproxy,
            LogFormat::Auto | LogFormat::Common => FoundFormat::Common,
        };
        let found = match format {
            FoundFormat::Json => self.json(text, record)?,
            FoundFormat::Haproxy => self.haproxy(text, record)?,
            FoundFormat::Common | FoundFormat::Combined => self.common(text, record)?,
        };
        if matches!(self.format, LogFormat::Auto) {
            self.format = match format {
                FoundFormat::Json => LogFormat::Json(Box::default()),
                FoundFormat::Haproxy => LogFormat::Haproxy,
                FoundFormat::Common | FoundFormat::Combined => LogFormat::Common,
            };
        }
        Ok(found)
    }

    fn haproxy(&mut self, text: &str, record: &mut Record) -> Result<LineFound, Cow<'static, str>> {
        let line = haproxy_format::parse(text)?;
        if line.is_local {
            return Ok(LineFound::NoLoad(FoundFormat::Haproxy, line.status));
        }
        let mut entry = line.entry;
        entry.service = self.haproxy_timer.as_ref().and_then(|timer| line.time(timer));
        record.own = self.own.restore_others(&mut entry, line.is_answered());
        record.fill(&entry, self.weigh_by);
        Ok(LineFound::Request(FoundFormat::Haproxy))
    }

    fn json(&mut self, text: &str, record: &mut Record) -> Result<LineFound, Cow<'static, str>> {
        let object = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
        // The first lines lack this field, so this line settles its unit.
        self.times.settle(slice::from_ref(&object));
        let parsed = json_format::parse(&object, &self.fields, &self.times);
        if let Some(status) = no_load(&object, parsed.is_err()) {
            return Ok(LineFound::NoLoad(FoundFormat::Json, status));
        }
        let (mut entry, time) = parsed?;
        (self.json_time, self.odd_time) = (time, self.times.contradiction(&object));
        record.own = self.own.restore(&mut entry);
        record.fill(&entry, self.weigh_by);
        Ok(LineFound::Request(FoundFormat::Json))
    }

    fn common(&self, text: &str, record: &mut Record) -> Result<LineFound, Cow<'static, str>> {
        let line = common_format::parse(text)?;
        let mut entry = line.entry;
        entry.service = self.tail_time.as_ref().and_then(|found| times::time_in(line.tail, found));
        record.own = None;
        record.fill(&entry, self.weigh_by);
        let found = if line.combined { FoundFormat::Combined } else { FoundFormat::Common };
        Ok(LineFound::Request(found))
    }
}

/// Counts a log's `GET` requests by path, without the query. The notes say which lines could not be understood.
///
/// # Errors
/// The log cannot be read, or none of its lines is one of an access log.
pub fn views(log: &Input) -> io::Result<(BTreeMap<String, u64>, LogNotes)> {
    let mut log = AccessLog::open(log, &LogFormat::Auto, &LogOptions::default())?;
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

/// The body bytes of the response in a line of an access log: Common, Combined, or a JSON object with the names in common use.
///
/// # Errors
/// Why the text is no such line.
pub fn logged_bytes(line: &str) -> Result<u64, Cow<'static, str>> {
    if !line.starts_with('{') {
        return Ok(common_format::parse(line)?.entry.bytes);
    }
    let object = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let fields = json_format::fields(&JsonFields::default());
    let no_times = TimeNames::of(&fields, &LogTimes::Ignored);
    Ok(json_format::parse(&object, &fields, &no_times)?.0.bytes)
}

/// Lines between two calls of `watch`.
const LOOK: u64 = 1 << 14;

/// What the times of a log show.
#[derive(Clone, Debug, Default)]
pub struct LoggedTimes {
    /// Lines that were read.
    pub lines: u64,
    /// Lines that have a time.
    pub timed: u64,
    /// The mean of the times (s); 0 if no line has one.
    pub mean: f64,
    /// The field that holds the times.
    pub field: Option<FoundTimes>,
    /// If the user names a field: the fields in which the first lines have a number.
    pub known_fields: BTreeSet<String>,
    /// For each level in the options, its service time relative to its site's highest level, if enough lines of both have a
    /// time.
    pub level_shares: Vec<Option<f64>>,
}

/// Learns the times of a log from its lines: from all, or, if `watch` breaks off, from those before. `watch` gets the part
/// read.
///
/// # Errors
/// The log cannot be read, or none of its lines is one of an access log.
pub fn logged_times(
    (log, format): (&Input, &LogFormat),
    options: &LogOptions,
    watch: &mut dyn FnMut(Option<f64>) -> ControlFlow<()>,
) -> io::Result<LoggedTimes> {
    let unsorted = LogOptions { sort: false, ..options.clone() };
    let mut log = AccessLog::open(log, format, &unsorted)?;
    let (mut learned, mut record, mut sum) = (LoggedTimes::default(), Record::default(), 0.0);
    let mut by_level = LevelTimes::default();
    while log.read(&mut record)? {
        learned.lines += 1;
        if learned.lines.is_multiple_of(LOOK) && watch(log.progress()).is_break() {
            break;
        }
        if let Some(time) = record.time {
            learned.timed += 1;
            sum += time.as_secs_f64();
        }
        if let Some(line) = log.reader.own.latest {
            by_level.add(line);
        }
    }
    learned.mean = sum / learned.timed.max(1) as f64;
    learned.level_shares = by_level.shares(&options.levels);
    (learned.field, learned.known_fields) = (log.notes.times, log.notes.known_fields);
    Ok(learned)
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
