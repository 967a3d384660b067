//! A process out of file descriptors. The test is a program of its own, since it takes all descriptors.

mod support;

use plimsoll_gateway::settings::{Backend, HealthCheck, UpstreamSettings};
use plimsoll_gateway::{Gateway, Settings};
use socket2::{Domain, Type};
use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use support::*;

#[test]
fn out_of_descriptors_is_our_failure_and_passes() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = Some(256);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("fewer open files");
    let origin = Origin::serving(b"x");
    let interval = Duration::from_millis(100);
    let check = Some(HealthCheck { interval, failures: 1, successes: 1000, ..HealthCheck::default() });
    let checked = UpstreamSettings { check, ..UpstreamSettings::new(vec![origin.address.into()]) };
    let settings = Settings {
        admin: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        backends: vec![Backend::Upstream(checked)],
        ..settings(&[])
    };
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    eventually("it is accepted", || gateway.client_connections() == 1);
    eventually("it is checked", || origin.accepted.load(SeqCst) > 1);
    let late = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let mut all = Vec::new();
    let mut take_all = || {
        while let Ok(file) = File::open("/dev/null") {
            all.push(file);
        }
    };
    take_all();
    assert_eq!(client.get("/").0, 503);
    std::thread::sleep(10 * interval);
    // What the last check had.
    take_all();
    // A connection that comes takes the place of one that is idle.
    late.connect(&address(&gateway).into()).expect("there is room in the queue");
    let mut late = Peer::new(late.into());
    assert!([200, 503].contains(&late.get("/").0));
    assert_eq!(client.rest(), b"", "it was idle");
    let news = gateway.faults();
    assert!(news.iter().any(|news| news.text.starts_with("connections wait")), "{news:?}");
    drop(all);
    assert_eq!(upstream(&gateway)["servers"][0]["state"], "healthy", "its checks found nothing out");
    assert_eq!(late.get("/"), (200, b"x".to_vec()));
    assert_eq!(gateway.faults(), [], "once");
    settled(&gateway);
}
