//! The table of a workload's keys, as those of the configuration are in `crate::gateway`.

use super::plants::LISTEN_QUEUE;
use super::values::{
    BytesRatio, End, FormatKind, Host, Hurst, LawKind, Load, Moment, Multiple, PagePath, ProcessKind, Sample,
    ShapeNumber, Skew, StateRatio, TailShape,
};
use crate::gateway::http::{HeaderName, HeaderValue, Method};
use crate::gateway::plants::CostKeys;
use crate::syntax::{
    Either, NamedSections, OneOrMany, Pairs, RequestRate, Seconds, Sections, Share, Size, Table, Text,
    Weight, Whole, section,
};
use plimsoll_core::time::Duration;
use std::net::Ipv4Addr;

section! { "the file"
    /// Everything outside the gateway.
    WorkloadKeys {
        /// When the simulation ends; what a log has after that is left out. Absent: when the streams have ended and every
        /// request was answered.
        duration: End, default(End(None));
        /// What arrives. Several streams come together, in order of time.
        stream: Sections<StreamKeys>, default(Sections(Vec::new()));
        /// The servers as they truly are, by the names of the configuration's upstreams and folders.
        plant: NamedSections<PlantKeys>, default(NamedSections(Vec::new()));
        /// The true costs of the levels of service, by the names of the configuration's sites.
        site: NamedSections<VersionsKeys>, default(NamedSections(Vec::new()));
    }
}

section! { "[[stream]]"
    /// A flow of requests. Exactly one of `rate`, `load`, `counts` and `log` says when they come.
    StreamKeys {
        /// The stream's name in messages. Default: its number.
        name: Text, optional;
        /// How many requests come: one rate for all time, or phases.
        rate: Either<RequestRate, Sections<RatePhaseKeys>>, optional;
        /// The rate as a multiple of what the server of these pages carries at full quality: `3.0` is three times as
        /// much as it can do. One for all time, or phases.
        load: Either<Load, Sections<LoadPhaseKeys>>, optional;
        /// A file with the number of requests in each interval, one a line (a number alone, or the last column of a
        /// CSV), plain or compressed by gzip; `-` is standard input. A relative path is taken from the folder of this
        /// file.
        counts: Text, optional;
        /// An access log, plain or compressed by gzip; `-` is standard input. It brings its own pages and clients.
        log: Text, optional;
        /// How arrivals vary around `rate` or `load`.
        process: Either<ProcessKind, Table<ProcessKeys>>, default(Either::Simple(ProcessKind::Poisson));
        /// Short bursts on top of `rate` or `load`. They need the file's `duration`.
        bursts: Table<BurstKeys>, optional;
        /// The length of an interval of `counts`.
        every: Duration, optional;
        /// The format of `log` or `pages_from`.
        format: FormatKind, default(FormatKind::Auto);
        /// The names of the fields of JSON lines, where they are not those in common use.
        fields: Table<FieldKeys>, optional;
        /// `counts` and `log`: the factor by which time passes faster.
        speed: Multiple, default(Multiple(1.0));
        /// `counts` and `log`: the factor by which requests are repeated, each copy from a client of its own; for a
        /// fraction, chance decides.
        scale: Multiple, default(Multiple(1.0));
        /// The pages that are asked for. Absent: the page `/` of 8 KiB on the first site.
        page: Sections<PageKeys>, default(Sections(Vec::new()));
        /// Or an access log, each of whose requests is as likely as another.
        pages_from: Text, optional;
        /// How many clients share the stream, each at an address of its own.
        clients: Whole<1, 16_777_216>, default(Whole(1000));
        /// How unevenly they share it: 1 is evenly; at 2 the first quarter of them sends half of the requests.
        skew: Skew, default(Skew(1.0));
        /// The address of the first client; the others follow. Streams with the same one share their clients.
        first_client: Ipv4Addr, default(Ipv4Addr::new(10, 0, 0, 0));
        /// A client leaves when it has waited this long without its answer. Absent: never.
        patience: Duration, optional;
        /// A client that was turned away, failed or lost its patience tries again. Absent: it does not.
        retry: Table<RetryKeys>, optional;
    }
}

section! { "rate phase"
    /// A phase of a stream's `rate`: from its beginning to that of the next phase.
    RatePhaseKeys {
        /// The beginning of the phase. Nothing comes before the first.
        from: Moment, required("write when it begins: `from = \"0s\"`");
        /// The rate at its beginning.
        rate: RequestRate, required("write how many requests come: `rate = \"500/s\"`");
        /// The rate that it reaches, on a straight line, when the next phase begins. Absent: it stays as it is.
        to: RequestRate, optional;
    }
}

