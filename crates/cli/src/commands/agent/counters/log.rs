//! An access log, followed while the server writes it, and through its rotation.
//!
//! A log is rotated in one of two ways. Either it is moved away and a new file takes its name (the inode differs), or it is
//! copied and truncated (it is shorter than what was read). The server goes on writing into a moved file until it is told to
//! reopen its log. So a moved file is read on, and left only after two looks in a row that found nothing new in it.

use super::Complaint;
use plimsoll_core::agent::Counters;
use plimsoll_sim::logged_bytes;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The longest beginning of a line that is kept until the line ends (byte).
const LONGEST: usize = 64 << 10;
/// The part before the end that is read at the start, to see that the file is a log (byte).
const TAIL: u64 = 64 << 10;

pub(crate) struct FollowedLog {
    path: PathBuf,
    /// The file; `None` while no file has the name.
    file: Option<File>,
    /// The bytes read from `file`.
    read: u64,
    /// A line whose end has not been written yet.
    part: Vec<u8>,
    /// Looks in a row that found nothing new in a moved file.
    silent: u32,
    last: Instant,
    pub(super) complaint: Complaint,
}

impl FollowedLog {
    /// Opens the log at its end.
    pub(super) fn open(path: &Path) -> Result<FollowedLog, String> {
        let name = path.display();
        let cannot = |error: io::Error| {
            format!("cannot read the log {name}: {error}; name the server's own, and let this user read it")
        };
        let mut file = File::open(path).map_err(cannot)?;
        let length = file.metadata().map_err(cannot)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(cannot)?;
        let mut tail = Vec::new();
        Read::by_ref(&mut file).take(TAIL).read_to_end(&mut tail).map_err(cannot)?;
        let tail = String::from_utf8_lossy(&tail);
        let mut lines = tail.lines().rev().filter(|line| !line.trim().is_empty()).peekable();
        if let Some(last) = lines.peek().copied()
            && lines.all(|line| logged_bytes(line).is_err())
        {
            let why = logged_bytes(last).err().unwrap_or_default();
            return Err(format!(
                "{name} is no access log that is known: {why}; expected are lines in the Common or Combined format, or \
                 JSON objects"
            ));
        }
        let read = file.seek(SeekFrom::End(0)).map_err(cannot)?;
        Ok(FollowedLog {
            path: path.to_owned(),
            file: Some(file),
            read,
            part: Vec::new(),
            silent: 0,
            last: Instant::now(),
            complaint: Complaint::default(),
        })
    }

    /// Counts the lines written since the last look; also returns the seconds between the two looks.
    pub(super) fn look(&mut self, now: Instant) -> Option<(Counters, f64)> {
        let mut counters = Counters::default();
        let read = self.read_on(&mut counters);
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        if read.is_err() || seconds <= 0.0 {
            return None;
        }
        self.last = now;
        Some((counters, seconds))
    }

    fn read_on(&mut self, counters: &mut Counters) -> io::Result<()> {
        let new = std::fs::metadata(&self.path);
        let Some(file) = &mut self.file else {
            return self.reopen(counters);
        };
        let own = file.metadata()?;
        if own.len() < self.read {
            self.read = 0;
            self.part.clear();
            file.seek(SeekFrom::Start(0))?;
        }
        let before = self.read;
        self.take(counters)?;
        let moved = new.is_ok_and(|new| (new.dev(), new.ino()) != (own.dev(), own.ino()));
        self.silent = if moved && self.read == before { self.silent + 1 } else { 0 };
        if self.silent >= 2 {
            return self.reopen(counters);
        }
        Ok(())
    }

    /// Reads the file that has the name now, from its beginning.
    fn reopen(&mut self, counters: &mut Counters) -> io::Result<()> {
        self.file = Some(File::open(&self.path)?);
        (self.read, self.silent) = (0, 0);
        self.part.clear();
        self.take(counters)
    }

    fn take(&mut self, counters: &mut Counters) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                return Ok(());
            }
            self.read += read as u64;
            let mut lines = piece[..read].split(|byte| *byte == b'\n');
            let last = lines.next_back().unwrap_or_default();
            for line in lines {
                self.part.extend_from_slice(line);
                self.complaint.make(count(&self.part, counters));
                self.part.clear();
            }
            self.part.extend_from_slice(last);
            self.part.truncate(LONGEST);
        }
    }
}

/// Counts a line, or returns why it is not understood.
fn count(line: &[u8], counters: &mut Counters) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    match logged_bytes(line.trim()) {
        _ if line.trim().is_empty() => None,
        Ok(bytes) => {
            counters.requests += 1;
            counters.bytes += bytes;
            None
        }
        // Servers also log connections without a request, as `"-" 408 -`. Such lines are ignored.
        Err(why) => {
            let shown: String = line.chars().filter(|c| !c.is_control()).take(100).collect();
            Some(format!("a line of the log is passed over, as all like it will be: {why}: {shown}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::time::Duration;

    const LINE: &str = "192.0.2.1 - - [01/Aug/1995:00:00:01 -0400] \"GET /a HTTP/1.0\" 200 100\n";

    fn append(path: &Path, text: &str) {
        let mut file = File::options().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn it_is_followed_through_rotation_of_both_kinds_and_half_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, LINE);
        let mut log = FollowedLog::open(&path).unwrap();
        let mut now = log.last;
        let mut look = || {
            now += Duration::from_millis(250);
            let (counters, seconds) = log.look(now).unwrap();
            assert!((seconds - 0.25).abs() < 1e-9);
            (counters.requests, counters.bytes)
        };
        assert_eq!(look(), (0, 0), "what was there before does not count");
        append(&path, &format!("{LINE}{LINE}{}", &LINE[..40]));
        assert_eq!(look(), (2, 200));
        append(&path, &LINE[40..]);
        assert_eq!(look(), (1, 100));
        // The log is moved away, and the server goes on writing into it for a while.
        fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        append(&folder.path().join("access.log.1"), LINE);
        append(&path, &format!("{LINE}{LINE}{LINE}"));
        assert_eq!(look(), (1, 100));
        append(&folder.path().join("access.log.1"), LINE);
        assert_eq!(look(), (1, 100));
        assert_eq!((look(), look()), ((0, 0), (3, 300)));
        // The log is copied and truncated.
        fs::write(&path, LINE).unwrap();
        assert_eq!(look(), (1, 100));
        fs::remove_file(&path).unwrap();
        assert_eq!(look(), (0, 0), "gone for a moment");
    }

    #[test]
    fn what_is_no_log_is_refused_and_the_first_foreign_line_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        append(&path, "hello\nworld\n");
        assert!(FollowedLog::open(&path).is_err_and(|why| why.contains("no access log that is known")));
        assert!(
            FollowedLog::open(&folder.path().join("absent")).is_err_and(|why| why.contains("cannot read"))
        );
        let path = folder.path().join("access.log");
        append(&path, "");
        let mut log = FollowedLog::open(&path).unwrap();
        append(&path, "junk\nmore junk\n");
        append(&path, LINE);
        let now = log.last + Duration::from_secs(1);
        assert_eq!(log.look(now).map(|(counters, _)| counters.requests), Some(1));
        assert!(log.complaint.take().is_some_and(|line| line.contains("junk")));
        assert_eq!(log.complaint.take(), None);
    }
}
