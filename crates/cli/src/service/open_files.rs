//! The limit of open files. Sockets are files, and the usual soft limit of 1024 is reached before a server is full.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// Raises this process's limit of open files to the hard limit and returns it.
///
/// # Errors
/// The system refuses, as a sandbox may; the old limit is then still in force.
pub(crate) fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_the_soft_limit_is_the_hard_one() {
        let limit = raise_open_files().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (limit, limit));
    }
}
