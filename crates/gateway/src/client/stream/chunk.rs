//! Bytes that were handed to a stream, and how many of them are still on their way to the socket.

use crate::client::outbox::Bytes;
use bytes::Buf;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Waker};

/// A piece of a response in the hands of the connection. It keeps its memory until the socket has its last byte.
pub(crate) struct Chunk {
    bytes: Bytes,
    range: Range<usize>,
    flight: Rc<Flight>,
}

impl Chunk {
    pub(super) fn new(bytes: Bytes, range: Range<usize>, flight: &Rc<Flight>) -> Self {
        flight.pending.set(flight.pending.get() + range.len());
        Chunk { bytes, range, flight: flight.clone() }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.range.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes.as_slice()[self.range.clone()]
    }

    fn advance(&mut self, count: usize) {
        self.range.start += count;
        self.flight.written.set(self.flight.written.get() + count as u64);
        self.flight.leave(count);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if !self.range.is_empty() {
            self.flight.lost.set(true);
        }
        self.flight.leave(self.range.len());
    }
}

/// What a stream has on its way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pending: Cell<usize>,
    /// Bytes that left since they were last asked for.
    written: Cell<u64>,
    /// Bytes were thrown away instead of being sent.
    lost: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Flight {
    fn leave(&self, count: usize) {
        self.pending.set(self.pending.get() - count);
        if count > 0 {
            self.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.get()
    }

    pub(super) fn take_written(&self) -> u64 {
        self.written.take()
    }

    /// Whether bytes were thrown away.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.get()
    }

    /// Wakes the task once more bytes have left.
    pub(super) fn watch(&self, context: &Context<'_>) {
        self.waker.replace(Some(context.waker().clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::buffers::Buffer;

    #[test]
    fn what_leaves_or_is_dropped_is_on_its_way_no_longer() {
        let flight = Rc::<Flight>::default();
        let chunk = || Chunk::new(Bytes::Pooled(Buffer::fitting(b"abcdef")), 1..5, &flight);
        let (mut written, dropped) = (chunk(), chunk());
        assert_eq!((flight.pending(), written.chunk()), (8, &b"bcde"[..]));
        written.advance(3);
        assert_eq!((flight.pending(), written.chunk(), flight.take_written()), (5, &b"e"[..], 3));
        written.advance(1);
        drop(written);
        assert!(!flight.has_lost());
        drop(dropped);
        assert_eq!((flight.pending(), flight.take_written()), (0, 1));
        assert!(flight.has_lost());
    }
}
