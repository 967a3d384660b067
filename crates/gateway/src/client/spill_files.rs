//! Bytes that wait in temporary files: bodies too long for memory, of clients that are slower than their server.
//! `exchange/moves.rs` decides which bytes go into them.
//!
//! A file has no name: it is gone with its last handle, also after a crash. All files together hold at most
//! `limits.buffer_files` bytes, and one connection in [`CONNECTIONS_A_FILE`] may have one, so that files leave descriptors
//! for connections. A file is written and read on the worker's thread, into and out of the page cache.
//!
//! **Room.** A file is used in segments, and a segment that was read is written again before the file grows. So a long response
//! to a slow client takes as much room as was ever unread at once, and not its whole length. Punching holes to give room back
//! to the file system would make some kernels write the bytes to the disk first, and wait for that.

use crate::settings::{CONNECTIONS_A_FILE, Limits};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The size of a segment (bytes).
const SEGMENT: u64 = 256 * 1024;

/// What is buffered, and how often a file failed. Shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    in_files: AtomicU64,
    files: AtomicUsize,
    failures: AtomicU64,
    /// The bytes in memory by thread, as of its last report.
    in_memory: Box<[AtomicU64]>,
}

/// How much is buffered now, and how often a file failed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffered {
    pub in_memory: u64,
    pub in_files: u64,
    pub failures: u64,
}

/// Why bytes could not be stored.
#[derive(Debug)]
pub(crate) enum StorageFault {
    /// All files together have reached their bound, or the number of files has.
    Full,
    /// The file could not be made, written or read.
    Failed(io::Error),
}

impl StorageFault {
    pub(crate) fn is_full_disk(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, StorageFault::Failed(error) if matches!(error.kind(), StorageFull | QuotaExceeded))
    }
}

impl Storage {
    pub(crate) fn new(threads: usize) -> Self {
        Storage { in_memory: (0..threads).map(|_| AtomicU64::default()).collect(), ..Storage::default() }
    }

    /// Notes how many bytes of buffers a thread uses.
    pub(crate) fn note_memory(&self, thread: usize, bytes: usize) {
        self.in_memory[thread].store(bytes as u64, Relaxed);
    }

    pub(crate) fn buffered(&self) -> Buffered {
        Buffered {
            in_memory: self.in_memory.iter().map(|thread| thread.load(Relaxed)).sum(),
            in_files: self.in_files.load(Relaxed),
            failures: self.failures.load(Relaxed),
        }
    }

    /// Whether three quarters of what all files may hold are taken, or of the files that there may be: clients with bytes in
    /// files must then keep their pace.
    pub(crate) fn is_scarce(&self, limits: &Limits) -> bool {
        self.in_files.load(Relaxed) > limits.buffer_files / 4 * 3
            || self.files.load(Relaxed) > most_files(limits.connections).div_ceil(4) * 3
    }

    fn reserve(&self, bytes: u64, most: u64) -> Result<(), StorageFault> {
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        self.in_files.fetch_update(Relaxed, Relaxed, fits).map(drop).map_err(|_| StorageFault::Full)
    }

    fn failed(&self, error: io::Error) -> StorageFault {
        self.failures.fetch_add(1, Relaxed);
        StorageFault::Failed(error)
    }
}

fn most_files(connections: usize) -> usize {
    (connections / CONNECTIONS_A_FILE).max(1)
}

/// A queue of bytes in a file of its own.
#[derive(Debug)]
pub(crate) struct Store {
    storage: Arc<Storage>,
    file: File,
    /// The number of bytes read, and of bytes appended, since the beginning.
    read: u64,
    written: u64,
    /// All segments of the file in the order of reading: first those in use, then those that are written next.
    segments: VecDeque<u32>,
    /// The number of segments that were read before the first segment in use.
    passed: u64,
    /// How much room the file takes.
    length: u64,
}

impl Store {
    /// Makes a file, unless there are as many as a gateway of this number of `connections` may have.
    pub(crate) fn create(storage: &Arc<Storage>, connections: usize) -> Result<Self, StorageFault> {
        let most = most_files(connections);
        let fits = |files: usize| (files < most).then_some(files + 1);
        storage.files.fetch_update(Relaxed, Relaxed, fits).map_err(|_| StorageFault::Full)?;
        match tempfile::tempfile_in(folder()) {
            Ok(file) => {
                let (storage, segments) = (storage.clone(), VecDeque::new());
                Ok(Store { storage, file, read: 0, written: 0, segments, passed: 0, length: 0 })
            }
            Err(error) => {
                storage.files.fetch_sub(1, Relaxed);
                Err(storage.failed(error))
            }
        }
    }

    /// Bytes that were appended and not read yet.
    pub(crate) fn len(&self) -> u64 {
        self.written - self.read
    }

    /// Where in the file the `at`th byte lies, and how many bytes its segment has from there on.
    fn place(&self, at: u64) -> (u64, u64) {
        let segment = self.segments[(at / SEGMENT - self.passed) as usize];
        (u64::from(segment) * SEGMENT + at % SEGMENT, SEGMENT - at % SEGMENT)
    }

