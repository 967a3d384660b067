//! The table of keys: every section of the file, with type, default and meaning of each key.
//!
//! The structs, their reading, the suggestions, docs/configuration.md and docs/plimsoll.schema.json are all made from
//! these lines. A new key is one line here and its use in `resolve`.

use super::addresses::{Admin, HostPort};
use super::values::{ClientIdentity, LawName, LeastToMost};
use crate::agent::HttpUrl;
use crate::http::{
    ContentType, CookieName, HeaderName, HeaderValue, HostPattern, Method, PathPattern, Pattern, Prefix,
    SetHeaderName,
};
use crate::syntax::{
    GainMargin, Located, Many, Name, Named, OneOrMany, Pairs, Percentile, Rate, Ratio, RequestRate, Seconds,
    Share, Size, Text, Weight, Whole, Within, section,
};
use plimsoll_core::promises::{
    Admission, Choice, Control, DelayParts, Guarantee, Identity, Mode, Network, Prefer, QueueBounds, Sense,
};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{
    FilesSettings, ForwardedFields, Limits, Rejection, Report, ReportMode, Settings, Timeouts,
};
use std::net::SocketAddr;

section! { "the file"
    /// The whole configuration.
    File {
        /// Where the gateway listens, and whether it acts.
        gateway: GatewayKeys, section;
        /// The servers behind the gateway, by names of your choice.
        upstream: Named<UpstreamKeys>, default(Named(Vec::new()));
        /// Folders that the gateway serves itself, by names of your choice. A folder is controlled like an upstream.
        folder: Named<FolderKeys>, default(Named(Vec::new()));
        /// The virtual servers, matched in order. Absent: one site for every host, on the only upstream or folder.
        site: Many<SiteKeys>, default(Many(Vec::new()));
        /// The answer to rejected requests.
        rejection: RejectionKeys, section;
        /// The response header that carries level and reason.
        report: ReportKeys, section;
        /// What is too much.
        limits: LimitKeys, section;
        /// Times after which something is given up.
        timeouts: TimeoutKeys, section;
        /// How the loops run. Nothing here needs to be set.
        control: ControlKeys, section;
    }
}

section! { "[gateway]"
    /// Where the gateway listens, and whether it acts.
    GatewayKeys {
        /// Where clients connect. `"0.0.0.0:80"` is every IPv4 address, `"[::]:80"` IPv6 too.
        listen: OneOrMany<SocketAddr>, required("write where clients connect: `listen = \"127.0.0.1:8080\"`");
        /// Where `/metrics`, `/status` and `/healthz` are served, or `"off"`. Keep it on loopback: it has no login.
        admin: Admin, default(Admin(Settings::default().admin));
        /// Whether decisions are acted on. Start with `"observe"` to see what would be done.
        mode: Mode, default(Mode::default());
        /// Worker threads. Default: one per CPU.
        threads: Whole<1, 1024>, optional;
        /// Proxies in front of the gateway, whose `Forwarded` and `X-Forwarded-For` are believed.
        trusted_proxies: OneOrMany<Network>, optional;
        /// Which request headers tell the upstream who asked.
        forwarded: ForwardedFields, default(ForwardedFields::default());
        /// The key of the hash that picks which clients get the better level. Give all gateways of a site the same, and
        /// a client keeps its level from one to the other. Choose your own, so that nobody can compute its luck.
        seed: Whole<0, { i64::MAX as u64 }>, default(Whole(Settings::default().hash_seed));
    }
}

section! { "[upstream.NAME]"
    /// A server behind the gateway, whose utilization is held at its load line.
    UpstreamKeys {
        /// Where it listens, HTTP/1.1 without TLS. Several addresses are equal members, together one capacity.
        address: OneOrMany<HostPort>, required("write where it listens: `address = \"127.0.0.1:8000\"`");
        /// The most connections to it, busy and idle, over all threads; beyond it requests wait. Default: its
        /// `workers`. An event-driven server (nginx) takes more than it has processes: say so here. Where the workers are
        /// to be found, the most to look for.
        max_connections: Whole<1, 65_535>, optional;
        /// The most requests that wait for it; one more is rejected.
        max_waiting: Whole<0, 10_000_000>, default(Whole(QueueBounds::default().max_waiting.into()));
        /// A request that waited this long is answered with a rejection.
        max_wait: Duration, default(QueueBounds::default().max_wait);
        /// The response header in which it reports what a request did cost, in seconds of service, where deadlines are
        /// promised: a number, or ORCA's `endpoint-load-metrics` with its `request_cost`. Absent: the time that it took.
        cost_header: HeaderName, optional;
        /// What it can carry.
        capacity: CapacityKeys, section;
    }
}

