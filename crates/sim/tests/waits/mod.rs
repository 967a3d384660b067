//! Classes of one or several sites in front of one server, and how long each request took.

#[path = "../under_way/mod.rs"]
pub(crate) mod under_way;

use plimsoll_core::promises::{
    Class, Condition, Delay, DelayParts, Mode, Plant, Promises, Site, WorkerBounds,
};
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Comparator, Decision, Front, Gateway, Order};
use plimsoll_sim::workload::{
    Arrivals, Discipline, Fault, FullQueue, Law, Page, Phase, Process, Retry, Stream, Version, Workload,
};
use plimsoll_sim::{Event, Setup, Watch};
use std::time::Duration;
use under_way::UnderWay;

/// The mean bytes of a page.
pub(crate) const PAGE: f64 = 1000.0;

/// A class and its load. The last one of a site may be its `default`.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) class: Class,
    /// 0 is the scene's `site`; the others are `more_sites`.
    pub(crate) site: usize,
    pub(crate) rate: Vec<Phase>,
    pub(crate) process: Process,
    /// Mean service time, where it is not the scene's.
    pub(crate) service: Option<Duration>,
    /// How its service times vary, where that is not as the scene says.
    pub(crate) law: Option<Law>,
    /// How the sizes of its pages vary.
    pub(crate) bytes_law: Law,
    /// When its clients leave.
    pub(crate) patience: Option<Duration>,
}

impl Flow {
    pub(crate) fn new(name: &str, rate: f64) -> Self {
        let paths = vec![format!("/{name}")];
        let class = Class::new(name, Condition { paths, ..Condition::default() });
        let rate = vec![Phase { from: Duration::ZERO, rate, to: None }];
        Flow {
            class,
            site: 0,
            rate,
            process: Process::Poisson,
            service: None,
            law: None,
            bytes_law: Law::Deterministic,
            patience: None,
        }
    }

    /// Another rate from a second on.
    pub(crate) fn then(mut self, second: f64, rate: f64) -> Self {
        self.rate.push(Phase { from: Duration::from_secs_f64(second), rate, to: None });
        self
    }

    /// At the n-th of the scene's `more_sites`, from 1 on.
    pub(crate) fn at_site(mut self, n: usize) -> Self {
        self.site = n;
        self
    }

    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    pub(crate) fn ratio(mut self, delta: f64) -> Self {
        self.class.ratio = Some(delta);
        self
    }

    pub(crate) fn delay(mut self, target: Duration, percentile: Option<f64>) -> Self {
        self.class.delay = Some(Delay { target, percentile });
        self
    }

    pub(crate) fn priority(mut self, priority: u8) -> Self {
        self.class.priority = priority;
        self
    }
}

/// Flows in front of a server.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) plant: Plant,
    /// As it truly is.
    pub(crate) workers: u32,
    /// Its cores are shared by everybody in service instead of one request each.
    pub(crate) shared: bool,
    pub(crate) service: Duration,
    /// What a byte takes besides (s); a page has [`PAGE`] of them.
    pub(crate) per_byte: f64,
    /// How many wait at the server at most, and what becomes of more.
    pub(crate) listen_queue: usize,
    pub(crate) full_queue: FullQueue,
    pub(crate) law: Law,
    pub(crate) faults: Vec<Fault>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) site: Site,
    /// Sites beside it on the same server, each with its host.
    pub(crate) more_sites: Vec<Site>,
    pub(crate) mode: Mode,
    /// How clients come again that were turned away, and the `Retry-After` that the operator tells them.
    pub(crate) retry: Option<Retry>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) delay_law: DelayParts,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
}

/// One request, answered or turned away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The number of its flow in the scene.
    pub(crate) class: usize,
    pub(crate) arrived: f64,
    /// When the server got it; as it ended if it never did.
    pub(crate) started: f64,
    pub(crate) ended: f64,
    pub(crate) completed: bool,
    /// At which level; 0: turned away.
    pub(crate) level: u8,
    /// It found a full queue, of whatever front.
    pub(crate) found_full: bool,
}

impl Answer {
    pub(crate) fn response(&self) -> f64 {
        self.ended - self.arrived
    }

    /// The wait before the server got it.
    pub(crate) fn wait(&self) -> f64 {
        self.started - self.arrived
    }
}

