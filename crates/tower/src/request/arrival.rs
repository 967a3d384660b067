//! A request is classified and put to the engine.

use super::decision::Decision;
use super::guard::{PermitGuard, WaitingGuard};
use super::rejection::Rejected;
use super::view::HeadView;
use crate::running::Running;
use crate::running::lanes::OwnLane;
use http::request::Parts;
use plimsoll_core::request::{Arrival, Reason, Rejection, Verdicts};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// The engine's answer to an arrival.
pub(crate) enum Arrived {
    Started(Started),
    Waiting(WaitingGuard),
    Rejected(Rejected),
}

/// A request that has its place.
pub(crate) struct Started {
    pub(crate) guard: PermitGuard,
    pub(crate) decision: Decision,
}

/// The address of a client of which none is known.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

impl Running {
    /// Decides on a request that has just come.
    pub(crate) fn arrive(self: &Arc<Self>, head: &Parts) -> Arrived {
        let client = self.client.as_ref().and_then(|client| client(head)).unwrap_or(UNKNOWN);
        let view = HeadView::new(head, client);
        let (now, number) = (self.clock.now(), self.lanes.own());
        let mut verdicts = Verdicts::new();
        let mut own = self.lanes.lock(number);
        let OwnLane { lane, waiting, names } = &mut *own;
        let Some(target) = lane.classify(&view) else {
            let rejection = Rejection { reason: Reason::NoSite, retry_after: Duration::ZERO };
            let decision = Decision::rejected(Reason::NoSite, None, names.clone());
            return Arrived::Rejected(Rejected::new(rejection, decision, &head.headers));
        };
        let token = waiting.next_token(number);
        let arrived = match lane.arrive(now, target, token, &mut verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                let decision = Decision::of(&permit, target, names.clone());
                Arrived::Started(Started { guard: PermitGuard::new(self.clone(), permit), decision })
            }
            Arrival::Wait(permit) => {
                // The verdict cannot come before: it is delivered under this lock.
                waiting.begin();
                let decision = Decision::of(&permit, target, names.clone());
                Arrived::Waiting(WaitingGuard::new(self.clone(), token, permit, decision))
            }
            Arrival::Reject(rejection) => {
                let decision = Decision::rejected(rejection.reason, Some(target), names.clone());
                Arrived::Rejected(Rejected::new(rejection, decision, &head.headers))
            }
        };
        drop(own);
        self.deliver(verdicts);
        arrived
    }
}