section! { "[upstream.NAME.capacity]"
    /// What an upstream can carry.
    CapacityKeys {
        /// How many requests it works on at once. Apache: `MaxRequestWorkers`. nginx: `worker_processes`. An
        /// application server: its processes times their threads. Several addresses: their sum. Absent: found while
        /// the gateway runs, as the number from which on more at once are only slower. Write it if you know it.
        workers: Whole<1, 1_000_000>, optional;
        /// Without `workers`: the page on which the server itself says how many it has: Apache's `server-status?auto`, or
        /// the status page of PHP-FPM. It is asked for every two seconds; until it answers they are looked for. nginx's
        /// `stub_status` counts connections and no workers.
        workers_from: HttpUrl, optional;
        /// Without `workers`: no fewer are looked for. Default: 1.
        min_workers: Whole<1, 65_535>, optional;
        /// Without `workers`: no more are looked for. Default: `max_connections`, or 1024 where that is not told either.
        max_workers: Whole<1, 65_535>, optional;
        /// The load line: the utilization to hold. Lower leaves more room for bursts, higher serves more at full
        /// quality. Default: 0.85; 1 where every class of all sites that it serves has a `delay` or a `deadline`:
        /// then that is what is held.
        load_line: Share, optional;
        /// What its network link carries, if that may be what runs out first.
        bandwidth: Rate, optional;
        /// A mean service time over this in one period counts as full load, whatever else is measured.
        response_time_limit: Duration, optional;
        /// How utilization is sensed.
        sense: Sense, default(Sense::default());
        /// What requests cost, if known. Learned from traffic otherwise, so leave it out unless you measured.
        costs: Within<CostKeys>, optional;
        /// Whether the gateway runs on the server's own machine: then rejections cost the server too.
        same_host: bool, default(false);
        /// The most that the sites' guarantees may take of it together, below 1. Default: the load line; at most 0.58 where
        /// deadlines are promised.
        ceiling: Share, optional;
    }
}

section! { "costs"
    /// What one request takes of the server, in time of all of it: a in U = a R + b W. A server that does at most 600
    /// such requests a second takes 1 / 600 s for each.
    CostKeys {
        /// The fixed part of a request.
        request: Seconds, required("write the fixed part of a request's cost, such as `request = \"1.6ms\"`");
        /// The part for each byte delivered.
        byte: Seconds, default(Seconds(0.0));
        /// A rejection. It counts where `same_host = true`.
        rejection: Seconds, default(Seconds(0.0));
    }
}

section! { "[folder.NAME]"
    /// A folder that the gateway serves itself, held at a load line like an upstream. Its utilization is that of the
    /// gateway's own CPU.
    FolderKeys {
        /// The folder. A relative path is taken from the folder of this file.
        root: Text, required("write the folder to serve: `root = \"/srv/www\"`");
        /// What to serve for a folder: the first of these names that exists.
        index: OneOrMany<Text>, default(default_index());
        /// Whether links may lead out of the folder.
        follow_symlinks: bool, default(FilesSettings::default().follow_symlinks);
        /// The most memory for small files, per thread.
        cache: Size, default(Size(FilesSettings::default().cache_bytes as u64));
        /// The most requests in service at once; beyond it requests wait.
        max_connections: Whole<1, 65_535>, default(Whole(1024));
        /// The most requests that wait; one more is rejected.
        max_waiting: Whole<0, 10_000_000>, default(Whole(QueueBounds::default().max_waiting.into()));
        /// A request that waited this long is answered with a rejection.
        max_wait: Duration, default(QueueBounds::default().max_wait);
        /// What the gateway can carry.
        capacity: FolderCapacityKeys, section;
    }
}

