//! Several flows of requests at once, and what became of each request by the time that it was due.
//!
//! In front of the origin of known capacity, which is a server on loopback like any other but keeps its times exactly: so
//! what a flow used of it follows from what it was given.

use crate::overload::PATIENCE;
use plimsoll_load::{
    Answer, Cost, OpenLoop, Origin, OriginHandle, OriginSettings, Outcome, PathClass, Paths, Record, Step,
    Target,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const WORKERS: u32 = 32;
const KILOBYTES: usize = 32;
/// What each request takes of a worker, and what a full page's bytes take.
const FIXED: Duration = Duration::from_millis(50);
const BYTES: Duration = Duration::from_millis(50);
/// Of the light page, as a part of the full one's. Half of what a page costs is not in its bytes.
const LIGHT: f64 = 0.125;

/// The most full pages per second that the server can make.
#[must_use]
pub fn capacity() -> f64 {
    f64::from(WORKERS) / (FIXED + BYTES).as_secs_f64()
}

/// The server.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn server() -> OriginHandle {
    let full = KILOBYTES * 1024;
    let light = PathClass::new("light", "/light", (full as f64 * LIGHT) as usize);
    let settings = OriginSettings {
        workers: WORKERS,
        cost: Cost { fixed: FIXED, per_kilobyte: BYTES / KILOBYTES as u32 },
        classes: vec![PathClass::new("full", "/", full), light],
        ..OriginSettings::default()
    };
    Origin::start(settings).unwrap_or_else(|error| panic!("the origin does not start: {error}"))
}

/// A gateway before it, which knows what a full page costs; the level is told with every answer. Sites come after it.
#[must_use]
pub fn before(upstream: SocketAddr, mode: &str) -> String {
    // Of the whole server: of 8 workers each takes an eighth of it.
    let request = FIXED.as_secs_f64() * 1e3 / f64::from(WORKERS);
    let byte = BYTES.as_secs_f64() * 1e9 / f64::from(WORKERS) / (KILOBYTES * 1024) as f64;
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\nmode = \"{mode}\"\n\n\
         [upstream.server]\naddress = \"{upstream}\"\nmax_connections = {WORKERS}\n\
         capacity = {{ workers = {WORKERS}, costs = {{ request = \"{request}ms\", byte = \"{byte:.3}ns\" }} }}\n\n\
         [report]\nwhen = \"always\"\n"
    )
}

/// A site of two levels. `more` says its host, if it has one, and its other keys.
#[must_use]
pub fn site(name: &str, more: &str) -> String {
    let levels = "[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n[[site.level]]\nname = \"full\"\n";
    format!("\n[[site]]\nname = \"{name}\"\n{more}\n{levels}")
}

/// A site with a contract for a part of the server.
#[must_use]
pub fn contract(name: &str, part: f64) -> String {
    let rate = part * capacity();
    site(name, &format!("host = \"{name}.test\"\nguarantee = {{ rate = \"{rate}/s\" }}\n"))
}

/// Requests of a Poisson process for one path of one host.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The host.
    pub host: &'static str,
    /// The path.
    pub path: &'static str,
    /// One rate after the other.
    pub steps: Vec<Step>,
}

impl Flow {
    /// For the page of a host; each step is its seconds, and its rate as a part of the server's capacity.
    #[must_use]
    pub fn new(host: &'static str, steps: &[(f64, f64)]) -> Flow {
        let step = |(seconds, part): &(f64, f64)| (Duration::from_secs_f64(*seconds), part * capacity());
        Flow { host, path: "/page", steps: steps.iter().map(step).collect() }
    }
}

/// Starts all flows, calls `meanwhile`, and waits for their ends; what became of each.
///
/// # Panics
/// If a load cannot be started.
pub fn drive(gateway: SocketAddr, flows: Vec<Flow>, meanwhile: impl FnOnce()) -> Vec<Flown> {
    let start = |(number, flow): (usize, Flow)| {
        let records: Arc<Mutex<Vec<Record>>> = Arc::default();
        let keep = Arc::clone(&records);
        let group = number as u8 + 1;
        let target = Target {
            host: flow.host.into(),
            level_header: Some("x-plimsoll".into()),
            timeout: PATIENCE,
            ..Target::new(gateway)
        };
        let load = OpenLoop {
            paths: Paths::one(flow.path),
            clients: 400,
            first_address: Ipv4Addr::new(127, 16 * group, 0, 1),
            seed: group.into(),
            ..OpenLoop::new(target, flow.steps)
        };
        let sink = move |record: &Record| keep.lock().unwrap_or_else(PoisonError::into_inner).push(*record);
        let load = load.start(Some(Box::new(sink)));
        (load.unwrap_or_else(|error| panic!("the load does not start: {error}")), records)
    };
    let running: Vec<_> = flows.into_iter().enumerate().map(start).collect();
    meanwhile();
    let end = |(load, records): (plimsoll_load::LoadHandle, Arc<Mutex<Vec<Record>>>)| {
        load.join();
        Flown { records: std::mem::take(&mut records.lock().unwrap_or_else(PoisonError::into_inner)) }
    };
    running.into_iter().map(end).collect()
}

/// What became of a flow's requests.
#[derive(Clone, Debug)]
pub struct Flown {
    records: Vec<Record>,
}

