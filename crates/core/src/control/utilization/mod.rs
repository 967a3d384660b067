//! The utilization loop of one plant: holds U at the set point by moving m.
//!
//! One loop governs all classes whose site the plant serves. Where one site has it to itself, with one m that each class
//! clamps to its own levels; else the law says how much there is, and `sharing.rs` who gets it.
//! What drives it is the offered load, R times the cost at the level given, unclipped, plus the backlog: a measured U
//! saturates at 1 and comes late. The measurement trains the costs and supervises through the trim.
//!
//! ```text
//! sense.rs: what was measured ---> costs.rs: what requests cost ---> offered.rs: the load at any m ---> the law: m
//! ```

pub(crate) mod class_view;
mod costs;
pub(crate) mod demand;
pub(crate) mod feed_forward;
mod offered;
pub(crate) mod paper;
mod sense;
pub mod tuning;

use super::allocation::sharing::Sharing;
use super::{Decision, FeedForward, Law, Observation, PaperPi};
use crate::model::LinearModel;
use crate::promises::plan::Known;
use crate::promises::registry::Registry;
use crate::promises::{self, Guarantee, Mode, Promises, Sense};
use crate::telemetry::monitor::{ClassMonitor, PlantTotals};
use crate::telemetry::status::{PlantStatus, SiteStatus};
use crate::time::Duration;
use alloc::{boxed::Box, vec::Vec};
use class_view::{Governed, governed};
use core::ops::Range;

/// Backlog, in periods of work, that waits in time where the queue turns away what would not.
const WAITS_IN_TIME: f64 = 0.25;

/// The loop's state.
pub(crate) struct UtilizationLoop {
    plant: promises::Plant,
    classes: Vec<Governed>,
    law: Box<dyn Law>,
    mode: Mode,
    before: PlantTotals,
    /// Of reported utilization: U T = a n + b bytes over all classes.
    reported_line: Option<LinearModel>,
    /// For how long the plant was busy and released nothing (s).
    silent_seconds: f64,
    /// Among whom the plant is shared.
    sharing: Option<Sharing>,
    /// c as in the last period.
    rejection_cost: f64,
    /// The load line, lowered by what its delays press.
    line: f64,
    pub(crate) status: PlantStatus,
    /// The costs were forgotten in this period.
    forgotten: bool,
    /// Of the sites that the plant serves: their numbers, contracts, and costs as told.
    sites: Vec<OwnSite>,
}

/// A site that the plant serves.
pub(crate) struct OwnSite {
    number: usize,
    guarantee: Option<Guarantee>,
    told: Option<Known>,
    /// Its classes, among those that the loop governs.
    classes: Range<usize>,
    status: SiteStatus,
}

/// What `tick` knows when it runs a loop.
pub(crate) struct Period<'a> {
    /// How long it was.
    pub(crate) seconds: f64,
    /// T, as promised.
    pub(crate) nominal_seconds: f64,
    pub(crate) monitors: &'a [ClassMonitor],
    pub(crate) totals: PlantTotals,
    pub(crate) waiting: &'a [u32],
    pub(crate) reported: Option<f64>,
    pub(crate) rejection_cost: f64,
    pub(crate) stepped: &'a [bool],
    pub(crate) max_wait: Duration,
    pub(crate) in_service: u32,
    /// s, as promised or found.
    pub(crate) workers: u32,
    /// It was promised, or found.
    pub(crate) capacity_known: bool,
    /// By how much the load line is lowered for the delays that the plant misses.
    pub(crate) pressure: f64,
    /// The queue itself turns away what would be late.
    pub(crate) sheds: bool,
}

impl UtilizationLoop {
    pub(crate) fn new(registry: &Registry, plant: usize) -> Self {
        let promises = &registry.promises;
        let classes = governed(registry, plant);
        let top = top(&classes);
        let law = law(promises, top);
        let own = &promises.plants[plant];
        let status = PlantStatus {
            name: own.name.clone(),
            workers: own.workers,
            set_point: own.set_point,
            service_level: top,
            ..PlantStatus::default()
        };
        let reported_line = (own.sense == Sense::Reported).then(|| known_line(own));
        let mode = promises.control.mode;
        UtilizationLoop {
            plant: own.clone(),
            sharing: law.aims().then(|| Sharing::new(promises, &classes)).flatten(),
            rejection_cost: 0.0,
            line: own.set_point,
            sites: own_sites(promises, plant, &classes),
            classes,
            law,
            mode,
            before: PlantTotals::default(),
            reported_line,
            silent_seconds: 0.0,
            forgotten: false,
            status,
        }
    }

