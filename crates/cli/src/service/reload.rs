//! The configuration of a running gateway, read again: on SIGHUP, and on `POST /reload` of its admin listener.
//!
//! The file is read and checked whole; only a right one is handed to the gateway, and then all of it at once. Either way
//! the log says what changed, or what is wrong and that everything stays as it was.

use crate::args::source;
use crate::output::failure::Failure;
use crate::service::open_files::fit_connections;
use crate::service::rate_forecast::ForecastFile;
use crate::service::worker_counts::WorkerCounts;
use crate::service::{client_seed, log, resolve};
use plimsoll_gateway::admin::Owner;
use plimsoll_gateway::{Reloaded, Reloader};
use std::path::PathBuf;

#[derive(Clone)]
pub(crate) struct Reload {
    pub(crate) file: PathBuf,
    pub(crate) gateway: Reloader,
    pub(crate) seed: client_seed::Known,
    pub(crate) worker_counts: WorkerCounts,
    pub(crate) forecast: ForecastFile,
}

impl Owner for Reload {
    /// Reads the file now, and logs what came of it.
    fn reload(&self) -> Result<Reloaded, String> {
        let result = self.apply();
        match &result {
            Ok(reloaded) => tracing::info!("reloaded {}: {reloaded}", self.file.display()),
            Err(wrong) => tracing::warn!("not reloaded, everything stays as it was:\n{wrong}"),
        }
        result
    }

    fn log_lines_dropped(&self) -> u64 {
        log::dropped()
    }
}

impl Reload {
    fn apply(&self) -> Result<Reloaded, String> {
        let read = || {
            let configuration = source::read(&self.file)?;
            let known = self.forecast.read_other(configuration.gateway.trends.as_deref())?;
            let mut settings = resolve::settings(&configuration)?;
            // A seed that could not be kept stays in force, and so does one whose file is gone.
            let seed = client_seed::find(&configuration, &self.file)?.unwrap_or(self.seed);
            (settings.hash_seed, settings.hash_seed_from) = seed;
            Ok((settings, known, configuration))
        };
        let read = read().inspect_err(|_| self.gateway.refuse());
        let (mut settings, known, configuration) =
            read.map_err(|failure: Failure| failure.text().trim_end().to_owned())?;
        fit_connections(&mut settings, &configuration.promises);
        let reloaded = self.gateway.reload(settings, &configuration.promises);
        let reloaded = reloaded.map_err(|wrong| {
            let name = self.file.display().to_string();
            format!("{name}: {}", wrong.join(&format!("\n{name}: ")))
        })?;
        self.worker_counts.follow(&configuration);
        self.forecast.save(&self.gateway);
        self.forecast.follow(configuration.gateway.trends.as_deref(), known, &self.gateway);
        Ok(reloaded)
    }
}
