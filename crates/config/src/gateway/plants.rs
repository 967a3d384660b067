//! Upstreams and folders: the plants of the promises, and what serves each of them.

use super::Backend;
use super::addresses::{LookUpEvery, ServerAddress, in_folder_of};
use super::file::{ConfigurationKeys, unique};
use super::health_check::{HealthCheckKeys, health_check};
use super::http::{HeaderName, HostName};
use super::tls::WRITE_PATH;
use super::workers::{CapacityKeys, Workers};
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{
    Located, Name, OneOrMany, Rate, Seconds, Share, Size, Table, Text, Whole, beside, nearest, section,
};
use plimsoll_core::promises::{Costs, Plant, QueueBounds, Sense, Tunnels};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{FilesSettings, HealthCheck, UpstreamSettings, UpstreamTls};
use std::path::PathBuf;

section! { "[upstream.NAME]"
    /// A server behind the gateway, whose utilization is held at its load line.
    UpstreamKeys {
        /// Where it listens: `"127.0.0.1:8000"`, `"https://app.internal"` for TLS, or `"unix:/run/app.sock"`. Several addresses
        /// are equal members, together one capacity: each request goes to the less loaded of two servers in use, one by
        /// rotation and one at random.
        address: OneOrMany<ServerAddress>, required("write where it listens: `address = \"127.0.0.1:8000\"`");
        /// The host that it is asked for, for a server with a virtual host of its own. The host that the client named is
        /// then in `X-Forwarded-Host`, and redirects to the server's host stay with the client's. Absent: the host that the
        /// client named.
        host: HostName, optional;
        /// The most connections to it, busy and idle, over all threads; beyond it requests wait. Default: its `workers`. An
        /// event-driven server (nginx) takes more than it has processes: write that number here. If a class has a `delay`
        /// or a `deadline`, fewer are used: so many that a request waits in the server for at most 0.15 of the shortest
        /// delay, or 0.05 of the shortest deadline; if one has a `ratio`, no more than `workers`. If `workers` is left out,
        /// this is also the upper bound of the search.
        max_connections: Whole<1, 65_535>, optional;
        /// The most upgraded connections (WebSocket) and streams of events (`text/event-stream`) to it at once; one more gets
        /// 503.
        max_tunnels: Whole<0, 1_000_000>, default(Whole(Tunnels::default().most.into()));
        /// Whether an upgraded connection or a stream of events keeps its place to its end, because it occupies a worker of the
        /// server. It then counts among `max_connections` and as a stream (`stream_share`). Otherwise it gives its place back
        /// with the head of its response.
        tunnels_keep_places: bool, default(Tunnels::default().keep_places);
        /// Whether it stops working on a request when that request's connection is closed. Most servers do not notice: a
        /// request whose client left then holds its place until it is finished, because the server is not free before. If
        /// it does stop, the gateway closes the connection at once and gives the place to another request.
        stops_when_abandoned: bool, default(false);
        /// Whether its own processes decide on levels of service (`plimsoll control` with the same file). They then keep
        /// levels, contracts and the load line, and reject. The gateway keeps delays, ratios and deadlines before it. In
        /// `X-Plimsoll-Places` of each request the gateway reports the part of its places there that is taken, for which
        /// the processes lower their load line too. A client's field of this name reaches no upstream.
        decides_itself: bool, default(false);
        /// The most requests that wait for it; one more is rejected.
        max_waiting: Whole<0, 10_000_000>, default(Whole(QueueBounds::default().max_waiting.into()));
        /// How long a request may wait before it is answered with a rejection; one with a `deadline` waits as long as it
        /// can be in time. Default: ten seconds, and half a second for a request without a promise of its own while the
        /// server is overloaded (longer where a request takes long).
        max_wait: Duration, optional;
        /// The response header in which the server reports what a request cost, in any unit of its own: a number, or ORCA's
        /// `endpoint-load-metrics` with its `request_cost`. The gateway learns how long one unit holds a worker. Used only
        /// where deadlines are promised. Absent: the time that the request took.
        cost_header: HeaderName, optional;
        /// A server that is new, or in use again, gets a share of the requests that grows to its full one over this time. One
        /// that was out of use for less takes only as long as it was out.
        slow_start: Duration, default(UpstreamSettings::new(Vec::new()).slow_start);
        /// How often the names among its addresses are looked up again, or `"off"`: at the start and at a reload alone.
        /// Servers that a name no longer leads to finish their requests; servers whose names cannot be looked up stay in
        /// use.
        resolve: LookUpEvery, default(LookUpEvery(Some(LookUpEvery::USUAL)));
        /// How TLS is spoken with it. Its addresses need no `https://` then.
        tls: Table<UpstreamTlsKeys>, optional;
        /// Whether HTTP/2 is spoken with it, as servers of gRPC need: over TLS if it agrees (ALPN), else without being
        /// asked. A connection has one request at a time all the same, so that `max_connections` bounds both.
        http2: bool, default(false);
        /// Health checks of its servers, besides the requests themselves. Absent: requests alone show whether a server is
        /// healthy.
        health_check: Table<HealthCheckKeys>, optional;
        /// The capacity of the upstream, and its load line.
        capacity: CapacityKeys, section;
    }
}