fn default_index() -> OneOrMany<Text> {
    let names = FilesSettings::default().index.into_iter();
    OneOrMany(names.map(|name| Located::sound(Text(name), 0..0)).collect())
}

section! { "[folder.NAME.capacity]"
    /// What the gateway can carry where it serves files itself.
    FolderCapacityKeys {
        /// The threads that serve. Default: the gateway's `threads`.
        workers: Whole<1, 1_000_000>, optional;
        /// The load line: the utilization to hold.
        load_line: Share, default(Share(0.85));
        /// What the network link carries, if that may be what runs out first. For files it often is.
        bandwidth: Rate, optional;
        /// A mean service time over this in one period counts as full load, whatever else is measured.
        response_time_limit: Duration, optional;
        /// What requests cost, if known. Learned from traffic otherwise.
        costs: Within<CostKeys>, optional;
        /// The most that the sites' guarantees may take of it together, below 1. Default: the load line; at most 0.58 where
        /// deadlines are promised.
        ceiling: Share, optional;
    }
}

section! { "[[site]]"
    /// A virtual server. A request belongs to the first site whose host matches.
    SiteKeys {
        /// Its name in metrics, headers and logs.
        name: Name, required("give the site a name: `name = \"shop\"`");
        /// Hosts, without port; one `*` stands for anything. Absent: every host.
        host: OneOrMany<HostPattern>, optional;
        /// The upstream that serves it. May be left out where only one is defined.
        upstream: Name, optional;
        /// The folder that serves it, instead of an upstream.
        folder: Name, optional;
        /// What a client is: its address, a header's value or a cookie's value.
        client: ClientIdentity, default(ClientIdentity(Identity::default()));
        /// Which requests get the better level when not all can.
        choice: Choice, default(Choice::default());
        /// What it gets at full quality whatever the others do. Absent: best effort, served from what the guarantees of
        /// others leave. A site that asks for more than was guaranteed gets what its guarantee can carry, degraded.
        guarantee: Within<GuaranteeKeys>, optional;
        /// Its share of what nobody's guarantee uses, relative to the other sites'.
        weight: Weight, default(Weight(1.0));
        /// Whether it may take of what nobody's guarantee uses. `false` holds it to its own, on an idle server too.
        share_excess: bool, default(true);
        /// Priority of the class `default`. Absent: 1 if it has a `delay` or a `deadline`, else after all classes that have one.
        default_priority: Whole<1, 100>, optional;
        /// How long its responses may take, from arrival to the server's last byte, on average: for each of its classes
        /// that has neither a `delay` nor a `ratio` of its own, `default` too.
        delay: Duration, optional;
        /// The `delay` is one that so many of a hundred responses keep, instead of the average.
        percentile: Percentile, optional;
        /// The `ratio` of the class `default`.
        default_ratio: Ratio, optional;
        /// Whether `ratio`s hold even where a worker must be left idle for it while somebody waits.
        strict_ratios: bool, default(false);
        /// Within which each of its requests that is admitted is answered, from arrival to the server's last byte; what
        /// could not be is refused at once, with a `Retry-After` that tells when it could. By what requests cost, not by
        /// how many they are. For each of its classes that has none of its own, `default` too. The plan is stricter.
        deadline: Duration, optional;
        /// What its deadlines prefer, where they cannot have both.
        prefer: Prefer, default(Prefer::default());
        /// The request header in which your application announces what a request will cost, in seconds of service. Believed
        /// from the gateway's `trusted_proxies` alone: a client would say that it costs nothing.
        cost_header: HeaderName, optional;
        /// Types of requests by what they cost, matched in order, where deadlines are promised. What matches none is
        /// `static`, `audio` or `video` by its path's extension, else `dynamic`.
        types as "type": Many<TypeKeys>, default(Many(Vec::new()));
        /// What its requests cost, if that differs from the upstream's `costs`: a script is not a file.
        costs: Within<CostKeys>, optional;
        /// Requests that are never degraded nor rejected: health checks.
        exempt: Many<MatchKeys>, default(Many(Vec::new()));
        /// The levels of service, lowest quality first. Absent: one level, `full`, the site as it is.
        level: Many<LevelKeys>, default(Many(Vec::new()));
        /// Groups of clients or requests, matched in order. What matches none is the class `default`.
        class: Many<ClassKeys>, default(Many(Vec::new()));
    }
}

