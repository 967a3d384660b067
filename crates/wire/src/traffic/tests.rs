//! Played connections: each test makes the frames of a client and a server itself.

use super::*;
use crate::segment::{Link, frames::frame};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A client and a server whose frames are captured at times that are told (ms).
struct Played {
    traffic: Traffic,
    next: [u32; 2],
    client: u16,
}

impl Played {
    fn new(workers: u32) -> Played {
        let mut played = Played { traffic: Traffic::new(80, workers), next: [0; 2], client: 4000 };
        played.open(0);
        played
    }

    /// Plays the opening handshake of a connection.
    fn open(&mut self, at: u64) {
        self.next = [u32::MAX - 20, 500];
        self.frame(at, 0, 2, b"");
        self.frame(at, 1, 2, b"");
        self.next = self.next.map(|next| next.wrapping_add(1));
    }

    /// Plays the end of a connection that the server closes.
    fn close(&mut self, at: u64) {
        for (side, flags) in [(1, 0x11), (0, 0x11), (1, 0x10), (0, 0x10)] {
            self.frame(at, side, flags, b"");
            self.next[side] = self.next[side].wrapping_add((flags & 1).into());
        }
    }

    /// This side sends a number of bytes that the capture loses.
    fn miss(&mut self, side: usize, count: u32) {
        self.next[side] = self.next[side].wrapping_add(count);
    }

    fn frame(&mut self, at: u64, side: usize, flags: u8, bytes: &[u8]) {
        let (client, server) = ((1, self.client), (2, 80));
        let (from, to) = if side == 0 { (client, server) } else { (server, client) };
        let mut frame = frame(from, to, self.next[side], flags, bytes);
        // The acknowledged number of the other side, if the flag for it is set.
        frame[42..46].copy_from_slice(&self.next[1 - side].to_be_bytes());
        let segment = Segment::of(Link::Ethernet, &frame).expect("a segment");
        self.traffic.take(Duration::from_millis(at), &segment);
    }

    fn send(&mut self, at: u64, side: usize, bytes: &[u8]) {
        self.frame(at, side, 8, bytes);
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
        played.frame(10, 0, 8, GET);
    }
    played.next[0] = played.next[0].wrapping_add(GET.len() as u32);
    for _ in 0..3 {
        played.frame(20, 1, 8, ANSWER);
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
        // These bytes are not captured; enough segments follow that they are reported as missing.
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
    // The head of the answer is lost, and the rest of the answer goes on for long.
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
        let frame = frame(from, to, numbers[side], 8, bytes);
        numbers[side] += bytes.len() as u32;
        traffic.take(Duration::ZERO, &Segment::of(Link::Ethernet, &frame).expect("a segment"));
    }
    assert_eq!(traffic.look(Duration::ZERO).requests, 1);
}

#[test]
fn a_connection_that_has_ended_leaves_nothing() {
    let mut played = Played::new(1);
    for client in 4000..4100 {
        played.client = client;
        played.open(0);
        played.send(0, 0, GET);
        played.send(1, 1, ANSWER);
        played.close(2);
    }
    assert_eq!(played.look(2).0, 100);
    assert_eq!(played.traffic.connections.len(), 0);
    // A connection of which only the end is seen does not count either.
    played.close(3);
    played.send(3, 1, ANSWER);
    played.send(3, 0, &[0x81, 0x82, 1, 2]);
    assert_eq!(played.traffic.connections.len(), 0);
}

#[test]
fn what_shows_no_byte_for_long_is_forgotten() {
    let mut played = Played::new(1);
    played.send(0, 0, GET);
    played.client = 4001;
    played.open(20_000);
    played.send(20_000, 0, GET);
    played.look(29_000);
    assert_eq!(played.traffic.in_service(), 2);
    played.look(31_000);
    assert_eq!(played.traffic.in_service(), 1);
    played.send(40_000, 1, &ANSWER[..20]);
    played.look(60_000);
    assert_eq!(played.traffic.in_service(), 1);
    let seen = played.traffic.look(Duration::from_secs(71));
    assert_eq!((seen.requests, seen.given_up), (0, 1));
    assert_eq!((played.traffic.in_service(), played.traffic.connections.len()), (0, 0));
}

