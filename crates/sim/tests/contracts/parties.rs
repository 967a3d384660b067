//! Several sites on one server: each with its load, and what became of it.

use plimsoll_core::promises::{Mode, Plant, Promises, Site};
use plimsoll_sim::front::{Inside, ServerProcesses};
use plimsoll_sim::workload::{
    Arrivals, Discipline, Fault, Law, Page, Phase, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Error, Row, Setup};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// The costs of a server.
pub(crate) struct True {
    /// Per request (s).
    pub(crate) a: f64,
    /// Per byte [s/byte].
    pub(crate) b: f64,
}

/// UC 7.2.
pub(crate) const US: True = True { a: 1.604e-3, b: 0.063e-6 };
/// Bytes of a full page, and of a light one.
pub(crate) const FULL: f64 = 32_000.0;
const LIGHT: f64 = 1.0 / 8.0;

/// A site of two levels, at the host of its name.
pub(crate) fn site(name: &str) -> Site {
    Site { hosts: vec![name.to_owned()], ..Site::new(name, &["light", "full"]) }
}

/// A flow of requests to a site.
pub(crate) struct Party {
    /// `None`: that of the party before; its default class, if the site has classes.
    pub(crate) site: Option<Site>,
    pub(crate) path: &'static str,
    /// Bytes of a page at full quality.
    pub(crate) bytes: f64,
    /// What such a page takes of the server; `None` by its bytes.
    pub(crate) service: Option<Duration>,
    pub(crate) rate: Vec<Phase>,
    pub(crate) process: Process,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Party {
    fn new(site: Option<Site>, rate: Vec<Phase>) -> Self {
        Party { site, path: "/page", bytes: FULL, service: None, rate, process: Process::Poisson }
    }

    /// Always so many per second.
    pub(crate) fn constant(site: Site, rate: f64) -> Self {
        Party::new(Some(site), vec![Phase { from: Duration::ZERO, rate, to: None }])
    }

    /// Rising in a straight line until a second, and constant from then on.
    pub(crate) fn rising(site: Site, from: f64, to: f64, until: u64) -> Self {
        Party { site: Some(site), ..Party::rising_from(0, from, to, until) }
    }

    /// The same from a second on, without a site of its own.
    pub(crate) fn rising_from(begin: u64, from: f64, to: f64, until: u64) -> Self {
        let rise = Phase { from: seconds(begin), rate: from, to: Some(to) };
        Party::new(None, vec![rise, Phase { from: seconds(until), rate: to, to: None }])
    }

    /// Another rate from a second on.
    pub(crate) fn then(mut self, second: u64, rate: f64) -> Self {
        self.rate.push(Phase { from: seconds(second), rate, to: None });
        self
    }
}

/// Sites that share the server.
pub(crate) struct Shared {
    pub(crate) mode: Mode,
    pub(crate) plant: Plant,
    pub(crate) faults: Vec<Fault>,
    /// What a rejection takes of the server.
    pub(crate) rejection: Duration,
    /// What a light page is.
    pub(crate) light: Version,
    /// The server's own processes decide, as many as it has workers; else a gateway before it.
    pub(crate) inside: Option<ServerProcesses>,
    parties: Vec<Party>,
    length: u64,
    seed: u64,
}

impl Shared {
    pub(crate) fn new(seed: u64, length: u64) -> Self {
        let plant = Plant::new("origin", 1);
        let (faults, rejection) = (Vec::new(), Duration::ZERO);
        let (light, parties) = (Version { cost: None, bytes: LIGHT }, Vec::new());
        let (mode, inside) = (Mode::Control, None);
        Shared { mode, plant, faults, rejection, light, inside, parties, length, seed }
    }

    /// The same server by so many processes that decide: each takes so many times as long for a request.
    pub(crate) fn inside(mut self, processes: u32) -> Self {
        self.plant.workers = processes;
        self.inside = Some(ServerProcesses::new(processes));
        self
    }

    pub(crate) fn party(mut self, party: Party) -> Self {
        self.parties.push(party);
        self
    }

