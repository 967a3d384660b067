//! What the loop of one plant sees of the promises: the plant, its classes, and the sites that share it. It stands still
//! between reloads.

use super::feed_forward::FeedForward;
use super::law::Law;
use super::paper::PaperPi;
use crate::promises::plan::{Known, promised_costs};
use crate::promises::registry::Registry;
use crate::promises::{self, Guarantee, MAX_LEVELS, Promises};
use alloc::{boxed::Box, string::String, vec::Vec};
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
    /// M of the loop: the most levels of the classes that it moves.
    pub(crate) top: f64,
    /// Whether several groups, or a contract, share the plant. Else all classes have one m.
    pub(crate) is_shared: bool,
}

/// A class, as the loop of one plant sees it: which of its levels the plant serves, and whether the loop owns its actuator.
pub(crate) struct ClassView {
    /// The class's number.
    pub(crate) class: usize,
    /// M.
    pub(crate) top: usize,
    pub(crate) exempt: bool,
    /// This plant is the site's own, so the loop moves the class's service level. Else only some of its levels come here,
    /// at the choice of another loop.
    pub(crate) owns_actuator: bool,
    /// Whether this plant serves level l.
    pub(crate) here: [bool; MAX_LEVELS + 1],
    /// The levels that it serves, in order: most of what is asked in a period is asked of each.
    levels: Vec<usize>,
    /// The place of its site and of its group among those of the view, if the loop owns the actuator.
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
    /// Its costs as promised.
    pub(crate) told: Option<Known>,
    /// Its share of the excess, by weight.
    pub(crate) weight: f64,
    pub(crate) shares_excess: bool,
    /// Its classes, among those of the view.
    pub(crate) classes: Range<usize>,
    /// Its groups, highest priority first.
    pub(crate) groups: Range<usize>,
}

/// A level never served yet is taken to cost this much of the one above: low, so that nothing is rejected before the
/// level was tried; one period of it then tells.
const UNKNOWN_COST_RATIO: f64 = 0.1;

/// Builds the law that is promised; the flag says whether its target is a load, which can be shared out.
pub(crate) fn law(promised: &promises::UtilizationLaw) -> (Box<dyn Law>, bool) {
    match promised {
        promises::UtilizationLaw::FeedForward => (Box::new(FeedForward::default()), true),
        promises::UtilizationLaw::Paper { gain_margin } => (Box::new(PaperPi::new(*gain_margin)), false),
    }
}

impl PlantView {
    /// The view of plant `number`; `can_share` says whether the law's target can be shared out.
    pub(crate) fn new(registry: &Registry, number: usize, can_share: bool) -> Self {
        let promises = &registry.promises;
        let (mut classes, mut keys) = (Vec::new(), Vec::new());
        for member in registry.classes() {
            let site = member.site;
            let class = site.classes.get(member.index);
            let mut view = ClassView {
                class: member.class,
                top: site.levels.len(),
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
            is_shared: can_share && (groups.len() > 1 || has_contract),
            sites,
        }
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
        told: promised_costs(promises, site),
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
