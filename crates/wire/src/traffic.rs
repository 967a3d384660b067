//! What a server did, from the packets to and from its port (CA 4.2): requests, bytes of bodies, response times, and how long
//! it had something to do.
//!
//! A request begins for the server with its last byte, and ends with the last byte of its answer, as the wire shows them. The
//! mean of `min(n, workers)`, with n such requests under way, is how many of its workers were busy: with one worker this is the
//! paper's gap estimation, U = (T - G) / T with the time G without any request.
//!
//! Requests in a direction that is seen from its middle count from the first head on that can be read.

use crate::answers::Answers;
use crate::body::Body;
use crate::flow::{Flow, Part};
use crate::head::{HEADERS, Parsed, request_head};
use crate::segment::Segment;
use httparse::EMPTY_HEADER;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// So many connections are followed at once; then those that have been silent for [`SILENT`] are forgotten.
const CONNECTIONS: usize = 1 << 16;
const SILENT: Duration = Duration::from_secs(60);
/// A longer head is none (byte).
const LONGEST_HEAD: usize = 64 << 10;

/// What was seen since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Requests whose answer has ended.
    pub requests: u64,
    /// Bytes of answers' bodies, with the framing of chunks.
    pub bytes: u64,
    /// The sum of these requests' response times.
    pub response: Duration,
    /// The integral of `min(n, workers)` over the time.
    pub busy: Duration,
    /// Bytes that the capture did not see.
    pub unseen: u64,
}

/// A server's traffic.
#[derive(Debug)]
pub struct Traffic {
    port: u16,
    workers: u32,
    connections: HashMap<(SocketAddr, SocketAddr), Connection>,
    seen: Seen,
    in_service: u32,
    /// Until when `busy` is summed up.
    until: Duration,
}

#[derive(Debug, Default)]
struct Connection {
    requests: Requests,
    answers: Answers,
    to_server: Flow,
    to_client: Flow,
    /// Requests without an answer: when they were complete, and whether they are HEAD.
    waiting: VecDeque<(Duration, bool)>,
    last: Duration,
}

/// The client's direction.
#[derive(Debug, Default)]
struct Requests {
    part: Vec<u8>,
    /// The request whose body has not ended, and whether it is HEAD.
    body: Option<(Body, bool)>,
}

impl Traffic {
    /// That of a server at this port, which works on so many requests at once.
    pub fn new(port: u16, workers: u32) -> Traffic {
        let (connections, until) = (HashMap::new(), Duration::ZERO);
        Traffic { port, workers: workers.max(1), connections, seen: Seen::default(), in_service: 0, until }
    }

    /// Requests under way.
    pub fn in_service(&self) -> u32 {
        self.in_service
    }

    /// What was seen until `now`, since the last look.
    pub fn look(&mut self, now: Duration) -> Seen {
        self.advance(now);
        std::mem::take(&mut self.seen)
    }

    /// Takes a segment that was captured at `now`.
    pub fn take(&mut self, now: Duration, segment: &Segment<'_>) {
        self.advance(now);
        let is_to_server = segment.to.port() == self.port;
        let ends = if is_to_server { (segment.from, segment.to) } else { (segment.to, segment.from) };
        if ends.1.port() != self.port {
            return;
        }
        if segment.is_reset || (is_to_server && segment.is_first) {
            self.forget(ends);
        }
        if segment.is_reset {
            return;
        }
        if self.connections.len() >= CONNECTIONS {
            self.forget_silent(now);
        }
        let connection = self.connections.entry(ends).or_default();
        connection.last = now;
        let first = segment.sequence.wrapping_add(segment.is_first.into());
        if is_to_server {
            connection.take_requests(first, segment, now, &mut self.in_service);
        } else {
            connection.take_answers(first, segment, now, (&mut self.seen, &mut self.in_service));
            if segment.is_last {
                self.end(ends, now);
            }
        }
    }

    fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.until);
        self.seen.busy += passed * self.in_service.min(self.workers);
        self.until += passed;
    }

    /// The server has closed: an answer may end with it.
    fn end(&mut self, ends: (SocketAddr, SocketAddr), now: Duration) {
        if let Some(connection) = self.connections.get_mut(&ends)
            && connection.answers.close().is_some()
        {
            connection.answered(now, &mut self.seen, &mut self.in_service);
        }
        self.forget(ends);
    }

    fn forget(&mut self, ends: (SocketAddr, SocketAddr)) {
        if let Some(connection) = self.connections.remove(&ends) {
            self.in_service = self.in_service.saturating_sub(connection.waiting.len() as u32);
        }
    }

    fn forget_silent(&mut self, now: Duration) {
        let is_silent = |connection: &Connection| now.saturating_sub(connection.last) > SILENT;
        let silent: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_silent(connection))
            .map(|(ends, _)| *ends)
            .collect();
        silent.into_iter().for_each(|ends| self.forget(ends));
    }
}

