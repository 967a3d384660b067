//! The offered load: R times the cost at the level given, unclipped, as a function of m, and of the level that was given.

use super::{Period, UtilizationLoop};
use crate::control::Demand;
use crate::control::allocation::sharing::{Load, Sharing};
use crate::control::utilization::class_view::Governed;

impl UtilizationLoop {
    /// Offered load as a function of one m, of the rates and costs known now.
    pub(crate) fn demand(&self, period: &Period<'_>) -> Demand {
        let top = self.classes.iter().filter(|c| c.ours && !c.exempt).map(|c| c.top).max().unwrap_or(0);
        let mut demand = Demand { top: top as u8, ..Demand::default() };
        for class in &self.classes {
            if Self::is_quiet(class, period) {
                continue;
            }
            for level in 0..=top {
                let given = if class.exempt { class.top } else { level.min(class.top) };
                let load = self.load(class, given, period);
                demand.arriving[level] += load.arriving;
                demand.link[level] += load.link;
                demand.waiting[level] += load.waiting;
            }
        }
        demand
    }

    /// The same of a plant that is shared, with its parts by site and priority.
    pub(crate) fn parts(&mut self, period: &Period<'_>, sharing: &mut Sharing) -> Demand {
        sharing.clear();
        for (number, class) in self.classes.iter().enumerate() {
            let monitor = &period.monitors[class.class];
            if Self::is_quiet(class, period) {
                continue;
            }
            let fixed = if class.exempt { 1.0 } else { monitor.window.guaranteed_share() };
            sharing.take(number, class, fixed, |level| self.load(class, level, period));
        }
        for index in 0..self.sites.len() {
            let first = self.sites[index].classes.start;
            let known = || self.known(&self.sites[index], period.monitors);
            self.sites[index].status.utilization_promised = sharing.promise(first, known);
        }
        sharing.demand()
    }

    /// Most classes are quiet most of the time: they ask for nothing at any level.
    fn is_quiet(class: &Governed, period: &Period<'_>) -> bool {
        let monitor = &period.monitors[class.class];
        let quiet = if class.ours { monitor.rate.mean() == 0.0 } else { !monitor.active };
        quiet && period.waiting[class.class] == 0
    }

    /// What a class brings at a level.
    fn load(&self, class: &Governed, given: usize, period: &Period<'_>) -> Load {
        let monitor = &period.monitors[class.class];
        let (arriving, link) = if !class.ours {
            self.sent_here(class, period)
        } else if given == 0 {
            (monitor.rate.mean() * self.rejection_cost, 0.0)
        } else {
            let bytes = if class.here[given] { monitor.costs[given].bytes().unwrap_or(0.0) } else { 0.0 };
            (monitor.rate.mean() * class.costs[given], monitor.rate.mean() * bytes)
        };
        let waiting = match period.waiting[class.class] {
            0 => 0.0,
            waiting => f64::from(waiting) / period.nominal_seconds * class.costs[class.level_at(given)],
        };
        let link = self.plant.bandwidth_bytes_per_second.map_or(0.0, |limit| link / limit);
        Load { arriving, link, waiting }
    }

    /// Work and bytes per second of a class that another loop sends here: as much as came, whatever our m.
    fn sent_here(&self, class: &Governed, period: &Period<'_>) -> (f64, f64) {
        let monitor = &period.monitors[class.class];
        let at = |level| {
            let rate = class.starts(monitor, level, period.seconds);
            (rate * class.costs[level], rate * monitor.costs[level].bytes().unwrap_or(0.0))
        };
        class.levels_here().map(at).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// R times the cost at the level given in this period, of each site and of all.
    pub(crate) fn served(&mut self, period: &Period<'_>) -> f64 {
        let mut sum = 0.0;
        let mut model = 0.0;
        let mut guaranteed = (0.0, 0.0);
        let mut own = 0;
        for site in &mut self.sites {
            (site.status.utilization, site.status.guaranteed_share) = (0.0, 0.0);
        }
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            if !monitor.active {
                continue;
            }
            let mut served = 0.0;
            for level in class.levels_here() {
                let rate = class.starts(monitor, level, period.seconds);
                let work = rate * class.costs[level];
                (served, sum) = (served + work, sum + work);
            }
            if class.ours {
                let work = monitor.window.counts.rejected() as f64 / period.seconds * self.rejection_cost;
                (served, sum) = (served + work, sum + work);
                while self.sites[own].number != class.site {
                    (own, guaranteed) = (own + 1, (0.0, 0.0));
                }
                if !class.exempt {
                    let arrivals = monitor.window.counts.arrivals as f64;
                    guaranteed.0 += arrivals * monitor.window.guaranteed_share();
                    guaranteed.1 += arrivals;
                }
                let status = &mut self.sites[own].status;
                status.utilization += served;
                status.guaranteed_share = guaranteed.0 / f64::max(guaranteed.1, 1.0);
            }
            let (a, b) = monitor.line.costs();
            let released = class.served(monitor);
            model += (a * released.requests + b * released.bytes) / f64::from(self.plant.workers);
        }
        self.status.utilization_model = model / period.seconds;
        sum
    }
}
