//! Each request is accounted for once, however its way ends.
//!
//! A request's [`permit_guard`] departs the request from the engine, at the latest when the guard is dropped. The guard owns
//! the request's [`log_entry`], which then writes the line of the access log and the spans of the trace. This also holds for a
//! request that fails, is cut off or is dropped with its thread.

pub(crate) mod log_entry;
pub(crate) mod permit_guard;
