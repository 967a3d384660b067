//! Room: what a request is and where it belongs.
//!
//! *In*: the promises, and a shell's view of a request. *Out*: a [`Target`] (site, class, client, type), and the values
//! that accompany a request on its way: [`Arrival`], [`Permit`], [`Verdict`], [`Outcome`], each with its [`Reason`].
//! Nothing here waits or decides, and only `shape_table` counts. A shell that builds no engine uses a [`Classifier`].
//!
//! - `api`: what a shell hands in and gets back
//! - `reason`: why a request was treated as it was
//! - `classify`: the site and the class of a request
//! - `normal_path`: a path as the server reads it
//! - `pattern`: patterns of paths, hosts and values
//! - `host_name`: the host that an authority names
//! - `hosts`: which of many sites has a host
//! - `media_type`: responses whose end the server does not decide
//! - `own_places`: what of a response names a place on the site, without a level's prefix
//! - `client_hash`: the keyed hash of the client, by which its level is chosen
//! - `default_type`: the type of a request that nobody told (AC)
//! - `type_rules`: the type of a request, by which its cost is estimated
//! - `shape`: what of a request may tell its cost
//! - `shape_table`: the shapes and the types that were found, shared by threads
//! - `work`: the work that a request brings
//! - [`explain`]: classification step by step

mod api;
#[cfg(test)]
mod by_hand;
pub(crate) mod classify;
mod client_hash;
mod default_type;
pub mod explain;
mod host_name;
pub(crate) mod hosts;
mod media_type;
mod normal_path;
mod own_places;
mod pattern;
mod reason;
pub(crate) mod shape;
pub(crate) mod shape_table;
pub(crate) mod type_rules;
pub(crate) mod work;

pub(crate) use api::Stage;
pub use api::{
    Arrival, Outcome, Permit, Rejection, RequestView, Service, Target, Token, Verdict, Verdicts, cookie,
};
pub use classify::Classifier;
pub use default_type::DefaultType;
pub use host_name::{host_length, host_of};
pub use media_type::is_event_stream;
pub use normal_path::normal_path;
pub use own_places::{Authority, Cut, Prefixed};
pub use pattern::Pattern;
pub use reason::Reason;
