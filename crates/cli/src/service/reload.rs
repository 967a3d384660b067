//! Reads the configuration of a running gateway again: on SIGHUP, and on `POST /reload` of its admin listener.
//!
//! The whole file is read and checked first; only a valid one is handed to the gateway, all at once. The log says what changed,
//! or what is wrong and that everything stays as it was. The reading has a thread of its own (`hanging_reads.rs`), so that a
//! file or a name server that hangs only makes the reload fail, and delays no signal.

use crate::args::source;
use crate::output::failure::Failure;
use crate::service::dns_refresh::Lookups;
use crate::service::events::Incidents;
use crate::service::forecast_file::ForecastFile;
use crate::service::hanging_reads::Readings;
use crate::service::open_files::fit_connections;
use crate::service::state::{StateFile, seed};
use crate::service::sync::lock;
use crate::service::what_if::WhatIfDesk;
use crate::service::worker_counts::WorkerCounts;
use crate::service::{kept_files, log, own_listeners, resolve, supervisor};
use plimsoll_gateway::admin::{Owner, WhatIf};
use plimsoll_gateway::settings::SeedSource;
use plimsoll_gateway::{Reloaded, Reloader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

#[derive(Clone)]
pub(crate) struct Reload {
    pub(crate) file: PathBuf,
    pub(crate) gateway: Reloader,
    pub(crate) seed: seed::Known,
    pub(crate) state: StateFile,
    pub(crate) worker_counts: WorkerCounts,
    pub(crate) lookups: Lookups,
    pub(crate) forecast: ForecastFile,
    /// How many files were open before the start.
    pub(crate) open_files: u64,
    pub(crate) readings: Readings,
    pub(crate) turns: Arc<Turns>,
    pub(crate) incidents: Arc<Mutex<Incidents>>,
    pub(crate) what_if: WhatIfDesk,
}

/// The turns of reloads, one at a time. Changes of looked-up addresses take their turn among them.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    now: Mutex<()>,
    /// Whether a thread waits for its turn.
    waits: AtomicBool,
}

impl Turns {
    /// Waits for a turn.
    pub(crate) fn wait(&self) -> MutexGuard<'_, ()> {
        lock(&self.now)
    }
}

impl Owner for Reload {
    /// Reads the file now, and logs the result. If another reload is in progress, it is refused.
    fn reload(&self) -> Result<Reloaded, String> {
        let turn = match self.turns.now.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(
                    "another reload is under way; the log reports its end. Try again then.".to_owned()
                );
            }
        };
        self.reload_in_turn(turn)
    }

    fn log_lines_dropped(&self) -> u64 {
        log::dropped()
    }

    fn incidents(&self) -> String {
        lock(&self.incidents).json()
    }

    fn what_if(&self) -> Option<&dyn WhatIf> {
        Some(&self.what_if)
    }
}

impl Reload {
    /// Reads the file on a thread of its own, at once or after the reload in progress, so that the caller goes on receiving
    /// signals. At most one such thread waits, because it reads the file as it is then.
    pub(crate) fn begin(&self) {
        if self.turns.waits.swap(true, Relaxed) {
            return;
        }
        let reload = self.clone();
        let run = move || {
            let turn = reload.turns.now.try_lock().or_else(|_| {
                tracing::info!("another reload is under way: {} is read after it", reload.file.display());
                reload.turns.now.lock()
            });
            reload.turns.waits.store(false, Relaxed);
            let turn = turn.unwrap_or_else(PoisonError::into_inner);
            // The log has the error; the gateway goes on as before.
            drop(reload.reload_in_turn(turn));
        };
        if let Err(error) = thread::Builder::new().name("reload".to_owned()).spawn(run) {
            self.turns.waits.store(false, Relaxed);
            tracing::error!("not reloaded: cannot start a thread: {error}");
        }
    }

    fn reload_in_turn(&self, _turn: MutexGuard<'_, ()>) -> Result<Reloaded, String> {
        supervisor::reloading();
        let result = self.apply();
        supervisor::ready();
        match &result {
            Ok(reloaded) => {
                tracing::info!(file = %self.file.display(), "reloaded {}: {reloaded}", self.file.display())
            }
            Err(wrong) => {
                tracing::error!(file = %self.file.display(), "not reloaded, everything stays as it was:\n{wrong}")
            }
        }
        result
    }

    fn apply(&self) -> Result<Reloaded, String> {
        let (file, forecast, known_seed) = (self.file.clone(), self.forecast.clone(), self.seed);
        let (lookups, in_force) = (self.lookups.clone(), self.state.path());
        let read = self.readings.in_time(move || {
            let configuration = source::read(&file)?;
            let known = forecast.read_other(configuration.gateway.rate_forecast.as_deref())?;
            own_listeners::refuse(&configuration)?;
            kept_files::refuse(&configuration, &file, in_force.as_deref())?;
            let found = resolve::look_all_up(&configuration, |address| lookups.found(address))?;
            let mut settings = resolve::settings_with(&configuration, &found)?;
            // A seed that was drawn stays in force.
            let configured = configuration.gateway.seed.map(|seed| (seed, SeedSource::Configured));
            (settings.hash_seed, settings.hash_seed_from) = configured.unwrap_or(known_seed);
            Ok((settings, found, known, configuration))
        });
        let read = read.inspect_err(|_| self.gateway.refuse());
        let (mut settings, found, known, configuration) =
            read.map_err(|failure: Failure| failure.text().trim_end().to_owned())?;
        fit_connections(&mut settings, &configuration.promises, self.open_files)
            .map_err(|failure| failure.text().trim_end().to_owned())?;
        let reloaded = self.gateway.reload(settings, &configuration.promises);
        let mut reloaded = reloaded.map_err(|wrong| {
            let name = self.file.display().to_string();
            format!("{name}: {}", wrong.join(&format!("\n{name}: ")))
        })?;
        if log::follow(configuration.gateway.log) {
            reloaded.settings.push("log");
        }
        self.worker_counts.follow(&configuration);
        self.lookups.follow(&configuration, found);
        self.state.follow(&configuration, &self.file, self.seed);
        self.state.save(&self.gateway);
        self.forecast.save(&self.gateway);
        self.forecast.follow(configuration.gateway.rate_forecast.as_deref(), known, &self.gateway);
        Ok(reloaded)
    }
}
