//! Bytes on their way to a client, in order; each piece knows how many of its bytes count as delivered body.
//!
//! Bytes that a slow client does not take for long go into a temporary file. The order is: the pieces in memory, the file's
//! bytes, and the pieces that came since and are not in the file. The first pieces in memory are in the file too, as bytes that
//! were already read.
//!
//! A long file of a folder comes in the same way: it stays where it is, and is read as its client takes it. While memory is
//! short, bytes that were read from it and not written are dropped, and are read again later.

use super::buffers::{self, Buffer, LARGE};
use super::spill_files::{Storage, StorageFault, Store};
use crate::files::FileSlice;
use crate::settings::Limits;
use crate::transport::socket::Socket;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub(crate) enum Bytes {
    Pooled(Buffer),
    Shared(Rc<[u8]>),
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Pooled(buffer) => buffer,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    range: Range<usize>,
    /// How many of the remaining bytes are not body.
    head: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub body: u64,
    pub bytes: u64,
}

/// The file that holds the bytes.
#[derive(Debug)]
enum StoredBytes {
    /// In a temporary file.
    Spilled(Store),
    /// In a file of a folder.
    Folder(FileSlice),
}

impl StoredBytes {
    fn len(&self) -> u64 {
        match self {
            StoredBytes::Spilled(store) => store.len(),
            StoredBytes::Folder(slice) => slice.remaining(),
        }
    }

    fn skip(&mut self, count: usize) {
        match self {
            StoredBytes::Spilled(store) => store.skip(count),
            StoredBytes::Folder(slice) => slice.skip(count),
        }
    }

    fn unread(&mut self, count: usize) {
        match self {
            StoredBytes::Spilled(store) => store.unread(count),
            StoredBytes::Folder(slice) => slice.unread(count),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            StoredBytes::Spilled(store) => store.read(into),
            StoredBytes::Folder(slice) => slice.read(into),
        }
    }

    fn append(&mut self, bytes: &[u8], most: u64) -> Result<(), StorageFault> {
        match self {
            StoredBytes::Spilled(store) => store.append(bytes, most),
            StoredBytes::Folder(_) => Err(StorageFault::Full),
        }
    }
}

/// The bytes in the file, and the pieces behind them.
#[derive(Debug)]
struct Stored {
    store: StoredBytes,
    /// How many of the file's bytes are not body. Their places are not noted: the first bytes that are read back count as not
    /// body.
    head: u64,
    later: VecDeque<Piece>,
    /// Whether what was read goes to a stream, which cannot give it back: its pieces are small unless memory is ample.
    by_turns: bool,
}

impl Stored {
    /// Skips the file's next bytes, at most `count`; returns how many were skipped, and how many of those are not body.
    fn pass_over(&mut self, count: usize) -> (usize, usize) {
        let count = usize::try_from(self.store.len()).map_or(count, |length| length.min(count));
        self.store.skip(count);
        (count, self.take_head(count))
    }

    /// How many of the file's next `count` bytes are not body.
    fn take_head(&mut self, count: usize) -> usize {
        let head = usize::try_from(self.head).map_or(count, |head| head.min(count));
        self.head -= head as u64;
        head
    }
}

