//! The start of a process: with the sockets of the gateway before it, with sockets of systemd, or with none.

use super::{PREDECESSOR, READY, passing};
use crate::output::failure::Failure;
use listenfd::ListenFd;
use plimsoll_gateway::settings::Address;
use plimsoll_gateway::{Inherited, ListeningSocket};
use std::env;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;

/// How a process starts.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The sockets that are already listening.
    pub(crate) inherited: Inherited,
    /// The learned state of the gateway before this one, as that one wrote it.
    pub(crate) learned: Option<String>,
    predecessor: Option<Predecessor>,
}

/// The gateway whose place this one takes.
#[derive(Debug)]
struct Predecessor {
    process: u32,
    socket: UnixStream,
}

impl Start {
    /// Finds out how the process starts. Must be called before other threads run, because it removes environment variables.
    ///
    /// # Errors
    /// What was to be handed over is missing.
    pub(crate) fn find() -> Result<Start, Failure> {
        let failed = |error: io::Error| {
            Failure::Failed(format!("cannot take over the sockets that listen: {error}\nStart it by itself."))
        };
        match predecessor() {
            Some(process) => take_over(process).map_err(failed),
            None => {
                let inherited = from_systemd().and_then(Inherited::new).map_err(failed)?;
                Ok(Start { inherited, ..Start::default() })
            }
        }
    }

    /// Logs where the sockets come from, closes those that this gateway does not use, and lets the gateway before this one go.
    pub(crate) fn ready(self, left: Inherited) {
        for (address, is_supervised) in left.left() {
            let what = if is_supervised {
                "was opened by the supervisor, which keeps it: whoever connects there waits"
            } else {
                "was handed over and is closed"
            };
            tracing::warn!(listener = %address, "the socket of {address} {what}; no `listen` of the file has it");
            if let (Address::Unix(path), false) = (address, is_supervised) {
                // No process listens at this path any more.
                let _ = std::fs::remove_file(path);
            }
        }
        drop(left);
        let Some(Predecessor { process, mut socket }) = self.predecessor else { return };
        match socket.write_all(READY) {
            Ok(()) => tracing::info!(predecessor = process, "took the place of process {process}"),
            Err(_) => {
                tracing::warn!(predecessor = process, "process {process} has ended before it could hand over")
            }
        }
    }
}

/// The process that started this one to take over. The variable alone does not prove it, because it may have been inherited.
fn predecessor() -> Option<u32> {
    let process = env::var(PREDECESSOR).ok()?.parse().ok()?;
    (process == parent_id()).then_some(process)
}

fn take_over(process: u32) -> io::Result<Start> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (sockets, learned) = passing::receive(&socket)?;
    let inherited = Inherited::new(sockets)?;
    let learned = Some(learned).filter(|learned| !learned.is_empty());
    Ok(Start { inherited, learned, predecessor: Some(Predecessor { process, socket }) })
}

/// The sockets that systemd has opened (`LISTEN_FDS`, sd_listen_fds(3)).
fn from_systemd() -> io::Result<Vec<ListeningSocket>> {
    let mut given = ListenFd::from_env();
    let count = given.len();
    let mut take = |number| match given.take_tcp_listener(number) {
        Ok(taken) => Ok(taken.map(OwnedFd::from)),
        // A socket of another kind is left in place.
        Err(_) => given.take_unix_listener(number).map(|taken| taken.map(OwnedFd::from)),
    };
    let sockets = (0..count).filter_map(|number| take(number).transpose());
    sockets.map(|socket| Ok(ListeningSocket { socket: socket?, is_supervised: true })).collect()
}
