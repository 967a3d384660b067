//! Upstreams that speak HTTP/2: gRPC from end to end, and what a server says of streams that it does not serve.

use crate::support::http2::{Connection, DATA, GOAWAY, HEADERS, SETTINGS, frame, request};
use crate::support::*;
use crate::support::{
    self,
    grpc::{GrpcServer, Reply},
};
use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use plimsoll_gateway::settings::{Backend, UpstreamSettings};
use plimsoll_gateway::{Gateway, Settings};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn speaking_http2(address: SocketAddr) -> Backend {
    Backend::Upstream(UpstreamSettings { http2: true, ..UpstreamSettings::new(vec![address.into()]) })
}

fn gateway_to(server: &GrpcServer) -> Gateway {
    let backends = vec![speaking_http2(server.address)];
    let settings = Settings { backends, h2c: true, ..settings(&[]) };
    Gateway::start(settings, &promises(4)).expect("a gateway")
}

/// A gRPC service: what it is called with decides.
fn service() -> GrpcServer {
    GrpcServer::start(|request, _| {
        let head = || Response::builder().header("content-type", "application/grpc");
        match request.uri().path() {
            "/shop.Shop/Nothing" => {
                let head = head().header("grpc-status", "12").header("grpc-message", "no such method");
                Reply::Head(head.body(()).expect("a response"))
            }
            "/page" => {
                Reply::Head(Response::builder().header("content-length", "0").body(()).expect("a response"))
            }
            _ => {
                let mut head = head();
                for name in ["te", "grpc-timeout", "x-forwarded-for", "x-plan", "content-length", "host"] {
                    if let Some(value) = request.headers().get(name) {
                        head = head.header(format!("got-{name}"), value);
                    }
                }
                let asked = format!("{} {}", request.method(), request.uri());
                let head = head.header("got-request", asked).body(()).expect("a response");
                let trailers =
                    HeaderMap::from_iter([("grpc-status".parse().expect("a name"), HeaderValue::from(0))]);
                Reply::Echo(head, trailers)
            }
        }
    })
}

fn call(path: &str) -> http::request::Builder {
    request("POST", path).header("content-type", "application/grpc").header("te", "trailers")
}

#[test]
fn a_call_passes_with_its_messages_and_trailers() {
    let server = service();
    let gateway = gateway_to(&server);
    let mut client = Connection::new(address(&gateway));
    let asked = call("/shop.Shop/Buy").header("grpc-timeout", "1S").header("x-plan", "gold");
    let (response, mut send) = client.begin(asked, true);
    // Both ways at once: the head is there before the first message, and each message comes back before the next is sent.
    let response = client.wait(response).expect("a head");
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!((header("got-te"), header("got-grpc-timeout")), (Some("trailers"), Some("1S")));
    assert_eq!((header("got-x-plan"), header("got-x-forwarded-for")), (Some("gold"), Some("127.0.0.1")));
    assert_eq!((header("got-host"), header("got-content-length")), (None, None));
    assert_eq!(header("got-request"), Some("POST http://test/shop.Shop/Buy"));
    let mut receive = response.into_body();
    for message in [&b"first"[..], &[7; 40_000], b"last"] {
        send.send_data(Bytes::copy_from_slice(message), false).expect("sent");
        assert_eq!(exactly(&client, &mut receive, message.len()), message);
    }
    let trailers = HeaderMap::from_iter([("x-checksum".parse().expect("a name"), HeaderValue::from(7))]);
    send.send_trailers(trailers).expect("sent");
    assert!(client.wait(receive.data()).is_none());
    let trailers = client.wait(receive.trailers()).expect("no error").expect("trailers");
    assert_eq!(
        (&trailers["grpc-status"], &trailers["x-checksum"]),
        (&HeaderValue::from(0), &HeaderValue::from(7))
    );
    settled(&gateway);
    // A response that is a head alone, and the connection serves one call after another.
    for _ in 0..3 {
        let (response, _) = client.begin(call("/shop.Shop/Nothing"), false);
        let response = client.wait(response).expect("a head");
        assert_eq!(response.headers()["grpc-status"], "12");
        assert!(response.body().is_end_stream(), "no data, and no trailers, come behind it");
    }
    assert_eq!(server.counts(), (1, 4));
    assert_eq!(outcomes(&gateway), [4, 0, 0]);
}

fn exactly(client: &Connection, receive: &mut RecvStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let more = client.wait(receive.data()).expect("more").expect("bytes");
        receive.flow_control().release_capacity(more.len()).expect("a window");
        bytes.extend_from_slice(&more);
    }
    bytes
}

