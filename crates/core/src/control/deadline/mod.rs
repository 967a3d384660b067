//! The control side of deadlines: learns the cost of each type (`types`) and the work that higher ranks bring (`rates`).
//!
//! Admission (`admission::deadline`) decides at each arrival. It has no budget per period, so nothing is used up or
//! carried over, and no backup queue is needed: the work that AC's backup queue holds counts as unfinished work.
//!
//! An expert may choose AC's budget instead (`admission::aces`); its periods are ended here.

mod rates;
mod types;

use crate::admission::aces::forecast::RateForecasts;
use crate::admission::aces::periods::Periods;
use crate::admission::estimates::Estimates;
use crate::admission::unfinished_work::UnfinishedWork;
use crate::promises::registry::Registry;
use crate::promises::{DEFAULT_TYPES, Plant, Prefer, Site};
use crate::request::type_rules::types_of;
use crate::request::work::DeadlineTerms;
use crate::telemetry::status::TypeStatus;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use rates::PlantRates;
use types::{SiteTypes, Told};

/// The estimates of plants and sites with deadlines.
#[derive(Default)]
pub(crate) struct Deadlines {
    /// The types of each site that has a plant with deadlines.
    types: Vec<SiteTypes>,
    /// By plant.
    rates: Vec<PlantRates>,
    /// By plant: the periods of admission by budget; and the rate forecasts from before.
    periods: Vec<Periods>,
    known: RateForecasts,
}

impl Deadlines {
    /// Takes new promises; the costs of types that stay are kept.
    pub(crate) fn promise(&mut self, registry: &Registry) {
        let promises = &registry.promises;
        let keeping = promises.keeping_deadlines();
        for (site, numbers) in promises.sites.iter().zip(&registry.sites) {
            let before = self.types.iter().position(|types| types.site == numbers.site);
            let before = before.map(|place| self.types.swap_remove(place));
            if site.plants().any(|plant| keeping[plant]) {
                let told = Told {
                    site: numbers.site,
                    kinds: types_of(site).map(|(name, quantum)| (name.into(), quantum)).collect(),
                    levels: site.levels.iter().map(|level| level.name.clone()).collect(),
                    unit_us: unit_us(site, &promises.plants[site.plant]),
                    least_deadline_us: least_deadline_us(site),
                };
                self.types.push(SiteTypes::new(told, before));
            }
        }
        let promised = |types: &SiteTypes| registry.sites.iter().any(|numbers| numbers.site == types.site);
        self.types.retain(promised);
        self.rates.resize_with(promises.plants.len(), PlantRates::default);
        // Keep the forecasts of plants that are gone.
        self.known = self.trends();
        self.periods.resize_with(promises.plants.len(), Periods::default);
        for (periods, plant) in self.periods.iter_mut().zip(&promises.plants) {
            periods.rename(&plant.name);
        }
    }

    /// Ends the periods of admission by budget that are over, and returns when the next one will be. `backlogs` are those
    /// of the plants with deadlines to keep, by number; `day` is the time since midnight.
    pub(crate) fn turn<'a>(
        &mut self,
        now: Instant,
        day: Duration,
        backlogs: impl Iterator<Item = (usize, &'a UnfinishedWork)>,
    ) -> Instant {
        let Deadlines { periods, known, .. } = self;
        backlogs
            .map(|(plant, backlog)| periods[plant].turn(now, day, backlog, known))
            .min()
            .unwrap_or(Instant::FAR)
    }

    /// What was learned of how rates go on.
    pub(crate) fn trends(&self) -> RateForecasts {
        let mut trends = self.known.clone();
        self.periods.iter().for_each(|periods| periods.add_to(&mut trends));
        trends
    }

    /// Takes over what was learned before.
    pub(crate) fn remember(&mut self, known: RateForecasts) {
        self.periods.iter_mut().for_each(|periods| periods.recall(&known));
        self.known.extend(known);
    }

    /// Nothing is to be learned.
    pub(crate) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Learns what the types of all sites cost, from the last `seconds`.
    pub(crate) fn learn(&mut self, seconds: f64) {
        self.types.iter_mut().for_each(|types| types.learn(seconds));
    }

    /// Learns how fast work comes to a plant with deadlines to keep, from the last `seconds`.
    pub(crate) fn follow(&mut self, plant: usize, backlog: &UnfinishedWork, seconds: f64, workers: u32) {
        self.rates[plant].follow(backlog, seconds, workers);
    }

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

/// What admission of a class is asked for.
pub(crate) fn terms(site: &Site, place: usize, exempt: bool) -> DeadlineTerms {
    let class = site.classes.get(place);
    let deadline = class.and_then(|class| class.deadline).or(site.deadline).filter(|_| !exempt);
    let prefer = class.and_then(|class| class.prefer).unwrap_or(site.prefer);
    DeadlineTerms { deadline, prefers_delay: prefer == Prefer::Delay }
}

/// AC's server answers a thousand static requests a second (Table 1).
const STATIC_US: f64 = 1000.0;

/// What a quantum of 1 takes, until it is learned: what is told of the site's requests is told of dynamic ones.
fn unit_us(site: &Site, plant: &Plant) -> f64 {
    let [_, (_, dynamic), ..] = DEFAULT_TYPES;
    let told = site.costs.or(plant.costs).filter(|costs| costs.per_request_seconds > 0.0);
    told.map_or(STATIC_US, |costs| costs.per_request_seconds * f64::from(plant.workers) * 1e6 / dynamic)
}

/// The shortest deadline of a site's classes (us).
fn least_deadline_us(site: &Site) -> f64 {
    let own = site.classes.iter().filter_map(|class| class.deadline).chain(site.deadline);
    own.min().map_or(f64::INFINITY, |deadline| deadline.as_secs_f64() * 1e6)
}
