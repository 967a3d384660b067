//! Room: what a request is and where it belongs.
//!
//! *In*: the promises, and a shell's view of a request. *Out*: a [`Target`] (site, class, client, type), and the values that
//! accompany a request on its way: [`Arrival`], [`Permit`], [`Verdict`], [`Outcome`], each with its [`Reason`]. Nothing here
//! waits or decides, and only `shape_table` counts. A shell that builds no engine uses a [`Classifier`].
//!
//! - `api`, `reason`, `work`: what a shell hands in and gets back, why a request was treated so, the work that it brings
//! - `classify`, `hosts`, `pattern`, `normal_path`, [`explain`]: its site and its class, and how they are found, step by step
//! - `host_name`, `level_prefix`, `media_type`: what a shell finds in heads: hosts, paths of a level's prefix, event streams
//! - `client_hash`: a client by its address, and the keyed hash of it, by which its level is chosen
//! - `type_rules`, `default_type`, `shape`, `shape_table`: its type, and what else of it may be evidence of its cost

mod api;
#[cfg(test)]
mod by_hand;
pub(crate) mod classify;
mod client_hash;
mod default_type;
pub mod explain;
mod host_name;
pub(crate) mod hosts;
mod level_prefix;
mod media_type;
mod normal_path;
mod pattern;
mod reason;
pub(crate) mod shape;
pub(crate) mod shape_table;
pub(crate) mod type_rules;
pub(crate) mod work;

pub(crate) use api::Stage;
pub use api::{
    Arrival, COUNTED_EVERY, Outcome, Permit, Rejection, RequestView, Service, Target, Token, Verdict,
    Verdicts, cookie,
};
pub use classify::Classifier;
pub use client_hash::client_address;
pub use default_type::DefaultType;
pub use host_name::{host_length, host_of};
pub use level_prefix::{Authority, Cut, Prefixed};
pub use media_type::is_event_stream;
pub use normal_path::{has_dot_segment, normal_path};
pub use pattern::Pattern;
pub use reason::Reason;
