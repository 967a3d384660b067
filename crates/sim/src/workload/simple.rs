//! Constructors of pages, arrivals and streams that set only the essential properties and leave the rest at defaults.

use super::{
    Arrivals, Clients, Content, Input, Law, LogFormat, LogOptions, Page, Phase, Process, Replay, Stream,
};
use plimsoll_core::time::Duration;

impl Page {
    /// A `GET` for this path with this many bytes. It names no host, and its service time is the server's.
    pub fn new(path: impl Into<String>, bytes: f64) -> Self {
        Page {
            method: "GET".to_owned(),
            host: String::new(),
            path: path.into(),
            headers: Vec::new(),
            weight: 1.0,
            bytes,
            bytes_law: Law::Deterministic,
            service: None,
            service_law: None,
        }
    }
}

impl Arrivals {
    /// A constant rate (1/s) from the beginning to the end.
    pub fn steady(process: Process, rate: f64) -> Self {
        Arrivals::Process { process, rate: vec![Phase { from: Duration::ZERO, rate, to: None }] }
    }

    /// The requests of a log in any known format.
    pub fn log(input: Input, replay: Replay) -> Self {
        Arrivals::Log { input, format: LogFormat::Auto, options: LogOptions::default(), replay }
    }
}

impl Stream {
    /// Requests for these pages by this many equal clients, with addresses from 10.0.0.0 on. Clients wait as long as it takes,
    /// and do not retry.
    pub fn new(name: impl Into<String>, arrivals: Arrivals, pages: Vec<Page>, clients: u32) -> Self {
        Stream {
            name: name.into(),
            arrivals,
            content: Content::Pages(pages),
            clients: Clients { count: clients, skew: 1.0, first_address: 0x0a00_0000 },
            patience: None,
            retry: None,
        }
    }
}
