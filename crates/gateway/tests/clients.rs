//! Slow clients and many clients: which places and connections they may hold, and for how long.

use crate::support::http2::*;
use crate::support::*;
use plimsoll_core::promises::Condition;
use plimsoll_core::request::Reason;
use plimsoll_gateway::settings::{Backend, FilesSettings, Rewrite};
use plimsoll_gateway::{Gateway, Settings};
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// More than the kernel takes for a connection.
const LONG: usize = 20_000_000;

/// Bytes whose order shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A site that is this folder.
fn folder(root: &Path) -> Settings {
    Settings {
        backends: vec![Backend::Files(FilesSettings::new(root))],
        rewrites: vec![vec![Rewrite::default()]],
        ..settings(&[])
    }
}

/// Sends `byte` again and again, far apart, until a response or the end of the connection comes.
fn drip(client: &mut Peer, byte: &str) {
    client.stream.get_ref().set_read_timeout(Some(Duration::from_millis(50))).expect("a short look");
    let end = Instant::now() + PATIENCE;
    let mut first = [0];
    while client.stream.get_ref().peek(&mut first).is_err() {
        assert!(Instant::now() < end, "it may drip for ever");
        let _ = client.send(byte);
    }
    client.stream.get_ref().set_read_timeout(Some(PATIENCE)).expect("a long look");
}

#[test]
fn a_body_that_drips_does_not_hold_its_place_for_ever() {
    let origin =
        Origin::start(|mut peer| while peer.head().is_some_and(|head| peer.body(&head).is_empty()) {});
    let mut settings = settings(&[origin.address]);
    settings.timeouts.body_idle = Duration::from_millis(800);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9000\r\n\r\n").expect("sent");
    drip(&mut client, "x");
    assert_eq!(client.answer().0, 408);
    settled(&gateway);
}

/// A request and a response that both take longer than the limits, which bound pauses and slow rates alone.
#[test]
fn a_client_that_keeps_its_pace_may_take_longer_than_the_limits() {
    let body: &'static [u8] = vec![b'z'; 40_000_000].leak();
    let origin = Origin::answering(move |_, sent| if sent.is_empty() { body.to_vec() } else { sent });
    let mut settings = settings(&[origin.address]);
    settings.timeouts.body_idle = Duration::from_secs(2);
    settings.timeouts.send = Duration::from_secs(2);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut sender = client(&gateway);
    let mut reader = client(&gateway);
    sender.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 400000\r\n\r\n").expect("sent");
    let head = reader.ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    let mut read = 0;
    for _ in 0..40 {
        sender.send([b'y'; 10_000]).expect("sent");
        read += reader.exactly(1_000_000).len();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!((status(&head), read), (200, 40_000_000));
    assert_eq!(sender.answer(), (200, vec![b'y'; 400_000]));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [2, 0, 0]);
}

#[test]
fn empty_lines_do_not_hold_a_connection_for_ever() {
    let origin = Origin::serving(b"");
    let mut settings = settings(&[origin.address]);
    settings.timeouts.head = Duration::from_millis(800);
    settings.timeouts.keep_alive = Duration::from_millis(800);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut one = client(&gateway);
    assert_eq!(one.ask("\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n").0, 200);
    let mut two = client(&gateway);
    assert_eq!(two.ask("\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n").0, 400);
    let mut dripping = client(&gateway);
    drip(&mut dripping, "\r\n");
    eventually("they are closed", || gateway.client_connections() <= 1);
}

#[test]
fn a_slow_reader_of_a_file_holds_no_place() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("big.bin"), vec![7; 30_000_000]).expect("a file");
    let settings = Settings {
        backends: vec![Backend::Files(FilesSettings::new(root.path()))],
        rewrites: vec![vec![Rewrite::default()]],
        ..settings(&[])
    };
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut slow = client(&gateway);
    let head = slow.ask_head("GET /big.bin HTTP/1.1\r\nHost: t\r\n\r\n");
    eventually("its place is free", || gateway.status().plants[0].in_service == 0);
    assert_eq!(in_flight(&gateway), 1);
    assert_eq!(slow.body(&head).len(), 30_000_000);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.bytes).sum::<u64>(), 30_000_000);
}

