//! Messages from other threads to a thread: verdicts on its requests, connections, and orders.
//!
//! A mailbox is one lock, and a message wakes its thread only while the thread sleeps. A thread says when it falls asleep
//! and when it is awake again, and reads its mailbox in between. Messages for a thread that is awake therefore cost no
//! system call, and a tick that starts a hundred requests of a sleeping thread costs one. The mailbox is empty when its
//! thread falls asleep, or the thread's own waker keeps it awake. A thread that is too busy to sleep reads its messages
//! when it next calls the engine, or at its tenth of a second.

use crate::listen::accepted::Accepted;
use crate::sync::lock;
use plimsoll_core::request::Verdict;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
pub(crate) enum Message {
    Verdict(Verdict),
    Connection(Accepted),
    /// End an idle connection: another thread has accepted one more than allowed, or lacks a descriptor for one.
    EndIdle {
        lacks_descriptor: bool,
    },
    /// Stop accepting, and finish the requests under way.
    Drain,
    Stop,
}

#[derive(Debug, Default)]
struct Unread {
    messages: Vec<Message>,
    /// The waker of the task that reads the messages, from when it found none until it is woken to look again.
    waker: Option<Waker>,
    /// Whether the thread is awake. A thread that never says so counts as asleep.
    is_awake: bool,
}

/// A thread's mailbox, and its number of connections.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    unread: Mutex<Unread>,
    /// Whether a message came while the thread was awake.
    came_awake: AtomicBool,
    /// Client connections that the thread has, or was handed.
    pub connections: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn post(&self, message: Message) {
        let mut unread = lock(&self.unread);
        unread.messages.push(message);
        self.notify(unread);
    }

    fn notify(&self, mut unread: MutexGuard<'_, Unread>) {
        if !unread.is_awake {
            let waker = unread.waker.take();
            drop(unread);
            waker.into_iter().for_each(Waker::wake);
        } else {
            self.came_awake.store(true, Relaxed);
        }
    }

    /// Notes that the thread falls asleep. If there are messages, its own waker keeps it awake.
    pub(crate) fn fall_asleep(&self) {
        let mut unread = lock(&self.unread);
        unread.is_awake = false;
        if !unread.messages.is_empty() {
            self.notify(unread);
        }
    }

    pub(crate) fn wake_up(&self) {
        lock(&self.unread).is_awake = true;
    }

    /// Makes the thread, which is awake, read its messages soon if any have come.
    pub(crate) fn remind(&self) {
        if self.came_awake.load(Relaxed) {
            self.came_awake.store(false, Relaxed);
            let waker = lock(&self.unread).waker.take();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Drops the messages of a thread that has stopped.
    pub(crate) fn clear(&self) {
        let messages = std::mem::take(&mut lock(&self.unread).messages);
        drop(messages);
    }

    /// Swaps the messages into the empty `into`.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>, into: &mut Vec<Message>) -> Poll<()> {
        let mut unread = lock(&self.unread);
        if unread.messages.is_empty() {
            unread.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        self.came_awake.store(false, Relaxed);
        std::mem::swap(&mut unread.messages, into);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
