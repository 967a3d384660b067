//! `plimsoll agent FILE`: a relay beside an unmodified nginx or Apache (CA 4). Input: response times of probes and the server's
//! counters. Output: the content tree that the server uses.
//!
//! ```text
//! probe.rs (thread) --------> loop: plimsoll_core::agent ---------> chooser/: link, nginx, apache
//! counters/: log, status, ---> (four times a period)   \---------> messages.rs
//!            processor
//! ```
//!
//! This module decides nothing. If a signal, a failure or a panic ends the agent, dropping [`Restored`] restores the full tree.
//! Only a kill that cannot be caught leaves the tree as it is; then `--restore` restores it.

mod chooser;
mod counters;
mod cycle;
mod messages;
mod probe;
mod sense_check;

use crate::args::{AgentArguments, source};
use crate::output::failure::Failure;
use crate::output::text;
use crate::service::log;
use crate::service::page::PageClient;
use crate::service::signals::Signals;
use chooser::Chooser;
use counters::CounterSource;
use cycle::{AgentRun, Restored};
use plimsoll_config::{Agent, OnExit};
use plimsoll_core::agent::Threshold;
use probe::Probes;
use std::time::{Duration, Instant};

pub(crate) fn agent(arguments: &AgentArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let agent = source::read_agent(&arguments.file)?;
    let mut chooser = chooser::chooser(&agent);
    if arguments.restore {
        return restore(&agent, chooser.as_mut());
    }
    let (probes, source) = check(&agent, chooser.as_ref(), arguments)?;
    if arguments.check {
        let readings = sense_check::readings(&agent, (probes, source));
        return text::print(format_args!(
            "{} is right, and all that it names is as it should be.\n\n{readings}",
            arguments.file.display()
        ));
    }
    let applied = chooser.present().ok().flatten().unwrap_or(1.0);
    tracing::info!(
        "agent beside {}: {} at the start, load line {:.2}{}",
        agent.probe.host,
        messages::clients(applied),
        agent.settings.load_line,
        if arguments.dry_run { "; a dry run, nothing is changed" } else { "" }
    );
    let keep = arguments.dry_run || agent.on_exit == OnExit::Keep;
    let chooser = Restored::new(chooser, applied, keep);
    AgentRun::new(&agent, arguments, chooser, (probes, source)).until_stopped(signals)
}

/// Gives full quality to all clients, unless something is there that the agent did not make.
fn restore(agent: &Agent, chooser: &mut dyn Chooser) -> Result<(), Failure> {
    chooser.present().map_err(|why| Failure::Input(format!("error: {why}")))?;
    match chooser.restore() {
        Ok(said) => text::print(said),
        Err(error) => {
            let path = chooser::path(agent).display();
            Err(Failure::Failed(format!("error: cannot give full quality to everybody by {path}: {error}")))
        }
    }
}

/// The time after which a probe is given up.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// Tries everything that the file names before anything is changed. The probes run from then on.
fn check(
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

/// Probes once, and starts the probing thread if the answer is good.
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
            "the probe takes {} by itself, of {} that were promised; name a cheaper page",
            messages::time(took),
            messages::time(promised)
        );
    }
    Probes::start(client, agent.settings.every).map_err(|error| format!("cannot start a thread: {error}"))
}
