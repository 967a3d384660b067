//! The status of one plant's loop: written last in a period from the values of the stages, and read by no stage.

use super::UtilizationLoop;
use super::offered::PlantDemand;
use super::sense::Sensed;
use super::served::ServedLoad;
use super::view::PlantView;
use crate::control::allocation::Allocation;
use crate::control::cost::class::ClassCosts;
use crate::promises::plan::Known;
use crate::telemetry::status::{PlantStatus, SiteStatus};
use alloc::vec::Vec;

/// Writes the sensed and the allocated values.
pub(super) fn write(status: &mut PlantStatus, plant: &PlantView, sensed: &Sensed, allocation: &Allocation) {
    status.utilization = sensed.utilization;
    status.service_time = sensed.service_time;
    status.response_time_override = sensed.too_slow;
    status.service_level = allocation.level.max(plant.least());
}

/// Writes the loads of the sites and the loads that they were promised.
pub(super) fn write_sites(sites: &mut [SiteStatus], served: &ServedLoad, demand: &PlantDemand) {
    for ((status, served), promised) in sites.iter_mut().zip(&served.sites).zip(&demand.promised) {
        (status.utilization, status.guaranteed_share) = (served.utilization(), served.guaranteed_share);
        status.utilization_promised = *promised;
    }
}

impl UtilizationLoop {
    /// The plant, as of the last period.
    pub(crate) fn status(&self) -> &PlantStatus {
        &self.status
    }

    /// The sites whose own plant this is, by their index in the promises.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (usize, &SiteStatus)> {
        let sites = self.view.sites.iter().zip(&self.sites);
        sites.filter(|(site, _)| site.is_own).map(|(site, status)| (site.number, status))
    }

    /// m_site of the classes whose site has a contract.
    pub(crate) fn site_levels(&self) -> impl Iterator<Item = (usize, f64)> {
        let own = self.view.classes.iter().filter(|class| !class.exempt);
        own.filter_map(|class| Some((class.class, self.allocation.site_level(&self.view, class)?)))
    }

    /// The classes' costs at levels 1..=M.
    pub(crate) fn level_costs<'a>(
        &'a self,
        learned: &'a [ClassCosts],
    ) -> impl Iterator<Item = (usize, Vec<Option<f64>>)> + 'a {
        let costs = self.costs.costs(learned);
        let of = move |class: &super::view::ClassView| {
            (1..=class.top).map(|level| costs.at(class, level)).collect()
        };
        self.view.classes.iter().map(move |class| (class.class, of(class)))
    }

    /// The known costs of a site whose own plant this is, for the plan.
    pub(crate) fn known_of(
        &self,
        site: usize,
        learned: &[ClassCosts],
        rate: impl Fn(usize) -> f64,
    ) -> Option<Known> {
        let site = self.view.sites.iter().find(|own| own.is_own && own.number == site)?;
        self.costs.costs(learned).known(&self.view, site, rate)
    }
}
