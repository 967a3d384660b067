//! The loops take new promises, and keep what they learned.

use super::classes::moved;
use super::{ranks, response_promise};
use crate::control::response::{Promise, Promised};
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::Search;
use crate::engine::Engine;
use crate::engine::published_state::PublishedState;
use crate::promises::registry::{RegisteredClass, Registry};
use crate::telemetry::monitor::PlantMonitor;
use crate::time::Duration;

impl Engine {
    /// The utilization loops.
    pub(super) fn reload_loops(&mut self, was: &Registry) {
        let known =
            self.registry.promises.plants.iter().filter_map(|p| p.costs).map(|c| c.per_rejection_seconds);
        self.loops.rejection.promised = known.reduce(f64::max);
        let m = |class: usize, m: f64| {
            let site = self.registry.classes().find(|member| member.class == class).map(|member| member.site);
            site.map_or(m, |site| moved(&self.rows[class].levels, site, m))
        };
        for (number, one) in self.loops.utilization.iter_mut().enumerate() {
            one.reload(&was.promises, &self.registry, number, m);
        }
        self.reload_searches();
        for number in self.loops.utilization.len()..self.registry.promises.plants.len() {
            self.loops.utilization.push(UtilizationLoop::new(&self.registry, number));
            self.sensors.plants.push(PlantMonitor::default());
        }
    }

    /// The worker searches; a number that was found stays while the bounds stay.
    fn reload_searches(&mut self) {
        let plants = &self.registry.promises.plants;
        self.loops.searches.resize_with(plants.len(), || None);
        for (search, plant) in self.loops.searches.iter_mut().zip(plants) {
            let Some(bounds) = plant.find_workers else {
                *search = None;
                continue;
            };
            if search.as_ref().is_none_or(|known| known.finder.bounds() != bounds) {
                let start = search.as_ref().map_or(plant.workers, |known| known.finder.limit());
                *search = Some(Search::new(bounds, start));
            } else if let Some(known) = search {
                known.finder.doubt();
            }
        }
        self.loops.guards =
            plants.iter().map(|plant| plant.response_time_limit.unwrap_or(Duration::MAX)).collect();
        for member in self.registry.classes() {
            let guard = &mut self.loops.guards[member.site.plant];
            if let (Some(delay), _) = response_promise(member.site, member.index) {
                *guard = (*guard).min(delay.target / 2);
            }
        }
    }

    /// The loops of promised response times.
    pub(super) fn reload_responses(&mut self) {
        let shared: &PublishedState = &self.lane.published;
        let others = || self.registry.classes().filter(|other| !other.exempt);
        let promised = self.registry.classes().filter_map(|member| {
            let quota = shared.classes[member.class].quota.clone()?;
            let rank = ranks(member.site, member.index)[0];
            let promise = match response_promise(member.site, member.index) {
                (Some(delay), _) => Promise::Delay(delay),
                (None, ratio) => Promise::Ratio { delta: ratio?, strict: member.site.strict_ratios },
            };
            let plant = member.site.plant;
            let ranks_below = |other: &RegisteredClass<'_>| {
                other.site.plant == plant && ranks(other.site, other.index)[0].band > rank.band
            };
            let below = others().filter(ranks_below).map(|other| other.class).collect();
            Some(Promised {
                class: member.class,
                site: member.site_number,
                plant,
                rank,
                promise,
                quota,
                below,
            })
        });
        let promised = promised.collect();
        self.loops.responses.promise(promised, self.registry.promises.control.delay_law);
    }
}
