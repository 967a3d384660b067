//! Classifies a request and asks the engine for its decision.

use super::decision::Decision;
use super::guard::{PermitGuard, WaitingGuard};
use super::rejection::Rejected;
use super::view::HeadView;
use crate::running::Running;
use crate::running::lanes::OwnLane;
use http::request::Parts;
use plimsoll_core::request::{Arrival, Reason, Rejection, Verdicts, has_dot_segment};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// An address for a client whose address is not known. Each request has another one, so that no two of them share a level by
/// chance. The addresses are reserved for documentation (RFC 3849), so no client has one, and they differ in the first 64 bits,
/// by which the engine distinguishes clients.
pub(crate) fn unknown_address() -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = [number >> 16, number & 0xffff].map(|part| part as u16);
    Ipv6Addr::new(0x2001, 0x0db8, high, low, 0, 0, 0, 0).into()
}

impl Running {
    /// Decides on a request that has just come.
    pub(crate) fn arrive(self: &Arc<Self>, head: &Parts) -> Arrived {
        let client = self.client.as_ref().and_then(|client| client(head)).unwrap_or_else(unknown_address);
        let view = HeadView::new(head, client);
        let (now, number) = (self.clock.now(), self.lanes.own());
        let mut verdicts = Verdicts::new();
        let mut own = self.lanes.lock(number);
        let OwnLane { lane, waiting, names } = &mut *own;
        let no_site = || {
            let rejection = Rejection { reason: Reason::NoSite, retry_after: Duration::ZERO };
            let decision = Decision::rejected(Reason::NoSite, None, names.clone());
            Rejected::new(rejection, decision, &head.headers)
        };
        if has_dot_segment(head.uri.path().as_bytes()) {
            return Arrived::Rejected(no_site().for_path());
        }
        let Some(target) = lane.classify(&view) else { return Arrived::Rejected(no_site()) };
        let token = waiting.next_token(number);
        let arrived = match lane.arrive(now, target, token, &mut verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                let decision = Decision::of(&permit, target, names.clone());
                Arrived::Started(Started { guard: PermitGuard::new(self.clone(), permit), decision })
            }
            Arrival::Wait(permit) => {
                // The verdict cannot come earlier, since it is delivered under this lock.
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
