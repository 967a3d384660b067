//! The file in which a gateway keeps the learned rate forecast, by the hour of day (`[control] rate_forecast`).
//!
//! It is read at the start: a file that exists and has another content is an error then. It is written at the end of each
//! hour, at a reload and at the end. The new content is written beside the file and then put in its place, so that a
//! reader, or a crash, meets the old content or the new one whole.

use crate::output::failure::{self, Failure};
use crate::service::kept_files;
use crate::service::sync::lock;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_gateway::Reloader;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The file's path, and the hour in which it was last written.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForecastFile(Arc<Mutex<KeptForecast>>);

#[derive(Debug, Default)]
struct KeptForecast {
    path: Option<PathBuf>,
    hour: u64,
}

/// What a file keeps; nothing if it does not exist yet.
pub(crate) fn read(path: &Path) -> Result<RateForecasts, Failure> {
    let name = path.display();
    match kept_files::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()) {
        Ok(text) => text.parse().map_err(|wrong| Failure::Input(format!("{name}: {wrong}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = failure::folder(path);
            match folder.is_dir() {
                true => Ok(RateForecasts::default()),
                false => Err(Failure::Input(format!(
                    "[control] rate_forecast: there is no folder {}\nMake it, or write another file.",
                    folder.display()
                ))),
            }
        }
        Err(error) => Err(Failure::Input(format!(
            "[control] rate_forecast: cannot read {name}: {error}\nName a file of its own, or one that is not there yet."
        ))),
    }
}

impl ForecastFile {
    /// Uses another path from now on; `known` is what the file there keeps.
    pub(crate) fn follow(&self, path: Option<&Path>, known: Option<RateForecasts>, gateway: &Reloader) {
        *lock(&self.0) = KeptForecast { path: path.map(Path::to_path_buf), hour: hour() };
        if let Some(known) = known {
            gateway.restore_rate_forecasts(known);
        }
    }

    /// What the file at `path` keeps; nothing if it is the same file as before.
    pub(crate) fn read_other(&self, path: Option<&Path>) -> Result<Option<RateForecasts>, Failure> {
        let same = lock(&self.0).path.as_deref() == path;
        path.filter(|_| !same).map(read).transpose()
    }

    /// Writes the file if an hour has ended.
    pub(crate) fn look(&self, gateway: &Reloader) {
        if lock(&self.0).hour != hour() {
            self.save(gateway);
        }
    }

    /// Writes the file now, if there is one.
    pub(crate) fn save(&self, gateway: &Reloader) {
        let mut place = lock(&self.0);
        place.hour = hour();
        let Some(path) = &place.path else { return };
        let text = gateway.rate_forecasts().to_string();
        if let Err(error) = kept_files::place(path).and_then(|place| failure::replace(&place, &text)) {
            tracing::warn!(file = %path.display(), "cannot write {}: {error}; the next try is in an hour", path.display());
        }
    }
}

fn hour() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / 3600
}
