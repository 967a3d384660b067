//! The promises as the loop of one plant sees them: the plant, its classes, and the sites that share it. The view changes at
//! a reload only.

use crate::promises::plan::{Known, promised_costs};
use crate::promises::registry::Registry;
use crate::promises::{self, Guarantee, MAX_LEVELS, Mode, Promises, Sense};
use alloc::{string::String, vec::Vec};
use core::ops::Range;

/// The plant of a loop.
pub(crate) struct PlantView {
    pub(crate) promised: promises::Plant,
    /// The classes whose site it serves, wholly or at some level, by site.
    pub(crate) classes: Vec<ClassView>,
    /// The sites whose own plant it is, in order.
    pub(crate) sites: Vec<SiteView>,
    /// M of each group: the classes of one site and one priority, which have one m.
    pub(crate) groups: Vec<usize>,
    /// M of the loop: the largest number of levels among the classes that it moves.
    pub(crate) top: f64,
    /// Whether several groups, or a contract, share the plant. Otherwise all classes have one m.
    pub(crate) is_shared: bool,
}

/// A class, as the loop of one plant sees it: which of its levels the plant serves, and whether the loop owns its actuator.
pub(crate) struct ClassView {
    /// The class's number.
    pub(crate) class: usize,
    /// M.
    pub(crate) top: usize,
    /// The lowest m that it is given: 1 where a deadline, and not the load, decides which requests are refused.
    pub(crate) least: f64,
    pub(crate) exempt: bool,
    /// Whether this plant is the site's own, so that this loop moves the class's service level. Otherwise the loop of another
    /// plant moves it, and this plant serves only some of the levels.
    pub(crate) owns_actuator: bool,
    /// Whether this plant serves level l.
    pub(crate) here: [bool; MAX_LEVELS + 1],
    /// The same as a list, in order.
    levels: Vec<usize>,
    /// The index of its site and of its group in the view, if the loop owns the actuator.
    pub(crate) site: usize,
    pub(crate) group: usize,
    /// The first guess of C_l / C_{l+1}.
    pub(crate) cost_ratio: [f64; MAX_LEVELS + 1],
}

/// A site whose own plant it is.
pub(crate) struct SiteView {
    /// Its place among the promises' sites.
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) guarantee: Option<Guarantee>,
    pub(crate) has_ratio: bool,
    /// Its costs as promised.
    pub(crate) promised_costs: Option<Known>,
    /// Its share of the excess, by weight.
    pub(crate) weight: f64,
    pub(crate) shares_excess: bool,
    /// Its classes, among those of the view.
    pub(crate) classes: Range<usize>,
    /// Its groups, highest priority first.
    pub(crate) groups: Range<usize>,
}

/// A level that was never served is taken to cost this part of the level above. It is low, so that no request is rejected
/// before the level was tried; its cost is known one period later.
const UNKNOWN_COST_RATIO: f64 = 0.1;

impl PlantView {
    /// The view of plant `number`.
    pub(crate) fn new(registry: &Registry, number: usize) -> Self {
        let promises = &registry.promises;
        let (mut classes, mut keys) = (Vec::new(), Vec::new());
        for member in registry.classes() {
            let site = member.site;
            let class = site.classes.get(member.index);
            let mut view = ClassView {
                class: member.class,
                top: site.levels.len(),
                least: site.least_level(member.index).into(),
                exempt: member.exempt,
                owns_actuator: site.plant == number,
                here: Default::default(),
                levels: Vec::new(),
                site: 0,
                group: 0,
                cost_ratio: [UNKNOWN_COST_RATIO; MAX_LEVELS + 1],
            };
            for (level, promise) in (1..).zip(&site.levels) {
                view.here[level] = promise.plant.unwrap_or(site.plant) == number;
                view.cost_ratio[level] = promise.cost_ratio.unwrap_or(UNKNOWN_COST_RATIO);
            }
            view.levels = (1..=view.top).filter(|level| view.here[*level]).collect();
            if view.owns_actuator || !view.levels.is_empty() {
                keys.push((member.site_number, class.map_or(site.default_priority, |class| class.priority)));
                classes.push(view);
            }
        }
        let owned = keys.iter().zip(&classes).filter(|(_, class)| class.owns_actuator);
        let mut groups: Vec<(usize, u8)> = owned.map(|(key, _)| *key).collect();
        groups.sort_unstable();
        groups.dedup();
        let sites = site_views(promises, number, &keys, &groups);
        for (class, key) in classes.iter_mut().zip(&keys).filter(|(class, _)| class.owns_actuator) {
            class.site = sites.partition_point(|site| site.number < key.0);
            class.group = groups.partition_point(|group| group < key);
        }
        let owned = classes.iter().filter(|class| class.owns_actuator);
        let top = owned.map(|class| class.top).max().unwrap_or(0) as f64;
        let has_contract = sites.iter().any(|site| site.guarantee.is_some());
        PlantView {
            promised: promises.plants[number].clone(),
            classes,
            top,
            groups: groups.iter().map(|(site, _)| promises.sites[*site].levels.len()).collect(),
            is_shared: groups.len() > 1 || has_contract,
            sites,
        }
    }

    /// The load up to which no request is rejected: all of the workers' time, where the engine lets no more requests in
    /// than there are workers, so that it sees the whole queue. `None` elsewhere, where contracts need the room above the
    /// set point, and at a set point of 1 beside ratios, which are the less feasible the less room there is.
    pub(crate) fn capacity(&self, mode: Mode) -> Option<f64> {
        let plant = &self.promised;
        let holds_queue = plant.find_workers.is_some() || plant.max_connections <= plant.workers;
        let sees_queue = mode == Mode::Control && plant.sense == Sense::Gap && holds_queue;
        let has_contract = self.sites.iter().any(|site| site.guarantee.is_some());
        (sees_queue && !has_contract && !(self.has_ratio() && plant.set_point >= 1.0)).then_some(1.0)
    }

