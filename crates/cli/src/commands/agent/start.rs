//! The start: everything that the agent's file names is tried before anything is changed.

use super::chooser::Chooser;
use super::counters::CounterSource;
use super::probe::Probes;
use super::words;
use crate::args::AgentArguments;
use crate::output::failure::Failure;
use crate::service::page::PageClient;
use plimsoll_config::Agent;
use plimsoll_core::agent::Threshold;
use std::time::{Duration, Instant};

/// A probe is given up after this.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// Tries the chooser, the probe and the counters; the probes run from then on.
///
/// # Errors
/// All that is wrong, each with what to do.
pub(super) fn check(
    agent: &Agent,
    chooser: &dyn Chooser,
    arguments: &AgentArguments,
) -> Result<(Probes, CounterSource), Failure> {
    let acts = !arguments.dry_run;
    let mut wrong = chooser.check(acts);
    wrong.extend(chooser.present().err());
    let probes = first_probe(agent).map_err(|why| wrong.push(why)).ok();
    let source = CounterSource::open(agent).map_err(|why| wrong.push(why)).ok();
    match (probes, source) {
        (Some(probes), Some(source)) if wrong.is_empty() => Ok((probes, source)),
        _ => {
            let name = arguments.file.display();
            let all: Vec<String> = wrong.iter().map(|what| format!("error: {name}: {what}")).collect();
            Err(Failure::Input(all.join("\n")))
        }
    }
}

/// Probes once, and starts the thread that goes on if the answer is good.
fn first_probe(agent: &Agent) -> Result<Probes, String> {
    let place = &agent.probe;
    let client = PageClient::new(place, PROBE_PATIENCE)
        .map_err(|error| format!("{}: cannot be looked up: {error}", agent.probe.address))?;
    let started = Instant::now();
    let page = client.get().map_err(|error| {
        format!("the probe {place} fails: {error}; start the server, or name another page")
    })?;
    let took = started.elapsed();
    match page.status {
        200..400 => {}
        status => {
            return Err(format!("the probe {place} is answered with {status}; name a page that exists"));
        }
    }
    if let Threshold::Promised(promised) = agent.settings.threshold
        && took > promised / 2
    {
        tracing::warn!(
            "note: the probe takes {} by itself, of {} that were promised; name a cheaper page",
            words::time(took),
            words::time(promised)
        );
    }
    Probes::start(client, agent.settings.every).map_err(|error| format!("cannot start a thread: {error}"))
}
