//! The file in which a gateway keeps what it learned of how rates go on, by the hour of day (`[control] trends`).
//!
//! Read at the start: a file that is there and is none is an error then. Written at the end of each hour, at a reload and at
//! the end, beside itself and then put in its place, so that a reader, or a crash, meets the old one or the new one whole.

use crate::output::failure::Failure;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_gateway::Reloader;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Where it is, and in which hour it was written last.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrendFile(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    path: Option<PathBuf>,
    hour: u64,
}

/// What a file keeps; nothing if it is not there yet.
///
/// # Errors
/// It cannot be read, its content is wrong, or there is no folder to write it to.
pub(crate) fn read(path: &Path) -> Result<RateForecasts, Failure> {
    let name = path.display();
    match fs::read_to_string(path) {
        Ok(text) => text.parse().map_err(|wrong| Failure::Input(format!("{name}: {wrong}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder {
                Some(folder) if !folder.is_dir() => Err(Failure::Input(format!(
                    "[control] trends: there is no folder {}\nMake it, or write another file.",
                    folder.display()
                ))),
                _ => Ok(RateForecasts::default()),
            }
        }
        Err(error) => Err(Failure::Input(format!("[control] trends: cannot read {name}: {error}"))),
    }
}

impl TrendFile {
    /// Where it is from now on; `known` is what it keeps.
    pub(crate) fn follow(&self, path: Option<&Path>, known: Option<RateForecasts>, gateway: &Reloader) {
        let mut state = self.state();
        *state = State { path: path.map(Path::to_path_buf), hour: hour() };
        if let Some(known) = known {
            gateway.remember(known);
        }
    }

    /// What another file keeps, if it is to be another; nothing if it stays where it is.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read_other(&self, path: Option<&Path>) -> Result<Option<RateForecasts>, Failure> {
        let same = self.state().path.as_deref() == path;
        path.filter(|_| !same).map(read).transpose()
    }

    /// Writes it where an hour has ended.
    pub(crate) fn look(&self, gateway: &Reloader) {
        if self.state().hour != hour() {
            self.save(gateway);
        }
    }

    /// Writes it now, if there is one.
    pub(crate) fn save(&self, gateway: &Reloader) {
        let mut state = self.state();
        state.hour = hour();
        let Some(path) = &state.path else { return };
        if let Err(error) = write(path, &gateway.trends().to_string()) {
            tracing::warn!("cannot write {}: {error}; the next try is in an hour", path.display());
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hours since 1970.
fn hour() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / 3600
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
