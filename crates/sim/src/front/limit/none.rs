//! No limit: everything starts at once. The twin of every comparison.

use super::{Ask, Limiter};
use plimsoll_core::time::Instant;

/// Admits every request.
pub(in crate::front) struct Unlimited;

impl Limiter for Unlimited {
    fn admit(&mut self, _now: Instant, _ask: Ask) -> bool {
        true
    }
}