impl Connection {
    fn take_requests(&mut self, first: u32, segment: &Segment<'_>, now: Duration, in_service: &mut u32) {
        let Connection { requests, to_server, waiting, .. } = self;
        if segment.is_first {
            to_server.open(first);
        }
        to_server.take(first, segment.bytes, segment.length, |part| match part {
            Part::Bytes(bytes) => requests.pass(bytes, |is_head| {
                waiting.push_back((now, is_head));
                *in_service += 1;
            }),
            Part::Unseen(count) => {
                if requests.skip(count as u64) {
                    waiting.push_back((now, false));
                    *in_service += 1;
                }
            }
        });
    }

    fn take_answers(
        &mut self,
        first: u32,
        segment: &Segment<'_>,
        now: Duration,
        (seen, in_service): (&mut Seen, &mut u32),
    ) {
        if segment.is_first {
            self.to_client.open(first);
        }
        let mut flow = std::mem::take(&mut self.to_client);
        flow.take(first, segment.bytes, segment.length, |part| {
            let (mut bytes, mut unseen) = match part {
                Part::Bytes(bytes) => (bytes, 0),
                Part::Unseen(count) => (&[][..], count),
            };
            seen.unseen += unseen as u64;
            if self.answers.is_lost() && bytes.starts_with(b"HTTP/1.") {
                self.answers = Answers::default();
            }
            // What comes without a request is no answer: the server speaks something else, or the request was not seen.
            while (!bytes.is_empty() || unseen > 0) && !self.waiting.is_empty() {
                let is_to_head = self.waiting.front().is_some_and(|(_, is_head)| *is_head);
                let progress = if unseen > 0 {
                    self.answers.skip(unseen as u64)
                } else {
                    self.answers.pass(bytes, is_to_head)
                };
                seen.bytes += progress.body;
                unseen = unseen.saturating_sub(progress.used);
                bytes = bytes.get(progress.used..).unwrap_or_default();
                if progress.ended.is_some() {
                    self.answered(now, seen, in_service);
                }
                if self.answers.is_lost() {
                    // Which requests are answered by what was not seen, nobody knows.
                    seen.bytes -= progress.body;
                    *in_service = in_service.saturating_sub(self.waiting.len() as u32);
                    self.waiting.clear();
                }
            }
        });
        self.to_client = flow;
    }

    fn answered(&mut self, now: Duration, seen: &mut Seen, in_service: &mut u32) {
        if let Some((since, _)) = self.waiting.pop_front() {
            seen.requests += 1;
            seen.response += now.saturating_sub(since);
            *in_service = in_service.saturating_sub(1);
        }
    }
}

impl Requests {
    /// Passes bytes, and calls `whole` for each request that is complete with whether it is HEAD.
    fn pass(&mut self, mut bytes: &[u8], mut whole: impl FnMut(bool)) {
        while !bytes.is_empty() || self.body.as_ref().is_some_and(|(body, _)| body.has_ended()) {
            match &mut self.body {
                Some((body, is_head)) => {
                    bytes = &bytes[body.pass(bytes)..];
                    if body.has_ended() {
                        whole(*is_head);
                        self.body = None;
                    }
                }
                None => bytes = &bytes[self.head(bytes)..],
            }
        }
    }

    /// Passes bytes that nobody saw; whether a request is complete with them.
    fn skip(&mut self, count: u64) -> bool {
        self.part.clear();
        let Some((body, _)) = &mut self.body else { return false };
        body.skip(count);
        self.body.take_if(|(body, _)| body.has_ended()).is_some()
    }

