//! The promises as the loop of one plant sees them: the plant, its classes, and the sites that share it. The view changes at
//! a reload only.

use crate::actuator::levels_by_plant::parts;
use crate::promises::plan::{Known, promised_costs};
use crate::promises::registry::Registry;
use crate::promises::{self, Guarantee, MAX_LEVELS, Mode, Promises, Sense};
use crate::telemetry::measurement::Measurement;
use alloc::{string::String, vec::Vec};
use core::ops::Range;

/// The plant of a loop.
pub(crate) struct PlantView {
    pub(crate) promised: promises::Plant,
    /// The classes of which the plant serves some level, by site.
    pub(crate) classes: Vec<ClassView>,
    /// The sites of which the plant serves some level, in order.
    pub(crate) sites: Vec<SiteView>,
    /// The highest level here of each group: the classes of one site that have one place in its order, and so one m.
    pub(crate) groups: Vec<usize>,
    /// The highest level of all classes here.
    pub(crate) top: f64,
    /// Whether several groups, or a contract, share the plant. Otherwise all classes have one m.
    pub(crate) is_shared: bool,
}

/// A class, as the loop of one plant sees it: the neighbouring levels that the plant serves, between which the loop moves m.
pub(crate) struct ClassView {
    /// The class's number.
    pub(crate) class: usize,
    /// The highest level here: M, or the level below those of the plant above.
    pub(crate) top: usize,
    /// The level below the lowest one here: 0, or the highest one of the plant to which requests are passed down.
    pub(crate) base: usize,
    /// How many plants serve higher levels: these pass requests down to this plant.
    pub(crate) depth: usize,
    /// The lowest m that the class is given: `base`, or 1 where a deadline, and not the load, decides which requests are
    /// refused.
    pub(crate) least: f64,
    pub(crate) exempt: bool,
    /// Whether this plant serves all levels.
    pub(crate) is_all_here: bool,
    /// The index of its site and of its group in the view.
    pub(crate) site: usize,
    pub(crate) group: usize,
    /// The first guess of C_l / C_{l+1}.
    pub(crate) cost_ratio: [f64; MAX_LEVELS + 1],
}

/// A site of which the plant serves some level.
pub(crate) struct SiteView {
    /// The site's index among those of the promises.
    pub(crate) number: usize,
    pub(crate) name: String,
    /// Whether the plant is the site's own one, where the site's contract is held.
    pub(crate) is_own: bool,
    pub(crate) guarantee: Option<Guarantee>,
    pub(crate) has_ratio: bool,
    /// The site's costs as promised.
    pub(crate) promised_costs: Option<Known>,
    /// The site's share of the excess, by weight.
    pub(crate) weight: f64,
    pub(crate) shares_excess: bool,
    /// The site's classes, among those of the view.
    pub(crate) classes: Range<usize>,
    /// The site's groups, highest priority first.
    pub(crate) groups: Range<usize>,
}

/// A level that was never served is taken to cost this part of the level above. It is low, so that no request is rejected
/// before the level was tried; its cost is known one period later.
const UNKNOWN_COST_RATIO: f64 = 0.1;

/// A site, and a place in its order ([`promises::Site::load_order`]).
type GroupKey = (usize, (u8, bool));

impl PlantView {
    /// The view of plant `number`.
    pub(crate) fn new(registry: &Registry, number: usize) -> Self {
        let promises = &registry.promises;
        let (mut classes, mut keys) = (Vec::new(), Vec::new());
        let least = registry.least_levels();
        for member in registry.classes() {
            let site = member.site;
            let plants: Vec<usize> = site.plants().collect();
            let Some((depth, (_, base, top))) = parts(&plants).enumerate().find(|(_, part)| part.0 == number)
            else {
                continue;
            };
            if depth > 0 && member.exempt {
                continue;
            }
            let mut cost_ratio = [UNKNOWN_COST_RATIO; MAX_LEVELS + 1];
            for (ratio, level) in cost_ratio[1..].iter_mut().zip(&site.levels) {
                *ratio = level.cost_ratio.unwrap_or(UNKNOWN_COST_RATIO);
            }
            classes.push(ClassView {
                class: member.class,
                top,
                base,
                depth,
                least: if base > 0 { base as f64 } else { least[member.class].into() },
                exempt: member.exempt,
                is_all_here: base == 0 && depth == 0,
                site: 0,
                group: 0,
                cost_ratio,
            });
            keys.push((member.site_number, site.load_order(member.index)));
        }
        let mut groups: Vec<GroupKey> = keys.clone();
        groups.sort_unstable();
        groups.dedup();
        let sites = site_views(promises, number, &keys, &groups);
        let mut tops = alloc::vec![0; groups.len()];
        for (class, key) in classes.iter_mut().zip(&keys) {
            class.site = sites.partition_point(|site| site.number < key.0);
            class.group = groups.partition_point(|group| group < key);
            tops[class.group] = class.top;
        }
        let top = classes.iter().map(|class| class.top).max().unwrap_or(0) as f64;
        let has_contract = sites.iter().any(|site| site.guarantee.is_some());
        PlantView {
            promised: promises.plants[number].clone(),
            classes,
            top,
            is_shared: tops.len() > 1 || has_contract,
            groups: tops,
            sites,
        }
    }

