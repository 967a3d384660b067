//! The event log: what the loops decided, in words. Input: the gateway's status, period by period. Output: lines for the log
//! when something begins or ends, such as a class that is degraded or a promise that is missed.
//!
//! Single requests are not logged: each response has its level and reason in a header, and `/metrics` has the counts.

mod deadlines;
mod incident;
mod load;
mod promises;
#[cfg(test)]
mod tests;
mod types;

use crate::output::type_costs::promised;
use crate::service::log::News;
use crate::service::sync::lock;
pub(crate) use incident::Incidents;
use plimsoll_core::promises::Mode;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use std::sync::{Arc, Mutex};

/// The last logged state of each class, site and plant.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// The incidents, shared with the admin listener.
    incidents: Arc<Mutex<Incidents>>,
    /// When the loops began.
    began: Instant,
    last: Instant,
    /// The load of each class.
    loads: Vec<load::ClassLoad>,
    /// For each plant, whether its contracts (`contracts`) and its delays (`plans`) exceeded what it can keep.
    contracts: Vec<bool>,
    plans: Vec<bool>,
    /// The number of workers of each plant; 0 before it was found.
    workers: Vec<Steady<u32>>,
    /// The state of each class's delay.
    delays: Vec<Steady<bool>>,
    /// The state of each site's ratios.
    ratios: Vec<Steady<bool>>,
    /// The missed deadlines of each class.
    deadlines: Vec<deadlines::Misses>,
    /// The types of each site.
    types: Vec<types::TypeCosts>,
}

impl EventLog {
    pub(crate) fn new(incidents: Arc<Mutex<Incidents>>) -> Self {
        EventLog { incidents, ..EventLog::default() }
    }

    /// The log of loops that go on with older counts and an older clock: what `status` has is no news.
    pub(crate) fn going_on(incidents: Arc<Mutex<Incidents>>, status: &Status) -> Self {
        let loads = status.classes.iter().map(|class| load::ClassLoad::going_on(class, status)).collect();
        EventLog { began: status.at, last: status.at, loads, ..EventLog::new(incidents) }
    }

    fn list_incidents(&mut self, status: &Status) {
        let mut incidents = lock(&self.incidents);
        self.loads.iter_mut().filter_map(|load| load.ended.take()).for_each(|facts| incidents.end(facts));
        let loads = self.loads.iter().zip(&status.classes);
        incidents.present = loads.filter_map(|(load, class)| load.present(class, status)).collect();
    }

    /// The lines for what is new in `status`; none if no control period has ended since the last look.
    pub(crate) fn look(&mut self, status: &Status) -> Vec<News> {
        if status.at <= self.last || status.mode == Mode::Off {
            return Vec::new();
        }
        self.last = status.at;
        // Sites have no permanent numbers, so a reload that changes their number drops the states of all sites.
        if self.ratios.len() != status.sites.len() {
            self.ratios.clear();
            self.types.clear();
        }
        let mut lines = Vec::new();
        let began = self.began;
        each(&mut lines, &mut self.loads, &status.classes, |said, class| said.look(class, status, began));
        self.list_incidents(status);
        each(&mut lines, &mut self.contracts, &status.plan, promises::contracts);
        each(&mut lines, &mut self.workers, &status.plants, promises::workers);
        each(&mut lines, &mut self.plans, &status.plan, promises::planned_delays);
        each(&mut lines, &mut self.delays, &status.classes, |said, class| {
            promises::delay(said, class, status)
        });
        each(&mut lines, &mut self.ratios, &status.sites, |said, site| {
            promises::ratio(said, &site.name, status)
        });
        each(&mut lines, &mut self.deadlines, &status.classes, deadlines::Misses::look);
        each(&mut lines, &mut self.types, &status.sites, |said, site| {
            said.look(site, promised(status, site))
        });
        lines
    }
}

/// The lines when the gateway stops.
impl EventLog {
    /// The lines about incidents in progress, up to now. To be called after the last [`look`](EventLog::look).
    pub(crate) fn end(&self, status: &Status) -> Vec<News> {
        let loads = self.loads.iter().zip(&status.classes);
        loads.filter_map(|(load, class)| load.end(class, status)).collect()
    }
}

/// Compares each item with its last logged state.
fn each<S: Default, T>(
    lines: &mut Vec<News>,
    said: &mut Vec<S>,
    items: &[T],
    look: impl Fn(&mut S, &T) -> Option<News>,
) {
    said.resize_with(items.len(), S::default);
    lines.extend(said.iter_mut().zip(items).filter_map(|(said, item)| look(said, item)));
}

/// Periods that a state must last before it is logged, so that a wavering state does not fill the log.
const STEADY: u32 = 5;

/// The last logged state, and for how many looks another state has lasted.
#[derive(Clone, Copy, Debug, Default)]
struct Steady<T> {
    said: T,
    seen: T,
    looks: u32,
}

impl<T: Copy + PartialEq> Steady<T> {
    /// Whether `now` is to be logged: it differs from the logged state and has lasted for `steady` looks.
    fn is_news(&mut self, now: T, steady: u32) -> bool {
        self.looks = if now == self.seen { self.looks.saturating_add(1) } else { 1 };
        self.seen = now;
        let news = now != self.said && self.looks >= steady;
        if news {
            self.said = now;
        }
        news
    }
}
