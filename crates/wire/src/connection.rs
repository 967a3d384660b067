//! One connection whose packets are seen: which requests are under way in it.

use crate::answers::Answers;
use crate::body::Body;
use crate::flow::{Flow, Part};
use crate::head::{HEADERS, Parsed, request_head};
use crate::segment::Segment;
use crate::traffic::Seen;
use httparse::EMPTY_HEADER;
use std::collections::VecDeque;
use std::time::Duration;

/// The longest head of a request (bytes).
const LONGEST_HEAD: usize = 64 << 10;
/// The longest name of a method (bytes).
const LONGEST_METHOD: usize = 20;

/// Both directions, and the requests between them.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    requests: Requests,
    answers: Answers,
    to_server: Flow,
    to_client: Flow,
    /// Requests whose answers have not ended, in order.
    waiting: VecDeque<Waiting>,
    /// How many of these requests the server works on.
    under_way: u32,
    /// Whether the connection speaks no HTTP/1 from here on.
    is_foreign: bool,
    /// When bytes last came in either direction, and when the server last sent bytes.
    pub(crate) last: Duration,
    last_sent: Duration,
}

/// A request whose answer has not ended.
#[derive(Debug)]
struct Waiting {
    /// When the request was complete, or its answer began if that was earlier.
    since: Option<Duration>,
    is_head: bool,
    /// Whether its answer stays open for as long as the client likes, so that no worker is busy with it.
    stays_open: bool,
}

/// The client's direction.
#[derive(Debug, Default)]
struct Requests {
    part: Vec<u8>,
    /// What is left of the request whose head has come.
    body: Option<Body>,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug)]
enum Come {
    /// The head has come; `true` for the method HEAD.
    Head(bool),
    /// The request has come in full.
    Whole,
}

impl Connection {
    /// Requests that the server works on.
    pub(crate) fn under_way(&self) -> u32 {
        self.under_way
    }

    /// The memory for bytes that came out of order or belong to an unfinished head.
    pub(crate) fn held(&self) -> usize {
        let parts = self.requests.part.capacity() + self.answers.held();
        parts + self.to_server.held() + self.to_client.held()
    }