    /// Goes on with what was promised anew. `m` maps a level of a class, by number, as it was to what it is now.
    pub(crate) fn reload(
        &mut self,
        was: &Promises,
        registry: &Registry,
        number: usize,
        m: impl Fn(usize, f64) -> f64,
    ) {
        let promises = &registry.promises;
        let (old, new) = (&was.plants[number], &promises.plants[number]);
        let mut classes = governed(registry, number);
        for class in &mut classes {
            let before = self.classes.iter_mut().find(|before| before.class == class.class);
            if let Some(before) = before.filter(|before| before.top == class.top && before.here == class.here)
            {
                class.share = core::mem::take(&mut before.share);
            }
        }
        let (old_top, new_top) = (top(&self.classes), top(&classes));
        let present = self.status.service_level;
        // Of the classes that it governed, one with the most levels has its m unclamped.
        let stays = |before: &&Governed| {
            before.ours
                && before.top as f64 == old_top
                && classes.iter().any(|c| c.ours && c.class == before.class)
        };
        let moved = match self.classes.iter().find(stays) {
            _ if present >= old_top => new_top,
            Some(class) => m(class.class, present).min(new_top),
            None => present.min(new_top),
        };
        if was.control.law != promises.control.law {
            self.law = law(promises, new_top);
        }
        if moved != present || was.control.law != promises.control.law {
            self.law.track(moved);
        }
        let mut sharing = self.law.aims().then(|| Sharing::new(promises, &classes)).flatten();
        for (place, class) in classes.iter().enumerate().filter(|(_, class)| class.ours) {
            let before = self.classes.iter().position(|before| before.class == class.class && before.ours);
            if let (Some(sharing), Some(before)) = (&mut sharing, before) {
                let known = self.sharing.as_ref().map_or(present, |known| known.level(before));
                sharing.set_level(place, m(class.class, known.min(self.classes[before].top as f64)));
            }
        }
        let reported = new.sense == Sense::Reported;
        if !reported || self.reported_line.is_none() || (old.costs != new.costs && new.costs.is_some()) {
            self.reported_line = reported.then(|| known_line(new));
        }
        (self.sharing, self.sites) = (sharing, own_sites(promises, number, &classes));
        self.status.service_level = moved;
        self.status.name.clone_from(&new.name);
        (self.status.workers, self.status.set_point) = (new.workers, new.set_point);
        (self.plant, self.classes, self.mode) = (new.clone(), classes, promises.control.mode);
    }

    /// Runs one period; returns m for each class that this loop moves.
    pub(crate) fn run(&mut self, period: &Period<'_>) -> impl Iterator<Item = (usize, f64)> {
        let window = period.totals.since(&self.before);
        self.before = period.totals;
        self.plant.workers = period.workers;
        self.line = self.plant.set_point * (1.0 - period.pressure);
        self.rejection_cost = if self.plant.same_host { period.rejection_cost } else { 0.0 };
        self.sense(period, &window);
        self.price(period.monitors);
        let mut sharing = self.sharing.take();
        let demand = match &mut sharing {
            Some(sharing) => self.parts(period, sharing),
            None => self.demand(period),
        };
        let served = self.served(period);

        // Without control the measurement says nothing of m, and the trim must not follow it.
        let controls = self.mode == Mode::Control;
        let overridden = self.status.response_time_override && controls;
        let steady = !self.classes.iter().any(|c| period.stepped[c.class]) && controls;
        let decision = self.law.next(&Observation {
            set_point: self.line,
            measured: if overridden { 1.0 } else { self.status.utilization },
            served,
            overridden,
            steady,
            demand: &demand,
            ordinary_backlog: if self.line >= 1.0 && period.sheds { WAITS_IN_TIME } else { 0.0 },
            wait_periods: period.max_wait.as_secs_f64() / period.nominal_seconds,
            service_periods: self.status.service_time.as_secs_f64() / period.nominal_seconds,
            unconfirmed: self.classes.iter().any(|c| period.monitors[c.class].rate.rose()),
        });
        // What a part of a period taught of the costs is chance.
        let known = period.capacity_known && !core::mem::take(&mut self.forgotten);
        let decision = if known { decision } else { self.hold_top() };
        let backlog = demand.backlog(self.status.service_level);
        self.status.utilization_offered = served + backlog;
        self.status.service_level = decision.m;
        self.status.trim = decision.trim;
        if let (Some(sharing), Some(aim)) = (&mut sharing, self.law.aim()) {
            sharing.share_out(&aim);
        }
        self.sharing = sharing;
        let sharing = self.sharing.as_ref();
        let ours = self.classes.iter_mut().enumerate().filter(|(_, class)| class.ours && !class.exempt);
        ours.map(move |(number, class)| {
            let top = class.top as f64;
            let m = sharing.filter(|_| known).map_or(decision.m, |sharing| sharing.level(number));
            let monitor = &period.monitors[class.class];
            class.share.learn(if monitor.active { &monitor.window.decided[..=class.top] } else { &[] });
            (class.class, class.share.knob(m.min(top), top))
        })
    }

