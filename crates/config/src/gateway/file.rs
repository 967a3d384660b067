//! The whole file: its sections, and the gateway's settings. Names become numbers, defaults that depend on other keys are
//! filled in, and impossible combinations are refused.
//!
//! Reading does not stop at the first error. If a value is missing because it was refused, something harmless takes its place,
//! because the result is thrown away whenever there are findings.

use super::access_log::{AccessLogKeys, access_log};
use super::addresses::Admin;
use super::control::ControlKeys;
use super::headers::HeaderRuleKeys;
use super::http::{ContentType, CookieName, HeaderName, HostPattern, PathPattern};
use super::kernel::KernelKeys;
use super::log::{Log, LogKeys};
use super::metrics::{MetricsKeys, metrics};
use super::plants::{FolderKeys, UpstreamKeys};
use super::sites::SiteKeys;
use super::tls::TlsKeys;
use super::traces::{TraceKeys, traces};
use super::{Gateway, addresses, control, headers, kernel, plants, sites, tls, workers};
use crate::Configuration;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{NamedSections, OneOrMany, Sections, Share, Size, Table, Text, Whole, listed, section};
use plimsoll_core::promises::{Mode, Network, Plant, Promises};
use plimsoll_core::request::Pattern;
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{
    Address, ForwardedFields, Limits, RealIpHeader, Rejection, Report, ReportMode, Settings, Timeouts,
};
use std::collections::BTreeMap;
use std::ops::Range;

section! { "the file"
    /// The whole configuration.
    ConfigurationKeys {
        /// Where the gateway listens, and whether it acts.
        gateway: GatewayKeys, section;
        /// TLS with clients: where it is spoken, and with which certificates.
        tls: Table<TlsKeys>, optional;
        /// The servers behind the gateway, by names of your choice.
        upstream: NamedSections<UpstreamKeys>, default(NamedSections(Vec::new()));
        /// Folders that the gateway serves itself, by names of your choice. A folder is controlled like an upstream.
        folder: NamedSections<FolderKeys>, default(NamedSections(Vec::new()));
        /// The virtual servers, matched in order. Absent: one site for every host, on the only upstream or folder.
        site: Sections<SiteKeys>, default(Sections(Vec::new()));
        /// The answer to rejected requests.
        rejection: RejectionKeys, section;
        /// The response header that carries level and reason.
        report: ReportKeys, section;
        /// A line for each request.
        access_log: AccessLogKeys, section;
        /// The operator's log, on stderr.
        log: LogKeys, section;
        /// Spans for a collector of OpenTelemetry.
        traces: Table<TraceKeys>, optional;
        /// Metrics for a collector of OpenTelemetry.
        metrics: Table<MetricsKeys>, optional;
        /// Work that Linux does in the gateway's place.
        kernel: KernelKeys, section;
        /// Bounds on connections, requests and memory.
        limits: LimitKeys, section;
        /// Times after which the gateway gives up waiting.
        timeouts: TimeoutKeys, section;
        /// How the loops run. Nothing here needs to be set.
        control: ControlKeys, section;
    }
}

