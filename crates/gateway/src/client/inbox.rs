//! Bytes that a peer has sent and the gateway has not yet processed.
//!
//! A read needs room that its bytes may not use: a head of 400 bytes comes into a buffer of 16 KB. Ten thousand waiting
//! requests would hold ten thousand such buffers. So if many requests wait or are unfinished, each *packs* its inbox: the bytes
//! move to memory of their own size, and the buffer goes back to its thread. The next byte that comes takes a buffer again.
//! Ranges of the bytes stay valid, since they count from the first byte.

use super::buffers::{Buffer, LARGE, SMALL};
use crate::http1::Refusal;
use crate::http1::body::Decoder;
use crate::transport::socket::Socket;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// A window on a buffer, which exists only while it holds bytes.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    buffer: Option<Buffer>,
    packed: Option<Buffer>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn bytes(&self) -> &[u8] {
        let all = self.buffer.as_deref().or(self.packed.as_deref());
        all.map_or(&[], |all| &all[self.start..self.end])
    }

    /// Gives the buffer back for a wait and keeps the bytes. Bytes that fill more than half of the buffer stay there, since a
    /// copy would save little.
    pub(crate) fn pack(&mut self) {
        let length = self.end - self.start;
        if self.buffer.as_ref().is_some_and(|buffer| length <= buffer.len() / 2) {
            self.packed = Some(Buffer::fitting(self.bytes()));
            (self.buffer, self.start, self.end) = (None, 0, length);
        }
    }

    /// A buffer for the packed bytes and for those that follow.
    fn unpack(&mut self, large: bool) -> &mut Buffer {
        let packed = self.packed.take();
        self.buffer.get_or_insert_with(|| {
            let packed = packed.as_deref().unwrap_or_default();
            let mut buffer = if large || packed.len() >= SMALL { Buffer::large() } else { Buffer::small() };
            buffer[..packed.len()].copy_from_slice(packed);
            buffer
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How much memory the inbox holds.
    pub(crate) fn held(&self) -> usize {
        [&self.buffer, &self.packed].into_iter().flatten().map(|buffer| buffer.len()).sum()
    }

    /// Removes `count` bytes, and gives the buffer back with the last.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        if self.is_empty() {
            *self = Inbox::default();
        }
    }

    /// Removes `count` bytes that begin at position `at`; later bytes move up.
    pub(crate) fn remove(&mut self, at: usize, count: usize) {
        let from = self.start + at;
        if let Some(all) = self.buffer.as_deref_mut().or(self.packed.as_deref_mut()) {
            all.copy_within(from + count..self.end, from);
        }
        self.end -= count;
        if self.is_empty() {
            *self = Inbox::default();
        }
    }

    /// Takes the chunk lines out of a body that begins at position `at`, and returns how many bytes of the body remain there.
    /// Bytes behind the body move up.
    pub(crate) fn unwrap(&mut self, at: usize, body: &mut Decoder<'_>) -> Result<usize, Refusal> {
        let Some(all) = self.buffer.as_deref_mut().or(self.packed.as_deref_mut()) else { return Ok(0) };
        let (mut from, mut to) = (self.start + at, self.start + at);
        while from < self.end && !body.is_done() {
            let step = body.step(&all[from..self.end])?;
            all.copy_within(from + step.payload.start..from + step.payload.end, to);
            (from, to) = (from + step.taken, to + step.payload.len());
        }
        all.copy_within(from..self.end, to);
        self.end -= from - to;
        let length = to - self.start - at;
        if self.is_empty() {
            *self = Inbox::default();
        }
        Ok(length)
    }

    /// Fills an empty inbox with the bytes that `read` puts into a buffer; returns their number.
    pub(crate) fn fill_with(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut buffer = Buffer::large();
        let count = read(&mut buffer)?;
        *self = Inbox { buffer: (count > 0).then_some(buffer), packed: None, start: 0, end: count };
        Ok(count)
    }

    /// Appends as many of `bytes` as fit, and returns their number. Takes a buffer if there is none.
    pub(crate) fn put(&mut self, bytes: &[u8], large: bool) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        let end = self.end;
        let buffer = self.unpack(large || bytes.len() > SMALL);
        let count = bytes.len().min(buffer.len() - end);
        buffer[end..end + count].copy_from_slice(&bytes[..count]);
        self.end += count;
        count
    }

    /// Whether [`make_room`](Self::make_room) would make room.
    pub(crate) fn can_grow(&self) -> bool {
        self.start > 0 || self.buffer.as_ref().is_none_or(|buffer| buffer.len() < LARGE)
    }

    /// Whether a read has room without any byte being moved.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.as_ref().is_none_or(|buffer| self.end < buffer.len())
    }

    /// Makes room behind the bytes: moves them to the front, or to a large buffer.
    pub(crate) fn make_room(&mut self) {
        let Some(buffer) = &mut self.buffer else { return };
        if self.start > 0 {
            buffer.copy_within(self.start..self.end, 0);
        } else if buffer.len() < LARGE {
            let mut large = Buffer::large();
            large[..self.end].copy_from_slice(&buffer[..self.end]);
            self.buffer = Some(large);
        }
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Reads once. Zero is the end of the stream. A buffer is taken only when there is something to read.
    pub(crate) fn poll_fill(
        &mut self,
        io: &mut Socket,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.is_none() {
            ready!(io.poll_read_ready(context))?;
        }
        let end = self.end;
        let buffer = self.unpack(large);
        let mut target = ReadBuf::new(&mut buffer[end..]);
        let result = Pin::new(io).poll_read(context, &mut target);
        let count = target.filled().len();
        self.end += count;
        if self.is_empty() {
            *self = Inbox::default();
        }
        ready!(result)?;
        Poll::Ready(Ok(count))
    }
}
