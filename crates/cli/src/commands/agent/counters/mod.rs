//! The server's counters, from its access log, a status page or its packets, and the processor time of its processes. Output:
//! the change of the counters since the last look.

mod log;
pub(super) mod processor;
mod status;
mod totals;
#[cfg(feature = "wire")]
mod wire;

use log::FollowedLog;
use plimsoll_config::{Agent, CountersAt};
use plimsoll_core::agent::Counters;
use status::{StatusFormat, StatusPage};
use std::time::Instant;

pub(super) enum CounterSource {
    Log(FollowedLog),
    Page(StatusPage),
    #[cfg(feature = "wire")]
    Wire(wire::WireSense),
}

impl CounterSource {
    /// Opens the source and checks that it has what the agent needs.
    pub(super) fn open(agent: &Agent) -> Result<CounterSource, String> {
        let (url, format) = match &agent.counters {
            CountersAt::Log(path) => return FollowedLog::open(path).map(CounterSource::Log),
            CountersAt::ServerStatus(url) => (url, StatusFormat::Apache),
            CountersAt::StubStatus(url) => (url, StatusFormat::Nginx),
            #[cfg(feature = "wire")]
            CountersAt::Wire(interface) => {
                return wire::WireSense::open(interface, agent).map(CounterSource::Wire);
            }
            #[cfg(not(feature = "wire"))]
            CountersAt::Wire(_) => {
                return Err("this program was built without packets: build it with `cargo build --release --features wire`, or \
                            use `log` or a status page"
                    .to_owned());
            }
        };
        let every = agent.settings.period / plimsoll_core::agent::SAMPLES;
        StatusPage::open(url, format, (agent.sense, every)).map(CounterSource::Page)
    }

    /// The change of the counters since the last look, and the seconds between; `None` if the counters could not be read.
    pub(super) fn look(&mut self, now: Instant) -> Option<(Counters, f64)> {
        match self {
            CounterSource::Log(log) => log.look(now),
            CounterSource::Page(page) => page.look(),
            #[cfg(feature = "wire")]
            CounterSource::Wire(wire) => wire.look(now),
        }
    }

    /// Bytes of packets since the start that were dropped because too many bytes waited; `None` if no packets are read.
    pub(super) fn dropped(&self) -> Option<u64> {
        match self {
            CounterSource::Log(_) | CounterSource::Page(_) => None,
            #[cfg(feature = "wire")]
            CounterSource::Wire(wire) => Some(wire.dropped()),
        }
    }

    /// A complaint about the log's lines, about a page that no longer counts, or about the packets; returned once.
    pub(super) fn complaint(&mut self) -> Option<String> {
        match self {
            CounterSource::Log(log) => log.complaint.take(),
            CounterSource::Page(page) => page.complaint(),
            #[cfg(feature = "wire")]
            CounterSource::Wire(wire) => wire.failure.take().or_else(|| wire.complaint.take()),
        }
    }
}

/// A complaint about a source that is made once.
#[derive(Default)]
struct Complaint {
    unsaid: Option<String>,
    is_made: bool,
}

impl Complaint {
    fn make(&mut self, what: Option<String>) {
        if what.is_some() && !std::mem::replace(&mut self.is_made, true) {
            self.unsaid = what;
        }
    }

    fn take(&mut self) -> Option<String> {
        self.unsaid.take()
    }

    /// Lets the next complaint be made again.
    fn forget(&mut self) {
        self.is_made = false;
    }
}
