//! How the gateway runs, as plain data with its defaults: listeners, limits, timeouts, what serves each plant.
//!
//! [`Promises`](plimsoll_core::promises::Promises) decide on requests; the settings say how bytes move. The lists
//! [`Settings::backends`] and [`Settings::rewrites`] are parallel to the plants and sites of the promises. A configuration file
//! fills these types, and its reference shows their defaults.
//!
//! Lower rooms define their own settings, which are only used here. The settings of higher rooms are in this room: [`backends`]
//! say what serves a plant, [`limits`] what may be held and how long is waited, [`signed`] what is believed only with a
//! signature, [`admin_tokens`] who may ask the admin listener, [`metrics`] where metrics are pushed. [`mod@check`] says whether
//! settings fit the promises.

mod admin_tokens;
mod backends;
mod check;
mod limits;
mod metrics;
mod signed;

pub use crate::access_log::{AccessLogSettings, LogForm, LogTarget, SiteLog};
pub use crate::files::FilesSettings;
pub use crate::http1::rules::{HeaderRules, SiteHeaders};
pub use crate::traces::TraceSettings;
pub use crate::transport::address::{Address, Listener};
pub use crate::transport::tls::certificate::Certificate;
pub use crate::transport::tls::names::is_for;
pub use crate::transport::tls::server::SeenFile;
pub use crate::transport::tls::settings::{CertificateFiles, ClientCertificates, TlsSettings, UpstreamTls};
pub use admin_tokens::AdminTokens;
pub use backends::{Backend, HealthCheck, UpstreamSettings};
pub(crate) use check::check;
pub use limits::{CONNECTIONS_A_FILE, Limits, Timeouts};
pub use metrics::MetricsSettings;
use plimsoll_core::promises::Network;
use plimsoll_core::request::Pattern;
pub use signed::Signed;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How the gateway is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The addresses at which clients connect.
    pub listen: Vec<Listener>,
    /// How TLS is spoken with clients; `None` if it is not.
    pub tls: Option<TlsSettings>,
    /// The address of the admin listener, which serves `/metrics`, `/status`, `/incidents`, `/healthz` and `POST /reload`;
    /// `None` for none.
    pub admin: Option<SocketAddr>,
    /// The host names under which the admin listener answers, besides addresses and `localhost`: lower case, one `*` for
    /// anything.
    pub admin_names: Vec<Pattern>,
    /// The tokens of the admin listener: a request must show one of them. Without tokens each request is answered.
    pub admin_tokens: AdminTokens,
    /// Whether clients may speak HTTP/2 without TLS, by its preface.
    pub h2c: bool,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
    /// Whether a connection is closed at once if each request of its client would be rejected for the load.
    pub reject_at_accept: bool,
    /// Whether the system resets the connections of clients that were rejected at accept, until they may come again.
    pub kernel_shed: bool,
    /// Proxies whose connections begin with a header of the PROXY protocol.
    pub proxy_protocol: Vec<Network>,
    /// Proxies whose forwarding fields are believed.
    pub trusted_proxies: Vec<Network>,
    /// The fields of those proxies that are believed.
    pub real_ip_header: RealIpHeader,
    /// Headers that count only from trusted proxies, in lower case.
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
    /// Which requests are traced, and where traces are sent; `None` if the gateway takes no part in traces.
    pub traces: Option<TraceSettings>,
    /// Where metrics are pushed; `None` if they are only read.
    pub metrics: Option<MetricsSettings>,
    /// The bounds of messages and connections.
    pub limits: Limits,
    /// Patterns of the paths whose requests pass to the server while their bodies still come, each with at most one `*`.
    /// Requests of gRPC (`application/grpc`) always do, and so does the rest of a body that is longer than the request buffer.
    pub stream_paths: Vec<Pattern>,
    /// The time limits.
    pub timeouts: Timeouts,
    /// What serves each plant, parallel to `Promises::plants`.
    pub backends: Vec<Backend>,
    /// How each level rewrites requests: by site of the promises, then by level, lowest first. A missing entry changes nothing.
    pub rewrites: Vec<Vec<Rewrite>>,
    /// How rules change the header fields of each site's requests and responses, by site of the promises. A missing entry has
    /// no rules.
    pub headers: Vec<SiteHeaders>,
    /// The key of the client hash. Clients keep their level on every instance and after a restart with the same key.
    pub hash_seed: u64,
    /// The origin of that key.
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
            hash_seed_from: SeedSource::Configured,
        }
    }
}

impl Settings {
    /// Where the admin listener is where none is configured.
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

/// The origin of the key of the client hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedSource {
    /// The operator configured the seed. Anyone who knows the seed can compute which clients get the better level.
    #[default]
    Configured,
    /// The seed was drawn at the first start and kept in a file: clients keep their level after a restart.
    Kept,
    /// The seed was drawn at this start, since no file could keep it: it changes with a restart.
    Drawn,
}

impl SeedSource {
    /// The text for status and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            SeedSource::Configured => "configured",
            SeedSource::Kept => "kept",
            SeedSource::Drawn => "drawn",
        }
    }
}

/// The field in which trusted proxies say where a request came from. The other field is dropped, since its author is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RealIpHeader {
    /// `X-Forwarded-For`, with `-Proto` and `-Host`.
    #[default]
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

/// Which request fields say to the upstream where a request came from.
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

/// The response header that shows level and reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Which responses have the header.
    pub mode: ReportMode,
    /// The header's name, in lower case.
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
    /// These and all responses of upstreams and folders have it.
    Always,
}

/// The answer to a rejected request. The control loops set its `Retry-After`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// The answer's status code, 400 to 599.
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

/// How a level changes a request. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// A prefix before the path: the root of the level's content tree, such as `/light`. It does not end with `/`.
    pub prefix: String,
    /// Fields that are set on the request and replace the client's fields of the same name. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Whether the request is sent again at the next level if the upstream answers 404 at this one.
    pub falls_back: bool,
}
