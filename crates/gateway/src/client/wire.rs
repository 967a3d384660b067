//! What carries a client's bytes: the socket of an HTTP/1.1 connection, or a stream of an HTTP/2 connection.
//!
//! Requests take the same way on both. Bytes in the inbox and in the outbox are framed as upstreams of HTTP/1.1 frame them. A
//! socket passes them on unchanged; a stream converts them from and to frames.
//!
//! Everything that works on a client is generic over the wire, so that no call is looked up at run time.

use super::inbox::Inbox;
use super::outbox::{Outbox, Written};
use crate::transport::socket::Socket;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

pub(crate) trait Wire {
    /// Whether the next request follows in the same bytes, so that the rest of a body must be read to find it.
    const IN_ORDER: bool;

    /// Reads once into `inbox`. Zero means that the client has left. `large`: many bytes are expected.
    fn poll_fill(
        &mut self,
        inbox: &mut Inbox,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<io::Result<usize>>;

    /// Ready once the client has left, where that can be known without a read.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Writes once from `outbox`; ready with nothing if the outbox is empty.
    fn poll_write(&mut self, outbox: &mut Outbox, context: &mut Context<'_>) -> Poll<io::Result<Written>>;

    /// Writes bytes of an upgraded connection, and ends them.
    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>>;
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// How many of the written bytes the client's kernel has not acknowledged; 0 if the system does not report it.
    fn unacknowledged(&self) -> u64;

    /// Whether every written byte has left the gateway.
    fn is_written(&self) -> bool;

    /// How much memory the wire holds besides inbox and outbox.
    fn held(&self) -> usize;

    /// Makes sure that the client does not take the end of the bytes for the end of the response.
    fn abort(&mut self);

    /// Ready once it is known whether the client is sent all of a response that was aborted. That may be so where its last
    /// bytes were on their way.
    fn poll_aborted(&mut self, context: &mut Context<'_>) -> Poll<bool>;
}

impl Wire for Socket {
    const IN_ORDER: bool = true;

    fn poll_fill(
        &mut self,
        inbox: &mut Inbox,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<io::Result<usize>> {
        inbox.poll_fill(self, context, large)
    }

    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn poll_write(&mut self, outbox: &mut Outbox, context: &mut Context<'_>) -> Poll<io::Result<Written>> {
        outbox.poll_write(self, context)
    }

    fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Socket::poll_send(self, context, bytes)
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self).poll_shutdown(context)
    }

    fn unacknowledged(&self) -> u64 {
        Socket::unacknowledged(self)
    }

    fn is_written(&self) -> bool {
        true
    }

    fn held(&self) -> usize {
        Socket::held(self)
    }

    fn abort(&mut self) {
        self.reset_on_close();
    }

    fn poll_aborted(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(false)
    }
}
