//! Requests whose clients leave while the upstream works on them: the place is free when the upstream is, not before.

use crate::support::http2::{Connection, request};
use crate::support::*;
use plimsoll_core::promises::Promises;
use plimsoll_gateway::{Gateway, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: t\r\n\r\n";

/// An upstream that answers each request once the test lets it go, and counts those that it began.
struct Slow {
    origin: Origin,
    begun: Arc<AtomicU32>,
    go: Arc<AtomicBool>,
}

fn slow(body: &'static [u8]) -> Slow {
    let (begun, go) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, may) = (begun.clone(), go.clone());
    let origin = Origin::start(move |mut peer| {
        while peer.head().is_some() {
            count.fetch_add(1, SeqCst);
            eventually("the test lets it go", || may.load(SeqCst));
            if peer.send_response(body).is_err() {
                return;
            }
        }
    });
    Slow { origin, begun, go }
}

fn start(slow: &Slow, promises: &Promises) -> Gateway {
    let settings = Settings { h2c: true, ..settings(&[slow.origin.address]) };
    Gateway::start(settings, promises).expect("a gateway")
}

/// One request is served, its client leaves, and another one comes for the one place.
fn one_leaves_and_one_comes(slow: &Slow, gateway: &Gateway) -> Peer {
    one_sends_more_and_leaves(slow, gateway, "")
}

/// The same, where the first client sends `more` before it leaves.
fn one_sends_more_and_leaves(slow: &Slow, gateway: &Gateway, more: &str) -> Peer {
    let mut leaver = client(gateway);
    leaver.send(GET).expect("sent");
    eventually("it is served", || slow.begun.load(SeqCst) == 1);
    let mut next = client(gateway);
    next.send(GET).expect("sent");
    eventually("another one waits", || gateway.status().plants[0].waiting == 1);
    if !more.is_empty() {
        leaver.send(more).expect("sent");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(leaver);
    next
}

/// Whether the other one still waits, some time later.
fn still_waits(slow: &Slow, gateway: &Gateway) -> bool {
    std::thread::sleep(Duration::from_millis(100));
    let plant = &gateway.status().plants[0];
    (slow.begun.load(SeqCst), plant.in_service, plant.waiting) == (1, 1, 1)
}

#[test]
fn the_place_is_held_until_the_upstream_has_finished() {
    let slow = slow(b"served");
    let gateway = start(&slow, &promises(1));
    let mut next = one_leaves_and_one_comes(&slow, &gateway);
    assert!(still_waits(&slow, &gateway));
    slow.go.store(true, SeqCst);
    assert_eq!(next.answer(), (200, b"served".to_vec()));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 1]);
    assert_eq!(slow.origin.accepted.load(SeqCst), 1, "the connection is kept: the response was read whole");
    let class = &gateway.status().classes[0];
    assert_eq!(class.counts.bytes, 6, "nobody was delivered the first response");
}

/// The twin: an upstream that is said to stop gets the next request at once, and works on two. A client that has sent more
/// behind its request is seen to leave as well.
#[test]
fn the_place_is_free_at_once_where_the_upstream_stops() {
    for more in ["", "\r\n", GET] {
        the_next_one_is_begun_when_one_leaves_behind(more);
    }
}

fn the_next_one_is_begun_when_one_leaves_behind(more: &str) {
    let slow = slow(b"served");
    let mut promises = promises(1);
    promises.plants[0].stops_when_abandoned = true;
    let gateway = start(&slow, &promises);
    let mut next = one_sends_more_and_leaves(&slow, &gateway, more);
    eventually("the next one is begun", || slow.begun.load(SeqCst) == 2);
    slow.go.store(true, SeqCst);
    assert_eq!(next.answer(), (200, b"served".to_vec()));
    settled(&gateway);
    assert_eq!((outcomes(&gateway), slow.origin.accepted.load(SeqCst)), ([1, 0, 1], 2));
}

#[test]
fn a_stream_that_is_reset_holds_its_place_too() {
    let slow = slow(b"served");
    let gateway = start(&slow, &promises(1));
    let mut client = Connection::new(address(&gateway));
    let (_response, mut leaver) = client.begin(request("GET", "/"), false);
    eventually("it is served", || slow.begun.load(SeqCst) == 1);
    let (next, _) = client.begin(request("GET", "/"), false);
    eventually("another one waits", || gateway.status().plants[0].waiting == 1);
    leaver.send_reset(h2::Reason::CANCEL);
    assert!(still_waits(&slow, &gateway));
    slow.go.store(true, SeqCst);
    assert_eq!(client.answer(next).expect("an answer").text(), "served");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 1]);
}

/// A long response is not read to its end for nobody, and a request whose body is unfinished is not waited for.
#[test]
fn what_the_upstream_notices_itself_ends_at_once() {
    let long = slow(&[b'x'; 8 << 20]);
    let gateway = start(&long, &promises(1));
    let next = one_leaves_and_one_comes(&long, &gateway);
    assert!(still_waits(&long, &gateway));
    long.go.store(true, SeqCst);
    eventually("the next one is begun", || long.begun.load(SeqCst) == 2);
    drop(next);
    settled(&gateway);
    assert_eq!((outcomes(&gateway), long.origin.accepted.load(SeqCst)), ([0, 0, 2], 2));

    let mut uploads = client(&gateway);
    uploads.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 4000000\r\n\r\n").expect("sent");
    uploads.send([b'x'; 2_000_000]).expect("sent");
    drop(uploads);
    settled(&gateway);
}

/// A connection that ends before a response is no reason to send the request again: nobody waits for it.
#[test]
fn nothing_is_sent_again_for_nobody() {
    let heads = Arc::new(AtomicU32::new(0));
    let (count, go) = (heads.clone(), Arc::new(AtomicBool::new(false)));
    let may = go.clone();
    let origin = Origin::start(move |mut peer| {
        while peer.head().is_some() {
            if count.fetch_add(1, SeqCst) == 0 {
                let _ = peer.send_response(b"first");
                continue;
            }
            eventually("the test lets it go", || may.load(SeqCst));
            return;
        }
    });
    let gateway = Gateway::start(settings(&[origin.address]), &promises(1)).expect("a gateway");
    let mut leaver = client(&gateway);
    assert_eq!(leaver.get("/"), (200, b"first".to_vec()));
    leaver.send(GET).expect("sent");
    eventually("the second is served on the kept connection", || heads.load(SeqCst) == 2);
    drop(leaver);
    std::thread::sleep(Duration::from_millis(100));
    go.store(true, SeqCst);
    settled(&gateway);
    assert_eq!((outcomes(&gateway), heads.load(SeqCst)), ([1, 0, 1], 2));
}
