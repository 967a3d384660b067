//! Clients that begin heads and do not end them hold little memory, and none once they are gone.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Plimsoll, answering, get};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A head of this length lacks its end.
const UNFINISHED: usize = 17_000;
const MIB: u64 = 1 << 20;

fn gateway(more: &str) -> Plimsoll {
    Plimsoll::run(&(before(answering(|_| "page"), &plain()) + more))
}

fn unfinished() -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: e2e.test\r\nCookie: ".to_vec();
    head.resize(UNFINISHED, b'x');
    head
}

fn begin(gateway: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(gateway).expect("a connection");
    stream.write_all(&unfinished()).expect("a place for the head in the socket");
    stream
}

/// The memory that a process has now, in bytes.
fn resident(gateway: &Plimsoll) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{}/statm", gateway.process.pid())).expect("its memory");
    let pages: u64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}

#[test]
fn the_memory_of_three_thousand_is_bounded_and_goes_back() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of descriptors");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("more descriptors");
    let gateway = gateway("\n[limits]\nhead_memory = \"8 MiB\"\n");
    assert_eq!(get(gateway.address, "/").text(), "page");
    let before = resident(&gateway);
    let heads: Vec<TcpStream> = (0..3_000).map(|_| begin(gateway.address)).collect();
    let held = resident(&gateway) - before;
    assert!(held < 40 * MIB, "{} KiB for each of {} heads", held / 1024 / heads.len() as u64, heads.len());
    assert_eq!(get(gateway.address, "/").text(), "page", "others are served");
    drop(heads);
    let gone = Instant::now();
    while resident(&gateway) > before + 10 * MIB {
        let left = (resident(&gateway) - before) / MIB;
        assert!(gone.elapsed() < Duration::from_secs(30), "{left} MiB of {} MiB are still there", held / MIB);
        thread::sleep(Duration::from_millis(100));
    }
}

/// Two threads share the bound: the oldest of three on a thread is given up, and the last goes on.
#[test]
fn the_oldest_is_closed_and_the_newest_goes_on() {
    let gateway = gateway("\n[limits]\nhead_memory = \"80 KB\"\n");
    let mut heads: Vec<TcpStream> = (0..8)
        .map(|_| {
            thread::sleep(Duration::from_millis(50));
            begin(gateway.address)
        })
        .collect();
    let mut newest = heads.pop().expect("a head");
    let mut text = String::new();
    let mut oldest = heads.remove(0);
    oldest.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    oldest.read_to_string(&mut text).expect("an answer before its own time is over");
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    newest.write_all(b"\r\nConnection: close\r\n\r\n").expect("the rest of the head");
    let mut text = String::new();
    newest.read_to_string(&mut text).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}
