//! The corpora of hostile requests and responses through the binary: what is refused reaches no server, what is read reaches it
//! once and as it is meant, and a broken response becomes 502 or the end of the connection, never another response.

#[path = "../../crates/gateway/tests/corpus/mod.rs"]
mod corpus;

use corpus::requests::{READ, REFUSED};
use corpus::responses::RESPONSES;
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Plimsoll, serving};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// How long anything may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends bytes, and returns all that comes back until the end.
fn ask(gateway: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(gateway).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut answer = Vec::new();
    // The gateway may refuse before it has read everything.
    drop(stream.write_all(bytes));
    drop(stream.read_to_end(&mut answer));
    answer
}

fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// A server that tells what it gets. It answers each connection once, and closes it.
fn recording() -> (SocketAddr, Receiver<Vec<u8>>) {
    let (sender, receiver) = mpsc::channel();
    let address = serving(1, move |mut stream| {
        stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        let (mut got, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            got.extend_from_slice(&bytes[..count]);
        }
        drop(sender.send(got));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    });
    (address, receiver)
}

/// The payload of a body as it came to the server: its length is known, or it is in chunks.
fn payload(head: &str, mut body: &[u8]) -> Vec<u8> {
    if !head.contains("transfer-encoding: chunked") {
        return body.to_vec();
    }
    let mut payload = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").expect("a chunk's line");
        let size = std::str::from_utf8(&body[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("nothing but a size");
        if size == 0 {
            return payload;
        }
        payload.extend_from_slice(&body[end + 2..][..size]);
        body = &body[end + 4 + size..];
    }
}

#[test]
fn malformed_requests_reach_no_server_and_others_reach_it_once() {
    let (server, got) = recording();
    let gateway = Plimsoll::run(&before(server, &plain()));
    for (expected, what, bytes) in REFUSED {
        let answer = ask(gateway.address, bytes);
        assert_eq!(status(&answer), *expected, "{what}: {}", answer.escape_ascii());
        // A chunk may be wrong behind others that were sent on: then the server gets no whole request.
        if let Ok(bytes) = got.try_recv() {
            assert!(!bytes.ends_with(b"0\r\n\r\n"), "{what}: {}", bytes.escape_ascii());
        }
    }
    for (what, bytes, method, target, body) in READ {
        // Nothing follows but another request, which is the server's second one.
        let next = b"GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        assert_eq!(status(&ask(gateway.address, &[*bytes, next].concat())), 200, "{what}");
        let request = got.recv_timeout(PATIENCE).expect(what);
        let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        assert!(head.starts_with(&format!("{method} {target} HTTP/1.1\r\nhost: ")), "{what}: {head}");
        assert_eq!(payload(&head, &request[end + 4..]), *body, "{what}");
        if bytes.windows(8).any(|part| part == b"HTTP/1.1") {
            let second = got.recv_timeout(PATIENCE).expect(what);
            assert!(second.starts_with(b"GET /next HTTP/1.1\r\n"), "{what}: {}", second.escape_ascii());
        }
    }
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
}

/// A server that answers every connection with these bytes, once it has read a head, and closes it.
fn hostile(answers: Receiver<&'static [u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        let mut answer: &[u8] = b"";
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let (mut got, mut byte) = (Vec::new(), [0]);
            while !got.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                got.push(byte[0]);
            }
            // A request that is sent again gets the same answer.
            answer = answers.try_iter().last().unwrap_or(answer);
            drop(stream.write_all(answer));
        }
    });
    address
}

#[test]
fn a_hostile_response_is_never_another_one() {
    let (sender, answers) = mpsc::channel();
    let gateway = Plimsoll::run(&before(hostile(answers), &plain()));
    for (expected, what, method, bytes) in RESPONSES {
        sender.send(*bytes).expect("a server");
        let head = format!("{method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let answer = ask(gateway.address, head.as_bytes());
        let shown = answer.escape_ascii();
        assert!(!answer.windows(4).any(|part| part == b"evil"), "{what}: {shown}");
        match *expected {
            // What is wrong may be seen before anything was sent on.
            0 => assert!(status(&answer) == 502 || !is_whole(&answer), "{what}: {shown}"),
            expected => {
                let finals = answer.windows(9).filter(|part| part.starts_with(b"HTTP/1.1 ")).count();
                let interim = usize::from((100..200).contains(&status(&answer)));
                assert_eq!(finals, 1 + interim, "{what}: {shown}");
                let last =
                    answer.windows(9).rposition(|part| part.starts_with(b"HTTP/1.1 ")).expect("a status");
                assert_eq!(status(&answer[last..]), expected, "{what}: {shown}");
            }
        }
    }
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    gateway.wait_for_metric("plimsoll_in_service", 0.0);
}

/// Whether a client takes this for a whole response.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let body = &answer[end + 4..];
    match head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => body.ends_with(b"0\r\n\r\n") || !head.contains("transfer-encoding: chunked"),
    }
}
