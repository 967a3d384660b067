//! The files of Plimsoll, configuration, workload, the adapter's policy and the agent's file: TOML in, plain structs or
//! exact diagnostics out.
//!
//! ```text
//! text -> toml (tree with spans) -> keys (typed, located) -> resolve (names to numbers, meaning) -> Configuration
//! ```
//!
//! One table of keys (`keys.rs`) makes the reading, the suggestions, the reference ([`reference()`]) and the JSON Schema
//! ([`json_schema`]), so they cannot drift. All errors of a file are reported at once ([`Diagnostics`]). A workload for
//! the simulator is read in the same way, from a table of its own (`workload/keys.rs`), against the promises that a
//! configuration makes ([`parse_workload`]), and so is the file of an agent ([`parse_agent`]).
//!
//! The parser is `toml`'s `DeTable::parse_recoverable`: it keeps the span of every key and value and goes on after an
//! error of syntax. `toml-span` is smaller but stops at the first error and knows no dates; `toml_edit` keeps comments
//! and layout, which nobody here needs; serde is not used at all (see `field`).
//!
//! Nothing here touches the file system or the network: names are looked up and folders opened by whoever serves.

mod adaptation;
mod agent;
mod diagnostic;
mod emit;
mod gateway;
mod http;
mod syntax;
mod workload;

pub use adaptation::{Adaptation, parse_adaptation};
pub use agent::{Agent, Chooser, CountersAt, HttpUrl, Nginx, OnExit, Scheme, parse_agent};
pub use diagnostic::{Code, Diagnostic, Diagnostics};
pub use emit::reference::{adaptation_reference, agent_reference, reference, workload_reference};
pub use emit::schema::{adaptation_schema, agent_schema, json_schema, workload_schema};
pub use gateway::{Backend, Gateway};
pub use workload::{Reading, Understood, Untimed, parse_workload, parse_workload_as, replay};

use plimsoll_core::promises::Promises;

/// What a file says: what was promised, and how the gateway keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// For the engine.
    pub promises: Promises,
    /// For the gateway.
    pub gateway: Gateway,
}

/// Reads a configuration. `name` is the file's name as the user gave it: it stands in diagnostics, and relative paths
/// are taken from its folder.
///
/// # Errors
/// All that is wrong with the file, at once.
pub fn parse(source: &str, name: &str) -> Result<Configuration, Diagnostics> {
    syntax::understand(source, name, |file: &gateway::keys::File, findings| {
        gateway::resolve::resolve(file, name, findings)
    })
}
