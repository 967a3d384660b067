//! Accepting connections, each for the thread that [placement] names.
//!
//! Every thread listens on its own socket of the same address (`SO_REUSEPORT`), so that accepting takes no lock. The
//! kernel spreads connections by hash, which is uneven when they are few: the accepting thread hands connections over.
//!
//! At the limit of connections, a new one takes the place of the connection that has been idle the longest. The new
//! connection waits until that place is free: at most one connection per listening socket is open above the limit.

use super::bound::Listening;
use super::{at_accept, placement};
use crate::request::entrance::Accepted;
use crate::runtime::mailbox::Message;
use crate::runtime::worker::Worker;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

/// Accepts until the gateway drains. Connections that wait in the kernel's queue by then are still accepted.
pub(crate) async fn run(worker: Rc<Worker>, listener: Listening) {
    let mut scratch = Vec::new();
    loop {
        let accepted = poll_fn(|context| match listener.poll_accept(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if worker.is_draining() => Poll::Ready(None),
            Poll::Pending => {
                worker.acceptors.borrow_mut().retain(|waker| !waker.will_wake(context.waker()));
                worker.acceptors.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
        });
        match accepted.await {
            None => return,
            Some(Ok((io, peer))) => {
                let accepted = Accepted { io, peer, tls: listener.tls, place: None };
                let Some(accepted) = at_accept::admit(&worker, accepted, &mut scratch) else { continue };
                while is_full(&worker) && !worker.is_draining() {
                    make_room(&worker);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                place(&worker, accepted);
            }
            // The process is out of descriptors, or the client has left already. The gateway goes on either way.
            Some(Err(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Ends an idle connection of this thread or, if there is none, of the thread with the most connections.
fn make_room(worker: &Worker) {
    if worker.end_idle() {
        return;
    }
    let others = worker.shared.mailboxes.iter().enumerate().filter(|&(index, _)| index != worker.index);
    if let Some((_, mailbox)) = others.max_by_key(|(_, mailbox)| mailbox.connections.load(Relaxed)) {
        mailbox.post(Message::EndIdle);
    }
}

pub(crate) fn is_full(worker: &Worker) -> bool {
    let shared = &worker.shared;
    let connections: usize = shared.mailboxes.iter().map(|mailbox| mailbox.connections.load(Relaxed)).sum();
    connections >= worker.tables().settings.limits.connections
}

fn place(worker: &Rc<Worker>, accepted: Accepted) {
    let (shared, own) = (&worker.shared, worker.index);
    let connections = |thread: usize| shared.mailboxes[thread].connections.load(Relaxed);
    let thread = placement::place(&shared.spare, connections, own, worker.coarse());
    if thread == own {
        shared.mailboxes[own].connections.fetch_add(1, Relaxed);
        worker.adopt(accepted);
    } else {
        shared.give(thread, accepted);
    }
}
