//! One run: requests in order of time, a front that decides, plants that serve, clients that lose their patience.
//!
//! Input: a [`Setup`]. Output: a [`Run`], and events to a [`Watch`] meanwhile.
//!
//! There is no queue of events. Each part says when it is due, and the earliest is next; of equal instants, in this order:
//! plants, clients that leave or retry, the loops' tick, the end of a period, arrivals. So a run is a function of its setup,
//! byte for byte.

mod clients;
mod connecting;
mod due;
mod flight;
mod outcome;
mod peaks;
mod requests;
mod ticks;

pub use outcome::{Error, Event, Progress, Run, Watch};
pub use peaks::ArrivalPeaks;

use crate::arrivals::{self, LogNotes, Source};
use crate::degraded_paths::HeavyPaths;
use crate::fault::reports_what_is_there;
use crate::front::{Front, Gateway, Order, ServerProbe};
use crate::plant::{Server, Work};
use crate::record::Recorder;
use crate::request::Request;
use crate::service::ServicePlan;
use crate::workload::{Plant, Workload};
use clients::ClientTimers;
use connecting::Connecting;
use due::{Due, Next};
use flight::Flights;
use peaks::ArrivalCounter;
use plimsoll_core::promises::Promises;
use plimsoll_core::random::Random;
use plimsoll_core::request::{Outcome, Service, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use std::io;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The promises to keep.
    pub promises: &'a Promises,
    /// The arrivals, the clients and the true servers.
    pub workload: &'a Workload,
    /// The seed of everything random.
    pub seed: u64,
}

impl Setup<'_> {
    /// Runs the setup with the gateway's own engine.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(&self) -> Result<Run, Error> {
        let mut gateway = Gateway::new(self.promises, self.seed).map_err(Error::Promises)?;
        self.run_with(&mut gateway, &mut ())
    }

    /// Runs the setup with any front, watched.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run_with(&self, front: &mut dyn Front, watch: &mut dyn Watch) -> Result<Run, Error> {
        let mut simulation = Simulation::new(self, front, watch)?;
        let complete = simulation.play()?;
        Ok(simulation.finish(complete))
    }
}

/// A stream's source, and its next request with the time when it comes.
struct Coming {
    source: Box<dyn Source>,
    due: Instant,
    /// The request is taken out of its box while the front decides, because it is too large to be moved twice at each arrival.
    request: Option<Box<Request>>,
}

impl Coming {
    /// Reads the stream's next request; if it names no host, it gets the default one.
    fn advance(&mut self, request: &mut Request, default_host: &str) -> io::Result<()> {
        self.due = self.source.next(request)?.unwrap_or(Instant::FAR);
        if request.host.is_empty() {
            request.host.push_str(default_host);
        }
        Ok(())
    }
}

/// An arrival, for the first time or again.
#[derive(Clone, Copy)]
struct Visit {
    stream: usize,
    attempt: u32,
}

/// The job number of a probe at its server; the numbers of requests are small (`flight.rs`).
const PROBE: u64 = u64::MAX;

/// Events between two calls of the watcher.
const LOOK: u32 = 1 << 16;

struct Simulation<'a> {
    setup: &'a Setup<'a>,
    front: &'a mut dyn Front,
    watch: &'a mut dyn Watch,
    streams: Vec<Coming>,
    /// When the next new request comes, and its stream.
    arrival: (Instant, usize),
    servers: Vec<Server>,
    flights: Flights,
    clients: ClientTimers,
    connecting: Connecting,
    orders: Vec<Order>,
    /// A buffer that is swapped with `orders`.
    obeyed: Vec<Order>,
    readings: Readings,
    /// Whether there are any readings to pass to the engine.
    senses: bool,
    /// Whether some clients retry, or ask for more after an answer.
    may_return: bool,
    recorder: Recorder,
    heavy: HeavyPaths,
    plan: ServicePlan,
    /// Draws service times from the server's law.
    work: Random,
    now: Instant,
    tick_due: Instant,
    /// For each plant, when its last report was read, and its busy time then.
    reported: Vec<(Instant, Duration)>,
    requests: u64,
    arrivals: ArrivalCounter,
    unmatched: u64,
    unmatched_host: Option<String>,
    /// For each log that the end of the run has cut, its stream and the notes at that time.
    cut: Vec<(usize, LogNotes)>,
    /// The cost of a rejection where it is highest (s of the whole machine); 0 if none costs anything.
    rejection_seconds: f64,
}

