//! The engine through its request API, as a shell drives it.

mod choice;
mod come_again;
mod deadlines;
mod exempt;
mod idle;
mod put_off;
mod reload;
mod request_api;
mod shed;

use plimsoll_core::promises::Promises;
use plimsoll_core::request::RequestView;
use plimsoll_core::time::Instant;
use plimsoll_core::{Engine, Lane};
use std::net::{IpAddr, Ipv4Addr};

/// A request.
#[derive(Clone, Copy)]
struct Request {
    method: &'static str,
    host: &'static str,
    path: &'static str,
    query: &'static str,
    client: u32,
    /// The value of the header `x-cost`.
    cost: Option<&'static str>,
    trusted: bool,
}

/// A GET request for the only site, from this client.
fn get(path: &'static str, client: u32) -> Request {
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

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// An engine with one lane.
fn engine(promises: &Promises) -> (Engine, Lane) {
    let (engine, mut lanes) = Engine::new(promises, 1, 42).expect("valid promises");
    (engine, lanes.pop().expect("one lane"))
}
