//! The seed of the client hash where the configuration tells none: drawn at the first start, and kept in a file.
//!
//! A client that knows the seed can compute whether it gets the better level, so no default would do, and only its owner may
//! read the file. It is kept because a new seed would change the level of most clients at each restart. Where no file can be
//! written the gateway runs all the same, and says so.

use crate::output::failure::{self, Failure};
use plimsoll_config::{Configuration, Seed};
use plimsoll_gateway::settings::SeedSource;
use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A seed, and where it is from.
pub(crate) type Known = (u64, SeedSource);

/// The seed that the gateway is to run with; it is drawn if there is none yet.
pub(crate) fn draw(configuration: &Configuration, file: &Path) -> Result<Known, Failure> {
    if let Some(known) = find(configuration, file)? {
        return Ok(known);
    }
    let path = path(&configuration.gateway.seed, file);
    // What may be told in a configuration is positive in 64 bits, so that the seed can be copied there.
    let seed = drawn() & i64::MAX as u64;
    match keep(&path, seed) {
        Ok(()) => Ok((seed, SeedSource::Kept)),
        // Another gateway was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(find(configuration, file)?.unwrap_or((seed, SeedSource::Drawn)))
        }
        Err(error) => {
            tracing::warn!(
                "cannot write {}: {error}; clients may get another level at each restart. Name a file that can be written \
                 (`seed_file` under [gateway]), or a `seed`",
                path.display()
            );
            Ok((seed, SeedSource::Drawn))
        }
    }
}

/// The seed that is told or kept; `None` if none was drawn yet.
pub(crate) fn find(configuration: &Configuration, file: &Path) -> Result<Option<Known>, Failure> {
    let kept = match &configuration.gateway.seed {
        Seed::Told(seed) => return Ok(Some((*seed, SeedSource::Told))),
        kept @ Seed::Kept(_) => path(kept, file),
    };
    let name = kept.display();
    match std::fs::read_to_string(&kept) {
        Ok(text) => match text.trim().parse() {
            Ok(seed) => Ok(Some((seed, SeedSource::Kept))),
            Err(_) => Err(Failure::Input(format!(
                "{name}: this is no seed: a whole number; remove the file to draw a new one"
            ))),
        },
        // A folder that is not there is met again when the file is written.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::Input(format!("cannot read the seed in {name}: {error}"))),
    }
}

/// 64 bits that nobody can guess: the standard library draws the key of this hasher from the operating system.
pub(crate) fn drawn() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The file that keeps the seed.
fn path(seed: &Seed, file: &Path) -> PathBuf {
    if let Seed::Kept(Some(path)) = seed {
        return path.clone();
    }
    let own = file.with_extension("seed");
    // systemd names several folders with colons between.
    let state = env::var("STATE_DIRECTORY").unwrap_or_default();
    match (state.split(':').next().filter(|folder| !folder.is_empty()), own.file_name()) {
        (Some(state), Some(name)) => Path::new(state).join(name),
        _ => own,
    }
}

/// Writes the seed to a file of its own, which only this user may read.
fn keep(path: &Path, seed: u64) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(failure::folder(path))?;
    writeln!(new, "{seed}")?;
    new.as_file().sync_all()?;
    new.persist_noclobber(path).map(drop).map_err(|failed| failed.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;

    fn configuration(more: &str) -> Configuration {
        let file = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{more}[upstream.app]\naddress = \"127.0.0.1:81\"\n"
        );
        understand(&file, "test.toml").expect("the test's file is right")
    }

    #[test]
    fn a_seed_is_drawn_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let (file, own) = (folder.path().join("site.toml"), configuration(""));
        assert_eq!(find(&own, &file).unwrap(), None);
        let (seed, from) = draw(&own, &file).unwrap();
        assert_eq!(from, SeedSource::Kept);
        assert_eq!(draw(&own, &file).unwrap(), (seed, SeedSource::Kept), "the next start has the same");
        let kept = folder.path().join("site.seed");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o077, 0);
        let (other, _) = draw(&own, &folder.path().join("other.toml")).unwrap();
        assert!(seed != other && seed <= i64::MAX as u64 && other <= i64::MAX as u64);
        std::fs::write(&kept, "lucky\n").unwrap();
        let Err(Failure::Input(text)) = draw(&own, &file) else { panic!("it was not refused") };
        assert!(text.contains("site.seed: this is no seed"), "{text}");
    }

    #[test]
    fn a_seed_that_is_told_needs_no_file_and_one_that_cannot_be_kept_is_drawn_at_each_start() {
        let told = configuration("seed = 7\n");
        assert_eq!(draw(&told, Path::new("/no/such/site.toml")).unwrap(), (7, SeedSource::Told));
        let own = configuration("");
        let (first, from) = draw(&own, Path::new("/no/such/site.toml")).unwrap();
        let (second, _) = draw(&own, Path::new("/no/such/site.toml")).unwrap();
        assert!(from == SeedSource::Drawn && first != second);
    }
}
