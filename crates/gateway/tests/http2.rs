//! HTTP/2 with clients: each stream is a request of its own, and nothing that a client does with its frames is lost or counted
//! twice.

use crate::support::http2::*;
use crate::support::{self, *};
use bytes::Bytes;
use h2::Reason as Code;
use h2::client::Builder;
use http::{HeaderMap, HeaderValue};
use plimsoll_core::promises::Promises;
use plimsoll_core::request::Reason;
use plimsoll_gateway::settings::{Limits, Report, ReportMode, Timeouts};
use plimsoll_gateway::{Gateway, Settings};
use socket2::{Domain, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn settings_of(origin: &Origin) -> Settings {
    Settings { h2c: true, ..settings(&[origin.address]) }
}

fn gateway_with(settings: Settings, promises: &Promises) -> Gateway {
    Gateway::start(settings, promises).expect("a gateway")
}

fn gateway_to(origin: &Origin) -> Gateway {
    gateway_with(settings_of(origin), &promises(8))
}

fn connect(gateway: &Gateway) -> Connection {
    Connection::new(address(gateway))
}

/// The head of a call of gRPC.
fn call_fields() -> Vec<u8> {
    let mut fields = get_fields();
    // POST, and a field that no table has.
    fields[0] = 0x83;
    for text in ["content-type", "application/grpc"] {
        fields.extend(
            (text.len() == 12).then_some(0).into_iter().chain([text.len() as u8]).chain(text.bytes()),
        );
    }
    fields
}

#[test]
fn calls_whose_message_comes_with_their_head_are_no_streams() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    // Streams may hold two of the places.
    let gateway = gateway_with(settings_of(&origin), &promises(4));
    let mut peer = raw(address(&gateway));
    let fields = call_fields();
    let call = |stream| [frame(HEADERS, 4, stream, &fields), frame(DATA, 1, stream, b"message")].concat();
    peer.send((0..8).flat_map(|number| call(2 * number + 1)).collect::<Vec<u8>>()).expect("sent");
    eventually("all have come", || {
        let plant = &gateway.status().plants[0];
        plant.in_service == 4 && plant.waiting == 4
    });
    go.store(true, SeqCst);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [8, 0, 0]);
}

/// The windows for more than the first 64 KiB come with the gateway's settings, and hold once these are confirmed.
fn raw_with_windows(gateway: &Gateway) -> Peer {
    let mut peer = raw(address(gateway));
    while frame_of(&mut peer).0 != WINDOW_UPDATE {}
    peer.send(frame(SETTINGS, 1, 0, &[])).expect("sent");
    peer
}

/// A call of gRPC whose messages are as short as they like.
#[test]
fn thousands_of_small_frames_wait_with_their_stream_for_its_place() {
    const FRAMES: usize = 5000;
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::answering(move |_, body| {
        eventually("the test lets it go", || may.load(SeqCst));
        body.len().to_string()
    });
    let gateway = gateway_with(settings_of(&origin), &promises(1));
    let mut other = client(&gateway);
    other.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    eventually("no place is free", || gateway.status().plants[0].in_service == 1);
    let mut peer = raw_with_windows(&gateway);
    peer.send(frame(HEADERS, 4, 1, &call_fields())).expect("sent");
    peer.send(frame(DATA, 0, 1, &[b'x'; 40]).repeat(FRAMES)).expect("sent");
    peer.send(frame(DATA, 1, 1, &[])).expect("sent");
    peer.send(frame(HEADERS, 5, 3, &get_fields())).expect("sent");
    // What comes on a connection is looked at in its order.
    eventually("all have come", || gateway.status().plants[0].waiting == 2);
    go.store(true, SeqCst);
    let mut bodies = [const { Vec::new() }; 2];
    let mut ended = 0;
    while ended < 2 {
        let (kind, flags, stream, payload) = frame_of(&mut peer);
        assert!(kind != GOAWAY && kind != RST_STREAM, "{}", String::from_utf8_lossy(&payload));
        if kind == DATA {
            bodies[stream as usize / 2].extend(payload);
            ended += u32::from(flags & 1);
        }
    }
    assert_eq!(bodies, [(40 * FRAMES).to_string().into_bytes(), b"0".to_vec()]);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [3, 0, 0]);
}

