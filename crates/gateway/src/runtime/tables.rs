//! What a reload replaces: the settings, and what serves each plant. Indexed by the engine's numbers, which are for life.
//!
//! A thread keeps the tables in force and compares a generation word between requests; a request keeps the tables that it
//! began with. Tables are published before the engine takes the promises that go with them, and a thread compares
//! generations after it has classified a request: every number that the engine gave is therefore found in the tables.

use crate::files::Files;
use crate::settings::{Backend, Settings};
use crate::upstream::pool::{ConnectionBounds, Upstream};
use plimsoll_core::promises::{Mode, Plant, Promises, Sense};
use plimsoll_core::{Changes, Reload};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};

/// One generation.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Backends by plant, rewrites by site.
    pub settings: Settings,
    /// By plant; `None` for a folder.
    pub upstreams: Vec<Option<Arc<Upstream>>>,
    /// By plant: whether its utilization is what the plant reports.
    pub reported: Vec<bool>,
    /// By plant: the response header in which the plant reports what a request cost.
    pub cost_headers: Vec<Option<String>>,
    /// By plant.
    pub workers: Vec<u32>,
}

/// The tables in force, for all threads.
#[derive(Debug)]
pub(crate) struct PublishedTables {
    generation: AtomicU64,
    current: Mutex<Arc<Tables>>,
}

impl PublishedTables {
    pub(crate) fn new(tables: Tables) -> Self {
        PublishedTables { generation: AtomicU64::new(1), current: Mutex::new(Arc::new(tables)) }
    }

    /// A number that grows with each publication.
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

/// The tables as a thread keeps them: a reference count of its own instead of one that all threads write.
pub(crate) struct ThreadTables {
    pub generation: u64,
    tables: Arc<Tables>,
    /// By plant; `None` for an upstream.
    pub files: Vec<Option<Rc<RefCell<Files>>>>,
}

impl std::ops::Deref for ThreadTables {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl ThreadTables {
    /// The tables in force. A folder that stays keeps what is in memory; one that cannot be opened any more is as it
    /// was, or `None`.
    pub(crate) fn new(
        published: &PublishedTables,
        before: Option<&ThreadTables>,
        failed: &mut Option<io::Error>,
    ) -> Self {
        // The generation is read first: tables published in between are then taken once more, not missed.
        let (generation, tables) = (published.generation(), published.current());
        let open = |(plant, backend): (usize, &Backend)| {
            let Backend::Files(settings) = backend else { return None };
            let known = before.and_then(|before| before.files.get(plant).cloned().flatten());
            let same = before.is_some_and(|before| before.settings.backends.get(plant) == Some(backend));
            if known.is_some() && same {
                return known;
            }
            match Files::new(settings.clone()) {
                Ok(files) => Some(Rc::new(RefCell::new(files))),
                Err(error) => {
                    *failed = Some(error);
                    known
                }
            }
        };
        let files = tables.settings.backends.iter().enumerate().map(open).collect();
        ThreadTables { generation, files, tables }
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

    /// Brings the pools into line with these tables, now in force: bounds as promised, and no idle connection in a pool
    /// that is out of use. Requests under way finish on their connections.
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

    /// Adds to `changes` what changed of plants and sites besides their promises: addresses, folders, rewrites.
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

fn bounds(plant: &Plant, mode: Mode) -> ConnectionBounds {
    // The gate bounds the requests in service, and makes the others wait, in the mode `control` alone.
    let kept = plant.max_connections as usize;
    let open = if mode == Mode::Control { kept } else { usize::MAX };
    ConnectionBounds { open, kept }
}
