//! Promised ratios of delays (PR): a law, and whether a ratio is feasible at this load.

pub(crate) mod feasibility;
pub(crate) mod law;
