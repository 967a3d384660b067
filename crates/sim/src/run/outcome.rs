//! What a run tells: while it goes on, to whoever watches, and at its end.

use crate::arrivals::LogNotes;
use crate::front::{Decision, Order};
use crate::record::{ClassRow, Row};
use crate::request::Request;
use crate::top::Heavy;
use plimsoll_core::request::{Outcome, Token};
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use std::ops::ControlFlow;
use std::{fmt, io};

/// What became of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Virtual time at its end.
    pub ended: Instant,
    /// False: it was stopped before.
    pub complete: bool,
    /// Rows of time, in order.
    pub rows: Vec<Row>,
    /// The sums of all rows, by class.
    pub classes: Vec<ClassRow>,
    /// Requests that arrived, those for no site included, and those that came again.
    pub requests: u64,
    /// Requests of clients that tried again.
    pub retries: u64,
    /// Requests whose host no site has.
    pub unmatched: u64,
    /// The paths that were degraded or turned away most, heaviest first.
    pub top: Vec<Heavy>,
    /// What was found in logs: the stream's number, and the notes.
    pub notes: Vec<(usize, LogNotes)>,
    /// The engine's own view at the end; none with a comparator.
    pub status: Option<Status>,
    /// Requests in flight at the end.
    pub in_flight: u64,
}

/// Why there is no run.
#[derive(Debug)]
pub enum Error {
    /// What in the promises cannot be.
    Promises(Vec<String>),
    /// The workload does not fit the promises.
    Workload(String),
    /// What a stream reads cannot be read: its name, and why.
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

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Virtual time.
    pub now: Instant,
    /// Requests so far.
    pub requests: u64,
    /// The part that is done, in [0, 1], where it is known.
    pub done: Option<f64>,
}

/// What happens, for whoever watches. `token` names a request from its arrival on.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request arrived and was decided on.
    Arrived {
        /// Its name.
        token: Token,
        /// What it asked for.
        request: &'a Request,
        /// Its class.
        class: u16,
        /// What was decided.
        decision: Decision,
    },
    /// One that waited was started or turned away.
    Ordered(Order),
    /// One that was started, or waited, has ended.
    Ended {
        /// Its name.
        token: Token,
        /// How.
        outcome: Outcome,
    },
}

/// Who watches a run.
pub trait Watch {
    /// Called now and then; may stop the run.
    fn progress(&mut self, _progress: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called at every event.
    fn event(&mut self, _now: Instant, _event: &Event<'_>) {}
}

/// Nobody.
impl Watch for () {}
