//! What other threads have for a thread: verdicts on its requests, connections, orders.
//!
//! One lock, and a wake only for a thread that sleeps. A thread says when it goes to sleep and when it is up again, and looks
//! into its box in between: so what comes while it is awake costs no system call, and a tick that starts a hundred requests of
//! a sleeping thread costs one. The box is empty when it falls asleep, or its own waker keeps it up. A thread that is too busy
//! to sleep looks when it next calls the engine, or at its tenth of a second.
//! The tests try every order of a thread's steps and of messages.

use plimsoll_core::request::Verdict;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    Verdict(Verdict),
    /// A client's connection, for this thread to serve.
    Connection(TcpStream, IpAddr),
    /// End a connection that is idle: another thread has one more than there may be.
    EndIdle,
    /// Stop accepting, finish what is under way.
    Drain,
    /// Stop now.
    Stop,
}

#[derive(Debug)]
struct State {
    messages: Vec<Message>,
    /// Of the thread's look into the box, from when it found nothing until it is woken to look again.
    waker: Option<Waker>,
    /// So does a thread that never says that it is up.
    sleeps: bool,
}

impl Default for State {
    fn default() -> Self {
        State { messages: Vec::new(), waker: None, sleeps: true }
    }
}

/// A thread's box, and how many connections it has.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// Something came while the thread was awake.
    unread: AtomicBool,
    /// Client connections that the thread has or was handed.
    pub connections: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn post(&self, message: Message) {
        self.post_all([message]);
    }

    pub(crate) fn post_all(&self, messages: impl IntoIterator<Item = Message>) {
        let mut state = self.lock();
        state.messages.extend(messages);
        self.tell(state);
    }

    fn tell(&self, mut state: MutexGuard<'_, State>) {
        if state.sleeps {
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        } else {
            self.unread.store(true, Relaxed);
        }
    }

    /// The thread goes to sleep, unless it is woken from here since there is something for it.
    pub(crate) fn fall_asleep(&self) {
        let mut state = self.lock();
        state.sleeps = true;
        if !state.messages.is_empty() {
            self.tell(state);
        }
    }

    pub(crate) fn wake_up(&self) {
        self.lock().sleeps = false;
    }

    /// Has the thread, which is awake, look soon if something has come.
    pub(crate) fn remind(&self) {
        if self.unread.load(Relaxed) {
            self.unread.store(false, Relaxed);
            let waker = self.lock().waker.take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Throws away what nobody will take.
    pub(crate) fn clear(&self) {
        let messages = std::mem::take(&mut self.lock().messages);
        drop(messages);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Swaps the messages into the empty `into`.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>, into: &mut Vec<Message>) -> Poll<()> {
        let mut state = self.lock();
        if state.messages.is_empty() {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.unread.store(false, Relaxed);
        std::mem::swap(&mut state.messages, into);
        Poll::Ready(())
    }
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
