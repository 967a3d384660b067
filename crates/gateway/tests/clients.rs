//! Clients that are slow, many, or in nobody's way: what they may hold, and for how long.

mod support;

use plimsoll_gateway::files::FilesSettings;
use plimsoll_gateway::settings::{Backend, Rewrite};
use plimsoll_gateway::{Gateway, Settings};
use std::time::{Duration, Instant};
use support::*;

/// Sends `byte` again and again, far apart, until an answer or the end comes.
fn drip(client: &mut Peer, byte: &str) {
    client.stream.get_ref().set_read_timeout(Some(Duration::from_millis(50))).expect("a short look");
    let end = Instant::now() + PATIENCE;
    let mut first = [0];
    while client.stream.get_ref().peek(&mut first).is_err() {
        assert!(Instant::now() < end, "it may drip for ever");
        let _ = client.send(byte);
    }
    client.stream.get_ref().set_read_timeout(Some(PATIENCE)).expect("a long look");
}

#[test]
fn a_body_that_drips_does_not_hold_its_place_for_ever() {
    let origin =
        Origin::start(|mut peer| while peer.head().is_some_and(|head| peer.body(&head).is_empty()) {});
    let mut settings = settings(&[origin.address]);
    settings.timeouts.body_idle = Duration::from_millis(800);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9000\r\n\r\n").expect("sent");
    drip(&mut client, "x");
    assert_eq!(client.answer().0, 408);
    settled(&gateway);
}

#[test]
fn who_reads_a_file_slowly_holds_no_place() {
    let root = std::env::temp_dir().join(format!("plimsoll-clients-{}", std::process::id()));
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::write(root.join("big.bin"), vec![7; 30_000_000]).expect("a file");
    let settings = Settings {
        backends: vec![Backend::Files(FilesSettings::new(&root))],
        rewrites: vec![vec![Rewrite::default()]],
        ..settings(&[])
    };
    let gateway = Gateway::start(settings, &promises(1)).expect("a gateway");
    let mut slow = client(&gateway);
    slow.send("GET /big.bin HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    let head = slow.head().expect("an answer");
    eventually("its place is free", || gateway.status().plants[0].in_service == 0);
    assert_eq!(in_flight(&gateway), 1);
    assert_eq!(slow.body(&head).len(), 30_000_000);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.bytes).sum::<u64>(), 30_000_000);
    std::fs::remove_dir_all(root).expect("removed");
}
