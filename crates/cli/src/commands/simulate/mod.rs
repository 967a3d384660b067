//! `plimsoll simulate [FILE]`: runs the configuration in virtual time, and reports what would have become of requests.
//!
//! ```text
//! inputs (files -> contenders, workload) -> run each (watch: progress, Ctrl-C, trace)
//!     -> facts (promises, levels, notes) -> JSON, or page (tables, charts) -> text, HTML
//! ```

mod agent;
mod charts;
mod facts;
mod inputs;
mod logs;
mod notes;
mod page;
mod promises;
mod watch;

use crate::args::{SimulateArguments, source};
use crate::output::failure::{self, Failure};
use crate::output::new_file::NewFile;
use crate::output::units::{grouped, printable};
use crate::output::{json, text};
use crate::service::background::{self, ProgressLines};
use crate::service::signals::{Interrupt, Signals};
use facts::SimulationReport;
use inputs::Inputs;
use plimsoll_sim::front::{Front, Gateway};
use plimsoll_sim::{Error, MOST_WAITING, Run, Setup};
use std::path::PathBuf;
use watch::{Outputs, RunWatcher, Trace};

/// What was simulated, for every form of output.
pub(crate) struct Simulated {
    pub(crate) inputs: Inputs,
    pub(crate) seed: u64,
    /// One run for each contender.
    pub(crate) runs: Vec<Run>,
}

pub(crate) fn simulate(arguments: &SimulateArguments) -> Result<(), Failure> {
    if arguments.background {
        background::go()?;
    }
    let signals = Signals::block()?;
    let interrupt = Interrupt::listen(signals)?;
    let inputs = inputs::read(arguments, &interrupt)?;
    let seed = arguments.seed;
    let (file, mut trace) = outputs(arguments, &inputs)?;
    let mut runs = Vec::new();
    let mut lines = arguments.background.then(ProgressLines::default);
    for number in 0..inputs.contenders.len() {
        let outputs = Outputs { interrupt: &interrupt, trace: trace.as_mut(), lines: lines.as_mut() };
        let run = run_one(&inputs, number, seed, outputs)?;
        let complete = run.complete;
        // Beside a gateway the log is the gateway's own, and the program that asks has no option to sort it.
        if complete && !arguments.background {
            in_order(&inputs, &run)?;
        }
        runs.push(run);
        if !complete {
            break;
        }
    }
    anything_simulated(arguments, &inputs, &runs)?;
    let simulated = Simulated { inputs, seed, runs };
    let report = SimulationReport::of(&simulated);
    let page = page::page(&simulated, &report);
    json::print_or(arguments.json, &report, || text::page(&page))?;
    // The file is written after the figures are printed, so that a full disk does not cost the figures.
    file.map_or(Ok(()), |file| file.fill(&page.to_html()))?;
    trace.map_or(Ok(()), Trace::finish)
}

/// Refuses a log so far out of order that the figures would be wrong.
fn in_order(inputs: &Inputs, run: &Run) -> Result<(), Failure> {
    let Some((stream, notes)) = run.notes.iter().find(|(_, notes)| notes.is_beyond_repair()) else {
        return Ok(());
    };
    let name = &inputs.contenders[0].workload.streams[*stream].name;
    let (late, moved, lines) = (grouped(notes.backwards), grouped(notes.moved), grouped(notes.lines));
    Err(Failure::Input(format!(
        "error: {name} is not in order of time, and what comes of it would be wrong: of {lines} lines {moved} stood behind later \
         ones, {late} lines were too late for that, by more than a minute or {} lines, and the clock went back {} times\n  \
         help: `--sort` puts all in order first",
        grouped(MOST_WAITING as u64),
        notes.restarts
    )))
}

