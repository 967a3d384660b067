//! Classification step by step: why a request belongs to its site and class, and what its client gets at which m.
//!
//! The explanation comes from the [`Classifier`] that an engine with the same promises and seed uses, so it shows what
//! happens there. Pure.

use crate::actuator::level_of_client::{turn_at, turned};
use crate::actuator::service_level::FRACTION_ONE;
use crate::promises::Promises;
use crate::request::{Classifier, RequestView, Target};
use crate::time::Duration;
use alloc::{string::String, vec::Vec};

/// A part of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The method, by the key `methods`.
    Method,
    /// The path, by the key `paths`.
    Path,
    /// A key of the query, by the key `query`.
    Query,
    /// The client's address, by the key `clients`.
    Client,
    /// A header, by the key `headers`.
    Header,
    /// A cookie, by the key `cookies`.
    Cookie,
}

/// How a client was identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identified {
    /// The address, as promised.
    Address,
    /// The address, because the request lacks the header or cookie of this name.
    AddressInPlaceOf(String),
    /// The header of this name.
    Header(String),
    /// The cookie of this name.
    Cookie(String),
}

/// The steps by which a request was classified.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Index of the site in the promises; no site before it has the host.
    pub site: usize,
    /// Index of the exemption that holds.
    pub exempt: Option<usize>,
    /// For each exemption before that one: its first part that does not hold.
    pub not_exempt: Vec<Part>,
    /// Index of the class in the site's list; `None` for the built-in ones.
    pub class: Option<usize>,
    /// For each class before the one that matches: its first part that does not hold.
    pub not_classes: Vec<Part>,
    /// How the client was identified.
    pub identified: Identified,
    /// The result of classification, numbered as in an engine that was made from these promises.
    pub target: Target,
}

impl Explanation {
    /// The client's hash as a fraction of 1 at this time since the Unix epoch: where F is above it, the client is served the
    /// higher of two levels. It moves only where the choice of clients turns (`rekey`).
    pub fn hash(&self, unix_time: Duration, rekey: Option<Duration>) -> f64 {
        let turn = rekey.map_or(0, |rekey| turn_at(unix_time, rekey));
        turned(self.target.client, turn) as f64 / FRACTION_ONE as f64
    }
}

/// Explains a request; `seed` as in [`Engine::new`](crate::Engine::new). `None` if it belongs to no site.
///
/// # Errors
/// The promises that contradict each other, one sentence each.
pub fn explain(
    promises: &Promises,
    seed: u64,
    request: &impl RequestView,
) -> Result<Option<Explanation>, Vec<String>> {
    Ok(Classifier::new(promises, seed)?.explain(request))
}