/// Clients that are rejected have often sent more by then, above all those of gRPC.
#[test]
fn bodies_of_rejected_requests_may_go_on_for_as_long_as_the_connection_lives() {
    const ROUNDS: u32 = 100;
    const AT_ONCE: u32 = 20;
    let origin = Origin::serving(b"page");
    let limits = Limits { body_bytes: 10, ..Limits::default() };
    let gateway = gateway_with(Settings { limits, ..settings_of(&origin) }, &promises(8));
    let mut peer = raw_with_windows(&gateway);
    let fields = [&[0x83][..], &get_fields()[1..], &[0x0f, 0x0d, 2], b"11"].concat();
    let end_of = |peer: &mut Peer| loop {
        let (kind, flags, stream, payload) = frame_of(peer);
        assert_ne!(kind, GOAWAY, "{}", String::from_utf8_lossy(&payload));
        if kind == DATA && flags & 1 == 1 {
            return stream;
        }
    };
    for round in 0..ROUNDS {
        let streams = (0..AT_ONCE).map(|number| 2 * (round * AT_ONCE + number) + 1);
        let heads = streams.clone().flat_map(|stream| frame(HEADERS, 4, stream, &fields));
        peer.send(heads.collect::<Vec<u8>>()).expect("sent");
        (0..AT_ONCE).for_each(|_| assert!(end_of(&mut peer) > 2 * round * AT_ONCE));
        let more = streams.flat_map(|stream| frame(DATA, 0, stream, b"x"));
        peer.send(more.collect::<Vec<u8>>()).expect("sent");
    }
    let last = 2 * ROUNDS * AT_ONCE + 1;
    peer.send(frame(HEADERS, 5, last, &get_fields())).expect("sent");
    assert_eq!(end_of(&mut peer), last);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
}

/// An upstream that answers with the head and the body that it got, trailers included.
fn echo() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            let mut body = Vec::new();
            if field(&head, "transfer-encoding").is_some() {
                loop {
                    let size = usize::from_str_radix(peer.line().trim(), 16).expect("a size");
                    if size == 0 {
                        break;
                    }
                    body.extend(peer.exactly(size));
                    peer.exactly(2);
                }
                loop {
                    let line = peer.line();
                    if line == "\r\n" {
                        break;
                    }
                    body.extend_from_slice(format!("[{}]", line.trim()).as_bytes());
                }
            } else {
                body = peer.body(&head);
            }
            if peer.send_response(&[head.as_bytes(), b"\n", &body].concat()).is_err() {
                return;
            }
        }
    })
}

fn arrivals(gateway: &Gateway) -> u64 {
    gateway.status().classes.iter().map(|class| class.counts.arrivals).sum()
}

/// Requests that were completed, and those whose client left before or after their start.
fn completed_and_left(gateway: &Gateway) -> (u64, u64) {
    let [completed, failed, abandoned] = outcomes(gateway);
    assert_eq!(failed, 0);
    let classes = gateway.status().classes;
    let left: u64 = classes.iter().map(|class| class.counts.reasons[Reason::ClientLeft as usize]).sum();
    (completed, abandoned + left)
}

#[test]
fn each_stream_is_a_request_of_its_own() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let responses: Vec<_> = (0..12).map(|_| client.begin(request("GET", "/"), false).0).collect();
    eventually("eight are served and four wait", || {
        let plant = &gateway.status().plants[0];
        (plant.in_service, plant.waiting) == (8, 4)
    });
    assert_eq!(gateway.client_connections(), 1);
    go.store(true, SeqCst);
    for response in responses {
        assert_eq!(client.answer(response).expect("an answer").text(), "served");
    }
    settled(&gateway);
    assert_eq!((arrivals(&gateway), outcomes(&gateway)), (12, [12, 0, 0]));
}

