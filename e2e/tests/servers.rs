//! The servers of the scenes, without Plimsoll: that they serve, and what differs between the trees. That they fail alone where
//! they should is checked by the scenes' twins.

use crate::page;
use plimsoll_e2e::{Apache, Nginx, SLOW_PAGES, get};
use std::net::SocketAddr;

fn serves_both_trees(full: SocketAddr, light: SocketAddr) {
    let (full, light) = (get(full, "/page"), get(light, "/light/page"));
    assert_eq!((full.status, light.status), (200, 200), "{}\n{}", full.text(), light.text());
    assert!(full.text().contains("full") && light.text().contains("light"));
    assert!(light.body.len() * 3 < full.body.len());
}

#[test]
fn apache_serves_both_trees_at_both_ports() {
    let apache = Apache::pages(page(), SLOW_PAGES);
    serves_both_trees(apache.direct, apache.upstream);
}

#[test]
fn nginx_serves_both_trees() {
    let nginx = Nginx::pages(page(), SLOW_PAGES);
    serves_both_trees(nginx.address, nginx.address);
}
