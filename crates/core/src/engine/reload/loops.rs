//! The loops take new promises, and keep what they learned.

use super::classes::{moved, plants_of};
use super::{ranks, response_promise};
use crate::actuator::levels_by_plant::parts;
use crate::control::Loop;
use crate::control::delay::DelayPromise;
use crate::control::ratio::RatioPromise;
use crate::control::utilization::{PlantReload, UtilizationLoop};
use crate::control::workers::{Guard, GuardedService, RefusalLoop, SearchPromise, WorkerSearch};
use crate::engine::Engine;
use crate::engine::control_period::publish_turns;
use crate::promises::registry::{RegisteredClass, Registry};
use crate::promises::{Plant, Promises};
use crate::telemetry::monitor::PlantMonitor;
use crate::time::Duration;
use alloc::vec::Vec;

impl Engine {
    /// The utilization loops.
    pub(super) fn reload_loops(&mut self, was: &Registry) {
        let known =
            self.registry.promises.plants.iter().filter_map(|p| p.costs).map(|c| c.per_rejection_seconds);
        self.loops.rejection.promised = known.reduce(f64::max);
        for (number, one) in self.loops.utilization.iter_mut().enumerate() {
            let m = |class: usize, m: f64| {
                let mut members = self.registry.classes();
                let site = members.find(|member| member.class == class).map(|member| member.site);
                site.map_or(m, |site| moved((&self.class_names[class], site), number, m))
            };
            one.reload(PlantReload { was: &was.promises, registry: &self.registry, number, m: &m });
        }
        self.reload_searches();
        for number in self.loops.utilization.len()..self.registry.promises.plants.len() {
            self.loops.utilization.push(UtilizationLoop::new(&self.registry, number));
            self.sensors.plants.push(PlantMonitor::default());
        }
        self.loops.order = order(&self.registry.promises);
    }

    /// The worker searches; a number that was found stays while the bounds stay.
    fn reload_searches(&mut self) {
        let guards = guards(&self.registry);
        let plants = &self.registry.promises.plants;
        self.loops.searches.resize_with(plants.len(), || None);
        self.loops.refusals.resize_with(plants.len(), RefusalLoop::new);
        let searches = self.loops.searches.iter_mut().zip(plants).zip(guards);
        for (number, ((search, plant), guard)) in searches.enumerate() {
            match (plant.find_workers, &mut *search) {
                (None, _) => *search = None,
                (Some(bounds), Some(known)) => {
                    known.reload(SearchPromise { bounds, guard, reports: plant.reports_workers })
                }
                (Some(bounds), None) => {
                    let known = self.lane.published.plants.get(number);
                    let refused_us = known.map_or(0, |plant| plant.unfinished.refused_us());
                    let new = search.insert(WorkerSearch::new(bounds, plant.workers, guard));
                    new.begin(&self.sensors.counters, number, refused_us);
                }
            }
        }
    }

    /// The loops of promised delays and ratios.
    pub(super) fn reload_departures(&mut self) {
        let (mut delays, mut ratios) = (Vec::new(), Vec::new());
        let controlled = || self.registry.classes().filter(|member| !member.exempt);
        for member in controlled() {
            let (class, plant) = (member.class, member.site.plant);
            let rank = ranks(member.site, member.index)[0];
            let others = || controlled().filter(|other| other.site.plant == plant && other.class != class);
            let is_below = |other: &RegisteredClass<'_>| {
                rank.is_above(&ranks(other.site, other.index)[0], other.site_number == member.site_number)
            };
            // Requests beyond the contract of another site yield to a delay, whatever their rank.
            let is_kept = |other: &RegisteredClass<'_>| {
                let is_of_contract =
                    other.site.guarantee.is_some() && other.site_number != member.site_number;
                !is_of_contract || response_promise(other.site, other.index).0.is_some()
            };
            match response_promise(member.site, member.index) {
                (Some(delay), _) => {
                    let (below, others) = others().partition::<Vec<_>, _>(is_below);
                    let kept =
                        others.iter().filter(|other| is_kept(other)).map(|other| other.class).collect();
                    let below = below.iter().map(|other| other.class).collect();
                    delays.push(DelayPromise { class, plant, rank, delay, below, kept });
                }
                (None, Some(delta)) => {
                    let site = member.site_number;
                    let queue = &self.registry.promises.plants[plant].queue;
                    let longest = HELD_OF_WAIT * queue.longest_wait().as_secs_f64();
                    let longest_hold = if member.site.strict_ratios { longest } else { 0.0 };
                    ratios.push(RatioPromise { class, site, plant, delta, longest_hold });
                }
                (None, None) => {}
            }
        }
        self.loops.delays.reload((delays, self.registry.promises.control.delay_law));
        self.loops.ratios.reload(ratios);
        publish_turns(&self.lane.published, self.loops.ratios.turns());
    }
}