section! { "[upstream.NAME.tls]"
    /// TLS with an upstream. Its certificate must be for its name and signed by an authority; no key trusts any
    /// certificate.
    UpstreamTlsKeys {
        /// The file of the authorities that may have signed its certificate, in PEM, or of that certificate itself. Absent:
        /// the authorities that this system trusts. A relative path is taken from the folder of this file.
        ca: Text, optional;
        /// The name that its certificate must have. Absent: the host of its address; for a Unix socket `localhost`.
        server_name: Text, optional;
    }
}

section! { "costs"
    /// The cost of one request, as time of the whole server: a in U = a R + b W. A server that does at most 600 such
    /// requests a second takes 1 / 600 s for each.
    CostKeys {
        /// a: the fixed part of a request.
        request: Seconds, required("write the fixed part of a request's cost, such as `request = \"1.6ms\"`");
        /// b: the part for each byte delivered.
        byte: Seconds, default(Seconds(0.0));
        /// c: the cost of a rejection. It counts where `same_host = true`.
        rejection: Seconds, default(Seconds(0.0));
    }
}

section! { "[folder.NAME]"
    /// A folder that the gateway serves itself, held at a load line like an upstream. Its utilization is that of the
    /// gateway's own CPU.
    FolderKeys {
        /// The folder. A relative path is taken from the folder of this file.
        root: Text, required("write the folder to serve: `root = \"/srv/www\"`");
        /// The files served for a folder: the first of these names that exists.
        index: OneOrMany<Text>, default(OneOrMany::new(FilesSettings::default().index.into_iter().map(Text)));
        /// Whether links may lead out of the folder.
        follow_symlinks: bool, default(FilesSettings::default().follow_symlinks);
        /// The most memory for small files, per thread.
        cache: Size, default(Size(FilesSettings::default().cache_bytes as u64));
        /// The most requests in service at once; beyond it requests wait.
        max_connections: Whole<1, 65_535>, default(Whole(1024));
        /// The most requests that wait; one more is rejected.
        max_waiting: Whole<0, 10_000_000>, default(Whole(QueueBounds::default().max_waiting.into()));
        /// How long a request may wait before it is answered with a rejection; one with a `deadline` waits as long as it
        /// can be in time. Default: ten seconds, and half a second for a request without a promise of its own while the
        /// server is overloaded (longer where a request takes long).
        max_wait: Duration, optional;
        /// The capacity of the gateway for files, and its load line.
        capacity: FolderCapacityKeys, section;
    }
}

section! { "[folder.NAME.capacity]"
    /// The capacity of the gateway where it serves files itself.
    FolderCapacityKeys {
        /// The threads that serve. Default: the gateway's `threads`.
        workers: Whole<1, 1_000_000>, optional;
        /// The load line: the utilization to hold.
        load_line: Share, default(Share(Plant::LOAD_LINE));
        /// The capacity of the network link, if that may be what runs out first. For files it often is.
        bandwidth: Rate, optional;
        /// The mean service time above which a period counts as full load, whatever else is measured.
        response_time_limit: Duration, optional;
        /// The costs of requests, if known. Otherwise they are learned from traffic.
        costs: Table<CostKeys>, optional;
        /// The most that the sites' guarantees may take of it together, below 1. Default: the load line, at most 0.95; at most
        /// 0.58 where deadlines are promised.
        ceiling: Share, optional;
    }
}

