//! The lines of a log sorted by time, in bounded memory.
//!
//! Lines are collected until they fill [`CHUNK`] bytes, sorted by their stamps, and written to a temporary file as a run; then
//! all runs are merged. Both steps are stable: lines with the same stamp keep their order in the log. All runs lie in one file,
//! which has no name and so leaves nothing behind. Each run is read through a buffer of its own, and all buffers together take
//! no more memory than a chunk.
//!
//! Sorting positions in the log instead would need to seek in it, but it may be compressed, or standard input.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// How many bytes of lines are sorted in memory at a time.
pub(super) const CHUNK: usize = 64 << 20;
/// The smallest buffer of a run.
const LEAST_BUFFER: usize = 4 << 10;
/// The bytes before each line: its stamp and its length.
const HEAD: usize = 12;

/// Takes lines in any order.
pub(super) struct Sorter {
    chunk: usize,
    text: Vec<u8>,
    /// Stamp, beginning and length of each line of the chunk.
    lines: Vec<(i64, usize, usize)>,
    file: BufWriter<File>,
    /// Beginning and end of each run.
    runs: Vec<(u64, u64)>,
    written: u64,
}

impl Sorter {
    /// Sorts chunks of `chunk` bytes.
    ///
    /// # Errors
    /// No temporary file can be created.
    pub(super) fn new(chunk: usize) -> io::Result<Self> {
        let file = tempfile::tempfile().map_err(|error| temporary(&error))?;
        Ok(Sorter {
            chunk,
            text: Vec::new(),
            lines: Vec::new(),
            file: BufWriter::new(file),
            runs: Vec::new(),
            written: 0,
        })
    }

    /// Adds a line with its stamp.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub(super) fn push(&mut self, stamp: i64, line: &[u8]) -> io::Result<()> {
        self.lines.push((stamp, self.text.len(), line.len()));
        self.text.extend_from_slice(line);
        let size = self.text.len() + self.lines.len() * size_of::<(i64, usize, usize)>();
        if size >= self.chunk { self.write_run() } else { Ok(()) }
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.lines.sort_by_key(|(stamp, ..)| *stamp);
        let began = self.written;
        for (stamp, at, length) in self.lines.drain(..) {
            let head = [&stamp.to_le_bytes()[..], &(length as u32).to_le_bytes()].concat();
            let wrote = self.file.write_all(&head);
            wrote
                .and_then(|()| self.file.write_all(&self.text[at..at + length]))
                .map_err(|error| temporary(&error))?;
            self.written += (HEAD + length) as u64;
        }
        self.text.clear();
        self.runs.push((began, self.written));
        Ok(())
    }

    /// All lines, in order.
    ///
    /// # Errors
    /// The temporary file cannot be written or read.
    pub(super) fn finish(mut self) -> io::Result<SortedLines> {
        self.write_run()?;
        let file = self.file.into_inner().map_err(|error| temporary(error.error()))?;
        let buffer = (self.chunk / self.runs.len()).max(LEAST_BUFFER);
        let runs = self.runs.into_iter().map(|(at, end)| SortedRun { at, end, buffer: Vec::new(), next: 0 });
        let mut sorted = SortedLines {
            file,
            buffer,
            runs: runs.collect(),
            first: BinaryHeap::new(),
            read: 0,
            size: self.written,
        };
        for run in 0..sorted.runs.len() {
            sorted.look_at(run)?;
        }
        Ok(sorted)
    }
}

/// Lines in order.
pub(super) struct SortedLines {
    file: File,
    buffer: usize,
    runs: Vec<SortedRun>,
    /// The stamp of each run's next line. Between equal stamps the earlier run comes first.
    first: BinaryHeap<Reverse<(i64, usize)>>,
    read: u64,
    size: u64,
}

/// A run in the file, of which some is in memory.
struct SortedRun {
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    next: usize,
}

impl SortedLines {
    /// The next line; false after the last.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(super) fn line(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        into.clear();
        let Some(Reverse((_, number))) = self.first.pop() else { return Ok(false) };
        let run = &mut self.runs[number];
        let head = &run.buffer[run.next..run.next + HEAD];
        let length = head[8..].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        run.next += HEAD;
        run.fill(&self.file, length, self.buffer)?;
        into.extend_from_slice(&run.buffer[run.next..run.next + length]);
        run.next += length;
        self.read += (HEAD + length) as u64;
        self.look_at(number)?;
        Ok(true)
    }

    /// How much was read, in [0, 1].
    pub(super) fn progress(&self) -> f64 {
        self.read as f64 / self.size.max(1) as f64
    }

    /// Notes the stamp of a run's next line, if there is one.
    fn look_at(&mut self, number: usize) -> io::Result<()> {
        let run = &mut self.runs[number];
        if run.fill(&self.file, HEAD, self.buffer)? {
            let stamp = run.buffer[run.next..run.next + 8].iter().rev();
            let stamp = stamp.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)).cast_signed();
            self.first.push(Reverse((stamp, number)));
        }
        Ok(())
    }
}

impl SortedRun {
    /// Makes sure that `needed` bytes are in memory; false at the end of the run.
    fn fill(&mut self, file: &File, needed: usize, buffer: usize) -> io::Result<bool> {
        let left = self.buffer.len() - self.next;
        if left >= needed {
            return Ok(true);
        }
        let more = ((self.end - self.at) as usize).min(buffer.max(needed) - left);
        if left + more < needed {
            return Ok(false);
        }
        self.buffer.drain(..self.next);
        self.next = 0;
        self.buffer.resize(left + more, 0);
        file.read_exact_at(&mut self.buffer[left..], self.at).map_err(|error| temporary(&error))?;
        self.at += more as u64;
        Ok(true)
    }
}

/// The same error, saying that it concerns the temporary file.
fn temporary(error: &io::Error) -> io::Error {
    let place = std::env::temp_dir();
    io::Error::new(error.kind(), format!("the sorted log, a temporary file in {}: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_and_equal_stamps_keep_their_order() {
        // Five runs and more: each chunk takes some forty lines.
        let mut random = 1_u64;
        let lines: Vec<(i64, String)> = (0..300)
            .map(|n| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let stamp = (random >> 59).cast_signed() - 16;
                (stamp, format!("{n} {}", "x".repeat((random >> 40) as usize % 90)))
            })
            .collect();
        let mut sorter = Sorter::new(3_000).unwrap();
        for (stamp, line) in &lines {
            sorter.push(*stamp, line.as_bytes()).unwrap();
        }
        assert!(sorter.runs.len() >= 5, "{}", sorter.runs.len());
        let mut sorted = sorter.finish().unwrap();
        let mut expected = lines;
        expected.sort_by_key(|(stamp, _)| *stamp);
        let mut line = Vec::new();
        for (_, text) in &expected {
            assert!(sorted.line(&mut line).unwrap());
            assert_eq!(String::from_utf8_lossy(&line), *text);
        }
        assert!(!sorted.line(&mut line).unwrap());
        assert_eq!(sorted.progress(), 1.0);
    }

    #[test]
    fn nothing_and_long_lines_are_sorted_too() {
        assert!(!Sorter::new(10).unwrap().finish().unwrap().line(&mut Vec::new()).unwrap());
        let mut sorter = Sorter::new(10).unwrap();
        sorter.push(2, "b".repeat(60_000).as_bytes()).unwrap();
        sorter.push(1, b"").unwrap();
        let (mut sorted, mut line) = (sorter.finish().unwrap(), Vec::new());
        assert!(sorted.line(&mut line).unwrap() && line.is_empty());
        assert!(sorted.line(&mut line).unwrap() && line.len() == 60_000);
    }
}
