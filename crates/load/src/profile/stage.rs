//! One window of real load on one URL: it is started, watched, read and ended.

use super::reading::{Reading, Reporter};
use super::search::{Bench, OpenWindow, Window};
use super::{Ended, Progress, Subject, Watch};
use crate::client::{ClosedLoop, ErrorKind, LoadHandle, OpenLoop, Tally, Target};
use crate::machine::MachineTime;
use std::io;
use std::time::{Duration, Instant};

/// The part of a window that is not counted, while connections open and queues fill.
pub(super) const BEGIN: f64 = 0.2;
/// The part after a window in which requests in progress may end, so that they are not part of the next window's load.
pub(super) const END: f64 = 0.1;
/// The number of parts of a closed window.
pub(super) const PARTS: u32 = 5;
/// How often a window is read.
const LOOK: Duration = Duration::from_millis(15);
/// If a server has refused everything for this long, it counts as dead.
const REFUSES: Duration = Duration::from_secs(1);
/// Longer than any window, because the stage ends a load.
const FOREVER: Duration = Duration::from_secs(86_400);
/// The most sockets of an open loop.
const SOCKETS: usize = 4000;

/// Which answers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    /// Answers of status 200 to 299: pages.
    Success,
    /// All answers, to measure rejections.
    Any,
}

impl Accept {
    /// Whether an answer of this status counts.
    pub(super) fn counts(self, status: u16) -> bool {
        self == Accept::Any || (200..300).contains(&status)
    }
}

/// The budget of a profile, and what was used of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) requests_left: u64,
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// The longest that all stages together take (s).
    pub(super) of_seconds: f64,
}

/// The load on one URL.
pub(super) struct Stage<'a> {
    pub(super) subject: &'a Subject,
    pub(super) accept: Accept,
    pub(super) timeout: Duration,
    pub(super) budget: &'a mut Budget,
    pub(super) watch: &'a mut dyn Watch,
}

impl Bench for Stage<'_> {
    fn closed(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended> {
        let reporter = Reporter::default();
        let load = ClosedLoop {
            path: self.subject.path.clone(),
            most: self.budget.requests_left,
            seed: u64::from(clients),
            ..ClosedLoop::new(self.target(), clients, FOREVER)
        };
        let load = load.start(Some(reporter.sink(self.accept)));
        let what = format!("{clients} {}", if clients == 1 { "client" } else { "clients" });
        self.during(load, seconds, |stage, load| {
            stage.wait(load, seconds * BEGIN, &what, |_| ())?;
            let machine = MachineTime::now();
            let mut readings = vec![reporter.read(load)];
            for _ in 0..PARTS {
                stage.wait(load, seconds * (1.0 - BEGIN - END) / f64::from(PARTS), &what, |_| ())?;
                readings.push(reporter.read(load));
            }
            let machine_cpu = MachineTime::share_since(machine);
            stage.must_live(load, seconds, &what, (&reporter, &mut readings))?;
            let (first, last) = (readings[0], readings[readings.len() - 1]);
            let (good, failed) = (last.good - first.good, last.failed - first.failed);
            load.stop();
            Ok(Window {
                rate: last.rate(&first),
                parts: readings.windows(2).map(|two| two[1].rate(&two[0])).collect(),
                bytes: if good > 0.0 { (last.bytes - first.bytes) / good } else { 0.0 },
                failed: if failed > 0.0 { failed / (good + failed) } else { 0.0 },
                response_seconds: load.with_tally(mean_response),
                client_cpu: last.client_cpu(&first),
                machine_cpu,
            })
        })
    }

    fn open(&mut self, rate: f64, seconds: f64) -> Result<OpenWindow, Ended> {
        let reporter = Reporter::default();
        let load = OpenLoop {
            path: self.subject.path.clone(),
            most: self.budget.requests_left,
            // One client suffices: connections are shared, as a gateway's are, and there are as few as possible.
            clients: 1,
            max_sockets: SOCKETS,
            ..OpenLoop::new(self.target(), vec![(FOREVER, rate)])
        };
        let load = load.start(Some(reporter.sink(self.accept)));
        let what = format!("{rate:.0} requests/s");
        self.during(load, seconds, |stage, load| {
            stage.wait(load, seconds * BEGIN, &what, |_| ())?;
            let first = reporter.read(load);
            let mut under_way = Vec::new();
            let note = |load: &LoadHandle| {
                under_way.push((load.started().elapsed().as_secs_f64(), load.in_flight() as f64));
            };
            stage.wait(load, seconds * (1.0 - BEGIN - END), &what, note)?;
            let last = reporter.read(load);
            let tally = load.tally();
            load.stop();
            Ok(OpenWindow {
                rate: last.per_second(&first, |reading| reading.good),
                bytes_per_second: last.per_second(&first, |reading| reading.bytes),
                failures: last.per_second(&first, |reading| reading.failed),
                growth: slope(&under_way),
                response_seconds: mean_response(&tally),
                late_seconds: tally.lateness.quantile(0.99).as_secs_f64(),
                client_cpu: last.client_cpu(&first),
            })
        })
    }
}

