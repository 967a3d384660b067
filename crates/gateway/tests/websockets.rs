//! WebSockets on streams of HTTP/2 (RFC 8441): to the server an upgrade like any, to the client a stream of bytes.

use crate::support::http2::{Answer, Connection, read, reason};
use crate::support::*;
use bytes::Bytes;
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::Request;
use plimsoll_core::promises::Tunnels;
use plimsoll_gateway::settings::{Backend, FilesSettings};
use plimsoll_gateway::{Gateway, Settings};
use std::sync::mpsc;

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Accept: anything\r\nSec-WebSocket-Protocol: chat\r\n\r\n";

/// A server that switches at `/socket`, and then returns what it gets, behind a greeting that comes with its head; at `/quiet`
/// without one. It refuses at `/no` and answers all else with a page.
fn echo() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains(" /socket ") || head.contains(" /quiet ") {
                let key = field(&head, "sec-websocket-key").expect("a key");
                assert!(key.len() == 24 && key.ends_with("=="), "{key}");
                assert_eq!(head.matches("ec-").count(), head.matches("ec-websocket-").count());
                assert!(head.starts_with("GET ") && field(&head, "upgrade") == Some("websocket"), "{head}");
                assert_eq!(field(&head, "connection"), Some("upgrade"));
                assert_eq!(field(&head, "sec-websocket-version"), Some("13"));
                let greeting = if head.contains(" /quiet ") { "" } else { "hello" };
                peer.send(format!("{SWITCH}{greeting}")).expect("sent");
                let mut stream = peer.stream.get_ref().try_clone().expect("a second handle");
                let _ = std::io::copy(&mut peer.stream, &mut stream);
                return;
            }
            if head.contains(" /no ") {
                let _ = peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
            } else if peer.send_response(b"page").is_err() {
                return;
            }
        }
    })
}

fn gateway_to(origin: &Origin) -> Gateway {
    let settings = Settings { h2c: true, ..settings(&[origin.address]) };
    Gateway::start(settings, &promises(2)).expect("a gateway")
}

fn connect(gateway: &Gateway) -> Connection {
    let client = Connection::new(address(gateway));
    eventually("the gateway says that streams may be WebSockets", || {
        client.send.is_extended_connect_protocol_enabled()
    });
    client
}

fn ask(path: &str, protocol: &'static str) -> http::request::Builder {
    let asked = Request::builder().method("CONNECT").uri(format!("http://test{path}"));
    asked.extension(Protocol::from_static(protocol)).header("sec-websocket-version", "13")
}

/// A WebSocket that is open.
struct Socket {
    send: SendStream<Bytes>,
    receive: RecvStream,
}

impl Socket {
    fn open(client: &mut Connection) -> Socket {
        Socket::open_at(client, "/socket")
    }

    fn open_at(client: &mut Connection, path: &str) -> Socket {
        let (response, send) = client.begin(ask(path, "websocket"), true);
        let response = client.wait(response).expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        for gone in ["sec-websocket-accept", "upgrade", "connection"] {
            assert!(!response.headers().contains_key(gone), "{gone}");
        }
        Socket { send, receive: response.into_body() }
    }

    /// The next bytes, as many as are wanted.
    fn exactly(&mut self, client: &Connection, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let more = client.wait(self.receive.data()).expect("more").expect("bytes");
            self.receive.flow_control().release_capacity(more.len()).expect("a window");
            bytes.extend_from_slice(&more);
        }
        assert_eq!(bytes.len(), count);
        bytes
    }

    /// It comes to a proper end, and no more bytes come before.
    fn ends(&mut self, client: &Connection) {
        while let Some(more) = client.wait(self.receive.data()) {
            assert!(more.expect("a proper end").is_empty());
        }
    }
}

fn refused(client: &mut Connection, path: &str, protocol: &'static str) -> Answer {
    let (response, _send) = client.begin(ask(path, protocol), true);
    client.wait(read(response)).expect("an answer")
}