#[test]
fn clients_of_http1_are_served_too() {
    let server = service();
    let gateway = gateway_to(&server);
    let mut client = client(&gateway);
    let body = vec![b'a'; 300_000];
    let head = format!("POST /echo?a=<b> HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send([head.as_bytes(), &body].concat()).expect("sent");
    let head = client.head().expect("an answer");
    assert_eq!((status(&head), field(&head, "transfer-encoding")), (200, Some("chunked")));
    assert_eq!(field(&head, "got-content-length"), Some("300000"));
    assert_eq!(field(&head, "got-request"), Some("POST http://test/echo?a=%3Cb%3E"));
    let mut came = Vec::new();
    loop {
        let size = usize::from_str_radix(client.line().trim(), 16).expect("a size");
        if size == 0 {
            break;
        }
        came.extend(client.exactly(size));
        assert_eq!(client.line(), "\r\n");
    }
    assert!(came == body);
    assert_eq!((client.line().as_str(), client.line().as_str()), ("grpc-status: 0\r\n", "\r\n"));
    // It was answered before it was sent, so that the connection ended. An upgrade is not there; a HEAD has no body.
    let mut client = support::client(&gateway);
    let upgrade = "GET /page HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    assert_eq!(client.ask(upgrade), (200, Vec::new()));
    let head = client.ask_head("HEAD /echo HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!((status(&head), field(&head, "content-length")), (200, None));
    assert_eq!(client.get("/page"), (200, Vec::new()));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [4, 0, 0]);
}

/// A server that serves the first request of each connection and refuses the others.
fn refusing(refusal: fn() -> Reply) -> GrpcServer {
    GrpcServer::start(move |_, number| match number {
        0 => Reply::Head(Response::new(())),
        _ => refusal(),
    })
}

#[test]
fn what_a_server_has_not_looked_at_is_sent_again_and_nothing_else_is() {
    const POST: &str = "POST / HTTP/1.1\r\nHost: test\r\n\r\n";
    let server = refusing(|| Reply::Reset(Reason::REFUSED_STREAM));
    let gateway = gateway_to(&server);
    let mut asking = client(&gateway);
    assert_eq!(asking.get("/").0, 200);
    // Not even a POST does harm: the server says that it did nothing.
    assert_eq!(asking.ask(POST).0, 200);
    assert_eq!(server.counts().0, 2, "on a new connection");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [2, 0, 0]);
    let server = refusing(|| Reply::Reset(Reason::INTERNAL_ERROR));
    let gateway = gateway_to(&server);
    let mut asking = client(&gateway);
    assert_eq!(asking.get("/").0, 200);
    assert_eq!(asking.ask(POST).0, 502, "it may have done something");
    assert_eq!(server.counts(), (1, 2));
}

#[test]
fn a_stream_that_a_goaway_does_not_count_is_sent_again_and_one_that_it_counts_is_not() {
    const END_STREAM_AND_HEAD: u8 = 5;
    for (counted, wanted, connections) in [(1, 200, 2), (3, 502, 1)] {
        let origin = Origin::start(move |mut peer| {
            peer.exactly(24);
            peer.send(frame(SETTINGS, 0, 0, &[])).expect("sent");
            let mut heads = 0;
            while let Some((kind, stream)) = next_frame(&mut peer) {
                if kind != HEADERS {
                    continue;
                }
                heads += 1;
                let answer = if heads == 1 {
                    // `:status: 200`, by the static table.
                    frame(HEADERS, END_STREAM_AND_HEAD, stream, &[0x88])
                } else {
                    frame(GOAWAY, 0, 0, &[[0, 0, 0, counted], [0; 4]].concat())
                };
                peer.send(answer).expect("sent");
                if heads > 1 {
                    return;
                }
            }
        });
        let backends = vec![speaking_http2(origin.address)];
        let settings = Settings { backends, ..settings(&[]) };
        let gateway = Gateway::start(settings, &promises(4)).expect("a gateway");
        let mut client = client(&gateway);
        assert_eq!(client.get("/").0, 200);
        assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: test\r\n\r\n").0, wanted);
        assert_eq!(origin.accepted.load(SeqCst), connections);
    }
}

#[test]
fn thousands_of_small_frames_come_at_once() {
    const FRAMES: usize = 5000;
    let origin = Origin::start(|mut peer| {
        peer.exactly(24);
        peer.send(frame(SETTINGS, 0, 0, &[])).expect("sent");
        // Its windows hold once its settings are confirmed.
        peer.send(frame(SETTINGS, 1, 0, &[])).expect("sent");
        while let Some((kind, stream)) = next_frame(&mut peer) {
            if kind == HEADERS {
                let data = frame(DATA, 0, stream, &[b'x'; 40]).repeat(FRAMES);
                let all = [frame(HEADERS, 4, stream, &[0x88]), data, frame(DATA, 1, stream, &[])].concat();
                peer.send(all).expect("sent");
            }
        }
    });
    let backends = vec![speaking_http2(origin.address)];
    let gateway = Gateway::start(Settings { backends, ..settings(&[]) }, &promises(4)).expect("a gateway");
    let (status, body) = client(&gateway).get("/");
    assert_eq!((status, body.len()), (200, 40 * FRAMES));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
}

