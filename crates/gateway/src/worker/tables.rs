//! The data that a reload replaces: the settings, and what serves each plant, by the engine's numbers, which never change.
//!
//! A thread keeps the tables in force and compares a generation word between requests; a request keeps the tables that it
//! began with. Tables are published before the engine takes the promises that go with them, and a thread compares
//! generations after it has classified a request: every number that the engine gave is therefore found in the tables.

use crate::access_log::logs::{AccessLog, AccessLogs};
use crate::files::Files;
use crate::settings::{Backend, HealthCheck, Settings, UpstreamSettings};
use crate::sync::lock;
use crate::traces::exporter::{ExportCounts, TraceExporter};
use crate::upstream::ejection::RosterStatus;
use crate::upstream::pool::ConnectionBounds;
use crate::upstream::servers::Upstream;
use plimsoll_core::promises::{Mode, Plant, Promises, Sense, Site};
use plimsoll_core::time::Instant;
use plimsoll_core::{Changes, Difference, Names, Reload};
use rustls::ClientConfig;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// The settings without the backends, which are in [`Tables::plants`]; rewrites by site.
    pub settings: Settings,
    pub plants: Vec<PlantRow>,
    /// By site: whether only folders serve it.
    of_folders: Vec<bool>,
    pub access_logs: AccessLogs,
    /// `None` if the gateway takes no part in traces.
    pub traces: Option<Arc<TraceExporter>>,
    /// The counts of requests whose spans were sent or lost, since the gateway's start.
    pub traced: Arc<ExportCounts>,
    pub names: Names,
}

/// The parts of tables that come from files, which are read or opened before anybody waits for the tables.
pub(crate) struct TableParts {
    pub threads: usize,
    /// By backend: the TLS configuration of its connections.
    clients: Vec<Option<Arc<ClientConfig>>>,
    /// The access logs for the settings, already open.
    access_logs: Vec<Arc<AccessLog>>,
}

impl TableParts {
    /// Reads the files of authorities, and opens access logs that are not open `before`.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(crate) fn prepare(
        settings: &Settings,
        threads: usize,
        before: &AccessLogs,
    ) -> Result<Self, Vec<String>> {
        let (mut clients, mut wrong) = (Vec::new(), Vec::new());
        for backend in &settings.backends {
            let tls = match backend {
                Backend::Upstream(upstream) => upstream.tls.as_ref().zip(Some(upstream.http2)),
                Backend::Files(_) => None,
            };
            let client = tls.map(|(tls, http2)| tls.prepare(http2)).transpose();
            clients.push(client.map_err(|error| wrong.push(error)).ok().flatten());
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let access_logs = before.open(&settings.access_log).map_err(|error| vec![error.to_string()])?;
        Ok(TableParts { threads, clients, access_logs })
    }
}

/// What serves a plant.
#[derive(Clone, Debug)]
pub(crate) struct PlantRow {
    pub backend: Backend,
    /// `None` for a folder.
    pub upstream: Option<Arc<Upstream>>,
    /// Whether the utilization is the one that the plant's server reports.
    pub reported: bool,
    /// Whether the server shares this machine, so that the utilization is that of its workers.
    pub same_host: bool,
    /// Whether the server stops working on a request when its connection is closed.
    pub stops_when_abandoned: bool,
    /// Whether the server's own processes decide on levels, and report them.
    pub decides_itself: bool,
    /// The response header in which the plant reports what a request cost.
    pub cost_header: Option<String>,
    pub workers: u32,
}

#[derive(Debug)]
pub(crate) struct PublishedTables {
    generation: AtomicU64,
    current: Mutex<Arc<Tables>>,
}

