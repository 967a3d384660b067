//! `plimsoll agent FILE`: a relay beside an unmodified nginx or Apache (CA 4). In come response times of probes and the
//! server's counters; out goes the content tree that the server takes.
//!
//! ```text
//! probe.rs (thread) --------> machine: plimsoll_core::agent ------> chooser/: link, nginx, apache
//! counters/: log, status ----> (four times a period)   \---------> words.rs
//! ```
//!
//! Nothing here decides. A signal, a failure or a panic that ends the agent also restores the full tree, by dropping
//! [`Restored`]. Only a kill that cannot be caught leaves the tree as it is; then `--restore` does it.

mod chooser;
mod counters;
mod cycle;
mod probe;
mod start;
mod words;

use crate::args::{AgentArguments, source};
use crate::output::failure::Failure;
use crate::output::text;
use crate::service::log;
use crate::service::signals::Signals;
use chooser::Chooser;
use cycle::{AgentRun, Restored};
use plimsoll_config::{OnExit, parse_agent};

/// Runs the agent that the file describes.
pub(crate) fn agent(arguments: &AgentArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let agent = source::read_as(&arguments.file, ("an agent's file", "examples/agent.toml"), parse_agent)?;
    let mut chooser = chooser::chooser(&agent);
    if arguments.restore {
        return restore(chooser.as_mut());
    }
    let (probes, source) = start::check(&agent, chooser.as_ref(), arguments)?;
    if arguments.check {
        return text::print(format_args!(
            "{} is right, and all that it names is as it should be.",
            arguments.file.display()
        ));
    }
    let applied = chooser.present().ok().flatten().unwrap_or(1.0);
    tracing::info!(
        "agent beside {}: {} at the start, load line {:.2}{}",
        agent.probe.host,
        words::clients(applied),
        agent.settings.load_line,
        if arguments.dry_run { "; a dry run, nothing is changed" } else { "" }
    );
    let keep = arguments.dry_run || agent.on_exit == OnExit::Keep;
    let chooser = Restored::new(chooser, applied, keep);
    AgentRun::new(&agent, arguments, chooser, (probes, source)).until_stopped(signals)
}

/// Gives full quality to all clients, unless something is there that the agent did not make.
fn restore(chooser: &mut dyn Chooser) -> Result<(), Failure> {
    chooser.present().map_err(|why| Failure::Input(format!("error: {why}")))?;
    match chooser.set(1.0) {
        Ok(_) => text::print("full quality for everybody"),
        Err(error) => Err(Failure::Failed(format!("error: {error}"))),
    }
}
