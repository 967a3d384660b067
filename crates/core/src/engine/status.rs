//! The status: assembled from the values that the stages of the last period left, and read by no stage.

use super::Engine;
use super::published_state::PublishedPlant;
use super::reload::ClassNames;
use crate::actuator::levels_by_plant::LevelPart;
use crate::admission::lateness::AcceptedLateness;
use crate::admission::slot_key::SlotKey;
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::WorkerSearch;
use crate::promises::plan::plan;
use crate::scheduling::rank::Standing;
use crate::telemetry::snapshot::{ClassSnapshot, durations, sum_over};
use crate::telemetry::status::{
    ClassStatus, DeadlineStatus, LimitReason, ModelStatus, PartStatus, PlacesStatus, PlantStatus,
    ResponseStatus, SiteStatus, Status,
};
use crate::time::Duration;
use alloc::vec::Vec;
use core::array;

impl Engine {
    /// A snapshot of every plant, site and class, as of the last control period.
    pub fn status(&self) -> Status {
        let names = self.class_names.iter().enumerate();
        let mut classes: Vec<_> = names.map(|(class, names)| self.class_status(class, names)).collect();
        for (class, costs) in self.loops.utilization.iter().flat_map(|one| one.level_costs(&self.loops.costs))
        {
            classes[class].level_cost_seconds = costs;
        }
        for (class, status) in self.response_status() {
            classes[class].response = Some(status);
        }
        for (class, m) in self.loops.utilization.iter().flat_map(UtilizationLoop::site_levels) {
            classes[class].site_level = Some(m);
        }
        let mut sites = alloc::vec![SiteStatus::default(); self.registry.promises.sites.len()];
        for (number, site) in self.loops.utilization.iter().flat_map(UtilizationLoop::sites) {
            sites[number].clone_from(site);
        }
        for (site, numbers) in sites.iter_mut().zip(&self.registry.sites) {
            site.types = self.loops.deadlines.status(numbers.site);
            site.found_types = self.loops.deadlines.found_types(numbers.site);
        }
        let known = |site: usize| {
            self.loops.utilization[self.registry.promises.sites[site].plant].known_of(
                site,
                &self.loops.costs,
                |class| self.sensors.classes.rate(class),
            )
        };
        Status {
            at: self.timers.last_period,
            mode: self.registry.promises.control.mode,
            period: self.registry.promises.control.period,
            rekey: self.registry.promises.control.rekey,
            plants: (0..self.loops.utilization.len()).map(|plant| self.plant_status(plant)).collect(),
            sites,
            plan: plan(&self.registry.promises, known),
            classes,
            rejection_cost_seconds: self.loops.rejection.per_rejection_seconds(),
        }
    }

    /// What [`Engine::status`] says of a plant.
    pub fn plant_status(&self, plant: usize) -> PlantStatus {
        let own @ PublishedPlant { gate, capacity, unfinished, tunnels, .. } =
            &self.published().plants[plant];
        let search = self.loops.searches[plant].as_ref();
        let mut waiting = alloc::vec![0; self.sensors.classes.len()];
        gate.waiting_by_class(&mut waiting);
        PlantStatus {
            workers: capacity.workers(),
            limit: capacity.limit(),
            limit_reason: self.limit_reason(plant),
            available: capacity.available(),
            set_point_reduction: self.loops.delays.set_point_reduction(plant),
            workers_found: search.map(|search| search.found()),
            workers_reported: search.is_some_and(|search| search.is_reported()),
            in_service: gate.in_service(),
            tunnels: tunnels.given(),
            unfinished_seconds: own.has_deadlines().then(|| unfinished.unfinished_seconds()),
            waiting: waiting.iter().sum(),
            removed: !self.registry.plants.contains(&plant),
            places: self.places(plant),
            ..self.loops.utilization[plant].status().clone()
        }
    }

