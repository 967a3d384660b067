//! The load that was served in a period: R times the cost at the levels given, of each site and of all.

use super::costs::RequestCosts;
use super::offered::starts;
use super::sense::served_here;
use super::view::PlantView;
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// What the requests of a period took, by the costs known now. Its list is filled anew in each period, in place.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ServedLoad {
    /// U of all starts and rejections, without backlog. Unclipped.
    pub(crate) total: f64,
    /// U of all releases by the linear models, a R + b W.
    pub(crate) linear: f64,
    /// By site of the view.
    pub(crate) sites: Vec<SiteLoad>,
}

/// What the requests of one site took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SiteLoad {
    /// U_i.
    pub(crate) utilization: f64,
    /// The share of the arrivals that was inside the contract.
    pub(crate) guaranteed_share: f64,
}

impl ServedLoad {
    /// What was served in this period.
    pub(crate) fn sum(
        &mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        costs: &RequestCosts<'_>,
    ) -> &Self {
        let (mut total, mut linear) = (0.0, 0.0);
        self.sites.clear();
        self.sites.resize(plant.sites.len(), SiteLoad::default());
        // Arrivals inside the contract, and all arrivals, of the site at this place.
        let (mut guaranteed, mut own) = ((0.0, 0.0), 0);
        for (place, class) in plant.classes.iter().enumerate() {
            let measurement = &measured.classes[class.class];
            if !measurement.active {
                continue;
            }
            let mut served = 0.0;
            for level in class.levels_here() {
                let work = starts(class, measured, level) * costs.priced(place, level);
                (served, total) = (served + work, total + work);
            }
            if class.owns_actuator {
                let window = &measurement.window;
                let work = window.counts.rejected() as f64 / measured.seconds * costs.rejection;
                (served, total) = (served + work, total + work);
                if own != class.site {
                    (own, guaranteed) = (class.site, (0.0, 0.0));
                }
                if !class.exempt {
                    let arrivals = window.counts.arrivals as f64;
                    guaranteed.0 += arrivals * window.guaranteed_share();
                    guaranteed.1 += arrivals;
                }
                let site = &mut self.sites[class.site];
                site.utilization += served;
                site.guaranteed_share = guaranteed.0 / f64::max(guaranteed.1, 1.0);
            }
            linear += costs.linear(class, &served_here(class, measurement));
        }
        (self.total, self.linear) = (total, linear / measured.seconds);
        self
    }
}
