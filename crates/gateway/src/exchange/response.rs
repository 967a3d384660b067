//! The response's half of an exchange: from the upstream's socket to the client's outbox.
//!
//! A response is read into a buffer with headroom. Once its head is complete, the head that the client gets is written
//! in front of the body's first bytes, in place: head and body leave in one write, and the body is never copied. Bodies
//! pass through framed as they came, but for two cases: HTTP/1.0 clients get chunks unwrapped, and a body that ends with
//! the upstream's connection is put in chunks, so that the client can distinguish the body's end from an accident.

use super::head::Incoming;
use super::redirect::AskedPlace;
use super::trailers::TrailerSection;
use crate::client::buffers::{Buffer, HEADROOM};
use crate::client::outbox::{Bytes, Outbox};
use crate::client::response_fields::{LevelReport, Requested};
use crate::http1::body::{Decoder, Framing};
use crate::http1::response::ResponseHead;
use crate::http1::rules::HeaderRules;
use crate::http1::scan::HeadScan;
use crate::http1::{Refusal, Version};
use crate::settings::Rewrite;
use crate::transport::socket::Socket;
use crate::upstream::load_report::{self, LoadReports};
use plimsoll_core::request::is_event_stream;
use std::cell::RefCell;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};

/// An upgraded connection or a stream of events beyond those that may be open. The request was counted when it started, and
/// fails; the server's answer is thrown away.
pub(super) const TOO_MANY_OPEN: Refusal =
    Refusal::with(503, "as many upgraded connections and event streams as may are open: try again later");

/// The answer to a stream that asks for a WebSocket if the server sends a page: the client would take its 200 for the switch.
pub(crate) const NOT_SWITCHED: Refusal = Refusal::with(502, "there is no WebSocket at this place");

const HEAD_LIMIT: usize = 64 * 1024;

/// The most interim responses that the client gets, since each takes a buffer on its way. Further ones are dropped, and do not
/// extend the time limit for the final response.
const MAX_INTERIM: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseTerms<'a> {
    pub requested: Requested,
    pub report: Option<LevelReport<'a>>,
    /// The name of the report's field, which upstreams may not use; empty if the gateway sends no report.
    pub report_name: &'a str,
    /// Where the upstream's load report goes, if the gateway uses it; the client does not see the report then.
    pub reports: Option<&'a LoadReports>,
    /// The header in which the upstream reports the cost of the request.
    pub cost_header: Option<&'a str>,
    /// The site's rules for response fields.
    pub rules: &'a HeaderRules,
    /// The value of `Date` for a response without one.
    pub date: &'a RefCell<String>,
    /// Whether a 404 leads to a request at the next level instead of being sent to the client.
    pub falls_back: bool,
    /// The rewrites of the request's level and of the levels above.
    pub rewrites: &'a [Rewrite],
    /// The head that was sent to the upstream, and the upstream's addresses.
    pub sent: &'a [u8],
    pub addresses: &'a [SocketAddr],
    /// The upstream's own host, if it has one.
    pub own_host: Option<&'a str>,
}

impl<'a> ResponseTerms<'a> {
    /// The upstream's view of the place, which its answer must not show.
    pub(super) fn asked(&self) -> AskedPlace<'a> {
        let prefix = self.rewrites.first().map_or("", |rewrite| &rewrite.prefix);
        AskedPlace { prefix, sent: self.sent, addresses: self.addresses, own_host: self.own_host }
    }

    /// Whether a level below the highest answers.
    pub(super) fn is_lighter(&self) -> bool {
        self.rewrites.len() > 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ended before the first byte of a response.
    Silent,
    /// The connection ended within the response.
    CutShort,
    /// The server sent bytes that are no response.
    Malformed(&'static str),
    /// The upstream has nothing at this level, and another level can be requested.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transform {
    Pass,
    Unwrap,
    Wrap,
}

#[derive(Debug)]
pub(crate) struct ResponseSide<'a> {
    terms: ResponseTerms<'a>,
    /// The final head, once [`is_committed`](Self::is_committed).
    pub head: &'a mut ResponseHead,
    scratch: &'a mut Vec<u8>,
    buffer: Option<Buffer>,
    start: usize,
    end: usize,
    scan: HeadScan,
    body: Option<Decoder<'static>>,
    trailers: TrailerSection,
    transform: Transform,
    began: bool,
    interim: u32,
    /// Whether the last bytes ended an interim head within [`MAX_INTERIM`].
    ended_interim: bool,
    surplus: bool,
    is_event_stream: bool,
    pub bytes: u64,
    pub cost: Option<Duration>,
}

