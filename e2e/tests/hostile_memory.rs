//! What hostile clients of every kind make the gateway hold has a bound, others are served meanwhile, and it goes back.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::hostile::{Hostile, open_many_files, peak, resident, server};
use plimsoll_e2e::{Plimsoll, get};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// A tenth of what there may be unless said.
const CONNECTIONS: usize = 5_000;
/// A tenth of what is bounded unless said, in MiB: heads, and what else is held for clients that are waited for.
const LIMITS: &str =
    "\n[limits]\nhead_memory = \"6.4 MiB\"\nbuffer_memory = \"12.8 MiB\"\nbuffer_files = \"40 MiB\"\n";
/// A tenth of a gigabyte. It has room for these bounds, for connections of HTTP/2, which may hold twice `buffer_memory`, and
/// for 8 KiB a connection.
const MOST: u64 = 100_000_000;
const WORKERS: usize = 8;
/// Each connection of HTTP/2 brings 128 requests.
const CONNECTIONS_WITH_STREAMS: usize = CONNECTIONS / 10;

/// The most that it held while such clients came, after others were served beside them; then they leave.
fn held(kinds: &[Hostile], connections: usize) -> u64 {
    open_many_files();
    let gateway = Plimsoll::run(
        &(before(server(WORKERS), &plain()) + LIMITS).replace("[gateway]", "[gateway]\nh2c = true"),
    );
    assert_eq!(get(gateway.address, "/").text(), "page");
    let before = resident(&gateway);
    let mut clients: Vec<TcpStream> = Vec::with_capacity(connections);
    for number in 0..connections {
        // The gateway may give one up while it is still sending.
        clients.extend(kinds[number % kinds.len()].begin(gateway.address));
    }
    for _ in 0..10 {
        // What such clients ask for is load too, of which the last may still be under way.
        let since = Instant::now();
        while get(gateway.address, "/").text() != "page" {
            assert!(since.elapsed() < Duration::from_secs(10), "others are not served beside {kinds:?}");
        }
        thread::sleep(Duration::from_millis(100));
    }
    let most = peak(&gateway) - before;
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

fn are_bounded(kinds: &[Hostile], connections: usize) {
    let most = held(kinds, connections);
    assert!(most < MOST, "{} MiB for {kinds:?}", most >> 20);
}

#[test]
fn heads_that_do_not_end() {
    are_bounded(&[Hostile::UnfinishedHead], CONNECTIONS);
}

#[test]
fn heads_that_lack_one_byte_of_a_body() {
    are_bounded(&[Hostile::HeadWithoutByte], CONNECTIONS);
}

#[test]
fn bodies_that_stall() {
    are_bounded(&[Hostile::StalledBody], CONNECTIONS);
}

#[test]
fn readers_that_stand() {
    are_bounded(&[Hostile::StandingReader], CONNECTIONS);
}

#[test]
fn all_kinds_together() {
    are_bounded(&Hostile::ALL, CONNECTIONS);
}

#[test]
fn streams_without_their_bodies() {
    are_bounded(&[Hostile::Streams], CONNECTIONS_WITH_STREAMS);
}
