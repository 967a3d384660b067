//! What was found in a log, and what is reported about lines that were not understood.

use crate::workload::{FieldPlace, TimeUnit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The most characters of a line that a message shows.
const SHOWN: usize = 120;

/// A line is binary if more than one in this many of its characters is not text, or if one byte is 0.
const BINARY: usize = 3;
/// Shown instead of a binary line.
const NO_TEXT: &str = "(no text)";

/// What a log turned out to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogNotes {
    /// Lines read.
    pub lines: u64,
    /// Lines that could not be understood and were skipped.
    pub skipped: u64,
    /// The first skipped line: its number, from 1, its shortened text, and what is wrong with it.
    pub first_skipped: Option<(u64, String, String)>,
    /// Lines whose time lies before that of an earlier line, by so little that the line was put back in its place.
    pub moved: u64,
    /// The first moved line: its number, and how late it was (s).
    pub first_moved: Option<(u64, f64)>,
    /// Whether all lines were sorted before any was simulated; `moved` then counts every line that was out of order.
    pub sorted: bool,
    /// Lines that were too late to be put back in their place. Their requests come as early as they still could.
    pub backwards: u64,
    /// The first such line: its number, and how late it was (s).
    pub first_backwards: Option<(u64, f64)>,
    /// How often the log's clock went back for good (two logs in one file, say); from there on, times are shifted so that they
    /// go on.
    pub restarts: u64,
    /// The stamp of the first line (us since 1970).
    pub began: Option<i64>,
    /// Gaps of more than an hour, which are cut to an hour; and how many seconds were cut in all.
    pub gaps: (u64, f64),
    /// Single lines more than an hour ahead of those around them. Their requests come at the time of the line before.
    pub strays: u64,
    /// Requests made from the log so far.
    pub requests: u64,
    /// Requests whose line has the server's own time; and requests whose line has none, or a zero because the time was too
    /// short to be written.
    pub timed: (u64, u64),
    /// Requests from lines of the gateway's own log; and those that were not served, in that log or in HAProxy's.
    pub own: (u64, u64),
    /// Served requests of the gateway's own log whose line has no time, so that they take the time of another line.
    pub untimed: u64,
    /// Lines of the gateway's own log or of HAProxy's whose requests were answered without a server, by status. They make no
    /// requests.
    pub no_load: BTreeMap<u16, u64>,
    /// The field that holds the times in `timed`.
    pub times: Option<FoundTimes>,
    /// Lines whose time is hardly in the unit that the first lines show; it was read in that unit all the same.
    pub odd_times: u64,
    /// The first such line: its number, and the time as written.
    pub first_odd_time: Option<(u64, f64)>,
    /// If the user names a field: the fields in which the first lines have a number.
    pub known_fields: BTreeSet<String>,
    /// The part of the log that the end of the run left out.
    pub left_out: Option<LeftOut>,
    /// The format of the first line that was understood; `None` for counts.
    pub format: Option<FoundFormat>,
}

/// The part of a log that was not replayed because the run ended first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeftOut {
    /// Requests that were left out.
    pub requests: u64,
    /// All requests of the log, replayed or left out.
    pub of: u64,
    /// When the last request left out would have come (s of the run).
    pub last: f64,
    /// Whether the log was read to its end; a pipe is not.
    pub is_all: bool,
}

/// A log is out of order beyond repair if more than this part of its lines come later than their time.
const LATE: f64 = 0.01;

impl LogNotes {
    /// Whether the log is so far out of order that its replay is wrong: too many lines are too late, or most lines stand behind
    /// later ones and the clock goes back again and again, as in a log that runs backwards.
    pub fn is_beyond_repair(&self) -> bool {
        let lines = self.lines as f64;
        let runs_backwards = self.restarts > 1 && (self.moved + self.backwards) as f64 > 0.5 * lines;
        !self.sorted && (self.backwards as f64 > LATE * lines || runs_backwards)
    }

    /// Notes that the line just read has a time that is hardly in the log's unit.
    pub(super) fn odd_time(&mut self, value: f64) {
        self.odd_times += 1;
        self.first_odd_time.get_or_insert((self.lines, value));
    }

