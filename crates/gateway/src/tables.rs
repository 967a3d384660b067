//! What a reload swaps: the settings, and what serves each plant. Indexed by the engine's numbers, which are for life.
//!
//! A thread holds the tables of now and looks at a generation word between requests; a request keeps those that it
//! began with. They are published before the engine takes the promises that go with them, and a thread looks after it
//! has classified: so whoever was given a number finds it here.

use crate::settings::{Backend, Settings};
use crate::upstream::pool::{Bounds, Upstream};
use plimsoll_core::promises::{Mode, Plant, Promises, Sense};
use plimsoll_core::{Changes, Reload};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};

/// One generation.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Backends by plant, rewrites by site.
    pub settings: Settings,
    /// By plant; `None` for a folder.
    pub upstreams: Vec<Option<Arc<Upstream>>>,
    /// By plant: its utilization is what it reports.
    pub reported: Vec<bool>,
    /// By plant: the response header in which it reports what a request cost.
    pub cost_headers: Vec<Option<String>>,
    /// By plant.
    pub workers: Vec<u32>,
}

/// Where the tables of now are found.
#[derive(Debug)]
pub(crate) struct Exchange {
    generation: AtomicU64,
    current: Mutex<Arc<Tables>>,
}

impl Exchange {
    pub(crate) fn new(tables: Tables) -> Self {
        Exchange { generation: AtomicU64::new(1), current: Mutex::new(Arc::new(tables)) }
    }

    /// Moves with each publication.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Tables> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn publish(&self, tables: Tables) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(tables);
        self.generation.fetch_add(1, Release);
    }
}

impl Tables {
    /// The tables after these. Upstreams whose addresses stay keep their connections, health and reports.
    pub(crate) fn next(
        &self,
        settings: Settings,
        promises: &Promises,
        reload: &Reload,
        threads: usize,
    ) -> Tables {
        let mut next = Tables {
            upstreams: self.upstreams.clone(),
            reported: self.reported.clone(),
            cost_headers: self.cost_headers.clone(),
            workers: self.workers.clone(),
            settings,
        };
        let mut backends = self.settings.backends.clone();
        let new = std::mem::take(&mut next.settings.backends).into_iter();
        for ((backend, plant), number) in new.zip(&promises.plants).zip(reload.plant_numbers()) {
            if number >= backends.len() {
                backends.resize(number + 1, Backend::Upstream { addresses: Vec::new() });
                next.upstreams.resize(number + 1, None);
                next.reported.resize(number + 1, false);
                next.cost_headers.resize(number + 1, None);
                next.workers.resize(number + 1, 1);
            }
            let bounds = bounds(plant, promises.control.mode);
            let same = backends[number] == backend;
            next.upstreams[number] = match (&backend, self.upstreams.get(number)) {
                (Backend::Files(_), _) => None,
                (Backend::Upstream { .. }, Some(Some(known))) if same => Some(known.clone()),
                (Backend::Upstream { addresses }, _) => {
                    Some(Arc::new(Upstream::new(addresses.clone(), bounds, threads)))
                }
            };
            next.reported[number] = plant.sense == Sense::Reported;
            next.cost_headers[number].clone_from(&plant.cost_header);
            next.workers[number] = plant.workers;
            backends[number] = backend;
        }
        next.settings.backends = backends;
        let mut rewrites = self.settings.rewrites.clone();
        let mut new = std::mem::take(&mut next.settings.rewrites).into_iter();
        for site in reload.site_numbers().map(usize::from) {
            rewrites.resize(rewrites.len().max(site + 1), Vec::new());
            rewrites[site] = new.next().unwrap_or_default();
        }
        next.settings.rewrites = rewrites;
        next
    }

    /// Brings the pools of these tables, now in force, into line: bounds as promised, and those that are out of use
    /// keep no connection. Requests under way finish on theirs.
    pub(crate) fn settle_pools(&self, before: &Tables, promises: &Promises, reload: &Reload) {
        for (plant, number) in promises.plants.iter().zip(reload.plant_numbers()) {
            if let Some(upstream) = &self.upstreams[number] {
                upstream.serve_within(bounds(plant, promises.control.mode));
            }
        }
        let promised: Vec<usize> = reload.plant_numbers().collect();
        for (number, old) in before.upstreams.iter().enumerate() {
            let Some(old) = old else { continue };
            let same = self.upstreams[number].as_ref().is_some_and(|new| Arc::ptr_eq(old, new));
            if !same || !promised.contains(&number) {
                old.retire();
            }
        }
    }

    /// Notes what else changed of plants and sites than what was promised: addresses, folders, rewrites.
    pub(crate) fn note_changes(
        &self,
        before: &Tables,
        promises: &Promises,
        reload: &Reload,
        changes: &mut Changes,
    ) {
        let differ = |number: usize| {
            let new = &self.settings.backends[number];
            before.settings.backends.get(number).is_some_and(|old| old != new)
        };
        for (plant, number) in promises.plants.iter().zip(reload.plant_numbers()) {
            let upstreams = &mut changes.plants;
            if differ(number)
                && !upstreams.added.contains(&plant.name)
                && !upstreams.changed.contains(&plant.name)
            {
                upstreams.changed.push(plant.name.clone());
            }
        }
        for (site, number) in promises.sites.iter().zip(reload.site_numbers()) {
            let number = usize::from(number);
            let none = Vec::new();
            let [old, new] =
                [before, self].map(|tables| tables.settings.rewrites.get(number).unwrap_or(&none));
            let sites = &mut changes.sites;
            if old != new && !sites.added.contains(&site.name) && !sites.changed.contains(&site.name) {
                sites.changed.push(site.name.clone());
            }
        }
    }
}

fn bounds(plant: &Plant, mode: Mode) -> Bounds {
    // Only in control does the gate bound the requests in service, and make the others wait.
    let kept = plant.max_connections as usize;
    let open = if mode == Mode::Control { kept } else { usize::MAX };
    Bounds { open, kept }
}
