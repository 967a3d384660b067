//! The limit of open files. Sockets are files, and the usual soft limit of 1024 is reached before a server is fully used.

use crate::output::failure::Failure;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_core::promises::Promises;
use plimsoll_gateway::Settings;
use plimsoll_gateway::settings::{Backend, CONNECTIONS_A_FILE, Limits};
use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::{fs, io, thread};

/// The most files that the gateway itself opens: listeners, the operator's connections, files that it serves.
const OWN_FILES: u64 = 1000;

/// The files that a runtime opens to wait for sockets.
const A_RUNTIME: u64 = 3;

/// The fewest files needed to serve requests: a client, its connection to an upstream, the operator's connection, a file, and
/// two while the learned state is written.
const SPARE: u64 = 6;

/// Raises this process's limit of open files to the hard limit and returns it.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// Lowers the number of client connections to what the limit allows: every client is an open file, and each request to an
/// upstream another. Clients above the number wait in the kernel's queue. `open` files were open before the start.
///
/// # Errors
/// The limit is so low that no request could be served.
pub(crate) fn fit_connections(
    settings: &mut Settings,
    promises: &Promises,
    open: u64,
) -> Result<(), Failure> {
    let upstreams = promises.plants.iter().map(|plant| u64::from(plant.max_connections)).sum();
    let limit = match raise_open_files() {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!("the limit of open files cannot be raised: {error}");
            return Ok(());
        }
    };
    let least = open + own_files(settings);
    if limit < least + SPARE {
        return Err(Failure::Failed(format!(
            "the gateway does not start: this process may open {limit} files, and needs {} at least\nRaise the limit: \
             `ulimit -n` in a shell, `LimitNOFILE` of a systemd unit.",
            least + SPARE
        )));
    }
    let wanted = settings.limits.connections as u64;
    let each = files_of_a_client(settings);
    let left = left_for_clients(limit, least, (upstreams, each));
    if left < wanted {
        let is_configured = settings.limits.connections != Limits::default().connections;
        settings.limits.connections = left as usize;
        log_fewer(
            is_configured,
            limit,
            left,
            wanted.saturating_mul(each + 1).max(wanted.saturating_mul(each) + upstreams + OWN_FILES),
        );
    }
    Ok(())
}

/// Says that fewer connections are accepted: a warning if the file asks for more, else a line at the start, since nothing is
/// wrong.
fn log_fewer(is_configured: bool, limit: u64, left: u64, needed: u64) {
    static WAS_SAID: AtomicBool = AtomicBool::new(false);
    if is_configured {
        tracing::warn!(
            "this process may open {limit} files, too few for `connections` under [limits]: it accepts {left}; raise the limit \
             (systemd: `LimitNOFILE={needed}`), or write `connections = {left}`"
        );
    } else if !WAS_SAID.swap(true, Relaxed) {
        tracing::info!(
            "accepts at most {left} connections, since this process may open {limit} files; for more raise the limit (systemd: \
             `LimitNOFILE={needed}`)"
        );
    }
}

/// The number of files that this process has open.
pub(crate) fn open_now() -> u64 {
    // The folder being read is itself an open file, and is not counted.
    fs::read_dir("/proc/self/fd").map_or(3, |files| (files.count() as u64).saturating_sub(1))
}

/// The files that a gateway with these settings opens before its first client: for each runtime what it needs to wait for
/// sockets, its listeners and folders; and a spare one.
fn own_files(settings: &Settings) -> u64 {
    let threads = match settings.threads {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    };
    let folders = folders(settings);
    // Each listening socket is duplicated once, to be handed over.
    let admin = u64::from(settings.admin.is_some()) * (A_RUNTIME + 2);
    threads as u64 * (A_RUNTIME + 2 * settings.listen.len() as u64 + folders as u64) + admin + 1
}

/// The most files that a client holds: its connection and, if folders are served, a large file that it reads slowly.
fn files_of_a_client(settings: &Settings) -> u64 {
    1 + u64::from(folders(settings) > 0)
}

fn folders(settings: &Settings) -> usize {
    settings.backends.iter().filter(|backend| matches!(backend, Backend::Files(_))).count()
}

/// The number of clients, given `limit` open files of which `least` are the gateway's own, `upstreams` connections to
/// upstreams, and `each` files for each client.
fn left_for_clients(limit: u64, least: u64, (upstreams, each): (u64, u64)) -> u64 {
    let own = OWN_FILES.min(limit / 5).max(least);
    // For every few clients, one temporary file may be open.
    let a_file = CONNECTIONS_A_FILE as u64;
    let left = limit.saturating_sub(own + upstreams) / (each * a_file + 1) * a_file;
    // At least a quarter of the limit, even if upstreams may have more connections than there are files; if few files are left,
    // a third of them, so that each client has its connection, one to an upstream and a file.
    left.max((limit / 4).min(limit.saturating_sub(least) / 3)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_the_soft_limit_is_the_hard_one() {
        let limit = raise_open_files().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (limit, limit));
    }

    #[test]
    fn clients_get_the_files_that_are_left() {
        assert_eq!(left_for_clients(1_048_576, 20, (64, 1)), 838_008);
        assert_eq!(left_for_clients(1024, 20, (8, 1)), 648);
        assert_eq!(left_for_clients(1024, 20, (5000, 1)), 256);
        assert_eq!(left_for_clients(32, 20, (8, 1)), 4);
        assert_eq!(left_for_clients(24, 20, (8, 1)), 1);
    }

    #[test]
    fn a_client_of_a_folder_may_hold_a_file_of_it() {
        let files = plimsoll_gateway::settings::FilesSettings::new(".");
        let with = |backends| Settings { backends, ..Settings::default() };
        let each = files_of_a_client(&with(vec![Backend::Files(files)]));
        assert_eq!((each, files_of_a_client(&with(Vec::new()))), (2, 1));
        for (limit, own, upstreams) in [(1_048_576, 1000, 64), (1024, 204, 8)] {
            let clients = left_for_clients(limit, 20, (upstreams, each));
            let taken = own + upstreams + each * clients + clients / CONNECTIONS_A_FILE as u64;
            assert!((limit - 9..=limit).contains(&taken), "{clients} clients take {taken} of {limit} files");
        }
    }
}
