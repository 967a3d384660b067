//! How a command fails: its message and its exit code; and how commands write files.

use super::new_file::NewFile;
use crate::service::log;
use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The input is wrong: an option, a file, a configuration. Exit code 2.
    Input(String),
    /// The input is right, but the command could not do its work. Exit code 1.
    Failed(String),
}

/// Writes a file that a user named.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    NewFile::begin(path, &[])?.fill(text)
}

/// Writes a file that replaces the one at `path` once it is complete.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    // Other users may have to read the file too: the process's umask decides which ones may.
    let mut builder = tempfile::Builder::new();
    let builder = builder.permissions(Permissions::from_mode(0o666));
    let mut new = builder.tempfile_in(folder(path)).map_err(without_temporary_name)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map(drop).map_err(|failed| failed.error)
}

/// The error without the name of the temporary file, which means nothing to a user.
pub(crate) fn without_temporary_name(error: io::Error) -> io::Error {
    match error.to_string().rsplit_once(" at path \"") {
        Some((why, _)) => io::Error::new(error.kind(), why),
        None => error,
    }
}

/// The folder that holds `path`.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Failure {
    pub(crate) fn not_written(path: &Path, error: &io::Error) -> Failure {
        let help = match error.kind() {
            io::ErrorKind::IsADirectory => "\nThat is a folder; name a file in it.",
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied => {
                "\nName a file in a folder that is there and that this user may write to."
            }
            _ => "",
        };
        Failure::Failed(format!("cannot write {}: {error}{help}", path.display()))
    }

    /// The failure of reading a file; `what` names the file and says why it is read. `instead` says what to name if the file is
    /// missing or is something else.
    pub(crate) fn not_read(what: impl Display, error: &io::Error, instead: &str) -> Failure {
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "This user may not read it, or not enter a folder above it; `ls -l` shows who may."
            }
            io::ErrorKind::IsADirectory => "That is a folder; name a file in it.",
            _ => instead,
        };
        Failure::Input(format!("cannot read {what}\n{help}"))
    }

    /// The failure of starting `what`, because an address cannot be listened at or for another reason of the system's. `place`
    /// is where its addresses are configured.
    pub(crate) fn not_started(what: &str, error: &io::Error, place: &str) -> Failure {
        let is_socket = error.to_string().starts_with("cannot listen on unix:");
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied if is_socket => format!(
                "This user may not write in the folder of the socket; make one that it may (systemd: `RuntimeDirectory=`), or \
                 write another path {place}."
            ),
            io::ErrorKind::NotFound if is_socket => {
                format!("There is no folder for the socket: make it, or write another path {place}.")
            }
            io::ErrorKind::AlreadyExists if is_socket => format!("Write another path {place}."),
            io::ErrorKind::AddrInUse => {
                format!("Stop what listens there (`ss -ltnpx` shows it), or write another address {place}.")
            }
            io::ErrorKind::PermissionDenied => {
                format!(
                    "Ports below 1024 need the capability CAP_NET_BIND_SERVICE; or write a higher port {place}."
                )
            }
            io::ErrorKind::AddrNotAvailable => {
                "This machine has no such address; `ip address` shows those that it has.".to_owned()
            }
            _ => String::new(),
        };
        Failure::Failed(format!("the {what} does not start: {error}\n{help}"))
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Failure::Input(text) | Failure::Failed(text) => text,
        }
    }

    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Input(text) => (text, 2),
            Failure::Failed(text) => (text, 1),
        };
        log::tell_failure(text.trim_end());
        ExitCode::from(code)
    }
}
