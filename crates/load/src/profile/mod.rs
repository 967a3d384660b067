//! The profile of a real server: the costs of its requests, found by loading it (UC 7.2, 7.5).
//!
//! ```text
//! each URL: search (closed loop, open loop) -> highest rate -> service time 1 / rate
//! all sizes: fit -> a, b and the link's b'          a rejection: search -> c
//! the highest rate again, and above it: overload -> T_f
//! ```
//!
//! Costs are in time of the whole server: if it does at most 600 requests a second it spends 1/600 s on each, however many
//! workers it has. Utilization is made of such times, `U = a R + b W`.
//!
//! # What holds
//!
//! - The profile ends: by time, because every window has its length, and by count, because every load takes from one budget.
//! - Results are kept: if the server dies, the budget is used up or the user interrupts, the profile ends with the sizes
//!   measured so far.
//! - The profile shows its own limits: how busy the client's thread and machine were, and how late the open loop was. It
//!   measures the slower of server and client, and says which it may have been.

mod fit;
mod overload;
mod reading;
mod search;
mod stage;
#[cfg(test)]
mod virtual_time;

pub use fit::{Fit, Point};
pub use overload::{MOST_LATE, Overload};
pub use search::Highest;

use crate::client::{Answer, ClosedLoop, ErrorKind, Outcome, Target};
use overload::Undisturbed;
use search::Bench;
use stage::{Accept, Budget, Stage};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// If the highest rate is more than this share of the clients times the rate of one client, it shows no bound of the server.
const BOUNDED: f64 = 0.8;

/// A request that has no answer after this time has failed.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The same above the highest rate, where otherwise clients would pile up for the whole phase.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);

/// One size, or kind of content.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The subject's name, for reports.
    pub name: String,
    /// The server that is loaded.
    pub target: Target,
    /// The path of the requests.
    pub path: String,
}

/// The subjects and limits of a profile.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The pages whose costs are measured, one of each size.
    pub subjects: Vec<Subject>,
    /// A page that the server always rejects, if there is one.
    pub rejecting: Option<Subject>,
    /// How long each subject is loaded.
    pub each: Duration,
    /// The load of the last phase as a multiple of the highest rate, above 1. `None`: both this phase and the one before it,
    /// which measures the highest rate once more, are left out.
    pub overload: Option<f64>,
    /// The most requests in all.
    pub most_requests: u64,
    /// The most clients at once.
    pub most_clients: u32,
}

/// The results of a profile.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The highest rates of the subjects, in their order, as far as the profile came.
    pub highest: Vec<Highest>,
    /// The highest rate of rejections.
    pub rejecting: Option<Highest>,
    /// The measurement above the highest rate.
    pub overload: Option<Overload>,
    /// The costs; `None` if no size was measured.
    pub fit: Option<Fit>,
    /// How the profile ended.
    pub ended: Ended,
    /// The number of requests made.
    pub requests: u64,
}

/// How a profile ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// All was measured.
    #[default]
    Complete,
    /// The watcher ended it.
    Interrupted,
    /// [`Plan::most_requests`] were made.
    RequestsUsedUp,
    /// The server no longer answered: the subject's name, and why the server is believed dead.
    Died(String, String),
}

/// How far a profile has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The part of the time that is over.
    pub done: f64,
    /// The subject under load.
    pub subject: &'a str,
    /// The kind of load on the subject.
    pub what: &'a str,
    /// The number of requests ended.
    pub requests: u64,
}

/// A watcher, which is called some dozen times a second.
pub trait Watch {
    /// Called with the progress; `Break` ends the profile.
    fn progress(&mut self, progress: &Progress<'_>) -> ControlFlow<()>;
}

impl Profile {
    /// The sizes and service times measured.
    pub fn points(&self) -> Vec<Point> {
        let point = |highest: &Highest| Point { bytes: highest.bytes, seconds: highest.service_seconds() };
        self.highest.iter().map(point).collect()
    }

    /// How many requests the server works on at once, if the closed loop shows it.
    ///
    /// With s workers and requests that each occupy one, s clients get s times the rate of a single client. If the ratio of the
    /// highest rate to that of one client is near a whole number, about the same for every size, and about as many clients keep
    /// the server busy, that number is s. If the processors do the work there may be no such number.
    ///
    /// If the number is near the most clients that were tried, it is a limit of the clients and not of the server: with more
    /// clients the rate might have risen further.
    pub fn workers(&self) -> Option<u32> {
        if self.is_bounded_by_clients() {
            return None;
        }
        let ratio = |highest: &Highest| highest.rate / highest.alone;
        // The slowest request has the smallest part of the client's own time in it.
        let slowest = self.highest.iter().min_by(|one, other| one.alone.total_cmp(&other.alone))?;
        let workers = ratio(slowest).round().max(1.0);
        let whole = (ratio(slowest) - workers).abs() <= f64::max(0.2, 0.05 * workers);
        let agrees = |found: &Highest| {
            let busy = f64::from(found.busy_clients) / workers;
            (ratio(found) / workers - 1.0).abs() < 0.25 && (0.5..=2.0).contains(&busy)
        };
        (whole && self.highest.iter().all(agrees)).then_some(workers as u32)
    }