/// What a client has not taken of a file is read once it takes more: however many are slow, none is given up for memory.
#[test]
fn slow_readers_of_a_folder_are_not_given_up_for_memory() {
    const READERS: usize = 12;
    let (root, content) = (tempfile::tempdir().expect("a folder"), pattern(LONG));
    std::fs::write(root.path().join("big.bin"), &content).expect("a file");
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut settings = Settings { admin, ..folder(root.path()) };
    settings.limits.buffer_memory = 128 << 10;
    let gateway = Gateway::start(settings, &promises(READERS as u32)).expect("a gateway");
    let mut readers: Vec<Peer> = (0..READERS).map(|_| client(&gateway)).collect();
    let heads: Vec<String> =
        readers.iter_mut().map(|one| one.ask_head("GET /big.bin HTTP/1.1\r\nHost: t\r\n\r\n")).collect();
    eventually("they hold no place", || gateway.status().plants[0].in_service == 0);
    // Those that have stood the longest would be given up for the others.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(in_flight(&gateway), READERS as u64);
    eventually("they hold little memory", || {
        metric(&gateway, "plimsoll_buffer_bytes{in=\"memory\"}") <= f64::from(128 << 10)
    });
    for (reader, head) in readers.iter_mut().zip(&heads) {
        assert!(reader.body(head) == content);
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [READERS as u64, 0, 0]);
}

/// Streams too, however large the windows are that their clients give and do not read from: what the gateway has handed to the
/// connection of a file is not held against them.
#[test]
fn streams_of_slow_readers_of_a_folder_are_not_given_up_for_memory() {
    const CONNECTIONS: usize = 6;
    const MEMORY: u64 = 256 << 10;
    let (root, content) = (tempfile::tempdir().expect("a folder"), pattern(LONG / 2));
    std::fs::write(root.path().join("big.bin"), &content).expect("a file");
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut settings = Settings { admin, h2c: true, ..folder(root.path()) };
    settings.limits.buffer_memory = MEMORY;
    let gateway = Gateway::start(settings, &promises(2 * CONNECTIONS as u32)).expect("a gateway");
    let fields = [&[0x82, 0x86, 0x04, 8][..], b"/big.bin", &[0x01, 4], b"test"].concat();
    let windows = [&[0, 4][..], &(1_u32 << 30).to_be_bytes()].concat();
    let begin = [
        frame(SETTINGS, 0, 0, &windows),
        frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()),
        frame(HEADERS, 5, 1, &fields),
        frame(HEADERS, 5, 3, &fields),
    ];
    let mut readers: Vec<Peer> = (0..CONNECTIONS).map(|_| raw(address(&gateway))).collect();
    readers.iter_mut().for_each(|reader| reader.send(begin.concat()).expect("sent"));
    eventually("all have come", || gateway.status().classes[0].counts.arrivals == 2 * CONNECTIONS as u64);
    eventually("they hold no place", || gateway.status().plants[0].in_service == 0);
    // Those that have stood the longest would be given up for the others.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(in_flight(&gateway), 2 * CONNECTIONS as u64);
    eventually("they hold little memory", || {
        metric(&gateway, "plimsoll_buffer_bytes{in=\"memory\"}") <= MEMORY as f64
    });
    for reader in &mut readers {
        let (mut bodies, mut ended) = ([const { Vec::new() }; 2], 0);
        while ended < 2 {
            let (kind, flags, stream, payload) = frame_of(reader);
            assert!(kind != GOAWAY && kind != RST_STREAM, "{payload:?}");
            if kind == DATA {
                bodies[stream as usize / 2].extend(payload);
                ended += flags & 1;
            }
        }
        assert!(bodies.iter().all(|body| *body == content));
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [2 * CONNECTIONS as u64, 0, 0]);
}

/// A folder takes no uploads, and says so before one has come.
#[test]
fn a_folder_refuses_an_upload_at_once() {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::write(root.path().join("a.txt"), "page").expect("a file");
    let gateway = Gateway::start(folder(root.path()), &promises(2)).expect("a gateway");
    let begin = |more: &str| format!("POST /a.txt HTTP/1.1\r\nHost: t\r\n{more}\r\n\r\n");
    let mut long = client(&gateway);
    long.send([begin("Content-Length: 10000000").as_bytes(), &[b'x'; 1000]].concat()).expect("sent");
    let head = long.head().expect("an answer");
    assert_eq!((status(&head), field(&head, "connection")), (405, Some("close")));
    assert_eq!(field(&head, "allow"), Some("GET, HEAD, OPTIONS"));
    let mut waits = client(&gateway);
    assert_eq!(status(&waits.ask_head(begin("Content-Length: 4\r\nExpect: 100-continue"))), 405);
    // What is left of a short one is thrown away, and the next request is found behind it.
    let mut short = client(&gateway);
    for (framing, first, rest) in
        [("Content-Length: 8", "abcd", "efgh"), ("Transfer-Encoding: chunked", "4\r\nabcd\r\n", "0\r\n\r\n")]
    {
        assert_eq!(short.ask(begin(framing) + first).0, 405, "{framing}");
        eventually("it has departed", || in_flight(&gateway) == 0);
        short.send(rest).expect("sent");
        assert_eq!(short.get("/a.txt"), (200, b"page".to_vec()), "{framing}");
    }
    settled(&gateway);
}

