//! One stream of a client's HTTP/2 connection ([`http2_connection`](super::http2_connection)): its request's way.

use super::lifecycle::Way;
use crate::client::slots::{EndedStreams, Slot};
use crate::client::stream::Stream;
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http2::head::{self, StreamStart};
use crate::http2::metered::Meter;
use crate::worker::Worker;
use http::Method;
use http::request::Parts;
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A stream's slot, and its place in the connection's count of streams, given back on drop.
pub(super) struct StreamGuard {
    pub(super) worker: Rc<Worker>,
    pub(super) slot: Rc<Slot>,
    pub(super) connection: Rc<Slot>,
    pub(super) open: Rc<Cell<usize>>,
    pub(super) ended: Rc<EndedStreams>,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.ended.end(&self.slot);
        self.worker.slots.borrow_mut().remove(&self.slot);
        self.worker.ready.set(self.worker.ready.get() - 1);
        self.open.set(self.open.get() - 1);
        if self.open.get() == 0 {
            self.connection.wake();
        }
    }
}

/// Serves the stream's request, from its head to its departure.
pub(super) async fn serve(guard: StreamGuard, mut way: Way<Stream>, parts: Parts, meter: Rc<Meter>) {
    poll_fn(|context| {
        guard.slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let _ = match way.take_head(parts) {
        Ok(()) => way.request().await,
        Err(refusal) => way.refuse(refusal).await,
    };
    meter.ended(way.client.io.is_answered(), way.client.io.was_reset());
}

impl Way<Stream> {
    /// Puts the stream's head at the beginning of the inbox, where a request's head is read from. The stream does not keep the
    /// head.
    fn take_head(&mut self, parts: Parts) -> Result<(), Refusal> {
        let mut random = self.worker.random.borrow_mut();
        let nonce = u128::from(random.bits()) << 64 | u128::from(random.bits());
        drop(random);
        let start = StreamStart { goes_on: !self.client.io.is_end(), nonce };
        self.client.io.begin(Framing::None, parts.method == Method::HEAD);
        head::request(&parts, start, &mut self.scratch, &mut self.head)?;
        if self.client.inbox.put(&self.scratch, false) < self.scratch.len() {
            return Err(Refusal::with(431, "the request head is too large"));
        }
        self.client.io.begin(self.head.framing, self.head.is_head);
        if self.head.upgrade {
            self.client.io.may_switch();
        }
        Ok(())
    }
}
