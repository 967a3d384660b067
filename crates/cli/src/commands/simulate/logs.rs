//! How the log of the command line is read: in which order, and which of its times are used.
//!
//! | what the files and options say of a request's time | its line's time is |
//! |---|---|
//! | nothing | what it takes; one that contains waiting too, for want of a better |
//! | `--capacity` | what it weighs beside the others: their mean takes what the capacity says |
//! | `costs`, a workload's `service` | what it takes if it is the server's own; else it is not used |
//!
//! If times weigh requests, their mean must be known before the first request, so the log is read twice. Standard input cannot
//! be read twice: there each request costs as much as the others.
//!
//! A time in the gateway's own log is that of the level that was served. If a level is on another upstream than the highest
//! one, their ratio is learned from the lines of both, because a cost in a file says nothing about two different servers.

use super::watch::PATIENCE;
use crate::args::SimulateArguments;
use crate::args::source;
use crate::output::failure::Failure;
use crate::output::progress::ProgressLine;
use crate::output::units::{grouped, printable};
use crate::service::signals::Interrupt;
use plimsoll_config::{ParsedWorkload, nearest};
use plimsoll_core::promises::{Level, Promises};
use plimsoll_sim::workload::{Arrivals, FieldPlace, LogOptions, LogTimes, LoggedLevel, Stream, Version};
use plimsoll_sim::{LogNotes, LoggedTimes, Run, logged_times};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The part of the lines that must have a time before times weigh requests.
const NEARLY_ALL: f64 = 0.9;

/// Sets how the log is read, and gives the servers the assumed capacity.
pub(super) fn settle(
    arguments: &SimulateArguments,
    promises: &Promises,
    parsed: &mut ParsedWorkload,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let times = match &arguments.time_field {
        Some(times) => times.clone(),
        None if parsed.untimed.is_empty() => LogTimes::Own,
        None => LogTimes::Bounds,
    };
    let levels = levels(promises, &parsed.workload.versions);
    let mut options = LogOptions { sort: arguments.sort, times, weigh_by: None, levels };
    if let Some(rate) = arguments.capacity {
        if parsed.untimed.is_empty() {
            // In the background another program asks, and its page calls the option `capacity`.
            let name = if arguments.background { "capacity" } else { "--capacity" };
            return Err(Failure::Input(format!(
                "error: `{name}` says again what the files say: what a request takes of the server\n  help: leave it out, or the \
                 `costs` in the configuration and the service times in the workload"
            )));
        }
        let learned = learn(parsed, &options, interrupt)?;
        let known = learned.timed as f64 >= NEARLY_ALL * learned.lines as f64 && learned.mean > 0.0;
        let field = learned.field.as_ref().filter(|_| known);
        let share = match field {
            Some(field) => {
                options.weigh_by = Some(learned.mean);
                format!("each request costs it what its line's {field}, is beside the mean of the log")
            }
            None => {
                options.times = LogTimes::Ignored;
                equal_shares(arguments, &learned)?
            }
        };
        parsed.assume_capacity(rate, promises, &share);
    } else if arguments.log.is_some() {
        learn_levels(promises, parsed, &mut options, interrupt)?;
    }
    for stream in &mut parsed.workload.streams {
        if let Arrivals::Log { options: own, .. } = &mut stream.arrivals
            && arguments.log.is_some()
        {
            own.clone_from(&options);
        }
    }
    Ok(())
}

/// The assumption if no times weigh the requests.
fn equal_shares(arguments: &SimulateArguments, learned: &LoggedTimes) -> Result<String, Failure> {
    let equal = "each request costs it as much as the others on the mean";
    Ok(match (&arguments.time_field, learned.lines) {
        (Some(LogTimes::Field(field)), 1..) if learned.timed == 0 => {
            return Err(no_such_field(&field.place, learned.lines, &learned.known_fields));
        }
        (Some(LogTimes::Field(_)), 0) => {
            format!("{equal}, for `--time-field` needs a log that can be read twice")
        }
        (Some(LogTimes::Field(_)), 1..) => format!(
            "{equal}, for the field of `--time-field` is in {} of {} lines only",
            grouped(learned.timed),
            grouped(learned.lines)
        ),
        _ => equal.to_owned(),
    })
}

