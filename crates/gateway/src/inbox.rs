//! Bytes that a peer has sent and nobody has taken yet.

use crate::buffers::{Buffer, LARGE};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;

/// A window on a buffer that exists only while it holds something.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    buffer: Option<Buffer>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.start..self.end])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes `count` bytes away; gives the buffer back with the last.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.end);
        if self.is_empty() {
            (self.buffer, self.start, self.end) = (None, 0, 0);
        }
    }

    /// Whether a read has room without moving anything.
    pub(crate) fn has_room(&self) -> bool {
        self.buffer.as_ref().is_none_or(|buffer| self.end < buffer.len())
    }

    /// Makes room behind what is there: moves it to the front, or to a large buffer.
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
        io: &mut TcpStream,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<io::Result<usize>> {
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            None => {
                ready!(io.poll_read_ready(context))?;
                self.buffer.insert(if large { Buffer::large() } else { Buffer::small() })
            }
        };
        let mut target = ReadBuf::new(&mut buffer[self.end..]);
        let result = Pin::new(io).poll_read(context, &mut target);
        let count = target.filled().len();
        self.end += count;
        if self.is_empty() {
            (self.buffer, self.start, self.end) = (None, 0, 0);
        }
        ready!(result)?;
        Poll::Ready(Ok(count))
    }
}