#[test]
fn the_upstream_gets_a_clean_head() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let asked = request("GET", "/a?b=c")
        .header("cookie", "a=1")
        .header("te", "trailers")
        .header("x-plan", "gold")
        .header("x_forwarded_for", "6.6.6.6")
        .header("cookie", "b=2");
    let answer = client.ask(asked).text();
    assert!(answer.starts_with("GET /a?b=c HTTP/1.1\r\nhost: test\r\n"), "{answer}");
    assert_eq!(field(&answer, "cookie"), Some("a=1; b=2"));
    assert_eq!((field(&answer, "te"), field(&answer, "connection")), (Some("trailers"), Some("te")));
    assert_eq!(field(&answer, "x-plan"), Some("gold"));
    assert_eq!(field(&answer, "x_forwarded_for"), None);
    assert_eq!(field(&answer, "x-forwarded-for"), Some("127.0.0.1"));
    assert!(!answer.contains(":authority"), "{answer}");
}

#[test]
fn bodies_pass_to_the_upstream() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let large = vec![b'x'; 600_000];
    for (length, pieces) in [
        (Some(3), &[&b"abc"[..]][..]),
        (Some(3), &[b"a", b"", b"bc", b""]),
        (None, &[b"abc", b"def"]),
        (None, &[b""]),
        (Some(0), &[b""]),
        (None, &[&large, b"end"]),
        (Some(600_000), &[&large[..300_000], &large[300_000..]]),
    ] {
        let mut post = request("POST", "/");
        if let Some(length) = length {
            post = post.header("content-length", length);
        }
        let answer = client.post(post, pieces);
        let text = answer.text();
        let (head, body) = text.split_once("\r\n\n").expect("a head and a body");
        assert_eq!(body.as_bytes(), pieces.concat(), "{head}");
        // A body without a length gets one, since it is there before its request is sent on.
        let length = length.unwrap_or(pieces.concat().len()).to_string();
        assert_eq!(field(&format!("{head}\r\n"), "content-length"), Some(&*length));
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [7, 0, 0]);
}

#[test]
fn trailers_pass_both_ways() {
    let origin = echo();
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let (response, mut body) = client.begin(request("POST", "/"), true);
    body.send_data(Bytes::from_static(b"abc"), false).expect("sent");
    let trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("x-sum"), HeaderValue::from_static("6"))]);
    body.send_trailers(trailers).expect("sent");
    assert!(client.answer(response).expect("an answer").text().ends_with("\nabc[x-sum: 6]"));
    // A trailer that a server could take for a field of the head is none.
    let (response, mut body) = client.begin(request("POST", "/"), true);
    let trailers = HeaderMap::from_iter([(http::header::COOKIE, HeaderValue::from_static("a=1"))]);
    body.send_trailers(trailers).expect("sent");
    assert_eq!(client.answer(response).expect("an answer").status, 400);

    let origin = Origin::sending(|_| {
        "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n2;x=y\r\nde\r\n0\r\ngrpc-status: 0\r\nGrpc-Message: fine\r\n\r\n"
    });
    let gateway = gateway_to(&origin);
    let answer = connect(&gateway).get("/");
    assert_eq!((answer.text().as_str(), answer.header("transfer-encoding")), ("abcde", None));
    let trailers = answer.trailers.expect("trailers");
    assert!(trailers.len() == 2 && trailers["grpc-status"] == "0" && trailers["grpc-message"] == "fine");
}

