//! New settings and promises for a running gateway.
//!
//! All is checked first, folders opened once to see that they can be; then the tables are swapped, then the engine's
//! promises, in that order (see `tables.rs`). What holds a socket or a thread cannot change and is said to need a
//! restart; the rest is applied.

use crate::files::Files;
use crate::gateway::check;
use crate::settings::{Backend, Settings};
use crate::worker::Shared;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::Promises;
use plimsoll_core::telemetry::status::PlantStatus;
use plimsoll_core::{Changes, Engine};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::{Duration, SystemTime};

/// Reloads a gateway, or tells it what its servers say of themselves, from any thread, as long as it runs.
#[derive(Clone)]
pub struct Reloader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Arc<Mutex<Engine>>,
    pub(crate) ticker: Option<Thread>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

/// How often a gateway was told to reload, and since when it has been what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    /// Those that were applied, also where they changed nothing.
    pub applied: u64,
    /// Those that were refused and changed nothing.
    pub refused: u64,
    /// When the settings in force came into force, at the start or by the last reload applied: since 1970.
    pub in_force_since: Duration,
}

impl Reloads {
    /// Of a gateway that starts now.
    pub(crate) fn start() -> Self {
        Reloads { in_force_since: since_1970(), ..Reloads::default() }
    }

    fn count(&mut self, is_applied: bool) {
        if is_applied {
            self.applied += 1;
            self.in_force_since = since_1970();
        } else {
            self.refused += 1;
        }
    }
}

/// By the machine's own calendar, which is what an operator compares it with; nothing is decided by it.
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Of what is promised and what serves it.
    pub changes: Changes,
    /// Sections of the settings.
    pub settings: Vec<&'static str>,
    /// What differs and stays as it is until the gateway starts anew.
    pub needs_restart: Vec<&'static str>,
}

impl Reloader {
    /// An upstream says how many workers it has. That counts where they are to be found; another upstream, or one that is gone,
    /// is passed over.
    pub fn tell_workers(&self, upstream: &str, workers: u32) {
        let status = self.engine.lock().unwrap_or_else(PoisonError::into_inner).status();
        let named = |plant: &PlantStatus| plant.name == upstream && !plant.removed;
        if let Some(plant) = status.plants.iter().position(named) {
            self.shared.told_workers.lock().unwrap_or_else(PoisonError::into_inner).push((plant, workers));
        }
    }

    /// What was learned of how rates go on, where admission by budget predicts them.
    pub fn trends(&self) -> RateForecasts {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).trends()
    }

    /// Takes over what was learned before. What was learned since is added.
    pub fn remember(&self, trends: RateForecasts) {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).remember(trends);
    }

    /// Puts new settings and promises in the place of the old ones. Requests under way are not touched.
    ///
    /// # Errors
    /// What is wrong, one sentence each. Nothing changed then.
    pub fn reload(&self, settings: Settings, promises: &Promises) -> Result<Reloaded, Vec<String>> {
        let result = self.apply(settings, promises);
        self.shared.reloads().count(result.is_ok());
        result
    }

    /// Counts a reload that was refused before it came here, because its file is wrong.
    pub fn refuse(&self) {
        self.shared.reloads().count(false);
    }

    fn apply(&self, mut settings: Settings, promises: &Promises) -> Result<Reloaded, Vec<String>> {
        check(&settings, promises).map_err(|error| vec![error.to_string()])?;
        folders_open(&settings, promises)?;
        // Held to the end: one reload at a time.
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let reload = engine.prepare(promises)?;
        let before = self.shared.tables.current();
        let sections = sections(&before.settings, &settings);
        let needs_restart = pin(&before.settings, &mut settings);
        let tables = before.next(settings, promises, &reload, self.shared.mailboxes.len());
        self.shared.tables.publish(tables);
        let mut changes = engine.apply(reload.clone());
        drop(engine);
        let now = self.shared.tables.current();
        now.settle_pools(&before, promises, &reload);
        now.note_changes(&before, promises, &reload, &mut changes);
        if let Some(ticker) = &self.ticker {
            ticker.unpark();
        }
        Ok(Reloaded { changes, settings: sections, needs_restart })
    }
}

/// Each thread opens them for itself; where one cannot be opened, all is refused here.
fn folders_open(settings: &Settings, promises: &Promises) -> Result<(), Vec<String>> {
    let pairs = settings.backends.iter().zip(&promises.plants);
    let wrong: Vec<String> = pairs
        .filter_map(|(backend, plant)| match backend {
            Backend::Files(files) => {
                let error = Files::new(files.clone()).err()?;
                Some(format!("{}: the folder {} cannot be opened: {error}", plant.name, files.root.display()))
            }
            Backend::Upstream { .. } => None,
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Sections that differ and can change.
fn sections(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let pairs = [
        ("trusted_proxies", old.trusted_proxies != new.trusted_proxies),
        ("forwarded", old.forwarded != new.forwarded),
        ("report", old.report != new.report),
        ("rejection", old.rejection != new.rejection),
        ("limits", old.limits != new.limits),
        ("timeouts", old.timeouts != new.timeouts),
    ];
    pairs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

/// Keeps what cannot change as it is, and says where it was to.
fn pin(old: &Settings, new: &mut Settings) -> Vec<&'static str> {
    let mut kept = Vec::new();
    let mut keep = |name, differs: bool| {
        if differs {
            kept.push(name);
        }
    };
    keep("listen", old.listen != new.listen);
    keep("admin", old.admin != new.admin);
    keep("threads", old.threads != new.threads);
    keep("seed", old.hash_seed != new.hash_seed);
    new.listen.clone_from(&old.listen);
    (new.admin, new.threads, new.hash_seed) = (old.admin, old.threads, old.hash_seed);
    kept
}

/// In one line, for a log.
impl std::fmt::Display for Reloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        let kinds = [
            ("upstream", &self.changes.plants),
            ("site", &self.changes.sites),
            ("class", &self.changes.classes),
        ];
        for (kind, difference) in kinds {
            let lists =
                [("new", &difference.added), ("gone", &difference.removed), ("changed", &difference.changed)];
            for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
                parts.push(format!("{kind} {what}: {}", names.join(", ")));
            }
        }
        if self.changes.control {
            parts.push("control changed".to_owned());
        }
        if !self.settings.is_empty() {
            parts.push(format!("changed: {}", self.settings.join(", ")));
        }
        if !self.needs_restart.is_empty() {
            parts.push(format!("needs a restart: {}", self.needs_restart.join(", ")));
        }
        f.write_str(if parts.is_empty() { "nothing changed" } else { "" })?;
        f.write_str(&parts.join("; "))
    }
}
