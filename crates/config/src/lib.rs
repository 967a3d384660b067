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
mod field;
mod gateway;
mod http;
mod keys;
mod quantity;
mod reference;
mod resolve;
mod scalar;
mod schema;
mod shape;
mod suggest;
mod text;
mod workload;

pub use adaptation::{Adaptation, parse_adaptation};
pub use agent::{Agent, Chooser, CountersAt, HttpUrl, Nginx, OnExit, parse_agent};
pub use diagnostic::{Code, Diagnostic, Diagnostics};
pub use gateway::{Backend, Gateway};
pub use reference::{adaptation_reference, agent_reference, reference, workload_reference};
pub use schema::{adaptation_schema, agent_schema, json_schema, workload_schema};
pub use workload::{Reading, Understood, Untimed, parse_workload, parse_workload_as, replay};

use diagnostic::{Complaint, Findings};
use field::Section;
use plimsoll_core::promises::Promises;
use toml::de::DeTable;

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
    understand(source, name, |file: &keys::File, findings| resolve::resolve(file, name, findings))
}

/// Reads a file of any format: its keys, then, if it is TOML at all, what they mean.
fn understand<F: Section, T>(
    source: &str,
    name: &str,
    resolve: impl FnOnce(&F, &mut Findings) -> T,
) -> Result<T, Diagnostics> {
    let mut findings = Findings::of(F::shape);
    let (table, errors) = DeTable::parse_recoverable(source);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        let (code, complaint) = syntax(error.message());
        findings.add(code, &span, complaint);
    }
    let file = F::read_table(table.get_ref(), 0..0, &mut findings);
    if errors.is_empty() {
        let meaning = resolve(&file, &mut findings);
        if findings.is_empty() {
            return Ok(meaning);
        }
    } else {
        findings.keep_beside_syntax(source);
    }
    Err(findings.into_diagnostics(source, name))
}

/// An error of syntax, with what helps in the common cases.
fn syntax(message: &str) -> (Code, Complaint) {
    if message.contains("duplicate key") {
        let complaint =
            Complaint::new("this key is given twice", "keep one of them; several values go into a list");
        return (Code::Duplicate, complaint);
    }
    let message = message.trim_end_matches(", expected nothing");
    // An address or a duration without quotes looks like the beginning of a number.
    let help = if ["string", "float", "integer", "date", "time"].iter().any(|kind| message.contains(kind)) {
        "text, addresses and durations stand in double quotes: `name = \"shop\"`, `max_wait = \"10s\"`"
    } else {
        "TOML is lines of `key = value` under `[section]` headers; see https://toml.io"
    };
    (Code::Syntax, Complaint::new(format!("this is not TOML: {message}"), help))
}