section! { "load phase"
    /// A phase of a stream's `load`: from its beginning to that of the next phase.
    LoadPhaseKeys {
        /// The beginning of the phase. Nothing comes before the first.
        from: Moment, required("write when it begins: `from = \"0s\"`");
        /// The load at its beginning.
        load: Load, required("write the load as a multiple of what the server carries: `load = 3.0`");
        /// The load that it reaches, on a straight line, when the next phase begins. Absent: it stays as it is.
        to: Load, optional;
    }
}

section! { "process"
    /// How arrivals vary, with the numbers that the kind needs: `process = { kind = "pareto", shape = 1.5 }`.
    ProcessKeys {
        /// The kind of arrival process.
        kind: ProcessKind, required("write which: `kind = \"self-similar\"`");
        /// `pareto`: the intervals' tail, P(X > x) ~ x^-shape; at 2 and below there is no variance.
        shape: TailShape, optional;
        /// `self-similar`: H. The nearer to 1, the longer the memory. 0.8 where absent.
        hurst: Hurst, optional;
        /// `self-similar` and `surge`: how many sources, or users. 100 where absent.
        sources: Whole<1, 1_000_000>, optional;
        /// `surge`: whether a user waits for its answer before its next request, as SURGE's users do. The rate is then that
        /// of `rate` or `load` if every answer comes at once, and lower the longer answers take. Absent: it does not wait,
        /// as the paper QM changed it.
        waits: bool, optional;
        /// `modulated`: the rate in a burst as a multiple of the rate in the calm.
        ratio: StateRatio, optional;
        /// `modulated`: the mean length of a burst.
        burst: Duration, optional;
        /// `modulated`: the mean length of the calm between.
        calm: Duration, optional;
    }
}

section! { "bursts"
    /// Bursts at equal distances: `bursts = { every = "7s", length = "50ms", factor = 8 }`.
    BurstKeys {
        /// Time from the beginning of one burst to that of the next. The first begins after this time.
        every: Duration, required("write how far apart they are: `every = \"7s\"`");
        /// How long each lasts.
        length: Duration, required("write how long each lasts: `length = \"50ms\"`");
        /// The rate in a burst as a multiple of the rate without it.
        factor: StateRatio, required("write how many times the rate it is: `factor = 8`");
    }
}

section! { "fields"
    /// Names of fields of JSON lines. A list holds alternatives: the first that is there.
    FieldKeys {
        /// The time: seconds or milliseconds since 1970, RFC 3339, or as in the Common Log Format.
        time: OneOrMany<Text>, optional;
        /// The client's address or name.
        client: OneOrMany<Text>, optional;
        /// The request line, `GET /path HTTP/1.1`; without it, method and path.
        request: OneOrMany<Text>, optional;
        /// The method of the request.
        method: OneOrMany<Text>, optional;
        /// The path, or a whole URL.
        path: OneOrMany<Text>, optional;
        /// The host that was asked for.
        host: OneOrMany<Text>, optional;
        /// Body bytes of the response.
        bytes: OneOrMany<Text>, optional;
        /// The status of the response.
        status: OneOrMany<Text>, optional;
        /// The service time in seconds: its true one, at full quality.
        service: OneOrMany<Text>, optional;
    }
}

section! { "[[stream.page]]"
    /// A page, or a kind of pages.
    PageKeys {
        /// The method of its requests.
        method: Method, default(Method("GET".to_owned()));
        /// The host asked for. Default: one of the first site's.
        host: Host, optional;
        /// The path without query; one `*` is replaced by a number from 0 to 999 by chance, or by the number of a file.
        path: PagePath, default(PagePath("/".to_owned()));
        /// Headers of its requests.
        headers: Pairs<HeaderName, HeaderValue>, optional;
        /// The page's share of the stream's requests, relative to the other pages'.
        weight: Weight, default(Weight(1.0));
        /// Body bytes of the response at full quality, on average.
        bytes: Size, default(Size(8 << 10));
        /// How the bytes vary around that mean.
        bytes_law: Either<LawKind, Table<LawKeys>>, default(Either::Simple(LawKind::Deterministic));
        /// The number of files in the manner of SURGE (Barford and Crovella, SIGMETRICS 1998) that take the place of one
        /// page: lognormal sizes with Pareto's tail from 133,000 bytes, the file of rank r asked for 1/r as often as the
        /// first. It needs a `*` in the path.
        files: Whole<1, 100_000>, optional;
        /// One worker's mean time for it at full quality, where that differs from the time that the server takes for other
        /// requests of the same size.
        service: Duration, optional;
        /// How that time varies, where it is not as the server's does.
        service_law: Either<LawKind, Table<LawKeys>>, optional;
    }
}