#[test]
fn an_exempt_request_does_not_wait_for_ever() {
    // The upstream begins to answer and never ends, so that the only place stays taken.
    let origin = Origin::once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    let mut settings = settings(&[origin.address]);
    settings.timeouts.first_byte = Duration::from_millis(600);
    let mut promises = promises(1);
    promises.sites[0].exempt = vec![Condition::default()];
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&first.head().expect("a head")), 200);
    let mut waiting = client(&gateway);
    for _ in 0..2 {
        assert_eq!(waiting.get("/").0, 504);
    }
    assert_eq!((in_flight(&gateway), gateway.status().plants[0].in_service), (1, 1));
    let given_up = [Reason::WaitTimeout, Reason::ClientLeft].map(|reason| turned_away(&gateway, reason));
    assert_eq!(given_up, [2, 0], "the gateway gave them up");
    drop(first);
    settled(&gateway);
}

fn turned_away(gateway: &Gateway, reason: Reason) -> u64 {
    gateway.status().classes.iter().map(|class| class.counts.reasons[reason as usize]).sum()
}

#[test]
fn a_request_for_whose_wait_no_memory_is_left_has_no_client_that_left() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        peer.rest();
    });
    let mut settings = settings(&[origin.address]);
    settings.limits.buffer_memory = 1;
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    assert_eq!(client(&gateway).get("/").0, 503);
    assert_eq!([Reason::QueueFull, Reason::ClientLeft].map(|reason| turned_away(&gateway, reason)), [1, 0]);
    assert_eq!((in_flight(&gateway), gateway.status().plants[0].waiting), (1, 0));
    drop(first);
}

#[test]
fn when_all_places_are_taken_the_longest_idle_makes_room() {
    let origin = Origin::serving(b"x");
    for threads in [1, 2] {
        let mut settings = Settings { threads, ..settings(&[origin.address]) };
        settings.limits.connections = 4;
        let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
        let mut idle: Vec<Peer> = (0..4).map(|_| client(&gateway)).collect();
        for client in &mut idle {
            assert_eq!(client.get("/").0, 200);
        }
        let begin = Instant::now();
        assert_eq!(client(&gateway).get("/").0, 200, "{threads} threads");
        assert!(begin.elapsed() < PATIENCE);
        assert!(gateway.client_connections() <= 4);
        let mut closed = 0;
        for client in &mut idle {
            client.stream.get_ref().set_nonblocking(true).expect("a look");
            closed += usize::from(matches!(client.stream.read(&mut [0]), Ok(0)));
        }
        assert!((1..4).contains(&closed), "some of them, not all");
    }
}

#[test]
fn draining_waits_for_no_half_head_and_no_tunnel() {
    let origin =
        Origin::once("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n");
    let mut settings = settings(&[origin.address]);
    // No limit ends them, while it drains.
    settings.timeouts.head = 3 * PATIENCE;
    settings.timeouts.keep_alive = 3 * PATIENCE;
    settings.timeouts.tunnel_idle = 3 * PATIENCE;
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut half = client(&gateway);
    half.send("GET / HTTP/1.1\r\nHo").expect("sent");
    let mut tunnel = client(&gateway);
    tunnel.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n").expect("sent");
    assert_eq!(status(&tunnel.head().expect("an answer")), 101);
    eventually("both are here", || gateway.client_connections() == 2);
    assert!(gateway.drain(PATIENCE), "nothing was under way");
    assert_eq!((half.rest(), tunnel.rest()), (Vec::new(), Vec::new()));
}

#[test]
fn what_comes_while_a_request_waits_is_kept() {
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::answering(move |head, body| {
        eventually("the test lets it go", || may.load(SeqCst));
        let path = head.split(' ').nth(1).unwrap_or_default();
        [path.as_bytes(), b" ", &body].concat()
    });
    let gateway = Gateway::start(streaming(&[origin.address]), &promises(1)).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET /first HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    // The body, then the next request, come in pieces with pauses: each piece is read while the request waits.
    let mut waiting = client(&gateway);
    waiting.send("POST /second HTTP/1.1\r\nHost: t\r\nContent-Length: 9000\r\n\r\nxx").expect("sent");
    eventually("it waits", || gateway.status().plants[0].waiting == 1);
    for piece in [&[b'x'; 998][..], &[b'x'; 8000], b"GET /third HT", b"TP/1.1\r\nHost: t\r\n\r\n"] {
        std::thread::sleep(Duration::from_millis(20));
        waiting.send(piece).expect("sent");
    }
    go.store(true, SeqCst);
    assert_eq!(first.answer(), (200, b"/first ".to_vec()));
    let second = [b"/second ".as_slice(), &[b'x'; 9000]].concat();
    assert_eq!(waiting.answer(), (200, second));
    assert_eq!(waiting.answer(), (200, b"/third ".to_vec()));
    settled(&gateway);
}