/// All plants, with what serves them.
#[derive(Default)]
pub(super) struct Plants {
    pub(super) plants: Vec<Plant>,
    pub(super) backends: Vec<Backend>,
}

impl Plants {
    pub(super) fn is_folder(&self, plant: usize) -> bool {
        matches!(self.backends.get(plant), Some(Backend::Files(_)))
    }

    /// The plant that a site or a level names as its upstream or folder, if it names one and it exists.
    pub(super) fn find(
        &self,
        upstream: Option<&Located<Name>>,
        folder: Option<&Located<Name>>,
        findings: &mut Findings,
    ) -> Option<usize> {
        if let (Some(upstream), Some(folder)) = (upstream, folder) {
            refuse!(findings, Conflict at &folder.span,
                "served by an upstream and by a folder at once", help: "keep one of `upstream` and `folder`",
                beside &upstream.span => "`upstream` is given");
            return None;
        }
        let name = upstream.or(folder)?;
        let found = self.plants.iter().position(|plant| plant.name == name.value.0);
        let found = found.filter(|plant| self.is_folder(*plant) == folder.is_some());
        if found.is_none() {
            let (kind, other) =
                if folder.is_some() { ("folder", "upstream") } else { ("upstream", "folder") };
            refuse!(findings, UnknownName at &name.span,
                format!("no {kind} is named `{}`", quoted(&name.value.0)),
                help: self.name_help(kind, other, &name.value.0));
        }
        found
    }

    /// The advice if no upstream or folder (`kind`) has this name; `other` is the other kind.
    fn name_help(&self, kind: &str, other: &str, name: &str) -> String {
        let all =
            self.plants.iter().enumerate().map(|(index, plant)| (self.is_folder(index), plant.name.as_str()));
        let (same, others): (Vec<_>, Vec<_>) =
            all.partition(|(is_folder, _)| *is_folder == (kind == "folder"));
        let names = same.iter().map(|(_, name)| *name);
        if others.iter().any(|(_, known)| *known == name) {
            return format!("`{name}` is the name of another kind: write `{other} = \"{name}\"`");
        }
        if let Some(near) = nearest(name, names.clone()) {
            return format!("did you mean `\"{near}\"`?");
        }
        match names.map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>() {
            all if all.is_empty() => format!("define it with a section `[{kind}.{}]`", quoted(name)),
            all => format!("those defined are {}", all.join(", ")),
        }
    }
}

/// The plants of a file, upstreams first.
pub(super) fn resolve(file: &ConfigurationKeys, file_name: &str, findings: &mut Findings) -> Plants {
    let mut all = Plants::default();
    for (name, keys) in &file.upstream.value.0 {
        all.plants.push(upstream(&name.value, &keys.value, findings));
        all.backends.push(servers(&keys.value, file_name, findings));
    }
    // A folder has as many workers as the gateway has threads.
    let threads = file.gateway.value.threads.as_ref().map(|threads| threads.value.0 as u32);
    let threads =
        threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32));
    for (name, keys) in &file.folder.value.0 {
        all.plants.push(folder(&name.value, &keys.value, threads, findings));
        all.backends.push(files(&keys.value, file_name, findings));
    }
    let upstreams = file.upstream.value.0.iter().map(|(name, _)| (name.value.as_str(), &name.span));
    let folders = file.folder.value.0.iter().map(|(name, _)| (name.value.as_str(), &name.span));
    unique(upstreams.chain(folders), "upstreams or folders", findings);
    if all.plants.is_empty() && file.upstream.sound && file.folder.sound {
        refuse!(findings, MissingKey at &(0..0),
            "there is nothing to serve from",
            help: "name a server: `[upstream.app]` with its `address`, or a folder: `[folder.www]` with its `root`");
    }
    all
}

