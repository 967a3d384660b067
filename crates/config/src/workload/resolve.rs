//! Turns the keys of a workload into its meaning. As in the configuration, reading does not stop at the first error, and the
//! result is thrown away if there are findings.

use super::keys::{StreamKeys, WorkloadKeys};
use super::truth::TrueServers;
use super::values::End;
use super::{ParsedWorkload, Reading, arrivals, plants, requests, versions};
use crate::diagnostic::{Findings, in_backticks, quoted, refuse};
use crate::syntax::{Located, nearest};
use plimsoll_core::promises::Promises;
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Arrivals, Content, Retry, Stream, Workload};
use std::collections::BTreeSet;
use std::ops::Range;

/// What a workload file is resolved with.
#[derive(Clone, Copy)]
pub(super) struct WorkloadInputs<'a> {
    pub(super) file_name: &'a str,
    pub(super) promises: &'a Promises,
    pub(super) reading: Reading<'a>,
}

/// What a stream's keys are resolved with.
pub(super) struct StreamContext<'a> {
    pub(super) truth: TrueServers<'a>,
    pub(super) duration: &'a Located<End>,
    pub(super) inputs: WorkloadInputs<'a>,
}

/// The workload that `file` describes; not to be used if there are findings.
pub(super) fn resolve(
    file: &WorkloadKeys,
    inputs: WorkloadInputs<'_>,
    findings: &mut Findings,
) -> ParsedWorkload {
    let WorkloadInputs { promises, reading, .. } = inputs;
    let plants = plants::resolve(file, (promises, reading.known_workers), findings);
    let (versions, mut assumptions) = versions::resolve(file, inputs, findings);
    assumptions.extend(plants::guessed_workers(promises, reading.known_workers, |name| {
        !plants::states_workers(file, name)
    }));
    let truth = TrueServers { promises, plants: &plants };
    let context = StreamContext { truth, duration: &file.duration, inputs };
    let (mut streams, mut untimed) = streams(file, &context, findings);
    if let Some((log, replay)) = reading.log {
        streams = vec![super::log_stream(log, replay)];
        untimed = context.truth.untimed_by_logs();
    }
    let untimed = untimed.into_iter().map(|plant| context.truth.untimed(plant)).collect();
    let plants = plants.into_iter().map(|known| known.plant).collect();
    let duration = file.duration.value.0;
    let default_host = super::truth::default_host(promises);
    let workload = Workload { streams, plants, versions, default_host, duration };
    ParsedWorkload { workload, assumptions, untimed }
}

/// The streams, and the plants that have no service time unless a log's lines have it.
fn streams(
    file: &WorkloadKeys,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> (Vec<Stream>, BTreeSet<usize>) {
    let sections = &file.stream.value.0;
    let replaced = context.inputs.reading.log.is_some();
    if sections.is_empty() && file.stream.sound && !replaced {
        refuse!(findings, MissingKey at &(0..0),
            "nothing arrives",
            help: "add a section `[[stream]]` with one of `rate`, `load`, `counts` and `log`");
    }
    let mut streams = Vec::new();
    let mut untimed = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for (section, number) in sections.iter().zip(1..) {
        let stream = stream(section, number, context, findings);
        let (needed, perhaps) = untimed_by(&stream, &context.truth);
        untimed.extend(perhaps);
        for plant in needed {
            if section.sound && !replaced && reported.insert(plant) {
                let untimed = context.truth.untimed(plant);
                refuse!(findings, MissingKey at &section.span, untimed.message, help: untimed.help);
            }
        }
        streams.push(stream);
    }
    standard_input_once(sections, findings);
    (streams, untimed)
}

fn stream(
    section: &Located<StreamKeys>,
    number: usize,
    context: &StreamContext<'_>,
    findings: &mut Findings,
) -> Stream {
    let keys = &section.value;
    let content = requests::content(section, context, findings);
    Stream {
        name: keys.name.as_ref().map_or_else(|| format!("stream {number}"), |name| name.value.0.clone()),
        arrivals: arrivals::resolve(section, &content, context, findings),
        content,
        clients: requests::clients(section, findings),
        patience: keys.patience.as_ref().map(|patience| patience.value),
        retry: keys.retry.as_ref().and_then(|retry| {
            let keys = &retry.value.0;
            Some(Retry {
                after: keys.after.as_ref()?.value,
                most: keys.most.value.0 as u32,
                obeys: keys.obeys.value,
            })
        }),
    }
}

/// The plants that need a service time for this stream, and those that need one unless each line of its log has its own.
fn untimed_by(stream: &Stream, truth: &TrueServers<'_>) -> (BTreeSet<usize>, BTreeSet<usize>) {
    if let (Arrivals::Process { .. } | Arrivals::Counts { .. }, Content::Pages(pages)) =
        (&stream.arrivals, &stream.content)
    {
        let without_own = pages.iter().filter(|page| page.service.is_none());
        let needs = without_own.filter_map(|page| truth.site_of(&page.host)).map(|site| truth.needs(site));
        return (needs.flatten().collect(), BTreeSet::new());
    }
    (BTreeSet::new(), truth.untimed_by_logs())
}

/// Refuses a second key that names standard input, which can be read once only.
fn standard_input_once(sections: &[Located<StreamKeys>], findings: &mut Findings) {
    let mut first: Option<&Range<usize>> = None;
    for keys in sections.iter().map(|section| &section.value) {
        let inputs = [keys.counts.as_ref(), keys.log.as_ref(), keys.pages_from.as_ref()];
        for input in inputs.into_iter().flatten().filter(|input| input.value.0 == "-") {
            match first {
                Some(first) => {
                    refuse!(findings, Duplicate at &input.span,
                        "standard input can be read only once", help: "name a file for one of them",
                        beside first => "the other is");
                }
                None => first = Some(&input.span),
            }
        }
    }
}

/// Refuses a name that the configuration does not have. `what` is the kind of thing that it would name.
pub(super) fn unknown_name(name: &Located<String>, what: &str, known: &[&str], findings: &mut Findings) {
    let help = match nearest(&name.value, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("those that it has are {}", in_backticks(known)),
    };
    refuse!(findings, UnknownName at &name.span,
        format!("the configuration has no {what} named `{}`", quoted(&name.value)), help: help);
}

/// Refuses a phase or fault that begins after the end of the simulation.
pub(super) fn check_begins_before_end(
    from: Duration,
    span: &Range<usize>,
    duration: &Located<End>,
    findings: &mut Findings,
) {
    if duration.value.0.is_some_and(|end| from >= end) {
        refuse!(findings, Unreachable at span,
            "this begins when the simulation has ended", help: "lengthen `duration`, or leave it out",
            beside &duration.span => "`duration` is given");
    }
}
