//! An accepted connection until what is spoken on it is known: it takes its slot, and goes on as that protocol's connection.

use super::connection;
use crate::runtime::slots::Slot;
use crate::runtime::worker::Worker;
use crate::transport::plain::{DetachedSocket, PlainSocket};
use crate::transport::protocol::Protocol;
use crate::transport::socket::Socket;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

/// A connection as it was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub io: PlainSocket,
    /// The other end.
    pub peer: IpAddr,
}

/// A connection on its way to the thread that is to serve it.
#[derive(Debug)]
pub(crate) struct HandedOver {
    io: DetachedSocket,
    peer: IpAddr,
}

impl Accepted {
    pub(crate) fn hand_over(self) -> io::Result<HandedOver> {
        Ok(HandedOver { io: self.io.detach()?, peer: self.peer })
    }
}

impl HandedOver {
    pub(crate) fn take(self) -> io::Result<Accepted> {
        Ok(Accepted { io: self.io.attach()?, peer: self.peer })
    }
}

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
    // Declared first and therefore dropped last: the connection counts until its socket is closed.
    let slot = worker.slots.borrow_mut().add();
    let guard = SlotGuard { slot, worker };
    poll_fn(|context| {
        guard.slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let (io, protocol) = (Socket::Plain(accepted.io), Protocol::Http1);
    match protocol {
        Protocol::Http1 => connection::run(&guard, io, accepted.peer).await,
    }
}
