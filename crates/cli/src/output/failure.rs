//! How a command fails: what is printed, and the exit code.

use crate::service::log;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The input is wrong: an option, a file, a configuration. Exit code 2.
    Input(String),
    /// The input is right, but it could not be done. Exit code 1.
    Failed(String),
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::not_written(path, &error))
}

impl Failure {
    pub(crate) fn not_written(path: &Path, error: &io::Error) -> Failure {
        Failure::Failed(format!("cannot write {}: {error}", path.display()))
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Input(text) | Failure::Failed(text) => text,
        }
    }

    /// Tells the user, on stderr.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Input(text) => (text, 2),
            Failure::Failed(text) => (text, 1),
        };
        log::tell(text.trim_end());
        ExitCode::from(code)
    }
}
