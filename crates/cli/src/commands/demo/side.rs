//! One of the two sides of the demo: a server under load, with the gateway in front or without it.
//!
//! A side is judged by the server's own ledger and the clients' own clocks.

use super::figures::{Course, Machine};
use super::machine::CpuMeter;
use super::plant::{self, Crowd, Server};
use crate::output::failure::Failure;
use crate::service::sync::lock;
use plimsoll_gateway::Gateway;
use plimsoll_load::{
    Answer, BusyReading, ErrorKind, Histogram, LevelChanges, LoadHandle, OriginHandle, Outcome, Record, Step,
};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The number of levels, which is also the number of the highest level.
pub(crate) const LEVELS: usize = 2;

/// The requests that ended in a period, as the clients saw them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Pages by level, lowest first.
    pub(crate) pages: [u64; LEVELS],
    /// Requests that the gateway rejected with a time after which to retry.
    pub(crate) rejected: u64,
    /// Requests with no answer, an incomplete answer or another status.
    pub(crate) errors: u64,
    /// Requests that were not sent because this machine had no socket left; they say nothing about the server.
    pub(crate) local: u64,
    pub(crate) bytes: u64,
    /// Response times of pages, from when the request was due.
    pub(crate) latency: Histogram,
}

impl Seen {
    fn add(&mut self, record: &Record) {
        match record.outcome {
            Outcome::Answer(Answer { status: 200, level, bytes }) => {
                // Without a gateway there is no header, and every page is a full one.
                let level = level.map_or(LEVELS, usize::from).clamp(1, LEVELS);
                self.pages[level - 1] += 1;
                self.bytes += bytes;
                self.latency.record_ns(u64::try_from(record.latency.as_nanos()).unwrap_or(u64::MAX));
            }
            Outcome::Answer(Answer { status: 503, level: Some(0), .. }) => self.rejected += 1,
            Outcome::Error(ErrorKind::LocalLimit) => self.local += 1,
            Outcome::Answer(_) | Outcome::Error(_) => self.errors += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Seen) {
        for (mine, theirs) in self.pages.iter_mut().zip(other.pages) {
            *mine += theirs;
        }
        self.rejected += other.rejected;
        self.errors += other.errors;
        self.local += other.local;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
    }

    /// Requests that were sent and have ended, in any way.
    pub(crate) fn ended(&self) -> u64 {
        self.pages.iter().sum::<u64>() + self.rejected + self.errors
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DemoPeriod {
    /// U by the server's own ledger: the part of its workers that hold a request.
    pub(crate) utilization: f64,
    /// The same without the time that this machine took to send answers.
    pub(crate) service: f64,
    pub(crate) seen: Seen,
    pub(crate) changes: LevelChanges,
    /// The utilization U as the gateway estimates it by gaps.
    pub(crate) estimate: Option<f64>,
}

/// One control period of one side in a few numbers, for the screen, the log line, the report and the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moment {
    /// The part of the server's workers that held a request.
    pub(crate) utilization: f64,
    pub(crate) full: u64,
    pub(crate) light: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// Median and 99th percentile of response times (ms); `None` while nothing was answered.
    pub(crate) response: Option<[f64; 2]>,
}

impl Moment {
    pub(crate) fn of(period: &DemoPeriod) -> Moment {
        let Seen { pages: [light, full], rejected, errors, latency, .. } = &period.seen;
        let ms = |quantile| latency.quantile(quantile).as_secs_f64() * 1e3;
        Moment {
            utilization: period.utilization,
            full: *full,
            light: *light,
            rejected: *rejected,
            failed: *errors,
            response: (latency.count() > 0).then(|| [0.5, 0.99].map(ms)),
        }
    }

    /// Requests that ended, in any way.
    fn ended(&self) -> u64 {
        self.full + self.light + self.rejected + self.failed
    }

    /// `count` as a part of the requests that ended.
    pub(crate) fn share(&self, count: u64) -> f64 {
        count as f64 / self.ended().max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    WithGateway,
    Without,
}

pub(crate) struct Side {
    // Fields are dropped in this order: clients, gateway, server.
    load: LoadHandle,
    gateway: Option<Gateway>,
    origin: OriginHandle,
    seen: Arc<Mutex<Seen>>,
    last: [BusyReading; 2],
    cpu: CpuMeter,
}

impl Side {
    /// Starts the server, the gateway if this side has one, and then the load.
    pub(crate) fn start(
        which: Which,
        server: Server,
        steps: Vec<Step>,
        crowd: Crowd,
    ) -> Result<Side, Failure> {
        let origin = server.start()?;
        let gateway = match which {
            Which::WithGateway => Some(server.start_gateway(origin.address())?),
            Which::Without => None,
        };
        let door = gateway.as_ref().and_then(|gateway| gateway.local_addrs().first().copied());
        let cpu = CpuMeter::start();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let sink = {
            let seen = Arc::clone(&seen);
            Box::new(move |record: &Record| lock(&seen).add(record))
        };
        let load = plant::visitors(door.unwrap_or(origin.address()), steps, crowd)
            .start(Some(sink))
            .map_err(|error| Failure::Failed(format!("the demo's visitors do not start: {error}")))?;
        let last = [origin.held(), origin.busy()];
        Ok(Side { load, gateway, origin, seen, last, cpu })
    }

    pub(crate) fn started(&self) -> Instant {
        self.load.started()
    }

    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// Ends a period, now.
    pub(crate) fn period(&mut self) -> DemoPeriod {
        let now = [self.origin.held(), self.origin.busy()];
        let [utilization, service] = [0, 1].map(|book| now[book].utilization_since(&self.last[book]));
        self.last = now;
        let estimate =
            self.gateway.as_ref().and_then(|gateway| Some(gateway.status().plants.first()?.utilization));
        DemoPeriod {
            utilization,
            service,
            seen: self.take_seen(),
            changes: self.load.mark_period(),
            estimate,
        }
    }

    fn take_seen(&self) -> Seen {
        std::mem::take(&mut *lock(&self.seen))
    }

    /// Waits for requests in progress, then stops everything. Returns the course of the run, with the given periods.
    pub(crate) fn end(self, periods: Vec<DemoPeriod>) -> Course {
        let Side { load, gateway, origin, seen, cpu, .. } = self;
        let tally = load.join();
        let cpu_share = cpu.share();
        let rest = std::mem::take(&mut *lock(&seen));
        drop(gateway);
        let origin_lateness = origin.served().lateness;
        let machine = Some(Machine { client_lateness: tally.lateness, origin_lateness, cpu_share });
        let arrivals = tally.slots.iter().map(|slot| slot.arrivals).collect();
        Course { periods, arrivals, rest, machine }
    }
}
