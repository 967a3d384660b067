//! The picture of the README: the show in virtual time, so that it is the same wherever it is made.

use super::plant::Server;
use super::show::{CALM, LENGTHS};
use super::{LOAD, SEED, SHOW_CAPACITY, page, simulated};
use crate::output::failure::Failure;
use std::path::Path;

/// Writes the picture to a file.
pub(crate) fn picture(path: &Path) -> Result<(), Failure> {
    let written = std::fs::write(path, svg()?);
    written.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}

fn svg() -> Result<String, Failure> {
    let phases: Vec<(u64, f64)> = LENGTHS.into_iter().zip([CALM, LOAD, CALM]).collect();
    let moments = simulated::moments(Server::of_capacity(SHOW_CAPACITY), SEED, &phases)?;
    let [begin, end] = [LENGTHS[0], LENGTHS[0] + LENGTHS[1]].map(|second| second as f64);
    let come = format!("{LOAD} times as many requests as the server can carry");
    Ok(page::picture(&moments, &[(begin, &come), (end, "half as many")]).to_svg())
}

#[cfg(test)]
mod tests {
    /// `PLIMSOLL_BLESS=1` writes it anew.
    #[test]
    fn the_picture_of_the_readme_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
        let svg = super::svg().unwrap();
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            std::fs::write(&path, &svg).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == svg,
            "docs/demo.svg is not what the demo gives now: `plimsoll demo --picture docs/demo.svg`"
        );
    }
}
