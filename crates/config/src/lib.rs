//! The file formats of Plimsoll: configuration, workload, the adapter's policy and the agent's file.
//!
//! ```text
//! text -> toml (tree with spans) -> keys (typed, located) -> resolve (names to numbers, meaning) -> plain structs
//! ```
//!
//! Each format has a room with a table of keys, from which its reading, suggestions, reference and JSON Schema are made, so
//! that they cannot drift apart. All errors of a file are reported at once ([`Diagnostics`]). A workload is read against the
//! promises of a configuration ([`parse_workload`]). This crate touches neither the file system nor the network: the caller
//! looks up names and opens folders.

mod adaptation;
mod agent;
mod diagnostic;
mod emit;
mod gateway;
mod syntax;
mod workload;

pub use adaptation::{Adaptation, parse_adaptation};
pub use agent::{
    Agent, Chooser, CountersAt, HttpUrl, Nginx, OnExit, Scheme, is_agent, is_configuration, parse_agent,
};
pub use diagnostic::{Code, Diagnostic, Diagnostics};
pub use emit::FileFormat;
pub use gateway::addresses::{comes_to, listening_address};
pub use gateway::{Backend, Gateway, LeastLevel, LineFormat, Log, StatePlace};
pub use syntax::nearest;
pub use workload::{ParsedWorkload, Reading, UntimedPlant, parse_workload, parse_workload_as, replay};

use diagnostic::Findings;
use gateway::addresses::check_listens;
use gateway::file::ConfigurationKeys;
use plimsoll_core::promises::Promises;

/// A configuration: the promises, and the gateway's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The promises, for the engine.
    pub promises: Promises,
    /// The settings, for the gateway.
    pub gateway: Gateway,
}

/// Reads a configuration for the gateway. Before a server that decides itself, the gateway keeps only the promises that need a
/// queue ([`Promises::before_servers`]). `name` is the file's name as the user gave it: diagnostics show it, and relative paths
/// are taken from its folder.
///
/// # Errors
/// All errors of the file at once.
pub fn parse(source: &str, name: &str) -> Result<Configuration, Diagnostics> {
    let Configuration { promises, mut gateway } = parse_whole(source, name, check_listens)?;
    for (decided_inside, rewrites) in promises.decided_inside().zip(&mut gateway.settings.rewrites) {
        if decided_inside {
            rewrites.drain(..rewrites.len().saturating_sub(1));
        }
    }
    Ok(Configuration { promises: promises.before_servers(), gateway })
}

/// Reads a configuration for the processes of a server that decides itself ([`Promises::inside_servers`]). Clients connect to
/// the server, so `listen` may be absent.
///
/// # Errors
/// All errors of the file at once.
pub fn parse_inside(source: &str, name: &str) -> Result<Configuration, Diagnostics> {
    let Configuration { promises, gateway } = parse_whole(source, name, |_, _| ())?;
    Ok(Configuration { promises: promises.inside_servers(), gateway })
}

/// Reads a configuration; `check` reports what else its reader needs.
fn parse_whole(
    source: &str,
    name: &str,
    check: fn(&ConfigurationKeys, &mut Findings),
) -> Result<Configuration, Diagnostics> {
    syntax::read_file(source, name, |file: &ConfigurationKeys, findings| {
        check(file, findings);
        Some(gateway::file::resolve(file, name, findings))
    })
}
