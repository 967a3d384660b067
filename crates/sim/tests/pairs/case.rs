//! What is harder around a pair than two told workers, exponential services and single requests: for each case, how it changes
//! a scene, and which promises are judged in it.
//!
//! The scenes of a case are as a configuration file has them: a class with a delay or a deadline has the first priority, and
//! the load line is the usual one of these promises.

use crate::promise::Promise;
use crate::waits::{Flow, Scene};
use plimsoll_core::promises::Plant;
use plimsoll_sim::workload::{Law, Process};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// The server of the table of all pairs.
    Usual,
    /// Nothing is told of the server but its address.
    FoundWorkers,
    /// Requests of the site without promises take ten times as long as others, before eight workers.
    DearOthers,
    /// Lognormal service times with a squared coefficient of variation of 4.
    HeavyTails,
    /// The load comes from a class of the last priority that was promised a deadline, or a mean delay.
    LowerDeadline,
    LowerDelay,
    /// Requests without promises come eight at once.
    Parties,
}

/// A dear request takes so many times what others do.
const DEARER: u32 = 10;
/// Eight workers: one of two that serves a dear request is half of the server.
const MORE_WORKERS: u32 = 4;
/// Priorities where the lowest class has a time too, which would have the first one else.
const MIDDLE_PRIORITY: u8 = 50;
const LOWER_PRIORITY: u8 = 90;
const LOWER_DEADLINE: Duration = Duration::from_millis(400);
const LOWER_DELAY: Duration = Duration::from_millis(300);
/// Requests of a party, and how long it takes to come.
const PARTY: f64 = 8.0;
const AT_ONCE: Duration = Duration::from_micros(20);

impl Case {
    pub(crate) const HARDER: [Case; 6] = [
        Case::FoundWorkers,
        Case::DearOthers,
        Case::HeavyTails,
        Case::LowerDeadline,
        Case::LowerDelay,
        Case::Parties,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Case::Usual => "usual",
            Case::FoundWorkers => "found workers",
            Case::DearOthers => "dear others",
            Case::HeavyTails => "heavy tails",
            Case::LowerDeadline => "lower deadline",
            Case::LowerDelay => "lower delay",
            Case::Parties => "parties",
        }
    }

    /// The workers may take a minute to be found, most of which an overload from a cold start takes.
    pub(crate) fn seconds(self) -> f64 {
        if self == Case::FoundWorkers { 100.0 } else { 60.0 }
    }

    /// From when on promises are judged (s).
    pub(crate) fn from(self) -> f64 {
        if self == Case::FoundWorkers { 60.0 } else { 20.0 }
    }

    /// Changes the scene of a pair. The last flow is the site without promises.
    pub(crate) fn shape(self, scene: &mut Scene) {
        if self == Case::Usual {
            return;
        }
        let (others, own) = scene.flows.split_last_mut().expect("a pair has flows");
        for class in own.iter_mut().map(|flow| &mut flow.class) {
            if class.delay.is_some() || class.deadline.is_some() {
                class.priority = 1;
            } else if matches!(self, Case::LowerDeadline | Case::LowerDelay) {
                class.priority = class.priority.min(MIDDLE_PRIORITY);
            }
        }
        match self {
            Case::Usual => {}
            Case::FoundWorkers => *scene = scene.clone().finding_workers(true),
            Case::DearOthers => {
                others.service = Some(DEARER * Promise::SERVICE);
                others.rate[0].rate /= f64::from(DEARER);
                grow(scene);
            }
            Case::HeavyTails => scene.law = Law::Lognormal { variation: 2.0 },
            Case::LowerDeadline => {
                *others = lower(others);
                others.class.deadline = Some(LOWER_DEADLINE);
            }
            Case::LowerDelay => *others = lower(others).delay(LOWER_DELAY, None),
            Case::Parties => {
                let calm = Duration::from_secs_f64(PARTY / others.rate[0].rate);
                others.process = Process::Modulated { ratio: 1e9, burst: AT_ONCE, calm };
            }
        }
        scene.plant.set_point = Plant::usual_load_line(0, &scene.promises().sites);
    }

    /// Whether a promise is judged in this case beside another one. What is not is named on the page.
    pub(crate) fn judges(self, promise: Promise, beside: Promise) -> bool {
        let is_delay = |one| matches!(one, Promise::Mean | Promise::Percentile);
        match self {
            Case::Usual | Case::FoundWorkers | Case::DearOthers | Case::Parties => true,
            Case::HeavyTails => !is_delay(promise) && promise != Promise::Levels,
            Case::LowerDeadline => {
                promise != Promise::Ratio && (promise, beside) != (Promise::Levels, Promise::Levels)
            }
            Case::LowerDelay => promise != Promise::Ratio,
        }
    }

    /// Whether the promise is about the requests that are admitted. Where service times have a heavy tail, some are refused
    /// that wait for a long one.
    pub(crate) fn is_of_admitted(self, promise: Promise) -> bool {
        self == Case::HeavyTails && promise == Promise::Deadline
    }
}

/// The same flow as a class of the last priority.
fn lower(others: &Flow) -> Flow {
    let flow = Flow::new("lower", others.rate[0].rate).at_site(others.site).priority(LOWER_PRIORITY);
    Flow { process: others.process, ..flow }
}

/// A server that is four times as large, and as much more for it to do.
fn grow(scene: &mut Scene) {
    let times = f64::from(MORE_WORKERS);
    scene.workers *= MORE_WORKERS;
    scene.plant.workers *= MORE_WORKERS;
    scene.plant.max_connections *= MORE_WORKERS;
    scene.flows.iter_mut().for_each(|flow| flow.rate[0].rate *= times);
    for site in std::iter::once(&mut scene.site).chain(&mut scene.more_sites) {
        if let Some(guarantee) = &mut site.guarantee {
            guarantee.rate *= times;
            guarantee.bandwidth_bytes_per_second =
                guarantee.bandwidth_bytes_per_second.map(|own| own * times);
        }
    }
}