#[test]
fn responses_of_every_framing_pass() {
    let origin = Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let answer = match path {
                "/until-close" => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc",
                "/chunks" => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
                }
                "/none" => "HTTP/1.1 204 No\r\nKeep-Alive: 5\r\nContent-Length: 5\r\n\r\n",
                "/same" => "HTTP/1.1 304 Same\r\nContent-Length: 9\r\nEtag: \"x\"\r\n\r\n",
                "/hints" => {
                    "HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
                }
                "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                _ if head.starts_with("HEAD") => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            };
            let _ = peer.send(answer);
            if path == "/until-close" {
                return;
            }
        }
    });
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    for (method, path, status, length, body) in [
        ("GET", "/", 200, Some("3"), "abc"),
        ("GET", "/until-close", 200, None, "abc"),
        ("GET", "/chunks", 200, None, "abc"),
        ("GET", "/none", 204, None, ""),
        ("GET", "/same", 304, Some("9"), ""),
        ("GET", "/hints", 200, Some("3"), "abc"),
        ("GET", "/empty", 200, Some("0"), ""),
        ("HEAD", "/", 200, Some("3"), ""),
        ("HEAD", "/none", 204, None, ""),
    ] {
        let answer = client.ask(request(method, path));
        assert_eq!((answer.status, answer.header("content-length")), (status, length), "{path}");
        assert_eq!((answer.text().as_str(), answer.header("keep-alive")), (body, None), "{path}");
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [9, 0, 0]);
}

#[test]
fn a_response_that_is_cut_short_is_reset() {
    let origin = Origin::start(|mut peer| {
        let head = peer.head().unwrap_or_default();
        let answer = match head.split(' ').nth(1) {
            Some("/length") => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        };
        let _ = peer.send(answer);
    });
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    for path in ["/length", "/chunks"] {
        let (response, _) = client.begin(request("GET", path), false);
        let error = client.answer(response).expect_err("no proper end");
        assert_eq!(reason(&error), Some(Code::INTERNAL_ERROR), "{path}");
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 2, 0]);
}

#[test]
fn a_rejected_stream_is_told_why_while_the_others_go_on() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = gateway_with(settings_of(&origin), &tight());
    let mut client = connect(&gateway);
    let (first, _) = client.begin(request("GET", "/"), false);
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    for (method, body) in [("GET", None), ("HEAD", None), ("POST", Some(&b"abc"[..]))] {
        let answer = match body {
            Some(body) => client.post(request(method, "/"), &[body]),
            None => client.ask(request(method, "/")),
        };
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        assert_eq!(answer.header("ratelimit"), Some("\"queue-full\";r=0;t=1"));
        assert_eq!(answer.header("x-plimsoll"), Some("level=0; reason=queue-full"));
        assert_eq!(answer.header("connection"), None);
        assert_eq!(answer.body.is_empty(), method == "HEAD");
    }
    go.store(true, SeqCst);
    assert_eq!(client.answer(first).expect("an answer").text(), "served");
    settled(&gateway);
    assert_eq!((arrivals(&gateway), outcomes(&gateway)), (4, [1, 0, 0]));
}

#[test]
fn a_stream_has_its_level() {
    let origin = echo();
    let rewrites = vec![vec![
        plimsoll_gateway::settings::Rewrite { prefix: "/light".to_owned(), ..Default::default() },
        plimsoll_gateway::settings::Rewrite { prefix: "/full".to_owned(), ..Default::default() },
    ]];
    let report = Report { mode: ReportMode::Always, name: "x-level".to_owned() };
    let gateway = gateway_with(Settings { rewrites, report, ..settings_of(&origin) }, &promises(8));
    let answer = connect(&gateway).get("/page");
    assert_eq!(answer.header("x-level"), Some("level=2; reason=guaranteed"));
    assert!(answer.text().starts_with("GET /full/page "), "{}", answer.text());
}

