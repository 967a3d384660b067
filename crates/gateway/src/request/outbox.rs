//! Bytes on their way to a client, in order; each piece knows how many of its bytes count as delivered body.

use super::buffers::Buffer;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) enum Bytes {
    Pooled(Buffer),
    Owned(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Pooled(buffer) => buffer,
            Bytes::Owned(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    range: Range<usize>,
    /// How many of the bytes that are left are not body.
    head: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub body: u64,
    pub bytes: u64,
}

/// A queue of pieces. Those that fill it bound it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pieces: VecDeque<Piece>,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.pieces.truncate(count);
    }

    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Queues `range` of `bytes`, whose first `head` bytes are not body.
    pub(crate) fn push(&mut self, bytes: Bytes, range: Range<usize>, head: usize) {
        if !range.is_empty() {
            self.pieces.push_back(Piece { bytes, range, head });
        }
    }

    /// Queues a copy of `text`, which is not body.
    pub(crate) fn push_head(&mut self, text: &[u8]) {
        let mut buffer = Buffer::small();
        if text.len() <= buffer.len() {
            buffer[..text.len()].copy_from_slice(text);
            self.push(Bytes::Pooled(buffer), 0..text.len(), text.len());
        } else {
            self.push(Bytes::Owned(text.to_vec()), 0..text.len(), text.len());
        }
    }

    /// Writes once; an empty outbox is ready with nothing.
    pub(crate) fn poll_write(
        &mut self,
        io: &mut TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Written>> {
        let count = match self.pieces.len() {
            0 => return Poll::Ready(Ok(Written::default())),
            1 => {
                let piece = &self.pieces[0];
                let bytes = &piece.bytes.as_slice()[piece.range.clone()];
                ready!(Pin::new(io).poll_write(context, bytes))?
            }
            _ => {
                let mut slices = [IoSlice::new(&[]); 8];
                let mut used = 0;
                for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                    *slice = IoSlice::new(&piece.bytes.as_slice()[piece.range.clone()]);
                    used += 1;
                }
                ready!(Pin::new(io).poll_write_vectored(context, &slices[..used]))?
            }
        };
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        Poll::Ready(Ok(self.advance(count)))
    }

    fn advance(&mut self, mut count: usize) -> Written {
        let mut written = Written { body: 0, bytes: count as u64 };
        while count > 0 {
            let Some(piece) = self.pieces.front_mut() else { break };
            let taken = count.min(piece.range.len());
            let head = taken.min(piece.head);
            piece.head -= head;
            piece.range.start += taken;
            written.body += (taken - head) as u64;
            count -= taken;
            if piece.range.is_empty() {
                self.pieces.pop_front();
            }
        }
        written
    }
}