/// The kind and the stream of the next frame, whose payload is skipped.
fn next_frame(peer: &mut Peer) -> Option<(u8, u32)> {
    let mut head = [0; 9];
    peer.stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    peer.exactly(length as usize);
    Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
}

#[test]
fn a_server_that_refuses_everything_is_asked_once() {
    let server = GrpcServer::start(|_, _| Reply::Reset(Reason::REFUSED_STREAM));
    let gateway = gateway_to(&server);
    assert_eq!(client(&gateway).get("/").0, 502);
    assert_eq!(server.counts(), (1, 1));
    settled(&gateway);
}

#[test]
fn a_connection_that_its_server_ends_is_not_used_again() {
    let server = GrpcServer::start(|_, _| Reply::Last(Response::new(())));
    let gateway = gateway_to(&server);
    let mut client = client(&gateway);
    for _ in 0..3 {
        // A POST would not be sent twice.
        assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: test\r\n\r\n").0, 200);
    }
    settled(&gateway);
    assert_eq!((server.counts().1, outcomes(&gateway)), (3, [3, 0, 0]));
}

#[test]
fn a_call_that_breaks_off_ends_so_and_a_client_that_leaves_resets_it() {
    static BREAKS: AtomicBool = AtomicBool::new(false);
    let server = GrpcServer::start(|request: &Request<RecvStream>, _| {
        if request.uri().path() == "/page" {
            return Reply::Head(Response::new(()));
        }
        BREAKS.store(true, SeqCst);
        Reply::Echo(Response::new(()), HeaderMap::new())
    });
    let gateway = gateway_to(&server);
    let mut client = Connection::new(address(&gateway));
    let (response, mut send) = client.begin(call("/echo"), true);
    let response = client.wait(response).expect("a head");
    assert!(BREAKS.load(SeqCst));
    send.send_reset(Reason::CANCEL);
    drop(response);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 0, 1]);
    assert_eq!(client.get("/page").status, 200);
}

#[test]
fn more_requests_than_places_wait_and_all_are_served() {
    let server = service();
    let gateway = gateway_to(&server);
    let mut client = Connection::new(address(&gateway));
    let calls: Vec<_> = (0..40).map(|_| client.begin(request("POST", "/echo"), true)).collect();
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(response, mut send)| {
            send.send_data(Bytes::from_static(b"message"), true).expect("sent");
            response
        })
        .collect();
    for response in calls {
        assert_eq!(client.answer(response).expect("an answer").body, b"message");
    }
    assert!(server.counts().0 <= 4, "a connection is a place");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [40, 0, 0]);
}

/// The body of a request that HTTP/2 does not have is no request of its own, and is not put before another client's.
#[test]
fn the_body_of_a_request_that_http2_does_not_have_goes_nowhere() {
    let server = service();
    let gateway = {
        let backends = vec![speaking_http2(server.address)];
        Gateway::start(Settings { backends, ..settings(&[]) }, &promises(1)).expect("a gateway")
    };
    let impossible = [
        ("/".to_owned(), "a%41"),
        ("/".to_owned(), "[:::::::::]"),
        (format!("/{}", "\"".repeat(21_900)), "test"),
    ];
    let hidden =
        ["GET /hidden HTTP/1.1\r\nhost: test\r\nx-plan: gold\r\n\r\n", "GET /hidden HTTP/1.1\r\nx: "];
    for (target, host) in &impossible {
        for hidden in hidden {
            let length = hidden.len();
            let text =
                format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{hidden}");
            let mut attacker = client(&gateway);
            attacker.send(text.as_bytes()).expect("sent");
            let status = attacker.head().map(|head| status(&head)).expect("an answer");
            assert_eq!((status, server.counts().1), (400, 0), "{host}");
        }
    }
    let before = server.counts().1;
    assert_eq!((client(&gateway).get("/page").0, server.counts().1), (200, before + 1));
    settled(&gateway);
}

/// The refusal says what is wrong with the configuration, whether the server answers in its own way or says nothing.
#[test]
fn a_server_without_http2_is_told_apart() {
    for answer in ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", ""] {
        let server = Origin::start(move |mut peer| drop(peer.send(answer)));
        let backends = vec![speaking_http2(server.address)];
        let gateway = Gateway::start(Settings { backends, ..settings(&[]) }, &promises(4));
        let (status, body) = client(&gateway.expect("a gateway")).get("/");
        let body = String::from_utf8(body).expect("text");
        assert!(status == 502 && body.contains("`http2` must go"), "{status} {body}");
    }
}
