//! A process out of file descriptors. The test is a program of its own, since it takes all descriptors.

mod support;

use std::fs::File;
use support::*;

#[test]
fn out_of_descriptors_is_our_failure_and_passes() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = Some(256);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("fewer open files");
    let origin = Origin::serving(b"x");
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    eventually("it is accepted", || gateway.client_connections() == 1);
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    assert_eq!(client.get("/").0, 503);
    drop(all);
    assert_eq!(client.get("/"), (200, b"x".to_vec()));
    settled(&gateway);
}
