//! What the gateway has learned, kept for the next process (`state` of `[gateway]`): the seed that assigns clients to levels,
//! costs, workers, biases, service levels, and rate forecasts.
//!
//! The file is read at the start. It is written every ten seconds, at a reload and at the end: the new content beside the file,
//! which then replaces it, so that a reader, or a start after a crash, finds complete content, old or new. Only this user may
//! read it, because a client that knows the seed can compute which clients get the better level. A process that is replaced
//! hands its state to the new process directly, and leaves the file to it.
//!
//! If a state cannot be read, or does not fit the configuration, the gateway runs without it, and the log says so.

mod document;
pub(crate) mod seed;

use crate::output::failure::{self, Failure};
use crate::service::kept_files;
use crate::service::sync::lock;
use document::StateDocument;
use plimsoll_config::{Configuration, StatePlace};
use plimsoll_core::LearnedState;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_gateway::Reloader;
use plimsoll_gateway::settings::SeedSource;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, fs, thread};
use tempfile::NamedTempFile;

/// How often the file is written.
const EVERY: Duration = Duration::from_secs(10);

/// What is known at the start.
#[derive(Debug, Default)]
pub(crate) struct KnownState {
    /// Where the state is kept.
    path: Option<PathBuf>,
    document: Option<StateDocument>,
    /// The drawn seed, which is known even if nothing else can be read.
    seed: Option<u64>,
    /// Whether there was no file.
    is_new: bool,
}

impl KnownState {
    /// The state that the replaced process handed over, or else that of the file.
    pub(crate) fn find(configuration: &Configuration, file: &Path, handed_over: Option<&str>) -> Self {
        let path = path(configuration, file);
        let (document, seed) = match (handed_over, &path) {
            (Some(text), _) => understood(text, "what was handed over"),
            (None, Some(path)) => read(path),
            (None, None) => (None, None),
        };
        let is_new = handed_over.is_none() && path.as_ref().is_some_and(|path| !path.exists());
        KnownState { path, document, seed, is_new }
    }

    /// The state in a file or pipe that a user has named.
    pub(crate) fn find_at(path: &Path) -> Self {
        let (document, seed) = read_as(path, kept_files::read_bounded(path));
        KnownState { path: Some(path.to_owned()), document, seed, is_new: !path.exists() }
    }

    /// Removes the file that a failed start made for its seed, because nobody needs it.
    pub(crate) fn forget_new(&self, (seed, _): seed::Known) {
        if let Some(path) = self.path.as_ref().filter(|path| self.is_new && read(path).1 == Some(seed)) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(path);
        }
    }

    /// The seed that was drawn.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Where the state is kept.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The learned state from which an engine goes on, and whether it is so new that its service levels hold too.
    pub(crate) fn learned(&self) -> Option<(LearnedState, bool)> {
        self.document.as_ref().map(StateDocument::learned)
    }

    /// The number of workers of each upstream, by name, and whether the number was found.
    pub(crate) fn workers(&self) -> Vec<(String, u32, bool)> {
        let plants = self.learned().map_or_else(Vec::new, |(learned, _)| learned.plants);
        let known = plants.into_iter().filter_map(|plant| Some((plant.name, plant.workers?)));
        known.map(|(name, known)| (name, known.workers, known.found)).collect()
    }

    /// The rate forecasts, if they are kept in the state.
    pub(crate) fn rate_forecasts(&self) -> Option<RateForecasts> {
        self.document.as_ref()?.rate_forecasts.as_ref()?.parse().ok()
    }

    /// Logs which parts of the state do not fit the configuration.
    pub(crate) fn tell_left_out(&self, left_out: &[String]) {
        for what in left_out {
            tracing::warn!("of what an earlier run has learned, this is left out: {what}");
        }
        let path = self.path.as_ref().map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
        if self.document.is_some() && left_out.is_empty() {
            tracing::info!("goes on from what an earlier run has learned ({path})");
        }
    }
}

/// Refuses a path that is something else, such as a device, a configuration or a key, because the state would replace it.
pub(super) fn refuse_other_file(path: &Path) -> Result<(), Failure> {
    let what = match kept_files::other_than_file(path) {
        Ok(None) => match kept_files::read(path) {
            Ok(bytes) if document::is_own(&bytes) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::FileTooLarge => return Ok(()),
            Ok(_) | Err(_) => "",
        },
        Ok(Some(what)) => &format!("is {what}: it "),
        Err(_) => return Ok(()),
    };
    Err(Failure::Input(format!(
        "error: {} {what}is no state of a gateway, and would be replaced by one\nName a file of its own (`state` under [gateway]), \
         write `state = \"off\"` to keep nothing, or remove this one.",
        path.display()
    )))
}

/// Reads the file, and the seed in it; `None` for each that is missing, or if the file is not a state.
fn read(path: &Path) -> (Option<StateDocument>, Option<u64>) {
    read_as(path, kept_files::read(path))
}

