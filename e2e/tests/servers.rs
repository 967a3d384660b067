//! The servers of the scenarios, without Plimsoll: that they serve, and what differs between the trees. That they fail
//! alone where they should is checked by the scenarios themselves.

use plimsoll_e2e::{Apache, Nginx, get};
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
