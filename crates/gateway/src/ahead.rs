//! Begun ahead: the thread that frees a place sends the request that is next, whosever connection it came on.
//!
//! Who is next does not depend on threads, so two of three starts between two threads are for a request of the other one.
//! To wake its thread, only for it to write a head and to sleep again until the answer comes, costs what a wake of an
//! idle thread costs, on most machines more than all the rest of waiting. So a waiting request *leaves* its head here. The
//! thread that frees the place has a connection to the upstream in its hand: it sends the head on it, registers the
//! connection with the selector of the request's own thread, and posts both without a wake. What wakes that thread is the
//! answer, for which it would have been woken anyway. And the request starts as soon as the place is free.
//!
//! Only where nothing is lost when it comes to naught: the request has no body and does no harm if it is sent twice, the
//! level and the settings are those its head was written for, the connection is an idle one of the freeing thread. In all
//! other cases the start is posted with a wake, and the request's own thread sends it. So it is too while that thread is awake: it looks
//! into its mailbox before it sleeps, and to move a connection from one selector to another costs more than that.
//!
//! While all is quiet it happens a few times to each connection only: it follows to the thread that began its request
//! ([balance](crate::balance)).
//!
//! A thread keeps [`MOST_LEFT`] heads: when more wait, threads are awake, and 10,000 heads twice would be memory for nothing.
//! Their memory stays with it: what one thread allocates and another frees costs both a lock.

use crate::upstream::pool::{Lease, Upstream};
use plimsoll_core::request::{Permit, Token};
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Heads that a thread leaves at once.
const MOST_LEFT: usize = 32;

/// Memory that is kept for the next head (bytes); nearly every head fits.
const MOST_KEPT: usize = 2048;

/// What a head was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenFor {
    /// Of the tables.
    pub generation: u64,
    pub plant: usize,
    pub level: u8,
}

impl WrittenFor {
    pub(crate) fn of(permit: &Permit, generation: u64) -> Self {
        WrittenFor { generation, plant: permit.plant(), level: permit.level() }
    }
}

#[derive(Debug)]
struct Left {
    token: Token,
    written_for: WrittenFor,
    head: Vec<u8>,
}

#[derive(Debug, Default)]
struct Heads {
    left: Vec<Left>,
    /// The memory of heads that have gone.
    spare: Vec<Vec<u8>>,
}

/// Where a thread leaves the heads of its waiting requests, for all threads.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    heads: Mutex<Heads>,
    runtime: OnceLock<Handle>,
}

/// A request that another thread has sent.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The thread that sent it.
    pub by: usize,
    lease: Lease,
    written_for: WrittenFor,
}

impl Ahead {
    /// The thread that it belongs to runs from now on. Must be called in its runtime.
    pub(crate) fn open(&self) {
        // A second call would bring the same.
        let _ = self.runtime.set(Handle::current());
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the head that `write` appends, if there is room.
    pub(crate) fn leave(
        &self,
        token: Token,
        written_for: WrittenFor,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let mut head = {
            let mut heads = self.heads();
            // Only its own thread adds.
            if heads.left.len() >= MOST_LEFT {
                return false;
            }
            heads.spare.pop().unwrap_or_default()
        };
        write(&mut head);
        self.heads().left.push(Left { token, written_for, head });
        true
    }

    /// Takes a head back, if no other thread was quicker.
    pub(crate) fn take_back(&self, token: Token) {
        let mut heads = self.heads();
        if let Some(left) = heads.take(token) {
            heads.keep(left.head);
        }
    }

    /// Sends a request for the thread that this belongs to, on an idle connection of `thread`. `None` if that cannot be:
    /// then nothing has been sent that may not be sent again.
    pub(crate) fn begin(
        &self,
        thread: usize,
        token: Token,
        written_for: WrittenFor,
        upstream: &Arc<Upstream>,
    ) -> Option<Box<Begun>> {
        let left = self.heads().take(token)?;
        let send = || {
            let lease = (left.written_for == written_for).then(|| upstream.take_own(thread))??;
            let lease = lease.hand_over(self.runtime.get()?).ok()?;
            let sent = lease.io.try_write(&[IoSlice::new(&left.head)]);
            matches!(sent, Ok(count) if count == left.head.len())
                .then(|| Box::new(Begun { by: thread, lease, written_for }))
        };
        let begun = send();
        self.heads().keep(left.head);
        begun
    }
}

impl Heads {
    fn take(&mut self, token: Token) -> Option<Left> {
        let place = self.left.iter().position(|left| left.token == token)?;
        Some(self.left.swap_remove(place))
    }

