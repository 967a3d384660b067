//! The work of a period, of each site and of all: the started and rejected requests times the cost at their levels.

use super::costs::RequestCosts;
use super::offered::starts;
use super::sense::{link, served_here};
use super::view::{ClassView, PlantView};
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// The load of a period's requests, by the costs known now.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ServedLoad {
    /// U of all starts and rejections, without backlog; of two resources, the larger load (UC eq. 9). It is not clipped at 1,
    /// so the link's load is that of the started responses: a link cannot deliver more than its bandwidth.
    pub(crate) total: f64,
    /// U of the workers' time alone.
    pub(crate) work: f64,
    /// U of all releases by the linear models, a R + b W.
    pub(crate) linear: f64,
    /// By site of the view.
    pub(crate) sites: Vec<SiteLoad>,
}

/// The load of one site's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SiteLoad {
    /// The site's part of the workers' time.
    work: f64,
    /// The site's part of the plant's link.
    link: f64,
    /// The share of the arrivals that was inside the contract.
    pub(crate) guaranteed_share: f64,
}

impl SiteLoad {
    /// U_i: the larger of the site's loads on the two resources, as for the plant.
    pub(crate) fn utilization(&self) -> f64 {
        self.work.max(self.link)
    }
}

impl ServedLoad {
    /// Sums a period.
    pub(crate) fn sum(
        &mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        costs: &RequestCosts<'_>,
    ) -> &Self {
        let (mut total, mut linear) = (0.0, 0.0);
        let has_link = plant.promised.bandwidth_bytes_per_second.is_some();
        self.sites.clear();
        self.sites.resize(plant.sites.len(), SiteLoad::default());
        // Arrivals inside the contract, and all arrivals, of the site `own`.
        let (mut guaranteed, mut own) = ((0.0, 0.0), 0);
        for (index, class) in plant.classes.iter().enumerate() {
            let measurement = &measured.classes[class.class];
            if !measurement.active {
                continue;
            }
            let mut served = 0.0;
            for level in class.levels_here() {
                let work = starts(class, measured, level) * costs.priced(index, level);
                (served, total) = (served + work, total + work);
            }
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
            site.work += served;
            if has_link {
                site.link += link(plant, measured, class);
            }
            site.guaranteed_share = guaranteed.0 / f64::max(guaranteed.1, 1.0);
            linear += costs.linear(class, &served_here(class, measurement));
        }
        self.work = total;
        if let Some(bandwidth) = plant.promised.bandwidth_bytes_per_second {
            total = total.max(started_bytes(plant, measured, costs) / bandwidth);
        }
        (self.total, self.linear) = (total, linear / measured.seconds);
        self
    }
}

/// Bytes per second of the responses that were started, by the mean size at their levels.
#[cold]
#[inline(never)]
fn started_bytes(plant: &PlantView, measured: &Measurement<'_>, costs: &RequestCosts<'_>) -> f64 {
    let active = plant.classes.iter().filter(|class| measured.classes[class.class].active);
    let bytes = |class: &ClassView| {
        let at = |level| starts(class, measured, level) * costs.bytes(class, level);
        class.levels_here().map(at).sum::<f64>()
    };
    active.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::super::costs::CostModel;
    use super::super::view::by_hand::{arrivals, class, learned, measured, plant};
    use super::*;
    use crate::model::Served;
    use crate::request::Reason;

    #[test]
    fn starts_and_rejections_count_at_their_costs_by_site() {
        let own = plant(alloc::vec![class(0, 2), class(1, 2)]);
        let mut classes = [arrivals(100.0, 2), arrivals(40.0, 1)];
        classes[0].window.counts.served[1] = 20;
        classes[0].window.decided[2] = 60;
        classes[1].window.counts.reasons[Reason::Overload as usize] = 50;
        classes[1].served[1] = Served { requests: 40.0, work_seconds: 0.4, bytes: 4e4 };
        let mut learned = [learned(&[0.01, 0.04]), learned(&[0.01, 0.04])];
        learned[1].line = crate::model::LinearModel::known(0.02, 0.0);
        let period = measured(&classes, &[0, 0]);
        let mut model = CostModel::new(&own);
        model.rejection = 0.001;
        let costs = model.learn(&own, &period, &learned);
        let mut served = ServedLoad::default();
        let found = served.sum(&own, &period, &costs);
        let [first, second] = [found.sites[0], found.sites[1]];
        // The first site has 100 starts at 0.01 and 20 at 0.0025 of the plant, the second 40 starts at 0.0025 and 50
        // rejections.
        assert!((first.utilization() - 1.05).abs() < 1e-12 && (second.utilization() - 0.15).abs() < 1e-12);
        assert!((found.total - 1.2).abs() < 1e-12, "{found:?}");
        assert!((found.linear - 40.0 * 0.005).abs() < 1e-12, "by linear models: {found:?}");
        assert_eq!((first.guaranteed_share, second.guaranteed_share), (0.4, 0.0));
    }

    #[test]
    fn a_site_that_fills_the_link_shows_its_part_of_the_link() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.promised.bandwidth_bytes_per_second = Some(1e6);
        let mut classes = [arrivals(10.0, 1), arrivals(10.0, 1)];
        classes[0].window.counts.bytes = 700_000;
        let learned = [learned(&[0.04]), learned(&[0.04])];
        let period = measured(&classes, &[0, 0]);
        let mut model = CostModel::new(&own);
        let costs = model.learn(&own, &period, &learned);
        let mut served = ServedLoad::default();
        let found = served.sum(&own, &period, &costs);
        let [first, second] = [0, 1].map(|site| found.sites[site].utilization());
        assert!((first - 0.7).abs() < 1e-12 && (second - 0.1).abs() < 1e-12, "{first} {second}");
    }

    #[test]
    fn of_two_resources_the_total_is_that_of_the_one_that_is_used_more() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        let classes = [arrivals(20.0, 1), arrivals(40.0, 1)];
        let learned = [learned(&[0.04]), learned(&[0.004])];
        let period = measured(&classes, &[0, 0]);
        let mut total = |bandwidth| {
            own.promised.bandwidth_bytes_per_second = bandwidth;
            let mut model = CostModel::new(&own);
            let costs = model.learn(&own, &period, &learned);
            ServedLoad::default().sum(&own, &period, &costs).total
        };
        // The classes take 0.2 and 0.04 of the workers. 60 responses of 1,000 bytes were started, and none was delivered yet.
        let totals = [None, Some(1e6), Some(5e4)].map(&mut total);
        for (found, wanted) in totals.iter().zip([0.24, 0.24, 1.2]) {
            assert!((found - wanted).abs() < 1e-12, "{totals:?}");
        }
    }
}
