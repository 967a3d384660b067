//! One connection, without its descriptor: the meaning of the bytes that the server reads and writes.
//!
//! One request is under way at a time. A request begins with its head, and ends with its answer by the framing of HTTP, or with
//! the connection. Anything that cannot be followed makes the rest of the connection *opaque*: another protocol, a request that
//! comes before the end of the answer to the one before it (pipelining), a switch to another protocol, a head of more than
//! [`LONGEST_HEAD`].

use crate::answer_head::AskedSite;
use crate::decide::{Decision, Refusal, UnderWay};
use crate::io_buffers::IoBuffers;
use plimsoll_core::request::{Outcome, is_event_stream};
use plimsoll_wire::{Answers, Body, EMPTY_HEADER, HEADERS, Parsed, RequestHead, request_head};
use std::fmt::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The longest head that is decided on (bytes); a longer one is passed on unchanged.
pub(crate) const LONGEST_HEAD: usize = 16 << 10;
/// If a request is rejected before all of it has come, its rest is thrown away for this long, as in the gateway.
const LINGER: Duration = Duration::from_secs(1);

/// A connection that the server has accepted.
#[derive(Debug)]
pub(crate) struct Connection {
    client: IpAddr,
    /// The process that reads the connection.
    process: u32,
    reading: Reading,
    answers: Answers,
    /// The part of a changed answer head that is still to be sent.
    changed: Vec<u8>,
    /// The request that is not yet answered in full.
    asked: Option<Asked>,
    /// Whether the server has already answered a request on this connection: if it reads again, it keeps the connection alive.
    is_kept: bool,
    /// Whether the client sends no more.
    has_client_ended: bool,
    /// The number of bytes of an incomplete head that were seen in the kernel; the socket becomes readable at one byte more.
    part: usize,
}

/// What the server reads next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// The head of the next request.
    Head,
    /// The rest of a head for which the server's buffer had no room, and the body.
    Rest(usize, Body),
    /// Bytes that are not followed.
    Opaque,
    /// The end of the stream: the last request was rejected here. Until this time its remaining bytes are thrown away, because
    /// the kernel resets a connection that is closed with unread bytes, and the client may lose the answer.
    End(Instant),
}

#[derive(Debug)]
struct Asked {
    is_head: bool,
    under_way: Option<UnderWay>,
    /// The host and the prefix, if the level has a prefix.
    site: Option<AskedSite>,
}

/// What to do with the bytes that have come.
#[derive(Debug)]
pub(crate) enum Step {
    /// The head is not complete yet.
    Wait,
    /// The bytes go to the server unchanged.
    Pass,
    /// The bytes go to the server with this text inserted at this place.
    Insert(usize, &'static str),
    /// This number of bytes is taken, and this text is the answer. If the connection ends then, the rest of the request is
    /// thrown away for this time.
    Answer(usize, String, Option<Duration>),
}

impl Connection {
    pub(crate) fn new(client: IpAddr, process: u32) -> Connection {
        Connection {
            client,
            process,
            reading: Reading::Head,
            answers: Answers::default(),
            changed: Vec::new(),
            asked: None,
            is_kept: false,
            has_client_ended: false,
            part: 0,
        }
    }

    pub(crate) fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Whether nothing more can be seen on the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.reading == Reading::Opaque && self.asked.is_none()
    }

    /// Replaces the number of bytes of an incomplete head, and returns the former number.
    pub(crate) fn replace_part(&mut self, part: usize) -> usize {
        std::mem::replace(&mut self.part, part)
    }

    /// The process that reads the connection.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// Reads a head of which these bytes have come, and has `decide` decide on it. `process` is the process that reads; `waits`
    /// says whether its call blocks.
    pub(crate) fn head(
        &mut self,
        bytes: &[u8],
        process: u32,
        waits: impl FnOnce() -> bool,
        decide: impl FnOnce(&RequestHead<'_, '_>, IpAddr) -> Decision,
    ) -> Step {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let head = match request_head(bytes, &mut headers) {
            Parsed::Partial if bytes.len() < LONGEST_HEAD => return Step::Wait,
            Parsed::Whole(head) if head.target.starts_with('/') && head.method != "CONNECT" => head,
            _ => return self.give_up(),
        };
        if self.asked.is_some() {
            // The end of the answer before was not seen, and a rejection now might go into the middle of it.
            return self.give_up();
        }
        self.process = process;
        let (under_way, prefix) = match decide(&head, self.client) {
            Decision::Serve(prefix, under_way) => (Some(under_way), prefix),
            Decision::AsItCame => (None, ""),
            Decision::Reject(refusal) => return self.reject(&head, bytes.len(), &refusal, waits),
        };
        let host = || head.header("host").unwrap_or("").to_owned();
        let site = (!prefix.is_empty()).then(|| AskedSite { host: host(), prefix });
        self.asked = Some(Asked { is_head: head.method == "HEAD", under_way, site });
        self.reading = Reading::Rest(head.length, head.body);
        Step::Insert(head.target_at, prefix)
    }