/// A request under way.
struct Open {
    class: usize,
    arrived: f64,
    started: Option<f64>,
    level: u8,
}

#[derive(Default)]
struct Clocks {
    /// The flow of each class, by the class's number.
    flows: Vec<usize>,
    open: UnderWay<Open>,
    answers: Vec<Answer>,
}

impl Watch for Clocks {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let ended = now.as_secs_f64();
        let (token, completed) = match *event {
            Event::Arrived { token, class, decision, .. } => {
                let class = self.flows[usize::from(class)];
                let (started, level) = match decision {
                    Decision::Start(start) => (Some(ended), start.level),
                    Decision::Wait => (None, 0),
                    Decision::Reject(reason) => {
                        self.answers.push(Answer {
                            class,
                            arrived: ended,
                            started: ended,
                            ended,
                            completed: false,
                            level: 0,
                            found_full: reason == Reason::QueueFull,
                        });
                        return;
                    }
                };
                self.open.insert(token, Open { class, arrived: ended, started, level });
                return;
            }
            Event::Ordered(Order::Start(token, start)) => {
                if let Some(open) = self.open.get_mut(token) {
                    (open.started, open.level) = (Some(ended), start.level);
                }
                return;
            }
            Event::Ordered(Order::Drop(token, _)) => (token, false),
            Event::Ended { token, outcome } => (token, outcome == Outcome::Completed),
        };
        if let Some(Open { class, arrived, started, level }) = self.open.remove(token) {
            let started = started.unwrap_or(ended);
            self.answers.push(Answer { class, arrived, started, ended, completed, level, found_full: false });
        }
    }
}

/// What became of everybody.
pub(crate) struct Heard {
    pub(crate) answers: Vec<Answer>,
    pub(crate) status: Option<Status>,
    /// The server's own utilization, by period.
    pub(crate) busy: Vec<f64>,
    /// Its workers as the engine knows them, by period.
    pub(crate) workers: Vec<u32>,
    /// The quota of the first class by period, where it has one.
    pub(crate) quotas: Vec<f64>,
}

impl Scene {
    /// `workers` workers with exponential service, one class after the other, no levels: only waiting is controlled.
    pub(crate) fn new(workers: u32, service: Duration, flows: Vec<Flow>, seconds: f64, seed: u64) -> Self {
        let mut plant = Plant::new("origin", workers);
        plant.set_point = 1.0;
        Scene {
            plant,
            workers,
            shared: false,
            service,
            per_byte: 0.0,
            listen_queue: 100_000,
            full_queue: FullQueue::Refuses,
            law: Law::Exponential,
            faults: Vec::new(),
            flows,
            site: Site::new("site", &["full"]),
            more_sites: Vec::new(),
            mode: Mode::Control,
            retry: None,
            retry_after: None,
            delay_law: DelayParts::default(),
            seconds,
            seed,
        }
    }

    /// Nothing is told of the server but its address: its workers are to be found, as the configuration has it then.
    pub(crate) fn finding_workers(mut self, found: bool) -> Self {
        if found {
            self.plant.workers = 16;
            self.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
            self.plant.max_connections = 1024;
        }
        self
    }

    fn sites(&self) -> impl Iterator<Item = &Site> {
        std::iter::once(&self.site).chain(&self.more_sites)
    }

    pub(crate) fn promises(&self) -> Promises {
        let mut sites: Vec<Site> = self.sites().cloned().collect();
        for (n, site) in sites.iter_mut().enumerate() {
            let own = self.flows.iter().filter(|flow| flow.site == n && flow.class.name != "default");
            site.classes = own.map(|flow| flow.class.clone()).collect();
        }
        let mut promises = Promises { plants: vec![self.plant.clone()], sites, ..Promises::default() };
        promises.control.mode = self.mode;
        promises.control.retry_after = self.retry_after;
        promises.control.delay_law = self.delay_law;
        promises
    }

    /// The flow of each class, by the class's number. A site's classes are followed by `default` and `exempt`. A class without
    /// a flow has its own number.
    fn flow_of_class(&self) -> Vec<usize> {
        let mut flows = Vec::new();
        for (site, promised) in self.promises().sites.iter().enumerate() {
            let of_site = self.flows.iter().enumerate().filter(|(_, flow)| flow.site == site);
            let (default, own): (Vec<_>, Vec<_>) =
                of_site.partition(|(_, flow)| flow.class.name == "default");
            let first = flows.len();
            flows.extend(first..first + promised.classes.len() + 2);
            for (place, (flow, _)) in own.into_iter().enumerate() {
                flows[first + place] = flow;
            }
            if let Some((flow, _)) = default.last() {
                flows[first + promised.classes.len()] = *flow;
            }
        }
        flows
    }