#[test]
fn what_was_under_way_at_a_loss_is_given_up_sooner() {
    let mut played = Played::new(2);
    played.send(0, 0, GET);
    played.traffic.lose(Duration::from_secs(1));
    played.traffic.lose(Duration::from_secs(4));
    played.client = 4001;
    played.open(2000);
    played.send(2000, 0, GET);
    played.look(5900);
    assert_eq!(played.traffic.in_service(), 2);
    let seen = played.traffic.look(Duration::from_secs(6));
    assert_eq!((seen.given_up, played.traffic.in_service()), (1, 1));
    played.client = 4002;
    played.open(5000);
    played.send(5000, 0, GET);
    played.look(8900);
    assert_eq!(played.traffic.in_service(), 2);
    played.look(9000);
    assert_eq!(played.traffic.in_service(), 1, "packets were lost after it, too");
    played.look(20_000);
    assert_eq!(played.traffic.in_service(), 1, "nothing was lost since");
}

#[test]
fn packets_that_waited_to_be_read_are_no_step_of_the_clock() {
    let mut played = Played::new(1);
    played.look(20_000);
    played.send(16_000, 0, GET);
    assert_eq!(played.look(21_000).3, 1000);
}

#[test]
fn so_many_connections_are_followed_and_no_more() {
    let mut played = Played::new(1);
    for client in 0..=u16::MAX {
        played.client = client;
        played.open(u64::from(client));
    }
    assert_eq!(played.traffic.connections.len(), 30_000, "those of the last 30 s");
    let mut traffic = Traffic::new(80, 1);
    let mut last = None;
    for number in 0..CONNECTIONS as u32 + 10 {
        let mut frame = frame((1, number as u16), (2, 80), 0, 2, b"");
        frame[28] = (number >> 16) as u8;
        let segment = Segment::of(Link::Ethernet, &frame).expect("a segment");
        traffic.take(Duration::from_micros(number.into()), &segment);
        last = Some((segment.from, segment.to));
    }
    assert_eq!(traffic.connections.len(), CONNECTIONS);
    assert!(last.is_some_and(|last| traffic.connections.contains_key(&last)), "the oldest makes room");
}

#[test]
fn an_answer_that_was_not_captured_ends_where_the_client_has_it() {
    let mut played = Played::new(1);
    played.send(0, 0, GET);
    played.miss(1, ANSWER.len() as u32);
    assert_eq!(played.traffic.in_service(), 1);
    played.frame(10, 0, 0x10, b"");
    assert_eq!(played.traffic.in_service(), 0);
    assert_eq!((played.traffic.seen.given_up, played.traffic.seen.unseen), (1, ANSWER.len() as u64));
    played.send(20, 0, GET);
    // The capture has the head of this answer, whose length says where its rest ends.
    played.send(30, 1, &ANSWER[..38]);
    played.miss(1, 5);
    played.frame(35, 0, 0x10, b"");
    played.send(40, 0, GET);
    played.send(50, 1, ANSWER);
    played.close(60);
    assert_eq!((played.look(60), played.traffic.in_service()), ((2, 10, 25, 35), 0));
}

#[test]
fn a_connection_that_opens_anew_gives_up_what_was_under_way() {
    let mut played = Played::new(1);
    played.send(0, 0, GET);
    played.open(10);
    let seen = played.traffic.look(Duration::from_millis(20));
    assert_eq!((seen.given_up, played.traffic.in_service()), (1, 0));
}

#[test]
fn a_request_that_was_not_captured_is_passed_over() {
    let mut played = Played::new(1);
    played.send(0, 0, &GET[..10]);
    played.miss(0, GET.len() as u32 * 2 - 10);
    played.frame(1, 1, 0x10, b"");
    played.send(2, 1, ANSWER);
    played.send(10, 0, GET);
    played.send(15, 1, ANSWER);
    assert_eq!((played.look(20), played.traffic.in_service()), ((1, 5, 5, 5), 0));
}

#[test]
fn an_answer_without_a_length_ends_where_the_next_request_comes() {
    let mut played = Played::new(1);
    for at in [0, 20] {
        played.send(at, 0, GET);
        played.send(at + 10, 1, b"HTTP/1.1 200 OK\r\n\r\nhello");
    }
    assert_eq!((played.look(30), played.traffic.in_service()), ((1, 10, 10, 30), 1));
}

