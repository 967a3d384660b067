//! Room: what threads share safely.
//!
//! *In*: a value that several threads use. *Out*: the same value behind a lock, a generation, a reference or an atomic word.
//!
//! - `lock`: the one mutex
//! - `published`: a value that one thread replaces and the others follow
//! - `shared`: a reference to words on the heap or in a mapping
//! - `tagged`: an amount of work and the period that it belongs to, in one word
//! - `model_check`: tagged words under every interleaving; `scheduling/model_check.rs` checks the published value

pub(crate) mod lock;
#[cfg(all(test, loom))]
mod model_check;
pub(crate) mod published;
pub(crate) mod shared;
pub(crate) mod tagged;
