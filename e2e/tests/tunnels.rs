//! Upgraded connections (WebSocket) have a bound of their own, hold no place at the server, and are shown.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Plimsoll, get, serving_each};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ATTACK: usize = 300;
const MOST: usize = 20;

/// A server that upgrades whatever asks for it, and answers everything else with a page.
fn upgrading() -> SocketAddr {
    serving_each(serve)
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut upgrades = false;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        upgrades |= line.to_ascii_lowercase().starts_with("upgrade:");
        if line == "\r\n" && upgrades {
            stream.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            )?;
            return std::io::copy(&mut reader, &mut stream).map(drop);
        }
        if line == "\r\n" {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage")?;
        }
        line.clear();
    }
    Ok(())
}

/// Asks for an upgrade; returns the status, and the connection, which stays open.
fn upgrade(gateway: SocketAddr) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(gateway).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
    let head = "GET /socket HTTP/1.1\r\nHost: e2e.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("it takes a head");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer");
    let status = String::from_utf8_lossy(&answer[9..]).parse().expect("a status");
    (status, stream)
}

#[test]
fn three_hundred_upgraded_connections_are_bounded_and_leave_everybody_else_served() {
    let file = before(upgrading(), &plain()).replace("workers = 8", "workers = 2");
    let file = file.replace("max_connections = 8", &format!("max_connections = 2\nmax_tunnels = {MOST}"));
    let gateway = Plimsoll::run(&file);
    let attack: Vec<_> = (0..ATTACK).map(|_| upgrade(gateway.address)).collect();
    let with = |wanted: u16| attack.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!((with(101), with(503)), (MOST, ATTACK - MOST));
    assert_eq!(gateway.metric("plimsoll_tunnels"), MOST as f64);
    assert!(gateway.ask_admin("/status").text().contains(&format!("\"tunnels\": {MOST}")));
    for _ in 0..20 {
        let page = get(gateway.address, "/page");
        assert_eq!((page.status, page.text().as_str()), (200, "page"));
    }
    drop(attack);
    gateway.wait_for_metric("plimsoll_tunnels", 0.0);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert_eq!(upgrade(gateway.address).0, 101);
}

/// Where the server gives a worker to each upgraded connection, the gateway counts it among what is in service, and as a
/// stream: half of the places at most.
#[test]
fn upgraded_connections_that_keep_their_places_leave_some_to_everybody_else() {
    for (keys, in_service) in [("", 0.0), ("\ntunnels_keep_places = true", 2.0)] {
        let places = format!("max_connections = 4{keys}");
        let file = before(upgrading(), &plain()).replace("workers = 8", "workers = 4");
        let gateway = Plimsoll::run(&file.replace("max_connections = 8", &places));
        let held: Vec<_> = (0..2).map(|_| upgrade(gateway.address)).collect();
        assert!(held.iter().all(|(status, _)| *status == 101), "{keys}");
        assert_eq!(gateway.metric("plimsoll_in_service"), in_service, "{keys}");
        let third = upgrade(gateway.address).0;
        assert_eq!(third, if keys.is_empty() { 101 } else { 503 }, "{keys}");
        for _ in 0..20 {
            let page = get(gateway.address, "/page");
            assert_eq!((page.status, page.text().as_str()), (200, "page"), "{keys}");
        }
        drop(held);
        gateway.wait_for_metric("plimsoll_in_service", 0.0);
        gateway.wait_for_metric("plimsoll_tunnels", 0.0);
        assert_eq!(upgrade(gateway.address).0, 101, "{keys}");
    }
}
