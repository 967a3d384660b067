//! A stream of an HTTP/2 connection as a client's wire: one request, its response, and nothing behind them.
//!
//! [`incoming`] brings the request's body into the inbox, [`outgoing`] takes the response out of the outbox, both framed as
//! upstreams of HTTP/1.1 frame them; a [`chunk`] reports when its bytes have reached the socket.

mod chunk;
mod incoming;
mod outgoing;

pub(crate) use chunk::{Chunk, Turns};

use super::inbox::Inbox;
use super::outbox::{Outbox, Written};
use super::wire::Wire;
use crate::http1::body::Framing;
use crate::http2::metered::Meter;
use h2::RecvStream;
use h2::server::SendResponse;
use incoming::RequestFrames;
use outgoing::ResponseFrames;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

pub(crate) struct Stream {
    incoming: RequestFrames,
    outgoing: ResponseFrames,
    /// Whether its frames carry another protocol.
    is_tunnel: bool,
}

impl Stream {
    pub(crate) fn new(
        receive: RecvStream,
        respond: SendResponse<Chunk>,
        (meter, turns): (Rc<Meter>, Rc<Turns>),
    ) -> Self {
        let (incoming, outgoing) = (RequestFrames::new(receive), ResponseFrames::new(respond, meter, turns));
        Stream { incoming, outgoing, is_tunnel: false }
    }

    /// Whether the request ended with its head.
    pub(crate) fn is_end(&self) -> bool {
        self.incoming.is_end()
    }

    /// Whether the whole response was sent to the client.
    pub(crate) fn is_answered(&self) -> bool {
        self.outgoing.has_all()
    }

    /// Whether the stream was reset by its client, or because of what its client sent.
    pub(crate) fn was_reset(&mut self) -> bool {
        self.outgoing.was_reset()
    }

    /// Notes that the request asks for another protocol.
    pub(crate) fn may_switch(&mut self) {
        self.outgoing.may_switch = true;
    }

    /// Begins with a request whose head was read.
    pub(crate) fn begin(&mut self, framing: Framing, is_head: bool) {
        self.incoming.frame(framing);
        self.outgoing.to_head = is_head;
    }
}

impl Wire for Stream {
    const IN_ORDER: bool = false;

    fn poll_fill(
        &mut self,
        inbox: &mut Inbox,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<io::Result<usize>> {
        match ready!(self.incoming.poll_fill(inbox, context, large)) {
            Some(result) => Poll::Ready(result),
            None if self.outgoing.is_switched() => Poll::Ready(Ok(0)),
            // The end of the body does not mean that the client has left.
            None => self.outgoing.poll_gone(context).map(|()| Ok(0)),
        }
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.outgoing.poll_gone(context)
    }

    fn poll_write(&mut self, outbox: &mut Outbox, context: &mut Context<'_>) -> Poll<io::Result<Written>> {
        let written = self.outgoing.poll_write(outbox, context);
        if self.outgoing.is_switched() && !std::mem::replace(&mut self.is_tunnel, true) {
            self.incoming.frame(Framing::UntilClose);
        }
        written
    }

    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.outgoing.poll_send(bytes, context)
    }

    fn poll_end(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.outgoing.finish())
    }

    /// The unsent bytes in the socket belong to all streams, so that nothing is known about this one.
    fn unacknowledged(&self) -> u64 {
        0
    }

    fn is_written(&self) -> bool {
        self.outgoing.pending() == 0
    }

    fn held(&self) -> usize {
        self.incoming.held() + self.outgoing.held()
    }

    fn abort(&mut self) {
        self.outgoing.abort();
    }

    fn poll_aborted(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.outgoing.poll_aborted(context)
    }
}
