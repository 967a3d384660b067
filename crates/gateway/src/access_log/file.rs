//! A log's file, which is opened anew at its path when that is asked for: its owner has moved the old one away (logrotate).

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A file that is written behind a buffer.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// Set when the file is to be opened anew.
    reopen: Arc<AtomicBool>,
    /// Counts lines that lie in the buffer at the end and cannot be written.
    lost: Arc<AtomicU64>,
}

impl LogFile {
    pub(super) fn open(path: PathBuf, reopen: Arc<AtomicBool>, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = BufWriter::new(open(&path)?);
        Ok(LogFile { path, file, reopen, lost })
    }

    /// Counts the lines in the buffer, which cannot be written.
    fn lose(&self) {
        let lines = self.file.buffer().iter().filter(|byte| **byte == b'\n').count();
        self.lost.fetch_add(lines as u64, Relaxed);
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if self.file.flush().is_err() {
            self.lose();
        }
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Whether the file can be opened; it does not wait for the reader of a pipe.
pub(super) fn can_open(path: &PathBuf) -> io::Result<()> {
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    OpenOptions::new().append(true).create(true).custom_flags(without_waiting).open(path).map(drop)
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.reopen.swap(false, Relaxed) {
            // What was written before belongs to the old file. If no new one can be opened the old one goes on.
            let flushed = self.file.flush();
            if let Ok(file) = open(&self.path) {
                if flushed.is_err() {
                    self.lose();
                }
                let old = std::mem::replace(&mut self.file, BufWriter::new(file));
                // It does not try once more what is counted as lost.
                drop(old.into_parts());
            }
        }
        self.file.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lines_that_lie_in_the_buffer_at_the_end_are_counted() -> io::Result<()> {
        let lost = Arc::<AtomicU64>::default();
        let mut log = LogFile::open("/dev/full".into(), Arc::default(), lost.clone())?;
        log.write_all(b"first\nsecond\n")?;
        drop(log);
        assert_eq!(lost.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn lines_that_a_full_disk_has_not_taken_are_counted_when_the_file_is_opened_anew() -> io::Result<()> {
        let (lost, reopen) = (Arc::<AtomicU64>::default(), Arc::new(AtomicBool::new(false)));
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("access.log");
        std::os::unix::fs::symlink("/dev/full", &path)?;
        let mut log = LogFile::open(path.clone(), reopen.clone(), lost.clone())?;
        log.write_all(b"first\nsecond\n")?;
        fs::remove_file(&path)?;
        reopen.store(true, Relaxed);
        log.write_all(b"third\n")?;
        drop(log);
        assert_eq!((lost.load(Relaxed), fs::read_to_string(path)?.as_str()), (2, "third\n"));
        Ok(())
    }

    #[test]
    fn a_file_that_was_moved_away_keeps_what_came_before() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (path, moved) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        let reopen = Arc::new(AtomicBool::new(false));
        let mut log = LogFile::open(path.clone(), reopen.clone(), Arc::default())?;
        log.write_all(b"first\n")?;
        fs::rename(&path, &moved)?;
        log.write_all(b"second\n")?;
        reopen.store(true, Relaxed);
        log.write_all(b"third\n")?;
        log.flush()?;
        assert_eq!(fs::read_to_string(moved)?, "first\nsecond\n");
        assert_eq!(fs::read_to_string(path)?, "third\n");
        Ok(())
    }
}