    /// Passes bytes of a head; returns how many belong to it. What is no head is passed over.
    fn head(&mut self, bytes: &[u8]) -> usize {
        let before = self.part.len();
        self.part.extend_from_slice(bytes);
        let mut headers = [EMPTY_HEADER; HEADERS];
        match request_head(&self.part, &mut headers) {
            Parsed::Whole(head) => {
                let (body, is_head, length) = (head.body.clone(), head.method == "HEAD", head.length);
                self.body = Some((body, is_head));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Link, frames::frame};

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    /// A client and a server whose frames are captured at times that are told (ms).
    struct Played {
        traffic: Traffic,
        next: [u32; 2],
    }

    impl Played {
        fn new(workers: u32) -> Played {
            let mut played = Played { traffic: Traffic::new(80, workers), next: [u32::MAX - 20, 500] };
            played.frame(0, 0, 2, b"");
            played.frame(0, 1, 2, b"");
            played.next = played.next.map(|next| next.wrapping_add(1));
            played
        }

        fn frame(&mut self, at: u64, side: usize, flags: u8, bytes: &[u8]) {
            let (from, to) = if side == 0 { ((1, 4000), (2, 80)) } else { ((2, 80), (1, 4000)) };
            let frame = frame(from, to, self.next[side], flags, bytes);
            let segment = Segment::of(Link::Ethernet, &frame).expect("a segment");
            self.traffic.take(Duration::from_millis(at), &segment);
        }

        fn send(&mut self, at: u64, side: usize, bytes: &[u8]) {
            self.frame(at, side, 0x18, bytes);
            self.next[side] = self.next[side].wrapping_add(bytes.len() as u32);
        }

        fn look(&mut self, at: u64) -> (u64, u64, u64, u64) {
            let seen = self.traffic.look(Duration::from_millis(at));
            (seen.requests, seen.bytes, seen.response.as_millis() as u64, seen.busy.as_millis() as u64)
        }
    }

    #[test]
    fn a_request_lasts_from_its_last_byte_to_the_last_of_its_answer() {
        let mut played = Played::new(1);
        played.send(10, 0, &GET[..10]);
        played.send(20, 0, &GET[10..]);
        played.send(50, 1, &ANSWER[..30]);
        assert_eq!((played.look(60), played.traffic.in_service()), ((0, 0, 0, 40), 1));
        played.send(70, 1, &ANSWER[30..]);
        assert_eq!((played.look(100), played.traffic.in_service()), ((1, 5, 50, 10), 0));
    }

    #[test]
    fn what_is_sent_again_counts_once() {
        let mut played = Played::new(1);
        for _ in 0..2 {
            played.frame(10, 0, 0x18, GET);
        }
        played.next[0] = played.next[0].wrapping_add(GET.len() as u32);
        for _ in 0..3 {
            played.frame(20, 1, 0x18, ANSWER);
        }
        assert_eq!(played.look(30), (1, 5, 10, 10));
    }

    #[test]
    fn requests_in_one_segment_are_answered_in_their_order() {
        let mut played = Played::new(4);
        played.send(0, 0, &[b"HEAD / HTTP/1.1\r\n\r\n", GET, GET].concat());
        assert_eq!(played.traffic.in_service(), 3);
        played.send(10, 1, &[&ANSWER[..ANSWER.len() - 5], ANSWER].concat());
        assert_eq!(played.look(20), (2, 5, 20, 3 * 10 + 10));
        played.send(30, 1, ANSWER);
        assert_eq!(played.look(30), (1, 5, 30, 10));
    }

    #[test]
    fn an_answer_may_end_with_the_connection_and_a_broken_one_is_none() {
        let mut played = Played::new(1);
        played.send(0, 0, GET);
        played.send(5, 1, b"HTTP/1.0 200 OK\r\n\r\nto the end");
        played.frame(10, 1, 0x11, b"");
        assert_eq!((played.look(20), played.traffic.in_service()), ((1, 10, 10, 10), 0));
        let mut broken = Played::new(1);
        broken.send(0, 0, GET);
        broken.frame(10, 0, 4, b"");
        assert_eq!((broken.look(20), broken.traffic.in_service()), ((0, 0, 0, 10), 0));
    }

    #[test]
    fn a_body_whose_bytes_the_capture_did_not_see_ends_all_the_same() {
        let mut played = Played::new(1);
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 700\r\n\r\n";
        for _ in 0..2 {
            played.send(0, 0, GET);
            played.send(0, 1, long);
            // It was not captured; so much comes behind it that it is known to be missing.
            played.next[1] = played.next[1].wrapping_add(50);
            for _ in 0..65 {
                played.send(10, 1, &[0; 10]);
            }
        }
        let seen = played.traffic.look(Duration::from_millis(10));
        assert_eq!((seen.requests, seen.bytes, seen.unseen), (2, 1400, 100));
    }

    #[test]
    fn what_was_lost_is_not_guessed_and_the_next_answer_counts_again() {
        let mut played = Played::new(1);
        played.send(0, 0, GET);
        // The head of the answer is lost, and the rest of it goes on for long.
        played.next[1] = played.next[1].wrapping_add(50);
        for _ in 0..100 {
            played.send(10, 1, &[b'x'; 10]);
        }
        assert_eq!((played.look(20).0, played.traffic.in_service()), (0, 0));
        played.send(20, 0, GET);
        played.send(30, 1, ANSWER);
        assert_eq!(played.look(40), (1, 5, 10, 10));
    }

    #[test]
    fn a_connection_that_is_seen_from_its_middle_counts_from_the_next_head() {
        let mut traffic = Traffic::new(80, 1);
        let mut numbers = [90_u32, 70];
        for (side, bytes) in [(1, &b"the rest of a body"[..]), (0, GET), (1, ANSWER)] {
            let (from, to) = if side == 0 { ((1, 4000), (2, 80)) } else { ((2, 80), (1, 4000)) };
            let frame = frame(from, to, numbers[side], 0x18, bytes);
            numbers[side] += bytes.len() as u32;
            traffic.take(Duration::ZERO, &Segment::of(Link::Ethernet, &frame).expect("a segment"));
        }
        assert_eq!(traffic.look(Duration::ZERO).requests, 1);
    }
}