    /// The parts of `bytes` that lie in one segment each once they are appended, with their places.
    fn parts<'a>(&self, mut bytes: &'a [u8]) -> impl Iterator<Item = (&'a [u8], u64)> {
        let mut at = self.written;
        std::iter::from_fn(move || {
            let (place, room) = (!bytes.is_empty()).then(|| self.place(at))?;
            let (part, rest) = bytes.split_at((bytes.len() as u64).min(room) as usize);
            at += part.len() as u64;
            bytes = rest;
            Some((part, place))
        })
    }

    /// Appends all of `bytes` or nothing; all files together may hold `most` bytes.
    pub(crate) fn append(&mut self, bytes: &[u8], most: u64) -> Result<(), StorageFault> {
        let end = self.written + bytes.len() as u64;
        while (self.passed + self.segments.len() as u64) * SEGMENT < end {
            self.segments.push_back(self.segments.len() as u32);
        }
        let ends = self.parts(bytes).map(|(part, place)| place + part.len() as u64);
        let length = ends.fold(self.length, u64::max);
        let more = length - self.length;
        self.storage.reserve(more, most)?;
        let written = self.parts(bytes).try_for_each(|(part, place)| self.file.write_all_at(part, place));
        if let Err(error) = written {
            self.storage.in_files.fetch_sub(more, Relaxed);
            return Err(self.storage.failed(error));
        }
        (self.length, self.written) = (length, end);
        Ok(())
    }

    /// Counts the next `count` bytes as read.
    pub(crate) fn skip(&mut self, count: usize) {
        self.read += count as u64;
    }

    /// Takes back the last `count` bytes that were read or skipped, so that they are read again. They must be of the last read,
    /// or skipped since.
    pub(crate) fn unread(&mut self, count: usize) {
        self.read -= count as u64;
    }

    /// Reads the next bytes; zero only if there are none, or `into` is empty.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.len() == 0 || into.is_empty() {
            return Ok(0);
        }
        // Segments that were read to their end go to the end of the list, to be written again.
        while (self.passed + 1) * SEGMENT <= self.read {
            self.segments.rotate_left(1);
            self.passed += 1;
        }
        let (place, room) = self.place(self.read);
        let most = usize::try_from(self.len().min(room)).map_or(into.len(), |most| most.min(into.len()));
        match self.file.read_at(&mut into[..most], place) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.read += count as u64;
                Ok(count)
            }
            Err(error) => {
                self.storage.failures.fetch_add(1, Relaxed);
                Err(error)
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.storage.in_files.fetch_sub(self.length, Relaxed);
        self.storage.files.fetch_sub(1, Relaxed);
    }
}

/// Where temporary files are: `TMPDIR`, else `/var/tmp`, since `/tmp` is memory on many systems.
fn folder() -> PathBuf {
    let lasting = Path::new("/var/tmp");
    match std::env::var_os("TMPDIR") {
        None if lasting.is_dir() => lasting.to_owned(),
        _ => std::env::temp_dir(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_their_room_is_given_back() {
        let storage = Arc::<Storage>::default();
        let mut store = Store::create(&storage, 8).expect("a file");
        store.append(b"abc", 10).expect("room");
        let mut two = [0; 2];
        assert_eq!((store.read(&mut two).expect("read"), &two), (2, b"ab"));
        store.unread(1);
        assert_eq!((store.read(&mut two).expect("read"), &two), (2, b"bc"));
        store.unread(1);
        store.append(b"defg", 10).expect("room");
        store.skip(3);
        store.unread(3);
        let mut rest = [0; 9];
        assert_eq!(store.read(&mut rest).expect("read"), 5);
        assert_eq!(&rest[..5], b"cdefg");
        assert_eq!((store.len(), store.read(&mut rest).expect("nothing")), (0, 0));
        assert_eq!(storage.buffered().in_files, 7);
        drop(store);
        assert_eq!(storage.buffered().in_files, 0);
    }

    #[test]
    fn what_was_read_is_written_anew_before_the_file_grows() {
        let storage = Arc::<Storage>::default();
        let mut store = Store::create(&storage, 8).expect("a file");
        let byte = |at: u64| (at.wrapping_mul(2_654_435_761) >> 24) as u8;
        let (mut written, mut read, mut ahead) = (0, 0, 100_000);
        for round in 0..400 {
            // How much is ahead changes, so that the file grows while segments in its middle are used again.
            ahead = if round % 100 == 0 { ahead * 2 } else { ahead };
            while written < read + ahead {
                let piece: Vec<u8> = (written..written + 70_001).map(byte).collect();
                store.append(&piece, 4 << 20).expect("room");
                written += 70_001;
            }
            let mut into = vec![0; 80_000];
            let count = store.read(&mut into).expect("bytes");
            let again = count / 3;
            store.unread(again);
            let count = (count - again) as u64;
            assert!(
                into[..count as usize].iter().zip(read..).all(|(own, at)| *own == byte(at)),
                "after {read}"
            );
            read += count;
        }
        assert!(read > 7_000_000 && storage.buffered().in_files < ahead + 3 * SEGMENT, "{read}");
        assert_eq!(store.len(), written - read);
        drop(store);
        assert_eq!(storage.buffered().in_files, 0);
    }

    #[test]
    fn all_files_together_hold_what_they_may() {
        let storage = Arc::<Storage>::default();
        let mut one = Store::create(&storage, 8).expect("a file");
        let mut other = Store::create(&storage, 8).expect("a file");
        assert!(matches!(Store::create(&storage, 8), Err(StorageFault::Full)), "a third file");
        one.append(&[0; 6], 10).expect("room");
        assert!(matches!(other.append(&[0; 5], 10), Err(StorageFault::Full)));
        other.append(&[0; 4], 10).expect("room");
        drop(one);
        other.append(&[0; 6], 10).expect("room again");
        drop(Store::create(&storage, 8).expect("a file again"));
        assert_eq!((storage.buffered().in_files, storage.buffered().failures), (10, 0));
    }
}