    fn reject(
        &self,
        head: &RequestHead<'_, '_>,
        have: usize,
        refusal: &Refusal,
        waits: impl FnOnce() -> bool,
    ) -> Step {
        let Refusal { status, reason, retry_after, content_type, body } = refusal;
        let end = match head.body {
            Body::Length(length) => {
                usize::try_from(length).ok().and_then(|length| head.length.checked_add(length))
            }
            _ => None,
        };
        // Only a server that has kept this connection waits for another request, and for a time of its own. If its call blocks,
        // the server may already know that this request was there, and must not wait for another one.
        let is_last = !head.keeps_alive || !self.is_kept || end.is_none_or(|end| end > have) || waits();
        let (phrase, length) = (if *status == 503 { "Service Unavailable" } else { "Rejected" }, body.len());
        let connection = if is_last { "close" } else { "keep-alive" };
        let again = match retry_after {
            0 => String::new(),
            after => format!("Retry-After: {after}\r\nRateLimit: \"{reason}\";r=0;t={after}\r\n"),
        };
        let mut answer = format!(
            "HTTP/1.1 {status} {phrase}\r\n{again}Cache-Control: no-store\r\nX-Plimsoll: level=0; reason={reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n"
        );
        if head.method != "HEAD" {
            // Writing into a text cannot fail.
            let _ = answer.write_str(body);
        }
        let lingers = if end.is_none_or(|end| end > have) { LINGER } else { Duration::ZERO };
        // If the connection ends, the bytes behind the request are thrown away as well.
        let taken = if is_last { have } else { end.unwrap_or(have).min(have) };
        Step::Answer(taken, answer, is_last.then_some(lingers))
    }

    /// The rest of the stream is not followed. A request under way ends with its answer.
    pub(crate) fn give_up(&mut self) -> Step {
        self.reading = Reading::Opaque;
        Step::Pass
    }

    /// The server gets no more bytes; the rest is thrown away until this time.
    pub(crate) fn finish(&mut self, until: Instant) {
        self.reading = Reading::End(until);
    }

