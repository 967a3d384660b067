//! Sends each request to its site's plant at the highest level, as every comparator does.

use super::Start;
use crate::service::ServicePlan;
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Classifier, Reason, Target};

/// The gateway's classification, and the cost of each site's highest level.
pub(super) struct FullQuality {
    pub(super) classifier: Classifier,
    pub(super) plan: ServicePlan,
}

impl FullQuality {
    /// Classes and clients have the numbers that an engine of the same promises and seed gives them, so that a comparison
    /// compares the same classes.
    ///
    /// # Errors
    /// Promises that contradict each other, or plants that the workload does not describe.
    pub(super) fn new(promises: &Promises, workload: &Workload, seed: u64) -> Result<Self, Vec<String>> {
        let classifier = Classifier::new(promises, seed)?;
        let (promised, known) = (promises.plants.len(), workload.plants.len());
        if promised != known {
            return Err(vec![format!("{promised} plants are promised, but the workload has {known}")]);
        }
        Ok(FullQuality { classifier, plan: ServicePlan::new(promises, workload) })
    }

    /// How a request starts. An exempt request is not counted, as in a location without a limit.
    pub(super) fn start(&self, target: &Target) -> Start {
        let (plant, level) = self.plan.full(target.site);
        Start { plant, level, reason: if target.exempt { Reason::Exempt } else { Reason::Full } }
    }
}