impl<'a> Simulation<'a> {
    fn new(setup: &'a Setup<'a>, front: &'a mut dyn Front, watch: &'a mut dyn Watch) -> Result<Self, Error> {
        let (promises, workload) = (setup.promises, setup.workload);
        let (wanted, given) = (promises.plants.len(), workload.plants.len());
        if wanted != given {
            return Err(Error::Workload(format!("{wanted} servers are promised and {given} are described")));
        }
        let mut seeds = Random::new(setup.seed ^ 0x0073_696d);
        let work = Random::new(seeds.bits());
        let clients = ClientTimers::new(seeds.bits());
        let mut streams = Vec::new();
        let end = end(workload);
        for stream in &workload.streams {
            let unreadable = |error| Error::Stream(stream.name.clone(), error);
            let source = arrivals::source(stream, seeds.bits(), end).map_err(unreadable)?;
            let mut coming = Coming { source, due: Instant::FAR, request: None };
            let mut request = Box::<Request>::default();
            coming.advance(&mut request, &workload.default_host).map_err(unreadable)?;
            coming.request = Some(request);
            streams.push(coming);
        }
        let classes = promises.sites.iter().map(|site| site.classes.len() + 2).sum();
        let levels = promises.sites.iter().map(|site| site.levels.len()).max().unwrap_or(1);
        let rejection_seconds = rejection_seconds(promises, workload);
        let servers = workload.plants.iter().map(|plant| plant.discipline.servers()).collect();
        Ok(Simulation {
            setup,
            front,
            watch,
            arrival: first_arrival(&streams),
            streams,
            servers: workload.plants.iter().map(Server::new).collect(),
            flights: Flights::default(),
            clients,
            connecting: Connecting::default(),
            orders: Vec::new(),
            obeyed: Vec::new(),
            readings: Readings::default(),
            senses: rejection_seconds > 0.0
                || workload.plants.iter().any(|plant| plant.reports || reports_what_is_there(&plant.faults)),
            may_return: workload.streams.iter().any(|stream| stream.retry.is_some() || stream.waits()),
            recorder: Recorder::new(promises.control.period, servers, (classes, levels)),
            heavy: HeavyPaths::default(),
            plan: ServicePlan::new(promises, workload),
            work,
            now: Instant::ZERO,
            tick_due: Instant::ZERO,
            reported: vec![(Instant::ZERO, Duration::ZERO); wanted],
            requests: 0,
            arrivals: ArrivalCounter::default(),
            unmatched: 0,
            unmatched_host: None,
            cut: Vec::new(),
            rejection_seconds,
        })
    }

    /// Runs until the end; false if the watcher stopped it before.
    fn play(&mut self) -> Result<bool, Error> {
        let end = end(self.setup.workload);
        let mut to_look = LOOK;
        loop {
            let due = self.due();
            self.tick_due = self.tick_due.min(self.front.due());
            let (at, next) = due.next(self.tick_due);
            if at > end {
                self.now = end;
                self.cut = self.leave_out();
                return Ok(true);
            }
            self.now = at;
            match next {
                Next::Plant(plant) => self.step_plant(plant),
                Next::Client => self.step_client(),
                Next::Tick => self.tick(&due, end),
                Next::Period => {
                    self.end_periods(&due, end);
                    if self.is_over() {
                        return Ok(true);
                    }
                }
                Next::Stream(stream) => self.step_stream(stream)?,
            }
            to_look -= 1;
            if to_look == 0 {
                to_look = LOOK;
                if self.watch.progress(&self.progress(end)).is_break() {
                    return Ok(false);
                }
            }
        }
    }

    /// When each kind of event is due, except the tick.
    fn due(&self) -> Due {
        Due {
            plant: first(self.servers.iter().map(Server::due)),
            client: self.clients.due().min(self.connecting.due()),
            period: self.recorder.due(),
            arrival: self.arrival,
        }
    }

