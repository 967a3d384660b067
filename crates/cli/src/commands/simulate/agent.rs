//! An agent as a contender: beside the server of a configuration, or beside one of its own.

use crate::args::source;
use crate::output::failure::Failure;
use plimsoll_config::{Agent, CountersAt, is_agent};
use plimsoll_sim::front::{AgentSettings, Comparator, ShownCounters};
use std::path::Path;

/// The agent that this file describes; `None` if it is another kind of file, or cannot be read twice.
pub(super) fn read(path: &Path) -> Option<Result<Agent, Failure>> {
    let text = path.is_file().then(|| std::fs::read_to_string(path).ok())??;
    is_agent(&text).then(|| source::read_agent(path))
}

/// The comparator that decides in virtual time as the agent does.
pub(super) fn comparator(agent: &Agent) -> Comparator {
    let shown = match agent.counters {
        CountersAt::Log(_) => ShownCounters::Log,
        CountersAt::ServerStatus(_) => ShownCounters::BusyWorkers,
        // The wire too shows how many requests are in progress.
        CountersAt::StubStatus(_) | CountersAt::Wire(_) => ShownCounters::Requests,
    };
    Comparator::agent(AgentSettings { settings: agent.settings.clone(), sense: agent.sense, shown })
}
