//! The engine through its request API, as a shell drives it.

mod choice;
mod closed_loop;
mod come_again;
mod deadlines;
mod exempt;
mod idle;
mod put_off;
mod ratios;
mod reload;
mod reload_contracts;
mod request;
mod request_api;
mod shed;

use plimsoll_core::promises::Promises;
use plimsoll_core::time::Instant;
use plimsoll_core::{Engine, Lane};
use request::{Request, get};

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// An engine with one lane.
fn engine(promises: &Promises) -> (Engine, Lane) {
    let (engine, mut lanes) = Engine::new(promises, 1, 42).expect("valid promises");
    (engine, lanes.pop().expect("one lane"))
}