#[test]
fn what_is_wrong_with_a_stream_is_told_on_it_alone() {
    let origin = echo();
    let mut promises = promises(8);
    promises.sites[0].hosts = vec!["test".to_owned()];
    let limits = Limits { body_bytes: 10, head_bytes: 1024, ..Limits::default() };
    let gateway = gateway_with(Settings { limits, ..settings_of(&origin) }, &promises);
    let mut client = connect(&gateway);
    let elsewhere = http::Request::builder().uri("http://elsewhere/");
    for (asked, status) in [
        (request("GET", "/"), 200),
        (elsewhere, 421),
        (request("GET", "/").header("host", "other"), 400),
        (request("GET", "/a/../b"), 400),
        (request("TRACE", "/"), 405),
        (request("GET", "/").header("x", "y".repeat(2000)), 431),
        (request("GET", "/"), 200),
    ] {
        assert_eq!(client.ask(asked).status, status);
    }
    assert_eq!(client.post(request("POST", "/").header("content-length", 11), &[&[0; 11]]).status, 413);
    assert_eq!(client.post(request("POST", "/"), &[&[0; 6], &[0; 6]]).status, 413);
    let expects = request("POST", "/").header("expect", "100-continue").header("content-length", 3);
    assert_eq!(client.post(expects, &[b"abc"]).status, 200);
    assert_eq!(client.get("/").status, 200);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [4, 0, 0]);
}

/// It is no failure of the plant, as it is none where the body is read before its request arrives.
#[test]
fn a_call_whose_messages_grow_too_long_is_413() {
    let origin = Origin::start(|mut peer| drop(peer.rest()));
    let limits = Limits { body_bytes: 10, ..Limits::default() };
    let gateway = gateway_with(Settings { limits, ..settings_of(&origin) }, &promises(8));
    let mut client = connect(&gateway);
    let call = request("POST", "/").header("content-type", "application/grpc");
    let (response, mut body) = client.begin(call, true);
    body.send_data(Bytes::from_static(b"abc"), false).expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    body.send_data(Bytes::from_static(b"abcdefgh"), false).expect("sent");
    assert_eq!(client.answer(response).expect("an answer").status, 413);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
}

/// A server that stops working on a request when its connection is closed.
fn stopping(max_connections: u32) -> Promises {
    let mut promises = promises(max_connections);
    promises.plants[0].stops_when_abandoned = true;
    promises
}

#[test]
fn a_stream_that_is_reset_gives_its_place_back() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = gateway_with(settings_of(&origin), &stopping(2));
    let mut client = connect(&gateway);
    let mut streams: Vec<_> = (0..5).map(|_| client.begin(request("GET", "/"), false)).collect();
    let (upload, mut body) = client.begin(request("POST", "/").header("content-length", 10), true);
    body.send_data(Bytes::from_static(b"abc"), false).expect("sent");
    let counts = || {
        let plant = &gateway.status().plants[0];
        (plant.in_service, plant.waiting)
    };
    eventually("two are served and three wait", || counts() == (2, 3));
    // One that is served, one that waits, and one whose body has not come.
    streams[0].1.send_reset(Code::CANCEL);
    eventually("the place goes on", || counts() == (2, 2));
    streams[4].1.send_reset(Code::CANCEL);
    body.send_reset(Code::CANCEL);
    eventually("it waits no longer", || counts() == (2, 1));
    go.store(true, SeqCst);
    for (at, (response, _)) in streams.into_iter().enumerate() {
        assert_eq!(client.answer(response).is_ok(), (1..4).contains(&at), "{at}");
    }
    drop(upload);
    settled(&gateway);
    assert_eq!((arrivals(&gateway), completed_and_left(&gateway)), (5, (3, 2)));
}