impl PublishedTables {
    pub(crate) fn new(tables: Tables) -> Self {
        PublishedTables { generation: AtomicU64::new(1), current: Mutex::new(Arc::new(tables)) }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Tables> {
        lock(&self.current).clone()
    }

    pub(crate) fn publish(&self, tables: Tables) {
        let mut current = lock(&self.current);
        *current = Arc::new(tables);
        self.generation.fetch_add(1, Release);
    }
}

/// The tables as a thread keeps them: a reference count of its own instead of one that all threads write.
pub(crate) struct ThreadTables {
    pub generation: u64,
    tables: Arc<Tables>,
    /// The file servers by plant; `None` for an upstream.
    pub files: Vec<Option<Rc<RefCell<Files>>>>,
}

impl std::ops::Deref for ThreadTables {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl ThreadTables {
    /// The tables in force. A folder that stays, or can no longer be opened, keeps its file server.
    pub(crate) fn new(
        published: &PublishedTables,
        before: Option<&ThreadTables>,
        failed: &mut Option<io::Error>,
    ) -> Self {
        // The generation is read first: tables that are published in between are then taken once more, and not missed.
        let (generation, tables) = (published.generation(), published.current());
        let open = |(plant, row): (usize, &PlantRow)| {
            let Backend::Files(settings) = &row.backend else { return None };
            let known = before.and_then(|before| before.files.get(plant).cloned().flatten());
            if known.is_some() && before.is_some_and(|before| !row.differs(before.plants.get(plant))) {
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
        let files = tables.plants.iter().enumerate().map(open).collect();
        ThreadTables { generation, files, tables }
    }
}

impl Tables {
    /// The tables that follow these. Upstreams keep their pools, and the servers whose addresses stay. Unchanged access logs
    /// stay open, and an unchanged exporter of traces stays.
    ///
    /// # Errors
    /// The name for which no certificate can exist, or the thread that could not be started.
    pub(crate) fn next(
        &self,
        settings: Settings,
        promises: &Promises,
        reload: &Reload,
        parts: &TableParts,
    ) -> io::Result<Tables> {
        let open = parts.access_logs.clone();
        let access_logs = self.access_logs.next(open, &settings.access_log, reload.site_numbers());
        let names = self.names.next(reload);
        let traces = self.traces_for(&settings)?;
        let (plants, traced) = (self.plants.clone(), self.traced.clone());
        let of_folders = by_number(&self.of_folders, are_of_folders(&settings.backends, promises), reload);
        let mut next = Tables { plants, of_folders, settings, access_logs, traces, traced, names };
        let backends = std::mem::take(&mut next.settings.backends).into_iter();
        let backends = backends.zip(&parts.clients);
        for (((backend, client), plant), number) in backends.zip(&promises.plants).zip(reload.plant_numbers())
        {
            let upstream = match &backend {
                Backend::Files(_) => None,
                Backend::Upstream(settings) => {
                    let pool = (bounds(plant, promises.control.mode), parts.threads);
                    let known = self.plants.get(number).and_then(|row| row.like(settings));
                    let upstream = match known {
                        Some(known) => known.with(settings, client.as_ref()),
                        None => Upstream::new(settings, client.as_ref(), pool),
                    };
                    Some(Arc::new(upstream.map_err(io::Error::other)?))
                }
            };
            let reported = plant.sense == Sense::Reported;
            let same_host = plant.same_host && !reported;
            let (cost_header, workers) = (plant.cost_header.clone(), plant.workers);
            let stops_when_abandoned = plant.stops_when_abandoned;
            let row = PlantRow {
                backend,
                upstream,
                reported,
                same_host,
                stops_when_abandoned,
                decides_itself: plant.decides_itself,
                cost_header,
                workers,
            };
            // Numbers have no gaps, so that each new row is filled in later in the loop.
            next.plants.resize(next.plants.len().max(number + 1), row.clone());
            next.plants[number] = row;
        }
        next.settings.rewrites = by_number(&self.settings.rewrites, next.settings.rewrites, reload);
        next.settings.headers = by_number(&self.settings.headers, next.settings.headers, reload);
        let logs = &mut next.settings.access_log.sites;
        *logs = by_number(&self.settings.access_log.sites, std::mem::take(logs), reload);
        Ok(next)
    }

    /// The exporter for `settings`: the present one, or a new one.
    fn traces_for(&self, settings: &Settings) -> io::Result<Option<Arc<TraceExporter>>> {
        let Some(wanted) = &settings.traces else { return Ok(None) };
        match self.traces.as_ref().filter(|traces| traces.settings == *wanted) {
            Some(same) => Ok(Some(same.clone())),
            None => TraceExporter::start(wanted.clone(), self.traced.clone()).map(Some),
        }
    }

    /// Adapts the pools to these tables, which are now in force: bounds as promised, and no idle connection in a pool that is
    /// out of use. Requests under way finish on their connections.
    pub(crate) fn settle_pools(&self, now: Instant, before: &Tables, promises: &Promises, reload: &Reload) {
        for (plant, number) in promises.plants.iter().zip(reload.plant_numbers()) {
            if let PlantRow { upstream: Some(upstream), backend: Backend::Upstream(settings), .. } =
                &self.plants[number]
            {
                upstream.pool.serve_within(bounds(plant, promises.control.mode));
                upstream.take_over(now, settings);
            }
        }
        let promised: Vec<usize> = reload.plant_numbers().collect();
        for (number, old) in before.plants.iter().enumerate() {
            let Some(old) = &old.upstream else { continue };
            let same =
                self.plants[number].upstream.as_ref().is_some_and(|new| Arc::ptr_eq(&old.pool, &new.pool));
            if !same || !promised.contains(&number) {
                old.pool.retire();
            }
        }
    }

    /// Whether only folders serve this site, at any level.
    pub(crate) fn is_of_folders(&self, site: u16) -> bool {
        self.of_folders.get(usize::from(site)).copied().unwrap_or(false)
    }

    /// The upstreams whose servers are checked.
    pub(crate) fn checked(&self) -> impl Iterator<Item = (&Upstream, &HealthCheck)> {
        self.plants.iter().filter_map(|row| match (&row.upstream, &row.backend) {
            (Some(upstream), Backend::Upstream(settings)) if !upstream.pool.is_retired() => {
                Some((&**upstream, settings.check.as_ref()?))
            }
            _ => None,
        })
    }

    /// The servers of each upstream, by the plant's number.
    pub(crate) fn rosters(&self, now: Instant) -> Vec<RosterStatus> {
        let roster =
            |row: &PlantRow| row.upstream.as_ref().map(|upstream| upstream.pool.roster().status(now));
        self.plants.iter().map(|row| roster(row).unwrap_or_default()).collect()
    }

    /// Adds to `changes` the changes of plants and sites besides their promises: addresses, folders, rewrites, header rules,
    /// logs.
    pub(crate) fn note_changes(
        &self,
        before: &Tables,
        promises: &Promises,
        reload: &Reload,
        changes: &mut Changes,
    ) {
        let note = |list: &mut Difference, name: &String| {
            if !list.added.contains(name) && !list.changed.contains(name) {
                list.changed.push(name.clone());
            }
        };
        for (plant, number) in promises.plants.iter().zip(reload.plant_numbers()) {
            let old = before.plants.get(number);
            if old.is_some() && self.plants[number].differs(old) {
                note(&mut changes.plants, &plant.name);
            }
        }
        let rewrites_and_log = |Tables { settings, .. }: &Tables, site: usize| {
            let log = settings.access_log.sites.get(site).cloned().unwrap_or_default();
            (settings.rewrites.get(site).cloned().unwrap_or_default(), log)
        };
        for (site, number) in promises.sites.iter().zip(reload.site_numbers()) {
            let same_headers = before.settings.headers_of(number) == self.settings.headers_of(number);
            let number = usize::from(number);
            if !same_headers || rewrites_and_log(before, number) != rewrites_and_log(self, number) {
                note(&mut changes.sites, &site.name);
            }
        }
    }
}

impl PlantRow {
    /// The former upstream, if its connections can serve these settings, with the same protocol and the same trust.
    fn like(&self, settings: &UpstreamSettings) -> Option<&Upstream> {
        let Backend::Upstream(before) = &self.backend else { return None };
        let trusted = |settings: &UpstreamSettings| settings.tls.as_ref().map(|tls| tls.authorities.clone());
        let is_like = before.http2 == settings.http2 && trusted(before) == trusted(settings);
        self.upstream.as_deref().filter(|_| is_like)
    }

    /// Whether the plant is served in another way than before.
    fn differs(&self, before: Option<&PlantRow>) -> bool {
        before.is_none_or(|before| before.backend != self.backend)
    }
}

/// A list by site number: `before`, updated with the entries of `new`, which are in the order of the promises.
fn by_number<T: Clone + Default>(before: &[T], new: Vec<T>, reload: &Reload) -> Vec<T> {
    let mut list = before.to_vec();
    let mut new = new.into_iter();
    for site in reload.site_numbers().map(usize::from) {
        list.resize(list.len().max(site + 1), T::default());
        list[site] = new.next().unwrap_or_default();
    }
    list
}

/// Whether only folders serve each site, in the order of the promises.
fn are_of_folders(backends: &[Backend], promises: &Promises) -> Vec<bool> {
    let is_folder = |plant: usize| matches!(backends.get(plant), Some(Backend::Files(_)));
    let are_all = |site: &Site| site.levels.iter().all(|level| level.plant.is_none_or(is_folder));
    promises.sites.iter().map(|site| is_folder(site.plant) && are_all(site)).collect()
}

fn bounds(plant: &Plant, mode: Mode) -> ConnectionBounds {
    // Only in the mode `control` does the gate bound the requests in service and make others wait.
    let kept = plant.max_connections as usize;
    let open = if mode == Mode::Control { kept } else { usize::MAX };
    ConnectionBounds { open, kept }
}
