//! A request's way, from its head to its departure, on any wire.

use super::body::NoBody;
use super::decision::NotStarted;
use super::peer::{ConnectionSource, Peer};
use crate::accounting::log_entry::{CLIENT_LEFT, Entry, Why};
use crate::client::early_body::EarlyBody;
use crate::client::response_fields::Requested;
use crate::client::socket::Client;
use crate::client::wire::Wire;
use crate::exchange::request::{BODY_TOO_LARGE, HeaderVariants};
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http1::field::Field;
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::traces::context::TraceContext;
use crate::upstream::forwarding_loop;
use crate::worker::Worker;
use plimsoll_core::request::{Reason, Target};
use std::rc::Rc;

/// What follows on the wire after a request. A wire that carries only one request ends in each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The connection's next request.
    Request,
    /// No request for a moment.
    Rest,
    /// The end of the connection.
    Close,
    /// The end of a connection whose client may still be sending, and must not lose its response to a reset.
    Linger,
}

/// A request on its way, and the memory that the next request on the same wire uses again.
pub(crate) struct Way<W> {
    pub worker: Rc<Worker>,
    pub client: Client<W>,
    pub peer: Peer,
    pub head: RequestHead,
    pub reply: ResponseHead,
    /// The heads that the upstream may be sent; they are kept for a second try.
    pub variants: HeaderVariants,
    pub scratch: Vec<u8>,
    /// The part of the request's body that was read before its arrival.
    pub early: EarlyBody,
    /// The class of the request, once it is known.
    pub class: Option<u16>,
    /// The request's line of the access log, until it starts.
    pub entry: Option<Box<Entry>>,
    /// The request's place in a trace, if the gateway takes part in traces.
    pub trace: Option<TraceContext>,
}

impl<W: Wire> Way<W> {
    pub(super) fn new(worker: Rc<Worker>, client: Client<W>, source: &ConnectionSource) -> Self {
        Way {
            client,
            peer: Peer::new(source, &worker.tables().settings.trusted_proxies),
            worker,
            head: RequestHead::default(),
            reply: ResponseHead::default(),
            variants: HeaderVariants::default(),
            scratch: Vec::new(),
            early: EarlyBody::default(),
            class: None,
            entry: None,
            trace: None,
        }
    }

    /// Prepares for a head. Memory of a large request is freed, so that it does not stay with the connection.
    pub(super) fn begin(&mut self) {
        self.variants.shrink(4096);
        self.early = EarlyBody::default();
        self.class = None;
        if self.scratch.capacity() > 4096 {
            self.scratch = Vec::new();
        }
        self.note_besides();
    }

    /// Refuses a request whose head states that its body is too long.
    fn check_length(&self) -> Result<(), Refusal> {
        match self.head.framing {
            Framing::Length(length) if length > self.body_limit() => Err(BODY_TOO_LARGE),
            _ => Ok(()),
        }
    }

    /// Serves one request, from its head to its departure.
    pub(super) async fn request(&mut self) -> Next {
        let mut requested = Requested::of(&self.head);
        requested.keep_alive &= !self.worker.is_draining();
        self.worker.renew();
        self.peer.judge(&self.worker.tables().settings.trusted_proxies);
        let classified = self.classify();
        requested.secure_seconds = self.secure_seconds();
        self.find_trace();
        self.class = classified.map(|target| target.class);
        self.begin_log_entry(classified);
        if let Err(refusal) = self.check_length() {
            return self.refuse(refusal).await;
        }
        if self.worker.shared.mark.is_on(self.client.inbox.bytes(), &self.head.fields) {
            return self.turn_away(forwarding_loop::COME_BACK, requested).await;
        }
        let Some(mut target) = classified else {
            let refusal = Refusal::with(421, "no site of this gateway has this host");
            return self.turn_away(refusal, requested).await;
        };
        if self.is_to_be_secured() {
            return self.redirect_to_tls(requested).await;
        }
        if self.head.expects_continue
            && let Some(rejection) = self.reject_before_body(&target)
        {
            return self.reject(rejection, requested).await;
        }
        self.note_besides();
        match self.await_body(&mut target).await {
            Ok(()) => {}
            Err(NoBody::ClientLeft) => return self.client_left(),
            Err(NoBody::Refused(refusal)) => return self.refuse(refusal).await,
        }
        match self.admit(target).await {
            Ok(permit) => self.forward(target, permit, requested).await,
            Err(NotStarted::Rejected(rejection)) => self.reject(rejection, requested).await,
            Err(NotStarted::TooLate) => {
                let late = Refusal::with(504, "no place at the upstream became free in time");
                self.turn_away(late, requested).await
            }
            Err(NotStarted::NoMemory) => {
                let full = Refusal::with(503, "the requests that wait hold as much memory as they may");
                self.turn_away(full, requested).await
            }
            Err(NotStarted::ClientLeft) => self.client_left(),
        }
    }

    /// Reads the part of the body that is read before an arrival. A folder needs no body, and answers without it.
    async fn await_body(&mut self, target: &mut Target) -> Result<(), NoBody> {
        if self.head.framing == Framing::None || self.worker.tables().is_of_folders(target.site) {
            return Ok(());
        }
        // The reading of a body is on the heap, so that a connection's task stays as small as requests without a body need.
        Box::pin(self.read_body()).await?;
        target.streams = !self.early.is_whole;
        Ok(())
    }

    /// Ends a request whose client left before it started.
    fn client_left(&mut self) -> Next {
        self.note_turned_away(CLIENT_LEFT, Why::Reason(Reason::ClientLeft), 0);
        Next::Close
    }

    /// Notes the memory of the connection besides its client's bytes.
    pub(super) fn note_besides(&mut self) {
        let fields = self.head.fields.capacity() + self.reply.fields.capacity();
        let entry = self.entry.as_ref().map_or(0, |entry| entry.held());
        self.client.besides =
            fields * size_of::<Field>() + self.variants.capacity() + self.scratch.capacity() + entry;
    }

    pub(crate) fn body_limit(&self) -> u64 {
        self.worker.tables().settings.limits.body_bytes
    }
}
