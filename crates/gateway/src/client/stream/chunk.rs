//! Bytes that a stream has handed to its connection, and how many of them have not reached the socket.

use crate::client::outbox::Bytes;
use bytes::Buf;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

/// A piece of a response that the connection has taken. The piece keeps its memory until its last byte is in the socket.
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

/// Turns by which the streams of a connection send files of a folder, once many buffers are in use. One stream at a time has a
/// small piece on its way to the socket, and the others wait without reading: however many streams stand still, their
/// connection holds one piece for all of them. Pieces that were on their way before also count as memory.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    pending: Cell<usize>,
    waiting: RefCell<Vec<(Weak<Flight>, Waker)>>,
}

impl Turns {
    /// Whether a piece is on its way.
    pub(crate) fn is_taken(&self) -> bool {
        self.pending.get() > 0
    }

    /// Notes that bytes of a stream have left; returns whether other streams waited for the last of them.
    fn leave(&self, count: usize, flight: &Flight) -> bool {
        self.pending.set(self.pending.get() - count);
        if self.is_taken() {
            return false;
        }
        let waiting = self.waiting.take();
        let are_others = waiting.iter().any(|(own, _)| !std::ptr::eq(own.as_ptr(), flight));
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
        are_others
    }

    /// Ready when no piece is on its way. Waiting streams are woken in order, and go before the stream whose piece has just
    /// left.
    fn poll(&self, flight: &Rc<Flight>, context: &Context<'_>) -> Poll<()> {
        if self.is_taken() {
            let mut waiting = self.waiting.borrow_mut();
            waiting.retain(|(own, _)| own.strong_count() > 0);
            if !waiting.iter().any(|(_, waker)| waker.will_wake(context.waker())) {
                waiting.push((Rc::downgrade(flight), context.waker().clone()));
            }
            return Poll::Pending;
        }
        if flight.lets_others_go.take() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// The bytes of one stream that are on their way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pending: Cell<usize>,
    /// Bytes that left since they were last asked for.
    written: Cell<u64>,
    /// Whether bytes were dropped instead of being sent.
    lost: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// The connection's turns, if the stream takes part in them.
    turns: OnceCell<Rc<Turns>>,
    /// Whether other streams waited for the last piece, and therefore go before the next one.
    lets_others_go: Cell<bool>,
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
            self.lets_others_go.set(turns.leave(count, self) || self.lets_others_go.get());
        }
        if count > 0 {
            self.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.get()
    }

    /// Makes the stream take these turns; none of its pieces may be on its way yet.
    pub(super) fn take_turns(&self, turns: &Rc<Turns>) {
        self.turns.get_or_init(|| turns.clone());
    }

    pub(super) fn takes_turns(&self) -> bool {
        self.turns.get().is_some()
    }

    /// Whether other streams wait for its piece to leave.
    pub(super) fn is_awaited(&self) -> bool {
        self.turns.get().is_some_and(|turns| !turns.waiting.borrow().is_empty())
    }

    /// Ready when the stream may send its next piece.
    pub(super) fn poll_turn(self: &Rc<Self>, context: &Context<'_>) -> Poll<()> {
        self.turns.get().map_or(Poll::Ready(()), |turns| turns.poll(self, context))
    }

    pub(super) fn take_written(&self) -> u64 {
        self.written.take()
    }

    /// Whether bytes were dropped.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.get()
    }

    /// Wakes the task when more bytes have left.
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
        // A stream that is reset loses its piece and its turn.
        drop(piece);
        assert_eq!(woken.0.load(SeqCst), 1, "once for each task");
        assert!(other.poll_turn(&context).is_ready());
        let piece = chunk(&other);
        // A stream that takes no turns waits for none.
        assert!(Rc::<Flight>::default().poll_turn(&context).is_ready());
        assert!(one.poll_turn(&context).is_pending());
        drop(piece);
        assert!(one.poll_turn(&context).is_ready());
    }

    #[test]
    fn streams_that_wait_go_before_the_next_piece_of_the_one_that_went() {
        let (turns, flights) = (Rc::<Turns>::default(), [(); 3].map(|()| Rc::<Flight>::default()));
        flights.iter().for_each(|flight| flight.take_turns(&turns));
        let wakers: [Waker; 3] = [(); 3].map(|()| Arc::<Woken>::default().into());
        let is_ready = |own: usize| flights[own].poll_turn(&Context::from_waker(&wakers[own])).is_ready();
        let mut order = Vec::new();
        // All streams are polled whenever a piece has left, the one that sent it first.
        let mut last = 0;
        for _ in 0..9 {
            let Some(next) = (0..3).map(|step| (last + step) % 3).find(|own| is_ready(*own)) else {
                continue;
            };
            let mut piece = Chunk::new(Bytes::Pooled(Buffer::fitting(b"abcd")), 0..4, &flights[next]);
            (0..3).for_each(|step| assert!(!is_ready((next + step) % 3)));
            assert!(flights[next].is_awaited());
            piece.advance(4);
            order.push(next);
            last = next;
        }
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        // A stream that has ended is neither waited for nor kept.
        let [one, two, three] = flights;
        drop((two, three));
        let context = Context::from_waker(&wakers[0]);
        assert!(one.poll_turn(&context).is_ready());
        let mut piece = Chunk::new(Bytes::Pooled(Buffer::fitting(b"abcd")), 0..4, &one);
        assert!(one.poll_turn(&context).is_pending());
        assert_eq!(turns.waiting.borrow().len(), 1);
        piece.advance(4);
        assert!(one.poll_turn(&context).is_ready());
    }
}
