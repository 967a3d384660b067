//! How the gateway runs, as plain data with its defaults: listeners, limits, timeouts, what serves each plant.
//!
//! What is decided about requests is in [`Promises`](plimsoll_core::promises::Promises); the settings say how bytes move.
//! The lists [`Settings::backends`] and [`Settings::rewrites`] are parallel to the plants and sites of the promises. A
//! configuration file fills these types, and its reference shows their defaults.

pub use crate::access_log::{AccessLogSettings, LogForm, LogTarget, SiteLog};
pub use crate::admin::{AdminTokens, MetricsSettings};
pub use crate::client::spill_files::CONNECTIONS_A_FILE;
pub use crate::files::FilesSettings;
pub use crate::http1::rules::{HeaderRules, SiteHeaders};
pub use crate::request::signed::Signed;
pub use crate::traces::TraceSettings;
pub use crate::transport::address::{Address, Listener};
pub use crate::transport::tls::certificate::Certificate;
pub use crate::transport::tls::names::is_for;
pub use crate::transport::tls::server::SeenFile;
pub use crate::transport::tls::settings::{CertificateFiles, ClientCertificates, TlsSettings, UpstreamTls};
use plimsoll_core::promises::Network;
use plimsoll_core::request::Pattern;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How the gateway is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where clients connect.
    pub listen: Vec<Listener>,
    /// How TLS is spoken with them, where it is.
    pub tls: Option<TlsSettings>,
    /// Where `/metrics`, `/status`, `/incidents`, `/healthz` and `POST /reload` are served; `None` for nowhere.
    pub admin: Option<SocketAddr>,
    /// Names by which that listener may be asked, besides addresses and `localhost`: lower case, one `*` for anything.
    pub admin_names: Vec<Pattern>,
    /// The tokens of the admin listener, of which a request must show one; without any, each request is answered.
    pub admin_tokens: AdminTokens,
    /// Whether clients may speak HTTP/2 without TLS, by its preface.
    pub h2c: bool,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// Whether a connection is closed at once if each request of its client would be rejected for the load.
    pub reject_at_accept: bool,
    /// Whether the system resets the connections of clients that were turned away so, until they may come again.
    pub kernel_shed: bool,
    /// Proxies whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol: Vec<Network>,
    /// Proxies whose forwarding fields are believed.
    pub trusted_proxies: Vec<Network>,
    /// Which of their fields.
    pub real_ip_header: RealIpHeader,
    /// Headers that count only from those proxies, in lower case.
    pub trusted_headers: Vec<String>,
    /// Headers and cookies that count only if they are signed.
    pub signed: Signed,
    /// Which forwarding fields upstreams get.
    pub forwarded: ForwardedFields,
    /// The response header with level and reason.
    pub report: Report,
    /// What a rejected client gets.
    pub rejection: Rejection,
    /// Where requests are written down.
    pub access_log: AccessLogSettings,
    /// Which requests are traced, and where that is told; `None` if the gateway takes no part in traces.
    pub traces: Option<TraceSettings>,
    /// Where metrics are pushed; `None` if they are only read.
    pub metrics: Option<MetricsSettings>,
    /// The bounds of messages and connections.
    pub limits: Limits,
    /// Patterns of the paths whose requests pass to the server while their bodies still come, each with at most one `*`. gRPC
    /// (`application/grpc`) always does, and a body that is longer than what is read ahead.
    pub stream_paths: Vec<Pattern>,
    /// How long the gateway waits for what.
    pub timeouts: Timeouts,
    /// What serves each plant, parallel to `Promises::plants`.
    pub backends: Vec<Backend>,
    /// How each level rewrites requests: by site of the promises, then by level, lowest first; nothing where there is
    /// none.
    pub rewrites: Vec<Vec<Rewrite>>,
    /// How rules change the header fields of each site's requests and responses: by site of the promises; no rules where
    /// there is none.
    pub headers: Vec<SiteHeaders>,
    /// The key of the client hash. Clients keep their level on every instance and after a restart with the same key.
    pub hash_seed: u64,
    /// Where that key is from.
    pub hash_seed_from: SeedSource,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listen: Vec::new(),
            tls: None,
            admin: Some(Settings::ADMIN),
            admin_names: Vec::new(),
            admin_tokens: AdminTokens::default(),
            h2c: false,
            threads: 0,
            reject_at_accept: false,
            kernel_shed: false,
            proxy_protocol: Vec::new(),
            trusted_proxies: Vec::new(),
            real_ip_header: RealIpHeader::default(),
            trusted_headers: Vec::new(),
            signed: Signed::default(),
            forwarded: ForwardedFields::default(),
            report: Report::default(),
            rejection: Rejection::default(),
            access_log: AccessLogSettings::default(),
            traces: None,
            metrics: None,
            limits: Limits::default(),
            stream_paths: Vec::new(),
            timeouts: Timeouts::default(),
            backends: Vec::new(),
            rewrites: Vec::new(),
            headers: Vec::new(),
            hash_seed: 0,
            hash_seed_from: SeedSource::Told,
        }
    }
}