    /// The number of bytes that `held` counts as data.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let parts = self.requests.part.len() + self.answers.part_length();
        parts + self.to_server.waiting_bytes() + self.to_client.waiting_bytes()
    }

    /// Drops the bytes that came out of order; returns how many there were.
    pub(crate) fn forget_early(&mut self) -> usize {
        self.to_server.forget_early() + self.to_client.forget_early()
    }

    /// Takes a segment that was captured at `now`.
    pub(crate) fn take(&mut self, now: Duration, segment: &Segment<'_>, is_to_server: bool, seen: &mut Seen) {
        if segment.length > 0 || segment.is_first {
            self.last = now;
        }
        let first = segment.sequence.wrapping_add(segment.is_first.into());
        if self.is_foreign {
            return;
        }
        // The receiver has acknowledged these bytes; if the capture does not have them, it has lost them.
        if let Some(number) = segment.acknowledged {
            self.pass(!is_to_server, now, seen, |flow, part| flow.acknowledge(number, part));
        }
        self.pass(is_to_server, now, seen, |flow, part| {
            if segment.is_first {
                flow.open(first);
            }
            flow.take(first, segment.bytes, segment.length, part);
        });
    }

    /// The server has closed the connection; an answer may end with it.
    pub(crate) fn end(&mut self, now: Duration, last: u32, seen: &mut Seen) {
        self.pass(false, now, seen, |flow, part| flow.acknowledge(last, part));
        if self.answers.close().is_some() {
            self.answered(now, seen);
        }
    }

    /// Gives up all requests without an answer, because it is no longer known which answer belongs to which request.
    pub(crate) fn give_up(&mut self, seen: &mut Seen) {
        seen.given_up += self.waiting.iter().filter(|one| !one.stays_open).count() as u64;
        self.waiting.clear();
        self.under_way = 0;
    }

    fn pass(
        &mut self,
        is_to_server: bool,
        now: Duration,
        seen: &mut Seen,
        order: impl FnOnce(&mut Flow, &mut dyn FnMut(Part<'_>)),
    ) {
        if is_to_server {
            let mut flow = std::mem::take(&mut self.to_server);
            order(&mut flow, &mut |part| self.ask(now, &part, seen));
            self.to_server = flow;
        } else {
            let mut flow = std::mem::take(&mut self.to_client);
            order(&mut flow, &mut |part| self.answer(now, &part, seen));
            self.to_client = flow;
        }
    }

    fn ask(&mut self, now: Duration, part: &Part<'_>, seen: &mut Seen) {
        let mut requests = std::mem::take(&mut self.requests);
        match part {
            Part::Bytes(bytes) => {
                let is_answered = self.waiting.back().is_none_or(|last| last.since.is_some());
                if is_answered && requests.body.is_some() && is_request(bytes) {
                    // A request that was answered early is not sent to its end: here the next one begins.
                    requests.body = None;
                }
                requests.pass(bytes, |come| match come {
                    Come::Head(is_head) => self.asked(is_head, seen),
                    Come::Whole => self.complete(now),
                });
            }
            Part::Unseen(count) => {
                seen.unseen += *count as u64;
                if requests.skip(*count as u64) {
                    self.complete(now);
                }
            }
        }
        self.requests = requests;
    }

    fn asked(&mut self, is_head: bool, seen: &mut Seen) {
        if self.answers.is_until_close() && !self.answers.is_lost() {
            // With HTTP a request follows only a complete answer, which is the only sign of this answer's end.
            self.answers.close();
            self.answered(self.last_sent, seen);
        }
        self.waiting.push_back(Waiting { since: None, is_head, stays_open: false });
    }

    /// The last request is complete, or the rest of a request that was answered early.
    fn complete(&mut self, now: Duration) {
        if let Some(last) = self.waiting.back_mut().filter(|last| last.since.is_none()) {
            last.since = Some(now);
            self.under_way += 1;
        }
    }

    fn answer(&mut self, now: Duration, part: &Part<'_>, seen: &mut Seen) {
        let (mut bytes, mut unseen) = match part {
            Part::Bytes(bytes) => (*bytes, 0),
            Part::Unseen(count) => (&[][..], *count),
        };
        seen.unseen += unseen as u64;
        self.last_sent = now;
        if self.answers.is_lost() && bytes.starts_with(b"HTTP/1.") {
            self.answers = Answers::default();
        }
        // Bytes without a request are no answer: the server speaks another protocol, or the request was not seen.
        while (!bytes.is_empty() || unseen > 0) && !self.is_foreign {
            let Some(is_to_head) = self.waiting.front().map(|one| one.is_head) else { return };
            let progress = if unseen > 0 {
                self.answers.skip(unseen as u64)
            } else {
                self.answers.pass(bytes, is_to_head)
            };
            unseen = unseen.saturating_sub(progress.used);
            bytes = bytes.get(progress.used..).unwrap_or_default();
            if self.answers.is_lost() {
                // Nobody knows which requests the lost bytes answered.
                return self.give_up(seen);
            }
            seen.bytes += progress.body;
            self.progressed(now, progress.ended, seen);
        }
    }

    /// The answer to the first request has made progress, or has ended.
    fn progressed(&mut self, now: Duration, ended: Option<u16>, seen: &mut Seen) {
        if ended.is_none() && !self.answers.is_within_body() {
            return;
        }
        if let Some(one) = self.waiting.front_mut().filter(|one| one.since.is_none()) {
            // The answer began before the request was complete.
            one.since = Some(now);
            self.under_way += 1;
        }
        match ended {
            Some(status) => {
                self.is_foreign = status == 101;
                self.answered(now, seen);
            }
            None if is_event_stream(self.answers.content_type()) => self.count(now, seen),
            None => {}
        }
    }

    fn answered(&mut self, now: Duration, seen: &mut Seen) {
        self.count(now, seen);
        self.waiting.pop_front();
    }

    /// Counts the first request as answered, once; no worker is busy with it any more.
    fn count(&mut self, now: Duration, seen: &mut Seen) {
        if let Some(one) = self.waiting.front_mut().filter(|one| !one.stays_open)
            && let Some(since) = one.since
        {
            one.stays_open = true;
            seen.requests += 1;
            seen.response += now.saturating_sub(since);
            self.under_way = self.under_way.saturating_sub(1);
        }
    }
}

impl Requests {
    /// Passes bytes, and reports how far each request has come.
    fn pass(&mut self, mut bytes: &[u8], mut come: impl FnMut(Come)) {
        while !bytes.is_empty() || self.body.as_ref().is_some_and(Body::has_ended) {
            match &mut self.body {
                Some(body) => {
                    bytes = &bytes[body.pass(bytes)..];
                    if body.has_ended() {
                        come(Come::Whole);
                    }
                    // A request's body always has an end; without one these bytes were not chunks.
                    self.body.take_if(|body| body.has_ended() || *body == Body::UntilClose);
                }
                None => bytes = &bytes[self.head(bytes, &mut come)..],
            }
        }
    }

    /// Passes bytes that were not captured; returns whether a request is complete with them.
    fn skip(&mut self, count: u64) -> bool {
        self.part.clear();
        let Some(body) = &mut self.body else { return false };
        body.skip(count);
        let is_whole = body.has_ended();
        self.body.take_if(|body| body.has_ended() || *body == Body::UntilClose);
        is_whole
    }

    /// Passes bytes of a head; returns how many belong to it. Bytes that are no head are skipped.
    fn head(&mut self, bytes: &[u8], come: &mut impl FnMut(Come)) -> usize {
        if self.part.is_empty() && !may_begin_request(bytes) {
            return bytes.len();
        }
        let before = self.part.len();
        self.part.extend_from_slice(bytes);
        let mut headers = [EMPTY_HEADER; HEADERS];
        match request_head(&self.part, &mut headers) {
            Parsed::Whole(head) => {
                come(Come::Head(head.method == "HEAD"));
                self.body = Some(head.body.clone());
                let length = head.length;
                self.part.clear();
                length.saturating_sub(before)
            }
            Parsed::Partial if self.part.len() <= LONGEST_HEAD => bytes.len(),
            Parsed::Partial | Parsed::Foreign => {
                self.part.clear();
                bytes.len()
            }
        }
    }
}

/// Whether bytes may be the beginning of a request: a method, and a space if more than the method has come.
pub(crate) fn may_begin_request(bytes: &[u8]) -> bool {
    let line = bytes.trim_ascii_start();
    let is_of_method = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    let length = line.iter().take_while(|byte| is_of_method(byte)).count();
    (1..=LONGEST_METHOD).contains(&length) && line.get(length).is_none_or(|byte| *byte == b' ')
}

fn is_request(bytes: &[u8]) -> bool {
    let mut headers = [EMPTY_HEADER; HEADERS];
    may_begin_request(bytes) && matches!(request_head(bytes, &mut headers), Parsed::Whole(_))
}

/// Whether an answer of this `Content-Type` stays open for as long as its client likes.
fn is_event_stream(content_type: &[u8]) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    content_type.get(..EVENTS.len()).is_some_and(|start| start.eq_ignore_ascii_case(EVENTS))
}
