//! Types of requests in front of one server, some classes with a deadline, and how long each request took.

use crate::under_way::UnderWay;
use plimsoll_core::promises::{
    Admission, Class, Condition, Delay, LAST_PRIORITY, Mode, Plant, Promises, Site, WorkerBounds,
};
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Front, Gateway, Order};
use plimsoll_sim::workload::{
    Arrivals, Discipline, Fault, FaultKind, Law, Page, Phase, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Event, Setup, Watch};
use std::time::Duration;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A type of requests as it truly is.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) path: &'static str,
    pub(crate) weight: f64,
    pub(crate) service: Duration,
    pub(crate) law: Law,
    /// Sent with each.
    pub(crate) headers: Vec<(String, String)>,
}

impl Kind {
    pub(crate) fn new(path: &'static str, weight: f64, service: Duration, law: Law) -> Self {
        Kind { path, weight, service, law, headers: Vec::new() }
    }
}

/// AC's mix (Table 2) with a static request of 1 ms: static and media vary by 0.1, dynamic by 1.
pub(crate) fn mix() -> Vec<Kind> {
    let even = || Law::Lognormal { variation: 0.1 };
    vec![
        Kind::new("/page-*.html", 94.7, ms(1), even()),
        Kind::new("/script-*", 5.0, ms(10), Law::Exponential),
        Kind::new("/sound-*.mp3", 0.2, ms(20), even()),
        Kind::new("/film-*.mp4", 0.1, ms(100), even()),
    ]
}

/// Mean service time of a mix (s).
pub(crate) fn mean_service(kinds: &[Kind]) -> f64 {
    let all: f64 = kinds.iter().map(|kind| kind.weight).sum();
    kinds.iter().map(|kind| kind.weight / all * kind.service.as_secs_f64()).sum()
}

/// Requests of one class. The header `x-class` names it.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: &'static str,
    pub(crate) rate: Vec<Phase>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) deadline: Option<Duration>,
    /// A mean response time, instead of the deadline.
    pub(crate) delay: Option<Duration>,
    pub(crate) priority: u8,
    /// 0 is the scene's `site`; others are like it, each with a host of its own.
    pub(crate) site: usize,
}

impl Flow {
    pub(crate) fn new(name: &'static str, rate: f64, kinds: Vec<Kind>) -> Self {
        let rate = vec![Phase { from: Duration::ZERO, rate, to: None }];
        let deadline = Some(ms(1000));
        Flow { name, rate, kinds, deadline, delay: None, priority: LAST_PRIORITY, site: 0 }
    }

    /// Another rate from a second on.
    pub(crate) fn then(mut self, second: f64, rate: f64) -> Self {
        self.rate.push(Phase { from: Duration::from_secs_f64(second), rate, to: None });
        self
    }

    pub(crate) fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    pub(crate) fn within(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) fn delay(mut self, mean: Duration) -> Self {
        (self.deadline, self.delay) = (None, Some(mean));
        self
    }

    pub(crate) fn at_site(mut self, site: usize) -> Self {
        self.site = site;
        self
    }
}

/// Flows in front of a server.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) plant: Plant,
    pub(crate) workers: u32,
    pub(crate) flows: Vec<Flow>,
    pub(crate) site: Site,
    pub(crate) faults: Vec<Fault>,
    pub(crate) mode: Mode,
    pub(crate) admission: Admission,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
}

/// What became of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) class: usize,
    pub(crate) path: &'static str,
    pub(crate) arrived: f64,
    pub(crate) started: f64,
    pub(crate) ended: f64,
    /// The reason, if the request was turned away.
    pub(crate) reason: Option<Reason>,
}

impl Answer {
    pub(crate) fn response(&self) -> f64 {
        self.ended - self.arrived
    }
    pub(crate) fn is_admitted(&self) -> bool {
        !matches!(self.reason, Some(Reason::Deadline | Reason::Overload | Reason::QueueFull))
    }
    /// Admitted, and late or dropped.
    pub(crate) fn misses(&self, deadline: f64) -> bool {
        self.is_admitted() && (self.reason.is_some() || self.response() > deadline)
    }
    pub(crate) fn is_in_time(&self, deadline: f64) -> bool {
        self.reason.is_none() && self.response() <= deadline
    }
}

/// The host of a site, where there are several.
fn host(site: usize) -> String {
    format!("site{site}.example")
}

struct Clocks {
    paths: Vec<&'static str>,
    open: UnderWay<Answer>,
    answers: Vec<Answer>,
}

impl Clocks {
    fn kind(&self, path: &str) -> &'static str {
        let stem = |known: &&&str| path.starts_with(known.split('*').next().unwrap_or(known));
        self.paths.iter().find(stem).copied().unwrap_or("")
    }
}

impl Watch for Clocks {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let ended = now.as_secs_f64();
        let (token, reason) = match event {
            Event::Arrived { token, request, class, decision } => {
                let (class, path) = (usize::from(*class), self.kind(&request.path));
                let answer = Answer { class, path, arrived: ended, started: ended, ended, reason: None };
                if let Decision::Reject(reason) = decision {
                    self.answers.push(Answer { reason: Some(*reason), ..answer });
                } else {
                    self.open.insert(*token, answer);
                }
                return;
            }
            Event::Ordered(Order::Start(token, _)) => {
                if let Some(answer) = self.open.get_mut(*token) {
                    answer.started = ended;
                }
                return;
            }
            Event::Ordered(Order::Drop(token, reason)) => (token, Some(*reason)),
            Event::Ended { token, outcome } => {
                (token, (*outcome != Outcome::Completed).then_some(Reason::ClientLeft))
            }
        };
        if let Some(answer) = self.open.remove(*token) {
            self.answers.push(Answer { ended, reason, ..answer });
        }
    }
}

