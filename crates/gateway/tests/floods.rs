//! Clients of HTTP/2 that send frames for their own sake, or frames that do not end: the connection ends, and every request
//! that was begun on it is accounted for once.

use crate::support::http2::*;
use crate::support::*;
use plimsoll_gateway::settings::{Limits, Timeouts};
use plimsoll_gateway::{Gateway, Settings};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const ENHANCE_YOUR_CALM: u32 = 11;
const NO_ERROR: u32 = 0;

fn gateway_to(origin: &Origin, limits: Limits, timeouts: Timeouts) -> Gateway {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let settings = Settings { h2c: true, admin, limits, timeouts, ..settings(&[origin.address]) };
    Gateway::start(settings, &promises(8)).expect("a gateway")
}

/// An upstream that takes a moment for each request.
fn slow() -> Origin {
    Origin::answering(|_, _| {
        std::thread::sleep(Duration::from_millis(50));
        b"page"
    })
}

fn plain(origin: &Origin) -> Gateway {
    gateway_to(origin, Limits::default(), Timeouts::default())
}

/// Sends pieces until the gateway takes no more, or for the `most` times. Returns the code that it ends the connection with.
fn flood(gateway: &Gateway, most: u32, mut piece: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let mut peer = raw(address(gateway));
    let mut reader = Peer::new(peer.stream.get_ref().try_clone().expect("a second handle"));
    let code = std::thread::spawn(move || goaway(&mut reader));
    for number in 0..most {
        if peer.send(piece(number)).is_err() {
            break;
        }
    }
    let _ = peer.stream.get_ref().shutdown(std::net::Shutdown::Write);
    let code = code.join().expect("no panic");
    eventually("the connection is gone", || gateway.client_connections() == 0);
    code
}

/// How many connections were ended for this flood.
fn ended(gateway: &Gateway, flood: &str) -> u32 {
    metric(gateway, &format!("plimsoll_http2_connections_ended_total{{flood=\"{flood}\"}}")) as u32
}

#[test]
fn frames_that_ask_for_nothing_end_the_connection() {
    let origin = Origin::serving(b"page");
    let gateway = plain(&origin);
    let begin = |number: u32| if number == 0 { frame(HEADERS, 4, 1, &get_fields()) } else { Vec::new() };
    flood(&gateway, 100_000, |_| frame(PING, 0, 0, &[7; 8]));
    flood(&gateway, 100_000, |_| frame(SETTINGS, 0, 0, &[]));
    flood(&gateway, 100_000, |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
    flood(&gateway, 100_000, |number| [begin(number), frame(DATA, 0, 1, &[])].concat());
    flood(&gateway, 100_000, |number| frame(PRIORITY, 0, 2 * number + 1, &[0, 0, 0, 0, 1]));
    for (name, count) in [("pings", 1), ("settings", 1), ("windows", 1), ("resets", 0)] {
        assert_eq!(ended(&gateway, name), count, "{name}");
    }
    // `h2` has a limit of its own for empty frames.
    assert_eq!(ended(&gateway, "empty_frames") + ended(&gateway, "codec"), 2);
    settled(&gateway);
    // What a client may well do ends nothing.
    let code = flood(&gateway, 500, |_| frame(PING, 0, 0, &[7; 8]));
    assert_eq!((code, ended(&gateway, "pings")), (None, 1));
}

/// Clients of gRPC measure their line so: they answer each message that comes with a window update and a PING.
#[test]
fn a_client_that_answers_each_message_of_a_stream_floods_nothing() {
    const MESSAGES: usize = 300;
    let origin = Origin::start(|mut peer| {
        while peer.head().is_some() {
            let _ = peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for _ in 0..MESSAGES {
                std::thread::sleep(Duration::from_millis(5));
                let _ = peer.send(format!("32\r\n{}\r\n", "x".repeat(50)));
            }
            let _ = peer.send("0\r\n\r\n");
        }
    });
    let gateway = plain(&origin);
    let mut peer = raw(address(&gateway));
    // Most of what the account holds is spent before, so that few messages tell.
    peer.send(frame(PING, 0, 0, &[7; 8]).repeat(900)).expect("sent");
    peer.send(frame(HEADERS, 5, 1, &get_fields())).expect("sent");
    let mut bytes = 0;
    loop {
        let head = peer.exactly(9);
        let payload = peer.exactly(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize);
        assert_ne!(head[3], GOAWAY, "after {bytes} bytes");
        if head[3] != DATA {
            continue;
        }
        bytes += payload.len();
        if head[4] & 1 == 1 {
            break;
        }
        let window = frame(WINDOW_UPDATE, 0, 0, &(payload.len() as u32).to_be_bytes());
        peer.send([window, frame(PING, 0, 0, &[7; 8])].concat()).expect("sent");
    }
    assert_eq!(bytes, 50 * MESSAGES);
}

/// A stream of messages pays for no windows of a byte, each of which makes a frame of a byte.
#[test]
fn windows_of_a_byte_end_the_connection() {
    static BODY: [u8; 20_000] = [b'x'; 20_000];
    let origin = Origin::serving(&BODY);
    let gateway = plain(&origin);
    let window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let code = flood(&gateway, 10_000, |number| match number {
        0 => [window.clone(), frame(HEADERS, 5, 1, &get_fields())].concat(),
        _ => {
            std::thread::sleep(Duration::from_micros(100));
            frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes())
        }
    });
    assert_eq!((code, ended(&gateway, "windows")), (Some(ENHANCE_YOUR_CALM), 1));
    settled(&gateway);
}

