//! Counts per interval, turned into moments: each interval's requests are spread uniformly at random in it, as those of
//! a Poisson process are, given their number.
//!
//! The k uniform numbers of an interval are drawn in order, one at a time: if k points are left in (u, 1), the first lies at
//! `1 - (1 - u) V^(1/k)` with V uniform (Devroye, "Non-Uniform Random Variate Generation", 1986, V.3.1). So an interval of
//! millions needs no more memory than one of two.
//!
//! A file is either a table with a line per interval, whose last column is the count, or numbers separated by white space: some
//! data sets have all numbers in one line.

use super::LogNotes;
use super::input::{Piece, Text};
use crate::distribution::exponential;
use crate::workload::{Input, Replay};
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;
use std::io;

/// The arrival times, and what was read to draw them.
pub(super) struct Counts {
    text: Text,
    /// Whether the file is a table with columns; otherwise it is numbers separated by white space.
    table: bool,
    piece: Vec<u8>,
    pub(super) notes: LogNotes,
    /// The length of an interval in the run, after the replay's speed-up (s).
    every: f64,
    scale: f64,
    random: Random,
    /// How many intervals have begun.
    begun: u64,
    /// Requests of the last interval that are still to come.
    left: u64,
    /// The part of the last interval that is still to come.
    ahead: f64,
}

impl Counts {
    /// The arrival times; the first interval begins at zero.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn open(input: &Input, every: Duration, replay: Replay, random: Random) -> io::Result<Self> {
        let mut text = Text::open(input)?;
        // A file whose first line begins with a heading, or has a separator, is a table.
        let head = text.peek(4096)?;
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let table = first.first().is_some_and(u8::is_ascii_alphabetic)
            || first.iter().any(|byte| matches!(byte, b',' | b';' | b'\t'));
        Ok(Counts {
            text,
            table,
            piece: Vec::new(),
            notes: LogNotes::default(),
            every: every.as_secs_f64() / replay.speed,
            scale: replay.scale,
            random,
            begun: 0,
            left: 0,
            ahead: 0.0,
        })
    }

    /// The next arrival time (s).
    ///
    /// # Errors
    /// The file cannot be read, or there is no number in it.
    pub(super) fn next(&mut self) -> io::Result<Option<f64>> {
        while self.left == 0 {
            let Some(count) = self.count()? else { return Ok(None) };
            self.begun += 1;
            let scaled = count * self.scale;
            self.left = scaled as u64 + u64::from(self.random.uniform() < scaled.fract());
            self.ahead = 1.0;
        }
        self.ahead *= match self.left {
            1 => 1.0 - self.random.uniform(),
            left => (-exponential(&mut self.random) / left as f64).exp(),
        };
        self.left -= 1;
        self.notes.requests += 1;
        Ok(Some(self.every * (self.begun as f64 - self.ahead)))
    }

    /// How much of the file was read, in [0, 1].
    pub(super) fn progress(&self) -> Option<f64> {
        self.text.progress()
    }

    /// The count of the next interval. If it cannot be read it is zero, and the interval's time passes all the same.
    fn count(&mut self) -> io::Result<Option<f64>> {
        loop {
            let piece = if self.table {
                self.text.line(&mut self.piece)?
            } else {
                self.text.word(&mut self.piece)?
            };
            if piece == Piece::End {
                return self.end();
            }
            if self.piece.trim_ascii().is_empty() {
                continue;
            }
            self.notes.lines += 1;
            let found = (piece == Piece::Whole).then(|| last_column(&self.piece)).flatten();
            if found.is_some() {
                return Ok(found);
            }
            // A heading is not an interval, so it is not reported as skipped.
            if self.table && self.notes.lines == 1 {
                continue;
            }
            self.notes.skip(&self.piece, "its last column is no number of requests");
            return Ok(Some(0.0));
        }
    }

    fn end(&self) -> io::Result<Option<f64>> {
        // An empty file has no requests; a file whose intervals were all skipped is an error.
        if self.notes.lines == 0 || self.begun > self.notes.skipped {
            return Ok(None);
        }
        let first = |(line, text, _): &(u64, String, String)| format!(" Line {line} is `{text}`.");
        let example = self.notes.first_skipped.as_ref().map(first).unwrap_or_default();
        let message = format!(
            "{}: no line of {} has a number of requests.{example} Expected is a number per interval, one a line, or a \
             table whose last column counts: `1998-04-30 21:30:00,2`",
            self.text.name, self.notes.lines
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

/// The number in the last column, which is mostly the only one.
fn last_column(line: &[u8]) -> Option<f64> {
    let last = line.rsplit(|byte| matches!(byte, b',' | b';' | b'\t')).next()?.trim_ascii();
    // A file may hold millions of numbers, so short whole ones are read without the general parser.
    if !last.is_empty() && last.len() <= 15 && last.iter().all(u8::is_ascii_digit) {
        return Some(last.iter().fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0')) as f64);
    }
    let number: f64 = std::str::from_utf8(last).ok()?.trim_matches('"').parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number)
}
