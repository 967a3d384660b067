//! What a run reports: progress and events to a watcher, and the result at its end.

use super::{ArrivalPeaks, Coming, LOOK, Simulation};
use crate::arrivals::{LeftOut, LogNotes};
use crate::degraded_paths::Heavy;
use crate::front::{Decision, Order};
use crate::plant::{Busy, Server};
use crate::record::{ClassRow, Row};
use crate::request::Request;
use crate::workload::Arrivals;
use plimsoll_core::request::{Outcome, Token};
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use std::ops::ControlFlow;
use std::{fmt, io};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Virtual time at the end of the run.
    pub ended: Instant,
    /// False if the run was stopped before its end.
    pub complete: bool,
    /// Rows of time, in order.
    pub rows: Vec<Row>,
    /// The sums of all rows, by class.
    pub classes: Vec<ClassRow>,
    /// Requests that arrived, with those for no site and retries.
    pub requests: u64,
    /// The second and the minute in which most requests arrived.
    pub peaks: ArrivalPeaks,
    /// Until when requests came: the time of the last one, or the end of the run if more would have come. Requests in progress
    /// then may end later.
    pub offered_until: Instant,
    /// Requests that were retries.
    pub retries: u64,
    /// Requests whose host belongs to no site.
    pub unmatched: u64,
    /// The host of the first unmatched request; empty if it named none.
    pub unmatched_host: Option<String>,
    /// The paths whose requests were degraded or rejected most, heaviest first.
    pub top: Vec<Heavy>,
    /// The notes on each log that was read, with the stream's number.
    pub notes: Vec<(usize, LogNotes)>,
    /// The engine's status at the end; `None` with a comparator.
    pub status: Option<Status>,
    /// Requests in flight at the end.
    pub in_flight: u64,
}

/// Why there is no run.
#[derive(Debug)]
pub enum Error {
    /// Which promises contradict each other.
    Promises(Vec<String>),
    /// The workload does not fit the promises.
    Workload(String),
    /// The input of a stream cannot be read: the stream's name, and why.
    Stream(String, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Promises(all) => f.write_str(&all.join("\n")),
            Error::Workload(what) => f.write_str(what),
            Error::Stream(name, error) => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Virtual time.
    pub now: Instant,
    /// Requests so far.
    pub requests: u64,
    /// The part of the run that is done, in [0, 1], if it is known.
    pub done: Option<f64>,
}

/// An event of a run. `token` names a request from its arrival on.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request arrived and was decided on.
    Arrived {
        /// The request's name.
        token: Token,
        /// The request itself.
        request: &'a Request,
        /// The request's class.
        class: u16,
        /// The front's decision.
        decision: Decision,
    },
    /// A waiting request was started or rejected.
    Ordered(Order),
    /// A request that was started, or waited, has ended.
    Ended {
        /// The request's name.
        token: Token,
        /// How the request ended.
        outcome: Outcome,
    },
}

/// A watcher of a run.
pub trait Watch {
    /// Called now and then with the progress; may stop the run.
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called at every event.
    fn event(&mut self, _now: Instant, _event: &Event<'_>) {}
}

/// A watcher that does nothing.
impl Watch for () {}

impl Simulation<'_> {
    /// Reads on in the logs that the end of the run cuts, to know what it leaves out: by stream, the notes of what was
    /// replayed, and that. A pipe might have no end.
    pub(super) fn leave_out(&mut self) -> Vec<(usize, LogNotes)> {
        let mut all = Vec::new();
        for number in 0..self.streams.len() {
            let Arrivals::Log { input, .. } = &self.setup.workload.streams[number].arrivals else { continue };
            let coming = &mut self.streams[number];
            if coming.due == Instant::FAR {
                continue;
            }
            let Some(notes) = coming.source.notes().pop() else { continue };
            let mut left = LeftOut { requests: 1, of: 0, last: coming.due.as_secs_f64(), is_all: false };
            while input.has_an_end() && !left.is_all {
                let next = coming.request.as_mut().map(|request| coming.source.next(request));
                let Some(Ok(next)) = next else { break };
                left.is_all = next.is_none();
                if let Some(due) = next {
                    (left.requests, left.last) = (left.requests + 1, due.as_secs_f64());
                }
                let progress =
                    Progress { now: self.now, requests: self.requests, done: coming.source.progress() };
                if left.requests.is_multiple_of(LOOK.into()) && self.watch.progress(&progress).is_break() {
                    break;
                }
            }
            left.of = coming.source.notes().iter().map(|notes| notes.requests).sum();
            all.push((number, LogNotes { left_out: Some(left), ..notes }));
        }
        all
    }

    pub(super) fn finish(mut self, complete: bool) -> Run {
        let busy = busy(&mut self.servers, self.now);
        let rows = self.recorder.finish(self.now, &busy, self.front.recorded());
        let offered_until = if self.arrival.0 == Instant::FAR { self.arrivals.last } else { self.now };
        Run {
            ended: self.now,
            complete,
            classes: sums(&rows),
            rows,
            requests: self.requests,
            peaks: self.arrivals.peaks(offered_until),
            offered_until,
            retries: self.clients.returned(),
            unmatched: self.unmatched,
            unmatched_host: self.unmatched_host,
            top: self.heavy.sorted(),
            notes: notes(&self.streams, &self.cut),
            status: self.front.status(),
            in_flight: self.flights.awaited() as u64,
        }
    }
}

/// The notes of all streams, on their own logs and on the logs that their contents are drawn from.
fn notes(streams: &[Coming], cut: &[(usize, LogNotes)]) -> Vec<(usize, LogNotes)> {
    let of = |(number, coming): (usize, &Coming)| {
        let cut = cut.iter().find(|(stream, _)| *stream == number).map(|(_, notes)| vec![notes.clone()]);
        cut.unwrap_or_else(|| coming.source.notes()).into_iter().map(move |notes| (number, notes))
    };
    streams.iter().enumerate().flat_map(of).filter(|(_, notes)| notes.lines > 0).collect()
}

pub(super) fn busy(servers: &mut [Server], now: Instant) -> Vec<Busy> {
    servers.iter_mut().map(|server| server.busy(now)).collect()
}

/// The sums of all rows, by class.
fn sums(rows: &[Row]) -> Vec<ClassRow> {
    let mut sums: Vec<ClassRow> = Vec::new();
    let mut seconds = 0.0;
    for row in rows {
        let length = row.length.as_secs_f64();
        sums.resize_with(row.classes.len(), ClassRow::default);
        for (sum, class) in sums.iter_mut().zip(&row.classes) {
            sum.merge(class, [seconds, length]);
        }
        seconds += length;
    }
    sums
}
