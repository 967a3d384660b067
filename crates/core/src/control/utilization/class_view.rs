//! A class, as the loop of one plant sees it: which of its levels the plant serves, and who moves its knob.

use crate::actuator::client_share::ClientShare;
use crate::model::Served;
use crate::promises::MAX_LEVELS;
use crate::promises::registry::Registry;
use crate::telemetry::monitor::ClassMonitor;
use alloc::vec::Vec;
use core::ops::Add;

/// A class, as the loop of one plant sees it.
pub(crate) struct Governed {
    /// The class's number.
    pub(crate) class: usize,
    /// M.
    pub(crate) top: usize,
    pub(crate) exempt: bool,
    /// This plant is the site's own, so the loop moves the class's knob. Else only some of its levels come here, at the
    /// choice of another loop.
    pub(crate) ours: bool,
    /// Whether this plant serves level l.
    pub(crate) here: [bool; MAX_LEVELS + 1],
    /// The levels that it serves, in order: most of what is asked in a period is asked of each.
    levels: Vec<usize>,
    /// Of the promises' sites.
    pub(crate) site: usize,
    pub(crate) priority: u8,
    /// Of requests behind the fraction of clients.
    pub(crate) share: ClientShare,
    /// Cost of one request at level l, in seconds of the whole plant, as known in this period; 0 before any level was
    /// seen, and where the plant does not serve it.
    pub(crate) costs: [f64; MAX_LEVELS + 1],
    /// `costs` are no longer what the monitor knows.
    pub(crate) stale: bool,
    /// The first guess of C_l / C_{l+1}.
    pub(crate) cost_ratio: [f64; MAX_LEVELS + 1],
}

/// A level never served yet is taken to cost this much of the one above: low, so that nobody is rejected before the
/// level was tried; one period of it then tells.
const UNKNOWN_COST_RATIO: f64 = 0.1;
impl Governed {
    /// The levels that this plant serves.
    pub(crate) fn levels_here(&self) -> impl Iterator<Item = usize> {
        self.levels.iter().copied()
    }

    /// The level at which a request that waits here starts if `wanted` is its level: as `PublishedClass::level_at`.
    pub(crate) fn level_at(&self, wanted: usize) -> usize {
        let wanted = wanted.max(1);
        let up = self.levels_here().find(|level| *level >= wanted);
        up.or_else(|| self.levels_here().filter(|level| *level < wanted).last()).unwrap_or(wanted)
    }

    /// What this plant served of the class in the period.
    pub(crate) fn served(&self, monitor: &ClassMonitor) -> Served {
        self.levels_here().map(|level| monitor.served_at(level)).fold(Served::default(), Served::add)
    }

    /// Starts per second at a level in the period.
    pub(crate) fn starts(&self, monitor: &ClassMonitor, level: usize, seconds: f64) -> f64 {
        monitor.window.counts.served[level] as f64 / seconds
    }
}

/// The classes whose site this plant serves, wholly or at some level.
pub(crate) fn governed(registry: &Registry, plant: usize) -> Vec<Governed> {
    let mut classes = Vec::new();
    for member in registry.members() {
        let site = member.site;
        let mut here = [false; MAX_LEVELS + 1];
        let mut cost_ratio = [UNKNOWN_COST_RATIO; MAX_LEVELS + 1];
        for (level, promise) in site.levels.iter().enumerate() {
            here[level + 1] = promise.plant.unwrap_or(site.plant) == plant;
            cost_ratio[level + 1] = promise.cost_ratio.unwrap_or(UNKNOWN_COST_RATIO);
        }
        if site.plant == plant || here.contains(&true) {
            classes.push(Governed {
                class: member.class,
                top: site.levels.len(),
                exempt: member.exempt,
                ours: site.plant == plant,
                here,
                levels: (1..=site.levels.len()).filter(|level| here[*level]).collect(),
                site: member.site_number,
                priority: site
                    .classes
                    .get(member.place)
                    .map_or(site.default_priority, |class| class.priority),
                share: ClientShare::default(),
                costs: Default::default(),
                stale: true,
                cost_ratio,
            });
        }
    }
    classes
}
