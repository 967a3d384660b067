//! What is decided of a connection when it comes: how many a client may have, and whether its client would be rejected.

use crate::support::{self, *};
use plimsoll_core::promises::Network;
use plimsoll_gateway::Gateway;
use plimsoll_gateway::settings::{Limits, Settings};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// A connection from an address of this machine.
fn connect_from(address: [u8; 4], gateway: &Gateway) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let from = SocketAddr::from((Ipv4Addr::from(address), 0));
    socket.bind(&from.into()).expect("an address of loopback");
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, self::address(gateway).port()));
    socket.connect(&to.into()).expect("the gateway listens");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.into()
}

/// Whether the gateway has closed a connection, which is waited for.
fn is_closed(mut connection: TcpStream) -> bool {
    matches!(connection.read(&mut [0; 16]), Ok(0) | Err(_))
}

fn bounded(origin: &Origin, more: Settings) -> Gateway {
    let limits = Limits { connections_per_client: Some(3), ..Limits::default() };
    let settings = Settings { limits, threads: 2, ..more };
    let backends = support::settings(&[origin.address]).backends;
    let listen = support::settings(&[origin.address]).listen;
    Gateway::start(Settings { backends, listen, ..settings }, &promises(8)).expect("a gateway")
}

#[test]
fn a_client_has_no_more_connections_than_it_may() {
    let origin = Origin::serving(b"x");
    let gateway = bounded(&origin, Settings { admin: None, ..Settings::default() });
    let mut held: Vec<Peer> = (0..3).map(|_| Peer::new(connect_from([127, 0, 0, 2], &gateway))).collect();
    for peer in &mut held {
        assert_eq!(peer.get("/").0, 200);
    }
    for _ in 0..5 {
        assert!(is_closed(connect_from([127, 0, 0, 2], &gateway)));
    }
    assert_eq!(Peer::new(connect_from([127, 0, 0, 3], &gateway)).get("/").0, 200, "another client");
    for peer in &mut held {
        assert_eq!(peer.get("/").0, 200, "the connections that are there stay");
    }
    held.pop();
    eventually("its place is free", || {
        let mut peer = Peer::new(connect_from([127, 0, 0, 2], &gateway));
        peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").is_ok()
            && peer.head().is_some_and(|head| status(&head) == 200)
    });
}

/// Thousands of connections, also of clients that send nothing, leave nothing behind in the counts.
#[test]
fn connections_that_end_give_their_place_back() {
    let origin = Origin::serving(b"x");
    let gateway = bounded(&origin, Settings { admin: None, ..Settings::default() });
    for round in 0..1000 {
        let mut peers: Vec<TcpStream> = (0..3).map(|_| connect_from([127, 0, 0, 2], &gateway)).collect();
        if round % 3 == 0 {
            let mut peer = Peer::new(peers.pop().expect("three"));
            peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").expect("sent");
            assert!(peer.rest().ends_with(b"x"), "{round}");
        }
        for peer in peers {
            peer.shutdown(Shutdown::Write).expect("open");
            assert!(is_closed(peer), "{round}");
        }
        eventually("they are gone", || gateway.client_connections() == 0);
    }
}

#[test]
fn proxies_that_are_believed_are_not_bounded() {
    let origin = Origin::serving(b"x");
    let network = Network { address: Ipv4Addr::new(127, 0, 0, 0).into(), prefix_bits: 8 };
    let settings = Settings { admin: None, trusted_proxies: vec![network], ..Settings::default() };
    let gateway = bounded(&origin, settings);
    let mut held: Vec<Peer> = (0..9).map(|_| Peer::new(connect_from([127, 0, 0, 2], &gateway))).collect();
    assert!(held.iter_mut().all(|peer| peer.get("/").0 == 200));
}

