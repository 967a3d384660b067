//! Several flows of requests at once, and what became of each request by the time that it was due, in real time or in virtual
//! time.

use plimsoll_load::{Answer, LoadHandle, OpenLoop, Outcome, Record, Step, Tally, Target};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many clients a flow has, each at an address of its own.
pub const CLIENTS: u32 = 400;

/// Requests of a Poisson process for one path of one host.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The host.
    pub host: &'static str,
    /// The path.
    pub path: &'static str,
    /// The bytes of its full page, where they are not the server's own.
    pub bytes: Option<usize>,
    /// One rate after the other.
    pub steps: Vec<Step>,
    /// What the arrivals of a live run are drawn from, beside the flow's number.
    pub seed: u32,
}

impl Flow {
    /// Requests for one path of a host; each step is its seconds and its rate per second.
    pub fn new(host: &'static str, path: &'static str, steps: &[(f64, f64)]) -> Flow {
        let steps = steps.iter().map(|(seconds, rate)| (Duration::from_secs_f64(*seconds), *rate));
        Flow { host, path, bytes: None, steps: steps.collect(), seed: 0 }
    }

    /// How long it lasts.
    pub fn lasts(&self) -> Duration {
        self.steps.iter().map(|(length, _)| *length).sum()
    }

    /// The flow as an open-loop load; `group` keeps its clients' addresses apart from the other flows'.
    pub fn load(&self, server: SocketAddr, group: u8, patience: Duration) -> OpenLoop {
        let target = Target {
            host: self.host.into(),
            level_header: Some("x-plimsoll".into()),
            timeout: patience,
            ..Target::new(server)
        };
        OpenLoop {
            path: self.path.into(),
            clients: CLIENTS,
            first_address: Ipv4Addr::new(127, 16 * group, 0, 1),
            seed: u64::from(self.seed) << 8 | u64::from(group),
            ..OpenLoop::new(target, self.steps.clone())
        }
    }
}

/// A load whose records are kept.
#[derive(Debug)]
pub struct Recorded {
    /// The running load.
    pub load: LoadHandle,
    records: Arc<Mutex<Vec<Record>>>,
}

impl Recorded {
    /// Starts a load.
    pub fn start(load: OpenLoop) -> Recorded {
        let records: Arc<Mutex<Vec<Record>>> = Arc::default();
        let keep = Arc::clone(&records);
        let sink = move |record: &Record| keep.lock().unwrap_or_else(PoisonError::into_inner).push(*record);
        let load = load.start(Some(Box::new(sink)));
        Recorded { load: load.unwrap_or_else(|error| panic!("the load does not start: {error}")), records }
    }

    /// Waits for its end.
    pub fn join(self) -> (Tally, Vec<Record>) {
        let tally = self.load.join();
        (tally, std::mem::take(&mut self.records.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Starts all flows, calls `meanwhile`, and waits for their ends. A client that has waited for `patience` leaves.
pub fn drive(server: SocketAddr, flows: &[Flow], patience: Duration, meanwhile: impl FnOnce()) -> Vec<Flown> {
    let start = |(group, flow): (u8, &Flow)| Recorded::start(flow.load(server, group, patience));
    let running: Vec<_> = (1..).zip(flows).map(start).collect();
    meanwhile();
    running.into_iter().map(|load| Flown { fates: load.join().1.iter().map(Fate::of).collect() }).collect()
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A page at full quality, or at a lower level.
    Page {
        /// Whether it is the full one.
        full: bool,
    },
    /// Turned away politely, with 503 by the gateway.
    Rejected,
    /// Without a complete answer, or with an answer that is neither a page nor a rejection.
    Lost,
}

/// What became of one request.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    /// When it was due (s).
    pub due: f64,
    /// From then to its end (s).
    pub latency: f64,
    /// How it ended.
    pub end: End,
}

impl Fate {
    fn of(record: &Record) -> Fate {
        let end = match record.outcome {
            // Without levels the answer names level 1; with two, the light one is 1 and the full one 2.
            Outcome::Answer(Answer { status: 200, level, .. }) => End::Page { full: level != Some(1) },
            Outcome::Answer(Answer { status: 503, .. }) => End::Rejected,
            Outcome::Answer(_) | Outcome::Error(_) => End::Lost,
        };
        Fate { due: record.arrival.as_secs_f64(), latency: record.latency.as_secs_f64(), end }
    }
}

/// What became of a flow's requests.
#[derive(Clone, Debug, Default)]
pub struct Flown {
    /// In no order.
    pub fates: Vec<Fate>,
}

impl Flown {
    /// The requests that were due in these seconds.
    pub fn during(&self, seconds: Range<f64>) -> Window<'_> {
        let fates = self.fates.iter().filter(|fate| seconds.contains(&fate.due)).collect();
        Window { seconds: seconds.end - seconds.start, fates }
    }

    /// All of them.
    pub fn all(&self) -> Window<'_> {
        self.during(0.0..f64::MAX)
    }

    /// When each page was there and how long it took (s), in that order.
    pub fn answers(&self) -> Vec<(f64, f64)> {
        let pages = self.fates.iter().filter(|fate| matches!(fate.end, End::Page { .. }));
        let mut answers: Vec<_> = pages.map(|fate| (fate.due + fate.latency, fate.latency)).collect();
        answers.sort_by(|one, other| one.0.total_cmp(&other.0));
        answers
    }
}

/// A stretch of a flow.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    seconds: f64,
    fates: Vec<&'a Fate>,
}

impl Window<'_> {
    /// How many requests were due.
    pub fn requests(&self) -> usize {
        self.fates.len()
    }

    /// How many requests ended so.
    pub fn count(&self, end: End) -> usize {
        self.fates.iter().filter(|fate| fate.end == end).count()
    }

    /// The part of the requests that ended so.
    pub fn part(&self, end: End) -> f64 {
        self.count(end) as f64 / self.requests().max(1) as f64
    }

    /// The part that got the full page.
    pub fn full(&self) -> f64 {
        self.part(End::Page { full: true })
    }

    /// The part that was not answered with a page.
    pub fn failed(&self) -> f64 {
        self.part(End::Rejected) + self.part(End::Lost)
    }

    /// The response times of pages (s).
    pub fn latencies(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self
            .fates
            .iter()
            .filter(|fate| matches!(fate.end, End::Page { .. }))
            .map(|fate| fate.latency)
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// The response time that this part of the pages does not exceed (s).
    pub fn quantile(&self, part: f64) -> f64 {
        let times = self.latencies();
        let place = (part * times.len() as f64).ceil() as usize;
        times.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// The mean response time of pages (s).
    pub fn mean(&self) -> f64 {
        let times = self.latencies();
        times.iter().sum::<f64>() / times.len().max(1) as f64
    }

    /// How many pages took at most this long (s).
    pub fn within(&self, limit: f64) -> usize {
        self.latencies().iter().filter(|latency| **latency <= limit).count()
    }

    /// The part of all requests with a page that took at most this long (s).
    pub fn in_time(&self, limit: f64) -> f64 {
        self.within(limit) as f64 / self.requests().max(1) as f64
    }

    /// Pages per second, of which a light one counts as this part of a full one.
    pub fn rate(&self, light: f64) -> f64 {
        let [full, less] = [true, false].map(|full| self.count(End::Page { full }) as f64);
        (full + light * less) / self.seconds
    }
}
