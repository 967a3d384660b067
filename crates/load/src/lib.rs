//! The origin of known capacity, and the clients that load it.
//!
//! [`Origin`] is a web server whose capacity, and whose busy time at every instant, are known exactly. [`OpenLoop`]
//! and [`ClosedLoop`] are clients on loopback addresses of their own. Demo, tests, benchmarks and profiler use them.
//!
//! All HTTP here is hyper's, on purpose: a gateway tested by its own parser would agree with its own mistakes.

mod alarm;
mod arrivals;
mod client;
mod machine;
mod origin;
pub mod profile;

pub use arrivals::Step;
pub use client::{
    Answer, Answers, ClosedLoop, ErrorKind, LevelChanges, LoadHandle, OpenLoop, Outcome, Record, Sink, Slot,
    Tally, Target,
};
pub use origin::{BusyReading, Cost, Origin, OriginHandle, OriginSettings, PathClass, Served};
pub use plimsoll_core::random::Random;
pub use plimsoll_core::telemetry::Histogram;
