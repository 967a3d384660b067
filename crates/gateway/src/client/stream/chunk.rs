//! Bytes that were handed to a stream, and how many of them are still on their way to the socket.

use crate::client::outbox::Bytes;
use bytes::Buf;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A piece of a response in the hands of the connection. It keeps its memory until the socket has its last byte.
pub(crate) struct Chunk {
    bytes: Bytes,
    range: Range<usize>,
    flight: Rc<Flight>,
}

impl Chunk {
    pub(super) fn new(bytes: Bytes, range: Range<usize>, flight: &Rc<Flight>) -> Self {
        flight.enter(range.len());
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

/// The turns of a connection's streams that take files of a folder, once many buffers are in use. One stream at a time has a
/// small piece on its way to the socket, and the others wait with nothing read: however many stand, their connection holds one
/// piece for all of them. What they have on their way from before is a part of the memory.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pending: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

impl Turns {
    fn leave(&self, count: usize) {
        self.pending.set(self.pending.get() - count);
        if self.pending.get() == 0 {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Ready when nothing is on its way. Those that wait are woken in their order.
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.pending.get() == 0 {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
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
    /// Its connection's turns, if it takes part in them.
    turns: OnceCell<Rc<Turns>>,
}

impl Flight {
    fn enter(&self, count: usize) {
        self.pending.set(self.pending.get() + count);
        if let Some(turns) = self.turns.get() {
            turns.pending.set(turns.pending.get() + count);
        }
    }

    fn leave(&self, count: usize) {
        self.pending.set(self.pending.get() - count);
        if let Some(turns) = self.turns.get() {
            turns.leave(count);
        }
        if count > 0 {
            self.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.get()
    }

    /// Its pieces, of which none is on its way yet, go by these turns.
    pub(super) fn take_turns(&self, turns: &Rc<Turns>) {
        self.turns.get_or_init(|| turns.clone());
    }

    pub(super) fn takes_turns(&self) -> bool {
        self.turns.get().is_some()
    }

    /// Ready when the next piece may go.
    pub(super) fn poll_turn(&self, context: &Context<'_>) -> Poll<()> {
        self.turns.get().map_or(Poll::Ready(()), |turns| turns.poll(context))
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

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

    /// A waker that counts.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn one_of_the_streams_of_a_folder_has_a_piece_on_its_way() {
        let (turns, one, other) = (Rc::<Turns>::default(), Rc::<Flight>::default(), Rc::<Flight>::default());
        [&one, &other].iter().for_each(|flight| flight.take_turns(&turns));
        let woken = Arc::<Woken>::default();
        let waker = woken.clone().into();
        let context = Context::from_waker(&waker);
        let chunk = |flight| Chunk::new(Bytes::Pooled(Buffer::fitting(b"abcd")), 0..4, flight);
        assert!(one.poll_turn(&context).is_ready());
        let mut piece = chunk(&one);
        assert!(one.poll_turn(&context).is_pending() && other.poll_turn(&context).is_pending());
        piece.advance(3);
        assert_eq!(woken.0.load(SeqCst), 0);
        // A stream that is reset loses its piece, and its turn too.
        drop(piece);
        assert_eq!(woken.0.load(SeqCst), 1, "once for each task");
        assert!(other.poll_turn(&context).is_ready());
        let piece = chunk(&other);
        // What takes no turns waits for none.
        assert!(Rc::<Flight>::default().poll_turn(&context).is_ready());
        assert!(one.poll_turn(&context).is_pending());
        drop(piece);
        assert!(one.poll_turn(&context).is_ready());
    }
}
