//! The loop behind deadlines: learns what admission reads.
//!
//! *Observes*: the service times of released requests, by type and level, and the work started at each plant. *Law*: the
//! cost of each type (`types.rs`), and the part of a plant that higher ranks take (`rates.rs`). *Gives out*: both, in words
//! that admission shares: [`Estimates`] and [`UnfinishedWork`]. A deadline is decided on at the arrival of a request, so
//! nothing is used up by period or carried over, and AC's backup queue is not needed: its work counts as unfinished.
//!
//! `budgets.rs` is another loop: it ends the periods of AC's own admission by budget, which an expert may choose instead.

pub(crate) mod budgets;
mod rates;
mod types;

use crate::admission::estimates::Estimates;
use crate::admission::unfinished_work::UnfinishedWork;
use crate::control::{Due, Loop};
use crate::promises::registry::Registry;
use crate::promises::{DEFAULT_TYPES, Plant, Prefer, Site};
use crate::request::type_rules::types_of;
use crate::request::work::DeadlineTerms;
use crate::telemetry::status::TypeStatus;
use crate::time::Instant;
use alloc::{sync::Arc, vec::Vec};
use rates::PlantRates;
use types::{PromisedTypes, SiteTypes};

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

    fn step(&mut self, _now: Instant, (seconds, plants): Self::Inputs<'_>) {
        self.types.iter_mut().for_each(|types| types.learn(seconds));
        for (number, unfinished, workers) in plants {
            self.rates[number].follow(unfinished, seconds, workers);
        }
    }

    /// The costs of types that stay are kept.
    fn reload(&mut self, registry: &Registry) {
        let promises = &registry.promises;
        let keeping = promises.keeping_deadlines();
        for (site, numbers) in promises.sites.iter().zip(&registry.sites) {
            let before = self.types.iter().position(|types| types.site == numbers.site);
            let before = before.map(|place| self.types.swap_remove(place));
            if site.plants().any(|plant| keeping[plant]) {
                let promised = PromisedTypes {
                    site: numbers.site,
                    types: types_of(site).map(|(name, quantum)| (name.into(), quantum)).collect(),
                    levels: site.levels.iter().map(|level| level.name.clone()).collect(),
                    unit_us: unit_us(site, &promises.plants[site.plant]),
                    least_deadline_us: least_deadline_us(site),
                };
                self.types.push(SiteTypes::new(promised, before));
            }
        }
        let promised = |types: &SiteTypes| registry.sites.iter().any(|numbers| numbers.site == types.site);
        self.types.retain(promised);
        self.rates.resize_with(promises.plants.len(), PlantRates::default);
    }
}

impl DeadlineLoop {
    fn of(&self, site: u16) -> Option<&SiteTypes> {
        self.types.iter().find(|types| types.site == site)
    }

    /// What the requests of a site are expected to cost.
    pub(crate) fn estimates(&self, site: u16) -> Option<Arc<Estimates>> {
        self.of(site).map(|types| types.estimates.clone())
    }

    /// What is known of a site's types.
    pub(crate) fn status(&self, site: u16) -> Vec<TypeStatus> {
        self.of(site).map_or_else(Vec::new, SiteTypes::status)
    }
}

/// What admission is to keep for a class.
pub(crate) fn terms(site: &Site, place: usize, exempt: bool) -> DeadlineTerms {
    let class = site.classes.get(place);
    let deadline = class.and_then(|class| class.deadline).or(site.deadline).filter(|_| !exempt);
    let prefer = class.and_then(|class| class.prefer).unwrap_or(site.prefer);
    DeadlineTerms { deadline, prefers_delay: prefer == Prefer::Delay }
}

/// AC's server answers a thousand static requests a second (Table 1).
const STATIC_US: f64 = 1000.0;

/// What a quantum of 1 takes, until it is learned (us). A promised cost of the site's requests is taken for that of dynamic
/// requests.
fn unit_us(site: &Site, plant: &Plant) -> f64 {
    let [_, (_, dynamic), ..] = DEFAULT_TYPES;
    let promised = site.costs.or(plant.costs).filter(|costs| costs.per_request_seconds > 0.0);
    promised.map_or(STATIC_US, |costs| costs.per_request_seconds * f64::from(plant.workers) * 1e6 / dynamic)
}

/// The shortest deadline of a site's classes (us).
fn least_deadline_us(site: &Site) -> f64 {
    let own = site.classes.iter().filter_map(|class| class.deadline).chain(site.deadline);
    own.min().map_or(f64::INFINITY, |deadline| deadline.as_secs_f64() * 1e6)
}
