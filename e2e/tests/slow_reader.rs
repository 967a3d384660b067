//! An honest client that takes its response slowly is not cut, although the gateway's socket accepts bytes in large steps.

use plimsoll_e2e::Plimsoll;
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::hostile::{connect, server};
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

/// What it takes in a second. Within `send` that is less than the socket accepts in one step, and eight times the floor.
const RATE: f64 = 8_000.0;
const SEND: Duration = Duration::from_secs(4);

#[test]
fn eight_kilobytes_a_second_are_enough() {
    let gateway = Plimsoll::run(&(before(server(2), &plain()) + "\n[timeouts]\nsend = \"4s\"\n"));
    let mut client = connect(gateway.address).expect("a connection");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
    client
        .write_all(b"GET /large HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n")
        .expect("it takes a head");
    let (start, mut took) = (Instant::now(), 0);
    let mut some = [0; 500];
    while start.elapsed() < SEND * 4 {
        if (took as f64) < RATE * start.elapsed().as_secs_f64() {
            let count = client.read(&mut some).expect("it is not cut");
            assert!(count > 0, "cut after {took} bytes and {:?}", start.elapsed());
            took += count;
        } else {
            thread::sleep(Duration::from_millis(10));
        }
    }
    took += std::io::copy(&mut client, &mut std::io::sink()).expect("the rest") as usize;
    assert!(took > 400_000, "{took} bytes of a head and the page");
}
