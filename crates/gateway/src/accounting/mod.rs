//! Each request is accounted for once, however its way ends.
//!
//! A request's [`permit_guard`] departs it from the engine, when it is dropped at the latest. Its [`log_entry`] goes along,
//! from which the line of the access log and the spans of its trace are written then. A request that fails, is cut off or
//! is dropped with its thread has both, too.

pub(crate) mod log_entry;
pub(crate) mod permit_guard;
