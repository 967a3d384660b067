//! The file in which a gateway keeps its learned rate forecasts, by hour of the day (`[control] rate_forecast`).
//!
//! The file is read at the start; if it exists and has other content, the start fails. It is written at the end of each hour,
//! at a reload and at the end. The new content is written beside the file and then replaces it, so that a reader, or a start
//! after a crash, finds complete content, old or new.

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

/// The forecasts in a file; empty if it does not exist yet.
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
    /// Uses another path from now on; `known` is the content of the file there.
    pub(crate) fn follow(&self, path: Option<&Path>, known: Option<RateForecasts>, gateway: &Reloader) {
        *lock(&self.0) = KeptForecast { path: path.map(Path::to_path_buf), hour: hour() };
        if let Some(known) = known {
            gateway.restore_rate_forecasts(known);
        }
    }

    /// The forecasts in the file at `path`; `None` if it is the file in use.
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