section! { "guarantee"
    /// A site's capacity contract.
    GuaranteeKeys {
        /// The most requests that it covers.
        rate: RequestRate, required("write the most requests that it covers: `rate = \"100/s\"`");
        /// The most delivered bytes that it covers. Absent: as many as so many full responses have.
        bandwidth: Rate, optional;
        /// How much may come at once: so many seconds' worth.
        burst: Duration, default(Guarantee::BURST);
    }
}

section! { "[[site.level]]"
    /// A version of the service: how a request is changed to get it. The last level is full quality.
    LevelKeys {
        /// Its name in metrics, headers and logs.
        name: Name, required("give the level a name: `name = \"light\"`");
        /// Put before the path: `/light` makes `/light/page.html` of `/page.html`.
        prefix: Prefix, optional;
        /// Another upstream for this level.
        upstream: Name, optional;
        /// Another folder for this level.
        folder: Name, optional;
        /// Request headers to set, for a server that has versions of its own.
        headers: Pairs<SetHeaderName, HeaderValue>, optional;
        /// Whether what the upstream does not have at this level (404, to a GET or HEAD) is asked of it once more as the next
        /// level has it. The request counts, and its cost is learned, at the level that was decided; the report's header tells
        /// the one that answered. A folder of `plimsoll adapt` needs no such word: its manifest says so.
        fallback: bool, default(false);
        /// What a request costs at this level, as a share of the level above, if you know it. A first guess until it is
        /// measured.
        cost: Share, optional;
    }
}

section! { "[[site.class]]"
    /// A group of clients or requests.
    ClassKeys {
        /// Its name in metrics, headers and logs.
        name: Name, required("give the class a name: `name = \"premium\"`");
        /// Who belongs to it.
        condition as "match": Within<MatchKeys>, required("say who belongs to it: `match = { path = \"/buy/*\" }`");
        /// 1 is the highest. Lower classes of a site are degraded first, then rejected, and wait longer. Absent: 1 if it
        /// has a `delay` or a `deadline`, else after all classes that have one.
        priority: Whole<1, 100>, optional;
        /// As the site's, for this class.
        deadline: Duration, optional;
        /// As the site's, for this class.
        prefer: Prefer, optional;
        /// How long its responses may take, from arrival to the server's last byte, on average. As many workers are
        /// kept for it as that takes.
        delay: Duration, optional;
        /// The `delay` is one that so many of a hundred responses keep, instead of the average.
        percentile: Percentile, optional;
        /// How long its responses take relative to those of the site's other classes that have a ratio: one with 2 waits
        /// for its responses twice as long as one with 1. Instead of a `delay`.
        ratio: Ratio, optional;
    }
}

section! { "[[site.type]]"
    /// Requests that cost the server about as much as each other.
    TypeKeys {
        /// Its name in status and metrics.
        name: Name, required("give the type a name: `name = \"report\"`");
        /// Who belongs to it.
        condition as "match": Within<MatchKeys>, required("say who belongs to it: `match = { path = \"/reports/*\" }`");
        /// What one costs relative to a small static file, until it is measured. Of the types that need not be told:
        /// `static` 1, `dynamic` 10, `audio` 20, `video` 100.
        cost: Weight, default(Weight(10.0));
    }
}

section! { "match"
    /// Which requests are meant: all keys that are given must hold, and a key holds if any of its values does. In
    /// patterns, one `*` stands for any run of characters. At least one key.
    MatchKeys {
        /// Patterns of the path, without the query.
        path: OneOrMany<PathPattern>, optional;
        /// Methods.
        method: OneOrMany<Method>, optional;
        /// Header names, and patterns of their values.
        header: Pairs<HeaderName, OneOrMany<Pattern>>, optional;
        /// Cookie names, and patterns of their values.
        cookie: Pairs<CookieName, OneOrMany<Pattern>>, optional;
        /// Networks or addresses of clients.
        client: OneOrMany<Network>, optional;
    }
}

