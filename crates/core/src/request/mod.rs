//! Room: what a request is and where it belongs.
//!
//! *In*: the promises, and a shell's view of a request. *Out*: a [`Target`] (site, class, client, type), and the values
//! that accompany a request on its way: [`Arrival`], [`Permit`], [`Verdict`], [`Outcome`], each with its [`Reason`].
//! Classification is pure; nothing here counts, waits or decides. A shell that builds no engine uses a [`Classifier`].

mod api;
pub(crate) mod classify;
pub mod explain;
pub(crate) mod hosts;
mod reason;
pub(crate) mod types;
pub(crate) mod work;

pub(crate) use api::Stage;
pub use api::{Arrival, Outcome, Permit, RequestView, Service, Target, Token, Verdict, Verdicts};
pub use classify::Classifier;
pub use reason::Reason;