/// Refuses a run whose figures would be empty, because no request is for a site of the configuration.
fn anything_simulated(arguments: &SimulateArguments, inputs: &Inputs, runs: &[Run]) -> Result<(), Failure> {
    let run = &runs[0];
    let Some(host) = run.unmatched_host.as_ref().filter(|_| run.complete && run.requests == run.unmatched)
    else {
        return Ok(());
    };
    let contender = &inputs.contenders[0];
    let hosts: Vec<&str> =
        contender.promises.sites.iter().flat_map(|site| &site.hosts).map(String::as_str).collect();
    let (what, help) = if host.is_empty() {
        // In the background another program asks, which does not know the options of this command line.
        let help = match arguments.background {
            true => "`host` says which one they are for",
            false => "write `--host` and the one that they are for",
        };
        ("the requests name no host", help)
    } else {
        (
            "the requests are for other hosts",
            "add their host to a `[[site]]`, or leave its `host` out to take every one",
        )
    };
    let first =
        if host.is_empty() { String::new() } else { format!(", the first for `{}`", printable(host)) };
    Err(Failure::Input(format!(
        "error: nothing was simulated, because {what}{first}: {} has sites for {}\n  help: {help}",
        contender.name,
        hosts.join(", ")
    )))
}

/// Opens the files of the report and the trace.
fn outputs(
    arguments: &SimulateArguments,
    inputs: &Inputs,
) -> Result<(Option<NewFile>, Option<Trace>), Failure> {
    let begin =
        |path: &Option<PathBuf>| path.as_deref().map(|path| NewFile::begin(path, &inputs.files)).transpose();
    let (report, trace) = (begin(&arguments.report)?, begin(&arguments.trace)?);
    NewFile::must_differ(("--report", &report), ("--trace", &trace))?;
    Ok((report, trace.map(Trace::new)))
}

fn run_one(inputs: &Inputs, number: usize, seed: u64, outputs: Outputs<'_>) -> Result<Run, Failure> {
    let contender = &inputs.contenders[number];
    let workload = &contender.workload;
    let setup = Setup { promises: &contender.promises, workload, seed };
    let cannot = |wrong: Vec<String>| Failure::Input(format!("{}: {}", contender.name, wrong.join("\n")));
    let mut front: Box<dyn Front> = match &contender.comparator {
        None => {
            let mut gateway = Gateway::new(&contender.promises, seed).map_err(cannot)?;
            gateway.restore_rate_forecasts(contender.forecasts.clone());
            Box::new(gateway)
        }
        Some(comparator) => comparator.front(&contender.promises, workload, seed).map_err(cannot)?,
    };
    let (part, asked) = ((number, inputs.contenders.len()), outputs.lines.is_some());
    let mut watcher = RunWatcher::new(contender, part, outputs);
    let run = setup.run_with(&mut *front, &mut watcher).map_err(failed)?;
    if run.complete || watcher.untimed.is_some() {
        logs::named_field_is_there(&workload.streams, &run)?;
    }
    if let Some(request) = watcher.untimed.take() {
        let [untimed, ..] = inputs.untimed.as_slice() else {
            unreachable!("only plants without times are watched")
        };
        // In the background another program asks, which does not know the options of this command line.
        let help = match asked {
            true => "`capacity` lets the server take so many requests a second",
            false => {
                "`--capacity 200/s` lets the server take so many requests a second; `--time-field 1:us` says that the first number \
                 behind each line is its time, in microseconds (Apache's `%D`)"
            }
        };
        return Err(Failure::Input(format!(
            "error: {}: no file, and in the log not the line of `{}`\n  help: {help}; or {}",
            untimed.message,
            printable(&request),
            untimed.help
        )));
    }
    if let Some(comparator) = &contender.comparator
        && let (Some(path), Some(text)) = (comparator.memory(), front.learned())
    {
        failure::write(path, &text)?;
    }
    Ok(run)
}

/// A failure that the user can mend, such as a missing log, is wrong input.
fn failed(error: Error) -> Failure {
    match error {
        Error::Promises(all) => Failure::Input(all.join("\n")),
        Error::Workload(what) => Failure::Input(what),
        Error::Stream(_, error) => source::unreadable(&error),
    }
}
