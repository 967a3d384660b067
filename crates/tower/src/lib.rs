//! Plimsoll inside the server: a [`tower_layer::Layer`] for axum, hyper and tonic.
//!
//! The layer asks the engine, which is also the gateway's, about each request: the request starts at once, waits or is turned
//! away, and has a level of service, which the handler reads. No setting needs to be tuned: the engine measures how busy the
//! handlers are and holds them at their load line.
//!
//! ```
//! use axum::{Extension, Router, routing::get};
//! use plimsoll_tower::{Decision, PlimsollLayer};
//!
//! async fn page(Extension(decision): Extension<Decision>) -> &'static str {
//!     if decision.level_name() == "light" { "few words" } else { "a long page" }
//! }
//!
//! # fn main() -> Result<(), plimsoll_tower::BuildError> {
//! let plimsoll = PlimsollLayer::builder().workers(8).levels(["light", "full"]).build()?;
//! let app: Router = Router::new().route("/", get(page)).layer(plimsoll);
//! # Ok(())
//! # }
//! ```
//!
//! What becomes of a request:
//!
//! ```text
//! call -> rejected: 503 with Retry-After, and a sentence that says why
//!      -> waits -> starts, or is dropped: 503
//!      -> starts -> the handler, with a Decision in the request's extensions
//!                -> the response, with the Decision in its extensions -> its last frame
//! ```
//!
//! - **The layer is always ready.** It decides in `call`, where it sees the request, and reserves nothing in `poll_ready`. It
//!   asks the service behind it whether that is ready only once the request has its place. So the engine sees every request
//!   that waits, and a caller that drops a ready service wastes no place.
//! - **A place is given back exactly once**, whatever ends the request: the last frame of the response, an error, a panic of
//!   the handler, or a future or body that is dropped. A response that is whole when it is made gives its place back at once,
//!   so that a client that reads slowly holds no place. A response that is made frame by frame holds its place to the last
//!   frame. A stream of events and an upgraded connection hold no place.
//! - **Time** is the operating system's. The control loops run on a thread of their own, which ends with the last layer,
//!   service and response.
//!
//! - `running`: the engine, its lanes and its thread
//! - `request`: one request's way
//! - `builder`: what was promised, in a few words
#![warn(missing_docs)]

mod builder;
mod layer;
mod request;
mod running;

pub use builder::{BuildError, Builder};
pub use layer::{PlimsollLayer, PlimsollService};
pub use request::body::ResponseBody;
pub use request::decision::Decision;
pub use request::future::ResponseFuture;
pub use request::view::HeadView;

pub use plimsoll_core as core;

#[cfg(test)]
mod tests;

/// The examples of the crate's page and of the page on embedding.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/embedding.md")]
mod pages {}
