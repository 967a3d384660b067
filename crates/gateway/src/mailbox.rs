//! What other threads have for a thread: verdicts on its requests, connections, orders.
//!
//! One lock, one wake: only the message that finds the box empty wakes the thread, so a tick that starts a hundred
//! requests of a thread costs one system call.

use plimsoll_core::door::Verdict;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    Verdict(Verdict),
    Connection(TcpStream, SocketAddr),
    /// End a connection that is idle: another thread has one more than there may be.
    EndIdle,
    /// Stop accepting, finish what is under way.
    Drain,
    /// Stop now.
    Stop,
}

#[derive(Debug, Default)]
struct State {
    messages: Vec<Message>,
    waker: Option<Waker>,
}

/// A thread's box, and how many connections it has.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// Client connections that the thread has or was handed.
    pub connections: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn post(&self, message: Message) {
        self.post_all([message]);
    }

    pub(crate) fn post_all(&self, messages: impl IntoIterator<Item = Message>) {
        let waker = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = state.messages.is_empty();
            state.messages.extend(messages);
            if was_empty && !state.messages.is_empty() { state.waker.take() } else { None }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Swaps the messages into the empty `into`.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>, into: &mut Vec<Message>) -> Poll<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.messages.is_empty() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut state.messages, into);
        Poll::Ready(())
    }
}