/// The guard of each plant's search: how long service of the promised classes may take there.
fn guards(registry: &Registry) -> Vec<Guard> {
    let plants = &registry.promises.plants;
    let guard = |plant: &Plant| Guard::new(plant.response_time_limit.unwrap_or(Duration::MAX));
    let mut guards: Vec<Guard> = plants.iter().map(guard).collect();
    for member in registry.classes() {
        let (delay, ratio) = response_promise(member.site, member.index);
        let deadline = member.site.deadline_of(member.index).filter(|_| !member.exempt);
        let Some(most) = delay.map(Guard::most).or(deadline.map(|deadline| deadline / 2)) else { continue };
        if delay.is_some() || ratio.is_some() {
            guards[member.site.plant].add(member.class, most, GuardedService::All);
            continue;
        }
        for (plant, base, top) in parts(&plants_of(member.site)) {
            guards[plant].add(member.class, most, GuardedService::AtLevels(base + 1..=top));
        }
    }
    guards
}

/// The part of the longest wait for which a ratio may hold a request: a request that is held for all of it would expire.
const HELD_OF_WAIT: f64 = 0.5;

/// The order in which the loops of the plants are stepped, so that a plant knows in the same period what is passed down to it.
/// Where two plants pass requests down to each other, one of them knows it a period later.
fn order(promises: &Promises) -> Vec<usize> {
    let mut depths = alloc::vec![0; promises.plants.len()];
    for site in &promises.sites {
        let plants: Vec<usize> = site.plants().collect();
        for (depth, (plant, ..)) in parts(&plants).enumerate() {
            depths[plant] = depth.max(depths[plant]);
        }
    }
    let mut order: Vec<usize> = (0..depths.len()).collect();
    order.sort_by_key(|plant| depths[*plant]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{Site, WorkerBounds};
    use crate::request::{Arrival, Outcome, Service, Target, Token, Verdicts};
    use crate::time::Instant;

    #[test]
    fn a_plant_is_judged_by_its_own_service_where_a_class_has_levels_at_several() {
        let mut site = Site::new("shop", &["light", "full"]);
        (site.levels[0].plant, site.deadline) = (Some(1), Some(Duration::from_secs(1)));
        let bounds = WorkerBounds { least: 1, most: 64 };
        let plant = |name: &str| Plant { find_workers: Some(bounds), ..Plant::new(name, 8) };
        let plants = alloc::vec![plant("app"), plant("static")];
        let promises = Promises { plants, sites: alloc::vec![site], ..Promises::default() };
        let (mut engine, mut lanes) = Engine::new(&promises, 1, 42).expect("valid promises");
        let mut guards = guards(&engine.registry);
        let mut slack =
            |engine: &Engine| [0, 1].map(|plant| guards[plant].slack(&engine.sensors.counters, 0.0));
        assert_eq!(slack(&engine), [0.5, 0.5], "half of the deadline");
        let (lane, mut verdicts) = (&mut lanes[0], Verdicts::new());
        let now = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        for (m, level, ms) in [(2.0, 2, 80), (1.0, 1, 900)] {
            engine.loops.applied[0].set(0, m, 2.0 - m);
            engine.published().classes[0].words.set_levels(&engine.loops.applied[0]);
            let target = Target { class: 0, client: 7, ..Target::default() };
            let Arrival::Serve(mut permit) = lane.arrive(now(1), target, Token(0), &mut verdicts) else {
                panic!("workers are free")
            };
            assert_eq!(permit.level(), level);
            lane.release(now(1 + ms), &mut permit, Service::default(), &mut verdicts);
            lane.depart(now(1 + ms), permit, Outcome::Completed, &mut verdicts);
        }
        let [upper, lower] = slack(&engine);
        assert!((upper - 0.42).abs() < 1e-9 && (lower + 0.4).abs() < 1e-9, "{upper} and {lower} s");
    }
}
