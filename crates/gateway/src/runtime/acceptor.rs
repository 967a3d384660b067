//! Accepting connections, each for the thread that [`placement`] names.
//!
//! Every thread listens on its own socket of the same address (`SO_REUSEPORT`), so that accepting takes no lock. The
//! kernel spreads connections by hash, which is uneven when they are few: the accepting thread hands connections over.
//!
//! At the limit of connections, a new one takes the place of the connection that has been idle the longest. The new connection
//! waits until that place is free: at most one connection per listening socket is open above the limit. If the process has no
//! descriptor left, connections wait in the kernel's queue, and idle ones are ended in the same way.

use crate::listen::accepted::Accepted;
use crate::listen::bound::{Connected, Listening};
use crate::listen::placement;
use crate::request::at_accept;
use crate::worker::Worker;
use crate::worker::mailbox::Message;
use plimsoll_core::time::Instant;
use rustix::io::Errno;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

/// How long connections gather in a flood. The timer rounds it up to its next tick, a millisecond later at most.
const GATHER: Duration = Duration::from_millis(1);
/// If the mean of the last intervals between rejected connections is shorter than this one, connections come as a flood.
const FLOOD: Duration = Duration::from_micros(500);

/// The intervals at which a thread turns connections away.
///
/// To wake a thread for a connection takes as long as to turn the connection away. So if most connections are turned away, the
/// thread first turns away all that wait, and then pauses while others gather.
#[derive(Debug, Default)]
struct ArrivalPace {
    last: Instant,
    mean: Duration,
}

impl ArrivalPace {
    /// Notes that a connection was turned away; returns whether connections come as a flood.
    fn is_flood(&mut self, now: Instant) -> bool {
        let interval = now.since(self.last).min(Duration::from_millis(100));
        (self.last, self.mean) = (now, (self.mean * 15 + interval) / 16);
        self.mean < FLOOD
    }
}

/// Accepts until the gateway drains. Connections that are then waiting in the kernel's queue are still accepted.
pub(crate) async fn run(worker: Rc<Worker>, mut listener: Listening) {
    let (mut scratch, mut pace) = (Vec::new(), ArrivalPace::default());
    loop {
        let accepted = poll_fn(|context| match listener.poll_accept(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if worker.is_draining() => Poll::Ready(listener.accept_waiting()),
            Poll::Pending => {
                worker.acceptors.borrow_mut().retain(|waker| !waker.will_wake(context.waker()));
                worker.acceptors.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
        });
        match accepted.await {
            None => return,
            Some(Ok(Connected { io, peer, is_last })) => {
                let accepted = Accepted { io, peer, tls: listener.tls, place: None };
                let Some(accepted) = at_accept::admit(&worker, accepted, &mut scratch) else {
                    if pace.is_flood(worker.coarse()) && is_last && !worker.is_draining() {
                        listener = listener.gather(GATHER).await;
                    }
                    continue;
                };
                while is_full(&worker) && !worker.is_draining() {
                    make_room(&worker, false);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                place(&worker, accepted);
            }
            // The process is out of descriptors, or the client has already left. The gateway goes on in either case.
            Some(Err(error)) => {
                if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) {
                    worker.shared.unaccepted.0.fetch_add(1, Relaxed);
                    make_room(&worker, true);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// Ends an idle connection of this thread or, if there is none, of the thread with the most connections.
fn make_room(worker: &Worker, lacks_descriptor: bool) {
    if worker.end_idle() {
        return;
    }
    let others = worker.shared.mailboxes.iter().enumerate().filter(|&(index, _)| index != worker.index);
    if let Some((_, mailbox)) = others.max_by_key(|(_, mailbox)| mailbox.connections.load(Relaxed)) {
        mailbox.post(Message::EndIdle { lacks_descriptor });
    }
}

pub(crate) fn is_full(worker: &Worker) -> bool {
    worker.shared.connections() >= worker.tables().settings.limits.connections
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the last of `count` connections at these intervals counts as a flood.
    fn ends_in_flood(pace: &mut ArrivalPace, at: &mut Instant, count: u32, interval: Duration) -> bool {
        let mut is_flood = false;
        for _ in 0..count {
            *at += interval;
            is_flood = pace.is_flood(*at);
        }
        is_flood
    }

    #[test]
    fn a_flood_is_many_in_a_row_and_ends_with_a_pause() {
        let (mut pace, mut at) = (ArrivalPace::default(), Instant::ZERO + Duration::from_secs(60));
        let us = Duration::from_micros;
        assert!(!ends_in_flood(&mut pace, &mut at, 1, us(0)), "the first one");
        assert!(!ends_in_flood(&mut pace, &mut at, 100, us(2000)), "five hundred a second");
        assert!(ends_in_flood(&mut pace, &mut at, 100, us(250)), "four thousand a second");
        // Connections come at the intervals at which a pause gathers them.
        for _ in 0..100 {
            assert!(ends_in_flood(&mut pace, &mut at, 7, us(10)));
            at += us(1900);
        }
        assert!(!ends_in_flood(&mut pace, &mut at, 1, us(100_000)), "a tenth of a second without any");
    }
}
