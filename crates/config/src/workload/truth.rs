//! The servers' true capacity: the route from a host to a plant, the capacity for a mix of pages, and the plants that have no
//! service time.

use super::UntimedPlant;
use super::plants::TrueServer;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::Pattern;
use plimsoll_sim::workload::Page;
use std::collections::BTreeSet;

/// The true servers, and the routes of requests to them.
pub(super) struct TrueServers<'a> {
    pub(super) promises: &'a Promises,
    pub(super) plants: &'a [TrueServer],
}

impl TrueServers<'_> {
    /// The site for a host: the first site whose host matches, as in the engine.
    pub(super) fn site_of(&self, host: &str) -> Option<usize> {
        let takes = |pattern: &String| Pattern::new(pattern).matches_ignoring_case(host);
        self.promises.sites.iter().position(|site| site.hosts.is_empty() || site.hosts.iter().any(takes))
    }

    /// Requests per second at which the first resource that these pages need is full: lambda such that max over plants of
    /// (lambda S / s, lambda B / b) is 1. `None` if the service time of a request is not known.
    pub(super) fn capacity(&self, pages: &[Page]) -> Option<f64> {
        let mut demands = vec![Demand::default(); self.plants.len()];
        let mut weights = 0.0;
        for page in pages {
            let plant = self.promises.sites.get(self.site_of(&page.host)?)?.plant;
            let demand = demands.get_mut(plant)?;
            demand.seconds += page.weight * self.plants.get(plant)?.service_of(page)?;
            demand.bytes += page.weight * page.bytes;
            weights += page.weight;
        }
        let full = |(demand, known): (&Demand, &TrueServer)| {
            let servers = f64::from(known.plant.discipline.servers());
            (demand.seconds / servers).max(known.plant.link.map_or(0.0, |link| demand.bytes / link))
        };
        let fullest = demands.iter().zip(self.plants).map(full).fold(0.0, f64::max);
        (fullest > 0.0).then(|| weights / fullest)
    }

    /// The plants that need a service time if a request without its own comes to `site`: the plants of its levels.
    pub(super) fn needs(&self, site: usize) -> BTreeSet<usize> {
        let Some(promise) = self.promises.sites.get(site) else { return BTreeSet::new() };
        let plants = promise.levels.iter().map(|level| level.plant.unwrap_or(promise.plant));
        plants.filter(|plant| self.plants.get(*plant).is_some_and(|known| !known.timed())).collect()
    }

    /// The plants that need a service time unless each line of a log has its own.
    pub(super) fn untimed_by_logs(&self) -> BTreeSet<usize> {
        (0..self.promises.sites.len()).flat_map(|site| self.needs(site)).collect()
    }

    /// The message about a plant without a service time.
    pub(super) fn untimed(&self, plant: usize) -> UntimedPlant {
        let name = self.promises.plants.get(plant).map_or("", |plant| plant.name.as_str());
        UntimedPlant {
            plant,
            message: format!("nobody says what a request takes of `{name}`"),
            help: format!(
                "write `costs = {{ request = \"5ms\" }}`, in time of all workers, to the capacity of `{name}` in the \
                 configuration (`plimsoll profile` measures it), or one worker's time in a workload, `[plant.{name}]` \
                 with `service = \"40ms\"`"
            ),
        }
    }
}

/// The host of a request that names none: the host of the only site; empty if there are several sites.
pub(super) fn default_host(promises: &Promises) -> String {
    let [site] = promises.sites.as_slice() else { return String::new() };
    // A star may stand for no letters at all.
    site.hosts.first().map(|host| host.replace('*', "")).unwrap_or_default()
}

/// What a unit of weight takes of a plant.
#[derive(Clone, Copy, Default)]
struct Demand {
    seconds: f64,
    bytes: f64,
}