fn upstream(name: &str, keys: &UpstreamKeys, findings: &mut Findings) -> Plant {
    let capacity = &keys.capacity.value;
    let Workers { workers, search, max_connections } = Workers::of(keys, findings);
    Plant {
        find_workers: search,
        reports_workers: capacity.workers_from.is_some(),
        max_connections,
        // `set_load_lines` fills in a load line that is not configured, since it depends on the sites.
        set_point: capacity.load_line.as_ref().map_or(Plant::LOAD_LINE, |line| line.value.0),
        sense: capacity.sense.value,
        bandwidth_bytes_per_second: capacity.bandwidth.as_ref().map(|rate| rate.value.0),
        response_time_limit: capacity.response_time_limit.as_ref().map(|limit| limit.value),
        same_host: capacity.same_host.value,
        costs: costs(capacity.costs.as_ref()),
        tunnels: Tunnels {
            most: keys.max_tunnels.value.0 as u32,
            keep_places: keys.tunnels_keep_places.value,
        },
        stops_when_abandoned: keys.stops_when_abandoned.value,
        decides_itself: keys.decides_itself.value,
        queue: QueueBounds {
            max_waiting: keys.max_waiting.value.0 as u32,
            max_wait: keys.max_wait.as_ref().map(|wait| wait.value),
        },
        ceiling: ceiling(capacity.ceiling.as_ref(), findings),
        cost_header: keys.cost_header.as_ref().map(|name| name.value.0.clone()),
        // `file::resolve` fills in the values that `[limits]` sets for all plants; `waits_unseen` is only for an engine inside
        // a server.
        ..Plant::new(name, workers)
    }
}

fn servers(keys: &UpstreamKeys, file_name: &str, findings: &mut Findings) -> Backend {
    let mut addresses: Vec<String> = Vec::new();
    for address in keys.address.iter().flat_map(|list| &list.value.0) {
        let at = match address.value.at.strip_prefix("unix:") {
            Some(path) => format!("unix:{}", beside(file_name, path).display()),
            None => address.value.at.clone(),
        };
        if addresses.contains(&at) {
            refuse!(findings, Duplicate at &address.span,
                format!("`{}` is named twice", quoted(&at)), help: "keep one of them");
        }
        addresses.push(at);
    }
    let tls = secured(keys, &addresses, file_name, findings);
    let workers_from = keys.capacity.value.workers_from.as_ref().map(|page| page.value.clone());
    let slow_start = keys.slow_start.value;
    let host = keys.host.as_ref().map(|host| host.value.0.clone());
    let check = keys.health_check.as_ref().and_then(|keys| health_check(keys, findings));
    let check = check.map(|check| HealthCheck { host: check.host.or_else(|| host.clone()), ..check });
    let settings = Box::new(UpstreamSettings {
        tls,
        http2: keys.http2.value,
        slow_start,
        check,
        host,
        ..UpstreamSettings::new(Vec::new())
    });
    Backend::Upstream {
        addresses,
        settings,
        workers_from,
        look_up_every: look_up_every(&keys.resolve, findings),
    }
}

/// The shortest interval of lookups: faster ones would be a load of their own.
const SHORTEST_LOOKUP: Duration = Duration::from_millis(100);

fn look_up_every(every: &Located<LookUpEvery>, findings: &mut Findings) -> Option<Duration> {
    if every.value.0.is_some_and(|every| every < SHORTEST_LOOKUP) {
        refuse!(findings, OutOfRange at &every.span,
            "names are looked up too often", help: "write at least `\"100ms\"`, or `\"off\"`");
    }
    every.value.0
}

