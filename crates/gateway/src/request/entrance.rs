//! An accepted connection until its protocol is known: it takes its slot, and goes on as a connection of that protocol.

use super::peer::{ConnectionSource, is_in};
use super::{at_accept, handshake, http1_connection, http2_connection, proxy_protocol};
use crate::client::slots::Slot;
use crate::listen::accepted::Accepted;
use crate::transport::protocol::Protocol;
use crate::transport::socket::Socket;
use crate::worker::Worker;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

/// A connection's slot in the table of its thread, given back on drop.
pub(crate) struct SlotGuard {
    pub worker: Rc<Worker>,
    pub slot: Rc<Slot>,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.worker.slots.borrow_mut().remove(&self.slot);
        self.worker.shared.mailboxes[self.worker.index].connections.fetch_sub(1, Relaxed);
    }
}

/// Serves a connection to its end.
pub(crate) async fn enter(worker: Rc<Worker>, accepted: Accepted) {
    // The slot is declared first and so dropped last: the connection counts until its socket is closed.
    let slot = worker.slots.borrow_mut().add();
    let guard = SlotGuard { slot, worker };
    poll_fn(|context| {
        guard.slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let Accepted { io, mut peer, tls, mut place } = accepted;
    let io = if is_in(&guard.worker.tables().settings.proxy_protocol, peer.to_canonical()) {
        let Ok(mut io) = io.attach() else { return };
        let Some(source) = Box::pin(proxy_protocol::source(&guard, &mut io, peer)).await else { return };
        if source != peer {
            let tables = guard.worker.tables();
            let most = tables.settings.limits.connections_per_client;
            let most = most.filter(|_| !is_in(&tables.settings.trusted_proxies, source));
            let Ok(taken) = guard.worker.shared.clients.enter(source, most) else { return };
            (peer, place) = (source, taken);
            let is_client = !is_in(&tables.settings.trusted_proxies, source);
            let mut answer = Vec::new();
            if is_client && at_accept::rejected_for(&guard.worker, source, tls, &mut answer).is_some() {
                return Box::pin(guard.turn_away(io, answer)).await;
            }
        }
        Socket::Plain(io)
    } else {
        Socket::accepted(io)
    };
    let mut source = ConnectionSource { is_secure: tls, ..ConnectionSource::plain(peer) };
    let (io, protocol) = if tls {
        let Ok(io) = io.into_plain() else { return };
        // The handshake is on the heap, where it takes memory only while it lasts.
        let Some(agreed) = Box::pin(handshake::agree(&guard, io, peer)).await else { return };
        source.certificate = agreed.certificate;
        (Socket::Tls(agreed.io), agreed.protocol)
    } else {
        (io, Protocol::Http1)
    };
    let http2 = match protocol {
        Protocol::Http1 => http1_connection::run(&guard, io, &source).await,
        Protocol::Http2 => Some((io, Vec::new())),
    };
    if let Some((io, first)) = http2 {
        // The HTTP/2 connection is on the heap, so that the task of an HTTP/1 connection needs no room for it.
        if let Some(io) = Box::pin(http2_connection::run(&guard, io, first, &source)).await {
            Box::pin(guard.linger(io)).await;
        }
    }
    drop(place);
}