    /// The class that a party's requests are in, where a site's own class is the first and `default` follows.
    fn classes(&self) -> Vec<usize> {
        let mut classes: Vec<usize> = Vec::new();
        let (mut next, mut default) = (0, 0);
        for party in &self.parties {
            match &party.site {
                Some(site) => {
                    classes.push(next);
                    default = next + site.classes.len();
                    next = default + 2;
                }
                None => classes.push(default),
            }
        }
        classes
    }

    fn tops(&self) -> Vec<usize> {
        let mut top = 0;
        let of = |party: &Party| {
            top = party.site.as_ref().map_or(top, |site| site.levels.len());
            top
        };
        self.parties.iter().map(of).collect()
    }

    pub(crate) fn promises(&self) -> Promises {
        let sites: Vec<Site> = self.parties.iter().filter_map(|party| party.site.clone()).collect();
        let mut promises = Promises { plants: vec![self.plant.clone()], sites, ..Promises::default() };
        promises.control.mode = self.mode;
        promises
    }

    pub(crate) fn run(&self) -> Run {
        let promises = self.promises();
        let workload = self.workload();
        let setup = Setup { promises: &promises, workload: &workload, seed: self.seed };
        let run = match self.inside {
            Some(is) => Inside::new(&promises, self.seed, is)
                .map_err(Error::Promises)
                .and_then(|mut server| setup.run_with(&mut server, &mut ())),
            None => setup.run(),
        };
        let run = run.unwrap_or_else(|error| panic!("the promises are valid: {error:?}"));
        let tops = self.tops();
        Run { rows: run.rows, classes: self.classes(), tops, status: run.status.expect("the engine ran") }
    }

    fn workload(&self) -> Workload {
        let mut host = String::new();
        let mut streams = Vec::new();
        for (number, party) in self.parties.iter().enumerate() {
            host = party.site.as_ref().map_or(host, |site| site.name.clone());
            let arrivals = Arrivals::Process { process: party.process, rate: party.rate.clone() };
            let mut stream = Stream::new(number.to_string(), arrivals, vec![page(&host, party)], 2000);
            stream.clients.first_address += (number as u32) << 16;
            streams.push(stream);
        }
        let processes = self.inside.map_or(1, |inside| inside.count);
        let all = [self.light, Version { cost: None, bytes: 1.0 }];
        let versions = |site: &Site| all[2 - site.levels.len()..].to_vec();
        Workload {
            streams,
            plants: vec![plimsoll_sim::workload::Plant {
                discipline: Discipline::Workers(self.plant.workers),
                listen_queue: 511,
                full_queue: plimsoll_sim::workload::FullQueue::Refuses,
                service: Duration::from_secs_f64(US.a * f64::from(processes)),
                service_per_byte: US.b * f64::from(processes),
                law: Law::Deterministic,
                link: self.plant.bandwidth_bytes_per_second,
                rejection: self.rejection,
                processor: 1.0,
                failure: Duration::ZERO,
                faults: self.faults.clone(),
                reports: false,
            }],
            versions: self.parties.iter().filter_map(|party| party.site.as_ref()).map(versions).collect(),
            duration: Some(Duration::from_millis(self.length * 1000 + 500)),
            ..Workload::default()
        }
    }
}

fn page(host: &str, party: &Party) -> Page {
    Page { host: host.to_owned(), service: party.service, ..Page::new(party.path, party.bytes) }
}

/// What became of it.
pub(crate) struct Run {
    rows: Vec<Row>,
    classes: Vec<usize>,
    /// The highest level of each party's site.
    tops: Vec<usize>,
    pub(crate) status: plimsoll_core::telemetry::status::Status,
}

impl Run {
    /// From a second until another.
    pub(crate) fn window(&self, seconds: Range<usize>) -> Window<'_> {
        Window { rows: &self.rows[seconds], classes: &self.classes, tops: &self.tops }
    }

