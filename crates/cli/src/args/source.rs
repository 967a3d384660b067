//! A configuration file, read and understood, or everything that is wrong with it.

use crate::output::failure::Failure;
use crate::output::plan;
use plimsoll_config::Configuration;
use plimsoll_core::Engine;
use std::path::Path;

/// Reads `path`.
///
/// # Errors
/// [`Failure::Input`] if it cannot be read, is not a configuration, or promises what cannot be.
pub(crate) fn read(path: &Path) -> Result<Configuration, Failure> {
    let name = path.display().to_string();
    let source = std::fs::read_to_string(path).map_err(|error| {
        Failure::Input(format!(
            "cannot read {name}: {error}\nName a configuration; examples/one-site.toml is one to begin with."
        ))
    })?;
    understand(&source, &name)
}

/// What `source` says; `name` stands in the diagnostics. Promises that cannot be kept are refused with the plan.
pub(crate) fn understand(source: &str, name: &str) -> Result<Configuration, Failure> {
    let configuration =
        plimsoll_config::parse(source, name).map_err(|all| Failure::Input(all.to_string()))?;
    // The engine has the last word on what can be promised.
    match Engine::new(&configuration.promises, 1, configuration.gateway.settings.hash_seed) {
        Ok(_) => plan::keep(&configuration.promises, name).map(|()| configuration),
        Err(wrong) => Err(Failure::Input(format!("{name}: {}", wrong.join(&format!("\n{name}: "))))),
    }
}
