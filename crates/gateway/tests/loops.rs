//! Gateways whose upstreams lead back to them: a request that comes back is answered at once, and nothing hangs.

use crate::support::*;
use plimsoll_gateway::Gateway;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock, mpsc};
use std::{io, thread};

/// A relay of bytes to an address that is not known before the gateway in front of it listens.
fn relay_to(target: Arc<OnceLock<SocketAddr>>) -> Origin {
    Origin::start(move |peer| {
        let client = peer.stream.into_inner();
        let Some(Ok(server)) = target.get().map(TcpStream::connect) else { return };
        let (Ok(mut from), Ok(mut to)) = (client.try_clone(), server.try_clone()) else { return };
        let up = thread::spawn(move || io::copy(&mut from, &mut to));
        let (mut from, mut to) = (server, client);
        drop(io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Both));
        drop(up.join());
    })
}

fn answer(gateway: &Gateway) -> (String, String) {
    let mut client = client(gateway);
    let head = client.ask_head("GET /x HTTP/1.1\r\nHost: test\r\n\r\n");
    let body = client.body(&head);
    (head, String::from_utf8(body).expect("text"))
}

#[test]
fn a_gateway_that_is_its_own_upstream_answers_508() {
    let own = Arc::<OnceLock<SocketAddr>>::default();
    let relay = relay_to(own.clone());
    let gateway = gateway(&relay);
    own.set(address(&gateway)).expect("set once");
    let (head, body) = answer(&gateway);
    assert_eq!(status(&head), 508, "{head}");
    assert!(head.starts_with("HTTP/1.1 508 Loop Detected"), "{head}");
    assert!(body.contains("has passed this gateway before"), "{body}");
    assert!(
        field(&head, "cdn-loop").is_none() && !head.contains("plimsoll-"),
        "the mark stays inside: {head}"
    );
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 1, 0], "the outer request has the upstream's answer, an error");
}

#[test]
fn two_gateways_in_a_ring_are_found() {
    let own = Arc::<OnceLock<SocketAddr>>::default();
    let relay = relay_to(own.clone());
    let second = gateway(&relay);
    let first = Gateway::start(settings(&[address(&second)]), &promises(8)).expect("a gateway");
    own.set(address(&first)).expect("set once");
    let (head, _) = answer(&first);
    assert_eq!(status(&head), 508, "{head}");
    settled(&first);
    settled(&second);
    assert_eq!((outcomes(&first), outcomes(&second)), ([0, 1, 0], [0, 1, 0]));
}

/// Two gateways one behind the other are no loop, and the server sees both marks.
#[test]
fn a_chain_of_gateways_passes() {
    let (heads, seen) = mpsc::channel();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            drop(heads.send(head));
            drop(peer.send_response(b"hello"));
        }
    });
    let second = gateway(&origin);
    let first = Gateway::start(settings(&[address(&second)]), &promises(8)).expect("a gateway");
    assert_eq!(client(&first).get("/x"), (200, b"hello".to_vec()));
    let head = seen.recv_timeout(PATIENCE).expect("a head");
    assert_eq!(head.matches("cdn-loop: plimsoll-").count(), 2, "{head}");
}
