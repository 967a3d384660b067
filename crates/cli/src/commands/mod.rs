//! The commands, one file or folder each. A command reads files, calls the libraries of the workspace and hands the facts
//! to `output`; none decides anything about requests.

#[cfg(feature = "adapt")]
pub(crate) mod adapt;
pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod control;
pub(crate) mod demo;
pub(crate) mod explain;
#[cfg(feature = "adapt")]
pub(crate) mod impact;
pub(crate) mod profile;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod top;