#[test]
fn a_connection_that_breaks_takes_its_requests_along() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = gateway_with(settings_of(&origin), &stopping(2));
    let mut client = support::http2::raw(address(&gateway));
    let fields = support::http2::get_fields();
    for stream in 0..6 {
        client.send(support::http2::frame(1, 5, 2 * stream + 1, &fields)).expect("sent");
    }
    eventually("all have arrived", || arrivals(&gateway) == 6 && in_flight(&gateway) == 6);
    drop(client);
    settled(&gateway);
    assert_eq!(completed_and_left(&gateway), (0, 6));
    go.store(true, SeqCst);
    assert_eq!(connect(&gateway).get("/").text(), "served");
}

fn large() -> Origin {
    Origin::serving(&[b'x'; 3 << 20])
}

#[test]
fn a_client_without_a_window_holds_no_place() {
    let origin = large();
    let gateway = gateway_with(settings_of(&origin), &promises(1));
    let mut client = Connection::with(address(&gateway), Builder::new().initial_window_size(0));
    let (response, _) = client.begin(request("GET", "/"), false);
    let mut stream = client.wait(response).expect("a head").into_body();
    eventually("the place is free", || {
        gateway.status().plants[0].in_service == 0 && in_flight(&gateway) == 1
    });
    // Others are served meanwhile, and on the same connection.
    let mut other = connect(&gateway);
    assert_eq!(other.get("/").body.len(), 3 << 20);
    let more = client.wait(async { tokio::time::timeout(Duration::from_millis(200), stream.data()).await });
    assert!(more.is_err(), "no byte without a window");
    drop((client, stream));
    eventually("it has left", || in_flight(&gateway) == 0);
    assert_eq!(outcomes(&gateway), [1, 0, 1]);
}

#[test]
fn a_small_window_gets_everything() {
    let origin = large();
    let gateway = gateway_with(settings_of(&origin), &promises(1));
    let mut builder = Builder::new();
    builder.initial_window_size(4000).initial_connection_window_size(70_000);
    let mut client = Connection::with(address(&gateway), &builder);
    let streams: Vec<_> = (0..3).map(|_| client.begin(request("GET", "/"), false).0).collect();
    for response in streams {
        let mut stream = client.wait(response).expect("a head").into_body();
        assert_eq!(client.wait(read_body(&mut stream)).expect("a body").len(), 3 << 20);
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [3, 0, 0]);
}

#[test]
fn streams_that_wait_for_their_windows_wait_in_files_before_any_is_given_up() {
    let origin = Origin::serving(&[b'x'; 300_000]);
    // Four such bodies fill it.
    let limits = Limits { buffer_memory: 1 << 20, ..Limits::default() };
    let gateway = gateway_with(Settings { limits, ..settings_of(&origin) }, &promises(4));
    let mut client = Connection::with(address(&gateway), Builder::new().initial_window_size(1000));
    let streams: Vec<_> = (0..40).map(|_| client.begin(request("GET", "/"), false).0).collect();
    let streams: Vec<_> =
        streams.into_iter().map(|response| client.wait(response).expect("a head")).collect();
    eventually("no place is held", || gateway.status().plants[0].in_service == 0);
    for stream in streams {
        assert_eq!(client.wait(read_body(&mut stream.into_body())).expect("a body").len(), 300_000);
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [40, 0, 0]);
}

#[test]
fn a_client_that_never_gives_a_window_is_given_up() {
    let origin = large();
    let timeouts = Timeouts { send: Duration::from_secs(1), ..Timeouts::default() };
    let gateway = gateway_with(Settings { timeouts, ..settings_of(&origin) }, &promises(1));
    let mut client = Connection::with(address(&gateway), Builder::new().initial_window_size(0));
    let (response, _) = client.begin(request("GET", "/"), false);
    let mut stream = client.wait(response).expect("a head").into_body();
    let error = client.wait(stream.data()).expect("an end").expect_err("no byte");
    assert!(reason(&error).is_some(), "{error}");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 0, 1]);
}