    fn keep(&mut self, mut head: Vec<u8>) {
        if head.capacity() <= MOST_KEPT {
            head.clear();
            self.spare.push(head);
        }
    }
}

impl Begun {
    /// To wake `context` when the answer begins; `Ready` if it has.
    pub(crate) fn poll_answer(&self, context: &mut Context<'_>) -> Poll<()> {
        self.lease.io.poll_readable(context).map(drop)
    }

    /// On the request's own thread: the connection, if what was sent on it is what would be sent now.
    pub(crate) fn take_over(self, written_for: WrittenFor, upstream: &Arc<Upstream>) -> Option<Lease> {
        (self.written_for == written_for && self.lease.is_of(upstream)).then_some(self.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::upstream::pool::{Bounds, Wanted};
    use plimsoll_core::time::Duration;
    use std::io::Read;
    use std::net::TcpListener;

    const WRITTEN_FOR: WrittenFor = WrittenFor { generation: 1, plant: 0, level: 2 };

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    /// What thread 0 begins of what was left, with one idle connection; and what its server got.
    fn begun(left_for: WrittenFor, token: u64) -> (Option<WrittenFor>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let upstream = Arc::new(Upstream::new(vec![address], Bounds { open: 1, kept: 1 }, 2));
        let (here, other) = (runtime(), runtime());
        let ahead = Ahead::default();
        other.block_on(async { ahead.open() });
        assert!(ahead.leave(Token(7), left_for, |head| head.extend(b"GET /")));
        let clock = Clock::start();
        let begun = here.block_on(async {
            let connect_timeout = Duration::from_secs(20);
            let wanted = Wanted { thread: 0, clock, connect_timeout, fresh: false };
            let lease = upstream.acquire(wanted).await.expect("a connection");
            upstream.put_idle(0, clock.now(), lease);
            ahead.begin(0, Token(token), WRITTEN_FOR, &upstream)
        });
        let mut server = listener.accept().expect("the connection").0;
        let lease = begun.and_then(|begun| begun.take_over(WRITTEN_FOR, &upstream));
        let taken = lease.as_ref().map(|_| WRITTEN_FOR);
        // Both ends of what was sent are known: the connection is closed with its last owner.
        drop((lease, upstream.take_own(0)));
        let mut got = Vec::new();
        server.read_to_end(&mut got).expect("what was sent");
        (taken, got)
    }

    #[test]
    fn what_was_left_is_sent_by_who_has_the_connection() {
        assert_eq!(begun(WRITTEN_FOR, 7), (Some(WRITTEN_FOR), b"GET /".to_vec()));
    }

    #[test]
    fn nothing_is_sent_that_was_written_for_something_else() {
        for other in [
            WrittenFor { generation: 2, ..WRITTEN_FOR },
            WrittenFor { plant: 1, ..WRITTEN_FOR },
            WrittenFor { level: 1, ..WRITTEN_FOR },
        ] {
            assert_eq!(begun(other, 7), (None, Vec::new()), "{other:?}");
        }
        assert_eq!(begun(WRITTEN_FOR, 8), (None, Vec::new()), "of another request");
    }

    #[test]
    fn so_many_heads_are_left_and_no_more() {
        let ahead = Ahead::default();
        let leave = |token| ahead.leave(Token(token), WRITTEN_FOR, |head| head.extend(b"GET /"));
        assert!((0..MOST_LEFT as u64).all(leave));
        assert!(!leave(99));
        ahead.take_back(Token(3));
        assert!(leave(99));
        let heads = ahead.heads();
        assert_eq!((heads.left.len(), heads.spare.len()), (MOST_LEFT, 0), "its memory is used again");
    }
}