impl Settings {
    /// Where the admin listener is where none is told.
    pub const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9090);

    /// The request header that has the name in the client's certificate, in lower case.
    pub(crate) fn client_header(&self) -> Option<&str> {
        self.tls.as_ref()?.clients.as_ref()?.header.as_deref()
    }

    /// The header rules of a site, by its number.
    pub(crate) fn headers_of(&self, site: u16) -> &SiteHeaders {
        self.headers.get(usize::from(site)).unwrap_or(SiteHeaders::NONE)
    }
}

/// Where the key of the client hash is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedSource {
    /// The seed is the operator's. With it one can compute which clients get the better level.
    #[default]
    Told,
    /// Drawn at the first start, and kept in a file: clients keep their level after a restart.
    Kept,
    /// Drawn at this start, since no file could keep it: after a restart it is another one.
    Drawn,
}

impl SeedSource {
    /// The text for status and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            SeedSource::Told => "told",
            SeedSource::Kept => "kept",
            SeedSource::Drawn => "drawn",
        }
    }
}

/// The field in which trusted proxies say where a request came from. The other one is dropped, since its author is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RealIpHeader {
    /// `X-Forwarded-For`, with `-Proto` and `-Host`.
    #[default]
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// Which request fields tell the upstream where a request came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFields {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    #[default]
    XForwarded,
    /// `Forwarded`, RFC 7239.
    Forwarded,
    /// Both the `Forwarded` and the `X-Forwarded-*` headers.
    Both,
    /// No header that names the client.
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
    /// Its name, in lower case.
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
    /// No answer has the header.
    Off,
    /// Answers to rejected requests have it.
    #[default]
    Rejections,
    /// Every answer has it.
    Always,
}

/// The answer to a rejected request. The control loops set its `Retry-After`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// Its status code, 400 to 599.
    pub status: u16,
    /// The value of its header `content-type`.
    pub content_type: String,
    /// The text of its body.
    pub body: String,
}

impl Default for Rejection {
    fn default() -> Self {
        Rejection {
            status: 503,
            content_type: "text/plain; charset=utf-8".to_owned(),
            body: "This site is busy right now. Please try again in a moment.\n".to_owned(),
        }
    }
}

/// The bounds of messages and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The longest head of a request, up to 64 KiB; a longer one gets 431.
    pub head_bytes: usize,
    /// How many bytes the unfinished heads of all connections together may hold; beyond it the oldest gets 408.
    pub head_memory: usize,
    /// The longest body of a request; a longer one gets 413.
    pub body_bytes: u64,
    /// The most client connections. One more ends the one that has been idle the longest, or waits in the kernel's queue.
    pub connections: usize,
    /// The most connections of one client, if they are bounded: of an IPv4 address or of 64 bits of an IPv6 address. One more
    /// is closed.
    pub connections_per_client: Option<u32>,
    /// The most requests under way on one connection of HTTP/2.
    pub streams: u32,
    /// How much of a request's body is read before the request arrives; what is longer streams while it holds a place.
    pub request_buffer: u64,
    /// How much of a response may wait in a file for a client that is slower than the upstream.
    pub response_buffer: u64,
    /// How many bytes of buffers all connections together may use before bodies go to files early.
    pub buffer_memory: u64,
    /// The most bytes in temporary files, all connections together; one connection in four may have a file.
    pub buffer_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 32 * 1024,
            head_memory: 64 << 20,
            body_bytes: 1 << 30,
            connections: 50_000,
            connections_per_client: None,
            streams: 128,
            request_buffer: 1 << 30,
            response_buffer: 1 << 30,
            buffer_memory: 128 << 20,
            buffer_files: 4 << 30,
        }
    }
}

