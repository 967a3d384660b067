//! The seed of the client hash if the configuration names none: drawn at the first start, and kept with the state.
//!
//! A client that knows the seed can compute whether it gets the better level, so there can be no default seed. The seed is kept
//! because a new one would change the level of most clients at each restart. If no file can be written, the gateway runs all
//! the same, and says so.

use super::{KnownState, StateDocument, read, write};
use plimsoll_config::Configuration;
use plimsoll_core::LearnedState;
use plimsoll_gateway::settings::SeedSource;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind;
use std::path::Path;

/// A seed, and where it comes from.
pub(crate) type Known = (u64, SeedSource);

/// The seed that the gateway is to run with; drawn if there is none yet.
pub(crate) fn draw(configuration: &Configuration, state: &KnownState) -> Known {
    if let Some(configured) = configuration.gateway.seed {
        return (configured, SeedSource::Configured);
    }
    let source = if state.path.is_some() { SeedSource::Kept } else { SeedSource::Drawn };
    if let Some(seed) = state.seed {
        return (seed, source);
    }
    // A configuration takes positive numbers of 64 bits, so the drawn seed is one too and can be copied there.
    let seed = drawn() & i64::MAX as u64;
    let Some(path) = &state.path else { return (seed, SeedSource::Drawn) };
    // If a file exists but has no valid seed, it is replaced. A file that appears meanwhile belongs to another gateway and is
    // not replaced.
    let replaces = path.exists();
    match write(path, &StateDocument::new(LearnedState::default(), Some(seed), None).text(), replaces) {
        Ok(()) => (seed, SeedSource::Kept),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let (_, other) = read(path);
            other.map_or((seed, SeedSource::Drawn), |seed| (seed, SeedSource::Kept))
        }
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                "cannot write {}: {error}; clients may get another level at each restart. Name a file that can be written \
                 (`state` under [gateway]), or a `seed`",
                path.display()
            );
            (seed, SeedSource::Drawn)
        }
    }
}

/// The configured or kept seed; `None` if none was drawn yet.
pub(crate) fn find(configuration: &Configuration, file: &Path) -> Option<u64> {
    let kept = || KnownState::find(configuration, file, None).seed;
    configuration.gateway.seed.or_else(kept)
}

/// A seed that cannot be guessed: the standard library gets its hash keys from the operating system.
pub(crate) fn drawn() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;
    use std::os::unix::fs::PermissionsExt;

    fn configuration(more: &str) -> Configuration {
        let file = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{more}[upstream.app]\naddress = \"127.0.0.1:81\"\n"
        );
        understand(&file, "test.toml").expect("the test's file is right")
    }

    fn known(own: &Configuration, file: &Path) -> Known {
        draw(own, &KnownState::find(own, file, None))
    }

    #[test]
    fn a_seed_is_drawn_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let (file, own) = (folder.path().join("site.toml"), configuration(""));
        assert_eq!(find(&own, &file), None);
        let (seed, from) = known(&own, &file);
        assert_eq!(from, SeedSource::Kept);
        assert_eq!(known(&own, &file), (seed, SeedSource::Kept), "the next start has the same");
        assert_eq!(find(&own, &file), Some(seed));
        let kept = folder.path().join("site.state");
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o077, 0);
        let (other, _) = known(&own, &folder.path().join("other.toml"));
        assert!(seed != other && seed <= i64::MAX as u64 && other <= i64::MAX as u64);
        std::fs::write(&kept, format!("{{\"version\":2,\"classes\":{{}},\"seed\":{seed}}}\n")).unwrap();
        assert_eq!(known(&own, &file), (seed, SeedSource::Kept), "a program of another version has it too");
        std::fs::write(&kept, "lucky\n").unwrap();
        let (anew, from) = known(&own, &file);
        assert!(anew != seed && from == SeedSource::Kept, "what is no state is replaced");
    }

    #[test]
    fn a_configured_seed_needs_no_file_and_one_that_cannot_be_kept_is_drawn_at_each_start() {
        let configured = configuration("seed = 7\n");
        assert_eq!(known(&configured, Path::new("/no/such/site.toml")), (7, SeedSource::Configured));
        for own in [configuration(""), configuration("state = \"off\"\n")] {
            let (first, from) = known(&own, Path::new("/no/such/site.toml"));
            let (second, _) = known(&own, Path::new("/no/such/site.toml"));
            assert!(from == SeedSource::Drawn && first != second);
        }
    }
}