/// The TLS settings of an upstream, if its section or its addresses ask for TLS.
fn secured(
    keys: &UpstreamKeys,
    addresses: &[String],
    file_name: &str,
    findings: &mut Findings,
) -> Option<UpstreamTls> {
    let own = keys.tls.as_ref().map(|keys| &keys.value.0);
    let named: Vec<_> = keys.address.iter().flat_map(|list| &list.value.0).collect();
    let secure = named.iter().find(|address| address.value.is_secure);
    if own.is_none()
        && let (Some(secure), Some(plain)) = (secure, named.iter().find(|address| !address.value.is_secure))
    {
        refuse!(findings, Conflict at &plain.span,
            "some addresses of this upstream speak TLS and some do not", help: "write `https://` before each or none; make two upstreams of them otherwise",
            beside &secure.span => "this one speaks TLS");
    }
    if own.is_none() && secure.is_none() {
        return None;
    }
    let server_name = own.and_then(|own| own.server_name.as_ref());
    let name = |address: &String| match server_name {
        Some(name) => name.value.0.clone(),
        None if address.starts_with("unix:") => "localhost".to_owned(),
        None => address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned(),
    };
    let names = addresses.iter().map(name).collect();
    let authorities =
        own.and_then(|own| own.ca.as_ref()).map(|file| in_folder_of(file_name, file, WRITE_PATH, findings));
    Some(UpstreamTls { names, authorities })
}

fn folder(name: &str, keys: &FolderKeys, threads: u32, findings: &mut Findings) -> Plant {
    let capacity = &keys.capacity.value;
    let workers = capacity.workers.as_ref().map_or(threads, |workers| workers.value.0 as u32);
    Plant {
        max_connections: keys.max_connections.value.0 as u32,
        set_point: capacity.load_line.value.0,
        // The gateway's own CPU time is the sense, because gap estimation would count a thread that waits for a slow client as
        // busy.
        sense: Sense::Reported,
        bandwidth_bytes_per_second: capacity.bandwidth.as_ref().map(|rate| rate.value.0),
        response_time_limit: capacity.response_time_limit.as_ref().map(|limit| limit.value),
        same_host: true,
        costs: costs(capacity.costs.as_ref()),
        // The gateway itself sends the response, and stops when the client has left.
        stops_when_abandoned: true,
        queue: QueueBounds {
            max_waiting: keys.max_waiting.value.0 as u32,
            max_wait: keys.max_wait.as_ref().map(|wait| wait.value),
        },
        ceiling: ceiling(capacity.ceiling.as_ref(), findings),
        // The rest is filled in as in `upstream`.
        ..Plant::new(name, workers)
    }
}

fn files(keys: &FolderKeys, file_name: &str, findings: &mut Findings) -> Backend {
    let root = match &keys.root {
        Some(root) if root.value.0.is_empty() => {
            refuse!(findings, BadValue at &root.span,
                "an empty path is no folder", help: "write `\".\"` for the folder of this file");
            PathBuf::new()
        }
        Some(root) => beside(file_name, &root.value.0),
        None => PathBuf::new(),
    };
    for name in
        keys.index.value.0.iter().filter(|name| name.value.0.is_empty() || name.value.0.contains(['/', '\\']))
    {
        refuse!(findings, BadValue at &name.span,
            format!("`{}` is no file's name", quoted(&name.value.0)),
            help: "write a name alone, such as `\"index.html\"`");
    }
    let index = keys.index.value.0.iter().map(|name| name.value.0.clone()).collect();
    let cache_bytes = usize::try_from(keys.cache.value.0).unwrap_or(usize::MAX);
    Backend::Files(FilesSettings { root, index, follow_symlinks: keys.follow_symlinks.value, cache_bytes })
}

/// Reads a ceiling. It must be below 1, because a plant that is promised as a whole has no room for chance.
fn ceiling(share: Option<&Located<Share>>, findings: &mut Findings) -> Option<f64> {
    let share = share?;
    if share.value.0 >= 1.0 {
        refuse!(findings, OutOfRange at &share.span,
            "guarantees cannot take all of a server",
            help: "write something below 1, such as `0.85`: chance needs some room too");
    }
    Some(share.value.0)
}

impl CostKeys {
    /// The costs of requests, if `request`, the required key, was given.
    pub(crate) fn costs(&self) -> Option<Costs> {
        Some(Costs {
            per_request_seconds: self.request.as_ref()?.value.0,
            per_byte_seconds: self.byte.value.0,
            per_rejection_seconds: self.rejection.value.0,
        })
    }
}

/// The configured costs of requests.
pub(super) fn costs(keys: Option<&Located<Table<CostKeys>>>) -> Option<Costs> {
    keys.and_then(|keys| keys.value.0.costs())
}
