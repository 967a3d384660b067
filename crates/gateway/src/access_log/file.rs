//! A log's file. After its owner has moved the file away (logrotate), the log opens its path anew on request.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A file behind a write buffer.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: BufWriter<File>,
    /// Set when the file is to be opened anew.
    reopen: Arc<AtomicBool>,
    /// Counts the lines that lie in the buffer when the log ends and cannot be written.
    lost: Arc<AtomicU64>,
}

impl LogFile {
    pub(super) fn open(path: PathBuf, reopen: Arc<AtomicBool>, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let file = BufWriter::new(open(&path)?);
        Ok(LogFile { path, file, reopen, lost })
    }

    /// Counts the lines in the buffer as lost.
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

/// Opens the file without waiting for the reader of a pipe. A write may block, but only the log's own thread writes.
fn open(path: &PathBuf) -> io::Result<File> {
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().append(true).create(true).custom_flags(without_waiting).open(path);
    let file = opened.map_err(|error| {
        let is_unread = error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
            && fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo());
        if is_unread {
            io::Error::other("it is a pipe that nobody reads; start its reader first")
        } else {
            error
        }
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether the file can be opened.
pub(super) fn can_open(path: &PathBuf) -> io::Result<()> {
    open(path).map(drop)
}

impl Write for LogFile {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.reopen.swap(false, Relaxed) {
            // What was written before belongs to the old file. If no new file can be opened, the log goes on with the old one.
            let flushed = self.file.flush();
            if let Ok(file) = open(&self.path) {
                if flushed.is_err() {
                    self.lose();
                }
                let old = std::mem::replace(&mut self.file, BufWriter::new(file));
                // The old buffer is dropped without another try to write the lines that were counted as lost.
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
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::io::Read as _;

    #[test]
    fn a_pipe_is_not_waited_for_and_keeps_what_its_reader_is_slow_to_take() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let open = || LogFile::open(path.clone(), Arc::default(), Arc::default());
        let refused = open().expect_err("nobody reads it");
        assert!(refused.to_string().starts_with("it is a pipe that nobody reads"), "{refused}");
        let mut reader =
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path)?;
        let mut log = open()?;
        fcntl_setfl(&reader, OFlags::empty())?;
        // The lines are more than a pipe holds.
        let line = [[b'a'; 1023].as_slice(), b"\n"].concat();
        let lines = 1024;
        let written = std::thread::spawn(move || (0..lines).try_for_each(|_| log.write_all(&line)));
        let mut all = Vec::new();
        reader.read_to_end(&mut all)?;
        written.join().expect("no panic")?;
        assert_eq!(all.len(), 1024 * lines);
        Ok(())
    }

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
