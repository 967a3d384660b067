//! What a simulation is given besides the promises, as plain data: arrivals, clients, and the truth about servers.
//!
//! The gateway under test sees none of this truth: it learns from what it serves, as in production. Service times are those of
//! one worker alone. The shape of a distribution is given apart from its mean ([`Law`]), so that the mean can change and the
//! shape stay.

mod simple;

pub use crate::arrivals::LoggedLevel;
pub use crate::fault::{Fault, FaultKind};
use plimsoll_core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything outside the gateway.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// The streams of requests, merged in order of time.
    pub streams: Vec<Stream>,
    /// The true servers: one for each of [`Promises::plants`](plimsoll_core::promises::Promises::plants).
    pub plants: Vec<Plant>,
    /// The cost of a request at levels 1..=M of each site, relative to the full one: one list per site. A site without a list
    /// is served at full cost at every level.
    pub versions: Vec<Vec<Version>>,
    /// The host of requests that name none, such as those of a log in the Common format. Empty: they keep no host.
    pub default_host: String,
    /// The end of the run. `None`: the run ends when the streams have ended and no request is under way.
    pub duration: Option<Duration>,
}

/// A flow of requests.
#[derive(Clone, Debug)]
pub struct Stream {
    /// A name for messages.
    pub name: String,
    /// When the requests come.
    pub arrivals: Arrivals,
    /// What the requests ask for. A log brings its own.
    pub content: Content,
    /// The clients that ask. A log brings its own.
    pub clients: Clients,
    /// How long a client waits for its answer before it leaves; `None`: it never leaves.
    pub patience: Option<Duration>,
    /// How clients retry that were rejected, failed or lost their patience; `None`: they do not.
    pub retry: Option<Retry>,
}

impl Stream {
    /// Whether users wait for their answers, so that later requests depend on what became of earlier ones.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.arrivals, Arrivals::Process { process: Process::Surge { waits: true, .. }, .. })
    }
}

/// When requests come.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// A random process with a rate that may change.
    Process {
        /// How arrivals vary around the rate.
        process: Process,
        /// The rate, in order of time. No request comes before the first phase.
        rate: Vec<Phase>,
    },
    /// Numbers of requests per interval, one a line (a number alone, or the last column of a CSV), spread uniformly at random
    /// within each interval.
    Counts {
        /// The lines.
        input: Input,
        /// The length of an interval before `replay`'s speed.
        every: Duration,
        /// The speed and the number of copies.
        replay: Replay,
    },
    /// An access log.
    Log {
        /// The lines of the log.
        input: Input,
        /// The format of the lines.
        format: LogFormat,
        /// How the log is read.
        options: LogOptions,
        /// The speed and the number of copies.
        replay: Replay,
    },
}

/// How arrivals vary around their rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Process {
    /// Independent arrivals.
    #[default]
    Poisson,
    /// Requests at equal distances.
    Deterministic,
    /// Independent intervals with a heavy tail, P(X > x) ~ x^-shape.
    Pareto {
        /// Above 1, because otherwise there is no mean; at 2 and below there is no variance.
        shape: f64,
    },
    /// Many sources that are on and off for times with heavy tails: their sum is self-similar (QM 2.2's traffic;
    /// Willinger et al. 1997).
    SelfSimilar {
        /// H in (0.5, 1): the tails' shape is 3 - 2 H.
        hurst: f64,
        /// How many sources there are.
        sources: u32,
    },
    /// The users of SURGE (Barford and Crovella 1998): pages of several files, and times between requests with heavy tails.
    Surge {
        /// How many user equivalents there are. Their times are scaled to the rate; SURGE's own rate is 0.27 requests a second
        /// for each.
        users: u32,
        /// Whether a user waits for its answer before its next request, as in SURGE; then the rate is reached only if answers
        /// take no time. Otherwise times do not depend on the answers, as the paper QM changed it.
        waits: bool,
    },
    /// Two states in turn, each Poisson (a Markov-modulated process). The rate given is the mean over both.
    Modulated {
        /// The rate in the burst state as a multiple of that in the calm state, above 1.
        ratio: f64,
        /// Mean length of a burst.
        burst: Duration,
        /// Mean length of the calm between.
        calm: Duration,
    },
}

/// A stretch of time with its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The beginning of the phase.
    pub from: Duration,
    /// The rate at its beginning [1/s].
    pub rate: f64,
    /// The rate at the beginning of the next phase, reached on a straight line. The last phase has none.
    pub to: Option<f64>,
}

