//! Guards that end a request when they are dropped, so that each request is accounted for once however its future ends.

use super::arrival::Started;
use super::decision::Decision;
use crate::running::Running;
use plimsoll_core::request::{Outcome, Permit, Rejection, Service, Token, Verdict};
use plimsoll_core::time::Instant;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// The permit of a request that has started. If the guard is dropped without [`depart`](Self::depart), the request counts as
/// abandoned, or as failed if a panic drops the guard.
#[must_use = "a request departs when its guard is dropped"]
pub(crate) struct PermitGuard {
    running: Arc<Running>,
    permit: Option<Permit>,
    /// When the place was given back.
    released: Option<Instant>,
    on_drop: Outcome,
}

impl PermitGuard {
    pub(crate) fn new(running: Arc<Running>, permit: Permit) -> Self {
        PermitGuard { running, permit: Some(permit), released: None, on_drop: Outcome::Abandoned }
    }

    /// Calls the user's code. If it panics, the request has failed.
    pub(crate) fn run<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.on_drop = Outcome::Failed;
        let result = call();
        self.on_drop = Outcome::Abandoned;
        result
    }

    /// Gives the place at the plant back. Only the first call counts.
    pub(crate) fn release(&mut self, service: Service) {
        if let Some(permit) = &mut self.permit {
            let now = self.running.clock.now();
            self.released = Some(now);
            self.running.call(|lane, verdicts| lane.release(now, permit, service, verdicts));
        }
    }

    /// How a request ends that is answered with this status. Status 503 means that the service behind the layer refused the
    /// request because it is overloaded.
    pub(crate) fn answered(&self, status: u16) -> Outcome {
        if let (503, Some(permit)) = (status, &self.permit) {
            self.running.call(|lane, _| lane.refused(permit));
        }
        Outcome::of_answer(status)
    }

    /// Whether the request may stay open for as long as its client likes; if the engine allows it, the place is given back.
    pub(crate) fn stay_open(&mut self) -> bool {
        let Some(permit) = &mut self.permit else { return false };
        let now = self.running.clock.now();
        self.running.call(|lane, verdicts| lane.stay_open(now, permit, verdicts))
    }

    /// Counts body bytes that were handed over to be sent.
    pub(crate) fn sent(&mut self, bytes: u64) {
        if let Some(permit) = &self.permit {
            self.running.call(|lane, _| lane.sent(permit, bytes));
        }
    }

    /// Subtracts the time in which the server only waited for the client from the request's service time.
    pub(crate) fn excuse(&mut self, waited: Duration) {
        if let Some(permit) = &mut self.permit {
            permit.excuse(waited);
        }
    }

    /// Ends the request: counts its last bytes, ends its service if it still holds its place, and departs it from the engine.
    pub(crate) fn depart(mut self, bytes: u64, service: Service, outcome: Outcome) {
        let Some(mut permit) = self.permit.take() else { return };
        // After the release the time of the departure changes no figure.
        let now = self.released.unwrap_or_else(|| self.running.clock.now());
        self.running.call(|lane, verdicts| {
            if bytes > 0 {
                lane.sent(&permit, bytes);
            }
            lane.release(now, &mut permit, service, verdicts);
            lane.depart(now, permit, outcome, verdicts);
        });
    }

    /// Ends a request for which the service behind the layer returned an error.
    pub(crate) fn fail<E>(self, error: E) -> E {
        self.depart(0, Service::default(), Outcome::Failed);
        error
    }

    pub(crate) fn now(&self) -> Instant {
        self.running.clock.now()
    }
}

impl Drop for PermitGuard {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let (now, outcome) = (self.running.clock.now(), self.on_drop);
            self.running.call(|lane, verdicts| lane.depart(now, permit, outcome, verdicts));
        }
    }
}

/// The permit of a waiting request. If the guard is dropped, the request leaves the queue, or gives back the place that it was
/// granted meanwhile.
#[must_use = "a request leaves the queue when its guard is dropped"]
pub(crate) struct WaitingGuard {
    running: Arc<Running>,
    token: Token,
    /// `None` once the verdict was taken, since the engine has consumed the permit by then.
    permit: Option<Permit>,
    decision: Decision,
}

impl WaitingGuard {
    pub(crate) fn new(running: Arc<Running>, token: Token, permit: Permit, decision: Decision) -> Self {
        WaitingGuard { running, token, permit: Some(permit), decision }
    }

    /// Once the verdict has come: the started request, or the reason why it was rejected.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Result<Started, (Rejection, Decision)>> {
        let told = self.running.lanes.poll_verdict(self.token, waker);
        let Some((verdict, names)) = told else { return Poll::Pending };
        self.permit = None;
        Poll::Ready(match verdict {
            Verdict::Start(_, permit) => {
                let decision = self.decision.started(&permit, names);
                Ok(Started { guard: PermitGuard::new(self.running.clone(), permit), decision })
            }
            Verdict::Drop(_, rejection) => Err((rejection, self.decision.dropped(rejection.reason))),
        })
    }
}

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        let Some(waiting) = self.permit.take() else { return };
        let permit = match self.running.lanes.end_wait(self.token) {
            None => waiting,
            Some(Verdict::Start(_, started)) => started,
            Some(Verdict::Drop(..)) => return,
        };
        let now = self.running.clock.now();
        self.running.call(|lane, verdicts| lane.depart(now, permit, Outcome::Abandoned, verdicts));
    }
}
