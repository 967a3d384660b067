//! One request, from its parsed head to its departure: classify, arrive, wait, serve.

use crate::answer::Rejected;
use crate::buffers;
use crate::connection::{Client, Connection, Next};
use crate::forward::{Asked, LevelReport, Outgoing};
use crate::held::{Held, Waiting};
use crate::http1::Refusal;
use crate::http1::body::{Decoder, Framing};
use crate::http1::request::RequestHead;
use crate::settings::{ReportMode, Rewrite, Settings};
use crate::slot::Decision;
use crate::tunnel;
use crate::upstream::exchange::{End, Exchange, Parts};
use crate::upstream::heads::Heads;
use crate::upstream::pool::{ConnectError, Lease, Upstream, Wanted};
use crate::upstream::request::RequestSide;
use crate::upstream::response::{ResponseSide, Terms};
use crate::worker::{HeldTables, Worker};
use plimsoll_core::request::Reason;
use plimsoll_core::request::{Arrival, Outcome, Permit, RequestView, Service, Target};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What classification sees.
struct View<'a> {
    bytes: &'a [u8],
    head: &'a RequestHead,
    client: IpAddr,
    /// It comes from a trusted proxy.
    trusted: bool,
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl RequestView for View<'_> {
    fn method(&self) -> &str {
        text(self.head.method.of(self.bytes))
    }
    fn host(&self) -> &str {
        text(self.head.host(self.bytes))
    }
    fn path(&self) -> &str {
        let path = text(self.head.path.of(self.bytes));
        if path.is_empty() { "/" } else { path }
    }
    fn header(&self, name: &str) -> Option<&str> {
        self.head.field(self.bytes, name).and_then(|value| std::str::from_utf8(value).ok())
    }
    fn client(&self) -> IpAddr {
        self.client
    }
    fn is_trusted(&self) -> bool {
        self.trusted
    }
}

/// A request that may be served, and how.
pub(crate) struct Serving<'a> {
    pub held: Held,
    pub tables: &'a HeldTables,
    pub plant: usize,
    /// Of its level and of those above.
    pub rewrites: &'a [Rewrite],
    pub report: Option<LevelReport<'a>>,
    pub asked: Asked,
}