section! { "[rejection]"
    /// The answer to a request that is rejected.
    RejectionKeys {
        /// The status code.
        status: Whole<400, 599>, default(Whole(Rejection::default().status.into()));
        /// The body.
        body: Text, default(Text(Rejection::default().body));
        /// The body's media type.
        content_type: ContentType, default(ContentType(Rejection::default().content_type));
    }
}

section! { "[report]"
    /// The response header that tells level and reason.
    ReportKeys {
        /// Which responses carry it.
        when: ReportMode, default(Report::default().mode);
        /// Its name.
        header: HeaderName, default(HeaderName(Report::default().name));
    }
}

section! { "[limits]"
    /// What is too much.
    LimitKeys {
        /// Request line and headers together, at most 64 KiB; beyond it 431.
        head: Size, default(Size(Limits::default().head_bytes as u64));
        /// The request's body; beyond it 413.
        body: Size, default(Size(Limits::default().body_bytes));
        /// The most client connections. Beyond it a new one takes the place of the one that is idle longest, or waits in
        /// the kernel's queue. `plimsoll run` lowers it to what the process may open.
        connections: Whole<1, 10_000_000>, default(Whole(Limits::default().connections as u64));
    }
}

section! { "[timeouts]"
    /// Times after which something is given up.
    TimeoutKeys {
        /// A client sends its request's head.
        head: Duration, default(Timeouts::default().head);
        /// Between two reads of a request's body; and on average it comes at 1 KiB a second at least, or the client loses
        /// its place at the server.
        body: Duration, default(Timeouts::default().body_idle);
        /// A client's connection without a request.
        keep_alive: Duration, default(Timeouts::default().keep_alive);
        /// Between two writes to a client that reads slowly; while the server waits for it, 1 KiB a second at least.
        send: Duration, default(Timeouts::default().send);
        /// Connecting to an upstream.
        connect: Duration, default(Timeouts::default().connect);
        /// From the request sent to the head of the upstream's response; also how long an exempt request may wait.
        first_byte: Duration, default(Timeouts::default().first_byte);
        /// Between two reads of an upstream's response.
        upstream_idle: Duration, default(Timeouts::default().upstream_idle);
        /// An upstream's connection without a request. Keep it below the upstream's own limit (Apache's
        /// `KeepAliveTimeout` is 5 s), or requests meet connections that are just being closed.
        upstream_keep_alive: Duration, default(Timeouts::default().upstream_keep_alive);
        /// Without a byte either way on an upgraded connection (WebSocket).
        tunnel: Duration, default(Timeouts::default().tunnel_idle);
        /// How long requests under way may take after the order to stop.
        drain: Duration, default(Timeouts::default().drain);
    }
}

section! { "[control]"
    /// How the loops run. For experts: the defaults are meant to be kept.
    ControlKeys {
        /// The control period.
        period: Duration, default(Control::default().period);
        /// The law that moves the level.
        law: LawName, default(LawName::FeedForward);
        /// The gain margin of `law = "paper"`; 4 where absent.
        gain_margin: GainMargin, optional;
        /// Told to a rejected client as `Retry-After`, in whole seconds.
        retry_after: Duration, default(Control::default().retry_after);
        /// What of the law that holds a `delay` runs.
        delay_law: DelayParts, default(DelayParts::default());
        /// What decides whether a request with a `deadline` comes in.
        admission: Admission, default(Admission::default());
        /// With `admission = "budget"`: least and most share of each priority's, the highest first, such as
        /// `["0.2-1", "0-0.5"]`. Absent: the whole to the highest, and to the others what is predicted to remain.
        shares: OneOrMany<LeastToMost>, optional;
        /// With `admission = "budget"`: the file that keeps how rates go on by the hour of day. Read at the start if it is
        /// there; written at the end of each hour, at a reload and at the end. A relative path is taken from the folder of this file.
        trends: Text, optional;
    }
}
