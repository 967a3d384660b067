//! The start of a plant's loop, and how the loop goes on when the promises change.

use super::UtilizationLoop;
use super::client_fractions::ClientFractions;
use super::costs::CostModel;
use super::gateway_places::CountedPart;
use super::laws;
use super::offered::PlantDemand;
use super::retry_after_forecast::ReturningClients;
use super::sense::Sensed;
use super::served::ServedLoad;
use super::view::{ClassView, PlantView};
use crate::control::allocation::Allocation;
use crate::control::allocation::contracts::ContractShares;
use crate::control::cost::shared_machine::WorkerTime;
use crate::promises::Promises;
use crate::promises::registry::Registry;
use crate::telemetry::status::{PlantStatus, SiteStatus};
use alloc::vec::Vec;

/// The part of new promises that the loop of a plant needs.
pub(crate) struct PlantReload<'a> {
    /// The promises until now.
    pub(crate) was: &'a Promises,
    pub(crate) registry: &'a Registry,
    /// The plant's number.
    pub(crate) number: usize,
    /// Maps a class, by number, and its m among its old levels to its m among the new ones.
    pub(crate) m: &'a dyn Fn(usize, f64) -> f64,
}

impl UtilizationLoop {
    /// The loop of plant `number`, with every class at its highest level.
    pub(crate) fn new(registry: &Registry, number: usize) -> Self {
        let control = &registry.promises.control;
        let law = laws::build(&control.law);
        let view = PlantView::new(registry, number);
        let promised = &view.promised;
        let status = PlantStatus {
            name: promised.name.clone(),
            workers: promised.workers,
            set_point: promised.set_point,
            service_level: view.top,
            ..PlantStatus::default()
        };
        UtilizationLoop {
            mode: control.mode,
            law,
            set_point: promised.set_point,
            sensed: Sensed::default(),
            places: CountedPart::default(),
            costs: CostModel::new(&view),
            worker_time: WorkerTime::new(),
            demand: PlantDemand::new(&view),
            served: ServedLoad::default(),
            contracts: ContractShares::new(&view),
            allocation: Allocation::top(&view),
            fractions: ClientFractions::new(&view),
            returning: ReturningClients::default(),
            forgotten: false,
            status,
            sites: site_statuses(&view, number),
            view,
        }
    }

    /// Goes on with new promises.
    pub(super) fn take_over(&mut self, promises: &PlantReload<'_>) {
        let &PlantReload { was, registry, number, m } = promises;
        let control = &registry.promises.control;
        if was.control.law != control.law {
            self.law = laws::build(&control.law);
        }
        let view = PlantView::new(registry, number);
        self.fractions.reload(&self.view, &view);
        self.allocation = self.moved(&view, m);
        let (old, new) = (&was.plants[number], &view.promised);
        self.costs.reload(&view, old.costs != new.costs && new.costs.is_some());
        self.contracts = self.contracts.kept((&self.view, &self.demand), &view);
        self.demand = PlantDemand::new(&view);
        self.status.name.clone_from(&new.name);
        (self.status.workers, self.status.set_point) = (new.workers, new.set_point);
        self.status.service_level = self.allocation.level;
        self.sites = site_statuses(&view, number);
        (self.mode, self.view) = (control.mode, view);
    }

    /// The present allocation among the classes and levels of another view.
    fn moved(&self, view: &PlantView, m: impl Fn(usize, f64) -> f64) -> Allocation {
        let (present, old_top, new_top) = (self.allocation.level, self.view.top, view.top);
        // A class with the most levels has the m of the plant unclamped.
        let stays = |before: &&ClassView| {
            before.top as f64 == old_top && view.classes.iter().any(|class| class.class == before.class)
        };
        let mut moved = Allocation::top(view);
        // This flag is kept, so that the next period publishes to the queue that no class is rejected any more.
        moved.rejects = self.allocation.rejects;
        moved.level = match self.view.classes.iter().find(stays) {
            _ if present >= old_top => new_top,
            Some(class) => m(class.class, present).min(new_top),
            None => present.min(new_top),
        };
        for class in view.classes.iter().filter(|_| view.is_shared) {
            if let Some(before) = self.view.classes.iter().find(|before| before.class == class.class) {
                let known = self.allocation.group_level(&self.view, before).unwrap_or(present);
                moved.set_group_level(view, class, m(class.class, known.min(before.top as f64)));
            }
        }
        moved
    }
}

fn site_statuses(view: &PlantView, plant: usize) -> Vec<SiteStatus> {
    let status =
        |name: &alloc::string::String| SiteStatus { name: name.clone(), plant, ..SiteStatus::default() };
    view.sites.iter().map(|site| status(&site.name)).collect()
}