/// A queue of pieces. Its length is bounded by its callers.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Piece>,
    stored: Option<Box<Stored>>,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.stored.is_none()
    }

    /// How many pieces are in memory.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len() + self.stored.as_ref().map_or(0, |stored| stored.later.len())
    }

    /// How many bytes are in the file.
    pub(crate) fn stored(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.store.len())
    }

    /// Keeps the first `count` pieces. Call it only while nothing is in a file.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.pieces.truncate(count);
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.stored = None;
    }

    /// Queues `range` of `bytes`, whose first `head` bytes are not body.
    pub(crate) fn push(&mut self, bytes: Bytes, range: Range<usize>, head: usize) {
        if !range.is_empty() {
            let queue = self.stored.as_mut().map_or(&mut self.pieces, |stored| &mut stored.later);
            queue.push_back(Piece { bytes, range, head });
        }
    }

    /// Queues a copy of `text`, which is not body.
    pub(crate) fn push_head(&mut self, text: &[u8]) {
        let mut buffer = Buffer::small();
        if text.len() <= buffer.len() {
            buffer[..text.len()].copy_from_slice(text);
            self.push(Bytes::Pooled(buffer), 0..text.len(), text.len());
        } else {
            self.push_copy(text, text.len());
        }
    }

    /// Queues a copy of `bytes` in memory of its size; the first `head` bytes are not body.
    pub(crate) fn push_copy(&mut self, bytes: &[u8], head: usize) {
        self.push(Bytes::Pooled(Buffer::fitting(bytes)), 0..bytes.len(), head);
    }

    /// Moves all pieces but the first `keep` to the file, and writes a copy of those into it. Pieces that cannot be stored stay
    /// where they are.
    pub(crate) fn store(
        &mut self,
        keep: usize,
        storage: &Arc<Storage>,
        limits: &Limits,
    ) -> Result<(), StorageFault> {
        let stored = match &mut self.stored {
            Some(stored) => stored,
            none => {
                let mut store = StoredBytes::Spilled(Store::create(storage, limits.connections)?);
                let keep = keep.min(self.pieces.len());
                // The pieces that stay in memory are in the file too, so that a wait can free their memory.
                for piece in self.pieces.iter().take(keep) {
                    store.append(&piece.bytes.as_slice()[piece.range.clone()], limits.buffer_files)?;
                    store.skip(piece.range.len());
                }
                let later = self.pieces.split_off(keep);
                none.insert(Box::new(Stored { store, head: 0, later, by_turns: false }))
            }
        };
        while let Some(piece) = stored.later.front() {
            stored.store.append(&piece.bytes.as_slice()[piece.range.clone()], limits.buffer_files)?;
            stored.head += piece.head as u64;
            stored.later.pop_front();
        }
        Ok(())
    }

    /// Moves all pieces to the file, those in memory included, so that a wait holds no memory.
    pub(crate) fn put_away(&mut self, storage: &Arc<Storage>, limits: &Limits) -> Result<(), StorageFault> {
        self.store(0, storage, limits)?;
        let Some(stored) = &mut self.stored else { return Ok(()) };
        for piece in self.pieces.drain(..) {
            stored.store.unread(piece.range.len());
            stored.head += piece.head as u64;
        }
        Ok(())
    }

    /// Queues a part of a folder's file as the last of the response. Its beginning is read at once, so that it leaves in one
    /// write with the queued pieces. `by_turns`: it goes to a stream, which takes turns with other streams of its connection.
    pub(crate) fn follow_with(&mut self, slice: FileSlice, by_turns: bool) -> io::Result<()> {
        if slice.remaining() == 0 {
            return Ok(());
        }
        let (store, later) = (StoredBytes::Folder(slice), VecDeque::new());
        self.stored = Some(Box::new(Stored { store, head: 0, later, by_turns }));
        self.load()
    }

    /// Whether the outbox has a part of a folder's file that is sent by turns.
    pub(crate) fn goes_by_turns(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.by_turns)
    }

    /// Drops bytes that were read from a folder's file and not written. True if there is such a file and no piece is left in
    /// memory.
    pub(crate) fn put_back(&mut self) -> bool {
        let Some(Stored { store: store @ StoredBytes::Folder(_), .. }) = self.stored.as_deref_mut() else {
            return false;
        };
        while let Some(piece) = self.pieces.pop_back_if(|piece| piece.head == 0) {
            store.unread(piece.range.len());
        }
        self.pieces.is_empty()
    }

    /// Moves small pieces to memory of their own size, for a wait.
    pub(crate) fn pack(&mut self) {
        let later = self.stored.iter_mut().flat_map(|stored| &mut stored.later);
        for piece in self.pieces.iter_mut().chain(later) {
            let Bytes::Pooled(buffer) = &piece.bytes else { continue };
            let length = piece.range.len();
            if length <= buffer.len() / 2 {
                piece.bytes = Bytes::Pooled(Buffer::fitting(&buffer[piece.range.clone()]));
                piece.range = 0..length;
            }
        }
    }

    /// How much memory the outbox holds, without memory that it shares with others.
    pub(crate) fn held(&self) -> usize {
        let later = self.stored.iter().flat_map(|stored| &stored.later);
        let own = |piece: &Piece| match &piece.bytes {
            Bytes::Pooled(buffer) => buffer.len(),
            Bytes::Shared(_) => 0,
        };
        self.pieces.iter().chain(later).map(own).sum()
    }

    /// Closes a file that is read to its end, once all pieces before it are sent. The pieces behind it come next.
    fn close_drained(&mut self) {
        if self.pieces.is_empty()
            && let Some(stored) = self.stored.take_if(|stored| stored.store.len() == 0)
        {
            self.pieces = stored.later;
        }
    }

    /// Reads the file's next bytes into memory.
    fn load(&mut self) -> io::Result<()> {
        let Some(stored) = &mut self.stored else { return Ok(()) };
        let is_small = if stored.by_turns { !buffers::are_few() } else { buffers::are_scarce() };
        let mut buffer = if is_small { Buffer::small() } else { Buffer::large() };
        let count = stored.store.read(&mut buffer)?;
        let head = stored.take_head(count);
        self.pieces.push_back(Piece { bytes: Bytes::Pooled(buffer), range: 0..count, head });
        Ok(())
    }

    /// Writes once; an empty outbox is ready with nothing.
    pub(crate) fn poll_write(
        &mut self,
        io: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Written>> {
        self.close_drained();
        if self.pieces.is_empty() && self.stored.is_some() {
            // Nothing is read from the file for a client that takes nothing.
            ready!(io.poll_write_ready(context))?;
            self.load()?;
        }
        let count = match self.pieces.len() {
            0 => return Poll::Ready(Ok(Written::default())),
            1 => {
                let piece = &self.pieces[0];
                let bytes = &piece.bytes.as_slice()[piece.range.clone()];
                ready!(io.poll_send(context, bytes))?
            }
            _ => {
                let mut slices = [IoSlice::new(&[]); 8];
                let mut used = 0;
                for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                    *slice = IoSlice::new(&piece.bytes.as_slice()[piece.range.clone()]);
                    used += 1;
                }
                ready!(io.poll_send_vectored(context, &slices[..used]))?
            }
        };
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        Poll::Ready(Ok(self.advance(count)))
    }

    /// How long the next bytes are that can be taken at once, about.
    pub(crate) fn next_length(&self) -> usize {
        match (self.pieces.front(), &self.stored) {
            (Some(piece), _) => piece.range.len(),
            (None, Some(_)) => LARGE,
            (None, None) => 0,
        }
    }

    /// The next bytes, read back from the file if they are there; `None` if there are none.
    pub(crate) fn front(&mut self) -> io::Result<Option<&[u8]>> {
        self.close_drained();
        if self.pieces.is_empty() && self.stored.is_some() {
            self.load()?;
        }
        Ok(self.pieces.front().map(|piece| &piece.bytes.as_slice()[piece.range.clone()]))
    }

    /// Takes all bytes of [`front`](Self::front), with their memory.
    pub(crate) fn pop_front(&mut self) -> Option<(Bytes, Range<usize>)> {
        let piece = self.pieces.pop_front()?;
        self.close_drained();
        Some((piece.bytes, piece.range))
    }

    /// Takes `count` bytes. They were in memory when they were written; some may be in the file since then, as TLS says late
    /// what it has written.
    pub(crate) fn advance(&mut self, mut count: usize) -> Written {
        let mut written = Written { body: 0, bytes: count as u64 };
        while count > 0 {
            let (taken, head) = match (self.pieces.front_mut(), &mut self.stored) {
                (Some(piece), _) => {
                    let taken = count.min(piece.range.len());
                    let head = taken.min(piece.head);
                    piece.head -= head;
                    piece.range.start += taken;
                    (taken, head)
                }
                (None, Some(stored)) => stored.pass_over(count),
                (None, None) => break,
            };
            written.body += (taken - head) as u64;
            count -= taken;
            self.pieces.pop_front_if(|piece| piece.range.is_empty());
            self.close_drained();
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(pieces: usize, length: usize) -> Outbox {
        let mut outbox = Outbox::default();
        (0..pieces).for_each(|n| outbox.push_copy(&vec![n as u8; length], 0));
        outbox
    }

    /// The rest of the outbox.
    fn rest(outbox: &mut Outbox) -> Vec<u8> {
        let mut rest = Vec::new();
        while let Some(bytes) = outbox.front().expect("the file is there").map(<[u8]>::to_vec) {
            outbox.advance(bytes.len());
            rest.extend(bytes);
        }
        rest
    }

    /// TLS encrypts pieces, and says that they are written when the client has taken them: after some went to the file.
    #[test]
    fn bytes_that_were_written_before_they_went_to_the_file_are_not_sent_again() {
        let (storage, limits) = (Arc::new(Storage::default()), Limits::default());
        let all: Vec<u8> = rest(&mut outbox(4, 70_000));
        for keep in [0, 1, 3] {
            for written in [70_000, 90_000, 210_000, 280_000] {
                let mut outbox = outbox(4, 70_000);
                outbox.store(keep, &storage, &limits).expect("room");
                outbox.push_copy(&[9; 10], 0);
                let counted = outbox.advance(written);
                assert_eq!((counted.body, counted.bytes), (written as u64, written as u64));
                let left = rest(&mut outbox);
                assert!(left == [&all[written..], &[9; 10]].concat(), "{keep}, {written}: {}", left.len());
            }
        }
        // A wait gives the memory of a piece back even if TLS has encrypted a part of it.
        let mut outbox = outbox(4, LARGE);
        outbox.store(4, &storage, &limits).expect("room");
        outbox.advance(3 * LARGE);
        outbox.put_away(&storage, &limits).expect("room");
        outbox.front().expect("the file is there");
        assert_eq!(outbox.advance(64 << 10).body, 64 << 10);
        assert_eq!(rest(&mut outbox).len(), LARGE - (64 << 10));
    }
    /// Dropped bytes of the file are read again, without those that were written by then.
    #[test]
    fn a_file_of_a_folder_follows_and_what_is_put_back_comes_again() {
        let all: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &all).unwrap();
        for written in [0, 4, 1000, LARGE, 2 * LARGE] {
            let mut outbox = Outbox::default();
            assert!(!outbox.put_back(), "nothing is of a folder");
            outbox.push_head(b"head");
            outbox.follow_with(FileSlice::of(file.try_clone().unwrap(), all.len() as u64), false).unwrap();
            assert!(!outbox.put_back(), "its head is in memory alone");
            assert_eq!(outbox.front().unwrap(), Some(&b"head"[..]));
            assert_eq!(outbox.advance(4).body, 0);
            outbox.front().unwrap();
            assert!(outbox.put_back() && outbox.held() == 0 && !outbox.is_empty());
            // TLS has encrypted more than is read now, and says so late.
            outbox.front().unwrap();
            assert_eq!(outbox.advance(written).body, written as u64);
            assert!(outbox.put_back() && outbox.held() == 0);
            assert!(rest(&mut outbox) == all[written..], "{written}");
            assert!(outbox.is_empty());
        }
    }
}