impl Connection {
    /// Serves the request whose head was parsed.
    pub(crate) async fn request(&mut self) -> Next {
        let mut asked = Asked::of(&self.head);
        asked.keep_alive &= !self.worker.is_draining();
        let Some(target) = self.classify() else {
            let refusal = Refusal::with(421, "no site of this gateway has this host");
            return self.fail(refusal, asked, None).await;
        };
        let slot = self.client.slot.clone();
        let token = slot.token(self.worker.index);
        // Before the call, since the verdict may come out of it.
        slot.begin_wait();
        let arrival = self.worker.with_lane(|lane, now, verdicts| lane.arrive(now, target, token, verdicts));
        let permit = match arrival {
            Arrival::Wait(permit) => {
                // The engine ends the wait of all others.
                if permit.reason() == Reason::Exempt {
                    slot.arm(Some(self.worker.after(self.worker.tables().settings.timeouts.first_byte)));
                }
                let waiting = Waiting::new(&self.worker, &slot, permit);
                poll_fn(|context| poll_decision(&mut self.client, context)).await;
                let expired = slot.expired();
                slot.arm(None);
                match waiting.take() {
                    None if expired => {
                        let late = Refusal::with(504, "no place at the upstream became free in time");
                        return self.fail(late, asked, None).await;
                    }
                    None => return Next::Close,
                    Some(Decision::Start(permit)) => permit,
                    Some(Decision::Drop { reason, retry_after }) => {
                        return self.reject(reason, retry_after, asked).await;
                    }
                }
            }
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                slot.end_wait();
                permit
            }
            Arrival::Reject { reason, retry_after } => {
                slot.end_wait();
                return self.reject(reason, retry_after, asked).await;
            }
        };
        self.start(target, permit, asked).await
    }

    fn classify(&self) -> Option<Target> {
        let bytes = self.client.inbox.bytes();
        let client = self.peer.client(bytes, &self.head, &self.worker.tables().settings.trusted_proxies);
        let target = self.worker.lane.borrow().classify(&View {
            bytes,
            head: &self.head,
            client,
            trusted: self.peer.trusted,
        });
        // After it: the tables are never older than the numbers.
        self.worker.renew();
        target
    }

    async fn start(&mut self, target: Target, permit: Permit, asked: Asked) -> Next {
        // A reload may have come while it waited.
        self.worker.renew();
        let tables = self.worker.tables();
        let settings = &tables.settings;
        let serving = Serving {
            tables: &tables,
            plant: permit.plant(),
            rewrites: rewrites(settings, target, permit.level()),
            report: (settings.report.mode == ReportMode::Always)
                .then(|| report(settings, permit.level(), permit.reason())),
            held: self.worker.hold(permit),
            asked,
        };
        match tables.upstreams.get(serving.plant) {
            Some(Some(upstream)) => {
                self.write_heads(serving.rewrites, settings, &upstream.name);
                self.proxy(upstream, serving).await
            }
            _ => self.serve_file(serving).await,
        }
    }

    /// Turns a request away. The connection stays, if the request's body is small enough to be read past.
    async fn reject(&mut self, reason: Reason, retry_after: Duration, mut asked: Asked) -> Next {
        let tables = self.worker.tables();
        let settings = &tables.settings;
        asked.keep_alive &= self.may_discard();
        self.scratch.clear();
        let report = (settings.report.mode != ReportMode::Off).then(|| report(settings, 0, reason));
        {
            let date = &self.worker.date.borrow();
            Rejected { rejection: &settings.rejection, retry_after, report, asked, date }
                .write(&mut self.scratch);
        }
        self.client.outbox.push_head(&self.scratch);
        self.finish(asked, None).await
    }

    /// Answers with an error in place of a response.
    async fn fail(&mut self, refusal: Refusal, mut asked: Asked, held: Option<Held>) -> Next {
        if held.is_none() {
            asked.keep_alive &= self.may_discard();
        } else {
            // Part of the body may be gone already.
            asked.keep_alive &= self.head.framing == Framing::None;
        }
        if let Some(mut held) = held {
            held.release(Service::default());
            held.depart(Outcome::Failed);
            if !self.answer(refusal, asked).await {
                return Next::Close;
            }
            return if asked.keep_alive { Next::Request } else { Next::Linger };
        }
        self.scratch.clear();
        crate::answer::write_error(&mut self.scratch, refusal, asked, &self.worker.date.borrow());
        self.client.outbox.push_head(&self.scratch);
        self.finish(asked, None).await
    }

    /// Whether the request's body, none of which was read, is small enough to be thrown away. Who waits for
    /// `100 Continue` will not send it, or will: then nobody knows where the next request begins.
    pub(crate) fn may_discard(&self) -> bool {
        match self.head.framing {
            Framing::None => true,
            Framing::Length(length) => length <= 64 * 1024 && !self.head.expects_continue,
            Framing::Chunked | Framing::UntilClose => !self.head.expects_continue,
        }
    }

    /// Sends an answer that the gateway gave without reading the request's body, then reads past that body.
    pub(crate) async fn finish(&mut self, asked: Asked, held: Option<&Held>) -> Next {
        self.client.inbox.consume(self.head.length);
        if !self.flush(held).await {
            return Next::Close;
        }
        if !asked.keep_alive {
            return if self.head.framing == Framing::None { Next::Close } else { Next::Linger };
        }
        if self.head.framing == Framing::None || self.discard(self.head.framing).await {
            return Next::Request;
        }
        Next::Linger
    }

    /// Passes the request, whose heads are written, to an upstream and the response back.
    async fn proxy(&mut self, pool: &Arc<Upstream>, serving: Serving<'_>) -> Next {
        let Serving { mut held, tables, plant, rewrites, report, asked } = serving;
        let idempotent = is_idempotent(self.head.method.of(self.client.inbox.bytes()));
        self.client.inbox.consume(self.head.length);
        let reserved = rewrites.first().map_or(&[][..], |rewrite| &rewrite.headers);
        let body = Decoder::new(self.head.framing).reserving(reserved);
        let heads = &self.outgoing;
        let mut request = RequestSide::new(heads.get(0).unwrap_or_default(), body, self.limit())
            .awaiting_continue(self.head.expects_continue);
        if let Err(refusal) = request.check(&self.client.inbox) {
            return self.fail(refusal, asked, Some(held)).await;
        }
        let reports = tables.reported[plant].then_some(&pool.reports);
        let cost_header = tables.cost_headers.get(plant).and_then(Option::as_deref);
        let report_name = tables.settings.report.reserved_name();
        let falls_back = heads.get(1).is_some();
        let terms = Terms { asked, report, report_name, reports, cost_header, falls_back };
        let response = ResponseSide::new(terms, &mut self.reply, &mut self.scratch);
        let (worker, client) = (&self.worker, &mut self.client);
        let mut exchange =
            Exchange::new(Parts { worker, client, held: &mut held, pool, request, response, idempotent });
        let end = drive(&mut exchange, heads).await;
        // Not merely complete: what was not sent still lies in the inbox, where the next request is looked for.
        let complete = exchange.request.is_sent();
        let keep = exchange.response.keeps_client() && complete;
        let silent_end = exchange.response.ends_with_connection();
        match end {
            End::Done => {
                held.depart(Outcome::Completed);
                match (keep, complete) {
                    (true, _) => Next::Request,
                    (false, true) => Next::Close,
                    (false, false) => Next::Linger,
                }
            }
            End::Switched(lease) => {
                let rest = exchange.response.take_rest();
                held.release(Service::default());
                tunnel::run(&self.worker, &mut self.client, lease.into_tunnel(), rest, &held).await;
                held.depart(Outcome::Completed);
                Next::Close
            }
            End::Failed(refusal) => self.fail(refusal, asked, Some(held)).await,
            End::Broken(outcome) => {
                if silent_end {
                    // A plain close would pass for the body's end.
                    let _ = self.client.io.set_zero_linger();
                }
                held.release(Service::default());
                held.depart(outcome);
                Next::Close
            }
            End::Retry | End::Absent => Next::Close,
        }
    }

    /// The heads that the upstream may get: of the level, and of those above as long as one falls back to the next. Only
    /// what is asked without a body, and changes nothing, is asked twice.
    fn write_heads(&mut self, rewrites: &[Rewrite], settings: &Settings, fallback_host: &str) {
        let (bytes, head, peer) = (self.client.inbox.bytes(), &self.head, &self.peer);
        let outgoing = |rewrite| Outgoing { bytes, head, rewrite, peer, settings, fallback_host };
        self.outgoing.begin(|out| outgoing(rewrites.first()).write(out));
        let reads = matches!(head.method.of(bytes), b"GET" | b"HEAD")
            && head.framing == Framing::None
            && !head.upgrade
            && !head.expects_continue;
        for pair in rewrites.windows(2).take_while(|pair| reads && pair[0].falls_back) {
            self.outgoing.then(|out| outgoing(Some(&pair[1])).write(out));
        }
    }
}