    /// The load up to which no request is rejected: the whole time of the workers that may work at once. The engine must see
    /// the whole queue for that: its own, with the requests in service beyond the workers, or the server's if its length is
    /// reported. `None` if the engine does not see it, or does not control or sense by gaps; if contracts need the room above
    /// the set point; and at a set point of 1 beside ratios, which are the less feasible the less room the plant has.
    pub(crate) fn capacity(&self, mode: Mode, is_reported: bool) -> Option<f64> {
        let plant = &self.promised;
        // If a server decides itself, the gateway before it has the queue.
        let is_seen = if plant.waits_unseen { is_reported } else { !plant.decides_itself };
        let holds_queue = plant.find_workers.is_some() || plant.max_connections <= plant.workers || is_seen;
        let sees_queue = mode == Mode::Control && plant.sense == Sense::Gap && holds_queue;
        let has_contract = self.sites.iter().any(|site| site.guarantee.is_some());
        let part = f64::from(plant.max_connections) / f64::from(plant.workers.max(1));
        let whole = if plant.find_workers.is_some() { 1.0 } else { part.min(1.0) };
        (sees_queue && !has_contract && !(self.has_ratio() && plant.set_point >= 1.0)).then_some(whole)
    }

    /// Whether classes of a site have a ratio. A ratio divides the waits in a queue, so requests must wait, in the order of
    /// arrival.
    pub(crate) fn has_ratio(&self) -> bool {
        self.sites.iter().any(|site| site.has_ratio)
    }

    /// The least m that some class may be given.
    pub(crate) fn least(&self) -> f64 {
        let moved = self.classes.iter().filter(|class| !class.exempt);
        moved.map(|class| class.least).reduce(f64::min).unwrap_or(0.0)
    }
}

/// The sites of a plant, in order. `keys` are those of each class of the view.
fn site_views(promises: &Promises, plant: usize, keys: &[GroupKey], groups: &[GroupKey]) -> Vec<SiteView> {
    let range = |keys: &[GroupKey], number: usize| {
        keys.partition_point(|(site, _)| *site < number)..keys.partition_point(|(site, _)| *site <= number)
    };
    let own = promises.sites.iter().enumerate().filter(|(_, site)| site.plants().any(|own| own == plant));
    let view = |(number, site): (usize, &promises::Site)| {
        let is_own = site.plant == plant;
        let ratios = || site.classes.iter().any(|class| class.ratio.is_some());
        SiteView {
            number,
            name: site.name.clone(),
            is_own,
            guarantee: site.guarantee.filter(|_| is_own),
            has_ratio: is_own && (site.default_ratio.is_some() || ratios()),
            promised_costs: if is_own { promised_costs(promises, site) } else { None },
            weight: site.weight,
            shares_excess: site.share_excess || !is_own,
            classes: range(keys, number),
            groups: range(groups, number),
        }
    };
    own.map(view).collect()
}

impl ClassView {
    /// Whether this plant serves a level.
    #[inline(always)]
    pub(crate) fn is_here(&self, level: usize) -> bool {
        self.base < level && level <= self.top
    }

    /// The levels that this plant serves.
    pub(crate) fn levels_here(&self) -> Range<usize> {
        self.base + 1..self.top + 1
    }

    /// The level at which a request that waits here starts if `wanted` is its level; `None` if the request is passed down.
    pub(crate) fn level_at(&self, wanted: usize) -> Option<usize> {
        let passed_down = self.base > 0 && wanted <= self.base;
        (!passed_down).then(|| wanted.clamp(self.base + 1, self.top))
    }

    /// Requests per second that arrive at this plant: R, or the part of the requests outside the contract that the plants above
    /// pass down.
    #[inline(always)]
    pub(crate) fn rate(&self, measured: &Measurement<'_>) -> f64 {
        if self.depth == 0 { measured.classes[self.class].rate } else { self.rate_passed_down(measured) }
    }

    #[cold]
    #[inline(never)]
    fn rate_passed_down(&self, measured: &Measurement<'_>) -> f64 {
        let own = &measured.classes[self.class];
        own.rate
            * (1.0 - own.window.guaranteed_share())
            * measured.levels_by_plant[self.class].comes_to(self.depth)
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
        ClassView {
            class: number,
            top,
            least: 0.0,
            exempt: false,
            base: 0,
            depth: 0,
            is_all_here: true,
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
            is_own: true,
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

    /// The learned costs of a class whose requests have 1,000 bytes and take `seconds` of one worker, by level from 1 on; a
    /// level with 0 seconds was never seen.
    pub(crate) fn learned(seconds: &[f64]) -> ClassCosts {
        let mut costs = ClassCosts::new(LinearModel::default(), seconds.len());
        for (known, seconds) in costs.by_level[1..].iter_mut().zip(seconds).filter(|(_, s)| **s > 0.0) {
            known.learn(Served { requests: 100.0, work_seconds: 100.0 * seconds, bytes: 1e5 });
        }
        costs
    }

    /// A period of one second of four workers, with no request in service.
    pub(crate) fn measured<'a>(classes: &'a [ClassMeasurement], waiting: &'a [u32]) -> Measurement<'a> {
        Measurement {
            seconds: 1.0,
            nominal_seconds: 1.0,
            classes,
            levels_by_plant: &[],
            counted: PlantSnapshot::default(),
            reported: None,
            in_service: 0,
            waiting,
            workers: 4,
            serving: 4,
            service_seconds: None,
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