impl Stage<'_> {
    fn target(&self) -> Target {
        Target { timeout: self.timeout, ..self.subject.target.clone() }
    }

    fn died(&self, why: String) -> Ended {
        Ended::Died(self.subject.name.clone(), why)
    }

    /// Measures a load that was started. Its requests are charged to the budget however the measurement ends.
    fn during<T>(
        &mut self,
        load: io::Result<LoadHandle>,
        seconds: f64,
        measure: impl FnOnce(&mut Self, &LoadHandle) -> Result<T, Ended>,
    ) -> Result<T, Ended> {
        let load = load.map_err(|error| self.died(format!("the load cannot be started: {error}")))?;
        let begin = self.budget.seconds;
        let measured = measure(self, &load);
        if measured.is_ok() {
            let until = Instant::now() + Duration::from_secs_f64(seconds * END);
            while load.in_flight() > 0 && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.budget.seconds = self.budget.seconds.max(begin + seconds);
        }
        let made = load.with_tally(|tally| tally.requests) + load.in_flight() as u64;
        self.budget.requests += made;
        self.budget.requests_left = self.budget.requests_left.saturating_sub(made);
        measured
    }

    /// Waits, and calls the watcher and `look` meanwhile.
    fn wait(
        &mut self,
        load: &LoadHandle,
        seconds: f64,
        what: &str,
        mut look: impl FnMut(&LoadHandle),
    ) -> Result<(), Ended> {
        let (begin, until) = (self.budget.seconds, Instant::now() + Duration::from_secs_f64(seconds));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            self.budget.seconds = begin + seconds - left.as_secs_f64();
            let requests = self.budget.requests + load.with_tally(|tally| tally.requests);
            let progress = Progress {
                done: (self.budget.seconds / self.budget.of_seconds).min(1.0),
                subject: &self.subject.name,
                what,
                requests,
            };
            if self.watch.progress(&progress).is_break() {
                return Err(Ended::Interrupted);
            }
            if load.is_finished() {
                return Err(Ended::RequestsUsedUp);
            }
            look(load);
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Ends the profile if the server no longer answers at all. A slow server is not dead, nor is one that only refuses what
    /// does not fit into its queue behind the requests of the last window: then the window's last part is extended until an
    /// answer comes.
    fn must_live(
        &mut self,
        load: &LoadHandle,
        seconds: f64,
        what: &str,
        (reporter, readings): (&Reporter, &mut [Reading]),
    ) -> Result<(), Ended> {
        let [first, .., before, last] = readings else { return Ok(()) };
        while last.good == before.good {
            let failed = last.failed - before.failed;
            let refuses = failed > 3.0 || failed > 0.0 && load.in_flight() == 0;
            let patience = match (refuses, before.good == first.good) {
                (true, _) => REFUSES.as_secs_f64(),
                (false, true) => self.timeout.as_secs_f64(),
                (false, false) => return Ok(()),
            };
            if last.at - before.at >= patience {
                return Err(self.died(load.with_tally(|tally| self.why(tally))));
            }
            self.wait(load, seconds, what, |_| ())?;
            *last = reporter.read(load);
        }
        Ok(())
    }

    fn why(&self, tally: &Tally) -> String {
        let errors = ErrorKind::ALL.into_iter().map(|kind| (tally.errors_of(kind), kind));
        let most = errors.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count);
        let status = tally.by_status.iter().rfind(|(status, _)| !(200..300).contains(*status));
        match (most, status) {
            (Some((_, kind)), _) => match kind {
                ErrorKind::Connect => "connections are refused".to_owned(),
                ErrorKind::Timeout => {
                    format!("no answer within {} s", self.timeout.as_secs_f64())
                }
                ErrorKind::LocalLimit => "this machine has no more sockets".to_owned(),
                ErrorKind::Malformed => "what it answers is not HTTP".to_owned(),
                ErrorKind::Closed | ErrorKind::Reset | ErrorKind::Truncated => {
                    "connections are closed without an answer".to_owned()
                }
            },
            (None, Some((status, _))) if self.accept == Accept::Success => format!("it answers {status}"),
            _ => "it answers nothing".to_owned(),
        }
    }
}

/// Mean latency of answers below 500 (s).
fn mean_response(tally: &Tally) -> Option<f64> {
    (tally.latency.count() > 0).then(|| tally.latency.mean().as_secs_f64())
}

/// The slope of a line fitted by least squares; zero for fewer than two points.
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!((slope(&[(1.0, 1.0)]), slope(&[])), (0.0, 0.0));
    }
}