/// What the times of the log tell; nothing if there is no log, or if it cannot be read twice. If the user has interrupted
/// already, reading ends at once.
fn learn(
    parsed: &ParsedWorkload,
    options: &LogOptions,
    interrupt: &Interrupt,
) -> Result<LoggedTimes, Failure> {
    if super::inputs::read_once(&parsed.workload).is_some() {
        return Ok(LoggedTimes::default());
    }
    let log = parsed.workload.streams.iter().find_map(|stream| match &stream.arrivals {
        Arrivals::Log { input, format, .. } => Some((input, format)),
        _ => None,
    });
    let bar = ProgressLine::new(PATIENCE);
    let mut watch = |done| {
        bar.show(done, || "what the times of the log show".to_owned());
        if interrupt.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let learned = log.map(|log| logged_times(log, options, &mut watch)).transpose();
    Ok(learned.map_err(|error| source::unreadable(&error))?.unwrap_or_default())
}

/// For each level on another upstream than its site's highest, sets the cost that the lines of both levels show.
fn learn_levels(
    promises: &Promises,
    parsed: &mut ParsedWorkload,
    options: &mut LogOptions,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let plants = promises.sites.iter().zip(&parsed.workload.versions).flat_map(|(site, versions)| {
        let highest = site.levels.last().and_then(|level| level.plant).unwrap_or(site.plant);
        let elsewhere = move |level: &Level| level.plant.unwrap_or(site.plant) != highest;
        site.levels.iter().take(versions.len()).map(elsewhere)
    });
    let elsewhere: Vec<bool> = plants.collect();
    if !elsewhere.contains(&true) {
        return Ok(());
    }
    let shares = learn(parsed, options, interrupt)?.level_shares;
    let versions = parsed.workload.versions.iter_mut().flatten().zip(&mut options.levels);
    for ((share, (version, level)), _) in shares.iter().zip(versions).zip(elsewhere).filter(|(_, is)| *is) {
        let Some(share) = share else { continue };
        (version.cost, level.time) = (Some(*share), *share);
        parsed.assumptions.push(format!(
            "at level {} of {}, on an upstream of its own, a request takes {share:.2} of its time at the highest level, as the \
             log's lines of both say",
            level.name, level.site
        ));
    }
    Ok(())
}

/// The relative costs of all levels, with the names that the gateway's own log uses.
fn levels(promises: &Promises, versions: &[Vec<Version>]) -> Vec<LoggedLevel> {
    let sites = promises.sites.iter().zip(versions);
    let levels = sites.flat_map(|(site, versions)| {
        let level = |(level, version): (&Level, &Version)| LoggedLevel {
            site: site.name.clone(),
            name: level.name.clone(),
            time: version.cost.unwrap_or(version.bytes),
            bytes: version.bytes,
        };
        site.levels.iter().zip(versions).map(level)
    });
    levels.collect()
}

/// Refuses a `--time-field` that no line of a log has.
pub(super) fn named_field_is_there(streams: &[Stream], run: &Run) -> Result<(), Failure> {
    for (number, notes) in run.notes.iter().filter(|(_, notes)| notes.times.is_none() && notes.requests > 0) {
        if let Arrivals::Log { options: LogOptions { times: LogTimes::Field(field), .. }, .. } =
            &streams[*number].arrivals
        {
            return Err(no_such_field(&field.place, notes.lines, &notes.known_fields));
        }
    }
    Ok(())
}

fn no_such_field(wanted: &FieldPlace, lines: u64, known: &BTreeSet<String>) -> Failure {
    let (wanted, near) = match wanted {
        FieldPlace::Number(number) => (number.to_string(), None),
        FieldPlace::Name(name) => (name.clone(), nearest(name, known.iter().map(String::as_str))),
    };
    let near = near.map_or_else(String::new, |near| format!("`{near}` is near; "));
    let known = match known.len() {
        0 => "the first lines have no field with a number".to_owned(),
        _ => format!(
            "those with a number in the first lines are {}",
            known.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    };
    Failure::Input(format!(
        "error: `--time-field {}`: none of the {} lines that were read has a time in that field\n  help: {near}{known}",
        printable(&wanted),
        grouped(lines)
    ))
}

/// The assumption about a log's times, known once the log was read.
pub(super) fn assumption(name: &str, notes: &LogNotes, options: &LogOptions) -> Option<String> {
    let field = notes.times.as_ref().filter(|_| options.weigh_by.is_none())?;
    let mut takes = format!("a request takes of the server what its line in {name} says: {field}");
    if notes.own.0 > 0 {
        takes += ", of the level that was served, whose cost it is divided by";
    }
    Some(if field.own {
        takes
    } else {
        format!(
            "{takes}. THAT IS AN UPPER BOUND: it contains waiting and the client's own slowness, so that the server can do \
             more than these figures say; `$upstream_response_time` in the log, `plimsoll profile` or `--capacity` is better"
        )
    })
}