    /// Whether the rate of a size rose about as fast as the number of clients up to the most of them, so that nothing shows how
    /// many requests the server works on at once.
    pub fn is_bounded_by_clients(&self) -> bool {
        self.highest.iter().any(|found| found.rate / found.alone > BOUNDED * f64::from(found.most_tried()))
    }

    /// The fewest requests at once that keep the server busy, at the size that needs most.
    pub fn busy_clients(&self) -> Option<u32> {
        self.highest.iter().map(|found| found.busy_clients).max()
    }
}

impl Plan {
    /// The longest time that the profile takes.
    pub fn longest(&self) -> Duration {
        self.each * self.phases()
    }

    /// The longest time as a multiple of [`each`](Self::each).
    pub fn phases(&self) -> u32 {
        let phases = self.subjects.len() + usize::from(self.rejecting.is_some());
        (phases + 2 * usize::from(self.overload.is_some())) as u32
    }

    /// Sends one request for each subject, and one for the page that is rejected, in this order.
    ///
    /// # Errors
    /// A host or path is not valid in HTTP, or a load cannot be started.
    pub fn probe(&self) -> std::io::Result<Vec<Outcome>> {
        let ask = |subject: &Subject| {
            let seen = Arc::new(Mutex::new(Outcome::Error(ErrorKind::Closed)));
            let keep = Arc::clone(&seen);
            let one = ClosedLoop {
                path: subject.path.clone(),
                most: 1,
                ..ClosedLoop::new(Target { timeout: TIMEOUT, ..subject.target.clone() }, 1, TIMEOUT)
            };
            let sink = move |record: &crate::Record| {
                *keep.lock().unwrap_or_else(PoisonError::into_inner) = record.outcome;
            };
            one.start(Some(Box::new(sink)))?.join();
            let outcome = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(outcome)
        };
        self.subjects.iter().chain(&self.rejecting).map(ask).collect()
    }

    /// Measures every subject in turn, while `watch` looks on.
    pub fn run(&self, watch: &mut dyn Watch) -> Profile {
        let of_seconds = self.longest().as_secs_f64();
        let mut budget = Budget { requests_left: self.most_requests, requests: 0, seconds: 0.0, of_seconds };
        let mut profile = Profile::default();
        if let Err(ended) = self.measure(&mut profile, &mut budget, watch) {
            profile.ended = ended;
        }
        profile.fit = Fit::of(&profile.points());
        profile.requests = budget.requests;
        profile
    }

    fn measure(
        &self,
        profile: &mut Profile,
        budget: &mut Budget,
        watch: &mut dyn Watch,
    ) -> Result<(), Ended> {
        let seconds = self.each.as_secs_f64();
        for subject in &self.subjects {
            let mut stage = Stage { subject, accept: Accept::Success, timeout: TIMEOUT, budget, watch };
            profile.highest.push(search::highest(&mut stage, seconds, self.most_clients)?);
        }
        if let Some(subject) = &self.rejecting {
            let mut stage = Stage { subject, accept: Accept::Any, timeout: TIMEOUT, budget, watch };
            profile.rejecting = Some(search::highest(&mut stage, seconds, self.most_clients)?);
        }
        let (Some(factor), Some(fit)) = (self.overload, Fit::of(&profile.points())) else { return Ok(()) };
        let place = overloaded(&profile.highest, &fit);
        let (subject, highest) = (&self.subjects[place], &profile.highest[place]);
        let mut stage = Stage { subject, accept: Accept::Success, timeout: SHORT_TIMEOUT, budget, watch };
        let again = stage.closed((2 * highest.clients).min(self.most_clients), seconds)?;
        let undisturbed = Undisturbed::of(highest, &again);
        let offered = undisturbed.rate * factor;
        let open = stage.open(offered, seconds)?;
        profile.overload = Some(Overload::of((place, highest), undisturbed, &fit, offered, &open));
        Ok(())
    }
}

/// The subject for the overload: the slowest that the link does not bind, because it needs the least of the client.
fn overloaded(highest: &[Highest], fit: &Fit) -> usize {
    let own = highest.iter().enumerate().filter(|(_, found)| !fit.is_link_bound(found.bytes));
    own.min_by(|one, other| one.1.rate.total_cmp(&other.1.rate)).map_or(0, |(place, _)| place)
}

/// Whether an answer is a page.
pub fn is_page(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Answer(Answer { status: 200..=299, .. }))
}
