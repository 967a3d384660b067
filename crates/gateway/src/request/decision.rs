//! Whether and when a request starts: it is classified, the engine decides on it, and it waits if the engine says so.
//!
//! The engine decides on level, admission and place in one call. A request that has to wait is parked here; its verdict
//! comes by its thread's [mailbox](crate::worker::mailbox) into its connection's slot.

use super::lifecycle::Way;
use super::peer::Peer;
use crate::accounting::permit_guard::WaitingGuard;
use crate::client::wire::Wire;
use crate::http1::field::kind_of;
use crate::http1::request::RequestHead;
use crate::settings::Settings;
use plimsoll_core::request::{Arrival, Permit, Reason, Rejection, RequestView, Target, Verdict, cookie};
use std::future::poll_fn;
use std::net::IpAddr;
use std::task::Poll;

/// Why a request does not start.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// The engine rejected the request, on arrival or while it waited.
    Rejected(Rejection),
    /// The request is exempt, and no place became free within the gateway's own limit.
    TooLate,
    /// Waiting requests hold as much memory as they may.
    NoMemory,
    /// The client left while the request waited.
    ClientLeft,
}

impl<W: Wire> Way<W> {
    /// The site and class of the request, if a site of this gateway has its host.
    pub(super) fn classify(&self) -> Option<Target> {
        let bytes = self.client.inbox.bytes();
        let tables = self.worker.tables();
        let settings = &tables.settings;
        let client = self.peer.client(bytes, &self.head, settings);
        let view = HeadView { bytes, head: &self.head, client, peer: &self.peer, settings };
        let target = self.worker.lane.borrow().classify(&view);
        // The tables are renewed after the classification, so that they are never older than the numbers in `target`.
        self.worker.renew();
        target
    }

    /// Why and until when the request would be rejected, if that is certain before its body has come.
    pub(super) fn reject_before_body(&self, target: &Target) -> Option<Rejection> {
        let (now, mut lane) = (self.worker.now(), self.worker.lane.borrow_mut());
        lane.reject_before_body(now, target)
    }

    /// Asks for level, admission and place: returns once the request holds a place at its plant, or never will.
    pub(super) async fn admit(&mut self, target: Target) -> Result<Permit, NotStarted> {
        let slot = &self.client.slot;
        let token = slot.token(self.worker.index);
        // The wait begins before the call, since the call itself may deliver the verdict.
        slot.begin_wait();
        let arrival = self.worker.with_lane(|lane, now, verdicts| {
            let target = Target { repeats: slot.repeats(now, target.class), ..target };
            lane.arrive(now, target, token, verdicts)
        });
        match arrival {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                slot.end_wait();
                Ok(permit)
            }
            Arrival::Reject(rejection) => {
                slot.end_wait();
                Err(NotStarted::Rejected(rejection))
            }
            Arrival::Wait(permit) => self.wait(permit).await,
        }
    }

    async fn wait(&mut self, permit: Permit) -> Result<Permit, NotStarted> {
        let slot = self.client.slot.clone();
        // The engine bounds the wait of all requests except exempt ones.
        if permit.reason() == Reason::Exempt {
            slot.arm(Some(self.worker.after(self.worker.tables().settings.timeouts.first_byte)));
        }
        let mut waiting = WaitingGuard::new(&self.worker, &slot, permit);
        let mut has_room = true;
        poll_fn(|context| {
            let verdict = self.client.poll_verdict(context);
            has_room = verdict.is_ready() || waiting.hold(self.client.held_while_waiting());
            if has_room { verdict } else { Poll::Ready(()) }
        })
        .await;
        let (reason, not_started) = match slot.expired() {
            _ if !has_room => (Reason::QueueFull, NotStarted::NoMemory),
            true => (Reason::WaitTimeout, NotStarted::TooLate),
            false => (Reason::ClientLeft, NotStarted::ClientLeft),
        };
        slot.arm(None);
        match waiting.end(reason) {
            Some(Verdict::Start(_, permit)) => Ok(permit),
            Some(Verdict::Drop(_, rejection)) => Err(NotStarted::Rejected(rejection)),
            None => {
                if let Some(entry) = &mut self.entry {
                    entry.left_queue(reason);
                }
                Err(not_started)
            }
        }
    }
}

/// A request as the classification sees it.
struct HeadView<'a> {
    bytes: &'a [u8],
    head: &'a RequestHead,
    client: IpAddr,
    peer: &'a Peer,
    settings: &'a Settings,
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl RequestView for HeadView<'_> {
    fn method(&self) -> &str {
        text(self.head.method.of(self.bytes))
    }
    fn host(&self) -> &str {
        text(self.head.host(self.bytes))
    }
    fn path(&self) -> &str {
        self.head.rule_path(self.bytes)
    }
    fn query(&self) -> &str {
        text(self.head.query(self.bytes))
    }
    fn header(&self, name: &str) -> Option<&str> {
        if self.settings.client_header().is_some_and(|own| own.eq_ignore_ascii_case(name)) {
            return self.peer.certificate.as_deref();
        }
        if !self.peer.believes(kind_of(name.as_bytes()), self.settings) {
            return None;
        }
        let sent = self.head.field(self.bytes, name).and_then(|value| std::str::from_utf8(value).ok())?;
        let is_for_proxies =
            || self.settings.trusted_headers.iter().any(|own| own.eq_ignore_ascii_case(name));
        if !self.peer.trusted && is_for_proxies() {
            return None;
        }
        self.settings.signed.header(name, sent)
    }
    fn cookie(&self, name: &str) -> Option<&str> {
        cookie(self, name).and_then(|sent| self.settings.signed.cookie(name, sent))
    }
    fn client(&self) -> IpAddr {
        self.client
    }
    fn is_trusted(&self) -> bool {
        self.peer.trusted
    }
}