#[test]
fn draining_finishes_the_streams_and_says_goodbye() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let idle = connect(&gateway);
    let (response, _) = client.begin(request("GET", "/"), false);
    eventually("it is served", || gateway.status().plants[0].in_service >= 1);
    let drained = std::thread::spawn(move || gateway.drain(PATIENCE));
    std::thread::sleep(Duration::from_millis(200));
    let refused = client.send.clone();
    go.store(true, SeqCst);
    assert_eq!(client.answer(response).expect("an answer").text(), "served");
    assert!(drained.join().expect("no panic"), "all have finished");
    assert!(client.wait(refused.ready()).is_err(), "no stream is begun after the goodbye");
    assert!(client.ended().is_ok() && idle.ended().is_ok());
}

/// A client reads its last answer and gives window for it, as every client does, while the gateway has written all of it and
/// has no more to do. To close then, with bytes unread, would reset the connection and throw away what is on its way.
#[test]
fn the_last_answer_of_a_connection_arrives_though_its_client_goes_on_sending() {
    takes_its_last_answer(60_000, Duration::ZERO);
}

/// All of a shorter answer is with the system by then. A longer one it does not take: the rest is with the gateway.
#[test]
fn the_last_answer_of_a_connection_arrives_though_its_client_pauses() {
    std::thread::scope(|scope| {
        for length in [40_000, 67_000, 68_000, 69_000] {
            scope.spawn(move || takes_its_last_answer(length, Duration::from_millis(3500)));
        }
    });
}

/// Its client knows that it is the last one, and pauses before it takes the first byte.
fn takes_its_last_answer(length: usize, pause: Duration) {
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::answering(move |_, _| {
        eventually("the test lets it go", || may.load(SeqCst));
        vec![b'x'; length]
    });
    let gateway = gateway_to(&origin);
    let mut peer = slow(address(&gateway));
    // A window for all of it: SETTINGS_INITIAL_WINDOW_SIZE is the fourth.
    let window = 1_000_000_u32.to_be_bytes();
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4], &window[..]].concat());
    let of_all = frame(WINDOW_UPDATE, 0, 0, &window);
    let head = frame(HEADERS, 5, 1, &get_fields());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    peer.send([&preface[..], &settings, &of_all, &head].concat()).expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    let drained = std::thread::spawn(move || gateway.drain(PATIENCE));
    let (mut goodbyes, mut came, mut is_whole) = (0, 0, false);
    while !is_whole {
        let (kind, flags, payload) = next_frame(&mut peer);
        match kind {
            PING if flags == 0 => peer.send(frame(PING, 1, 0, &payload)).expect("sent"),
            // The second says which streams are the last.
            GOAWAY => {
                goodbyes += 1;
                if goodbyes == 2 {
                    go.store(true, SeqCst);
                    std::thread::sleep(pause);
                }
            }
            DATA => {
                came += payload.len();
                is_whole = flags & 1 == 1;
            }
            _ => {}
        }
    }
    assert_eq!((came, goodbyes), (length, 2));
    drop(peer);
    assert!(drained.join().expect("no panic"), "all have finished");
}

/// A client whose system takes little at a time.
fn slow(address: SocketAddr) -> Peer {
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(2048).expect("so small");
    socket.connect(&address.into()).expect("the gateway accepts");
    Peer::new(socket.into())
}

/// The kind, the flags and the payload of the next frame. While bytes come the client sends a window for them, piece by piece.
fn next_frame(peer: &mut Peer) -> (u8, u8, Vec<u8>) {
    let head = peer.exactly(9);
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = Vec::new();
    while payload.len() < length {
        payload.extend(peer.exactly((length - payload.len()).min(2000)));
        if head[3] == DATA {
            std::thread::sleep(Duration::from_millis(1));
            let window = frame(WINDOW_UPDATE, 0, 0, &2000_u32.to_be_bytes());
            peer.send(window).unwrap_or_else(|error| panic!("after {} bytes: {error}", payload.len()));
        }
    }
    (head[3], head[4], payload)
}

