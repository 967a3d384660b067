//! Bad input and bad upstreams, on the real binary: a refused request never reaches the upstream, a failure is answered with
//! the right status, and the gateway serves the next request as before.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{PlayedUpstream, Plimsoll, answer, exchange, free_port, get};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread;

/// A request's fault, the status that it must get, and its bytes.
const REFUSED: &[(&str, u16, &str)] = &[
    ("no HTTP at all", 400, "hello\r\n\r\n"),
    ("a space in a header's name", 400, "GET / HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n"),
    ("a space before the colon", 400, "GET / HTTP/1.1\r\nHost: a\r\nName : 1\r\n\r\n"),
    ("no host", 400, "GET / HTTP/1.1\r\n\r\n"),
    ("two hosts", 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    (
        "both lengths",
        400,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "two different lengths",
        400,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    ),
    ("a signed length", 400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc"),
    (
        "chunked twice",
        501,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    ("obsolete folding", 400, "GET / HTTP/1.1\r\nHost: a\r\nName: 1\r\n two\r\n\r\n"),
    ("a bare LF in the head", 400, "GET / HTTP/1.1\nHost: a\n\n"),
    ("a bare CR in a value", 400, "GET / HTTP/1.1\r\nHost: a\r\nName: 1\r2\r\n\r\n"),
];

#[test]
fn malformed_requests_are_refused_and_never_reach_the_upstream() {
    let origin = PlayedUpstream::new();
    let gateway = Plimsoll::run(&before(origin.address(), &plain()));
    for (what, status, request) in REFUSED {
        assert_eq!(exchange(gateway.address, request).status, *status, "{what}");
        assert!(!origin.was_asked(), "{what} reached the upstream");
    }
}

#[test]
fn a_head_or_body_over_its_limit_is_refused() {
    let origin = PlayedUpstream::new();
    let gateway = Plimsoll::run(
        &(before(origin.address(), &plain()) + "\n[limits]\nhead = \"8 KB\"\nbody = \"1 KB\"\n"),
    );
    let long = "x".repeat(20_000);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nName: {long}\r\n\r\n");
    assert_eq!(exchange(gateway.address, head).status, 431);
    let body = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n{long}");
    assert_eq!(exchange(gateway.address, body).status, 413);
    assert!(!origin.was_asked());
}

#[test]
fn an_upstream_that_is_down_gives_502_at_once() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    // A time-out would be a 504, and later than the client waits.
    let gateway = Plimsoll::run(&(before(nobody, &plain()) + "\n[timeouts]\nconnect = \"60s\"\n"));
    assert_eq!(get(gateway.address, "/").status, 502);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
}

#[test]
fn an_upstream_that_stalls_gives_504() {
    let origin = PlayedUpstream::new();
    let gateway =
        Plimsoll::run(&(before(origin.address(), &plain()) + "\n[timeouts]\nfirst_byte = \"200ms\"\n"));
    let address = gateway.address;
    // A POST: it may not be tried again.
    let client = thread::spawn(move || {
        exchange(address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    });
    let (stream, _) = origin.request();
    assert_eq!(client.join().unwrap().status, 504);
    drop(stream);
    gateway.wait_for_metric("plimsoll_in_service", 0.0);
}

#[test]
fn a_client_that_leaves_is_accounted_and_its_place_is_free_when_the_server_is() {
    a_client_leaves("");
    a_client_leaves("stops_when_abandoned = true\n");
}

/// The next request is served: once the server has answered the one whose client left, or at once if the server stops.
fn a_client_leaves(more: &str) {
    let origin = PlayedUpstream::new();
    let one = before(origin.address(), &plain())
        .replace("max_connections = 8", &format!("{more}max_connections = 1"));
    let gateway = Plimsoll::run(&one.replace("workers = 8", "workers = 1"));
    let mut leaves = TcpStream::connect(gateway.address).expect("a connection");
    leaves.write_all(b"GET /leaves HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let (held, _) = origin.request();
    drop(leaves);
    let address = gateway.address;
    let stays = thread::spawn(move || get(address, "/stays"));
    if more.is_empty() {
        answer(&held, "nobody reads this");
    }
    let (stream, head) = origin.request();
    assert!(head.starts_with("GET /stays "), "{head}");
    answer(&stream, "here");
    assert_eq!(stays.join().expect("no panic").text(), "here");
    drop(held);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    gateway.wait_for_metric("plimsoll_in_service", 0.0);
}

#[test]
fn a_slow_client_loses_its_connection_and_not_the_service() {
    let origin = PlayedUpstream::new();
    let gateway = Plimsoll::run(&(before(origin.address(), &plain()) + "\n[timeouts]\nhead = \"300ms\"\n"));
    let response = exchange(gateway.address, "GET / HTTP/1.1\r\nHost: a\r\nName: ");
    assert!([0, 408].contains(&response.status), "{response:?}");
    let address = gateway.address;
    let client = thread::spawn(move || get(address, "/"));
    answer(&origin.request().0, "served");
    assert_eq!(client.join().unwrap().text(), "served");
}
