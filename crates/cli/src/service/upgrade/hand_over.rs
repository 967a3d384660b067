//! The replaced process's side: it starts the next process, and waits until that one is ready.

use super::{PREDECESSOR, READY, passing};
use crate::service::sync::lock;
use plimsoll_gateway::ListeningSocket;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, thread};

/// How long the new process may take to become ready.
const LIMIT: Duration = Duration::from_secs(60);

const STOPPED: &str = "this process was asked to end meanwhile";

/// The upgrade in progress; there is at most one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upgrade(Arc<Mutex<Stage>>);

#[derive(Debug, Default)]
enum Stage {
    #[default]
    None,
    /// A new process is being started, or is reading its configuration.
    Begun(Option<Child>),
    /// The new process serves.
    Ready(u32),
}

impl Upgrade {
    /// Starts the next process, and waits for it on a thread of its own. `sockets` and `learned` are handed to the new process.
    pub(crate) fn begin(&self, sockets: io::Result<Vec<ListeningSocket>>, learned: String) {
        if !matches!(*lock(&self.0), Stage::None) {
            return tracing::info!("an upgrade is under way already");
        }
        *lock(&self.0) = Stage::Begun(None);
        let upgrade = self.clone();
        let run = move || {
            if let Err(wrong) =
                sockets.map_err(|error| error.to_string()).and_then(|sockets| upgrade.run(&sockets, &learned))
            {
                if matches!(*lock(&upgrade.0), Stage::None) {
                    return tracing::info!("not upgraded: this process was asked to end meanwhile");
                }
                // A process that did not become ready must not begin to serve later.
                upgrade.cancel();
                tracing::error!("not upgraded, this process goes on: {wrong}");
            }
        };
        if let Err(error) = thread::Builder::new().name("upgrade".to_owned()).spawn(run) {
            *lock(&self.0) = Stage::None;
            tracing::error!("not upgraded, this process goes on: cannot start a thread: {error}");
        }
    }

    /// The process that has taken this one's place.
    pub(crate) fn successor(&self) -> Option<u32> {
        match *lock(&self.0) {
            Stage::Ready(process) => Some(process),
            Stage::None | Stage::Begun(_) => None,
        }
    }

    /// Ends a new process that is not ready yet.
    pub(crate) fn cancel(&self) {
        let mut stage = lock(&self.0);
        if let Stage::Begun(child) = &mut *stage {
            if let Some(child) = child {
                // An error means that the process has ended already.
                let _ = child.kill();
                let _ = child.wait();
            }
            *stage = Stage::None;
        }
    }

    fn run(&self, sockets: &[ListeningSocket], learned: &str) -> Result<(), String> {
        let (mut own, other) = UnixStream::pair().map_err(|error| error.to_string())?;
        let process = self.start(other)?;
        tracing::info!(
            successor = process,
            "upgrading: process {process} is started to take this one's place"
        );
        let handed = own.set_write_timeout(Some(LIMIT)).and_then(|()| own.set_read_timeout(Some(LIMIT)));
        let handed = handed.and_then(|()| passing::send(&own, sockets, learned));
        let mut answer = [0; READY.len()];
        match handed.and_then(|()| own.read_exact(&mut answer)) {
            Ok(()) if answer[..] == *READY => {}
            Ok(()) => return Err("the new process answers what is not understood".to_owned()),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                return Err(format!(
                    "the new process was not ready within {} s, and was ended",
                    LIMIT.as_secs()
                ));
            }
            Err(_) => return Err(self.ended()),
        }
        let mut stage = lock(&self.0);
        if !matches!(*stage, Stage::Begun(Some(_))) {
            return Err(STOPPED.to_owned());
        }
        *stage = Stage::Ready(process);
        Ok(())
    }

    /// Starts the new process, unless the end was requested meanwhile: the new process would find its sockets closed or taken.
    fn start(&self, input: UnixStream) -> Result<u32, String> {
        let mut stage = lock(&self.0);
        if !matches!(*stage, Stage::Begun(None)) {
            return Err(STOPPED.to_owned());
        }
        let child = start(input).map_err(|error| format!("the program cannot be started again: {error}"))?;
        let process = child.id();
        *stage = Stage::Begun(Some(child));
        Ok(process)
    }

    /// How the new process ended before it was ready.
    fn ended(&self) -> String {
        match &mut *lock(&self.0) {
            Stage::Begun(Some(child)) => match child.wait() {
                Ok(status) => {
                    format!("the new process has ended ({status}) before it was ready; it has said why")
                }
                Err(error) => format!("the new process has ended before it was ready: {error}"),
            },
            _ => STOPPED.to_owned(),
        }
    }
}

/// Starts the program again by the name and with the arguments of this process, so that a replaced file or a moved link takes
/// effect.
fn start(input: UnixStream) -> io::Result<Child> {
    let mut words = env::args_os();
    let program =
        words.next().filter(|name| !name.is_empty()).map_or_else(env::current_exe, |name| Ok(name.into()))?;
    Command::new(program)
        .args(words)
        .env(PREDECESSOR, std::process::id().to_string())
        .env_remove("LISTEN_FDS")
        .env_remove("LISTEN_PID")
        .env_remove("LISTEN_FDNAMES")
        // `WATCHDOG_PID` names this process, but systemd is told that another one has taken its place.
        .env_remove("WATCHDOG_PID")
        .stdin(OwnedFd::from(input))
        .spawn()
}