#[test]
fn an_idle_connection_ends_with_a_goodbye() {
    let origin = Origin::serving(b"page");
    let timeouts = Timeouts { keep_alive: Duration::from_millis(300), ..Timeouts::default() };
    let gateway = gateway_with(Settings { timeouts, ..settings_of(&origin) }, &promises(8));
    let mut client = connect(&gateway);
    assert_eq!(client.get("/").text(), "page");
    assert_eq!(client.get("/").text(), "page");
    let since = Instant::now();
    eventually("it ends", || client.is_over());
    assert!(since.elapsed() < Duration::from_secs(15));
    assert!(client.ended().is_ok());
    eventually("its place is free", || gateway.client_connections() == 0);
}

#[test]
fn without_the_key_the_preface_is_no_request() {
    let origin = Origin::serving(b"page");
    let gateway = gateway(&origin);
    let mut peer = support::http2::raw(address(&gateway));
    let answer = peer.head().expect("an answer");
    assert_eq!(status(&answer), 505, "{answer}");
    // And with it, HTTP/1.1 is spoken all the same.
    let gateway = gateway_to(&origin);
    assert_eq!(client(&gateway).get("/").1, b"page");
    let mut slow = client(&gateway);
    slow.send("P").expect("sent");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(slow.ask("OST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx").1, b"page");
}

#[test]
fn a_call_of_grpc_goes_both_ways_at_once() {
    // Each message is answered before the next one is sent.
    let origin = Origin::start(|mut peer| {
        let Some(head) = peer.head() else { return };
        assert_eq!(field(&head, "transfer-encoding"), Some("chunked"));
        let begin = "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n";
        peer.send(begin).expect("sent");
        loop {
            let size = usize::from_str_radix(peer.line().trim(), 16).expect("a size");
            let message = peer.exactly(size);
            assert_eq!(peer.line(), "\r\n");
            if size == 0 {
                let _ = peer.send("0\r\ngrpc-status: 0\r\n\r\n");
                return;
            }
            peer.send([format!("{size:x}\r\n").as_bytes(), &message, b"\r\n"].concat()).expect("sent");
        }
    });
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let call = request("POST", "/service/call").header("content-type", "application/grpc");
    let (response, mut body) = client.begin(call.header("te", "trailers"), true);
    body.send_data(Bytes::from_static(b"first"), false).expect("sent");
    let mut answer = client.wait(response).expect("a head").into_body();
    let next = |answer: &mut h2::RecvStream| client.wait(answer.data()).map(|bytes| bytes.expect("bytes"));
    assert_eq!(next(&mut answer).as_deref(), Some(&b"first"[..]));
    for message in [&b"second"[..], b"third"] {
        body.send_data(Bytes::from_static(message), false).expect("sent");
        assert_eq!(next(&mut answer).as_deref(), Some(message));
    }
    body.send_data(Bytes::new(), true).expect("sent");
    assert_eq!(next(&mut answer), None);
    let trailers = client.wait(answer.trailers()).expect("no error").expect("trailers");
    assert_eq!(trailers["grpc-status"], "0");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
}

#[test]
fn events_pass_as_they_come() {
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::start(move |mut peer| {
        if peer.head().is_some() {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n";
            peer.send(head).expect("sent");
            eventually("the test has seen the first", || may.load(SeqCst));
            let _ = peer.send("data: two\n\n");
        }
    });
    let gateway = gateway_to(&origin);
    let mut client = connect(&gateway);
    let (response, _) = client.begin(request("GET", "/events"), false);
    let mut events = client.wait(response).expect("a head").into_body();
    assert_eq!(&client.wait(events.data()).expect("an event").expect("bytes")[..], b"data: one\n\n");
    go.store(true, SeqCst);
    assert_eq!(client.wait(read_body(&mut events)).expect("the rest"), b"data: two\n\n");
    settled(&gateway);
}