#[test]
fn heads_without_an_end_end_the_connection() {
    let origin = Origin::serving(b"page");
    let gateway = plain(&origin);
    // A field that is never told again: `x: y...`.
    let piece = [&[0, 1, b'x', 100][..], &[b'y'; 100]].concat();
    let endless = |number: u32| {
        let (kind, fields) =
            if number == 0 { (HEADERS, get_fields()) } else { (CONTINUATION, piece.clone()) };
        frame(kind, 0, 1, &fields)
    };
    flood(&gateway, 100_000, endless);
    assert_eq!(ended(&gateway, "codec") + ended(&gateway, "empty_frames"), 1);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.arrivals).sum::<u64>(), 0);
}

#[test]
fn rapid_resets_end_the_connection_and_lose_no_place() {
    let origin = slow();
    let gateway = plain(&origin);
    let (fields, cancel) = (get_fields(), 8_u32.to_be_bytes());
    flood(&gateway, 100_000, |number| {
        let stream = 2 * number + 1;
        [frame(HEADERS, 5, stream, &fields), frame(RST_STREAM, 0, stream, &cancel)].concat()
    });
    // The account ends it, or the limit that `h2` has for requests which were not looked at when they are taken back.
    let all = || ended(&gateway, "resets") + ended(&gateway, "codec");
    assert_eq!(all(), 1);
    settled(&gateway);
    // So slowly that on an idle machine each request is begun before it is taken back.
    let code = flood(&gateway, 2000, |number| {
        std::thread::sleep(Duration::from_millis(1));
        let stream = 2 * (number / 2) + 1;
        match number % 2 {
            0 => frame(HEADERS, 5, stream, &fields),
            _ => frame(RST_STREAM, 0, stream, &cancel),
        }
    });
    assert_eq!((code, all()), (Some(ENHANCE_YOUR_CALM), 2));
    settled(&gateway);
    let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
    let ended: u64 = outcomes(&gateway).iter().sum();
    assert!(arrivals < 1000 && ended <= arrivals, "{ended} of {arrivals}");
    assert_eq!(Connection::new(address(&gateway)).get("/").text(), "page", "others are served");
}

