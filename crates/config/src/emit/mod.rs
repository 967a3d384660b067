//! What is generated from the tables of keys: the pages of reference and the JSON Schemas under docs/.
//!
//! Comes in: the shapes of the four formats. Goes out: Markdown and JSON, as text; `plimsoll schema` prints the latter.

pub(crate) mod reference;
pub(crate) mod schema;