    /// Whether classes of a site have a ratio. It divides a queue, so there must be one, in the order of arrival.
    pub(crate) fn has_ratio(&self) -> bool {
        self.sites.iter().any(|site| site.has_ratio)
    }

    /// The lowest m that every class is given.
    pub(crate) fn least(&self) -> f64 {
        let moved = self.owned().filter(|class| !class.exempt);
        moved.map(|class| class.least).reduce(f64::min).unwrap_or(0.0)
    }

    /// The classes whose service level the loop moves.
    pub(crate) fn owned(&self) -> impl Iterator<Item = &ClassView> {
        self.classes.iter().filter(|class| class.owns_actuator)
    }
}

/// The sites of a plant, in order. `keys` are the site and the priority of each class of the view.
fn site_views(
    promises: &Promises,
    plant: usize,
    keys: &[(usize, u8)],
    groups: &[(usize, u8)],
) -> Vec<SiteView> {
    let range = |keys: &[(usize, u8)], number: usize| {
        keys.partition_point(|(site, _)| *site < number)..keys.partition_point(|(site, _)| *site <= number)
    };
    let own = promises.sites.iter().enumerate().filter(|(_, site)| site.plant == plant);
    let view = |(number, site): (usize, &promises::Site)| SiteView {
        number,
        name: site.name.clone(),
        guarantee: site.guarantee,
        has_ratio: site.default_ratio.is_some() || site.classes.iter().any(|class| class.ratio.is_some()),
        promised_costs: promised_costs(promises, site),
        weight: site.weight,
        shares_excess: site.share_excess,
        classes: range(keys, number),
        groups: range(groups, number),
    };
    own.map(view).collect()
}

impl ClassView {
    /// The levels that this plant serves.
    pub(crate) fn levels_here(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.levels.iter().copied()
    }

    /// Whether this plant serves all its levels.
    pub(crate) fn is_all_here(&self) -> bool {
        self.levels.len() == self.top
    }

    /// The level at which a request that waits here starts if `wanted` is its level: the next one up that this plant
    /// serves, else the next one down.
    pub(crate) fn level_at(&self, wanted: usize) -> usize {
        let wanted = wanted.max(1);
        let up = self.levels_here().find(|level| *level >= wanted);
        up.or_else(|| self.levels_here().rev().find(|level| *level < wanted)).unwrap_or(wanted)
    }
}

/// Inputs of the stages, for tests that make them by hand.
#[cfg(test)]
pub(crate) mod by_hand {
    use super::*;
    use crate::control::cost::class::ClassCosts;
    use crate::model::{LinearModel, Served};
    use crate::telemetry::measurement::{ClassMeasurement, Measurement};
    use crate::telemetry::snapshot::PlantSnapshot;

    /// A class with M levels that all are served here, in the group of the same number.
    pub(crate) fn class(number: usize, top: usize) -> ClassView {
        let mut here = [false; MAX_LEVELS + 1];
        here[1..=top].fill(true);
        ClassView {
            class: number,
            top,
            least: 0.0,
            exempt: false,
            owns_actuator: true,
            here,
            levels: (1..=top).collect(),
            site: number,
            group: number,
            cost_ratio: [UNKNOWN_COST_RATIO; MAX_LEVELS + 1],
        }
    }

    /// A plant of four workers with a site for each of these classes; shared if there are several.
    pub(crate) fn plant(classes: Vec<ClassView>) -> PlantView {
        let site = |class: &ClassView| SiteView {
            number: class.site,
            name: String::new(),
            guarantee: None,
            has_ratio: false,
            promised_costs: None,
            weight: 1.0,
            shares_excess: true,
            classes: class.site..class.site + 1,
            groups: class.group..class.group + 1,
        };
        PlantView {
            promised: promises::Plant::new("plant", 4),
            sites: classes.iter().map(site).collect(),
            groups: classes.iter().map(|class| class.top).collect(),
            top: classes.iter().map(|class| class.top).max().unwrap_or(0) as f64,
            is_shared: classes.len() > 1,
            classes,
        }
    }

    /// What was learned of a class whose requests take so many seconds of one worker, and 1,000 bytes, by level from 1 on;
    /// nothing of a level at 0.
    pub(crate) fn learned(seconds: &[f64]) -> ClassCosts {
        let mut costs = ClassCosts::new(LinearModel::default(), seconds.len());
        for (known, seconds) in costs.by_level[1..].iter_mut().zip(seconds).filter(|(_, s)| **s > 0.0) {
            known.learn(Served { requests: 100.0, work_seconds: 100.0 * seconds, bytes: 1e5 });
        }
        costs
    }

    /// A period of one second of four workers, with nothing in service.
    pub(crate) fn measured<'a>(classes: &'a [ClassMeasurement], waiting: &'a [u32]) -> Measurement<'a> {
        Measurement {
            seconds: 1.0,
            nominal_seconds: 1.0,
            classes,
            counted: PlantSnapshot::default(),
            reported: None,
            in_service: 0,
            waiting,
            workers: 4,
        }
    }

    /// A class with this arrival rate, all of whose requests were started at a level.
    pub(crate) fn arrivals(rate: f64, level: usize) -> ClassMeasurement {
        let mut measured = ClassMeasurement { rate, active: true, ..ClassMeasurement::default() };
        let counts = &mut measured.window.counts;
        (counts.arrivals, counts.served[level]) = (rate as u64, rate as u64);
        measured.window.decided[level] = rate as u64;
        measured
    }
}