impl<'a> ResponseSide<'a> {
    pub(crate) fn new(
        terms: ResponseTerms<'a>,
        head: &'a mut ResponseHead,
        scratch: &'a mut Vec<u8>,
    ) -> Self {
        ResponseSide {
            terms,
            head,
            scratch,
            buffer: None,
            start: 0,
            end: 0,
            scan: HeadScan::default(),
            body: None,
            trailers: TrailerSection::default(),
            transform: Transform::Pass,
            began: false,
            interim: 0,
            ended_interim: false,
            surplus: false,
            is_event_stream: false,
            bytes: 0,
            cost: None,
        }
    }

    /// How much memory this side holds, besides the outbox.
    pub(crate) fn held(&self) -> usize {
        let buffer = self.buffer.as_ref().map_or(0, |buffer| buffer.len());
        buffer + self.scratch.capacity() + self.trailers.held()
    }

    /// Whether the client is being sent the final response, so that no other response can take its place.
    pub(crate) fn is_committed(&self) -> bool {
        self.body.is_some()
    }

    /// The status that the client is being sent.
    pub(crate) fn status(&self) -> Option<u16> {
        self.is_committed().then_some(self.head.status)
    }

    /// Whether the bytes that came bring the final response nearer: they completed its head or an interim head within the
    /// bound, or are of its body.
    pub(crate) fn is_progress(&self) -> bool {
        self.is_committed() || self.ended_interim
    }

    /// Whether any byte came, if only of an interim response.
    pub(crate) fn has_begun(&self) -> bool {
        self.began
    }

    /// Whether the last byte of the response was read.
    pub(crate) fn is_done(&self) -> bool {
        self.body.as_ref().is_some_and(Decoder::is_done)
    }

    /// Whether the client would take this response for a switch of protocols.
    pub(crate) fn is_mistakable(&self) -> bool {
        let is_connect = self.terms.requested.is_extended_connect();
        is_connect && self.status().is_some_and(|status| (200..300).contains(&status))
    }

    pub(crate) fn is_switched(&self) -> bool {
        self.is_committed() && self.head.status == 101
    }

