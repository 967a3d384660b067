//! The listener on a real socket, asked by blocking clients.

use super::*;
use crate::admin::listener::serve;
use crate::admin::operator::Desk;
use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::task::Poll;

/// Serves the sample while `clients` run on a thread of their own.
fn with_listener(clients: impl FnOnce(SocketAddr) + Send + 'static) {
    serving(SampleGateway::default(), clients);
}

fn serving(gateway: SampleGateway, clients: impl FnOnce(SocketAddr) + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = pin!(serve(
            listener,
            Desk::new(gateway, OwnerCell::default(), vec![plimsoll_core::request::Pattern::new("*.inside")])
        ));
        let mut clients = pin!(tokio::task::spawn_blocking(move || clients(address)));
        poll_fn(|context| {
            let done = clients.as_mut().poll(context);
            if done.is_pending() {
                let Poll::Pending = server.as_mut().poll(context);
            }
            done
        })
        .await
        .unwrap();
    });
}

pub(super) fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn pages_over_the_wire() {
    with_listener(|address| {
        // This client says nothing, and the others do not wait for it.
        let _silent = TcpStream::connect(address).unwrap();
        let metrics = ask(address, "GET /metrics HTTP/1.1\r\nhost: localhost:9090\r\n\r\n");
        let (head, body) = metrics.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
        assert_eq!(body, render_metrics(&sample()));
        let answer = ask(address, "HEAD /status HTTP/1.1\r\n\r\n");
        assert!(answer.ends_with("\r\n\r\n") && !answer.contains("content-length: 0"), "{answer}");
        for (request, line) in [
            ("GET /healthz HTTP/1.0\r\n\r\n".to_owned(), "HTTP/1.0 200 OK"),
            (
                "POST /status HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc".to_owned(),
                "HTTP/1.1 405 Method Not Allowed",
            ),
            ("GET /reload HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 405 Method Not Allowed\r\n"),
            ("POST /reload HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 404 Not Found\r\n"),
            ("POST /reload HTTP/1.1\r\nOrigin: http://a\r\n\r\n".to_owned(), "HTTP/1.1 403 Forbidden\r\n"),
            (
                "POST /reload HTTP/1.1\r\nHost: [::1]\r\nSec-Fetch-Site: cross-site\r\n\r\n".to_owned(),
                "HTTP/1.1 403 Forbidden\r\n",
            ),
            (
                "POST /reload HTTP/1.1\r\nHost: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\n\
                 Sec-Fetch-Site: same-origin\r\n\r\n"
                    .to_owned(),
                "HTTP/1.1 404 Not Found\r\n",
            ),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), "HTTP/1.1 421 Misdirected"),
            ("GET /metrics HTTP/1.1\r\nHost: inside\r\n\r\n".to_owned(), "HTTP/1.1 421 Misdirected"),
            ("GET /metrics HTTP/1.1\r\nHost: node1.Inside:9090\r\n\r\n".to_owned(), "HTTP/1.1 200 OK"),
            ("GET /nothing HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 404 Not Found"),
            ("\u{1}\u{2}\r\n\r\n".to_owned(), "HTTP/1.1 400 Bad Request"),
            (format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "a".repeat(20_000)), "HTTP/1.1 431 "),
            (format!("GET / HTTP/1.1\r\n{}\r\n", "a: a\r\n".repeat(65)), "HTTP/1.1 431 "),
        ] {
            let answer = ask(address, &request);
            assert!(answer.starts_with(line), "{request}: {answer}");
        }
    });
}

#[test]
fn whoever_shows_no_token_learns_only_whether_the_loops_run() {
    let token = "a-token-of-thirty-two-characters-1";
    let tokens = AdminTokens::read(token).unwrap();
    serving(SampleGateway { tokens }, move |address| {
        let none = "";
        let wrong = "Authorization: Bearer a-token-of-thirty-two-characters-2\r\n";
        let right = &format!("authorization: bearer {token}\r\n");
        let foreign = &format!("{right}Sec-Fetch-Site: cross-site\r\n");
        for (line, fields, status) in [
            ("GET /healthz", none, "200"),
            ("POST /healthz", none, "405"),
            ("GET /", none, "401"),
            ("GET /metrics", wrong, "401"),
            ("GET /live", none, "401"),
            ("GET /nothing", none, "401"),
            ("POST /reload", none, "401"),
            ("POST /reload", wrong, "401"),
            ("GET /metrics", right, "200"),
            ("GET /", right, "200"),
            // A browser that knows the token sends it for any page that makes it ask here.
            ("POST /reload", foreign, "403"),
            ("POST /reload", right, "404"),
        ] {
            let answer = ask(address, &format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n"));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {fields}: {answer}");
            let asks = answer.contains("\r\nwww-authenticate: Basic realm=");
            assert_eq!(asks, status == "401", "{answer}");
        }
        let (_stream, said) = watch(address, right, "\"version\":");
        assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    });
}

#[test]
fn a_probe_takes_the_place_of_the_connection_that_was_silent_for_longest() {
    with_listener(|address| {
        let mut silent: Vec<_> = (0..32).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(ask(address, "GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"));
        let closed = |stream: &mut TcpStream, patience| {
            stream.set_read_timeout(Some(patience)).unwrap();
            matches!(stream.read(&mut [0; 1]), Ok(0))
        };
        assert!(closed(&mut silent[0], Duration::from_secs(4)), "the oldest, long before its own time-out");
        assert!(!closed(&mut silent[1], Duration::from_millis(20)), "the others stay");
    });
}

/// The beginning of a stream, until `end` was sent.
pub(super) fn watch(address: SocketAddr, fields: &str, end: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n").unwrap();
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(end) {
        let mut more = [0; 4096];
        match stream.read(&mut more).unwrap() {
            0 => break,
            count => said.extend_from_slice(&more[..count]),
        }
    }
    (stream, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_stream_begins_with_what_happened_and_the_status_and_there_are_not_too_many() {
    with_listener(|address| {
        let (_first, said) = watch(address, "", "\"classes\":");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"), "{said}");
        assert!(
            said.contains("\nevent: journal\ndata: {\"started_unix_seconds\":0.0,\"events\":[]}\n\n"),
            "{said}"
        );
        assert!(said.contains("\ndata: {\"version\":\""), "{said}");
        let _others: Vec<_> = (1..8).map(|_| watch(address, "", "\"version\":").0).collect();
        let (_, full) = watch(address, "", "Close another page.");
        assert!(full.starts_with("HTTP/1.1 503 "), "{full}");
        let (_, foreign) = watch(address, "Sec-Fetch-Site: cross-site\r\n", "another site");
        assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
        assert!(ask(address, "GET /healthz HTTP/1.1\r\n\r\n").ends_with("ok\n"), "a probe has its place");
    });
}

#[test]
fn a_browser_gets_the_page_and_other_programs_the_list() {
    with_listener(|address| {
        let page = ask(address, "GET / HTTP/1.1\r\nAccept: text/html,*/*;q=0.8\r\n\r\n");
        assert!(
            page.contains("\r\ncontent-security-policy: default-src 'none'; script-src 'sha256-"),
            "{page}"
        );
        assert!(page.contains("<!doctype html>"));
        assert!(ask(address, "GET / HTTP/1.1\r\nAccept: */*\r\n\r\n").ends_with(&index(ShellKind::Gateway)));
        let events = ask(address, "GET /events HTTP/1.1\r\n\r\n");
        assert!(events.contains("\"events\": []"), "{events}");
    });
}
