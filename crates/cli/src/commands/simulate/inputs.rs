//! Turns the command line's files into contenders, which meet the same arrivals at the same servers.

use super::{agent, logs};
use crate::args::SimulateArguments;
use crate::args::source;
use crate::output::failure::Failure;
use crate::service::forecast_file;
use crate::service::signals::Interrupt;
use crate::service::state::KnownState;
use plimsoll_config::{Configuration, ParsedWorkload, Reading, UntimedPlant, parse_workload_as, replay};
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::{Mode, Promises};
use plimsoll_sim::front::Comparator;
use plimsoll_sim::workload::{Arrivals, Content, Input, Replay, Workload};
use std::path::{Path, PathBuf};

/// The contender's name if no configuration is given.
const DEFAULT: &str = "plimsoll";
/// The assumption if no configuration is given.
const NO_FILE: &str = "no configuration is given: one site with the levels `light` and `full`, before a server that works on 8 \
                       requests at once";

pub(crate) struct Inputs {
    /// The name of the arrivals, for titles: `access.log`, `step.toml`.
    pub(crate) arrivals: String,
    /// The configuration first, then the contenders that it is compared with.
    pub(crate) contenders: Vec<Contender>,
    /// Assumptions that no file states, a sentence each.
    pub(crate) assumptions: Vec<String>,
    /// The files that are read.
    pub(crate) files: Vec<PathBuf>,
    /// Plants whose service times no file states, so that each line of the log must have one.
    pub(crate) untimed: Vec<UntimedPlant>,
}

/// What stands in front of the servers in one run.
pub(crate) struct Contender {
    /// The name that the user typed.
    pub(crate) name: String,
    /// The comparator, also for an agent's file; `None` for a configuration.
    pub(crate) comparator: Option<Comparator>,
    pub(crate) promises: Promises,
    pub(crate) workload: Workload,
    /// For each class, whether its requests must bring their own service times.
    pub(crate) needs_times: Vec<bool>,
    /// The rate forecasts that a gateway with this configuration has learned.
    pub(crate) forecasts: RateForecasts,
    /// The files in which such a gateway keeps what this run reads: its `state`, its `rate_forecast`.
    kept: Vec<PathBuf>,
}

impl Contender {
    /// Whether the contender is in observe mode: it decides, but lets every request pass.
    pub(crate) fn observes(&self) -> bool {
        self.comparator.is_none() && self.promises.control.mode == Mode::Observe
    }

    /// A comparator in front of the same servers.
    fn against(&self, name: &str, comparator: Comparator) -> Contender {
        Contender {
            name: name.to_owned(),
            comparator: Some(comparator),
            promises: self.promises.clone(),
            workload: self.workload.clone(),
            needs_times: self.needs_times.clone(),
            forecasts: RateForecasts::default(),
            kept: Vec::new(),
        }
    }
}

pub(crate) fn read(arguments: &SimulateArguments, interrupt: &Interrupt) -> Result<Inputs, Failure> {
    let FirstContender { promises, comparator, forecasts, known_workers, kept } = first(arguments)?;
    let mut parsed = understand(arguments, &promises, &known_workers, false)?;
    logs::settle(arguments, &promises, &mut parsed, interrupt)?;
    let ParsedWorkload { workload, mut assumptions, untimed } = parsed;
    if arguments.file.is_none() {
        assumptions.insert(0, NO_FILE.to_owned());
    }
    let needs_times = needs_times(&promises, &untimed);
    let mut contenders = vec![Contender {
        name: arguments.file.as_ref().map_or_else(|| DEFAULT.to_owned(), |file| file.display().to_string()),
        comparator,
        promises,
        workload,
        needs_times,
        forecasts,
        kept,
    }];
    for (number, other) in arguments.against.iter().enumerate() {
        if arguments.against[..number].contains(other) {
            return Err(Failure::Input(format!(
                "error: `--against {other}` is given twice, and what comes of it is the same\nLeave one of them out."
            )));
        }
        let first = &contenders[0];
        let next = match Comparator::parse(other) {
            Ok(comparator) => first.against(other, comparator),
            Err(_) if is_file(other) => match agent::read(Path::new(other)).transpose()? {
                Some(own) => first.against(other, agent::comparator(&own)),
                None => configured(other, arguments, first, (&untimed, &known_workers))?,
            },
            Err(wrong) => {
                return Err(Failure::Input(format!(
                    "error: `--against {other}` is neither a file nor a comparator: {wrong}\nSee `plimsoll simulate \
                     --help`."
                )));
            }
        };
        contenders.push(next);
    }
    if contenders.len() > 1
        && let Some(once) = read_once(&contenders[0].workload)
    {
        return Err(Failure::Input(format!(
            "error: {once} can be read once only, and `--against` reads it again\nWrite it to a file first."
        )));
    }
    let files = files(arguments, &contenders);
    Ok(Inputs { arrivals: arrivals(arguments), contenders, assumptions, files, untimed })
}