section! { "[gateway]"
    /// Where the gateway listens, and whether it acts.
    GatewayKeys {
        /// Where clients connect. `"0.0.0.0:80"` is every IPv4 address, `"[::]:80"` IPv6 too, `"unix:/run/plimsoll.sock"` a
        /// Unix socket. It may be absent where `[tls]` listens, and for `plimsoll control`.
        listen: OneOrMany<Address>, optional;
        /// Where the dashboard, `/metrics`, `/status`, `/events`, `/incidents`, `/healthz` and `POST /reload` are served, or
        /// `"off"`. On another address than loopback it needs `admin_token_file`.
        admin: Admin, default(Admin(Settings::default().admin));
        /// Names by which that listener may be asked; one `*` stands for anything. Addresses and `localhost` need no entry: any
        /// other name is refused, since a page's author could lead visitors' browsers here by a name of their own.
        admin_names: OneOrMany<HostPattern>, optional;
        /// The file of the listener's tokens, one a line, each of at least 32 characters. A request must show one of them:
        /// as `Authorization: Bearer TOKEN`, or in a browser as the password with any name. `/healthz` needs none. The file
        /// is read again at each reload. A relative path is taken from the folder of this file.
        admin_token_file: Text, optional;
        /// Whether clients may speak HTTP/2 without TLS (h2c). Only clients that know it beforehand do so.
        h2c: bool, default(Settings::default().h2c);
        /// Whether decisions are acted on. Start with `"observe"`, which shows the decisions and carries out none.
        mode: Mode, default(Mode::default());
        /// Whether a new connection is closed at once if each request of its client would be rejected for the load. That is
        /// known if clients are distinguished by their address, one site has every host, and no rule asks for more than the
        /// `client`. Nothing is read and no handshake is made; a client without TLS is sent the answer to rejected requests
        /// all the same. Each such connection counts as one rejected request, and has no line in access logs.
        reject_at_accept: bool, default(Settings::default().reject_at_accept);
        /// Worker threads. Default: one per CPU.
        threads: Whole<1, 1024>, optional;
        /// Load balancers in front of the gateway whose connections begin with a header of the PROXY protocol, version 1 or 2,
        /// which has the client's address. From there a connection without one is closed. Clients of a Unix socket are at
        /// `127.0.0.1`.
        proxy_protocol: OneOrMany<Network>, optional;
        /// Proxies in front of the gateway. The address of a client that they write in `real_ip_header` is believed. Their
        /// `X-Real-IP` and other headers that begin with `X-Forwarded-` pass, and are dropped from all others.
        trusted_proxies: OneOrMany<Network>, optional;
        /// The request header in which those proxies write the client's address. The other one is dropped: a proxy that does
        /// not write it would pass on what its client made up.
        real_ip_header: RealIpHeader, default(RealIpHeader::default());
        /// Request headers that count only from those proxies, such as an application's `"x-plan"`: from others, classes
        /// and clients are found as if they were absent. They are forwarded all the same. `X-Real-IP`, `Forwarded` and
        /// `X-Forwarded-...` need not be named: from others they are dropped, and absent for classes and clients too.
        trusted_headers: OneOrMany<HeaderName>, optional;
        /// Cookies that count only if they are signed: classes and clients are found by the value that was signed. A token
        /// is `value.expiry.signature`, see [security](security.md#signed-cookies-and-headers).
        signed_cookies: OneOrMany<CookieName>, optional;
        /// Request headers that count only if they are signed, as `signed_cookies`.
        signed_headers: OneOrMany<HeaderName>, optional;
        /// The file of the keys that sign them, one a line, each of at least 32 characters; a signature by any of them
        /// counts. The file is read again at each reload. A relative path is taken from the folder of this file.
        signing_key_file: Text, optional;
        /// Which request headers give the upstream the client's address.
        forwarded: ForwardedFields, default(ForwardedFields::default());
        /// How request headers are changed on their way to upstreams, for every site.
        request_headers: Table<HeaderRuleKeys>, optional;
        /// How response headers of upstreams and folders are changed, for every site. What the gateway answers itself, such as
        /// a rejection, stays as it is: a rule for `cache-control` would have caches keep it.
        response_headers: Table<HeaderRuleKeys>, optional;
        /// The key of the hash that picks the clients with the better level. Give all gateways of a site the same, and a
        /// client keeps its level from one to the other. Absent: drawn at the first start, so that no client can compute
        /// its luck, and kept in `state`.
        seed: Whole<0, { i64::MAX as u64 }>, optional;
        /// The file that keeps what was learned (costs, workers, service levels, the seed that was drawn) for the next
        /// start, so that a restart in an overload does not begin blind; or `"off"`. Absent: this file's name with the ending
        /// `.state`, in `$STATE_DIRECTORY` where systemd gives one, else beside this file. A relative path is taken from the
        /// folder of this file.
        state: Text, optional;
        /// The time in which the choice of clients turns once round, such as `"1d"`: each client then has the better level as
        /// long as any other, and few change level at once. Absent: it is always the same clients.
        rekey: Duration, optional;
    }
}

section! { "[rejection]"
    /// The answer to a request that is rejected.
    RejectionKeys {
        /// The status code of the answer.
        status: Whole<400, 599>, default(Whole(Rejection::default().status.into()));
        /// The body of the answer.
        body: Text, default(Text(Rejection::default().body));
        /// The body's media type.
        content_type: ContentType, default(ContentType(Rejection::default().content_type));
    }
}

section! { "[report]"
    /// The response header that shows level and reason.
    ReportKeys {
        /// Which responses carry it.
        when: ReportMode, default(Report::default().mode);
        /// The name of the header.
        header: HeaderName, default(HeaderName(Report::default().name));
    }
}

