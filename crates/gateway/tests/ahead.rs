//! Requests that wait on one thread and are started by another, which may send them itself: nobody may notice.

mod support;

use plimsoll_gateway::{Gateway, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use support::*;

/// Two threads, before a server that takes one connection.
fn two_threads(origin: &Origin) -> Gateway {
    let settings = Settings { threads: 2, ..settings(&[origin.address]) };
    Gateway::start(settings, &promises(1)).expect("a gateway")
}

fn path(head: &str) -> String {
    head.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// `count` clients, one connected after the other, so that each thread has as many.
fn clients(gateway: &Gateway, count: usize) -> Vec<Peer> {
    let connect = |number: usize| {
        let peer = client(gateway);
        eventually("it is accepted", || gateway.client_connections() == number + 1);
        peer
    };
    let peers: Vec<Peer> = (0..count).map(connect).collect();
    assert_eq!(gateway.connections_by_thread(), [count / 2; 2]);
    peers
}

/// Every client asks 100 times at once with the others, with a body now and then.
fn all_get_their_own(gateway: &Gateway) {
    let ask = |number: usize, mut peer: Peer| {
        for turn in 0..100 {
            let path = format!("/{number}/{turn}");
            let (status, body) = if turn % 7 == 3 {
                let head = format!("PUT {path} HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc");
                peer.send(head).expect("sent");
                peer.answer()
            } else {
                peer.get(&path)
            };
            assert_eq!((status, body), (200, path.into_bytes()));
        }
    };
    let peers = clients(gateway, 4);
    std::thread::scope(|scope| {
        peers.into_iter().enumerate().for_each(|(number, peer)| drop(scope.spawn(move || ask(number, peer))));
    });
    settled(gateway);
}

#[test]
fn each_gets_the_answer_to_its_own_request() {
    let origin = Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            peer.body(&head);
            if peer.send_response(path(&head).as_bytes()).is_err() {
                return;
            }
        }
    });
    let gateway = two_threads(&origin);
    all_get_their_own(&gateway);
    assert_eq!(origin.most.load(SeqCst), 1);
    assert_eq!(outcomes(&gateway), [400, 0, 0]);
}

/// It closes after every third answer without a word, so that what was sent ahead is lost now and then.
#[test]
fn what_was_sent_to_a_dead_connection_is_sent_again() {
    let origin = Origin::start(|mut peer| {
        for _ in 0..3 {
            let Some(head) = peer.head() else { return };
            // Of what comes in parts the rest may not come.
            peer.rest_of(&head);
            if peer.send_response(path(&head).as_bytes()).is_err() {
                return;
            }
        }
    });
    let gateway = two_threads(&origin);
    let peers = clients(&gateway, 4);
    std::thread::scope(|scope| {
        for (number, mut peer) in peers.into_iter().enumerate() {
            scope.spawn(move || {
                for turn in 0..100 {
                    let path = format!("/{number}/{turn}");
                    assert_eq!(peer.get(&path), (200, path.into_bytes()));
                }
            });
        }
    });
    settled(&gateway);
    assert!(origin.accepted.load(SeqCst) >= 133, "it did close");
}

/// The server answers the first request when told, and never the second one, whose client leaves.
#[test]
fn who_leaves_when_its_request_was_sent_holds_no_place() {
    let (go, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (may, count) = (go.clone(), seen.clone());
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            count.fetch_add(1, SeqCst);
            if path(&head) == "/never" {
                peer.rest();
                return;
            }
            eventually("told to answer", || may.load(SeqCst));
            if peer.send_response(path(&head).as_bytes()).is_err() {
                return;
            }
        }
    });
    let gateway = two_threads(&origin);
    for turn in 0..10 {
        go.store(false, SeqCst);
        let before = seen.load(SeqCst);
        let mut peers = clients(&gateway, 2);
        let (mut second, mut first) = (peers.pop().expect("two"), peers.pop().expect("two"));
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        eventually("the first is there", || seen.load(SeqCst) == before + 1);
        second.send("GET /never HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        eventually("the second waits", || gateway.status().plants[0].waiting == 1);
        go.store(true, SeqCst);
        assert_eq!(first.answer(), (200, b"/first".to_vec()));
        eventually("the second is there", || seen.load(SeqCst) == before + 2);
        drop(second);
        assert_eq!(first.get("/third"), (200, b"/third".to_vec()), "turn {turn}");
        drop(first);
        eventually("both are gone", || gateway.client_connections() == 0);
        settled(&gateway);
    }
}