    /// One after the other, of so many seconds.
    pub(crate) fn windows(&self, seconds: Range<usize>, each: usize) -> impl Iterator<Item = Window<'_>> {
        let (classes, tops) = (&self.classes, &self.tops);
        self.rows[seconds].chunks_exact(each).map(move |rows| Window { rows, classes, tops })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, rows) in self.rows.chunks(5).enumerate() {
            let window = Window { rows, classes: &self.classes, tops: &self.tops };
            write!(f, "{:4} s  U {:.3}", 5 * number, window.utilization())?;
            for party in 0..self.classes.len() {
                let levels = rows.iter().map(|row| row.classes[self.classes[party]].service_level);
                write!(
                    f,
                    "  | {:5.1}/s full {:.3} rejected {:.3} use {:.3} m {:.2}",
                    window.rate(party),
                    window.full_share(party),
                    window.rejected_share(party),
                    window.use_of(party),
                    levels.sum::<f64>() / rows.len() as f64,
                )?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A stretch of a run. A party is named by its place in the plan.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    rows: &'a [Row],
    classes: &'a [usize],
    tops: &'a [usize],
}

impl Window<'_> {
    fn sum(&self, party: usize, of: impl Fn(&plimsoll_sim::ClassRow) -> u64) -> f64 {
        self.rows.iter().map(|row| of(&row.classes[self.classes[party]])).sum::<u64>() as f64
    }

    fn seconds(&self) -> f64 {
        self.rows.iter().map(|row| row.length.as_secs_f64()).sum()
    }

    /// Requests per second.
    pub(crate) fn rate(&self, party: usize) -> f64 {
        self.sum(party, |row| row.arrivals) / self.seconds()
    }

    /// Served at full quality, of those that came.
    pub(crate) fn full_share(&self, party: usize) -> f64 {
        // A request in service at the window's edge is counted in the next one.
        let top = self.tops[party];
        let in_time =
            self.sum(party, |row| row.completed[top]) / self.sum(party, |row| row.arrivals).max(1.0);
        in_time.min(1.0)
    }

    /// Served at a lower level than the highest, of those that came.
    pub(crate) fn degraded_share(&self, party: usize) -> f64 {
        let top = self.tops[party];
        self.sum(party, |row| row.completed[1..top].iter().sum())
            / self.sum(party, |row| row.arrivals).max(1.0)
    }

    /// Turned away, or lost, of those that came.
    pub(crate) fn rejected_share(&self, party: usize) -> f64 {
        self.sum(party, |row| row.rejected) / self.sum(party, |row| row.arrivals).max(1.0)
    }

    /// Delivered bytes per second.
    pub(crate) fn bandwidth(&self, party: usize) -> f64 {
        self.sum(party, |row| row.bytes) / self.seconds()
    }

    /// U_i: what was served, at its true cost.
    pub(crate) fn use_of(&self, party: usize) -> f64 {
        let cost = |level: usize| US.a + US.b * FULL * if level == 1 { LIGHT } else { 1.0 };
        let work = |level: usize| self.sum(party, |row| row.completed[level]) * cost(level);
        (work(1) + work(2)) / self.seconds()
    }

    /// The quantile of the response times (s), the largest of its seconds.
    pub(crate) fn worst_response(&self, party: usize, quantile: f64) -> f64 {
        let of = |row: &Row| row.classes[self.classes[party]].response.quantile(quantile).as_secs_f64();
        self.rows.iter().map(of).fold(0.0, f64::max)
    }

    /// Mean response time (s).
    pub(crate) fn mean_response(&self, party: usize) -> f64 {
        let sum = |row: &Row| {
            let response = &row.classes[self.classes[party]].response;
            (response.mean().as_secs_f64() * response.count() as f64, response.count() as f64)
        };
        let (seconds, count) = self.rows.iter().map(sum).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        seconds / count.max(1.0)
    }

    /// The plant's own.
    pub(crate) fn utilization(&self) -> f64 {
        self.rows.iter().map(|row| row.plants[0].utilization).sum::<f64>() / self.rows.len() as f64
    }
}
