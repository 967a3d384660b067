//! What commands print. Input: the facts of a command ([`facts`]). Output: JSON, text and a page, which are three walks over
//! the same facts. Tables and pages are those of the report crate: `text` prints them, the report crate writes them as HTML.
//! This room also holds the plan, promises in words, types that were found or whose costs vary too much, numbers with their
//! units, and why a command failed.

pub(crate) mod facts;
pub(crate) mod failure;
pub(crate) mod found_types;
pub(crate) mod json;
pub(crate) mod level_order;
pub(crate) mod new_file;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod promised;
pub(crate) mod terminal;
pub(crate) mod text;
pub(crate) mod type_costs;
pub(crate) mod units;
