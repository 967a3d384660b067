//! A request as it arrives: what a gateway sees of it, and the true cost that only the server knows.

use plimsoll_core::request::RequestView;
use plimsoll_core::time::Duration;
use std::net::{IpAddr, Ipv4Addr};

/// A request. One value is used again for many: a source overwrites it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The method as sent.
    pub method: String,
    /// The host without port; empty if the request names none.
    pub host: String,
    /// The path without query.
    pub path: String,
    /// The query without its question mark; empty if there is none.
    pub query: String,
    /// Request headers.
    pub headers: Vec<(String, String)>,
    /// The client's address; for a name in a log, an address made from the name.
    pub client: IpAddr,
    /// Body bytes of the response at full quality.
    pub bytes: u64,
    /// One worker's mean service time at full quality, if it differs from what the server takes for these bytes.
    pub service: Option<Duration>,
    /// The factor on the service time, drawn from its law with mean 1. It is drawn here and not at the server, so that two runs
    /// on the same arrivals meet the same work. `None`: it is drawn from the server's law.
    pub work: Option<f64>,
    /// How many more files of its page the user asks for after the answer; `None` if its users do not wait for answers.
    pub files_left: Option<u32>,
    /// The index in its stream of the page that the request was made from. Its host may since have been set to the default one.
    pub(crate) page: Option<usize>,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            method: String::new(),
            host: String::new(),
            path: String::new(),
            query: String::new(),
            headers: Vec::new(),
            client: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            bytes: 0,
            service: None,
            work: None,
            files_left: None,
            page: None,
        }
    }
}

impl Request {
    /// Copies another request into this one, using its buffers again.
    pub(crate) fn copy_from(&mut self, other: &Request) {
        set(&mut self.method, &other.method);
        set(&mut self.host, &other.host);
        set(&mut self.path, &other.path);
        set(&mut self.query, &other.query);
        self.headers.truncate(other.headers.len());
        for ((name, value), (other_name, other_value)) in self.headers.iter_mut().zip(&other.headers) {
            set(name, other_name);
            set(value, other_value);
        }
        self.headers.extend_from_slice(&other.headers[self.headers.len()..]);
        (self.client, self.bytes, self.page) = (other.client, other.bytes, other.page);
        (self.service, self.work, self.files_left) = (other.service, other.work, other.files_left);
    }
}

/// Copies one string into another, using its buffer again.
pub(crate) fn set(to: &mut String, from: &str) {
    // A string that never had text has a dangling pointer. If zero bytes are compared there, a processor whose `memcmp` reads
    // under a mask (AVX-512) asks its microcode whether the read may fault, which takes 160 ns.
    let both_empty = to.is_empty() && from.is_empty();
    if !both_empty && to != from {
        to.clear();
        to.push_str(from);
    }
}

impl RequestView for Request {
    fn method(&self) -> &str {
        &self.method
    }
    fn host(&self) -> &str {
        &self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn query(&self) -> &str {
        &self.query
    }
    fn header(&self, name: &str) -> Option<&str> {
        let named = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_str())
    }
    fn client(&self) -> IpAddr {
        self.client
    }
}
