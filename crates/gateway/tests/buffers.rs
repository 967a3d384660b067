//! Bodies of slow clients: they wait in memory or in a file, whole and in order, and their requests hold no place meanwhile.

use crate::support::http2::{DATA, HEADERS, WINDOW_UPDATE, frame, get_fields, raw};
use crate::support::*;
use plimsoll_core::promises::Tunnels;
use plimsoll_core::request::{Pattern, Reason};
use plimsoll_gateway::{Gateway, Settings};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// More than the kernel takes for a connection, so that the rest is the gateway's to keep.
const LONG: usize = 20_000_000;

/// Bytes whose order shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Answers `POST` with the body that came, and `GET` with a long body in the form that the path names.
fn origin() -> Origin {
    let long = pattern(LONG);
    Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            let body = peer.body(&head);
            let sent = match head.split(' ').nth(1).unwrap_or_default() {
                "/echo" => peer.send_response(&body),
                "/page" => peer.send_response(b"page"),
                "/length" => peer.send_response(&long),
                "/chunked" => {
                    let _ = peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                    for piece in long.chunks(1 << 20) {
                        let _ = peer.send(format!("{:x}\r\n", piece.len()));
                        let _ = peer.send(piece);
                        let _ = peer.send("\r\n");
                    }
                    peer.send("0\r\n\r\n")
                }
                _ => {
                    let _ = peer.send("HTTP/1.0 200 OK\r\n\r\n");
                    let _ = peer.send(&long);
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    })
}

fn chunks(body: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in body.chunks(100_000) {
        all.extend(format!("{:x}\r\n", piece.len()).bytes());
        all.extend(piece);
        all.extend(b"\r\n");
    }
    all.extend(b"0\r\n\r\n");
    all
}

/// A body in each framing, in memory and in a file, is put to the server only once it is whole; the next request on the
/// connection is found behind it.
#[test]
fn a_body_is_read_before_its_request_arrives() {
    let origin = origin();
    let gateway = Gateway::start(settings(&[origin.address]), &promises(1)).expect("a gateway");
    for length in [1, 3000, 60_000, 71_680, 500_000, 3_000_000] {
        let body = pattern(length);
        let by_length = format!("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
        let by_chunks = "POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for (head, framed) in [(by_length, body.clone()), (by_chunks, chunks(&body))] {
            let mut slow = client(&gateway);
            let (most, last) = framed.split_at(framed.len() - 1);
            slow.send([head.as_bytes(), most].concat()).expect("sent");
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(gateway.status().plants[0].in_service, 0, "{length} bytes");
            assert_eq!(client(&gateway).get("/page"), (200, b"page".to_vec()), "the only place is free");
            let next = b"GET /page HTTP/1.1\r\nHost: t\r\n\r\n";
            slow.send([last, next].concat()).expect("sent");
            assert!(slow.answer() == (200, body.clone()), "{length} bytes, {head:?}");
            assert_eq!(slow.answer(), (200, b"page".to_vec()));
        }
    }
    settled(&gateway);
}