    /// Whether no request will come any more, and none is in progress.
    fn is_over(&self) -> bool {
        self.arrival.0 == Instant::FAR
            && self.setup.workload.duration.is_none()
            && self.flights.count() == 0
            && self.clients.nobody_returns()
    }

    fn progress(&self, end: Instant) -> Progress {
        let by_time = self.now.as_secs_f64() / end.as_secs_f64();
        let read = self.streams.iter().filter_map(|coming| coming.source.progress()).reduce(f64::min);
        let timed = self.setup.workload.duration.map(|_| by_time);
        let done = timed.into_iter().chain(read).reduce(f64::max);
        Progress { now: self.now, requests: self.requests, done }
    }

    fn step_stream(&mut self, stream: usize) -> Result<(), Error> {
        let Some(mut request) = self.streams[stream].request.take() else {
            unreachable!("a stream's request is back before the next one comes")
        };
        self.arrive(&request, Visit { stream, attempt: 0 });
        let coming = &mut self.streams[stream];
        let next = coming.advance(&mut request, &self.setup.workload.default_host);
        coming.request = Some(request);
        let name = || self.setup.workload.streams[stream].name.clone();
        next.map_err(|error| Error::Stream(name(), error))?;
        self.arrival = first_arrival(&self.streams);
        Ok(())
    }

    fn step_client(&mut self) {
        if let Some(token) = self.clients.who_leaves(self.now) {
            self.leave(token);
        } else if let Some(again) = self.clients.who_returns(self.now) {
            self.arrive(&again.request, Visit { stream: again.stream, attempt: again.attempt });
        } else if let Some(connection) = self.connecting.next(self.now) {
            self.connect_again(connection);
        }
    }

    /// Sends a probe.
    fn ask(&mut self, ServerProbe { plant, service }: ServerProbe) {
        if self.servers[plant].offer(self.now, PROBE, Work { service, bytes: 0 }).is_err() {
            self.front.probed(self.now, false);
        }
    }

    fn step_plant(&mut self, plant: usize) {
        let Some(done) = self.servers[plant].step(self.now) else { return };
        if done.job == PROBE {
            return self.front.probed(self.now, !done.failed);
        }
        let token = Token(done.job);
        // A request whose client has left gets no answer.
        let Some(flight) = self.flights.get(token) else { return };
        if flight.is_abandoned {
            let service = Service { response_bytes: flight.bytes, representative: !done.failed, cost: None };
            return self.finish_abandoned(token, service);
        }
        if done.failed {
            return self.end(token, Outcome::Failed);
        }
        let (class, client, level, bytes) = (flight.class, flight.client, flight.level, flight.bytes);
        let response_ns = self.now.nanos_since(flight.arrived);
        self.recorder.completed(class, client, level);
        let row = &mut self.recorder.row.classes[usize::from(class)];
        row.bytes += bytes;
        row.response.record_ns(response_ns);
        let service = Service { response_bytes: bytes, representative: true, cost: None };
        self.front.release(self.now, token, service, &mut self.orders);
        self.end(token, Outcome::Completed);
    }
}

/// When the run ends at the latest.
fn end(workload: &Workload) -> Instant {
    workload.duration.map_or(Instant::FAR, |duration| Instant::ZERO + duration)
}

fn first_arrival(streams: &[Coming]) -> (Instant, usize) {
    first(streams.iter().map(|coming| coming.due))
}

/// The earliest instant and its index; of equal ones the first.
fn first(all: impl Iterator<Item = Instant>) -> (Instant, usize) {
    let mut first = (Instant::FAR, 0);
    for (number, due) in all.enumerate() {
        if due < first.0 {
            first = (due, number);
        }
    }
    first
}

/// The cost of a rejection where it is highest among plants that share the gateway's machine (s of that machine).
fn rejection_seconds(promises: &Promises, workload: &Workload) -> f64 {
    let costs = workload.plants.iter().zip(&promises.plants).filter(|(_, promised)| promised.same_host);
    let seconds = |plant: &Plant| plant.rejection.as_secs_f64() / f64::from(plant.discipline.servers());
    costs.map(|(plant, _)| seconds(plant)).fold(0.0, f64::max)
}
