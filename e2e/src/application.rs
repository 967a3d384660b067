//! The application behind a real server: the program `page` as an SCGI server on a Unix socket, with few workers and a queue.

use crate::model::ServerModel;
use crate::{Folder, Process};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// While this file is in its folder, the application takes twice as long.
pub(crate) const SLOW: &str = "slow";

/// Starts it, and returns its socket. Panics, with the log, if it does not come up.
pub(crate) fn application(folder: &Folder, page: &Path, model: ServerModel) -> (Process, PathBuf) {
    let socket = folder.path().join("page.sock");
    let mut command = Command::new(page);
    command.arg(&socket).arg(model.to_argument()).arg(folder.path().join(SLOW));
    let mut application = Process::spawn("page", &mut command, &folder.path().join("page.log"));
    application.wait_for("readiness", |log| log.contains("ready").then_some(()));
    // The server's workers run as another user.
    fs::set_permissions(&socket, Permissions::from_mode(0o777))
        .unwrap_or_else(|error| panic!("cannot open {} to the server: {error}", socket.display()));
    (application, socket)
}
