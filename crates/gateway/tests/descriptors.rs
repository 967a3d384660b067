//! A process out of file descriptors. The test is a program of its own, since it takes all descriptors.
//!
//! A check of the server takes a descriptor for a moment, and gives it back. Which one that is, and when, is nothing that the
//! test may depend on: the server has descriptors of its own, so that no check fails for want of one there; and the test waits
//! until it has every descriptor that the process does not need, which is so only while no check is under way. From then on
//! none can begin.

mod support;

use nix::sched::{CloneFlags, unshare};
use plimsoll_gateway::settings::{Backend, HealthCheck, UpstreamSettings};
use plimsoll_gateway::{Gateway, Settings};
use socket2::{Domain, Type};
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::*;

const DESCRIPTORS: usize = 256;

/// A server whose threads have a table of descriptors of their own, and the number of its connections.
fn apart() -> (SocketAddr, Arc<AtomicUsize>) {
    let (tell, told) = mpsc::channel();
    let accepted = Arc::<AtomicUsize>::default();
    let count = accepted.clone();
    std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_FILES).expect("a table of its own");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        tell.send(listener.local_addr().expect("its address")).expect("the test waits");
        for stream in listener.incoming() {
            count.fetch_add(1, SeqCst);
            let mut peer = Peer::new(stream.expect("there are descriptors"));
            // Its threads have the table of the one that starts them.
            std::thread::spawn(move || while peer.head().is_some() && peer.send_response(b"x").is_ok() {});
        }
    });
    (told.recv().expect("an address"), accepted)
}

/// How many descriptors stay open: the fewest in a while, since the gateway opens files for a moment, to read of its machine.
/// The folder that is counted is open itself.
fn open() -> usize {
    let count = |_| {
        std::thread::sleep(Duration::from_millis(5));
        std::fs::read_dir("/proc/self/fd").expect("the folder").count() - 1
    };
    (0..100).map(count).min().unwrap_or(0)
}

#[test]
fn out_of_descriptors_is_our_failure_and_passes() {
    let (origin, accepted) = apart();
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = Some(DESCRIPTORS as u64);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("fewer open files");
    let checked_every = |interval| {
        // However long an answer takes, it is one.
        let timeout = 10 * PATIENCE;
        let check = HealthCheck { interval, timeout, failures: 1, successes: 1000, ..HealthCheck::default() };
        let checked = UpstreamSettings { check: Some(check), ..UpstreamSettings::new(vec![origin.into()]) };
        Settings {
            admin: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            backends: vec![Backend::Upstream(checked)],
            threads: 4,
            ..settings(&[])
        }
    };
    // No check comes before all that stays open is counted.
    let rarely = Duration::from_secs(100_000_000);
    let gateway = Gateway::start(checked_every(rarely), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    eventually("it is accepted", || gateway.client_connections() == 1);
    let new = |_| socket2::Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let sockets: Vec<_> = (0..4).map(new).collect();
    let needed = open();
    assert_eq!(accepted.load(SeqCst), 0, "nothing was checked");
    let interval = Duration::from_millis(100);
    gateway.reloader().reload(checked_every(interval), &promises(8)).expect("nothing is wrong");
    eventually("it is checked", || accepted.load(SeqCst) > 1);
    let all = std::cell::RefCell::new(Vec::new());
    eventually("all descriptors are taken, and no check is under way", || {
        let mut all = all.borrow_mut();
        while let Ok(file) = File::open("/dev/null") {
            all.push(file);
        }
        all.len() == DESCRIPTORS - needed
    });
    assert_eq!(client.get("/").0, 503);
    std::thread::sleep(10 * interval);
    // A connection that comes takes the place of the one that is idle, whichever thread has either.
    let (mut late, mut ended) = (client, Vec::new());
    for socket in sockets {
        socket.connect(&address(&gateway).into()).expect("there is room in the queue");
        let mut last = std::mem::replace(&mut late, Peer::new(socket.into()));
        assert!([200, 503].contains(&late.get("/").0));
        assert_eq!(last.stream.read(&mut [0]).expect("its end"), 0, "it was idle");
        // It keeps its descriptor, which the next one would take.
        ended.push(last);
    }
    let news = gateway.faults();
    assert!(news.iter().any(|news| news.text.starts_with("connections wait")), "{news:?}");
    drop(all);
    assert_eq!(upstream(&gateway)["servers"][0]["state"], "healthy", "its checks found nothing out");
    assert_eq!(late.get("/"), (200, b"x".to_vec()));
    assert_eq!(gateway.faults(), [], "once");
    settled(&gateway);
}