section! { "[limits]"
    /// Bounds on connections, requests and memory.
    LimitKeys {
        /// The request line and headers together, at most 64 KiB; beyond it the answer is 431.
        head: Size, default(Size(Limits::default().head_bytes as u64));
        /// The memory that the unfinished heads of all connections may take together. Beyond it the oldest is given up
        /// (408).
        head_memory: Size, default(Size(Limits::default().head_memory as u64));
        /// The request's body; beyond it the answer is 413.
        body: Size, default(Size(Limits::default().body_bytes));
        /// The most client connections. Beyond it a new one takes the place of the one that is idle longest, or waits in
        /// the kernel's queue. `plimsoll run` lowers it to what the process may open.
        connections: Whole<1, 10_000_000>, default(Whole(Limits::default().connections as u64));
        /// The most connections of one client: of an IPv4 address, or of the first 64 bits of an IPv6 address, over all
        /// listeners. One more is closed when it comes, and counted. Proxies that are believed and Unix sockets are not
        /// bounded. Absent: no bound. Many clients may be behind one address; a browser opens six connections or more.
        connections_per_client: Whole<1, 10_000_000>, optional;
        /// The most requests under way at once on one connection of HTTP/2.
        streams: Whole<1, 65536>, default(Whole(Limits::default().streams.into()));
        /// The part of a request's body that is read, into memory and then into a temporary file, before the request is put
        /// to the server, so that a slow client holds no place there. A longer body streams from there on.
        request_buffer: Size, default(Size(Limits::default().request_buffer));
        /// The part of a response that may wait in a temporary file for a client that reads slowly, as nginx's
        /// `proxy_max_temp_file_size`.
        response_buffer: Size, default(Size(Limits::default().response_buffer));
        /// Paths whose request bodies are passed to the server as they come, such as `"/upload/*"`: for servers that follow
        /// an upload. Such a request holds a place while its client sends. gRPC (`application/grpc`) always passes so.
        stream: OneOrMany<PathPattern>, optional;
        /// The most of an upstream's places that streams may hold, at least one: requests whose bodies are passed as they
        /// come, and connections that keep their place by `tunnels_keep_places`. One more gets 503, so that there is room
        /// for other requests.
        stream_share: Share, default(Share(Plant::STREAM_SHARE));
        /// The memory that the buffers of all connections may take together before bodies go to files early. Bytes that
        /// wait for slow clients stay below it too: beyond it the client that has been waited for the longest is given up.
        /// Connections of HTTP/2 and their streams may take twice as much besides: beyond it the connection is closed whose
        /// client has moved nothing for the longest. A connection takes about 18 KiB, 30 KiB over TLS, and each request on
        /// it 10 KiB.
        buffer_memory: Size, default(Size(Limits::default().buffer_memory));
        /// The bytes that all temporary files may hold together. The files have no names, and are in `TMPDIR`, else in
        /// `/var/tmp`.
        buffer_files: Size, default(Size(Limits::default().buffer_files));
    }
}

section! { "[timeouts]"
    /// Times after which the gateway gives up waiting.
    TimeoutKeys {
        /// How long a client may take to send its request's head.
        head: Duration, default(Timeouts::default().head);
        /// The longest pause in a request's body. On average the body must come at 1 KiB a second at least, or the request
        /// gets 408.
        body: Duration, default(Timeouts::default().body_idle);
        /// How long a client's connection may be without a request.
        keep_alive: Duration, default(Timeouts::default().keep_alive);
        /// How long a client may take nothing of its response. On average it must take 1 KiB a second at least, as its
        /// kernel acknowledges it.
        send: Duration, default(Timeouts::default().send);
        /// How long it may take to connect to an upstream.
        connect: Duration, default(Timeouts::default().connect);
        /// The longest time from the request sent to the end of the head of the upstream's response. It begins anew with each
        /// of up to sixteen interim responses (103 Early Hints), which the client gets; further ones are dropped. It also
        /// bounds how long an exempt request may wait.
        first_byte: Duration, default(Timeouts::default().first_byte);
        /// The longest pause in an upstream's response.
        upstream_idle: Duration, default(Timeouts::default().upstream_idle);
        /// How long an upstream's connection is kept without a request. Keep it below the upstream's own limit (Apache's
        /// `KeepAliveTimeout` is 5 s), or requests meet connections that are just being closed.
        upstream_keep_alive: Duration, default(Timeouts::default().upstream_keep_alive);
        /// How long an upgraded connection (WebSocket) may be without a byte either way.
        tunnel: Duration, default(Timeouts::default().tunnel_idle);
        /// How long requests under way may take after the order to stop.
        drain: Duration, default(Timeouts::default().drain);
    }
}