/// Carries an exchange to its end: again where a connection that was kept turns out to be dead, and with the next level's
/// head where there is nothing at one. Its place at the upstream is held throughout.
async fn drive<'a>(exchange: &mut Exchange<'a>, heads: &'a Heads) -> End {
    let (mut fresh, mut tried) = (false, 0);
    loop {
        match connect(exchange.worker, exchange.client, exchange.pool, fresh).await {
            Connected::Yes(lease) => {
                if let Err(refusal) = exchange.attach(lease) {
                    return End::Failed(refusal);
                }
            }
            Connected::ClientLeft => return End::Broken(Outcome::Abandoned),
            Connected::No(refusal) => return End::Failed(refusal),
        }
        match poll_fn(|context| exchange.poll(context)).await {
            End::Retry => fresh = true,
            End::Absent => {
                (fresh, tried) = (false, tried + 1);
                exchange.request.replace_head(heads.get(tried).unwrap_or_default());
                exchange.response.begin_again(heads.get(tried + 1).is_some());
            }
            end => return end,
        }
    }
}

/// How a request to this site is rewritten at a level, and at those above.
fn rewrites(settings: &Settings, target: Target, level: u8) -> &[Rewrite] {
    let levels = settings.rewrites.get(usize::from(target.site));
    levels.and_then(|levels| levels.get(usize::from(level).saturating_sub(1)..)).unwrap_or_default()
}

/// Methods whose repetition does no harm, RFC 9110 9.2.2.
fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

pub(crate) fn report(settings: &Settings, level: u8, reason: Reason) -> LevelReport<'_> {
    LevelReport { name: &settings.report.name, level, reason }
}

/// Ready when the decision is there, or the client is not, or its time is over. Of many who wait few hold a buffer.
fn poll_decision(client: &mut Client, context: &mut Context<'_>) -> Poll<()> {
    if client.slot.has_decision() || client.slot.expired() {
        return Poll::Ready(());
    }
    let left = poll_left(client, context);
    if left.is_pending() && buffers::are_many() {
        client.inbox.pack();
    }
    left
}

/// Ready when the client has left. What it sends meanwhile is kept, up to a buffer.
fn poll_left(client: &mut Client, context: &mut Context<'_>) -> Poll<()> {
    while client.inbox.has_room() {
        match client.inbox.poll_fill(&mut client.io, context, false) {
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(_)) => {}
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Pending
}

enum Connected {
    Yes(Lease),
    ClientLeft,
    No(Refusal),
}

/// A connection to the upstream: most often an idle one, at once.
async fn connect(worker: &Worker, client: &mut Client, pool: &Arc<Upstream>, fresh: bool) -> Connected {
    if !fresh && let Some(lease) = pool.take_idle(worker.index) {
        return Connected::Yes(lease);
    }
    let connect_timeout = worker.tables().settings.timeouts.connect;
    let wanted = Wanted { thread: worker.index, clock: worker.shared.clock, connect_timeout, fresh };
    let mut acquiring = pin!(pool.acquire(wanted));
    poll_fn(|context| {
        if let Poll::Ready(result) = acquiring.as_mut().poll(context) {
            return Poll::Ready(match result {
                Ok(lease) => Connected::Yes(lease),
                Err(ConnectError::Refused) => {
                    Connected::No(Refusal::with(502, "the upstream does not accept connections"))
                }
                Err(ConnectError::TimedOut) => {
                    Connected::No(Refusal::with(504, "the upstream does not accept connections in time"))
                }
                Err(ConnectError::OutOfDescriptors) => Connected::No(Refusal::with(
                    503,
                    "the gateway has no file descriptor left for a connection",
                )),
            });
        }
        poll_left(client, context).map(|()| Connected::ClientLeft)
    })
    .await
}
