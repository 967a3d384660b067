//! A permit that departs on drop: a client that leaves, waiting or served, is accounted at once.

use crate::slot::{Decision, Slot};
use crate::worker::Worker;
use plimsoll_core::request::{Outcome, Permit, Service};
use std::rc::Rc;

/// A request that the engine knows of. Dropped without [`depart`](Held::depart), it was abandoned.
pub(crate) struct Held {
    worker: Rc<Worker>,
    permit: Option<Permit>,
    released: bool,
}

impl Held {
    pub(crate) fn new(worker: &Rc<Worker>, permit: Permit) -> Self {
        Held { worker: worker.clone(), permit: Some(permit), released: false }
    }

    /// Counts body bytes that the client took.
    pub(crate) fn sent(&self, bytes: u64) {
        if let Some(permit) = self.permit.as_ref().filter(|_| bytes > 0) {
            self.worker.lane.borrow_mut().sent(permit, bytes);
        }
    }

    /// The plant is free again.
    pub(crate) fn release(&mut self, service: Service) {
        if let Some(permit) = self.permit.as_mut().filter(|_| !self.released) {
            self.released = true;
            self.worker.with_lane(|lane, now, verdicts| lane.release(now, permit, service, verdicts));
        }
    }

    /// The request is over.
    pub(crate) fn depart(mut self, outcome: Outcome) {
        self.leave(outcome);
    }

    fn leave(&mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            self.worker.with_lane(|lane, now, verdicts| lane.depart(now, permit, outcome, verdicts));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leave(Outcome::Abandoned);
    }
}

/// A waiting request. Dropped, it leaves the queue; if its start was decided meanwhile, the slot is handed on.
pub(crate) struct Waiting {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    permit: Option<Permit>,
}

impl Waiting {
    pub(crate) fn new(worker: &Rc<Worker>, slot: &Rc<Slot>, permit: Permit) -> Self {
        Waiting { worker: worker.clone(), slot: slot.clone(), permit: Some(permit) }
    }

    /// The decision, once it is there. The waiting permit is spent then.
    pub(crate) fn take(mut self) -> Option<Decision> {
        let decision = self.slot.end_wait()?;
        // Spent by the engine, which says that it must not depart.
        self.permit = None;
        Some(decision)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let decision = self.slot.end_wait();
        let Some(waiting) = self.permit.take() else { return };
        let permit = match decision {
            None => waiting,
            Some(Decision::Start(started)) => started,
            Some(Decision::Drop { .. }) => return,
        };
        self.worker.with_lane(|lane, now, verdicts| lane.depart(now, permit, Outcome::Abandoned, verdicts));
    }
}
