//! Guards that end a request when they are dropped, so that each request is accounted for once however its way ends.
//!
//! When a thread stops, it drops its tasks, and a dropped task drops its guards.

use super::log_entry::{CLIENT_LEFT, Entry};
use crate::client::slots::Slot;
use crate::settings::Address;
use crate::worker::Worker;
use plimsoll_core::request::{Outcome, Permit, Reason, Service, Verdict};
use std::rc::Rc;
use std::time::Duration;

/// The permit of a request that has started. If the guard is dropped without [`depart`](Self::depart), the request counts as
/// abandoned.
pub(crate) struct PermitGuard {
    worker: Rc<Worker>,
    permit: Option<Permit>,
    /// The request's line of the access log, written when it departs.
    entry: Option<Box<Entry>>,
    /// Whether the request's response was counted.
    has_response: bool,
}

impl PermitGuard {
    pub(crate) fn new(worker: &Rc<Worker>, permit: Permit, entry: Option<Box<Entry>>) -> Self {
        PermitGuard { worker: worker.clone(), permit: Some(permit), entry, has_response: false }
    }

    /// Notes the status of the response that the client is being sent, even if it is cut off later. The first call counts the
    /// response.
    pub(crate) fn answered(&mut self, status: u16) {
        if let Some(permit) = &self.permit
            && !std::mem::replace(&mut self.has_response, true)
        {
            self.worker.lane.borrow().responded(permit.class(), status);
        }
        if let Some(entry) = &mut self.entry {
            entry.answered(status);
        }
    }

    /// Counts body bytes that the client took.
    pub(crate) fn sent(&self, bytes: u64) {
        if let Some(permit) = self.permit.as_ref().filter(|_| bytes > 0) {
            self.worker.lane.borrow_mut().sent(permit, bytes);
            if let Some(entry) = &self.entry {
                entry.sent(bytes);
            }
        }
    }

    /// Notes for the access log that a server was tried.
    pub(crate) fn tried(&self, server: &Address) {
        if let Some(entry) = &self.entry {
            entry.tried(server);
        }
    }

    /// Notes for the access log why the request failed, and the bytes of the gateway's own answer, which do not count as the
    /// plant's.
    pub(crate) fn failed(&mut self, why: &'static str, answer_bytes: u64) {
        if let Some(entry) = &mut self.entry {
            entry.failed(why, answer_bytes);
        }
    }

    /// Subtracts the time in which the plant only waited for the client from the request's service time.
    pub(crate) fn excuse(&mut self, waited: Duration) {
        if let Some(permit) = &mut self.permit {
            permit.excuse(waited);
        }
    }

    /// Whether the request may stay open as an upgraded connection or a stream of events. If the engine allows it, the place is
    /// given back.
    pub(crate) fn stay_open(&mut self) -> bool {
        let Some(permit) = &mut self.permit else { return false };
        let entry = &mut self.entry;
        self.worker.with_lane(|lane, now, verdicts| {
            let may = lane.stay_open(now, permit, verdicts);
            if let Some(entry) = entry.as_mut().filter(|_| !permit.holds_place()) {
                entry.released(now);
            }
            may
        })
    }

    /// Notes that the plant refused the request because it is overloaded.
    pub(crate) fn refused(&self) {
        if let Some(permit) = &self.permit {
            self.worker.lane.borrow_mut().refused(permit);
        }
    }

    /// Whether the place at the plant is still held.
    pub(crate) fn holds_place(&self) -> bool {
        self.permit.as_ref().is_some_and(Permit::holds_place)
    }

    /// Notes that the last byte of the request's body has come, so that the request no longer streams.
    pub(crate) fn end_stream(&mut self) {
        if let Some(permit) = &mut self.permit {
            self.worker.lane.borrow().end_stream(permit);
        }
    }

    /// Notes that the client has left while the plant works on: the place is held until its release.
    pub(crate) fn abandon(&mut self) {
        if let Some(permit) = &mut self.permit {
            self.worker.with_lane(|lane, now, _| lane.abandon(now, permit));
        }
        if let Some(entry) = &mut self.entry {
            entry.answered(CLIENT_LEFT);
        }
    }

    /// Gives the place at the plant back. Only the first call counts.
    pub(crate) fn release(&mut self, service: Service) {
        if let Some(permit) = &mut self.permit {
            let entry = &mut self.entry;
            self.worker.with_lane(|lane, now, verdicts| {
                lane.release(now, permit, service, verdicts);
                if let Some(entry) = entry {
                    entry.released(now);
                }
            });
        }
    }

    pub(crate) fn depart(mut self, outcome: Outcome) {
        self.leave(outcome);
    }

    fn leave(&mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            let entry = self.entry.take();
            self.worker.with_lane(|lane, now, verdicts| {
                if let Some(entry) = entry {
                    entry.departed(&permit, now);
                }
                lane.depart(now, permit, outcome, verdicts);
            });
        }
    }
}

impl Drop for PermitGuard {
    fn drop(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.cut_off();
        }
        self.leave(Outcome::Abandoned);
    }
}

/// The permit of a waiting request. If the guard is dropped, the request leaves the queue, or gives back the place that it was
/// granted meanwhile.
pub(crate) struct WaitingGuard {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    permit: Option<Permit>,
    /// The bytes that the request's connection holds.
    bytes: usize,
}

impl WaitingGuard {
    pub(crate) fn new(worker: &Rc<Worker>, slot: &Rc<Slot>, permit: Permit) -> Self {
        WaitingGuard { worker: worker.clone(), slot: slot.clone(), permit: Some(permit), bytes: 0 }
    }

    /// Notes that the request's connection holds `bytes` now. False if all waiting requests hold as much as they may.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.worker.waiting.set(self.worker.waiting.get() - before + bytes);
        self.worker.waiting.get() <= self.worker.buffer_memory() / 2
    }

    /// Ends the wait and returns the verdict, if it has come. Without a verdict the request leaves the queue, for this reason.
    pub(crate) fn end(mut self, reason: Reason) -> Option<Verdict> {
        let verdict = self.slot.end_wait();
        // With the verdict the engine has consumed the waiting permit, which therefore must not depart.
        let permit = self.permit.take().filter(|_| verdict.is_none());
        if let Some(permit) = permit {
            self.worker.with_lane(|lane, now, _| lane.turn_away(now, permit, reason));
        }
        verdict
    }
}

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.worker.waiting.set(self.worker.waiting.get() - self.bytes);
        let verdict = self.slot.end_wait();
        let Some(waiting) = self.permit.take() else { return };
        let permit = match verdict {
            None => waiting,
            Some(Verdict::Start(_, started)) => started,
            Some(Verdict::Drop(..)) => return,
        };
        self.worker.with_lane(|lane, now, verdicts| lane.depart(now, permit, Outcome::Abandoned, verdicts));
    }
}