/// How recorded traffic is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// Recorded seconds that pass in one second of the run.
    pub speed: f64,
    /// Copies of each request, each from a client of its own; a fraction is the probability of one more.
    pub scale: f64,
}

impl Default for Replay {
    fn default() -> Self {
        Replay { speed: 1.0, scale: 1.0 }
    }
}

/// Text that is read line by line, never whole.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file, plain or compressed by gzip; `-` is standard input.
    File(PathBuf),
    /// Text at hand.
    Text(Arc<str>),
}

/// The format of an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The format that the first lines look like.
    #[default]
    Auto,
    /// Common or Combined, as Apache and nginx write by default.
    Common,
    /// HAProxy's own (`option httplog`).
    Haproxy,
    /// One JSON object a line.
    Json(Box<JsonFields>),
}

/// How a log is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogOptions {
    /// Whether all lines are sorted by time before the first is simulated. Otherwise only lines that are less than a minute
    /// late are put in their place.
    pub sort: bool,
    /// Which of the lines' times are used.
    pub times: LogTimes,
    /// The mean (s) of these times, if they only weigh requests against each other: each request then takes what the server
    /// takes, times its own time over this mean. `None`: the times themselves are the service times.
    pub weigh_by: Option<f64>,
    /// The costs of the levels that the gateway's own log names; a line's figures are those of the level that was served.
    pub levels: Vec<LoggedLevel>,
}

/// Which times of a log's lines are used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LogTimes {
    /// The server's own times.
    #[default]
    Own,
    /// Also times that are only an upper bound, since they include waiting and the client's own slowness.
    Bounds,
    /// No times.
    Ignored,
    /// The times in this field, whatever it looks like.
    Field(TimeField),
}

/// A field of a log's lines that holds a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeField {
    /// Where the field stands.
    pub place: FieldPlace,
    /// The field's unit; `None`: microseconds if the number is whole and large, else seconds.
    pub unit: Option<TimeUnit>,
}

/// Where a field stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPlace {
    /// The n-th field, from 1, behind the Common or Combined format's own.
    Number(usize),
    /// The field with this name: of a JSON object, or in `name=value`.
    Name(String),
}

/// A unit of time in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// s
    Seconds,
    /// ms
    Milliseconds,
    /// us
    Microseconds,
    /// ns
    Nanoseconds,
}

impl TimeUnit {
    /// The length of one unit in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            TimeUnit::Seconds => 1.0,
            TimeUnit::Milliseconds => 1e-3,
            TimeUnit::Microseconds => 1e-6,
            TimeUnit::Nanoseconds => 1e-9,
        }
    }
}

/// Names of the fields of JSON lines. If there are several names, the first that a line has counts. An empty list stands for
/// the names in common use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonFields {
    /// The time stamp: seconds or milliseconds since 1970, RFC 3339, or as in the Common format.
    pub time: Vec<String>,
    /// The client's address or name.
    pub client: Vec<String>,
    /// The request line, `GET /path HTTP/1.1`; or, without it, method and path.
    pub request: Vec<String>,
    /// The method.
    pub method: Vec<String>,
    /// Path or URL.
    pub path: Vec<String>,
    /// The host asked for.
    pub host: Vec<String>,
    /// Body bytes of the response.
    pub bytes: Vec<String>,
    /// The response's status.
    pub status: Vec<String>,
    /// The service time of the request in seconds (a number or text), taken as its true service time at full quality.
    pub service: Vec<String>,
}

/// What requests ask for.
#[derive(Clone, Debug)]
pub enum Content {
    /// One of these pages, by weight.
    Pages(Vec<Page>),
    /// One of the requests of an access log, each as likely as another.
    Log(Input, LogFormat),
}

/// A page, or a kind of pages.
#[derive(Clone, Debug)]
pub struct Page {
    /// The method, mostly `GET`.
    pub method: String,
    /// The host asked for; may be empty.
    pub host: String,
    /// The path, and the query if it has one; one `*` in the path is replaced by a number from 0 to 999 by chance.
    pub path: String,
    /// Request headers.
    pub headers: Vec<(String, String)>,
    /// The page's share of the requests, relative to other pages.
    pub weight: f64,
    /// Mean body bytes of a full response.
    pub bytes: f64,
    /// How bytes vary around their mean.
    pub bytes_law: Law,
    /// The page's own mean service time at full quality, if it differs from the server's fixed and per-byte part.
    pub service: Option<Duration>,
    /// How the page's service time varies, if it differs from the server's law.
    pub service_law: Option<Law>,
}

