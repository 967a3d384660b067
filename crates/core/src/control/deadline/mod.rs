//! The loop behind deadlines: learns the costs and chances that admission reads.
//!
//! *Observes*: the service times of released requests, by type and level, and the work started at each plant. *Law*: the cost
//! of each type (`types.rs`, `learned_type.rs`, `service_allowance.rs`, kept by `known_types.rs`), the types themselves if none
//! is configured (`found_types.rs`, `crowded_prefixes.rs`, `found_conditions.rs`), the part of a plant that higher ranks take
//! (`higher_ranks.rs`), the chance of being late that is accepted (`accepted_lateness.rs`), and the headroom that is kept for
//! the costliest requests (`kept_headroom.rs`). *Gives out*: all of these, in words that admission shares: [`Estimates`] and
//! [`UnfinishedWork`]. A request with a deadline is decided on when it arrives, by the work that is unfinished then. So AC's
//! budget of a period, and its second queue for the work that a period leaves over, have no counterpart here.
//!
//! `budgets.rs` is another loop: it ends the periods of AC's own admission by budget, which an expert may choose instead.

mod accepted_lateness;
pub(crate) mod budgets;
mod crowded_prefixes;
mod found_conditions;
mod found_types;
mod higher_ranks;
mod kept_headroom;
mod known_types;
mod learned_type;
mod service_allowance;
mod types;

use crate::admission::estimates::Estimates;
use crate::admission::unfinished_work::UnfinishedWork;
use crate::control::{Due, Loop};
use crate::model::normal_quantile;
use crate::promises::registry::Registry;
use crate::promises::{DEFAULT_TYPES, Plant, Prefer, Promises, Site};
use crate::request::shape_table::ShapeTable;
use crate::request::type_rules::types_of;
use crate::request::work::DeadlineTerms;
use crate::telemetry::status::{FoundType, TypeStatus};
use crate::time::{Duration, Instant};
use alloc::{string::String, sync::Arc, vec::Vec};
use core::cmp::Ordering;
use found_types::{FoundTypes, room};
use higher_ranks::PlantRates;
pub use known_types::{KnownRule, KnownTypeCost, KnownTypes};
use types::{DeadlinePromise, PromisedTypes, SiteTypes};

/// The loop, for all sites and plants with deadlines.
#[derive(Default)]
pub(crate) struct DeadlineLoop {
    /// The types of each site that has a plant with deadlines.
    types: Vec<SiteTypes>,
    /// By plant.
    rates: Vec<PlantRates>,
}

/// The plant of a step: its number, its unfinished work, its workers.
pub(crate) type KeepingPlant<'a> = (usize, &'a UnfinishedWork, u32);

impl Loop for DeadlineLoop {
    /// The time since the last step (s), and the plants with deadlines to keep.
    type Inputs<'a> = (f64, &'a mut dyn Iterator<Item = KeepingPlant<'a>>);
    type Outputs<'a> = ();
    type Promises<'a> = &'a Registry;

    fn due(&self) -> Due {
        if self.types.is_empty() { Due::Never } else { Due::Sample }
    }

    fn step(&mut self, now: Instant, (seconds, plants): Self::Inputs<'_>) {
        self.types.iter_mut().for_each(|types| types.learn(seconds));
        kept_headroom::keep_headroom(&self.types);
        for (number, unfinished, workers) in plants {
            self.rates[number].follow(unfinished, (now, seconds), workers);
        }
    }

    /// The costs of types that stay are kept.
    fn reload(&mut self, registry: &Registry) {
        let promises = &registry.promises;
        let keeping = promises.keeping_deadlines();
        for (site, numbers) in promises.sites.iter().zip(&registry.sites) {
            let before = self.types.iter().position(|types| types.promised.site == numbers.site);
            let before = before.map(|index| self.types.swap_remove(index));
            if site.plants().any(|plant| keeping[plant]) {
                let promised = PromisedTypes {
                    site: numbers.site,
                    types: types_with_room(site),
                    finds: site.types.is_empty(),
                    levels: site.levels.iter().map(|level| level.name.clone()).collect(),
                    unit_us: unit_us(site, &promises.plants[site.plant]),
                    promises: promises_of(site),
                    longest_us: longest_deadline_us(promises, site),
                    plants: site.plants().collect(),
                    has_contract: site.guarantee.is_some(),
                };
                self.types.push(SiteTypes::new(promised, before));
            }
        }
        let promised =
            |types: &SiteTypes| registry.sites.iter().any(|numbers| numbers.site == types.promised.site);
        self.types.retain(promised);
        self.rates.resize_with(promises.plants.len(), PlantRates::default);
    }
}