/// A client that has the gateway reset its streams costs as much work as one that resets them itself.
#[test]
fn streams_that_the_gateway_is_made_to_reset_count_as_resets() {
    let origin = slow();
    let gateway = plain(&origin);
    let fields = get_fields();
    let code = flood(&gateway, 2000, |number| {
        std::thread::sleep(Duration::from_millis(1));
        let stream = 2 * (number / 2) + 1;
        match number % 2 {
            0 => frame(HEADERS, 5, stream, &fields),
            // A window that is wider than any may be.
            _ => frame(WINDOW_UPDATE, 0, stream, &0x7fff_ffff_u32.to_be_bytes()),
        }
    });
    // The last frame names the flood, and it may be the window update before its reset. A thousand of these alone end nothing:
    // the account can pay for them.
    let ended = ended(&gateway, "resets") + ended(&gateway, "windows");
    assert_eq!((code, ended), (Some(ENHANCE_YOUR_CALM), 1));
    settled(&gateway);
    let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
    assert!(arrivals < 1000, "{arrivals} requests arrived");
    assert_eq!(Connection::new(address(&gateway)).get("/").text(), "page", "others are served");
}

#[test]
fn more_streams_than_may_be_are_refused_and_the_rest_is_served() {
    let origin = slow();
    let gateway = gateway_to(&origin, Limits { streams: 4, ..Limits::default() }, Timeouts::default());
    let mut peer = raw(address(&gateway));
    for stream in 0..10 {
        peer.send(frame(HEADERS, 5, 2 * stream + 1, &get_fields())).expect("sent");
    }
    eventually("four are answered", || outcomes(&gateway)[0] == 4);
    settled(&gateway);
    let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
    assert_eq!(arrivals, 4, "a refused stream is no request");
    // A client that knows the limit waits for a place.
    let mut client = Connection::new(address(&gateway));
    assert_eq!(client.get("/").text(), "page");
    let responses: Vec<_> = (0..12).map(|_| client.begin(request("GET", "/"), false).0).collect();
    for response in responses {
        assert_eq!(client.answer(response).expect("an answer").text(), "page");
    }
}

#[test]
fn what_is_begun_and_not_ended_is_given_up() {
    let origin = Origin::serving(b"page");
    let timeouts = Timeouts { head: Duration::from_millis(500), ..Timeouts::default() };
    let gateway = gateway_to(&origin, Limits::default(), timeouts);
    let head = frame(HEADERS, 0, 1, &get_fields());
    let preface = b"PRI * HTTP/2.0\r\n\r\n";
    for (name, bytes) in [("a head", &head[..]), ("a frame", &head[..12]), ("a frame's head", &head[..3])] {
        let since = Instant::now();
        let mut peer = raw(address(&gateway));
        peer.send(bytes).expect("sent");
        assert_eq!(goaway(&mut peer), Some(NO_ERROR), "{name}");
        assert!(since.elapsed() < Duration::from_secs(15), "{name}");
    }
    let mut peer = Peer::connect(address(&gateway));
    peer.send(preface).expect("sent");
    peer.rest();
    eventually("all are gone", || gateway.client_connections() == 0);
}

#[test]
fn a_head_without_an_end_has_its_time_beside_an_open_stream() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = peer.send(head);
        peer.rest();
    });
    let timeouts = Timeouts { head: Duration::from_millis(300), ..Timeouts::default() };
    let gateway = gateway_to(&origin, Limits::default(), timeouts);
    let mut peer = raw(address(&gateway));
    peer.send(frame(HEADERS, 5, 1, &get_fields())).expect("sent");
    eventually("the stream is open", || in_flight(&gateway) == 1);
    // A body may come as slowly as it may, within a frame too.
    peer.send(frame(HEADERS, 4, 3, &[&[0x83], &get_fields()[1..]].concat())).expect("sent");
    let data = frame(DATA, 1, 3, &[b'x'; 1000]);
    for piece in data.chunks(250) {
        peer.send(piece).expect("sent");
        std::thread::sleep(Duration::from_millis(250));
    }
    eventually("both streams are open", || in_flight(&gateway) == 2);
    peer.send(frame(HEADERS, 0, 5, &get_fields())).expect("sent");
    let begin = Instant::now();
    assert_eq!(goaway(&mut peer), Some(NO_ERROR));
    assert!(begin.elapsed() < PATIENCE / 2, "{:?}", begin.elapsed());
    settled(&gateway);
}

