//! What serves a plant: the servers of an upstream, or a folder of files.

use super::{Address, FilesSettings, UpstreamTls};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What serves a plant.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// One server, or several equivalent ones.
    Upstream(UpstreamSettings),
    /// A folder of files.
    Files(FilesSettings),
}

/// The servers of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// The addresses of its servers.
    pub addresses: Vec<Address>,
    /// How TLS is spoken with the servers; `None` if it is not.
    pub tls: Option<UpstreamTls>,
    /// Whether HTTP/2 is spoken with the servers: over TLS if they agree to it, without TLS always.
    pub http2: bool,
    /// The time over which a server's share grows after it has come into use.
    pub slow_start: Duration,
    /// The active health check of the servers, if there is one.
    pub check: Option<HealthCheck>,
    /// The host that is sent to the servers in place of the client's.
    pub host: Option<String>,
}

impl UpstreamSettings {
    /// The servers at these addresses, with HTTP/1.1, without TLS and without checks.
    pub fn new(addresses: Vec<Address>) -> Self {
        let slow_start = Duration::from_secs(10);
        UpstreamSettings { addresses, tls: None, http2: false, slow_start, check: None, host: None }
    }
}

/// The rule by which the health of a server is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// The path that the check asks for.
    pub path: String,
    /// The host that the check names; `None` for the server's own name or address.
    pub host: Option<String>,
    /// The statuses of a good answer.
    pub statuses: RangeInclusive<u16>,
    /// The mean time from one check to the next.
    pub interval: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// After how many failures in a row a server is out of use.
    pub failures: u32,
    /// After how many successes in a row it is in use again.
    pub successes: u32,
}

impl Default for HealthCheck {
    fn default() -> Self {
        HealthCheck {
            path: "/".to_owned(),
            host: None,
            statuses: 200..=399,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            failures: 3,
            successes: 2,
        }
    }
}