    /// Whether the connection may serve another request: nothing came behind the response.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_done() && self.head.keep_alive && !self.surplus
    }

    /// Whether the response has no body, whatever its head states.
    pub(crate) fn has_no_body(&self) -> bool {
        self.head.framing == Framing::None
    }

    /// Whether all of a response that is thrown away was read already, so that its connection may serve another request.
    pub(crate) fn is_whole(&self) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        let (mut body, rest) = (Decoder::new(self.head.framing), &buffer[self.start..self.end]);
        let whole = body.advance(rest).is_ok_and(|taken| taken.bytes == rest.len());
        whole && body.is_done() && self.head.keep_alive
    }

    /// Begins again for the response at the next level. `falls_back`: there is one more level above it.
    pub(crate) fn begin_again(&mut self, falls_back: bool) {
        let report = self.terms.report.map(|report| LevelReport { level: report.level + 1, ..report });
        let rewrites = self.terms.rewrites.get(1..).unwrap_or_default();
        self.terms = ResponseTerms { report, falls_back, rewrites, ..self.terms };
        (self.buffer, self.start, self.end) = (None, 0, 0);
        (self.scan, self.began, self.interim) = (HeadScan::default(), false, 0);
    }

    /// Whether the response is a stream of events, which the upstream or the client may end at any time.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.is_event_stream
    }

    /// The bytes that the upstream sent behind its switch of protocols.
    pub(crate) fn take_rest(&mut self) -> Option<(Buffer, usize, usize)> {
        self.buffer.take().map(|buffer| (buffer, self.start, self.end)).filter(|(_, start, end)| start < end)
    }

    /// Reads once and puts what came into the outbox. `may_go_on`: another request may follow.
    pub(crate) fn poll_receive(
        &mut self,
        io: &mut Socket,
        outbox: &mut Outbox,
        may_go_on: bool,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        if self.buffer.is_none() {
            let readiness = ready!(io.poll_read_ready(context));
            if readiness.is_err() {
                return Poll::Ready(self.ended(outbox, false));
            }
            // Bytes of a body need no room in front of them.
            let start = if self.is_committed() { 0 } else { HEADROOM };
            (self.buffer, self.start, self.end) = (Some(Buffer::large()), start, start);
        }
        let Some(buffer) = &mut self.buffer else { return Poll::Pending };
        let mut target = ReadBuf::new(&mut buffer[self.end..]);
        let result = Pin::new(io).poll_read(context, &mut target);
        let count = target.filled().len();
        if result.is_pending() && self.start == self.end {
            self.buffer = None;
        }
        let result = ready!(result);
        if result.is_err() || count == 0 {
            return Poll::Ready(self.ended(outbox, result.is_ok()));
        }
        self.end += count;
        (self.began, self.ended_interim) = (true, false);
        Poll::Ready(match self.is_committed() {
            true => self.take_body(outbox, 0),
            false => self.take_heads(outbox, may_go_on),
        })
    }

    /// The connection ended. `clean`: by a close, which may be the end of the body, and not by a reset, which cuts it short.
    fn ended(&mut self, outbox: &mut Outbox, clean: bool) -> Result<(), Fault> {
        match &mut self.body {
            Some(body) if clean && body.may_end() => {
                self.surplus = true;
                *body = Decoder::new(Framing::None);
                if self.transform == Transform::Wrap {
                    outbox.push_copy(b"0\r\n\r\n", 5);
                }
                Ok(())
            }
            None if !self.began => Err(Fault::Silent),
            _ => Err(Fault::CutShort),
        }
    }

    /// Reads heads: any number of interim ones, then the final one.
    fn take_heads(&mut self, outbox: &mut Outbox, may_go_on: bool) -> Result<(), Fault> {
        loop {
            let Some(buffer) = &mut self.buffer else { return Ok(()) };
            let bytes = &buffer[self.start..self.end];
            let length = match self.scan.advance(bytes, HEAD_LIMIT) {
                Ok(Some(length)) => length,
                Ok(None) if self.end == buffer.len() && self.start == HEADROOM => {
                    return Err(Fault::Malformed("the upstream's response head is too large"));
                }
                // Interim responses have filled the buffer, and the next head may use the whole buffer.
                Ok(None) if self.end == buffer.len() => {
                    buffer.copy_within(self.start..self.end, HEADROOM);
                    (self.start, self.end) = (HEADROOM, HEADROOM + self.end - self.start);
                    return Ok(());
                }
                Ok(None) => return Ok(()),
                Err(refusal) => return Err(malformed(refusal)),
            };
            self.head.parse(&bytes[..length], self.terms.requested.is_head).map_err(malformed)?;
            self.scan = HeadScan::default();
            if self.head.status == 101 && !self.terms.requested.upgrade {
                return Err(Fault::Malformed("the upstream switched protocols unasked"));
            }
            if self.head.status == 404 && self.terms.falls_back {
                self.start += length;
                return Err(Fault::Absent);
            }
            if !self.head.is_interim() {
                // The client is informed now, before it sends its next request in vain.
                self.terms.requested.keep_alive &= may_go_on;
                let committed = self.commit(outbox, length);
                if committed.is_err() {
                    // The client has seen no byte of the response, so that an error can still replace it.
                    self.body = None;
                }
                return committed;
            }
            self.interim = self.interim.saturating_add(1);
            self.ended_interim = self.interim <= MAX_INTERIM;
            // HTTP/1.0 does not know interim responses.
            if self.interim <= MAX_INTERIM && self.terms.requested.version != Version::Http10 {
                self.write_head(length, Framing::None);
                outbox.push_head(self.scratch);
            }
            self.start += length;
        }
    }

    fn write_head(&mut self, length: usize, framing: Framing) {
        let Some(buffer) = &self.buffer else { return };
        self.scratch.clear();
        let bytes = &buffer[self.start..self.start + length];
        Incoming { bytes, head: &*self.head, framing, terms: &self.terms }.write(self.scratch);
    }

    /// Puts the final head, and the bytes that came with it, into the outbox.
    fn commit(&mut self, outbox: &mut Outbox, length: usize) -> Result<(), Fault> {
        let old = self.terms.requested.version == Version::Http10;
        let framing = match self.head.framing {
            Framing::Chunked if old => Framing::UntilClose,
            Framing::UntilClose if !old => Framing::Chunked,
            framing => framing,
        };
        self.transform = match (self.head.framing, framing) {
            (Framing::Chunked, Framing::UntilClose) => Transform::Unwrap,
            (Framing::UntilClose, Framing::Chunked) => Transform::Wrap,
            _ => Transform::Pass,
        };
        if framing == Framing::UntilClose {
            self.terms.requested.keep_alive = false;
        }
        self.write_head(length, framing);
        if let (Some(reports), Some(buffer)) = (self.terms.reports, &self.buffer)
            && let Some(value) = self.head.load_report(&buffer[self.start..self.end])
        {
            reports.add(value);
        }
        if let (Some(name), Some(buffer)) = (self.terms.cost_header, &self.buffer) {
            self.cost = self.head.field(&buffer[self.start..self.end], name).and_then(load_report::cost);
        }
        // A stream of events has no length, so that no other response is searched for its content type.
        if let (Framing::Chunked | Framing::UntilClose, Some(buffer)) = (self.head.framing, &self.buffer) {
            let kind = self.head.field(&buffer[self.start..self.end], "content-type").unwrap_or_default();
            self.is_event_stream = is_event_stream(kind);
        }
        self.body = Some(Decoder::new(self.head.framing));
        self.start += length;
        if self.head.status == 101 {
            outbox.push_head(self.scratch);
            return Ok(());
        }
        let head = self.scratch.len();
        if self.transform == Transform::Pass && head <= self.start {
            self.start -= head;
            if let Some(buffer) = &mut self.buffer {
                buffer[self.start..self.start + head].copy_from_slice(self.scratch);
            }
            // If `take_body` fails, it puts nothing into the outbox.
            return self.take_body(outbox, head);
        }
        let before = outbox.len();
        outbox.push_head(self.scratch);
        let taken = self.take_body(outbox, 0);
        if taken.is_err() {
            outbox.truncate(before);
        }
        taken
    }

    /// Moves the buffer's bytes into the outbox; the first `head` of them are not body.
    fn take_body(&mut self, outbox: &mut Outbox, head: usize) -> Result<(), Fault> {
        let (Some(buffer), Some(body)) = (self.buffer.take(), &mut self.body) else { return Ok(()) };
        let bytes = &buffer[self.start + head..self.end];
        if self.transform == Transform::Unwrap {
            let mut payload = Vec::new();
            let mut at = 0;
            while at < bytes.len() && !body.is_done() {
                let step = body.step(&bytes[at..]).map_err(malformed)?;
                payload.extend_from_slice(&bytes[at..][step.payload]);
                at += step.taken;
            }
            self.surplus |= at < bytes.len();
            self.bytes += payload.len() as u64;
            outbox.push_copy(&payload, 0);
            return Ok(());
        }
        let taken = body.advance_to_trailers(bytes).map_err(malformed)?;
        let behind = self.trailers.take(body, &bytes[taken.bytes..]).map_err(malformed)?;
        self.surplus |= taken.bytes + behind < bytes.len();
        self.bytes += taken.payload;
        let end = self.start + head + taken.bytes;
        if self.transform == Transform::Wrap && taken.bytes > 0 {
            let mut size = Vec::with_capacity(10);
            // Writing to a vector does not fail.
            let _ = write!(size, "{:x}\r\n", taken.bytes);
            outbox.push_copy(&size, size.len());
            outbox.push(Bytes::Pooled(buffer), self.start..end, 0);
            outbox.push_copy(b"\r\n", 2);
            return Ok(());
        }
        // Chunk lines and trailers do not count as body.
        let framing = taken.bytes - taken.payload as usize;
        outbox.push(Bytes::Pooled(buffer), self.start..end, head + framing);
        if behind > 0 && body.is_done() {
            let trailers = self.trailers.passed(&self.terms);
            outbox.push_copy(&trailers, trailers.len());
        }
        Ok(())
    }

    /// Whether the client takes the end of the connection for the end of the body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.transform == Transform::Unwrap
            || (self.terms.requested.version == Version::Http10 && self.head.framing == Framing::UntilClose)
    }

    /// Whether the client's connection can go on after this response.
    pub(crate) fn keeps_client(&self) -> bool {
        self.terms.requested.keep_alive
    }
}

fn malformed(refusal: Refusal) -> Fault {
    Fault::Malformed(refusal.why)
}