section! { "law"
    /// The form of a distribution whose mean is given beside it: `{ kind = "pareto", shape = 1.2, ratio = 1000 }`.
    LawKeys {
        /// The kind of distribution.
        kind: LawKind, required("write which: `kind = \"pareto\"`");
        /// `pareto`: alpha. The smaller, the heavier the tail.
        shape: ShapeNumber, optional;
        /// `pareto`: the upper bound as a multiple of the lower one.
        ratio: StateRatio, optional;
        /// `lognormal`: the standard deviation as a multiple of the mean.
        variation: ShapeNumber, optional;
        /// `empirical`: the values, in any unit: only their proportions count.
        values: OneOrMany<Sample>, optional;
    }
}

section! { "retry"
    /// Clients that try again after a refusal.
    RetryKeys {
        /// How long after the refusal, on average (exponential, so that retries do not come in step).
        after: Duration, required("write how long a client waits before it tries again: `after = \"2s\"`");
        /// The most times that a client tries again.
        most: Whole<1, 1000>, default(Whole(3));
        /// Whether a client that the gateway turned away comes at the time of the answer's `Retry-After` instead.
        obeys: bool, default(false);
    }
}

section! { "[plant.NAME]"
    /// A server as it truly is, by the name of the configuration's upstream or folder. Workers, costs and bandwidth that
    /// are not given are those of the configuration. The gateway sees nothing of this: it learns from the requests that it
    /// serves.
    PlantKeys {
        /// The number of requests it works on at once, first come first served: a process pool. Default: as configured.
        /// Where the configuration leaves the number to be found, this is the one that is to be found, and must be there
        /// unless an earlier run of the gateway has found it.
        workers: Whole<1, 1_000_000>, optional;
        /// Or the cores that all requests in service share evenly: an event-driven server, or more processes than
        /// cores.
        cores: Whole<1, 1_000_000>, optional;
        /// With `cores`: the most requests in service at once. Default: the connections that the gateway makes.
        connections: Whole<1, 10_000_000>, optional;
        /// The most requests that wait in its listen queue; one more is lost. Apache's `ListenBacklog`.
        listen_queue: Whole<0, 10_000_000>, default(Whole(LISTEN_QUEUE));
        /// The fixed part of one worker's time for a request.
        service: Duration, optional;
        /// One worker's time for each KiB of the response.
        service_per_kib: Seconds, optional;
        /// Or both as the configuration has them, in time of all workers together.
        costs: Table<CostKeys>, optional;
        /// How service times vary.
        service_law: Either<LawKind, Table<LawKeys>>, default(Either::Simple(LawKind::Deterministic));
        /// The server's network link, which a response passes after its service, shared by all. Default: the configured
        /// `bandwidth`.
        link: crate::syntax::Rate, optional;
        /// One worker's time for a rejection, where the gateway shares its machine.
        rejection: Seconds, optional;
        /// One worker's time for a request whose client left before its service began.
        failure: Seconds, default(Seconds(0.0));
        /// Whether it reports its own utilization. Default: where the configuration relies on it.
        reports: bool, optional;
        /// Faults of the server, and when they come.
        fault: Sections<FaultKeys>, default(Sections(Vec::new()));
    }
}

section! { "[[plant.NAME.fault]]"
    /// A fault that lasts for a while: exactly one of `slower`, `pause`, `takes` and `fails`.
    FaultKeys {
        /// The first moment of the fault.
        from: Moment, required("write when it begins: `from = \"10s\"`");
        /// The last moment of the fault.
        until: Moment, required("write when it ends: `until = \"20s\"`");
        /// The factor by which all work takes longer, including work under way.
        slower: StateRatio, optional;
        /// Whether the server stands still: no work goes on.
        pause: bool, optional;
        /// A request that starts meanwhile takes this long, whatever it is.
        takes: Duration, optional;
        /// A request that starts meanwhile fails after this time.
        fails: Duration, optional;
    }
}

section! { "[site.NAME]"
    /// The true costs of a site's levels.
    VersionsKeys {
        /// Levels, by their names in the configuration. The last one is full quality and needs nothing.
        level: NamedSections<VersionKeys>, default(NamedSections(Vec::new()));
    }
}

section! { "[site.NAME.level.NAME]"
    /// A level of service as it truly is. If neither this file nor the configuration has its cost, a level is assumed to
    /// take 0.25 of the level above, and the simulation reports that.
    VersionKeys {
        /// The level's service time as a share of the level above. Default: the configured `cost`; if only `bytes` is
        /// given, the time that the server takes for these bytes; for a page with a time of its own, its share of the
        /// bytes.
        cost: Share, optional;
        /// The level's body bytes as a multiple of the level above. Default: as `cost`.
        bytes: BytesRatio, optional;
    }
}
