//! A log's file, which is opened anew at its path when that is asked for: its owner has moved the old one away (logrotate).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
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
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if self.file.flush().is_err() {
            let lines = self.file.buffer().iter().filter(|byte| **byte == b'\n').count();
            self.lost.fetch_add(lines as u64, Relaxed);
        }
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.reopen.swap(false, Relaxed) {
            // What was written before belongs to the old file. If no new one can be opened the old one goes on.
            let _ = self.file.flush();
            if let Ok(file) = open(&self.path) {
                self.file = BufWriter::new(file);
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
