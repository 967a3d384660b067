//! A request for tests.

use super::RequestView;
use core::net::IpAddr;

/// What a test's request shows.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) client: &'a str,
}

/// A GET request without query or headers.
pub(super) fn get<'a>(host: &'a str, path: &'a str) -> Request<'a> {
    Request { method: "GET", host, path, query: "", headers: &[], client: "10.1.2.3" }
}

impl RequestView for Request<'_> {
    fn method(&self) -> &str {
        self.method
    }
    fn host(&self) -> &str {
        self.host
    }
    fn path(&self) -> &str {
        self.path
    }
    fn query(&self) -> &str {
        self.query
    }
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| *v)
    }
    fn client(&self) -> IpAddr {
        self.client.parse().expect("an address")
    }
}
