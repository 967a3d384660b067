//! A run, and what became of each request by the clients' own clocks.

use crate::plant::BOUND;
use crate::under_way::UnderWay;
use plimsoll_core::promises::{Admission, Class, Condition, Plant, Promises, Site};
use plimsoll_core::request::Outcome;
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Comparator, Decision, Front, Gateway, Order};
use plimsoll_sim::workload::Workload;
use plimsoll_sim::{Event, Setup, Watch};
use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Duration;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) class: usize,
    pub(crate) arrived: f64,
    pub(crate) ended: f64,
    /// Its service time alone (s).
    pub(crate) cost: f64,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Turned away at its arrival.
    Refused,
    /// Admitted, and turned away later or lost.
    Dropped,
    Answered,
}

impl Heard {
    pub(crate) fn response(&self) -> f64 {
        self.ended - self.arrived
    }
}

/// Tells each request to somebody as soon as it is known what became of it.
struct Clocks<F> {
    open: UnderWay<Heard>,
    tell: F,
}

impl<F: FnMut(Heard)> Watch for Clocks<F> {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let now = now.as_secs_f64();
        let (token, fate) = match *event {
            Event::Arrived { token, request, class, decision } => {
                let own = request.service.map_or(0.0, |service| service.as_secs_f64());
                let cost = own * request.work.unwrap_or(1.0);
                let class = usize::from(class);
                let heard = Heard { class, arrived: now, ended: now, cost, fate: Fate::Refused };
                if matches!(decision, Decision::Reject(..)) {
                    (self.tell)(heard);
                } else {
                    self.open.insert(token, heard);
                }
                return;
            }
            Event::Ordered(Order::Start(..)) => return,
            Event::Ordered(Order::Drop(token, _)) => (token, Fate::Dropped),
            Event::Ended { token, outcome } => {
                (token, if outcome == Outcome::Completed { Fate::Answered } else { Fate::Dropped })
            }
        };
        if let Some(heard) = self.open.remove(token) {
            (self.tell)(Heard { ended: now, fate, ..heard });
        }
    }
}

/// One server, everything within a second; `/high/*` of priority 1 and everything else of 2.
pub(crate) fn promises() -> Promises {
    let mut plant = Plant::new("origin", 1);
    plant.set_point = 1.0;
    let mut site = Site::new("site", &["full"]);
    let paths = vec!["/high/*".to_owned()];
    let mut high = Class::new("high", Condition { paths, ..Condition::default() });
    high.priority = 1;
    site.classes = vec![high];
    site.default_priority = 2;
    site.deadline = Some(Duration::from_secs_f64(BOUND));
    Promises::of(plant, site)
}

pub(crate) const HIGH: usize = 0;
pub(crate) const LOW: usize = 1;

/// A comparator, or the gateway's engine.
pub(crate) fn front(name: &str, workload: &Workload, seed: u64) -> Box<dyn Front> {
    if name == ENGINE || name == BUDGET {
        let mut promises = promises();
        promises.control.admission = if name == BUDGET { Admission::Budget } else { Admission::Work };
        return Box::new(Gateway::new(&promises, seed).expect("the promises are valid"));
    }
    let comparator = Comparator::parse(name).expect("it is one");
    comparator.front(&promises(), workload, seed).expect("the promises are valid")
}

pub(crate) const ENGINE: &str = "engine";
/// The engine that decides by AC's budget.
pub(crate) const BUDGET: &str = "engine by budget";

/// Everything that came.
pub(crate) fn listen(name: &str, workload: &Workload, seed: u64) -> Vec<Heard> {
    listen_to(&mut *front(name, workload, seed), &promises(), workload, seed)
}

/// Everything that came before this front.
pub(crate) fn listen_to(
    front: &mut dyn Front,
    promises: &Promises,
    workload: &Workload,
    seed: u64,
) -> Vec<Heard> {
    let mut heard = Vec::new();
    tell(front, promises, workload, seed, |one| heard.push(one));
    heard
}

/// The same, of runs that are too long to be kept.
pub(crate) fn tell(
    front: &mut dyn Front,
    promises: &Promises,
    workload: &Workload,
    seed: u64,
    tell: impl FnMut(Heard),
) {
    let mut clocks = Clocks { open: UnderWay::default(), tell };
    let setup = Setup { promises, workload, seed };
    setup.run_with(front, &mut clocks).expect("it runs");
}

/// What became of those that came between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Answered, in requests and in service-seconds, per second.
    pub(crate) answered: f64,
    pub(crate) work: f64,
    /// Mean response time of the answered requests (s).
    pub(crate) mean: f64,
    pub(crate) longest: f64,
    /// The share of admitted requests that were answered too late or dropped.
    pub(crate) missed: f64,
    pub(crate) admitted: f64,
    /// The share of arrivals that were refused.
    pub(crate) refused: f64,
}

impl Figures {
    pub(crate) fn of<'a>(heard: impl IntoIterator<Item = &'a Heard>, (from, until): (f64, f64)) -> Figures {
        let (mut all, mut admitted, mut answered, mut missed) = (0.0, 0.0, 0.0, 0.0);
        let mut of = Figures::default();
        for one in heard.into_iter().filter(|one| (from..until).contains(&one.arrived)) {
            all += 1.0;
            admitted += f64::from(u8::from(one.fate != Fate::Refused));
            missed += f64::from(u8::from(one.fate == Fate::Dropped));
            if one.fate == Fate::Answered {
                answered += 1.0;
                of.work += one.cost;
                of.mean += one.response();
                of.longest = one.response().max(of.longest);
                missed += f64::from(u8::from(one.response() > BOUND));
            }
        }
        let seconds = until - from;
        of.answered = answered / seconds;
        of.work /= seconds;
        of.mean /= answered;
        of.missed = missed / f64::max(admitted, 1.0);
        of.admitted = admitted;
        of.refused = 1.0 - admitted / all;
        of
    }
}

/// The mean of some runs' values, and half of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mean {
    pub(crate) mean: f64,
    pub(crate) half: f64,
}

impl Mean {
    pub(crate) fn of(values: &[f64]) -> Mean {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let t = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
        let t = t.get(values.len() - 2).copied().unwrap_or(2.2);
        Mean { mean, half: t * (variance / count).sqrt() }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.4} (+-{:.4})", self.mean, self.half)
    }
}

/// Both sides, always.
#[track_caller]
pub(crate) fn within(what: &str, value: f64, bounds: RangeInclusive<f64>) {
    assert!(bounds.contains(&value), "commit {}: {what} is {value:.5}, not within {bounds:?}", commit());
}

fn commit() -> String {
    let found = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let found = found.ok().filter(|output| output.status.success());
    found.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
