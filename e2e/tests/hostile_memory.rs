//! What hostile clients of every kind make the gateway hold has a bound, others are served meanwhile, and it goes back.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::hostile::{Hostile, open_many_files, resident, server};
use plimsoll_e2e::{Plimsoll, get};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// A tenth of what there may be unless said.
const CONNECTIONS: usize = 5_000;
/// A tenth of what is bounded unless said, in MiB: heads, and what else is held for clients that are waited for.
const LIMITS: &str =
    "\n[limits]\nhead_memory = \"6.4 MiB\"\nbuffer_memory = \"12.8 MiB\"\nbuffer_files = \"40 MiB\"\n";
/// A tenth of a gigabyte, which it holds at most while such clients are there. It has room for both bounds, for buffers that
/// are kept for the next burst, and 8 KiB a connection.
const MOST: u64 = 100_000_000;
/// While they come as fast as they can it may hold more for moments: what those had that were given up goes back to the system
/// every five seconds at most.
const MOST_FOR_MOMENTS: u64 = 2 * MOST;
const WORKERS: usize = 8;

/// The most that it held while such clients came, after others were served beside them; then they leave.
fn held(kinds: &[Hostile]) -> u64 {
    open_many_files();
    let gateway = Plimsoll::run(&(before(server(WORKERS), &plain()) + LIMITS));
    assert_eq!(get(gateway.address, "/").text(), "page");
    let before = resident(&gateway);
    let mut clients: Vec<TcpStream> = Vec::with_capacity(CONNECTIONS);
    let mut most = 0;
    for number in 0..CONNECTIONS {
        // The gateway may give one up while it is still sending.
        clients.extend(kinds[number % kinds.len()].begin(gateway.address));
        if number % 100 == 0 {
            most = most.max(resident(&gateway) - before);
        }
    }
    for _ in 0..10 {
        // What such clients ask for is load too, of which the last may still be under way.
        let since = Instant::now();
        while get(gateway.address, "/").text() != "page" {
            assert!(since.elapsed() < Duration::from_secs(10), "others are not served beside {kinds:?}");
        }
        most = most.max(resident(&gateway) - before);
        thread::sleep(Duration::from_millis(100));
    }
    let settles = Instant::now();
    while resident(&gateway) > before + MOST {
        assert!(
            settles.elapsed() < Duration::from_secs(30),
            "{} MiB for {kinds:?}",
            (resident(&gateway) - before) >> 20
        );
        thread::sleep(Duration::from_millis(100));
    }
    drop(clients);
    let gone = Instant::now();
    while resident(&gateway) > before + MOST / 5 {
        let left = (resident(&gateway) - before) >> 20;
        assert!(gone.elapsed() < Duration::from_secs(30), "{left} MiB of {} MiB are still there", most >> 20);
        thread::sleep(Duration::from_millis(100));
    }
    println!("{kinds:?}: {} MiB, gone in {:?}", most >> 20, gone.elapsed());
    most
}

fn are_bounded(kinds: &[Hostile]) {
    let most = held(kinds);
    assert!(most < MOST_FOR_MOMENTS, "{} MiB for {kinds:?}", most >> 20);
}

#[test]
fn heads_that_do_not_end() {
    are_bounded(&[Hostile::UnfinishedHead]);
}

#[test]
fn heads_that_lack_one_byte_of_a_body() {
    are_bounded(&[Hostile::HeadWithoutByte]);
}

#[test]
fn bodies_that_stall() {
    are_bounded(&[Hostile::StalledBody]);
}

#[test]
fn readers_that_stand() {
    are_bounded(&[Hostile::StandingReader]);
}

#[test]
fn all_kinds_together() {
    are_bounded(&Hostile::ALL);
}
