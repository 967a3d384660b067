//! The servers of the scenes, without Plimsoll: that they serve, and what differs between the trees. That they fail alone where
//! they should is checked by the scenes' twins.

use plimsoll_e2e::{Apache, Nginx, SLOW_PAGES, get};
use std::net::SocketAddr;
use std::path::Path;

const PAGE: &str = env!("CARGO_BIN_EXE_page");

fn serves_both_trees(full: SocketAddr, light: SocketAddr) {
    let (full, light) = (get(full, "/page"), get(light, "/light/page"));
    assert_eq!((full.status, light.status), (200, 200), "{}\n{}", full.text(), light.text());
    assert!(full.text().contains("full") && light.text().contains("light"));
    assert!(light.body.len() * 3 < full.body.len());
}

#[test]
fn apache_serves_both_trees_at_both_ports() {
    let apache = Apache::pages(Path::new(PAGE), SLOW_PAGES);
    serves_both_trees(apache.direct, apache.upstream);
}

#[test]
fn nginx_serves_both_trees() {
    let nginx = Nginx::pages(Path::new(PAGE), SLOW_PAGES);
    serves_both_trees(nginx.address, nginx.address);
}