    /// Counts the line just read as not understood, and keeps the first such line.
    pub(super) fn skip(&mut self, line: &[u8], why: &str) {
        self.skipped += 1;
        if self.first_skipped.is_none() {
            self.first_skipped = Some((self.lines, excerpt(line), why.to_owned()));
        }
    }
}

/// What a log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundFormat {
    /// The Common log format.
    Common,
    /// The Combined log format: Common with referer and agent.
    Combined,
    /// HAProxy's own (`option httplog`).
    Haproxy,
    /// One JSON object a line.
    Json,
}

impl fmt::Display for FoundFormat {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            FoundFormat::Common => "Common log format",
            FoundFormat::Combined => "Combined log format",
            FoundFormat::Haproxy => "HAProxy's HTTP log",
            FoundFormat::Json => "JSON lines",
        })
    }
}

/// The field of a log's lines that holds a request's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTimes {
    /// Where the field stands.
    pub place: FieldPlace,
    /// The field's unit.
    pub unit: TimeUnit,
    /// Whether the time is the server's own; otherwise it is only an upper bound.
    pub own: bool,
}

impl fmt::Display for FoundTimes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            FieldPlace::Number(number) => write!(to, "field {number} behind the format's own")?,
            FieldPlace::Name(name) => write!(to, "`{name}`")?,
        }
        to.write_str(match self.unit {
            TimeUnit::Seconds => ", in seconds",
            TimeUnit::Milliseconds => ", in milliseconds",
            TimeUnit::Microseconds => ", in microseconds",
            TimeUnit::Nanoseconds => ", in nanoseconds",
        })
    }
}

/// The beginning of a line, safe to print: control characters, which could steer a terminal, are replaced.
fn excerpt(line: &[u8]) -> String {
    // A character has at most four bytes, so this many bytes hold more characters than are shown.
    let head = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN + 4)]);
    let printable = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut shown: String = head.chars().take(SHOWN).map(printable).collect();
    let letters = shown.chars().count();
    let odd = shown.chars().filter(|letter| *letter == char::REPLACEMENT_CHARACTER).count();
    if BINARY * odd > letters || line.contains(&0) {
        return NO_TEXT.to_owned();
    }
    if head.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_cut_between_characters() {
        assert_eq!(excerpt("ä".repeat(120).as_bytes()), "ä".repeat(120));
        assert_eq!(excerpt("ä".repeat(121).as_bytes()), "ä".repeat(120) + "…");
        assert_eq!(excerpt("😀".repeat(20_000).as_bytes()), "😀".repeat(120) + "…");
        assert_eq!(excerpt(b"a\x1b[31m\xffb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn bytes_that_are_no_text_are_not_shown() {
        for line in [&b"\xfd7zXZ\x00\x00\x04\xe6"[..], b"GET /\x00", b"\x80\x99a\x07b"] {
            assert_eq!(excerpt(line), NO_TEXT);
        }
        assert_eq!(excerpt(b""), "");
    }

    #[test]
    fn a_log_is_beyond_repair_if_many_lines_are_late_or_it_runs_backwards() {
        let notes = LogNotes { lines: 1000, ..LogNotes::default() };
        assert!(!notes.is_beyond_repair());
        // Rotated logs in the wrong order, within which lines are in order.
        assert!(!LogNotes { restarts: 9, moved: 400, backwards: 10, ..notes.clone() }.is_beyond_repair());
        assert!(LogNotes { backwards: 11, ..notes.clone() }.is_beyond_repair());
        assert!(LogNotes { restarts: 2, moved: 501, ..notes.clone() }.is_beyond_repair());
        assert!(!LogNotes { moved: 999, sorted: true, ..notes }.is_beyond_repair());
    }

    #[test]
    fn the_first_is_kept() {
        let mut notes = LogNotes { lines: 3, ..LogNotes::default() };
        notes.skip(b"one", "odd");
        notes.lines = 9;
        notes.skip(b"two", "odder");
        assert_eq!((notes.skipped, notes.first_skipped), (2, Some((3, "one".to_owned(), "odd".to_owned()))));
    }
}