    /// A lower level costs what the site says of it.
    fn versions(&self, site: &Site) -> Vec<Version> {
        let mut cost = 1.0;
        let from_the_top = site.levels.iter().rev().map(|level| {
            let version = Version { cost: Some(cost * level.cost_ratio.unwrap_or(1.0)), bytes: 1.0 };
            cost = version.cost.unwrap_or(1.0);
            version
        });
        let mut versions: Vec<Version> = from_the_top.collect();
        versions.reverse();
        versions
    }

    fn workload(&self) -> Workload {
        let page = |flow: &Flow| Page {
            host: self
                .sites()
                .nth(flow.site)
                .and_then(|site| site.hosts.first())
                .cloned()
                .unwrap_or_default(),
            bytes_law: flow.bytes_law.clone(),
            service: flow.service,
            service_law: flow.law.clone(),
            ..Page::new(flow.class.condition.paths.first().cloned().unwrap_or_else(|| "/".to_owned()), PAGE)
        };
        let stream = |(number, flow): (usize, &Flow)| {
            let arrivals = Arrivals::Process { process: flow.process, rate: flow.rate.clone() };
            let mut stream = Stream::new(&flow.class.name, arrivals, vec![page(flow)], 5000);
            stream.clients.first_address += (number as u32) << 16;
            Stream { patience: flow.patience, retry: self.retry, ..stream }
        };
        let plant = plimsoll_sim::workload::Plant {
            law: self.law.clone(),
            faults: self.faults.clone(),
            full_queue: self.full_queue,
            service_per_byte: self.per_byte,
            ..plimsoll_sim::workload::Plant::new(
                if self.shared {
                    Discipline::Sharing { cores: self.workers, most: 100_000 }
                } else {
                    Discipline::Workers(self.workers)
                },
                self.listen_queue,
                self.service,
            )
        };
        Workload {
            streams: self.flows.iter().enumerate().map(stream).collect(),
            plants: vec![plant],
            versions: self.sites().map(|site| self.versions(site)).collect(),
            duration: Some(Duration::from_secs_f64(self.seconds)),
            ..Workload::default()
        }
    }

    pub(crate) fn run(&self) -> Heard {
        let promises = self.promises();
        let mut gateway = Gateway::new(&promises, self.seed).expect("the promises are valid");
        self.run_with(&mut gateway)
    }

    /// With a comparator, written as behind `--against`.
    pub(crate) fn run_against(&self, text: &str) -> Heard {
        let comparator = Comparator::parse(text).expect("it is one");
        let front = comparator.front(&self.promises(), &self.workload(), self.seed);
        self.run_with(&mut *front.expect("the promises are valid"))
    }

    /// With any front.
    pub(crate) fn run_with(&self, front: &mut dyn Front) -> Heard {
        let (promises, workload) = (self.promises(), self.workload());
        let mut clocks = Clocks { flows: self.flow_of_class(), ..Clocks::default() };
        let setup = Setup { promises: &promises, workload: &workload, seed: self.seed };
        let run = setup.run_with(front, &mut clocks).expect("it runs");
        let busy = run.rows.iter().map(|row| row.plants[0].utilization).collect();
        let workers = run.rows.iter().map(|row| row.plants[0].workers).collect();
        let quotas =
            run.rows.iter().filter_map(|row| row.classes[0].held.and_then(|held| held.quota)).collect();
        Heard { answers: clocks.answers, status: run.status, busy, workers, quotas }
    }
}

impl Heard {
    /// Responses of a class that were completed, of arrivals from a second on, in the order of their ends.
    pub(crate) fn responses(&self, class: usize, from: f64) -> Vec<f64> {
        let own = self.answers.iter().filter(|a| a.class == class && a.arrived >= from && a.completed);
        own.map(Answer::response).collect()
    }

    pub(crate) fn mean(&self, class: usize, from: f64) -> f64 {
        mean(&self.responses(class, from))
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn percentile(values: &mut [f64], p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * p).round() as usize]
}
