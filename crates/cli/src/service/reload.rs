//! The configuration of a running gateway, read again: on SIGHUP, and on `POST /reload` of its admin listener.
//!
//! The whole way from the file is gone first; only what is right is handed to the gateway, and then all of it at once.
//! Either way the journal says what changed, or what is wrong and that everything stays as it was.

use crate::args::source;
use crate::commands::run::enough_open_files;
use crate::output::failure::Failure;
use crate::service::trends::TrendFile;
use crate::service::worker_counts::WorkerCounts;
use crate::service::{log, resolve};
use plimsoll_gateway::admin::Owner;
use plimsoll_gateway::{Reloaded, Reloader};
use std::path::PathBuf;

/// Reads a file again and again.
#[derive(Clone, Debug)]
pub(crate) struct Reload {
    pub(crate) file: PathBuf,
    pub(crate) gateway: Reloader,
    /// Which servers say how many workers they have.
    pub(crate) worker_counts: WorkerCounts,
    /// What is kept of how rates go on.
    pub(crate) trends: TrendFile,
}

impl Owner for Reload {
    fn reload(&self) -> Result<Reloaded, String> {
        self.now()
    }
    fn log_lines_dropped(&self) -> u64 {
        log::dropped()
    }
}

impl Reload {
    /// Reads it now, and says in the journal what came of it.
    ///
    /// # Errors
    /// Everything that is wrong, as text. Nothing changed then.
    pub(crate) fn now(&self) -> Result<Reloaded, String> {
        let result = self.try_now();
        match &result {
            Ok(reloaded) => tracing::info!("reloaded {}: {reloaded}", self.file.display()),
            Err(wrong) => tracing::warn!("not reloaded, everything stays as it was:\n{wrong}"),
        }
        result
    }

    fn try_now(&self) -> Result<Reloaded, String> {
        let said = |failure: Failure| match failure {
            Failure::Input(text) | Failure::Failed(text) => text.trim_end().to_owned(),
        };
        let read = || {
            let configuration = source::read(&self.file)?;
            let known = self.trends.read_other(configuration.gateway.trends.as_deref())?;
            Ok((resolve::settings(&configuration)?, known, configuration))
        };
        let read = read().inspect_err(|_| self.gateway.refuse());
        let (mut settings, known, configuration) = read.map_err(said)?;
        enough_open_files(&mut settings, &configuration.promises);
        let reloaded = self.gateway.reload(settings, &configuration.promises);
        let reloaded = reloaded.map_err(|wrong| {
            let name = self.file.display().to_string();
            format!("{name}: {}", wrong.join(&format!("\n{name}: ")))
        })?;
        self.worker_counts.follow(&configuration);
        self.trends.save(&self.gateway);
        self.trends.follow(configuration.gateway.trends.as_deref(), known, &self.gateway);
        Ok(reloaded)
    }
}