    /// What the status says of the promised response times of each class that has any, by number.
    pub fn response_status(&self) -> impl Iterator<Item = (usize, ResponseStatus)> + '_ {
        self.loops.delays.status().chain(self.loops.ratios.status())
    }

    /// m as applied to a class (its number as in [`Target::class`](crate::request::Target::class)), 0..=M: where several plants
    /// serve its levels, the mean level of its clients.
    pub fn service_level(&self, class: u16) -> f64 {
        self.loops.applied[usize::from(class)].mean()
    }

    /// What is reported of the places at a plant: by this gateway to its server, or by a gateway to this server.
    fn places(&self, plant: usize) -> Option<PlacesStatus> {
        let loads = &self.published().plants[plant].place_loads;
        if self.words.is_some() {
            let reported = loads.reported.read(self.timers.last_period);
            return self.loops.utilization[plant].places_heard(reported, self.timers.period);
        }
        let own = PlacesStatus { taken: loads.own.get().as_part(), heard: None };
        self.registry.promises.plants[plant].decides_itself.then_some(own)
    }

    /// Why a plant is given no more requests at once. Refusals come before an outage, whose available share the status shows
    /// too.
    fn limit_reason(&self, plant: usize) -> Option<LimitReason> {
        let (capacity, promised) =
            (&self.published().plants[plant].capacity, &self.registry.promises.plants[plant]);
        let [_, whole] = capacity.whole();
        let configured = promised.find_workers.is_none().then_some(promised.max_connections);
        let refusals = self.loops.refusals[plant].output();
        // While a higher number is tried, the one that holds again after a refusal counts.
        let ceiling = refusals.tried_from.or(refusals.ceiling);
        let is_lowered = self.loops.searches[plant].as_ref().is_some_and(WorkerSearch::is_lowered);
        if is_lowered
            || ceiling
                .is_some_and(|most| most <= whole && configured.is_none_or(|configured| most < configured))
        {
            Some(LimitReason::Refusals)
        } else if capacity.limit() < whole {
            Some(if capacity.available() < 1.0 { LimitReason::Outage } else { LimitReason::Promises })
        } else {
            let search = self.loops.searches[plant].as_ref().filter(|_| configured.is_none())?;
            Some(if search.is_reported() { LimitReason::Reported } else { LimitReason::Search })
        }
    }

    fn class_status(&self, class: usize, names: &ClassNames) -> ClassStatus {
        let (costs, window) = (&self.loops.costs[class], &self.sensors.classes.measurements()[class].window);
        let workers = f64::from(self.published().plants[names.plant].capacity.workers());
        let (a, b) = costs.line.coefficients();
        let mean_size = window.counts.bytes as f64 / (window.released.max(1)) as f64;
        let totals = ClassSnapshot::sum(&self.sensors.counters, class, names.levels.len());
        let lanes = || self.sensors.counters.iter().map(move |lane| &lane.classes[class]);
        let (queue_delays, response_times) =
            (lanes().map(|class| &class.queue_delays), lanes().map(|class| &class.response_times));
        let service_times = lanes().map(|class| &class.service_times);
        let waited_ns = sum_over(&self.sensors.counters, class, |class| &class.waited_ns);
        let responses = array::from_fn(|digit| lanes().map(|class| class.responses[digit].get()).sum());
        let mean = |sum_ns: u64, count: u64| Duration::from_nanos(sum_ns.checked_div(count).unwrap_or(0));
        ClassStatus {
            site: names.site.clone(),
            class: names.class.clone(),
            removed: names.removed,
            plant: names.plant,
            levels: names.levels.clone(),
            service_level: self.loops.applied[class].mean(),
            parts: self.loops.applied[class].parts().iter().map(|part| self.part_status(part)).collect(),
            request_rate: window.counts.arrivals as f64 / self.timers.seconds,
            bandwidth: window.counts.bytes as f64 / self.timers.seconds,
            model: ModelStatus {
                per_request_seconds: a.map(|a| a / workers),
                per_byte_seconds: b.map(|b| b / workers),
                confidence: costs.line.confidence(mean_size),
                frozen: costs.frozen,
            },
            site_level: None,
            response: None,
            deadline: self.deadline_status(class, names.plant),
            level_cost_seconds: Vec::new(),
            heavy_clients: self.sensors.heavy.class(class).heavy().len() as u32,
            counts: totals.counts,
            queue_delays: durations(queue_delays, totals.started, totals.queue_delay_ns),
            response_times: durations(response_times, totals.released, totals.response_ns),
            service_times: durations(
                service_times,
                totals.released,
                totals.response_ns.saturating_sub(waited_ns),
            ),
            responses,
            queue_delay: mean(window.queue_delay_ns, window.started),
            response_time: mean(window.response_ns, window.released),
        }
    }

    fn part_status(&self, &LevelPart { plant, base, top, m, .. }: &LevelPart) -> PartStatus {
        let plant = self.loops.utilization[plant].status().name.clone();
        PartStatus { plant, base, top, service_level: m }
    }

    /// The deadline of a class, at the plant that serves it.
    fn deadline_status(&self, class: usize, plant: usize) -> Option<DeadlineStatus> {
        let (own, plant) = (&self.published().classes[class], &self.published().plants[plant]);
        let deadline = own.terms.deadline?;
        let missed = sum_over(&self.sensors.counters, class, |counters| &counters.past_deadline);
        let site = self.registry.sites.iter().find(|site| site.classes.contains(&(class as u16)))?.site;
        let key = SlotKey::new(own.rank(Standing::Ordinary), site, None);
        let wait = plant.unfinished.wait_of(key, plant.workers(None));
        let accepted = plant.unfinished.accepted_lateness(key, AcceptedLateness::promised(&own.terms));
        let (in_time, admitted_from) = (100.0 * own.terms.in_time, 100.0 * (1.0 - accepted.chance));
        Some(DeadlineStatus { deadline, in_time, admitted_from, wait, missed })
    }
}