fn read_as(path: &Path, bytes: io::Result<Vec<u8>>) -> (Option<StateDocument>, Option<u64>) {
    let name = path.display();
    let text = bytes.and_then(|bytes| {
        String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8"))
    });
    match text {
        Ok(text) => understood(&text, &name.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => (None, None),
        Err(error) => {
            tracing::warn!(file = %name, "what an earlier run has learned is not used: cannot read {name}: {error}");
            (None, None)
        }
    }
}

fn understood(text: &str, name: &str) -> (Option<StateDocument>, Option<u64>) {
    match StateDocument::parse(text) {
        Ok(document) => {
            let seed = document.seed;
            (Some(document), seed)
        }
        Err((wrong, seed)) => {
            let but = if seed.is_some() { "; clients keep their levels all the same (`seed`)" } else { "" };
            tracing::warn!(file = name, "what an earlier run has learned is not used: {name}: {wrong}{but}");
            (None, seed)
        }
    }
}

/// Where the state is kept: where the configuration says, otherwise in a file named after the configuration's.
pub(super) fn path(configuration: &Configuration, file: &Path) -> Option<PathBuf> {
    match &configuration.gateway.state {
        StatePlace::Nowhere => return None,
        StatePlace::At(path) => return Some(path.clone()),
        StatePlace::BesideFile => {}
    }
    let own = file.with_extension("state");
    // If systemd gives several folders, they are separated by colons, and the first is used.
    let state = env::var("STATE_DIRECTORY").unwrap_or_default();
    Some(match (state.split(':').next().filter(|folder| !folder.is_empty()), own.file_name()) {
        (Some(state), Some(name)) => Path::new(state).join(name),
        _ => own,
    })
}

/// Writes a file that only this user may read, in the place of the one at `path`. If `replaces` is false, an existing file is
/// an error.
fn write(path: &Path, text: &str, replaces: bool) -> io::Result<()> {
    let path = kept_files::place(path)?;
    let new = beside(&path, text)?;
    new.as_file().sync_all()?;
    let placed = if replaces { new.persist(&path) } else { new.persist_noclobber(&path) };
    placed.map(drop).map_err(|failed| failed.error)
}

/// A temporary file with this text, which is to replace another file.
fn beside(path: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut new = NamedTempFile::new_in(failure::folder(path)).map_err(failure::without_temporary_name)?;
    new.write_all(text.as_bytes())?;
    Ok(new)
}

/// Keeps what a controller has learned, and the seed if it was drawn, in memory; it does not survive a crash of the machine.
pub(crate) fn write_learned(path: &Path, learned: LearnedState, seed: Option<u64>) -> io::Result<()> {
    let path = kept_files::place(path)?;
    let new = beside(&path, &StateDocument::new(learned, seed, None).text())?;
    new.persist(path).map(drop).map_err(|failed| failed.error)
}

/// The state file of a running gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateFile(Arc<Mutex<KeptFile>>);

#[derive(Debug, Default)]
struct KeptFile {
    path: Option<PathBuf>,
    /// The seed, if it was drawn.
    seed: Option<u64>,
    /// Whether the rate forecast has a file of its own.
    has_rate_forecast: bool,
    /// Whether the last write failed, which was logged then.
    fails: bool,
    /// Whether another process has taken over the file.
    is_given_up: bool,
}

impl StateFile {
    /// Keeps the state where this configuration says from now on.
    pub(crate) fn follow(&self, configuration: &Configuration, file: &Path, (seed, from): seed::Known) {
        let mut kept = lock(&self.0);
        kept.path = path(configuration, file);
        kept.seed = (from != SeedSource::Configured).then_some(seed);
        kept.has_rate_forecast = configuration.gateway.rate_forecast.is_some();
    }

    /// Writes the file every ten seconds from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(&self, gateway: Reloader) -> io::Result<()> {
        let own = self.clone();
        let write = move || {
            loop {
                thread::sleep(EVERY);
                own.save(&gateway);
            }
        };
        thread::Builder::new().name("state".to_owned()).spawn(write).map(drop)
    }

    /// The state now, for the process that takes this one's place.
    pub(crate) fn hand_over(&self, gateway: &Reloader) -> String {
        lock(&self.0).document(gateway).text()
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        lock(&self.0).path.clone()
    }

    /// Leaves the file to the process that has taken this one's place.
    pub(crate) fn give_up(&self) {
        lock(&self.0).is_given_up = true;
    }

    /// Writes the file now, if there is one.
    pub(crate) fn save(&self, gateway: &Reloader) {
        let mut kept = lock(&self.0);
        let Some(path) = kept.path.clone().filter(|_| !kept.is_given_up) else { return };
        let written = write(&path, &kept.document(gateway).text(), true);
        if let Err(error) = &written
            && !kept.fails
        {
            tracing::warn!(
                file = %path.display(),
                "cannot write {}: {error}; a restart begins with nothing learned. Name a file that can be written (`state` under \
                 [gateway]), or `\"off\"`",
                path.display()
            );
        }
        kept.fails = written.is_err();
    }
}

impl KeptFile {
    fn document(&self, gateway: &Reloader) -> StateDocument {
        let forecasts = Some(gateway.rate_forecasts())
            .filter(|known| !self.has_rate_forecast && *known != RateForecasts::default());
        StateDocument::new(gateway.learned(), self.seed, forecasts.map(|known| known.to_string()))
    }
}