/// Some servers read no chunks. A body that was read whole has a length; one with trailers keeps its form.
#[test]
fn a_body_in_chunks_that_is_whole_goes_on_with_its_length() {
    let origin = Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            let framing = field(&head, "content-length").or(field(&head, "transfer-encoding"));
            let mut answer = framing.unwrap_or("none").to_owned().into_bytes();
            answer.push(b' ');
            answer.extend(peer.body(&head));
            let _ = peer.send_response(&answer);
        }
    });
    let mut settings = settings(&[origin.address]);
    settings.limits.request_buffer = 5_000_000;
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut client = client(&gateway);
    let head = b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    for length in [0, 1, 5, 16_000, 60_000, 71_680, 500_000, 3_000_000] {
        let body = pattern(length);
        for size in [1000, 100_000] {
            let mut framed = Vec::new();
            for piece in body.chunks(size) {
                framed.extend([format!("{:X}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            }
            framed.extend(b"0\r\n\r\n");
            let next = b"GET / HTTP/1.1\r\nHost: t\r\n\r\n";
            client.send([&head[..], &framed, next].concat()).expect("sent");
            let expected = [format!("{length} ").as_bytes(), &body].concat();
            assert!(client.answer() == (200, expected), "{length} bytes in chunks of {size}");
            assert_eq!(client.answer(), (200, b"none ".to_vec()), "{length} bytes in chunks of {size}");
        }
    }
    settled(&gateway);
}

/// The place of a slow reader is free at the response's last byte from the server, in each framing.
#[test]
fn a_slow_reader_gets_all_of_it_and_holds_no_place() {
    let origin = origin();
    let gateway = Gateway::start(settings(&[origin.address]), &promises(1)).expect("a gateway");
    let long = pattern(LONG);
    for path in ["/length", "/chunked", "/close"] {
        let before = delivered(&gateway);
        let mut slow = client(&gateway);
        slow.send(format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n")).expect("sent");
        eventually("the place is free", || {
            gateway.status().plants[0].in_service == 0 && in_flight(&gateway) == 1
        });
        assert_eq!(client(&gateway).get("/page"), (200, b"page".to_vec()));
        assert!(slow.answer() == (200, long.clone()), "{path}");
        settled(&gateway);
        // A chunk that the server framed is counted with its frame, one that the gateway framed without.
        if path != "/chunked" {
            eventually("all bytes are counted", || delivered(&gateway) == before + LONG as u64 + 4);
        }
    }
}

fn delivered(gateway: &Gateway) -> u64 {
    gateway.status().classes.iter().map(|class| class.counts.bytes).sum()
}

/// Without room in files the response streams, at the pace of its client.
#[test]
fn what_finds_no_room_streams() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_files = 100_000;
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut reader = client(&gateway);
    reader.send("GET /length HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(gateway.status().plants[0].in_service, 1, "the server waits for the client");
    assert!(reader.answer() == (200, pattern(LONG)));
    let body = pattern(3_000_000);
    let head = format!("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut writer = client(&gateway);
    writer.send([head.as_bytes(), &body[..1_000_000]].concat()).expect("sent");
    eventually("it is in service", || gateway.status().plants[0].in_service == 1);
    writer.send(&body[1_000_000..]).expect("sent");
    assert!(writer.answer() == (200, body));
    settled(&gateway);
}

/// Its beginning lies in a file, and its end has come by the time that the file is sent.
#[test]
fn a_body_that_has_ended_streams_no_longer_wherever_it_began() {
    let [go, answer, came] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
    let (may_go, may_answer, has_come) = (go.clone(), answer.clone(), came.clone());
    let origin = Origin::answering(move |head, body| {
        let may = if head.starts_with("GET") { &may_go } else { &may_answer };
        has_come.fetch_or(!body.is_empty(), SeqCst);
        eventually("the test lets it go", || may.load(SeqCst));
        body.len().to_string()
    });
    let mut settings = settings(&[origin.address]);
    settings.limits.request_buffer = 80_000;
    // A stream may hold one of two places.
    let gateway = Gateway::start(settings, &promises(2)).expect("a gateway");
    let counts = || (gateway.status().plants[0].in_service, gateway.status().plants[0].waiting);
    let mut others = [client(&gateway), client(&gateway)];
    others.iter_mut().for_each(|other| other.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent"));
    eventually("no place is free", || counts() == (2, 0));
    let body = pattern(90_000);
    let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut first = client(&gateway);
    first.send([head.as_bytes(), &body[..80_000]].concat()).expect("sent");
    eventually("it waits for its place", || counts() == (2, 1));
    first.send(&body[80_000..]).expect("sent");
    go.store(true, SeqCst);
    others.iter_mut().for_each(|other| assert_eq!(other.answer().0, 200));
    eventually("the server has all of it", || came.load(SeqCst) && counts() == (1, 0));
    // It goes on while its client sends.
    let mut second = client(&gateway);
    second.send([head.as_bytes(), &body[..85_000]].concat()).expect("sent");
    eventually("it is served, too", || counts() == (2, 0));
    second.send(&body[85_000..]).expect("sent");
    answer.store(true, SeqCst);
    for mut client in [first, second] {
        assert_eq!(client.answer(), (200, b"90000".to_vec()));
    }
    settled(&gateway);
}

/// A long response whose reader is slow all along takes no more room than what is unread, and leaves the rest to others.
#[test]
fn what_was_read_of_a_file_makes_room_for_what_comes() {
    let origin = origin();
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut settings = Settings { h2c: true, admin, ..settings(&[origin.address]) };
    (settings.limits.buffer_files, settings.limits.response_buffer) = (4 << 20, 1 << 20);
    let gateway = Gateway::start(settings, &promises(2)).expect("a gateway");
    let in_files = || metric(&gateway, "plimsoll_buffer_bytes{in=\"files\"}") as u64;
    // A client of HTTP/2 takes as much at a time as it gives a window for.
    let mut reader = raw(address(&gateway));
    let path = [&get_fields()[..2], &[4, 7], b"/length", &get_fields()[3..]].concat();
    reader.send(frame(HEADERS, 5, 1, &path)).expect("sent");
    eventually("the file is full", || in_files() >= 1 << 20);
    let (mut body, mut looked) = (Vec::new(), 0);
    while body.len() < 16 << 20 {
        let head = reader.exactly(9);
        let payload = reader.exactly(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize);
        if head[3] != DATA {
            continue;
        }
        let window = (payload.len() as u32).to_be_bytes();
        reader
            .send([frame(WINDOW_UPDATE, 0, 0, &window), frame(WINDOW_UPDATE, 0, 1, &window)].concat())
            .expect("sent");
        body.extend(payload);
        if body.len() - looked > 1 << 18 {
            looked = body.len();
            let bytes = in_files();
            assert!(bytes <= 2 << 20, "{bytes} bytes are in files after {looked}");
        }
    }
    assert!(body == pattern(LONG)[..body.len()]);
    let (before, upload) = (in_files(), pattern(1_300_000));
    let mut other = client(&gateway);
    let head = format!("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", upload.len());
    other.send([head.as_bytes(), &upload[..1_200_000]].concat()).expect("sent");
    eventually("it is stored", || in_files() > before + 1_000_000);
    assert_eq!(gateway.status().plants[0].in_service, 1, "it holds no place before it is there");
    other.send(&upload[1_200_000..]).expect("sent");
    assert!(other.answer() == (200, upload));
}

/// Little memory sends bodies to files early, and changes nothing else.
#[test]
fn little_memory_is_enough() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_memory = 1;
    let gateway = Gateway::start(settings, &promises(2)).expect("a gateway");
    for length in [10, 10_000, 60_000, 500_000] {
        let body = pattern(length);
        let mut client = client(&gateway);
        client
            .send(format!("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n"))
            .expect("sent");
        for piece in body.chunks(length / 3) {
            client.send(piece).expect("sent");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(client.answer() == (200, body), "{length} bytes");
    }
    assert!(client(&gateway).get("/length") == (200, pattern(LONG)));
    settled(&gateway);
}

/// A request that is turned away after its body was read leaves the connection for the next one.
#[test]
fn a_rejected_request_with_a_stored_body_keeps_the_connection() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let mut promises = promises(1);
    promises.sites[0].guarantee = None;
    promises.plants[0].queue.max_waiting = 0;
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    let mut second = client(&gateway);
    for length in [10, 300_000] {
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(second.ask([head.as_bytes(), &pattern(length)].concat()).0, 503, "{length} bytes");
    }
    go.store(true, SeqCst);
    assert_eq!(first.answer().1, b"served");
    assert_eq!(second.get("/").0, 200);
    settled(&gateway);
}

/// A client that waits for `100 Continue` gets it from the gateway; the server is not asked for it again.
#[test]
fn an_expectation_is_met_by_the_gateway() {
    let origin = Origin::start(|mut peer| {
        let head = peer.head().expect("a request");
        let body = peer.body(&head);
        let _ = peer.send_response(if field(&head, "expect").is_some() { b"expects" } else { &body });
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    let head = "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    assert_eq!(status(&client.ask_head(head)), 100);
    assert_eq!(client.ask("body"), (200, b"body".to_vec()));
    settled(&gateway);
}

/// A client that leaves or stalls before its body is whole was never a request.
#[test]
fn a_body_that_does_not_come_is_no_request() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.timeouts.body_idle = Duration::from_millis(300);
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let head = "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 400000\r\n\r\n";
    let mut stalls = client(&gateway);
    stalls.send([head.as_bytes(), &pattern(200_000)].concat()).expect("sent");
    assert_eq!(stalls.answer().0, 408);
    let mut leaves = client(&gateway);
    leaves.send([head.as_bytes(), &pattern(200_000)].concat()).expect("sent");
    drop(leaves);
    stalls.rest();
    drop(stalls);
    eventually("both are gone", || gateway.client_connections() == 0);
    assert_eq!(origin.accepted.load(SeqCst), 0);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.arrivals).sum::<u64>(), 0);
}

/// A server that says how many of its connections are in a request, and ends each when the test lets it.
fn holding(go: &Arc<AtomicBool>, head: &'static str) -> Origin {
    let may = go.clone();
    Origin::start(move |mut peer| {
        while let Some(request) = peer.head() {
            if request.contains("/events") {
                let _ = peer.send(head);
                eventually("the test lets it go", || may.load(SeqCst));
                let _ = peer.send("0\r\n\r\n");
            } else {
                peer.rest_of(&request);
                let _ = peer.send_response(b"page");
            }
        }
    })
}

/// Bodies that stream hold half of the places, and everybody else has the other half.
#[test]
fn streams_leave_room_for_others() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = holding(&go, "");
    let mut settings = settings(&[origin.address]);
    settings.stream_paths.push(Pattern::new("/upload"));
    let gateway = Gateway::start(settings, &promises(4)).expect("a gateway");
    let upload = "POST /upload HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbo";
    let mut two = [client(&gateway), client(&gateway)];
    two.iter_mut().for_each(|one| one.send(upload).expect("sent"));
    eventually("both are served", || gateway.status().plants[0].in_service == 2);
    assert_eq!(client(&gateway).ask(upload).0, 503, "a third one");
    let refused = Reason::TooManyStreams as usize;
    let counts: Vec<_> = gateway.status().classes.into_iter().map(|class| class.counts).collect();
    let refusals: u64 = counts.iter().map(|counts| counts.reasons[refused]).sum();
    let reasons: u64 = counts.iter().flat_map(|counts| counts.reasons).sum();
    assert_eq!((refusals, reasons), (1, 3), "the engine decided, and each has one reason");
    assert_eq!(client(&gateway).get("/page").0, 200, "anybody else");
    assert_eq!(client(&gateway).ask(format!("{upload}dy")).0, 200, "a body that is there does not stream");
    two.iter_mut().for_each(|one| one.send("dy").expect("sent"));
    two.iter_mut().for_each(|one| assert_eq!(one.answer().0, 200));
    let mut next = client(&gateway);
    next.send(upload).expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    next.send("dy").expect("sent");
    assert_eq!(next.answer().0, 200);
    settled(&gateway);
}

/// A stream of events holds no place: with one place another client is served beside it. The client of one stream more than
/// there may be gets an answer in place of events. Where tunnels keep their places, streams hold half of them.
#[test]
fn events_leave_room_for_others() {
    events_leave_room(1, Tunnels { most: 1, keep_places: false });
    events_leave_room(2, Tunnels { most: 8, keep_places: true });
}

fn events_leave_room(places: u32, tunnels: Tunnels) {
    let go = Arc::new(AtomicBool::new(false));
    let origin = holding(
        &go,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n",
    );
    let mut promises = promises(places);
    promises.plants[0].tunnels = tunnels;
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let mut first = client(&gateway);
    let head = first.ask_head("GET /events HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(status(&head), 200);
    let in_service = u32::from(tunnels.keep_places);
    eventually("its place is given back or kept", || gateway.status().plants[0].in_service == in_service);
    assert_eq!(first.exactly(10), b"5\r\ndata:\r\n", "an event comes at once");
    assert_eq!(client(&gateway).get("/events").0, 503);
    assert_eq!(client(&gateway).get("/page").0, 200);
    go.store(true, SeqCst);
    assert_eq!(first.exactly(5), b"0\r\n\r\n");
    settled(&gateway);
    assert_eq!(client(&gateway).get("/events").0, 200);
}

/// A body that finds no room holds a place while it streams, and loses it below the floor, though 1 KiB a second is enough
/// for a body that nobody waits for.
/// The server only waits for its client, though it has begun to answer: that is no service.
#[test]
fn a_client_that_pauses_after_the_answer_has_begun_is_no_service() {
    let origin = Origin::start(|mut peer| {
        let head = peer.head().expect("a request");
        let _ = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        peer.body(&head);
        let _ = peer.send("done");
    });
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let settings = Settings { admin, ..streaming(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut client = client(&gateway);
    let head = client.ask_head("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf");
    assert_eq!(status(&head), 200);
    let pause = Duration::from_secs(3);
    std::thread::sleep(pause);
    client.send("more").expect("sent");
    assert_eq!(client.body(&head), b"done");
    settled(&gateway);
    let of = |what: &str| {
        metric(&gateway, &format!("plimsoll_service_seconds_{what}{{site=\"site\",class=\"default\"}}"))
    };
    eventually("it is counted", || of("count") == 1.0);
    assert!(of("sum") < pause.as_secs_f64() / 2.0, "{} s of service", of("sum"));
}

#[test]
fn a_body_that_streams_below_the_floor_loses_its_place() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_files = 1;
    settings.timeouts.body_idle = Duration::from_secs(1);
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut slow = client(&gateway);
    slow.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n").expect("sent");
    slow.send(pattern(100_000)).expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    drip(&slow, &gateway, |gateway| gateway.status().plants[0].in_service == 0);
    assert_eq!(status(&slow.head().expect("an answer")), 408);
    settled(&gateway);
}

/// Sends 4 KiB a second until the gateway has ended the connection's request.
fn drip(peer: &Peer, gateway: &Gateway, is_over: impl Fn(&Gateway) -> bool) {
    eventually("it is cut", || {
        let _ = peer.stream.get_ref().write_all(&[b'x'; 205]);
        std::thread::sleep(Duration::from_millis(50));
        is_over(gateway)
    });
}

/// Room in files is for those who use it: this reader would have half a minute where there is room enough.
#[test]
fn a_reader_that_holds_scarce_room_must_keep_up() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_files = LONG as u64 / 5 * 6;
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut reader = client(&gateway);
    // The kernel takes little for a client that does not read: nearly all of it is in the file.
    reader.send("GET /length HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("the place is free", || {
        gateway.status().plants[0].in_service == 0 && in_flight(&gateway) == 1
    });
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 0, 1]);
}

/// 4 KiB a second is enough for a body where there is room enough.
#[test]
fn a_body_that_holds_scarce_room_must_keep_up() {
    let origin = origin();
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_files = 4_000_000;
    settings.timeouts.body_idle = Duration::from_secs(3);
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut writer = client(&gateway);
    writer.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 20000000\r\n\r\n").expect("sent");
    writer.send(pattern(3_500_000)).expect("sent");
    drip(&writer, &gateway, |gateway| gateway.client_connections() == 0);
    assert_eq!(status(&writer.head().expect("an answer")), 408);
    assert_eq!(origin.accepted.load(SeqCst), 0, "it never held a place");
}