/// What became of everybody.
pub(crate) struct Heard {
    pub(crate) answers: Vec<Answer>,
    pub(crate) status: Option<Status>,
    /// The server's own utilization, by period.
    pub(crate) busy: Vec<f64>,
}

impl Scene {
    pub(crate) fn new(workers: u32, flows: Vec<Flow>, seconds: f64, seed: u64) -> Self {
        let mut plant = Plant::new("origin", workers);
        plant.set_point = 1.0;
        let (site, mode, admission) = (Site::new("site", &["full"]), Mode::Control, Admission::Work);
        Scene { plant, workers, flows, site, faults: Vec::new(), mode, admission, seconds, seed }
    }

    /// The server takes `factor` times as long between two seconds.
    pub(crate) fn slow(&mut self, (from, until): (f64, f64), factor: f64) {
        let [from, until] = [from, until].map(Duration::from_secs_f64);
        self.faults.push(Fault { from, until, kind: FaultKind::Slower(factor) });
    }

    /// Nothing is told but the address: the workers are found too, as the configuration has it where none are given.
    pub(crate) fn finding_workers(mut self, found: bool) -> Self {
        if found {
            self.plant.workers = 16;
            self.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
            self.plant.max_connections = 1024;
        }
        self
    }

    pub(crate) fn promises(&self) -> Promises {
        let class = |flow: &Flow| {
            let headers = vec![("x-class".to_owned(), flow.name.to_owned())];
            let condition = Condition { headers, ..Condition::default() };
            let delay = flow.delay.map(|target| Delay { target, percentile: None });
            let Flow { deadline, priority, .. } = *flow;
            Class { deadline, delay, priority, ..Class::new(flow.name, condition) }
        };
        let last = self.flows.iter().map(|flow| flow.site).max().unwrap_or(0);
        let site = |number: usize| {
            let mut site = self.site.clone();
            site.classes = self.flows.iter().filter(|flow| flow.site == number).map(class).collect();
            // Two flows may be of one class.
            site.classes.dedup_by(|later, first| later.name == first.name);
            if last > 0 {
                (site.name, site.hosts) = (format!("site {number}"), vec![host(number)]);
            }
            site
        };
        let mut promises = Promises::of(self.plant.clone(), site(0));
        promises.sites.extend((1..=last).map(site));
        (promises.control.mode, promises.control.admission) = (self.mode, self.admission);
        promises
    }

    fn workload(&self) -> Workload {
        let page = |flow: &Flow, kind: &Kind| Page {
            host: host(flow.site),
            headers: [("x-class".to_owned(), flow.name.to_owned())]
                .into_iter()
                .chain(kind.headers.iter().cloned())
                .collect(),
            weight: kind.weight,
            service: Some(kind.service),
            service_law: Some(kind.law.clone()),
            ..Page::new(kind.path, 1000.0)
        };
        let stream = |(number, flow): (usize, &Flow)| {
            let arrivals = Arrivals::Process { process: Process::Poisson, rate: flow.rate.clone() };
            let pages = flow.kinds.iter().map(|kind| page(flow, kind)).collect();
            let mut stream = Stream::new(flow.name, arrivals, pages, 5000);
            stream.clients.first_address += (number as u32) << 16;
            stream
        };
        let plant = plimsoll_sim::workload::Plant {
            faults: self.faults.clone(),
            ..plimsoll_sim::workload::Plant::new(Discipline::Workers(self.workers), 100_000, ms(1))
        };
        Workload {
            streams: self.flows.iter().enumerate().map(stream).collect(),
            plants: vec![plant],
            versions: vec![vec![Version::FULL; self.site.levels.len()]],
            duration: Some(Duration::from_secs_f64(self.seconds)),
            ..Workload::default()
        }
    }

    pub(crate) fn run(&self) -> Heard {
        let mut gateway = Gateway::new(&self.promises(), self.seed).expect("the promises are valid");
        self.run_with(&mut gateway)
    }

    /// With any front.
    pub(crate) fn run_with(&self, front: &mut dyn Front) -> Heard {
        let (promises, workload) = (self.promises(), self.workload());
        let paths = self.flows.iter().flat_map(|flow| flow.kinds.iter().map(|kind| kind.path)).collect();
        let mut clocks = Clocks { paths, open: UnderWay::default(), answers: Vec::new() };
        let setup = Setup { promises: &promises, workload: &workload, seed: self.seed };
        let run = setup.run_with(front, &mut clocks).expect("it runs");
        let busy = run.rows.iter().map(|row| row.plants[0].utilization).collect();
        Heard { answers: clocks.answers, status: run.status, busy }
    }
}

impl Heard {
    /// The part of a class's arrivals between two seconds that was served in time.
    pub(crate) fn in_time(&self, class: usize, deadline: f64, seconds: (f64, f64)) -> f64 {
        let own = || self.of(class, seconds.0).filter(|answer| answer.arrived < seconds.1);
        own().filter(|answer| answer.is_in_time(deadline)).count() as f64 / own().count() as f64
    }

    /// The part of those admitted between two seconds that missed.
    pub(crate) fn missed(&self, class: usize, deadline: f64, seconds: (f64, f64)) -> f64 {
        let own =
            || self.of(class, seconds.0).filter(|answer| answer.arrived < seconds.1 && answer.is_admitted());
        own().filter(|answer| answer.misses(deadline)).count() as f64 / own().count() as f64
    }

    /// The answers of a class from a second on.
    pub(crate) fn of(&self, class: usize, from: f64) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(move |answer| answer.class == class && answer.arrived >= from)
    }
}

pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