#[test]
fn an_answer_may_come_before_the_request_has_ended() {
    const POST: &[u8] = b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n";
    const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let mut played = Played::new(1);
    played.send(0, 0, &[POST, b"12345"].concat());
    assert_eq!(played.traffic.in_service(), 0);
    played.send(5, 1, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(played.traffic.in_service(), 0);
    played.send(10, 1, BUSY);
    assert_eq!(played.look(10), (1, 0, 0, 0));
    played.send(20, 0, b"67890");
    assert_eq!(played.traffic.in_service(), 0);
    played.send(30, 0, GET);
    played.send(40, 1, ANSWER);
    assert_eq!((played.look(50), played.traffic.in_service()), ((1, 5, 10, 10), 0));
    // After such an answer the client does not send the body, but the next request.
    played.send(60, 0, POST);
    played.send(61, 1, BUSY);
    played.send(70, 0, GET);
    played.send(80, 1, ANSWER);
    assert_eq!((played.look(90), played.traffic.in_service()), ((2, 5, 10, 10), 0));
    // This answer begins before its request is complete, and ends late.
    played.send(100, 0, POST);
    played.send(110, 1, &ANSWER[..40]);
    played.send(120, 0, b"1234567890");
    played.send(130, 1, &ANSWER[40..]);
    assert_eq!((played.look(140), played.traffic.in_service()), ((1, 5, 20, 20), 0));
}

#[test]
fn what_stays_open_holds_no_place() {
    let mut played = Played::new(4);
    played.send(0, 0, GET);
    let events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    played.send(10, 1, events);
    assert_eq!(played.traffic.in_service(), 0);
    played.send(20, 1, b"5\r\ndata:\r\n");
    assert_eq!(played.look(100), (1, 10, 10, 10));
    played.send(110, 1, b"0\r\n\r\n");
    played.send(120, 0, GET);
    played.send(130, 1, ANSWER);
    assert_eq!((played.look(140), played.traffic.in_service()), ((1, 10, 10, 10), 0));
    // After an upgrade nothing is taken for a request.
    played.send(150, 0, b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    played.send(160, 1, b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    played.send(170, 0, GET);
    played.send(180, 0, b"SOME words");
    assert_eq!((played.look(200), played.traffic.in_service()), ((1, 0, 10, 10), 0));
}

#[test]
fn a_clock_that_steps_gives_no_more_busy_time_than_there_was() {
    let mut played = Played::new(1);
    let day = 86_400_000;
    played.send(day, 0, GET);
    assert_eq!(played.look(day + 100).3, 100);
    // The clock is set back by an hour; time goes on from where it was.
    let back = day - 3_600_000;
    played.look(back);
    assert_eq!(played.look(back + 100).3, 100);
    played.send(back + 150, 1, ANSWER);
    assert_eq!(played.look(back + 200), (1, 5, 250, 50));
    // The clock is set forward by an hour: no request is under way for so long without a byte.
    played.send(back + 300, 0, GET);
    assert!(played.look(day).3 <= 30_000);
    assert_eq!(played.traffic.in_service(), 0);
}

#[test]
fn what_waits_has_a_bound_over_all_connections_and_what_is_dropped_is_counted() {
    const MOST: usize = 10_000;
    let begin = |kind: usize| {
        let mut played = Played::new(1);
        played.traffic.most_held = MOST;
        for client in 0..100 {
            played.client = 5000 + client;
            played.open(10);
            if kind == 0 {
                // The beginning of this request's answer is missing.
                played.send(20, 0, GET);
                played.miss(1, 100);
                (0..10).for_each(|_| played.send(30, 1, &[b'x'; 100]));
            } else {
                // The head of this request has no end.
                played.send(20, 0, &[b"GET / HTTP/1.1\r\nx: ", &[b'y'; 1000][..]].concat());
            }
            assert!(played.traffic.held <= MOST, "{}", played.traffic.held);
        }
        let held: usize = played.traffic.connections.values().map(|one| one.connection.held()).sum();
        assert_eq!(played.traffic.held, held);
        assert!(held > MOST / 2, "what has room stays");
        played
    };
    for kind in [0, 1] {
        let mut played = begin(kind);
        let dropped = played.traffic.seen.dropped;
        assert!((90_000..102_000).contains(&dropped), "{dropped}");
        // A connection that has room again is read as before.
        played.traffic.look(Duration::from_secs(100));
        assert_eq!(played.traffic.held, 0, "all were silent");
        played.client = 4000;
        played.open(100_000);
        played.send(100_010, 0, GET);
        played.send(100_020, 1, ANSWER);
        assert_eq!(played.traffic.look(Duration::from_millis(100_030)).requests, 1);
    }
}