/// The address behind a PROXY header is bounded, not that of the load balancer.
#[test]
fn the_client_behind_a_proxy_header_is_bounded() {
    let origin = Origin::serving(b"x");
    let network = Network { address: Ipv4Addr::new(127, 0, 0, 0).into(), prefix_bits: 8 };
    let settings = Settings { admin: None, proxy_protocol: vec![network], ..Settings::default() };
    let gateway = bounded(&origin, settings);
    let from = |client: &str| {
        let mut peer = Peer::new(connect_from([127, 0, 0, 2], &gateway));
        let header = format!("PROXY TCP4 {client} 10.0.0.1 1000 80\r\n");
        let _ = peer.send(header + "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = peer.head();
        (head.map(|head| status(&head)), peer)
    };
    let held: Vec<_> = (0..3).map(|_| from("9.9.9.9")).collect();
    assert!(held.iter().all(|(status, _)| *status == Some(200)));
    assert_eq!(from("9.9.9.9").0, None);
    assert_eq!(from("9.9.9.8").0, Some(200));
}

/// A client that has sent nothing yet is sent the answer to rejected requests once its requests would be rejected. Each
/// connection has one request, read or not, and each is counted once, with its reason.
#[test]
fn a_client_that_would_be_rejected_is_turned_away_unread_and_counted_once() {
    turned_away_unread(false);
}

/// The same where a load balancer has made all connections, and its header names the client.
#[test]
fn a_client_behind_a_proxy_header_is_turned_away_unread_too() {
    turned_away_unread(true);
}

fn turned_away_unread(is_proxied: bool) {
    let origin = ten_a_second();
    let mut promises = promises(1);
    promises.sites[0].guarantee = None;
    promises.sites[0].levels.truncate(1);
    let proxy = Network { address: Ipv4Addr::LOCALHOST.into(), prefix_bits: 32 };
    let proxy_protocol = if is_proxied { vec![proxy] } else { Vec::new() };
    let settings = Settings { reject_at_accept: true, proxy_protocol, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let number = AtomicU32::new(1);
    // Many clients, since one alone would be rejected by chance.
    let connect = || {
        let [_, _, high, low] = number.fetch_add(1, SeqCst).to_be_bytes();
        if !is_proxied {
            return connect_from([127, 1, high, low], &gateway);
        }
        let mut connection = connect_from([127, 0, 0, 1], &gateway);
        let header = format!("PROXY TCP4 10.1.{high}.{low} 10.0.0.1 1000 80\r\n");
        connection.write_all(header.as_bytes()).expect("it is open");
        connection
    };
    let ask = |connection: TcpStream| {
        let mut peer = Peer::new(connection);
        // What is turned away unread may be closed before the request is sent.
        let _ = peer.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        peer.rest();
    };
    let enough = AtomicBool::new(false);
    let unread = std::thread::scope(|scope| {
        // As many at once as the server could serve in three seconds.
        for _ in 0..30 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    if enough.load(SeqCst) {
                        return;
                    }
                    ask(connect());
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        }
        let mut unread = String::new();
        for _ in 0..2000 {
            let mut silent = connect();
            silent.set_read_timeout(Some(Duration::from_millis(30))).expect("a timeout");
            if silent.read_to_string(&mut unread).is_ok() {
                break;
            }
            silent.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            ask(silent);
        }
        enough.store(true, SeqCst);
        unread
    });
    assert_eq!(status(&unread), 503, "{unread}");
    assert_eq!(field(&unread, "x-plimsoll"), Some("level=0; reason=overload"));
    assert_eq!(field(&unread, "connection"), Some("close"));
    assert!(field(&unread, "retry-after").is_some_and(|seconds| seconds.parse::<u64>().is_ok()));
    settled(&gateway);
    let status = gateway.status();
    let arrivals: u64 = status.classes.iter().map(|class| class.counts.arrivals).sum();
    let reasons: u64 = status.classes.iter().flat_map(|class| class.counts.reasons).sum();
    assert_eq!((arrivals + 1, reasons), (number.load(SeqCst).into(), arrivals), "each is counted once");
}
