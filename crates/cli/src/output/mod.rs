//! What commands print: text, tables, the plan, promises beside what was kept, and why a command failed. In come facts,
//! out goes text.

pub(crate) mod failure;
pub(crate) mod plan;
pub(crate) mod promised;
pub(crate) mod text;