/// The shape of a distribution whose mean is given beside it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Law {
    /// Always the mean.
    #[default]
    Deterministic,
    /// Exponential.
    Exponential,
    /// Pareto between two bounds.
    BoundedPareto {
        /// alpha > 0; the smaller, the heavier the tail.
        shape: f64,
        /// The upper bound over the lower one, above 1.
        ratio: f64,
    },
    /// Lognormal.
    Lognormal {
        /// Standard deviation over mean, above 0.
        variation: f64,
    },
    /// One of these values, each as likely, scaled to the mean. No value may be negative; not all may be zero.
    Empirical(Arc<[f64]>),
}

/// The clients of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many clients share the stream; at least 1.
    pub count: u32,
    /// How unevenly the clients send: 1 is evenly; at 2 the first quarter of them sends half of the requests.
    pub skew: f64,
    /// The first client's address as a number; the others follow. Streams with the same first address share their clients.
    pub first_address: u32,
}

/// How a client retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// How long after the refusal the retry comes, on average (exponential, so that retries do not come in step).
    pub after: Duration,
    /// Whether a rejected client retries when the answer's `Retry-After` says instead.
    pub obeys: bool,
    /// The most retries of a request.
    pub most: u32,
}

/// A server as it truly is.
#[derive(Clone, Debug)]
pub struct Plant {
    /// The order of service.
    pub discipline: Discipline,
    /// The most requests that wait in its listen queue.
    pub listen_queue: usize,
    /// What becomes of a request that finds the listen queue full.
    pub full_queue: FullQueue,
    /// The fixed part of a request's service, one worker's time.
    pub service: Duration,
    /// The part for each byte of the response, one worker's time [s/byte].
    pub service_per_byte: f64,
    /// How service times vary.
    pub law: Law,
    /// The server's network link, which a response passes after its service, shared by all responses [bytes/s].
    pub link: Option<f64>,
    /// The cost c of a rejection on one worker, if the gateway shares the server's machine.
    pub rejection: Duration,
    /// The part of a worker's time in which it uses a processor of its machine; 1: all of it. If it is below 1, a rejection
    /// takes time only of the processors, which have as much time as all workers have.
    pub processor: f64,
    /// T_f: what a request takes of a worker if its client left before service began (UC 7.5).
    pub failure: Duration,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
    /// Whether the server reports its own utilization (as ORCA's `endpoint-load-metrics` would).
    pub reports: bool,
}

impl Plant {
    /// A server without a link or faults, whose service times do not vary; rejections and failures cost nothing.
    pub fn new(discipline: Discipline, listen_queue: usize, service: Duration) -> Self {
        Plant {
            discipline,
            listen_queue,
            full_queue: FullQueue::default(),
            service,
            service_per_byte: 0.0,
            law: Law::Deterministic,
            link: None,
            rejection: Duration::ZERO,
            processor: 1.0,
            failure: Duration::ZERO,
            faults: Vec::new(),
            reports: false,
        }
    }
}

/// What becomes of a request that finds the listen queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullQueue {
    /// It is refused at once.
    #[default]
    Refuses,
    /// The server does not answer the connection, as Linux does not. The client tries again 1, 3, 7 seconds after the first
    /// attempt and so on, and gives up after this time.
    Drops(Duration),
}

/// The order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Workers, each with one request, first come first served (a process pool: UC 6.1).
    Workers(u32),
    /// Cores, shared evenly by all requests in service (an event loop, or more processes than cores).
    Sharing {
        /// Cores: a request alone gets one.
        cores: u32,
        /// The most in service at once; more wait in the listen queue.
        most: u32,
    },
}

impl Discipline {
    /// The number of workers or cores, s: the most jobs that are served at full speed at once.
    pub fn servers(self) -> u32 {
        match self {
            Discipline::Workers(servers) | Discipline::Sharing { cores: servers, .. } => servers,
        }
    }
}

/// The true cost of a level of service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Version {
    /// Service time relative to the full version. `None`: the server's time for the level's bytes.
    pub cost: Option<f64>,
    /// Body bytes relative to the full version.
    pub bytes: f64,
}

impl Version {
    /// Full quality.
    pub const FULL: Version = Version { cost: Some(1.0), bytes: 1.0 };
}
