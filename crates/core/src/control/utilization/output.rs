//! The outputs of a control period of one plant, for the engine to publish.

use super::client_fractions::ClassLevel;
use super::costs::CostModel;
use super::view::PlantView;
use crate::actuator::retry_after::ReturnTimes;
use crate::control::allocation::Allocation;
use crate::control::allocation::contracts::ContractShares;
use crate::control::cost::class::ClassCosts;
use crate::time::Duration;
use alloc::vec::Vec;

/// The largest cost of a request in the search for workers, in mean service times; a dearer request counts with this cost.
const DEAREST_USUAL: f64 = 4.0;

/// The cost of a class at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DoubtedCost {
    /// The class's number.
    pub(crate) class: usize,
    pub(crate) level: usize,
}

/// The outputs of a step.
pub(crate) struct PlantOutput<'a> {
    /// The learned costs that must be too high and are to be lowered by [`CostEstimate::doubt`]; empty in most periods.
    ///
    /// [`CostEstimate::doubt`]: crate::model::CostEstimate::doubt
    pub(crate) doubted: Vec<DoubtedCost>,
    /// The service level of each class here.
    pub(crate) levels: &'a [ClassLevel],
    /// When requests that are turned away in the next period may come again.
    pub(crate) returns: ReturnTimes,
    /// The classes whose requests are rejected for the load, if any are, or were in the period before.
    pub(crate) rejected: Option<RejectedClasses<'a>>,
    /// The longest wait of such requests without a promise; `None` in the first period of rejections, which may be a burst that
    /// the queue takes up.
    pub(crate) longest_wait: Option<Duration>,
    pub(crate) usual_costs: UsualCosts<'a>,
    /// The contracts, if the set of sites that are held to their parts of the plant has changed.
    pub(crate) contracts: Option<HeldContracts<'a>>,
}

/// The contracts at a plant.
pub(crate) struct HeldContracts<'a> {
    pub(super) view: &'a PlantView,
    pub(super) contracts: &'a ContractShares,
}

impl HeldContracts<'_> {
    /// The classes of each site with a contract, by number, and whether the site is held to its part.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (usize, bool)> {
        self.contracts.held(self.view)
    }
}

/// The classes whose requests are rejected for the load.
pub(crate) struct RejectedClasses<'a> {
    pub(super) view: &'a PlantView,
    pub(super) allocation: &'a Allocation,
}

impl RejectedClasses<'_> {
    /// The numbers of the classes. While the capacity is not known, they are those whose requests would be rejected if it was:
    /// more requests wait than can be served in time then too.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        let own = self.view.classes.iter().filter(|class| !class.exempt && class.base == 0);
        own.filter(|class| self.allocation.wanted(self.view, class) < 1.0).map(|class| class.class)
    }

    /// Whether some class has a ratio, which needs the order of arrival.
    pub(crate) fn keep_order(&self) -> bool {
        self.view.has_ratio()
    }
}

/// The usual costs of requests, for the search for workers.
pub(crate) struct UsualCosts<'a> {
    pub(super) view: &'a PlantView,
    pub(super) costs: &'a CostModel,
    /// The mean service time.
    pub(super) service_time: Duration,
}

impl UsualCosts<'_> {
    /// Passes the usual cost of a request of each class and level, as a part of the mean service time; nothing while no service
    /// time is known. A class whose cost is not known counts at the mean. A cost above [`DEAREST_USUAL`] counts as that.
    pub(crate) fn each(&self, learned: &[ClassCosts], mut pass: impl FnMut(usize, usize, f64)) {
        let mean = self.service_time.as_secs_f64();
        if mean <= 0.0 {
            return;
        }
        let costs = self.costs.costs(learned);
        let workers = f64::from(self.costs.workers());
        for class in &self.view.classes {
            for level in class.levels_here() {
                let own = costs.at(class, level).map_or(1.0, |cost| cost * workers / mean);
                pass(class.class, level, own.min(DEAREST_USUAL));
            }
        }
    }
}
