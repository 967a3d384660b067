//! The server's own counters: from its access log, or from a status page.

mod log;
mod status;

use log::FollowedLog;
use plimsoll_config::{Agent, CountersAt};
use plimsoll_core::agent::Counters;
use status::{Format, StatusPage};
use std::time::Instant;

/// Where they are read.
pub(super) enum Source {
    Log(FollowedLog),
    Page(StatusPage),
}

impl Source {
    /// Opens it, and sees that it says what is needed.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub(super) fn open(agent: &Agent) -> Result<Source, String> {
        let (url, format) = match &agent.counters {
            CountersAt::Log(path) => return FollowedLog::open(path).map(Source::Log),
            CountersAt::ServerStatus(url) => (url, Format::Apache),
            CountersAt::StubStatus(url) => (url, Format::Nginx),
        };
        let every = agent.settings.period / plimsoll_core::agent::SAMPLES;
        StatusPage::open(url, format, (agent.sense, every)).map(Source::Page)
    }

    /// How they moved since the last look, and in how many seconds; none if they could not be read meanwhile.
    pub(super) fn look(&mut self, now: Instant) -> Option<(Counters, f64)> {
        match self {
            Source::Log(log) => log.look(now),
            Source::Page(page) => page.look(),
        }
    }

    /// Lines of a log that could not be understood, with the first of them.
    pub(super) fn complaint(&mut self) -> Option<String> {
        match self {
            Source::Log(log) => log.complaint(),
            Source::Page(_) => None,
        }
    }
}
