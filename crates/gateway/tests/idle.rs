//! A thousand idle connections. The test is a program of its own, since it measures the memory of its process.

mod support;

use plimsoll_gateway::{Gateway, Settings};
use rustix::process::{Resource, getrlimit, setrlimit};
use support::*;

const CLIENTS: u64 = 1000;

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its line");
    line.split_whitespace().nth(1).and_then(|value| value.parse().ok()).expect("a number")
}

#[test]
fn a_thousand_idle_connections_are_small() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("more open files");
    // The body needs a large buffer, so that a buffer that a connection keeps would show.
    let body: &'static [u8] = vec![b'x'; 100_000].leak();
    let origin = Origin::serving(body);
    let settings = Settings { threads: 2, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut clients: Vec<Peer> = (0..CLIENTS).map(|_| client(&gateway)).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").0, 200);
    }
    settled(&gateway);
    assert_eq!(gateway.client_connections() as u64, CLIENTS);
    // The bound includes the clients' own buffers of 8 KiB each.
    let resident = resident_kib();
    assert!(resident < 40 * 1024, "{resident} KiB resident");
    // All connections still work.
    for client in &mut clients {
        assert_eq!(client.get("/").0, 200);
    }
}
