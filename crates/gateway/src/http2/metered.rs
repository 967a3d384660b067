//! A connection's socket with a meter, which sees incoming bytes frame by frame before `h2` reads them.

use super::coalesced_writes::GatheringSocket;
use super::floods::{Flood, FrameAccount};
use super::frames::{FrameMeter, kind};
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The counts of a connection's frames.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    frames: RefCell<FrameMeter>,
    account: RefCell<FrameAccount>,
    flood: Cell<Option<Flood>>,
    /// Bytes read or written since [`take_moved`](Self::take_moved) was last called.
    moved: Cell<u64>,
    /// Heads that came since [`forget_heads`](Self::forget_heads) was last called.
    heads: Cell<usize>,
}

impl Meter {
    /// The flood for which the connection is to be ended, if there is one.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.flood.get()
    }

    pub(crate) fn account(&self, act: impl FnOnce(&mut FrameAccount)) {
        act(&mut self.account.borrow_mut());
    }

    /// A request has ended: it was answered, or its stream was reset by either side.
    pub(crate) fn ended(&self, is_answered: bool, was_reset: bool) {
        let mut account = self.account.borrow_mut();
        if is_answered {
            account.answered();
        } else if was_reset {
            self.flood.set(self.flood.get().or(account.was_reset()));
        }
    }

    /// How many bytes the client has sent or taken since the last call.
    pub(crate) fn take_moved(&self) -> u64 {
        self.moved.take()
    }

    /// How many heads came since they were last forgotten.
    pub(crate) fn heads(&self) -> usize {
        self.heads.get()
    }

    pub(crate) fn forget_heads(&self) {
        self.heads.set(0);
    }

    /// The number of the unfinished frame or head, and how many of its bytes have come.
    pub(crate) fn unfinished(&self) -> (u64, usize) {
        let frames = self.frames.borrow();
        (frames.number(), frames.unfinished())
    }

    /// Whether the unfinished bytes are of a head.
    pub(crate) fn is_in_head(&self) -> bool {
        self.frames.borrow().is_in_head()
    }

    fn read(&self, bytes: &[u8]) {
        self.moved.set(self.moved.get() + bytes.len() as u64);
        let mut account = self.account.borrow_mut();
        self.frames.borrow_mut().read(bytes, |frame| {
            self.heads.set(self.heads.get() + usize::from(frame.kind == kind::HEADERS));
            if let Some(flood) = account.take(frame) {
                self.flood.set(self.flood.get().or(Some(flood)));
            }
        });
    }
}

/// The connection's socket as `h2` uses it. Written bytes are gathered (`coalesced_writes.rs`), and are sent by the owner of
/// `wire`.
pub(crate) struct Metered<T> {
    wire: Rc<RefCell<GatheringSocket<T>>>,
    /// Bytes that were read before the protocol was known.
    first: Vec<u8>,
    meter: Rc<Meter>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Metered<T> {
    pub(crate) fn new(wire: &Rc<RefCell<GatheringSocket<T>>>, first: Vec<u8>, meter: Rc<Meter>) -> Self {
        Metered { wire: wire.clone(), first, meter }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = into.filled().len();
        let result = if own.first.is_empty() {
            own.wire.borrow_mut().poll_read(context, into)
        } else {
            let count = own.first.len().min(into.remaining());
            into.put_slice(&own.first[..count]);
            own.first.drain(..count);
            Poll::Ready(Ok(()))
        };
        own.meter.read(&into.filled()[before..]);
        result
    }
}

impl<T> Metered<T> {
    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &written {
            self.meter.account(|account| account.wrote(*count as u64));
            self.meter.moved.set(self.meter.moved.get() + *count as u64);
        }
        written
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.wire.borrow_mut().poll_write(context, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// `h2` flushes after each frame with payload. While the socket is held nothing happens: a turn's frames are sent together.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.wire.borrow_mut();
        if wire.is_held { Poll::Ready(Ok(())) } else { wire.poll_flush(context) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.borrow_mut().poll_shutdown(context)
    }
}
