//! The origin of known capacity, and the clients that load it.
//!
//! [`Origin`] is a web server whose capacity, and whose busy time at every instant, are known exactly. [`OpenLoop`]
//! and [`ClosedLoop`] are clients on loopback addresses of their own. Demo, tests, benchmarks and profiler use them.
//!
//! All HTTP here is hyper's, on purpose: a gateway tested by its own parser would agree with its own mistakes.

mod alarm;
mod arrivals;
mod body;
mod client;
mod congestion;
mod machine_time;
mod origin;
pub mod profile;

pub use arrivals::{PoissonArrivals, Step};
pub use client::{
    Answer, Answers, ClosedLoop, ErrorKind, LevelChanges, LoadHandle, OpenLoop, Outcome, Paths, Record, Sink,
    Slot, Tally, Target, client_address,
};
pub use origin::{
    BusyLedger, BusyReading, ClassCount, Cost, Origin, OriginHandle, OriginSettings, PathClass, Served,
};
pub use plimsoll_core::random::Random;
pub use plimsoll_core::telemetry::Histogram;