    /// Nobody is degraded.
    pub(crate) fn is_at_top(&self) -> bool {
        let all_at_top = self.sharing.as_ref().is_none_or(Sharing::is_at_top);
        all_at_top && self.status.service_level >= top(&self.classes)
    }

    /// Nothing comes, and nothing is there: all senses say so from now on.
    pub(crate) fn begin_rest(&mut self) {
        self.silent_seconds = 0.0;
        let status = &mut self.status;
        (status.utilization, status.utilization_offered, status.utilization_model) = (0.0, 0.0, 0.0);
        (status.service_time, status.response_time_override) = (Duration::ZERO, false);
        for OwnSite { status, .. } in &mut self.sites {
            (status.utilization, status.guaranteed_share) = (0.0, 0.0);
        }
    }

    /// So many periods of it went by.
    pub(crate) fn end_rest(&mut self, periods: u32) {
        self.law.rest(periods, self.line);
        self.classes.iter_mut().for_each(|class| class.share.rest(periods));
    }

    /// What the plant can carry is not known yet: nobody is degraded for it.
    fn hold_top(&mut self) -> Decision {
        let m = top(&self.classes);
        self.law.track(m);
        Decision { m, trim: 0.0 }
    }

    /// The sites that this plant serves: their numbers and their status.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (usize, &SiteStatus)> {
        self.sites.iter().map(|site| (site.number, &site.status))
    }

    /// m_site of the classes whose site has a contract.
    pub(crate) fn site_levels(&self) -> impl Iterator<Item = (usize, f64)> {
        let ours = self.classes.iter().enumerate().filter(|(_, class)| class.ours && !class.exempt);
        ours.filter_map(|(number, class)| Some((class.class, self.sharing.as_ref()?.site_level(number)?)))
    }
}

/// M of the loop: of the classes that it moves, the most levels.
fn top(classes: &[Governed]) -> f64 {
    classes.iter().filter(|c| c.ours).map(|c| c.top).max().unwrap_or(0) as f64
}

/// The one place where laws are chosen.
fn law(promises: &Promises, m: f64) -> Box<dyn Law> {
    match promises.control.law {
        promises::UtilizationLaw::FeedForward => Box::new(FeedForward::new(m)),
        promises::UtilizationLaw::Paper { gain_margin } => Box::new(PaperPi::new(m, gain_margin)),
    }
}

fn known_line(plant: &promises::Plant) -> LinearModel {
    plant
        .costs
        .map_or_else(LinearModel::default, |c| LinearModel::known(c.per_request_seconds, c.per_byte_seconds))
}

/// The sites that a plant serves, in order.
fn own_sites(promises: &Promises, plant: usize, classes: &[Governed]) -> Vec<OwnSite> {
    let own = promises.sites.iter().enumerate().filter(|(_, site)| site.plant == plant);
    let own = own.map(|(number, site)| OwnSite {
        number,
        guarantee: site.guarantee,
        told: crate::promises::plan::told(promises, site),
        classes: {
            let place = |last: bool| classes.partition_point(|c| c.site < number + usize::from(last));
            place(false)..place(true)
        },
        status: SiteStatus { name: site.name.clone(), plant, ..SiteStatus::default() },
    });
    own.collect()
}