/// How long the gateway waits. All times are coarse: deadlines are checked ten times a second.
///
/// `body_idle` and `send` are accounts of time: 1 KiB moved gives a second back, up to the whole limit. A client that sends or
/// takes less than 1 KiB a second on average is therefore given up about one limit after it became that slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// For a whole request head, from its first byte (408).
    pub head: Duration,
    /// For the next bytes of a request body, at 1 KiB a second at least (408).
    pub body_idle: Duration,
    /// For the next request on a connection.
    pub keep_alive: Duration,
    /// For a client to take the next bytes of a response, at 1 KiB a second at least.
    pub send: Duration,
    /// For a connection to an upstream (502, or the next address).
    pub connect: Duration,
    /// For the first byte of an upstream's response (504), and for an exempt request's place at the upstream.
    pub first_byte: Duration,
    /// For the next bytes of an upstream's response, or for the upstream to take the next bytes of a request.
    pub upstream_idle: Duration,
    /// How long a connection to an upstream may wait for its next request. Keep it below the upstream's own limit.
    pub upstream_keep_alive: Duration,
    /// For any byte, either way, on an upgraded connection.
    pub tunnel_idle: Duration,
    /// How long requests under way may take after the order to stop, for [`Gateway::drain`](crate::Gateway::drain).
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            keep_alive: Duration::from_secs(60),
            send: Duration::from_secs(60),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            upstream_idle: Duration::from_secs(60),
            // Apache closes an idle connection after 5 s: closing it earlier spares the race with Apache's close.
            upstream_keep_alive: Duration::from_secs(4),
            tunnel_idle: Duration::from_secs(3600),
            drain: Duration::from_secs(30),
        }
    }
}

/// What serves a plant.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// One server, or several that are alike.
    Upstream(UpstreamSettings),
    /// A folder of files.
    Files(FilesSettings),
}

/// The servers of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// The addresses of its servers.
    pub addresses: Vec<Address>,
    /// How TLS is spoken with them, if it is.
    pub tls: Option<UpstreamTls>,
    /// Whether HTTP/2 is spoken with them: over TLS where they agree, else without being asked.
    pub http2: bool,
    /// Over what time the share of a server grows that has come into use.
    pub slow_start: Duration,
    /// How their health is checked besides by requests, if it is.
    pub check: Option<HealthCheck>,
    /// The host that they are asked for, in place of the client's.
    pub host: Option<String>,
}

impl UpstreamSettings {
    /// The servers of these addresses, in HTTP/1.1, without TLS and without checks.
    pub fn new(addresses: Vec<Address>) -> Self {
        let slow_start = Duration::from_secs(10);
        UpstreamSettings { addresses, tls: None, http2: false, slow_start, check: None, host: None }
    }
}

/// How the health of a server is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked for.
    pub path: String,
    /// The host that is asked; `None` for the server's own name or address.
    pub host: Option<String>,
    /// The statuses of a good answer.
    pub statuses: RangeInclusive<u16>,
    /// The time from one check to the next, on average.
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

/// How a level changes a request. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Put before the path: the root of the level's content tree, such as `/light`. It does not end with `/`.
    pub prefix: String,
    /// Fields set on the request, replacing the client's fields of the same name. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Whether what the upstream does not have at this level (404) is requested again as the next level has it.
    pub falls_back: bool,
}
