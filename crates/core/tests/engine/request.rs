//! A request of the tests.

use plimsoll_core::request::RequestView;
use std::net::{IpAddr, Ipv4Addr};

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) host: &'static str,
    pub(crate) path: &'static str,
    pub(crate) query: &'static str,
    pub(crate) client: u32,
    /// The value of the header `x-cost`.
    pub(crate) cost: Option<&'static str>,
    pub(crate) trusted: bool,
}

/// A GET request for the only site, from this client.
pub(crate) fn get(path: &'static str, client: u32) -> Request {
    Request { method: "GET", host: "h", path, query: "", client, cost: None, trusted: true }
}

impl RequestView for Request {
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
        self.cost.filter(|_| name == "x-cost")
    }
    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.client))
    }
    fn is_trusted(&self) -> bool {
        self.trusted
    }
}
