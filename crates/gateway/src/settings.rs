//! What the gateway is told: the mirror of the configuration's gateway section, as plain data.
//!
//! Everything that decides is in [`Promises`](plimsoll_core::promises::Promises); here is how bytes move. The lists
//! `backends` and `rewrites` are parallel to the promises' plants and sites.

use crate::files::FilesSettings;
use plimsoll_core::promises::Network;
use std::net::SocketAddr;
use std::time::Duration;

/// How the gateway is to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where clients connect. Port 0 picks a free one.
    pub listen: Vec<SocketAddr>,
    /// Where `/metrics`, `/status` and `/healthz` are served; `None` for nowhere.
    pub admin: Option<SocketAddr>,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// Proxies whose forwarding fields are believed.
    pub trusted_proxies: Vec<Network>,
    /// Which forwarding fields upstreams get.
    pub forwarded: ForwardedFields,
    /// The response header with level and reason.
    pub report: Report,
    /// What a rejected client gets.
    pub rejection: Rejection,
    /// The bounds of messages.
    pub limits: Limits,
    /// How long the gateway waits for what.
    pub timeouts: Timeouts,
    /// What serves each plant, parallel to `Promises::plants`.
    pub backends: Vec<Backend>,
    /// How each level rewrites requests: by site (parallel to `Promises::sites`), then by level, lowest first.
    /// A missing entry rewrites nothing.
    pub rewrites: Vec<Vec<Rewrite>>,
    /// The key of the client hash: the same on every instance and after a restart, so that clients keep their level.
    pub hash_seed: u64,
}

/// Which fields tell the upstream who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    #[default]
    XForwarded,
    /// `Forwarded`, RFC 7239.
    Forwarded,
    /// Both.
    Both,
    /// None.
    None,
}

impl ForwardedFields {
    pub(crate) fn x_forwarded(self) -> bool {
        matches!(self, ForwardedFields::XForwarded | ForwardedFields::Both)
    }
    pub(crate) fn forwarded(self) -> bool {
        matches!(self, ForwardedFields::Forwarded | ForwardedFields::Both)
    }
}

/// The response header that tells level and reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// On which responses.
    pub mode: ReportMode,
    /// Its name.
    pub name: String,
}

impl Report {
    /// The name that upstreams may not use; empty if no response carries the report.
    pub(crate) fn reserved_name(&self) -> &str {
        if self.mode == ReportMode::Off { "" } else { &self.name }
    }
}

impl Default for Report {
    fn default() -> Self {
        Report { mode: ReportMode::Rejections, name: "x-plimsoll".to_owned() }
    }
}

/// Which responses carry the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportMode {
    /// None.
    Off,
    /// Those that turn a request away.
    #[default]
    Rejections,
    /// All.
    Always,
}

/// The answer to a rejected request.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// Its status code.
    pub status: u16,
    /// Its `content-type`.
    pub content_type: String,
    /// Its body.
    pub body: String,
}

impl Default for Rejection {
    fn default() -> Self {
        Rejection {
            status: 503,
            content_type: "text/plain; charset=utf-8".to_owned(),
            body: "The site is busy. Please try again in a moment.\n".to_owned(),
        }
    }
}

/// The bounds of messages and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The longest head of a request, up to 64 KiB; a longer one gets 431.
    pub head_bytes: usize,
    /// The longest body of a request; a longer one gets 413.
    pub body_bytes: u64,
    /// The most client connections. A new one above it takes the place of the longest idle one, or waits in the
    /// kernel's queue while there is none.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head_bytes: 32 * 1024, body_bytes: 1 << 30, connections: 50_000 }
    }
}

/// How long the gateway waits. All are coarse: they are looked at ten times a second.
///
/// `body_idle` and `send` are accounts of time while a request holds a place of its plant: 1 KiB moved gives a second
/// back, up to the whole limit. So a client that drips, at less than 1 KiB a second on average, is given up about one
/// limit after it began to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// For a whole request head, from its first byte (408).
    pub head: Duration,
    /// For the next bytes of a request body, at 1 KiB a second at least (408).
    pub body_idle: Duration,
    /// For the next request on a connection.
    pub keep_alive: Duration,
    /// For a client to take the next bytes of its response; at 1 KiB a second at least while it is being read from an
    /// upstream.
    pub send: Duration,
    /// For a connection to an upstream (502, or the next address).
    pub connect: Duration,
    /// For the first byte of an upstream's response (504).
    pub first_byte: Duration,
    /// For the next bytes of an upstream's response, or for it to take the next bytes of a request.
    pub upstream_idle: Duration,
    /// How long a connection to an upstream may wait for its next request. Below the upstream's own limit.
    pub upstream_keep_alive: Duration,
    /// For any byte, either way, on an upgraded connection.
    pub tunnel_idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            keep_alive: Duration::from_secs(60),
            send: Duration::from_secs(30),
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(60),
            upstream_idle: Duration::from_secs(30),
            upstream_keep_alive: Duration::from_secs(4),
            tunnel_idle: Duration::from_secs(3600),
        }
    }
}

/// What serves a plant.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// One server, or several that are alike.
    Upstream {
        /// Their addresses.
        addresses: Vec<SocketAddr>,
    },
    /// A folder.
    Files(FilesSettings),
}

/// How a level changes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Put before the path: the root of the level's content tree, such as `/light`.
    pub prefix: String,
    /// Fields set on the request, replacing the client's of the same name.
    pub headers: Vec<(String, String)>,
    /// What the upstream does not have at this level is asked of it as the next level has it.
    pub falls_back: bool,
}