/// The first contender.
struct FirstContender {
    promises: Promises,
    comparator: Option<Comparator>,
    forecasts: RateForecasts,
    /// For each plant whose number of workers the configuration does not state, how the number is known.
    known_workers: Vec<Option<String>>,
    kept: Vec<PathBuf>,
}

/// The contender of the configuration or of the agent's file; if neither is given, the default one.
fn first(arguments: &SimulateArguments) -> Result<FirstContender, Failure> {
    let of = |promises, comparator| FirstContender {
        promises,
        comparator,
        forecasts: RateForecasts::default(),
        known_workers: Vec::new(),
        kept: Vec::new(),
    };
    let Some(file) = &arguments.file else {
        return Ok(of(source::understand(include_str!("default.toml"), DEFAULT)?.promises, None));
    };
    if let Some(own) = agent::read(file).transpose()? {
        return Ok(of(own.promises(), Some(agent::comparator(&own))));
    }
    let mut configuration = source::read(file)?;
    let forecasts = learned(&configuration)?;
    let known = match &arguments.learned {
        Some(learned) => KnownState::find_at(learned),
        None => KnownState::find(&configuration, file, None),
    };
    let kept =
        known.path().map(Path::to_owned).into_iter().chain(configuration.gateway.rate_forecast.clone());
    let kept = kept.collect();
    let known_workers = know_workers(&mut configuration, &known, arguments.learned.is_some());
    Ok(FirstContender { forecasts, known_workers, kept, ..of(configuration.promises, None) })
}

/// Sets the numbers of workers that a running gateway or an earlier run of the configuration has found. Returns for each plant
/// how its number is known.
fn know_workers(
    configuration: &mut Configuration,
    known: &KnownState,
    is_of_running: bool,
) -> Vec<Option<String>> {
    let from = match known.path() {
        _ if is_of_running => "the gateway that runs".to_owned(),
        path => {
            format!("an earlier run ({})", path.map_or_else(String::new, |path| path.display().to_string()))
        }
    };
    let known = known.workers();
    let plants = configuration.promises.plants.iter_mut().map(|plant| {
        let bounds = plant.find_workers?;
        let (_, workers, found) = known.iter().find(|(name, ..)| *name == plant.name)?;
        if !(bounds.least..=bounds.most).contains(workers) {
            return None;
        }
        plant.workers = *workers;
        Some(match found {
            true => format!("{from} has found so many, or the server reported them"),
            false => format!("{from} takes it for so many, and has not found the number yet"),
        })
    });
    plants.collect()
}

/// The files that the command line names, and those that a configuration, a workload or a comparator names.
fn files(arguments: &SimulateArguments, contenders: &[Contender]) -> Vec<PathBuf> {
    let named = [&arguments.file, &arguments.log, &arguments.workload].into_iter().flatten().cloned();
    let others = arguments.against.iter().map(PathBuf::from);
    let memories = contenders.iter().filter_map(|one| Some(one.comparator.as_ref()?.memory()?.to_owned()));
    let streams = contenders.first().into_iter().flat_map(|first| stream_inputs(&first.workload));
    let streams = streams.filter_map(|input| match input {
        Input::File(path) => Some(path.clone()),
        Input::Text(_) => None,
    });
    let kept = contenders.iter().flat_map(|one| one.kept.iter().cloned());
    named.chain(others).chain(memories).chain(streams).chain(kept).collect()
}

fn stream_inputs(workload: &Workload) -> impl Iterator<Item = &Input> {
    workload.streams.iter().flat_map(|stream| {
        let arrivals = match &stream.arrivals {
            Arrivals::Counts { input, .. } | Arrivals::Log { input, .. } => Some(input),
            Arrivals::Process { .. } => None,
        };
        let content = match &stream.content {
            Content::Log(input, _) => Some(input),
            Content::Pages(_) => None,
        };
        arrivals.into_iter().chain(content)
    })
}

