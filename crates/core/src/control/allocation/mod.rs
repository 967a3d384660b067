//! Who gets how much of a plant: contracts, priorities, and the excess by weight.

mod max_min;
pub(crate) mod sharing;
