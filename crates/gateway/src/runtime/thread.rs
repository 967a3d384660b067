//! A worker thread: its work from start to end, in a single-threaded runtime. A connection stays on its thread.

use super::acceptor;
use crate::listen::accepted::Accepted;
use crate::listen::bound::Listening;
use crate::request::entrance;
use crate::upstream::checks::Checks;
use crate::worker::Worker;
use crate::worker::mailbox::Message;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

/// How often a thread checks deadlines and stale connections, and renews the date.
const INTERVAL: Duration = Duration::from_millis(100);

impl Worker {
    pub(crate) fn adopt(self: &Rc<Self>, accepted: Accepted) {
        tokio::task::spawn_local(entrance::enter(self.clone(), accepted));
    }

    /// Acts on a message. False if the thread is to stop.
    fn receive(self: &Rc<Self>, message: Message) -> bool {
        match message {
            Message::Verdict(verdict) => self.take_verdict(verdict),
            Message::Connection(accepted) => self.adopt(accepted),
            Message::EndIdle { lacks_descriptor } => {
                // There may be room again by the time the message is read.
                if lacks_descriptor || acceptor::is_full(self) {
                    self.end_idle();
                }
            }
            Message::Drain => {
                self.acceptors.take().into_iter().for_each(Waker::wake);
                self.slots.borrow().wake_all();
            }
            Message::Stop => return false,
        }
        true
    }

    /// Runs until the thread is signalled to stop. Must be called in a local runtime.
    pub(crate) async fn run(self: Rc<Self>, listeners: Vec<Listening>) {
        for listener in listeners {
            tokio::task::spawn_local(acceptor::run(self.clone(), listener));
        }
        let worker = self.clone();
        tokio::task::spawn_local(async move {
            let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + INTERVAL, INTERVAL);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut checks = Checks::new(RandomState::new().hash_one(0_u8));
            loop {
                interval.tick().await;
                worker.look_around();
                if worker.index == 0 {
                    let due = checks.due(worker.coarse(), worker.tables().checked());
                    due.into_iter().for_each(|check| {
                        drop(tokio::task::spawn_local(check.run(worker.shared.clock)));
                    });
                }
            }
        });
        let mut messages = Vec::new();
        poll_fn(|context| {
            loop {
                ready!(self.shared.mailboxes[self.index].poll_take(context, &mut messages));
                for message in messages.drain(..) {
                    if !self.receive(message) {
                        return Poll::Ready(());
                    }
                }
            }
        })
        .await;
    }
}
