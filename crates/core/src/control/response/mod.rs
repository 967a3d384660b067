//! The loops of promised response times: delays by quotas of workers (QM), ratios by turns (PR).
//!
//! The loops run on departures, not on time: one update for every [`UPDATE`] departures of a class, over a window of
//! [`WINDOW`]. A plant's workers go to its classes with a delay in the order of their ranks, each as many as its law asks
//! for, while there are any. A promise that cannot be kept so lowers the plant's load line: the lowest classes are degraded,
//! then rejected.

use crate::control::delay::loops::Delays;
use crate::control::ratio::law::{RatioLaw, Reached};
use crate::promises::DelayParts;
use crate::scheduling::quota::Quota;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::departure_window::{Seen, Window};
use crate::telemetry::monitor::Monitors;
use crate::telemetry::status::ResponseStatus;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};

/// N: departures in a window.
pub(crate) const WINDOW: u64 = 1000;
/// n: departures between updates.
pub(crate) const UPDATE: u64 = 10;
/// Departures that the short memory of a ratio holds.
const SHORT: f64 = 500.0;
/// Updates come no closer than this.
const CLOSEST: Duration = Duration::from_millis(5);

/// A class with a promise.
pub(crate) struct Promised {
    pub(crate) class: usize,
    pub(crate) site: usize,
    pub(crate) plant: usize,
    /// The rank of the class's line in the queue.
    pub(crate) rank: crate::scheduling::rank::Rank,
    pub(crate) promise: Promise,
    pub(crate) quota: Arc<Quota>,
    /// The classes of its plant that rank below it.
    pub(crate) below: Vec<usize>,
}

/// The promise of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Promise {
    /// D_ref.
    Delay(crate::promises::Delay),
    /// delta, and whether work is left undone for it.
    Ratio {
        /// delta.
        delta: f64,
        /// As promised of the site.
        strict: bool,
    },
}

/// The loops' inputs at a tick.
pub(crate) struct Now<'a> {
    pub(crate) at: Instant,
    pub(crate) lanes: &'a [Arc<LaneCounters>],
    pub(crate) monitors: &'a Monitors,
    /// By plant.
    pub(crate) workers: &'a dyn Fn(usize) -> u32,
    /// U*, by plant, as promised.
    pub(crate) line: &'a dyn Fn(usize) -> f64,
}

/// All loops of all plants.
#[derive(Default)]
pub(crate) struct ResponseLoops {
    delays: Delays,
    groups: Vec<Group>,
}

/// The classes of one site that have a ratio.
struct Group {
    members: Vec<Member>,
    law: RatioLaw,
}

struct Member {
    promised: Promised,
    delta: f64,
    window: Window,
    seen: Seen,
    /// Departures and the sum of their response times (s), of the group's last [`SHORT`] or so.
    short: (f64, f64),
    status: ResponseStatus,
}

impl ResponseLoops {
    /// Sets the classes with promises; a loop with an unchanged promise goes on.
    pub(crate) fn promise(&mut self, promised: Vec<Promised>, parts: DelayParts) {
        let mut groups: Vec<Group> = Vec::new();
        let mut delays = Vec::new();
        for one in promised {
            let Promise::Ratio { delta, strict } = one.promise else {
                delays.push(one);
                continue;
            };
            let site = one.site;
            let member = Member {
                promised: one,
                delta,
                window: Window::new(WINDOW, 1),
                seen: Seen::default(),
                short: (0.0, 0.0),
                status: ResponseStatus::default(),
            };
            match groups.iter_mut().find(|group| group.members[0].promised.site == site) {
                Some(group) => group.members.push(member),
                None => groups.push(Group { members: alloc::vec![member], law: RatioLaw::new(0, strict) }),
            }
        }
        for group in &mut groups {
            let same = |known: &&mut Group| known.promises() == group.promises();
            match self.groups.iter_mut().find(same) {
                Some(known) => core::mem::swap(known, group),
                None => group.start(),
            }
        }
        self.groups = groups;
        self.delays.promise(delays, parts);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.delays.is_empty()
    }