#[test]
fn bytes_pass_both_ways_and_either_end_may_end() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let mut socket = Socket::open(&mut client);
    assert_eq!(socket.exactly(&client, 5), b"hello");
    eventually("it holds no place", || gateway.status().plants[0].in_service == 0);
    assert_eq!(gateway.status().plants[0].tunnels, 1);
    // More than a window, in pieces.
    let piece = vec![7_u8; 50_000];
    for _ in 0..20 {
        socket.send.send_data(piece.clone().into(), false).expect("sent");
        assert_eq!(socket.exactly(&client, piece.len()), piece);
    }
    // Others on the same connection go on.
    assert_eq!(client.get("/").text(), "page");
    // The client ends its side: the server sees it, and ends its own.
    socket.send.send_data(Bytes::new(), true).expect("sent");
    socket.ends(&client);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [2, 0, 0]);
    let bytes: u64 = gateway.status().classes.iter().map(|class| class.counts.bytes).sum();
    assert_eq!(bytes, 5 + 20 * 50_000 + 4);
    // A reset ends the server's connection too.
    let mut socket = Socket::open(&mut client);
    assert_eq!(socket.exactly(&client, 5), b"hello");
    socket.send.send_reset(Reason::CANCEL);
    eventually("the tunnel is gone", || gateway.status().plants[0].tunnels == 0);
    settled(&gateway);
    eventually("its connection is closed", || origin.open.load(std::sync::atomic::Ordering::SeqCst) <= 1);
}

#[test]
fn a_client_may_speak_first() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let mut socket = Socket::open_at(&mut client, "/quiet");
    socket.send.send_data("first".into(), false).expect("sent");
    assert_eq!(socket.exactly(&client, 5), b"first");
    socket.send.send_data(Bytes::new(), true).expect("sent");
    socket.ends(&client);
    settled(&gateway);
}

#[test]
fn a_server_that_ends_or_breaks_off_ends_the_stream() {
    let (sender, orders) = mpsc::channel::<()>();
    let orders = std::sync::Mutex::new(orders);
    let origin = Origin::start(move |mut peer| {
        if peer.head().is_some() {
            peer.send(SWITCH).expect("sent");
            orders.lock().expect("no panic").recv().expect("an order");
            peer.send("bye").expect("sent");
        }
    });
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let mut socket = Socket::open(&mut client);
    sender.send(()).expect("it waits");
    assert_eq!(socket.exactly(&client, 3), b"bye");
    socket.ends(&client);
    socket.send.send_data(Bytes::new(), true).expect("sent");
    settled(&gateway);
    // A gateway that drains does not wait for a tunnel.
    let mut socket = Socket::open(&mut client);
    assert!(gateway.drain(PATIENCE));
    let end = client.wait(socket.receive.data()).expect("no proper end").expect_err("no bytes");
    assert!(reason(&end).is_some() || end.is_io(), "{end:?}");
}

#[test]
fn what_does_not_switch_is_passed_on_and_is_never_taken_for_a_switch() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let no = refused(&mut client, "/no", "websocket");
    assert_eq!((no.status, no.text().as_str()), (403, "no"));
    // A page's 200 would say that the stream is a WebSocket now.
    let page = refused(&mut client, "/page", "websocket");
    assert_eq!((page.status, page.text().as_str()), (502, "there is no WebSocket at this place\n"));
    assert_eq!(refused(&mut client, "/socket", "webtransport").status, 501);
    // The client's own key would be a second one.
    let asked =
        ask("/socket", "websocket").header("sec-websocket-key", "mine").header("sec_websocket_key", "mine");
    let (response, send) = client.begin(asked, true);
    assert_eq!(client.wait(response).expect("an answer").status(), 200);
    drop(send);
    // The server's health does not suffer from a client that asks for what is not there.
    assert_eq!(client.get("/").status, 200);
    settled(&gateway);
}

#[test]
fn they_are_bounded_with_all_upgraded_connections() {
    let origin = echo();
    let mut promises = promises(2);
    promises.plants[0].tunnels = Tunnels { most: 2, keep_places: false };
    let settings = Settings { h2c: true, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let mut client = connect(&gateway);
    let open = [Socket::open(&mut client), Socket::open(&mut client)];
    assert_eq!(refused(&mut client, "/socket", "websocket").status, 503);
    assert_eq!(client.get("/").text(), "page");
    drop(open);
    eventually("they are gone", || gateway.status().plants[0].tunnels == 0);
    drop(Socket::open(&mut client));
}

#[test]
fn a_folder_has_no_websocket() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page"), "page").expect("a file");
    let files = FilesSettings { root: folder.path().into(), ..FilesSettings::default() };
    let backends = vec![Backend::Files(files)];
    let settings = Settings { h2c: true, backends, ..settings(&[]) };
    let gateway = Gateway::start(settings, &promises(2)).expect("a gateway");
    let mut client = connect(&gateway);
    assert_eq!(refused(&mut client, "/page", "websocket").status, 502);
    assert_eq!(client.get("/page").text(), "page");
}
