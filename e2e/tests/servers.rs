//! The servers of the scenarios, without Plimsoll: that they serve, what they can carry, and that they fail beyond it.
//! A server that did not fail would make every scenario with the gateway pass.

use plimsoll_e2e::page::capacity;
use plimsoll_e2e::{Apache, Nginx, get, overload};
use std::path::Path;

#[test]
fn apache_serves_both_trees_and_keeps_connections_only_for_the_gateway() {
    let apache = Apache::start(Path::new(env!("CARGO_BIN_EXE_page-cgi")));
    let (full, light) = (get(apache.direct, "/page"), get(apache.upstream, "/light/page"));
    assert_eq!((full.status, light.status), (200, 200), "{}\n{}", full.text(), light.text());
    assert!(full.text().contains("full") && light.text().contains("light"));
    assert!(light.body.len() * 3 < full.body.len());
}

#[test]
fn nginx_serves_both_trees() {
    let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
    let (full, light) = (get(nginx.address, "/page"), get(nginx.address, "/light/page"));
    assert_eq!((full.status, light.status), (200, 200), "{}\n{}", full.text(), light.text());
    assert!(full.text().contains("full") && light.text().contains("light"));
}

#[test]
fn apache_alone_fails_soon_above_its_capacity() {
    let apache = Apache::start(Path::new(env!("CARGO_BIN_EXE_page-cgi")));
    let rate = overload::starts_to_fail(apache.direct);
    assert!(rate > 0.8 * capacity() && rate < 1.6 * capacity(), "it starts to fail at {rate:.0}/s");
}

#[test]
fn nginx_alone_fails_soon_above_the_capacity_of_its_application() {
    let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
    let rate = overload::starts_to_fail(nginx.address);
    assert!(rate > 0.8 * capacity() && rate < 1.6 * capacity(), "it starts to fail at {rate:.0}/s");
}