#[test]
fn unfinished_heads_have_a_bound_together() {
    let origin = Origin::serving(b"page");
    let limits = Limits { head_memory: 4096, ..Limits::default() };
    let gateway = gateway_to(&origin, limits, Timeouts::default());
    let fields = [&get_fields()[..], &[0, 1, b'x', 100], &[b'y'; 100]].concat();
    let mut peers: Vec<Peer> = (0..40)
        .map(|_| {
            let mut peer = raw(address(&gateway));
            peer.send(frame(HEADERS, 0, 1, &fields)).expect("sent");
            // Each is waited for before the next, so that their order is known.
            std::thread::sleep(Duration::from_millis(5));
            peer
        })
        .collect();
    let open = || gateway.client_connections();
    eventually("the oldest are gone", || (20..40).contains(&open()));
    assert_eq!(goaway(&mut peers[0]), Some(NO_ERROR));
    let mut last = peers.pop().expect("the last");
    last.send(frame(CONTINUATION, 4, 1, &[0, 1, b'z', 1, b'z'])).expect("sent");
    last.send(frame(DATA, 1, 1, &[])).expect("sent");
    eventually("it is answered", || outcomes(&gateway)[0] == 1);
}

/// Asks for a large page on many streams whose client gives no window until all places are free, and returns how many streams
/// got all of it in the end, and how many were reset.
fn without_a_window(gateway: &Gateway, streams: u32, length: usize) -> (u32, u32) {
    let mut peer = raw(address(gateway));
    let window = |size: u32| frame(SETTINGS, 0, 0, &[&[0, 4][..], &size.to_be_bytes()].concat());
    peer.send(window(0)).expect("sent");
    for stream in 0..streams {
        peer.send(frame(HEADERS, 5, 2 * stream + 1, &get_fields())).expect("sent");
    }
    eventually("all have left the server", || {
        let plant = &gateway.status().plants[0];
        let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
        (arrivals, plant.in_service, plant.waiting) == (streams.into(), 0, 0)
    });
    eventually("little is in memory", || metric(gateway, "plimsoll_buffer_bytes{in=\"memory\"}") < 2e6);
    let all = frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    peer.send([window(1 << 20), all].concat()).expect("sent");
    let (mut ended, mut reset, mut bytes) = (0, 0, vec![0; streams as usize]);
    while ended + reset < streams {
        let head = peer.exactly(9);
        let payload = peer.exactly(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) / 2;
        match head[3] {
            DATA => {
                bytes[stream as usize] += payload.len();
                ended += u32::from(head[4] & 1);
                assert!(head[4] & 1 == 0 || bytes[stream as usize] == length, "the end is the end");
            }
            RST_STREAM => reset += 1,
            kind => assert_ne!(kind, GOAWAY, "the connection stays"),
        }
    }
    (ended, reset)
}

#[test]
fn streams_without_a_window_hold_no_place_and_memory_within_its_bound() {
    const LENGTH: usize = 300_000;
    static BODY: [u8; LENGTH] = [b'x'; LENGTH];
    let origin = Origin::serving(&BODY);
    // Beyond what clients that are waited for may hold, those that stand the longest are given up.
    let limits = Limits { buffer_memory: 1 << 20, ..Limits::default() };
    let gateway = gateway_to(&origin, limits, Timeouts::default());
    let (ended, reset) = without_a_window(&gateway, 40, LENGTH);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [ended.into(), 0, reset.into()]);
    assert!(ended > 0, "not all are given up");
}