impl DeadlineLoop {
    /// The lengths of the tables that follow promises.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lengths(&self) -> Vec<(&'static str, usize)> {
        let rates = self.rates.iter().flat_map(PlantRates::lengths);
        rates.chain([("types", self.types.len())]).collect()
    }

    fn of(&self, site: u16) -> Option<&SiteTypes> {
        self.types.iter().find(|types| types.promised.site == site)
    }

    /// Doubts the costs that were learned at a plant whose number of workers turned out to be another: a request that waits in
    /// the server for a worker seems to take long.
    pub(crate) fn lower_confidence(&mut self, plant: usize) {
        self.types
            .iter_mut()
            .filter(|types| types.promised.plants.contains(&plant))
            .for_each(SiteTypes::lower_confidence);
    }

    /// The expected costs of a site's requests.
    pub(crate) fn estimates(&self, site: u16) -> Option<Arc<Estimates>> {
        self.of(site).map(|types| types.estimates.clone())
    }

    /// The table of shapes by which types are found, at a site for which none is configured.
    pub(crate) fn shapes(&self, site: u16) -> Option<Arc<ShapeTable>> {
        Some(self.of(site)?.found.as_ref()?.table.clone())
    }

    /// The types that were found at a site.
    pub(crate) fn found_types(&self, site: u16) -> Vec<FoundType> {
        self.of(site).and_then(|types| types.found.as_ref()).map_or_else(Vec::new, FoundTypes::as_configured)
    }

    /// The state of a site's types that is to be kept, if the site has types.
    pub(crate) fn known(&self, site: u16) -> Option<KnownTypes> {
        self.of(site).map(SiteTypes::known)
    }

    /// Goes on from a kept state of a site's types; returns false if that state is impossible.
    pub(crate) fn restore(&mut self, site: u16, known: &KnownTypes) -> bool {
        let own = self.types.iter_mut().find(|types| types.promised.site == site);
        own.is_none_or(|types| types.restore(known))
    }

    /// The status of a site's types.
    pub(crate) fn status(&self, site: u16) -> Vec<TypeStatus> {
        self.of(site).map_or_else(Vec::new, SiteTypes::status)
    }
}

/// The terms that admission is to keep for a class.
pub(crate) fn terms(site: &Site, class_index: usize, exempt: bool) -> DeadlineTerms {
    let class = site.classes.get(class_index);
    let deadline = site.deadline_of(class_index).filter(|_| !exempt);
    let prefer = class.and_then(|class| class.prefer).unwrap_or(site.prefer);
    let priority = site.priority_of(class_index);
    let in_time = site.in_time_of(class_index) / 100.0;
    let own = deadline.map(|deadline| DeadlinePromise { deadline, in_time, priority });
    let promise_index = promises_of(site).iter().position(|known| Some(*known) == own).unwrap_or(0) as u8;
    let deviations = normal_quantile(in_time);
    DeadlineTerms { deadline, in_time, deviations, promise_index, prefers_delay: prefer == Prefer::Delay }
}

/// Names and quanta of a site's types, and if none is configured, room for found types. The cost of a found type is known when
/// it is found, so its quantum is not used.
fn types_with_room(site: &Site) -> Vec<(String, f64)> {
    let room = room().filter(|_| site.types.is_empty()).map(|name| (name, 1.0));
    types_of(site).map(|(name, quantum)| (name.into(), quantum)).chain(room).collect()
}

/// AC's server answers a thousand static requests a second (Table 1).
const STATIC_US: f64 = 1000.0;

/// The time of a quantum of 1, until it is learned (us). A promised cost of the site's requests is taken as that of dynamic
/// requests.
fn unit_us(site: &Site, plant: &Plant) -> f64 {
    let [_, (_, dynamic), ..] = DEFAULT_TYPES;
    let promised = site.costs.or(plant.costs).filter(|costs| costs.per_request_seconds > 0.0);
    promised.map_or(STATIC_US, |costs| costs.per_request_seconds * f64::from(plant.workers) * 1e6 / dynamic)
}

/// The different promises of a site's classes, and one for a site without any.
fn promises_of(site: &Site) -> Vec<DeadlinePromise> {
    let promise = |index: usize, deadline: Duration, priority: u8| DeadlinePromise {
        deadline,
        in_time: site.in_time_of(index) / 100.0,
        priority,
    };
    let mut all: Vec<_> =
        site.deadlines().map(|(index, deadline)| promise(index, deadline, site.priority_of(index))).collect();
    if all.is_empty() {
        all.push(promise(site.classes.len(), Duration::MAX, site.default_priority));
    }
    all.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    all.dedup();
    all
}

/// The longest deadline of the sites that share a plant with a site (us).
fn longest_deadline_us(promises: &Promises, site: &Site) -> u64 {
    let beside = |other: &&Site| other.plants().any(|plant| site.plants().any(|own| own == plant));
    let longest = promises.sites.iter().filter(beside).flat_map(Site::deadlines).map(|(_, own)| own).max();
    longest.map_or(u64::MAX, |deadline| deadline.as_micros() as u64)
}
