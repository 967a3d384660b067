//! The limit of open files. Sockets are files, and the usual soft limit of 1024 is reached before a server is full.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_core::promises::Promises;
use plimsoll_gateway::Settings;
use plimsoll_gateway::settings::CONNECTIONS_A_FILE;
use std::io;

/// What the gateway itself opens at most: listeners, the operator's connections, files that it serves.
const OWN_FILES: u64 = 1000;

/// Raises this process's limit of open files to the hard limit and returns it.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

/// Lowers the number of client connections to what the limit allows. Every client is an open file, and each request to an
/// upstream another. Clients above the number wait in the kernel's queue.
pub(crate) fn fit_connections(settings: &mut Settings, promises: &Promises) {
    let upstreams = promises.plants.iter().map(|plant| u64::from(plant.max_connections)).sum();
    let limit = match raise_open_files() {
        Ok(limit) => limit,
        Err(error) => return tracing::warn!("note: the limit of open files cannot be raised: {error}"),
    };
    let wanted = settings.limits.connections as u64;
    let left = left_for_clients(limit, upstreams);
    if left < wanted {
        settings.limits.connections = left as usize;
        tracing::warn!(
            "note: this process may open {limit} files, too few for {wanted} connections: it accepts {left}; raise \
             the limit (systemd: `LimitNOFILE={}`), or write `connections = {left}` under [limits]",
            wanted.saturating_mul(2).max(wanted + upstreams + OWN_FILES),
        );
    }
}

/// How many clients there may be, with `limit` open files and `upstreams` connections to upstreams.
fn left_for_clients(limit: u64, upstreams: u64) -> u64 {
    let own = OWN_FILES.min(limit / 5);
    // For every few clients, one may have a temporary file.
    let a_file = CONNECTIONS_A_FILE as u64;
    let left = limit.saturating_sub(own + upstreams) / (a_file + 1) * a_file;
    // A quarter at least, even if upstreams may have more connections than there are files.
    left.max(limit / 4).max(1)
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
        assert_eq!(left_for_clients(1_048_576, 64), 838_008);
        assert_eq!(left_for_clients(1024, 8), 648);
        assert_eq!(left_for_clients(1024, 5000), 256);
        assert_eq!(left_for_clients(0, 0), 1);
    }
}