    /// The server has read these bytes of the stream.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let Reading::Rest(head, body) = &mut self.reading else { return };
        let of_head = bytes.len().min(*head);
        *head -= of_head;
        let rest = &bytes[of_head..];
        let is_more = body.pass(rest) < rest.len();
        if is_more {
            // The bytes go on into the next request, which was not decided on.
            self.reading = Reading::Opaque;
        } else if *head == 0 && body.has_ended() {
            self.reading = Reading::Head;
        }
    }

    /// The client sends no more bytes.
    pub(crate) fn client_ended(&mut self) {
        self.has_client_ended = true;
        self.reading = Reading::Opaque;
    }

    /// The bytes that the client gets instead of the first of these, which the server is about to send; the number is the same.
    pub(crate) fn instead_of(&mut self, places: &IoBuffers<'_>) -> Option<Vec<u8>> {
        if !self.changed.is_empty() {
            // The server may offer fewer bytes than are left of the changed head.
            let later = self.changed.split_off(self.changed.len().min(places.room()));
            return Some(std::mem::replace(&mut self.changed, later));
        }
        self.asked.as_ref().filter(|_| !self.answers.is_within())?.site.as_ref()?.head(places)
    }

    /// Notes that the kernel took `count` bytes of the replaced text, or none.
    pub(crate) fn sent_instead(&mut self, mut instead: Vec<u8>, count: usize) {
        // A server that has sent nothing of its head yet may still send another head.
        if count > 0 || self.answers.is_within() {
            let unsent = instead.split_off(count.min(instead.len()));
            self.changed.splice(..0, unsent);
        }
    }

    /// The server has sent these bytes.
    pub(crate) fn sent(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(asked) = &self.asked else { return };
            let had_head = self.answers.is_within_body();
            let progress = self.answers.pass(bytes, asked.is_head);
            bytes = &bytes[progress.used..];
            if !had_head
                && self.answers.is_within_body()
                && is_event_stream(self.answers.content_type())
                && let Some(under_way) = &asked.under_way
            {
                under_way.stays_open();
            }
            self.progressed(progress.body, progress.ended);
        }
    }

    /// Counts bytes that the kernel has sent from a file.
    pub(crate) fn sent_by_kernel(&mut self, count: u64) {
        if self.asked.is_some() {
            let progress = self.answers.skip(count);
            self.progressed(progress.body, progress.ended);
        }
    }

    fn progressed(&mut self, body: u64, ended: Option<u16>) {
        if let Some(Asked { under_way: Some(under_way), .. }) = &self.asked
            && body > 0
        {
            under_way.sent(body);
        }
        if let Some(status) = ended {
            if status == 101 {
                self.reading = Reading::Opaque;
            }
            self.end(Outcome::of_answer(status));
            self.is_kept = true;
        }
    }

    /// The server sends no more, or has closed the connection.
    pub(crate) fn closed(&mut self) {
        let was_within = self.answers.is_within();
        let outcome = match self.answers.close() {
            Some(status) => Outcome::of_answer(status),
            None if was_within || self.has_client_ended => Outcome::Abandoned,
            None => Outcome::Failed,
        };
        self.end(outcome);
        self.give_up();
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(under_way) = self.asked.take().and_then(|asked| asked.under_way) {
            under_way.done(outcome);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n";

    fn connection() -> Connection {
        Connection::new(IpAddr::from([192, 0, 2, 1]), 1)
    }

    fn passed(connection: &mut Connection, bytes: &[u8]) -> Step {
        connection.head(bytes, 1, || false, |_, _| Decision::AsItCame)
    }

    #[test]
    fn a_changed_head_goes_out_in_pieces_of_any_size() {
        let head = b"HTTP/1.1 301 \r\nLocation: /light/a\r\nContent-Length: 3\r\n\r\nend";
        let mut connection = connection();
        let site = AskedSite { host: "here".to_owned(), prefix: "/light" };
        connection.asked = Some(Asked { is_head: false, under_way: None, site: Some(site) });
        let (mut at, mut out) = (0, Vec::new());
        // The sizes that the server offers, and how much of each the socket takes.
        for (offered, taken) in [(head.len(), 20), (7, 7), (9, 2), (1, 1), (head.len(), head.len())] {
            let bytes = &head[at..head.len().min(at + offered)];
            let piece = IoBuffers::piece(bytes.as_ptr().cast(), bytes.len());
            // SAFETY: the text outlives `places`, and is not written to.
            #[expect(unsafe_code, reason = "memory of the server")]
            let places = unsafe { IoBuffers::new(&piece) };
            let instead = connection.instead_of(&places).expect("the head is not over");
            assert!(
                instead.len() <= bytes.len(),
                "more than was offered: {} of {}",
                instead.len(),
                bytes.len()
            );
            let sent = [&instead, &bytes[instead.len()..]].concat();
            let count = taken.min(sent.len());
            out.extend_from_slice(&sent[..count]);
            connection.sent_instead(instead, count);
            connection.sent(&bytes[..count]);
            at += count;
        }
        let expected = "HTTP/1.1 301 \r\nLocation:       /a\r\nContent-Length: 3\r\n\r\nend";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    /// The rejection in a connection that the server has kept.
    fn rejected(bytes: &[u8]) -> (usize, String, Option<Duration>) {
        let mut connection = connection();
        passed(&mut connection, GET);
        connection.read(GET);
        connection.sent(b"HTTP/1.1 204 None\r\n\r\n");
        rejected_in(&mut connection, bytes, false)
    }

    fn rejected_in(
        connection: &mut Connection,
        bytes: &[u8],
        waits: bool,
    ) -> (usize, String, Option<Duration>) {
        let refusal = Refusal {
            status: 503,
            reason: "overload",
            retry_after: 2,
            content_type: "text/plain",
            body: "busy\n",
        };
        match connection.head(bytes, 1, || waits, |_, _| Decision::Reject(refusal)) {
            Step::Answer(taken, answer, lingers) => (taken, answer, lingers),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_request_follows_another() {
        let mut connection = connection();
        for _ in 0..2 {
            assert!(matches!(passed(&mut connection, &GET[..20]), Step::Wait));
            assert!(matches!(passed(&mut connection, GET), Step::Insert(4, "")));
            connection.read(&GET[..30]);
            assert!(matches!(connection.reading(), Reading::Rest(..)));
            connection.read(&GET[30..]);
            assert_eq!(*connection.reading(), Reading::Head);
            connection.sent(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
            assert!(connection.asked.is_some());
            connection.sent_by_kernel(4);
            assert!(connection.asked.is_none());
        }
    }

    #[test]
    fn what_is_not_understood_is_not_followed() {
        for bytes in [
            &b"\x16\x03\x01"[..],
            b"PRI * HTTP/2.0\r\n\r\n",
            b"CONNECT a:1 HTTP/1.1\r\n\r\n",
            b"GET http://a/ HTTP/1.1\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\n\r\n",
            &[b'A'; LONGEST_HEAD],
        ] {
            let mut connection = connection();
            assert!(matches!(passed(&mut connection, bytes), Step::Pass), "{bytes:?}");
            assert!(connection.is_over());
        }
    }

    #[test]
    fn a_second_request_that_does_not_wait_for_its_answer_is_not_followed() {
        let mut connection = connection();
        passed(&mut connection, GET);
        connection.read(&GET.repeat(2));
        assert_eq!(*connection.reading(), Reading::Opaque);
        assert!(!connection.is_over(), "the first is answered yet");
        connection.sent(b"HTTP/1.1 204 None\r\n\r\n");
        assert!(connection.is_over());
        // If the end of an answer cannot be seen, the next request shows it.
        let mut connection = super::tests::connection();
        passed(&mut connection, GET);
        connection.read(GET);
        assert!(matches!(passed(&mut connection, GET), Step::Pass));
    }

    #[test]
    fn a_second_request_behind_a_part_of_an_answer_is_not_followed() {
        for part in [
            "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhalf",
            "not HTTP",
        ] {
            let mut connection = connection();
            passed(&mut connection, GET);
            connection.read(GET);
            connection.sent(part.as_bytes());
            let step = connection.head(GET, 1, || false, |_, _| panic!("it is not decided: {part:?}"));
            assert!(matches!(step, Step::Pass), "{part:?}: {step:?}");
            assert!(!connection.is_over(), "the first is answered yet");
        }
    }

    #[test]
    fn an_upgrade_ends_what_is_followed() {
        let mut connection = connection();
        passed(&mut connection, GET);
        connection.read(GET);
        connection.sent(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
        assert!(connection.is_over());
    }

    #[test]
    fn a_rejection_keeps_the_connection_if_all_of_the_request_is_there() {
        let (taken, answer, lingers) = rejected(&GET.repeat(2));
        assert_eq!((taken, lingers), (GET.len(), None));
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"), "{answer}");
        assert!(answer.contains("X-Plimsoll: level=0; reason=overload\r\n"), "{answer}");
        assert!(answer.contains("\r\nRateLimit: \"overload\";r=0;t=2\r\n"), "{answer}");
        assert!(answer.contains("\r\nCache-Control: no-store\r\n"), "{answer}");
        assert!(answer.ends_with("Content-Length: 5\r\nConnection: keep-alive\r\n\r\nbusy\n"), "{answer}");
        let post = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";
        assert_eq!((rejected(post).0, rejected(post).2), (post.len(), None));
        assert_eq!(rejected(&post[..post.len() - 1]).2, Some(LINGER));
        assert_eq!(rejected(b"GET / HTTP/1.0\r\n\r\n").2, Some(Duration::ZERO));
        assert_eq!(rejected(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").2, Some(LINGER));
        assert!(rejected(b"HEAD / HTTP/1.1\r\n\r\n").1.ends_with("\r\n\r\n"));
    }

    /// Only in a kept connection whose read does not block is it certain that the server would wait for a next request.
    #[test]
    fn a_rejection_ends_a_connection_that_the_server_has_not_kept_or_would_wait_in() {
        let two = GET.repeat(2);
        let (taken, answer, lingers) = rejected_in(&mut connection(), &two, false);
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert_eq!((taken, lingers), (two.len(), Some(Duration::ZERO)), "nothing stays unread");
        let mut kept = connection();
        passed(&mut kept, GET);
        kept.read(GET);
        kept.sent(b"HTTP/1.1 204 None\r\n\r\n");
        let (_, answer, lingers) = rejected_in(&mut kept, GET, true);
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert_eq!(lingers, Some(Duration::ZERO));
    }
}
