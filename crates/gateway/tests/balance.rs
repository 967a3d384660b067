//! Connections change threads between requests: those who wait gather, and a thread without rest is relieved.

mod support;

use plimsoll_gateway::{Gateway, Settings};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use support::*;

const CLIENTS: usize = 8;

/// Two threads, before a server that takes some milliseconds and so many requests at once.
fn two_threads(origin: &Origin, workers: u32) -> Gateway {
    let mut promises = promises(workers);
    promises.sites[0].hosts = vec!["test".to_owned()];
    let settings = Settings { threads: 2, ..settings(&[origin.address]) };
    Gateway::start(settings, &promises).expect("a gateway")
}

fn slow_origin() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            thread::sleep(Duration::from_millis(3));
            let path = head.split(' ').nth(1).unwrap_or_default();
            if peer.send_response(path.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Connected one after the other, so that each thread has as many.
fn clients(gateway: &Gateway) -> Vec<Peer> {
    let connect = |number: usize| {
        let peer = client(gateway);
        eventually("it is accepted", || gateway.client_connections() == number + 1);
        peer
    };
    let peers = (0..CLIENTS).map(connect).collect();
    assert_eq!(gateway.connections_by_thread(), [CLIENTS / 2; 2]);
    peers
}

/// Ends the clients' loops, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// All clients ask, one request after the other, until `over` holds.
fn ask_until(peers: &mut [Peer], over: impl Fn() -> bool) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (number, peer) in peers.iter_mut().enumerate() {
            let is_over = &is_over;
            scope.spawn(move || {
                for turn in 0.. {
                    let path = format!("/{number}/{turn}");
                    assert_eq!(peer.get(&path), (200, path.into_bytes()));
                    if is_over.load(SeqCst) {
                        return;
                    }
                }
            });
        }
        let _ends = Over(&is_over);
        eventually("over", over);
    });
}

/// All clients send what the gateway answers alone, hundreds at a time, until `over` holds.
fn keep_busy_until(peers: &mut [Peer], over: impl Fn() -> bool) {
    let is_over = AtomicBool::new(false);
    let batch = "GET / HTTP/1.1\r\nHost: of.no.site\r\n\r\n".repeat(300);
    thread::scope(|scope| {
        for peer in peers {
            let (is_over, batch) = (&is_over, &batch);
            scope.spawn(move || {
                while !is_over.load(SeqCst) {
                    peer.send(batch).expect("sent");
                    for _ in 0..300 {
                        assert_eq!(peer.answer().0, 421);
                    }
                }
            });
        }
        let _ends = Over(&is_over);
        eventually("over", over);
    });
}

#[test]
fn those_who_wait_gather_and_a_thread_without_rest_is_relieved() {
    let origin = slow_origin();
    let gateway = two_threads(&origin, 1);
    let mut peers = clients(&gateway);
    ask_until(&mut peers, || gateway.connections_by_thread() == [CLIENTS, 0]);
    keep_busy_until(&mut peers, || gateway.connections_by_thread()[1] > 0);
    // Wherever they are now, they are served.
    ask_until(&mut peers, || true);
    settled(&gateway);
    drop(peers);
    eventually("all places are given back", || gateway.connections_by_thread() == [0, 0]);
}

#[test]
fn who_need_not_wait_stays() {
    let origin = slow_origin();
    let gateway = two_threads(&origin, CLIENTS as u32);
    let mut peers = clients(&gateway);
    let served = || outcomes(&gateway)[0] >= 2000;
    ask_until(&mut peers, served);
    assert_eq!(gateway.connections_by_thread(), [CLIENTS / 2; 2]);
}