impl Flown {
    /// Those that were due in these seconds.
    #[must_use]
    pub fn during(&self, seconds: Range<f64>) -> Window {
        let mut window = Window { seconds: seconds.end - seconds.start, ..Window::default() };
        for record in self.records.iter().filter(|record| seconds.contains(&record.arrival.as_secs_f64())) {
            window.add(record);
        }
        window
    }

    /// Those that were due in these seconds and answered with a page within `limit`.
    #[must_use]
    pub fn answered_within(&self, seconds: Range<f64>, limit: Duration) -> u64 {
        let due = self.records.iter().filter(|record| seconds.contains(&record.arrival.as_secs_f64()));
        let page = |record: &&Record| matches!(record.outcome, Outcome::Answer(Answer { status: 200, .. }));
        due.filter(page).filter(|record| record.latency <= limit).count() as u64
    }

    /// What those that were due in these seconds waited for.
    #[must_use]
    pub fn waited(&self, seconds: Range<f64>) -> Waited {
        let mut waited = Waited { seconds: seconds.end - seconds.start, ..Waited::default() };
        for record in self.records.iter().filter(|record| seconds.contains(&record.arrival.as_secs_f64())) {
            match record.outcome {
                Outcome::Answer(Answer { status: 200, .. }) => {
                    waited.latencies.push(record.latency.as_secs_f64())
                }
                Outcome::Answer(Answer { status: 503, .. }) => waited.rejected += 1,
                Outcome::Answer(_) | Outcome::Error(_) => waited.lost += 1,
            }
        }
        waited
    }

    /// When each page was there and how long it took (s), in that order.
    #[must_use]
    pub fn answers(&self) -> Vec<(f64, f64)> {
        let page = |record: &&Record| matches!(record.outcome, Outcome::Answer(Answer { status: 200, .. }));
        let timed = |record: &Record| {
            let latency = record.latency.as_secs_f64();
            (record.arrival.as_secs_f64() + latency, latency)
        };
        let mut answers: Vec<_> = self.records.iter().filter(page).map(timed).collect();
        answers.sort_by(|a, b| a.0.total_cmp(&b.0));
        answers
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Window {
        self.during(0.0..f64::MAX)
    }
}

/// A stretch of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    seconds: f64,
    /// Requests that were due.
    pub requests: u64,
    /// Answered with the full page.
    pub full: u64,
    /// With the light one.
    pub light: u64,
    /// Turned away, politely: 503.
    pub rejected: u64,
    /// Without a complete answer, or with one that nobody meant.
    pub lost: u64,
    /// The slowest answer with a page.
    pub slowest: Duration,
}

impl Window {
    fn add(&mut self, record: &Record) {
        self.requests += 1;
        let place = match record.outcome {
            Outcome::Answer(Answer { status: 200, bytes, .. }) => {
                self.slowest = self.slowest.max(record.latency);
                if bytes == (KILOBYTES * 1024) as u64 { &mut self.full } else { &mut self.light }
            }
            Outcome::Answer(Answer { status: 503, .. }) => &mut self.rejected,
            Outcome::Answer(_) | Outcome::Error(_) => &mut self.lost,
        };
        *place += 1;
    }

    fn part(&self, of: u64) -> f64 {
        of as f64 / self.requests.max(1) as f64
    }

    /// The part that got the full page.
    #[must_use]
    pub fn full_share(&self) -> f64 {
        self.part(self.full)
    }

    /// The part that was turned away.
    #[must_use]
    pub fn rejected_share(&self) -> f64 {
        self.part(self.rejected)
    }

    /// What was used of the server, by what its pages take.
    #[must_use]
    pub fn used(&self) -> f64 {
        let light = (FIXED.as_secs_f64() + LIGHT * BYTES.as_secs_f64()) / (FIXED + BYTES).as_secs_f64();
        (self.full as f64 + self.light as f64 * light) / self.seconds / capacity()
    }

    /// Bytes delivered, as a part of those of the server at full quality and full load.
    #[must_use]
    pub fn delivered(&self) -> f64 {
        (self.full as f64 + self.light as f64 * LIGHT) / self.seconds / capacity()
    }
}

/// How long answers took, in a stretch of a flow.
#[derive(Clone, Debug, Default)]
pub struct Waited {
    seconds: f64,
    /// Of each answer with a page, by the client's clock (s).
    latencies: Vec<f64>,
    /// Turned away, politely: 503.
    pub rejected: usize,
    /// Without a complete answer, or with one that nobody meant.
    pub lost: usize,
}

impl Waited {
    /// Pages.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.latencies.len()
    }

    /// Pages per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    /// Pages that took at most so long.
    #[must_use]
    pub fn within(&self, limit: Duration) -> usize {
        self.latencies.iter().filter(|latency| **latency <= limit.as_secs_f64()).count()
    }

    /// Of all requests, the part with a page that took at most so long.
    #[must_use]
    pub fn in_time(&self, limit: Duration) -> f64 {
        let requests = self.latencies.len() + self.rejected + self.lost;
        self.within(limit) as f64 / requests.max(1) as f64
    }

    /// The mean of the pages (s).
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len().max(1) as f64
    }
}