/// The input of a stream that can be read once only: standard input, or a pipe.
pub(super) fn read_once(workload: &Workload) -> Option<String> {
    stream_inputs(workload).find_map(|input| match input {
        Input::File(path) if path == Path::new("-") => Some("standard input".to_owned()),
        // A missing file is reported when it is opened.
        Input::File(path) if std::fs::metadata(path).is_ok_and(|of| !of.is_file() && !of.is_dir()) => {
            Some(path.display().to_string())
        }
        Input::File(_) | Input::Text(_) => None,
    })
}

fn is_file(name: &str) -> bool {
    name.ends_with(".toml") || Path::new(name).exists()
}

/// Another configuration, with its own promises and levels, in front of the servers of the first.
fn configured(
    name: &str,
    arguments: &SimulateArguments,
    first: &Contender,
    (untimed, known_workers): (&[UntimedPlant], &[Option<String>]),
) -> Result<Contender, Failure> {
    let configuration = source::read(Path::new(name))?;
    let forecasts = learned(&configuration)?;
    let kept = configuration.gateway.rate_forecast.into_iter().collect();
    let mut promises = configuration.promises;
    let names = |promises: &Promises| {
        let all: Vec<String> = promises.plants.iter().map(|plant| plant.name.clone()).collect();
        all.join(", ")
    };
    let (wanted, given) = (names(&first.promises), names(&promises));
    if wanted != given {
        return Err(Failure::Input(format!(
            "error: {name} is not about the same servers as {}: {given}, not {wanted}\nGive their upstreams and \
             folders the same names, in the same order.",
            first.name
        )));
    }
    // Both begin the search for workers at the same number.
    for (own, first) in promises.plants.iter_mut().zip(&first.promises.plants) {
        if let (Some(bounds), Some(_)) = (own.find_workers, first.find_workers) {
            own.workers = first.workers.clamp(bounds.least, bounds.most);
        }
    }
    let own = understand(arguments, &promises, known_workers, true)?.workload;
    let workload = Workload { versions: own.versions, ..first.workload.clone() };
    let needs_times = needs_times(&promises, untimed);
    Ok(Contender {
        name: name.to_owned(),
        comparator: None,
        promises,
        workload,
        needs_times,
        forecasts,
        kept,
    })
}

/// The learned rate forecasts in the file of `rate_forecast`. The file is only read: the gateway must not learn from a
/// simulation.
fn learned(configuration: &Configuration) -> Result<RateForecasts, Failure> {
    let read = configuration.gateway.rate_forecast.as_deref().map(forecast_file::read);
    Ok(read.transpose()?.unwrap_or_default())
}

/// For each class, whether no file states the service times of its plant.
fn needs_times(promises: &Promises, untimed: &[UntimedPlant]) -> Vec<bool> {
    let needs = |plant: usize| untimed.iter().any(|one| one.plant == plant);
    // A site has its own classes, `default` and `exempt`.
    let sites = promises.sites.iter().map(|site| (needs(site.plant), site.classes.len() + 2));
    sites.flat_map(|(needs, classes)| std::iter::repeat_n(needs, classes)).collect()
}

/// The arrivals and the servers. `compared` says that the workload was written for another configuration.
fn understand(
    arguments: &SimulateArguments,
    promises: &Promises,
    known_workers: &[Option<String>],
    compared: bool,
) -> Result<ParsedWorkload, Failure> {
    let times = Replay { speed: arguments.speed.unwrap_or(1.0), scale: arguments.scale.unwrap_or(1.0) };
    let log = arguments.log.as_deref().map(|log| (log, times));
    let mut parsed = match &arguments.workload {
        None => log
            .map_or_else(ParsedWorkload::default, |(log, times)| replay(log, times, promises, known_workers)),
        Some(path) => source::read_as(path, ("a workload", "examples/workloads/step.toml"), |text, name| {
            parse_workload_as(text, name, promises, Reading { log, compared, known_workers })
        })?,
    };
    if let Some(host) = &arguments.host {
        host.clone_into(&mut parsed.workload.default_host);
    }
    Ok(parsed)
}

fn arrivals(arguments: &SimulateArguments) -> String {
    let name = |path: &Path| match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.display().to_string(),
    };
    match (&arguments.log, &arguments.workload) {
        (Some(log), _) => {
            let times = |what: &str, factor: Option<f64>| {
                factor.map_or(String::new(), |factor| format!(", {factor} times {what}"))
            };
            name(log) + &times("as fast", arguments.speed) + &times("each request", arguments.scale)
        }
        (None, Some(workload)) => name(workload),
        (None, None) => String::new(),
    }
}
