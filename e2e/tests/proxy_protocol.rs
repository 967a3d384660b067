//! The PROXY protocol: whose a connection is that a load balancer has made, with and without TLS, by curl and byte for byte.

use plimsoll_e2e::certificates::{certificate, curl, tls_address};
use plimsoll_e2e::{Folder, Plimsoll, answering};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n";

fn configuration(upstream: SocketAddr, from: &str, more: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n{from}\n\n\
         [timeouts]\nhead = \"500ms\"\n\n\
         [upstream.app]\naddress = \"{upstream}\"\ncapacity = {{ workers = 2 }}\n\n{more}\n"
    )
}

/// Sends pieces one after the other, and returns what comes back.
fn send(address: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(address).expect("the gateway accepts");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    for piece in pieces {
        // A gateway that has refused reads no more.
        drop(stream.write_all(piece));
        thread::sleep(Duration::from_millis(30));
    }
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

/// A server that tells each request's `X-Forwarded-For` in the answer.
fn telling() -> SocketAddr {
    answering(|head| {
        head.lines().find(|line| line.starts_with("x-forwarded-for: ")).unwrap_or("none").to_owned()
    })
}

#[test]
fn the_client_is_the_one_that_the_header_names() {
    let gateway = Plimsoll::run(&configuration(telling(), "proxy_protocol = \"127.0.0.0/8\"", ""));
    let line = b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n";
    let second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x09\xc0\0\x02\x01\xdc\x04\x01\xbb";
    let whole = [line, REQUEST].concat();
    let bytes: Vec<&[u8]> = whole.chunks(7).collect();
    for (pieces, client) in [
        (vec![whole.as_slice()], "192.0.2.7"),
        (bytes, "192.0.2.7"),
        (vec![&second[..], REQUEST], "192.0.2.9"),
        (vec![&b"PROXY UNKNOWN\r\n"[..], REQUEST], "127.0.0.1"),
        (vec![&b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"[..], REQUEST], "127.0.0.1"),
    ] {
        let answer = send(gateway.address, &pieces);
        assert!(answer.ends_with(&format!("x-forwarded-for: {client}")), "{answer}");
    }
    for wrong in [&[REQUEST][..], &[b"PROXY TCP4 192.0.2.7\r\n", REQUEST], &[b"PROXY TCP4 192"], &[]] {
        assert_eq!(send(gateway.address, wrong), "", "a connection without its header is closed");
    }
}

/// A load balancer has connected, and sends its header and a request once the process that accepted is about to go.
#[test]
fn a_header_that_comes_when_the_process_was_replaced_is_read_all_the_same() {
    let text = configuration(telling(), "proxy_protocol = \"127.0.0.0/8\"", "");
    let mut gateway = Plimsoll::run(&text.replace("head = \"500ms\"", "head = \"60s\""));
    let mut waiting: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(gateway.address).expect("the gateway accepts")).collect();
    gateway.wait_for_metric("plimsoll_connections", 4.0);
    let began = Instant::now();
    gateway.upgrade();
    let answers: Vec<String> = waiting
        .iter_mut()
        .map(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
            // A process that has closed reads no more.
            drop(stream.write_all(&[b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n", REQUEST].concat()));
            let mut answer = Vec::new();
            drop(stream.read_to_end(&mut answer));
            String::from_utf8_lossy(&answer).into_owned()
        })
        .collect();
    // Only a machine that has kept the upgrade waiting for longer than idle connections have may find them ended.
    assert!(
        answers.iter().all(|answer| answer.ends_with("x-forwarded-for: 192.0.2.7"))
            || began.elapsed() >= Duration::from_secs(5),
        "{answers:?}"
    );
}

#[test]
fn elsewhere_the_header_is_no_request_with_or_without_tls() {
    let folder = Folder::new();
    let (chain, key) = certificate(&folder, "shop", "shop.test");
    let (chain, key) = (chain.display(), key.display());
    let tls = format!("[tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{chain}\"\nkey = \"{key}\"\n");
    let from = "proxy_protocol = \"192.0.2.0/24\"";
    let mut gateway = Plimsoll::run(&configuration(telling(), from, &tls));
    let over_tls = tls_address(&mut gateway);
    let (text, binary) = (
        &b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"[..],
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\xc0\0\x02\x01\xdc\x04\x01\xbb"[..],
    );
    for (header, address) in
        [text, binary].iter().flat_map(|header| [(header, gateway.address), (header, over_tls)])
    {
        let answer = send(address, &[header, REQUEST]);
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("`proxy_protocol`"), "{answer}");
    }
    assert!(send(gateway.address, &[REQUEST]).ends_with("x-forwarded-for: 127.0.0.1"));
}

#[test]
fn it_comes_before_the_handshake() {
    let folder = Folder::new();
    let (chain, key) = certificate(&folder, "shop", "shop.test");
    let (chain, key) = (chain.display(), key.display());
    let tls = format!("[tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{chain}\"\nkey = \"{key}\"\n");
    let from = "proxy_protocol = \"127.0.0.1\"";
    let mut gateway = Plimsoll::run(&configuration(telling(), from, &tls));
    let address = tls_address(&mut gateway);
    let authority = chain.to_string();
    let (code, text) = curl(address, "shop.test", "/", &["--cacert", &authority, "--haproxy-protocol"]);
    assert!(code == 0 && text.ends_with("x-forwarded-for: 127.0.0.1"), "{code} {text}");
    assert_ne!(curl(address, "shop.test", "/", &["--cacert", &authority]).0, 0);
}