    /// Runs the loops that are due; returns when to come again.
    pub(crate) fn run(&mut self, now: &Now<'_>) -> Instant {
        if self.is_empty() {
            return Instant::FAR;
        }
        self.delays.run(now);
        self.groups.iter_mut().for_each(|group| group.run(now));
        let classes = self.groups.iter().flat_map(|group| group.members.iter().map(|m| m.promised.class));
        let rates = classes.chain(self.delays.classes()).map(|class| now.monitors.rate(class));
        let fastest = rates.fold(0.0, f64::max).max(1.0);
        now.at + Duration::from_secs_f64(UPDATE as f64 / fastest).max(CLOSEST)
    }

    /// By how much a plant's load line is to be lowered for its delays, 0..1.
    pub(crate) fn pressure(&self, plant: usize) -> f64 {
        self.delays.pressure(plant)
    }

    /// Whether a plant's queue itself rejects requests that would be late.
    pub(crate) fn sheds(&self, plant: usize) -> bool {
        self.delays.sheds(plant)
    }

    /// By class.
    pub(crate) fn status(&self) -> impl Iterator<Item = (usize, ResponseStatus)> + '_ {
        let members = self.groups.iter().flat_map(|group| &group.members);
        members.map(|member| (member.promised.class, member.status)).chain(self.delays.status())
    }
}

impl Group {
    fn promises(&self) -> Vec<(usize, Promise, *const Quota)> {
        let own = |m: &Member| (m.promised.class, m.promised.promise, Arc::as_ptr(&m.promised.quota));
        self.members.iter().map(own).collect()
    }

    /// The weights of heavy traffic, which hold until response times are known.
    fn start(&mut self) {
        let strict = matches!(self.members[0].promised.promise, Promise::Ratio { strict: true, .. });
        self.law = RatioLaw::new(self.members.len(), strict);
        for member in &self.members {
            member.promised.quota.set_weight(1.0 / member.delta, 0.0, 0.0);
        }
    }

    fn run(&mut self, now: &Now<'_>) {
        let mut fresh = 0.0_f64;
        for member in &mut self.members {
            member.seen = match member.window.observe(now.at, now.lanes, member.promised.class) {
                Some(seen) => seen,
                None => Seen { fresh: 0.0, fresh_sum: 0.0, ..member.seen },
            };
            fresh += member.seen.fresh;
        }
        if fresh == 0.0 {
            return;
        }
        let kept = (1.0 - fresh / SHORT).max(0.0);
        for Member { short, seen, .. } in &mut self.members {
            *short = (short.0 * kept + seen.fresh, short.1 * kept + seen.fresh_sum);
        }
        let all: f64 = self.members.iter().map(|member| member.short.0).sum();
        let reached = |member: &Member| Reached {
            delta: member.delta,
            short: member.short.1 / member.short.0.max(1e-9),
            long: member.seen.response,
            share: member.short.0 / all,
            fresh: (member.seen.fresh, member.seen.fresh_sum),
        };
        let reached: Vec<_> = self.members.iter().map(reached).collect();
        let normalized: f64 = reached.iter().map(|one| one.share * one.long / one.delta).sum();
        let turns = self.law.next(&reached, WINDOW as f64);
        for (member, turn) in self.members.iter_mut().zip(turns) {
            let (Seen { response, service, .. }, infeasible) = (member.seen, self.law.is_infeasible());
            member.promised.quota.set_weight(turn.weight, turn.start, service);
            member.promised.quota.set_hold(Duration::from_secs_f64(turn.hold));
            let known = response > 0.0 && normalized > 0.0;
            member.status = ResponseStatus {
                response,
                infeasible,
                ratio: Some(member.delta),
                ratio_reached: known.then(|| response / normalized),
                weight: Some(turn.weight),
                ..member.status
            };
        }
    }
}
