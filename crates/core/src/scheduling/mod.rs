//! Room: when a request starts.
//!
//! *In*: an admitted request with its rank, and the workers that become free. *Out*: the order in which requests start.
//!
//! - `gate`: how many requests a plant has in service, and whether any wait, in one word
//! - `queue`: the waiting requests of a plant, and which one is next
//! - `fifo`: the waiting requests of one rank or class
//! - `precedence`: compares two fifos: whose first request goes first; among classes with a ratio, which one uses the next turn
//! - `rank`: the band and the deadline that a request waits with
//! - `quota`: the workers that a class with a promised delay owns, or the weight of a class with a ratio
//! - `arrival_gaps`: the times between the arrivals of a class, without idle ones
//! - `ratio_turns`: the list of the turns that classes with a ratio exchange among themselves
//! - `site_shares`: the shares by which sites with a contract take turns

pub(crate) mod arrival_gaps;
mod fifo;
pub(crate) mod gate;
#[cfg(all(test, loom))]
mod model_check;
mod precedence;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod rank;
mod ratio_turns;
mod site_shares;

pub use arrival_gaps::ArrivalGaps;
