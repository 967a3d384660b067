//! Generates the pages of reference and the JSON Schemas under docs/ from the tables of keys.
//!
//! Input: the shapes of the four formats. Output: Markdown and JSON, as text; `plimsoll schema` prints the JSON. Only the
//! introductions are written by hand: they say what no key says, such as units, and the order of a file.

mod reference;
mod schema;

use crate::adaptation::keys::AdaptationKeys;
use crate::agent::keys::AgentKeys;
use crate::gateway::file::ConfigurationKeys;
use crate::syntax::{Section, SectionShape, sections};
use crate::workload::keys::WorkloadKeys;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The configuration of the gateway.
    Configuration,
    /// What a simulation runs against.
    Workload,
    /// The policy of the adapter.
    Adaptation,
    /// The file of the agent.
    Agent,
}

impl FileFormat {
    /// All sections that a file may have, its root first.
    fn sections(self) -> Vec<SectionShape> {
        sections(match self {
            FileFormat::Configuration => ConfigurationKeys::shape(),
            FileFormat::Workload => WorkloadKeys::shape(),
            FileFormat::Adaptation => AdaptationKeys::shape(),
            FileFormat::Agent => AgentKeys::shape(),
        })
    }

    /// The reference of all keys, in Markdown.
    pub fn reference(self) -> String {
        let (source, introduction) = match self {
            FileFormat::Configuration => ("gateway", include_str!("introductions/configuration.md")),
            FileFormat::Workload => ("workload/keys.rs", include_str!("introductions/workload.md")),
            FileFormat::Adaptation => ("adaptation/keys.rs", include_str!("introductions/adaptation.md")),
            FileFormat::Agent => ("agent/keys.rs", include_str!("introductions/agent.md")),
        };
        // The root of a configuration has no keys but sections, which follow.
        let root = usize::from(self == FileFormat::Configuration);
        reference::page(source, introduction, &self.sections()[root..])
    }

    /// The JSON Schema, for editors.
    pub fn schema(self) -> String {
        let title = match self {
            FileFormat::Configuration => "Plimsoll configuration",
            FileFormat::Workload => "Plimsoll workload",
            FileFormat::Adaptation => "Plimsoll adaptation",
            FileFormat::Agent => "Plimsoll agent",
        };
        schema::schema(title, &self.sections())
    }
}

/// A doc comment as one paragraph. Bars are escaped, because a bar would end a table cell.
fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
