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

/// The seed where none is given.
const SEED: u64 = 1;
/// The load where none is given, as a multiple of the capacity.
const LOAD: f64 = 3.0;
/// Full pages per second of a step's server where none are given; see [`plant`].
const STEP_CAPACITY: u32 = 2000;
/// Those of the show's: two sides at once, and the eye does not see the noise.
const SHOW_CAPACITY: u32 = 1000;
/// The length of a step where none is given (s).
const SECONDS: u64 = 30;

/// Runs it.
pub(crate) fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let seed = arguments.seed.unwrap_or(SEED);
    let server = |usual| plant::Server::of_capacity(arguments.capacity.unwrap_or(usual));
    let load = arguments.load.unwrap_or(LOAD);
    if arguments.json || arguments.seconds.is_some() {
        let seconds = arguments.seconds.unwrap_or(SECONDS);
        step::step(step::Step { server: server(STEP_CAPACITY), seed, load, seconds, json: arguments.json })
    } else {
        show::show(server(SHOW_CAPACITY), load, seed)
    }
}
