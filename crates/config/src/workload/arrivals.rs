//! Resolves when a stream's requests come: exactly one of rate, load, counts and log, with the keys that belong to it.

use super::bursts::with_bursts;
use super::keys::StreamKeys;
use super::laws;
use super::requests::{format, input};
use super::resolve::{StreamContext, check_begins_before_end};
use super::values::{End, Moment};
use crate::diagnostic::{Findings, exclusive, in_backticks, places, refuse};
use crate::syntax::{Either, Located, OptionalKey, Sections, Text};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Arrivals, Content, LogOptions, Phase, Replay};
use std::ops::Range;

/// The highest rate in requests per second: one request a nanosecond.
const FASTEST: f64 = 1e9;

/// Resolves when a stream's requests come.
pub(super) fn resolve(
    section: &Located<StreamKeys>,
    content: &Content,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> Arrivals {
    let keys = &section.value;
    let sources = places!(keys => rate, load, counts, log);
    let help = "keep the one that says when requests come, or add a section `[[stream]]` for each";
    exclusive(&sources, help, findings);
    let chosen = sources.iter().find_map(|(name, span)| span.map(|span| (*name, span)));
    match chosen {
        Some(chosen) => refuse_unrelated_keys(section, chosen, findings),
        None if section.sound => {
            refuse!(findings, MissingKey at &section.span,
                "this stream does not say when requests come",
                help: "write one of `rate = \"500/s\"`, `load = 3.0`, `counts = \"FILE\"` and `log = \"FILE\"`");
        }
        None => {}
    }
    let replay = Replay { speed: keys.speed.value.0, scale: keys.scale.value.0 };
    let input =
        |path: &Located<Text>, findings: &mut Findings| input(path, context.inputs.file_name, findings);
    match (chosen, &keys.counts, &keys.log) {
        (Some(("counts", span)), Some(counts), _) => {
            if keys.every.is_none() && section.sound {
                refuse!(findings, MissingKey at span,
                    "`counts` needs the length of its intervals",
                    help: "write `every = \"1s\"` or `every = \"1min\"`");
            }
            let every = keys.every.as_ref().map_or(Duration::from_secs(1), |every| every.value);
            Arrivals::Counts { input: input(counts, findings), every, replay }
        }
        (Some(("log", _)), _, Some(log)) => Arrivals::Log {
            input: input(log, findings),
            format: format(section, findings),
            options: LogOptions::default(),
            replay,
        },
        _ => Arrivals::Process {
            process: laws::process(&keys.process, findings),
            rate: rate(section, content, context, findings),
        },
    }
}

/// A key, its place if it is given, and the keys with which it may be combined.
type KeyWithCompanions<'a> = (&'a str, Option<&'a Range<usize>>, &'a [&'a str]);

/// Refuses the keys that have no effect with the key that says when requests come.
fn refuse_unrelated_keys(
    section: &Located<StreamKeys>,
    (chosen, chosen_span): (&str, &Range<usize>),
    findings: &mut Findings,
) {
    let Located { value: keys, span: place, .. } = section;
    let (computed, replayed, own) = (["rate", "load"], ["counts", "log"], ["rate", "load", "counts"]);
    let of_logs: &[&str] = if keys.pages_from.is_some() { &own } else { &["log"] };
    let all: [KeyWithCompanions<'_>; 12] = [
        ("process", keys.process.span_beside(place), &computed),
        ("bursts", keys.bursts.span(), &computed),
        ("every", keys.every.span(), &["counts"]),
        ("format", keys.format.span_beside(place), of_logs),
        ("fields", keys.fields.span(), of_logs),
        ("speed", keys.speed.span_beside(place), &replayed),
        ("scale", keys.scale.span_beside(place), &replayed),
        ("page", keys.page.span_beside(place), &own),
        ("pages_from", keys.pages_from.span(), &own),
        ("clients", keys.clients.span_beside(place), &own),
        ("skew", keys.skew.span_beside(place), &own),
        ("first_client", keys.first_client.span_beside(place), &own),
    ];
    for (name, span, beside) in all {
        if let Some(span) = span.filter(|_| !beside.contains(&chosen)) {
            refuse!(findings, Conflict at span,
                format!("`{name}` means nothing beside `{chosen}`"),
                help: format!("leave it out; it belongs to {}", in_backticks(beside)),
                beside chosen_span => format!("`{chosen}` is given"));
        }
    }
}

/// A phase as the file has it, with its values in requests per second or in multiples of the capacity.
struct WrittenPhase {
    from: Located<Duration>,
    value: f64,
    to: Option<Located<f64>>,
}

/// The phases of a stream's rate.
fn rate(
    section: &Located<StreamKeys>,
    content: &Content,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> Vec<Phase> {
    let keys = &section.value;
    let (steps, span, unit) = match (&keys.rate, &keys.load) {
        (Some(rate), _) => {
            (steps(&rate.value, |rate| rate.0, |keys| (&keys.from, &keys.rate, &keys.to)), &rate.span, 1.0)
        }
        (None, Some(load)) => (
            steps(&load.value, |load| load.0, |keys| (&keys.from, &keys.load, &keys.to)),
            &load.span,
            capacity(&load.span, section, content, context, findings),
        ),
        (None, None) => return Vec::new(),
    };
    let sound =
        keys.rate.as_ref().is_none_or(|rate| rate.sound) && keys.load.as_ref().is_none_or(|load| load.sound);
    if !sound || steps.is_empty() {
        return Vec::new();
    }
    check_order(&steps, context.duration, findings);
    check_end(&steps, span, context.duration, findings);
    let phases: Vec<Phase> = steps
        .iter()
        .map(|step| Phase {
            from: step.from.value,
            rate: step.value * unit,
            to: step.to.as_ref().map(|to| to.value * unit),
        })
        .collect();
    let phases = match &keys.bursts {
        Some(bursts) => with_bursts(phases, bursts, context.duration, findings),
        None => phases,
    };
    let rates = phases.iter().flat_map(|phase| [Some(phase.rate), phase.to].into_iter().flatten());
    if rates.fold(0.0, f64::max) > FASTEST {
        refuse!(findings, OutOfRange at span,
            "more than a billion requests a second", help: "write a lower one");
    }
    phases
}

/// The keys of a phase: its beginning, its value, and the value that it reaches.
type PhaseParts<'a, T> = (&'a Option<Located<Moment>>, &'a Option<Located<T>>, &'a Option<Located<T>>);

fn steps<T: Copy, S>(
    course: &Either<T, Sections<S>>,
    number: fn(T) -> f64,
    parts: for<'a> fn(&'a S) -> PhaseParts<'a, T>,
) -> Vec<WrittenPhase> {
    let step = |keys: &Located<S>| {
        let (from, value, to) = parts(&keys.value);
        let from = from.as_ref()?;
        let to = to.as_ref().map(|to| Located::sound(number(to.value), to.span.clone()));
        let value = number(value.as_ref()?.value);
        Some(WrittenPhase { from: Located::sound(from.value.0, from.span.clone()), value, to })
    };
    match course {
        Either::Simple(value) => {
            vec![WrittenPhase { from: Located::sound(Duration::ZERO, 0..0), value: number(*value), to: None }]
        }
        Either::Detailed(Sections(phases)) => phases.iter().filter_map(step).collect(),
    }
}

/// The rate in requests per second at load 1; `None` only if there is a finding, here or about the servers.
fn capacity(
    load: &Range<usize>,
    section: &Located<StreamKeys>,
    content: &Content,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> f64 {
    match (content, &section.value.pages_from) {
        (Content::Pages(pages), _) => context.truth.capacity(pages).unwrap_or(1.0),
        (Content::Log(..), log) => {
            let span = log.as_ref().map_or(load, |log| &log.span);
            refuse!(findings, Conflict at load,
                "`load` compares with what the pages take, and those of a log are not known beforehand",
                help: "write `rate = \"500/s\"`, or list pages with `[[stream.page]]`",
                beside span => "`pages_from` is given");
            1.0
        }
    }
}

/// Refuses phases out of order, phases that begin after the end of the run, and a ramp in the last phase, which has no end.
fn check_order(steps: &[WrittenPhase], duration: &Located<End>, findings: &mut Findings) {
    for (before, step) in steps.iter().zip(&steps[1..]) {
        if step.from.value <= before.from.value {
            refuse!(findings, OutOfRange at &step.from.span,
                "this phase does not begin after the one before it",
                help: "write the phases in order of time, each with a later `from`",
                beside &before.from.span => "that one begins");
        }
    }
    for step in steps.iter().filter(|step| step.from.span != (0..0)) {
        check_begins_before_end(step.from.value, &step.from.span, duration, findings);
    }
    if let Some(to) = steps.last().and_then(|last| last.to.as_ref()) {
        refuse!(findings, MissingKey at &to.span,
            "this ramp has no end: it would be reached when the next phase begins, and there is none",
            help: "add a phase after it that says when, such as `{ from = \"60s\", ... }`, or leave `to` out");
    }
}

/// Refuses a stream that never ends, and one that has no request.
fn check_end(steps: &[WrittenPhase], span: &Range<usize>, duration: &Located<End>, findings: &mut Findings) {
    let comes = |step: &WrittenPhase| step.value > 0.0 || step.to.as_ref().is_some_and(|to| to.value > 0.0);
    if !steps.iter().any(comes) {
        refuse!(findings, Unreachable at span,
            "no request ever comes", help: "write a rate above 0, or leave the stream out");
    } else if duration.value.0.is_none()
        && duration.sound
        && steps.last().is_some_and(|last| last.value > 0.0)
    {
        refuse!(findings, MissingKey at span,
            "this stream never ends",
            help: "write `duration = \"60s\"` at the top of the file, or a last phase whose rate is 0");
    }
}
