//! `plimsoll demo`: an overloaded server with the gateway and without it, everything in this process.
//!
//! ```text
//! visitors (open loop) -> gateway -> server of known capacity     figures: the server's ledger, the visitors' clocks
//! visitors (open loop) ------------> another one like it
//! ```
//!
//! [`show`] runs both sides at once, for people to watch: `screen` draws them on a terminal, `page` makes the report. [`step`]
//! runs one side after the other, for figures, so that neither takes processor time from the other. `simulated` runs the same
//! files in virtual time, and [`page`] draws the picture of the README from that.

mod facts;
mod figures;
mod machine;
mod page;
mod plant;
mod screen;
mod show;
mod side;
mod simulated;
mod step;

use crate::args::DemoArguments;
use crate::output::failure::{self, Failure};
use crate::output::new_file::NewFile;

/// The default capacity of a step's server (full pages per second); see [`plant`].
const STEP_CAPACITY: u32 = 2000;
/// The default capacity of the show's servers, lower because two sides run at once and the noise is not visible on a screen.
const SHOW_CAPACITY: u32 = 1000;
/// The default length of a step (s).
const SECONDS: u64 = 30;
/// The load and the seed of the README's picture, which are the command line's defaults.
const LOAD: f64 = 3.0;
const SEED: u64 = 1;

pub(crate) fn demo(arguments: &DemoArguments) -> Result<(), Failure> {
    let server = |usual| plant::Server::of_capacity(arguments.capacity.unwrap_or(usual));
    let DemoArguments { load, seed, json, .. } = *arguments;
    let report = arguments.report.as_deref().map(|path| NewFile::begin(path, &[])).transpose()?;
    if let Some(path) = &arguments.picture {
        failure::write(path, &page::picture()?)
    } else if json || arguments.seconds.is_some() {
        let seconds = arguments.seconds.unwrap_or(SECONDS);
        step::step(step::Step { server: server(STEP_CAPACITY), seed, load, seconds, json }, report)
    } else {
        show::show(server(SHOW_CAPACITY), load, seed, report)
    }
}
