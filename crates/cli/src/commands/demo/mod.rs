//! `plimsoll demo`: an overloaded server with the gateway and without it, everything in this process.
//!
//! ```text
//! visitors (open loop) -> gateway -> server of known capacity     figures: the server's ledger, the visitors' clocks
//! visitors (open loop) ------------> another one like it
//! ```
//!
//! [`show`] is for people, both sides at once; [`step`] is for figures, one side after the other, so that neither
//! takes the machine from the other.

mod figures;
mod machine;
mod plant;
mod screen;
mod show;
mod side;
mod simulated;
mod step;

use crate::args::DemoArguments;
use crate::output::failure::Failure;

/// Full pages per second of a step's server where none are given; see [`plant`].
const STEP_CAPACITY: u32 = 2000;
/// Those of the show's: two sides at once, and the eye does not see the noise.
const SHOW_CAPACITY: u32 = 1000;
/// The length of a step where none is given (s).
const SECONDS: u64 = 30;

/// Runs it.
pub(crate) fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let server = |usual| plant::Server::of_capacity(arguments.capacity.unwrap_or(usual));
    let DemoArguments { load, seed, json, .. } = *arguments;
    if json || arguments.seconds.is_some() {
        let seconds = arguments.seconds.unwrap_or(SECONDS);
        step::step(step::Step { server: server(STEP_CAPACITY), seed, load, seconds, json })
    } else {
        show::show(server(SHOW_CAPACITY), load, seed)
    }
}
