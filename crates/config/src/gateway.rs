//! What the gateway is told, as plain data: where to listen, what to serve from, its limits and timeouts.
//!
//! The decisions' half is [`plimsoll_core::promises::Promises`]; [`Gateway::backends`] and [`Gateway::rewrites`] run
//! parallel to its plants and levels. The defaults stand here, and the reference is made from them.

pub(crate) mod addresses;
pub(crate) mod keys;
pub(crate) mod resolve;
mod values;

use crate::agent::HttpUrl;
use plimsoll_core::promises::Network;
use plimsoll_core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The gateway's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// Where clients connect. At least one.
    pub listen: Vec<SocketAddr>,
    /// Where `/metrics`, `/status` and `/healthz` are served; none if switched off.
    pub admin: Option<SocketAddr>,
    /// Worker threads; one per CPU if absent.
    pub threads: Option<usize>,
    /// Whose `Forwarded` and `X-Forwarded-For` are believed.
    pub trusted_proxies: Vec<Network>,
    /// Which request headers tell the upstream who asked.
    pub forwarded: Forwarded,
    /// The key of the hash that picks which clients get the better level.
    pub seed: u64,
    /// The response header that carries level and reason.
    pub report: Report,
    /// The answer to a rejected request.
    pub rejection: Rejection,
    /// What is too much.
    pub limits: Limits,
    /// Times after which something is given up.
    pub timeouts: Timeouts,
    /// What serves, one per plant of the promises, in their order.
    pub backends: Vec<Backend>,
    /// How each level changes a request: one list per site of the promises, one entry per level, in their order.
    pub rewrites: Vec<Vec<Rewrite>>,
    /// The file that keeps what was learned of how rates go on.
    pub trends: Option<PathBuf>,
}

/// Which request headers tell the upstream who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarded {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    #[default]
    XForwarded,
    /// `Forwarded`, RFC 7239.
    Standard,
    /// Both.
    Both,
    /// None.
    None,
}

/// The response header that carries level and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// On which responses.
    pub when: ReportWhen,
    /// Its name, in lower case.
    pub header: String,
}

impl Default for Report {
    fn default() -> Self {
        Report { when: ReportWhen::default(), header: "x-plimsoll".to_owned() }
    }
}

/// Which responses carry the report header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportWhen {
    /// Rejections.
    #[default]
    Rejections,
    /// All.
    Always,
    /// None.
    Never,
}

/// The answer to a rejected request. Its `Retry-After` is the control's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The status code, 400 to 599.
    pub status: u16,
    /// The body.
    pub body: String,
    /// The body's media type.
    pub content_type: String,
}

impl Default for Rejection {
    fn default() -> Self {
        Rejection {
            status: 503,
            body: "This site is busy right now. Please try again in a moment.\n".to_owned(),
            content_type: "text/plain; charset=utf-8".to_owned(),
        }
    }
}

/// What is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Request line and headers together, at most 64 KiB; beyond it 431.
    pub head_bytes: u64,
    /// The body; beyond it 413.
    pub body_bytes: u64,
    /// The most client connections; beyond it new ones wait in the kernel's queue.
    pub connections: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { head_bytes: 32 << 10, body_bytes: 1 << 30, connections: 50_000 }
    }
}

/// Times after which something is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A client sends its request's head.
    pub head: Duration,
    /// Between two reads of a request's body.
    pub body: Duration,
    /// A client's connection without a request.
    pub keep_alive: Duration,
    /// Between two writes to a client: a reader this slow is left.
    pub send: Duration,
    /// Connecting to an upstream.
    pub connect: Duration,
    /// From the request sent to the head of the upstream's response.
    pub first_byte: Duration,
    /// Between two reads of an upstream's response.
    pub upstream_idle: Duration,
    /// An upstream's connection without a request.
    pub upstream_keep_alive: Duration,
    /// Without a byte either way on an upgraded connection.
    pub tunnel: Duration,
    /// Between the order to stop and the end: how long requests under way may take.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            keep_alive: Duration::from_secs(60),
            send: Duration::from_secs(30),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            upstream_idle: Duration::from_secs(60),
            // Apache closes an idle connection after 5 s: going first spares the race with its close.
            upstream_keep_alive: Duration::from_secs(4),
            tunnel: Duration::from_secs(3600),
            drain: Duration::from_secs(30),
        }
    }
}

/// What serves a plant's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Servers that speak HTTP/1.1.
    Upstream {
        /// `host:port` each, looked up when connecting; equal members of one plant.
        addresses: Vec<String>,
        /// Where the server says how many workers it has.
        workers_from: Option<HttpUrl>,
    },
    /// A folder that the gateway serves itself.
    Files {
        /// The folder. A relative path is taken from the configuration file's own folder.
        root: PathBuf,
        /// What to serve for a folder: the first of these names that exists.
        index: Vec<String>,
        /// Whether links may lead out of the folder.
        follow_symlinks: bool,
        /// The most memory for small files, per thread.
        cache_bytes: u64,
    },
}

/// How a level changes a request. All empty: not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Put before the path: `/light`. Begins with `/` and does not end with it.
    pub prefix: Option<String>,
    /// Set on the request to the upstream, replacing headers of the same name. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// What its upstream does not have (404) is asked of it as the next level has it.
    pub falls_back: bool,
}
