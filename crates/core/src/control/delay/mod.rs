//! The loop of promised delays (QM): the classes of a plant get quotas of its workers, by rank.
//!
//! *Observes*: response and service times of each class over a window of departures, and arrival rates. *Law*: `law.rs`,
//! around the prediction of `class.rs`. *Gives out*: the quota of each class and how long its requests may wait; by how
//! much the set point of a plant is to be reduced (`reduction.rs`), where a delay cannot be kept otherwise.
//!
//! The law learns while other classes compete (`contention.rs`). A promise is also missed where the latest departures are late
//! (`recent_departures.rs`), or the last hundred of a class that has few (`rare.rs`). `long_queue.rs` has the promises that no
//! quota holds, and `lower_service.rs` for how long lower classes hold a worker.
//!
//! Each class is given as many workers as its law asks for, the highest rank first, while there are any; classes of one rank
//! divide what is short. A class without traffic keeps no workers from the others. If that does not keep a promise, the reduced
//! set point makes the utilization loop degrade and then reject the lowest classes.

mod class;
mod contention;
pub(crate) mod law;
mod long_queue;
mod lower_service;
mod rare;
mod recent_departures;
mod reduction;

use crate::control::departures::{DepartureInput, first_due, next_due};
use crate::control::{Due, Loop};
use crate::promises::{Delay, DelayParts};
use crate::scheduling::rank::Rank;
use crate::telemetry::status::ResponseStatus;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use class::{DelayClass, Given};

/// The least quota, in workers: a class without traffic is served when its requests come.
const LEAST: f64 = 0.05;

/// A class with a promised delay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DelayPromise {
    pub(crate) class: usize,
    pub(crate) plant: usize,
    /// The rank of the class's requests in the queue.
    pub(crate) rank: Rank,
    /// D_ref.
    pub(crate) delay: Delay,
    /// The classes of its plant that rank below it.
    pub(crate) below: Vec<usize>,
    /// The other classes that do not yield to it: all that do not rank below it, except classes without a delay of another site
    /// with a contract, whose requests beyond that contract yield.
    pub(crate) kept: Vec<usize>,
}

/// The quota of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClassQuota {
    pub(crate) class: usize,
    pub(crate) plant: usize,
    pub(crate) workers: f64,
    /// `None` until a first window is known.
    pub(crate) waits: Option<WaitBounds>,
}

/// How long requests of a class wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WaitBounds {
    /// The longest gap between two arrivals of one busy time.
    pub(crate) longest_gap: Duration,
    /// A request that has waited this long is served as one within its quota, whatever the quota (`scheduling/queue.rs`, 2.).
    pub(crate) urgent: Option<Duration>,
    /// A request that has waited this long is rejected instead of started.
    pub(crate) bound: Option<Duration>,
    /// A service time counts for no more than this in S; `None` until one is known.
    pub(crate) longest_service: Option<Duration>,
}

/// The loop, for all plants.
#[derive(Default)]
pub(crate) struct DelayLoop {
    /// By plant, the highest rank first.
    classes: Vec<DelayClass>,
    quotas: Vec<ClassQuota>,
    due: Due,
}

/// The workers of one plant on the way down the ranks.
#[derive(Default)]
struct Spare {
    plant: Option<usize>,
    /// Workers that no higher class asks for.
    workers: f64,
}

/// What the classes of one rank ask for, and what there is for them.
#[derive(Clone, Copy, Debug, Default)]
struct RankClaims {
    spare: f64,
    /// The sum of what they ask for.
    asked: f64,
    /// The sum of the least that each needs for its work.
    least: f64,
}

impl RankClaims {
    /// The workers of a class that asks for `asked` and needs `least`. If all ask for more than there is, each is given its
    /// least, and the rest in proportion to what it asks beyond, so that the order of declaration decides nothing.
    fn quota(&self, asked: f64, least: f64) -> f64 {
        if self.asked <= self.spare {
            asked
        } else if self.least >= self.spare {
            least * self.spare / self.least
        } else {
            least + (asked - least) * (self.spare - self.least) / (self.asked - self.least)
        }
    }
}

impl Loop for DelayLoop {
    type Inputs<'a> = DepartureInput<'a>;
    type Outputs<'a> = &'a [ClassQuota];
    type Promises<'a> = (Vec<DelayPromise>, DelayParts);

    fn due(&self) -> Due {
        self.due
    }

    fn step(&mut self, now: Instant, input: DepartureInput<'_>) -> &[ClassQuota] {
        if self.due == Due::Never {
            return &[];
        }
        self.quotas.clear();
        let mut spare = Spare::default();
        for equals in self.classes.chunk_by_mut(|one, next| one.plant_and_rank() == next.plant_and_rank()) {
            let plant = equals[0].promise.plant;
            let workers = f64::from((input.workers)(plant));
            if spare.plant != Some(plant) {
                spare = Spare { plant: Some(plant), workers };
            }
            let seen: Vec<_> = equals.iter_mut().map(|one| one.update(now, &input, workers)).collect();
            let sum = |of: fn(&DelayClass) -> f64| equals.iter().map(of).sum::<f64>();
            let claims = RankClaims {
                spare: spare.workers.max(LEAST),
                asked: sum(DelayClass::claimed),
                least: sum(DelayClass::least_claimed),
            };
            spare.workers = (spare.workers - claims.asked).max(0.0);
            for (one, seen) in equals.iter_mut().zip(&seen) {
                let quota = one.quota(&claims);
                let given = Given { quota, workers, set_point: (input.set_point)(plant) };
                one.judge(now, seen.as_ref(), &given);
                let (class, waits) = (one.promise.class, one.waits());
                self.quotas.push(ClassQuota { class, plant, workers: quota, waits });
            }
        }
        let rates = self.classes.iter().map(|one| input.monitors.rate(one.promise.class));
        self.due = next_due(now, rates);
        &self.quotas
    }

    /// A class that was there at the same plant goes on.
    fn reload(&mut self, (promises, parts): Self::Promises<'_>) {
        let mut before = core::mem::take(&mut self.classes);
        for promise in promises {
            let known = before.iter().position(|known| known.is_of(&promise, parts));
            self.classes.push(match known {
                Some(index) => before.swap_remove(index).with(promise),
                None => DelayClass::new(promise, parts),
            });
        }
        self.classes.sort_by_key(|one| (one.promise.plant, one.promise.rank, one.promise.class));
        self.due = first_due(!self.classes.is_empty());
    }
}

impl DelayLoop {
    /// By what part the set point of a plant is to be reduced, 0..1: as the class asks that is the furthest from its delay.
    pub(crate) fn set_point_reduction(&self, plant: usize) -> f64 {
        self.of(plant).map(DelayClass::set_point_reduction).fold(0.0, f64::max)
    }

    /// Whether the queue of a plant itself rejects requests that would be late.
    pub(crate) fn sheds(&self, plant: usize) -> bool {
        self.of(plant).any(DelayClass::sheds)
    }

    /// The shortest delay that is promised to a class of a plant.
    pub(crate) fn shortest(&self, plant: usize) -> Option<Duration> {
        self.of(plant).map(|one| one.promise.delay.target).min()
    }

    /// By class.
    pub(crate) fn status(&self) -> impl Iterator<Item = (usize, ResponseStatus)> + '_ {
        self.classes.iter().map(|one| (one.promise.class, one.status))
    }

    fn of(&self, plant: usize) -> impl Iterator<Item = &DelayClass> {
        self.classes.iter().filter(move |one| one.promise.plant == plant)
    }
}