/// The configuration that `file` describes; not to be used if there are findings.
pub(crate) fn resolve(file: &ConfigurationKeys, name: &str, findings: &mut Findings) -> Configuration {
    let listen = addresses::listen(file, name);
    let mut plants = plants::resolve(file, name, findings);
    let (sites, rewrites) = sites::resolve(file, &plants, findings);
    let stream_share = file.limits.value.stream_share.value.0;
    plants.plants.iter_mut().for_each(|plant| plant.stream_share = stream_share);
    workers::set_load_lines(file, &mut plants.plants, &sites, findings);
    let keys = &file.gateway.value;
    let control = control::control(&file.control.value, keys, findings);
    addresses::check_listeners(file, findings);
    addresses::check_upstreams(file, findings);
    let report = &file.report.value;
    let settings = Settings {
        listen,
        tls: tls::tls(file.tls.as_ref(), name, findings),
        admin: keys.admin.value.0,
        admin_names: listed(&keys.admin_names, |name| Pattern::new(&name.0)),
        h2c: keys.h2c.value,
        threads: keys.threads.as_ref().map_or(0, |threads| threads.value.0 as usize),
        reject_at_accept: control::reject_at_accept(file, findings),
        kernel_shed: kernel::shed(file, findings),
        proxy_protocol: listed(&keys.proxy_protocol, |network| *network),
        trusted_proxies: listed(&keys.trusted_proxies, |network| *network),
        real_ip_header: keys.real_ip_header.value,
        trusted_headers: listed(&keys.trusted_headers, |name| name.0.clone()),
        signed: control::signed(keys),
        forwarded: keys.forwarded.value,
        report: Report { mode: report.when.value, name: report.header.value.0.clone() },
        rejection: rejection(file),
        access_log: access_log(file, name, findings),
        traces: traces(file, findings),
        metrics: metrics(file, findings),
        limits: limits(&file.limits.value, findings),
        stream_paths: listed(&file.limits.value.stream, |pattern| Pattern::new(&pattern.0)),
        timeouts: timeouts(file),
        rewrites,
        headers: headers::resolve(file, findings),
        ..Settings::default()
    };
    let rate_forecast = control::rate_forecast(&file.control.value, name, findings);
    let seed = keys.seed.as_ref().map(|seed| seed.value.0);
    let state = control::state(keys, name, findings);
    let signing_keys = control::signing_keys(keys, name, findings);
    let admin_tokens = control::admin_tokens(keys, name, findings);
    let (backends, lines) = (plants.backends, &file.log.value);
    let log = Log { format: lines.format.value, level: lines.level.value };
    let warnings = sites::warnings(file, &sites);
    let gateway =
        Gateway { settings, backends, rate_forecast, seed, state, signing_keys, admin_tokens, log, warnings };
    let promises = Promises { plants: plants.plants, sites, control };
    control::suits(&file.control.value, &promises, findings);
    Configuration { promises, gateway }
}

fn rejection(file: &ConfigurationKeys) -> Rejection {
    let keys = &file.rejection.value;
    Rejection {
        status: keys.status.value.0 as u16,
        body: keys.body.value.0.clone(),
        content_type: keys.content_type.value.0.clone(),
    }
}

/// The longest head that may be configured, because the gateway reads a head into one buffer of this size.
const LONGEST_HEAD: u64 = 64 << 10;

fn limits(keys: &LimitKeys, findings: &mut Findings) -> Limits {
    if keys.head.value.0 > LONGEST_HEAD {
        refuse!(findings, OutOfRange at &keys.head.span,
            "a request's head cannot be this long", help: "write at most `\"64 KiB\"`");
    }
    Limits {
        head_bytes: keys.head.value.0 as usize,
        head_memory: usize::try_from(keys.head_memory.value.0).unwrap_or(usize::MAX),
        body_bytes: keys.body.value.0,
        connections: keys.connections.value.0 as usize,
        connections_per_client: keys.connections_per_client.as_ref().map(|most| most.value.0 as u32),
        streams: keys.streams.value.0 as u32,
        request_buffer: keys.request_buffer.value.0,
        response_buffer: keys.response_buffer.value.0,
        buffer_memory: keys.buffer_memory.value.0,
        buffer_files: keys.buffer_files.value.0,
    }
}

fn timeouts(file: &ConfigurationKeys) -> Timeouts {
    let keys = &file.timeouts.value;
    Timeouts {
        head: keys.head.value,
        body_idle: keys.body.value,
        keep_alive: keys.keep_alive.value,
        send: keys.send.value,
        connect: keys.connect.value,
        first_byte: keys.first_byte.value,
        upstream_idle: keys.upstream_idle.value,
        upstream_keep_alive: keys.upstream_keep_alive.value,
        tunnel_idle: keys.tunnel.value,
        drain: keys.drain.value,
    }
}

/// Refuses a name that was given before; `what` is the kind of thing that it names.
pub(super) fn unique<'a>(
    names: impl Iterator<Item = (&'a str, &'a Range<usize>)>,
    what: &str,
    findings: &mut Findings,
) {
    let mut known: BTreeMap<&str, &Range<usize>> = BTreeMap::new();
    for (name, span) in names {
        match known.get(name) {
            Some(first) => {
                refuse!(findings, Duplicate at span,
                    format!("two {what} are named `{}`", crate::diagnostic::quoted(name)),
                    help: "give one of them another name: metrics and headers tell them apart by it",
                    beside first => "the first is");
            }
            None => drop(known.insert(name, span)),
        }
    }
}
