//! How many workers an upstream has or where to look for them, and the load line that follows from what its sites were
//! promised.

use crate::diagnostic::{Code, Complaint, Findings, Other};
use crate::gateway::keys::{CapacityKeys, File, UpstreamKeys};
use crate::syntax::{Located, Whole};
use plimsoll_core::promises::{Class, Plant, Sense, Site, WorkerBounds};
use std::ops::Range;

/// The load line where nothing is told.
pub(super) const LOAD_LINE: f64 = 0.85;
/// The same where every class was promised a delay or a deadline: how full the server may be follows from those.
const LOAD_LINE_OF_DELAYS: f64 = 1.0;

/// What to begin the search for the number of workers with: more than most servers need to be seen at work, few enough
/// that a small one is not flooded.
const BEGIN_WITH: u32 = 16;
/// The most to look for, where nothing is told.
const MOST: u32 = 1024;

/// How many requests an upstream works on at once.
pub(super) struct Workers {
    /// As told, or the first guess.
    pub(super) begin_with: u32,
    /// Where to look, if they were not told.
    pub(super) found: Option<WorkerBounds>,
    /// The most in service at once.
    pub(super) max_connections: u32,
}

type Count = Option<Located<Whole<1, 65_535>>>;

fn number(count: &Count) -> Option<u32> {
    count.as_ref().map(|count| count.value.0 as u32)
}

impl Workers {
    /// As the file has them.
    pub(super) fn of(keys: &UpstreamKeys, findings: &mut Findings) -> Self {
        let capacity = &keys.capacity.value;
        if let Some(workers) = &capacity.workers {
            told_and_to_be_found(capacity, &workers.span, findings);
            let begin_with = workers.value.0 as u32;
            let max_connections = number(&keys.max_connections).unwrap_or(begin_with);
            return Workers { begin_with, found: None, max_connections };
        }
        if let (Some(workers), Some(connections)) = (&capacity.max_workers, &keys.max_connections) {
            let complaint = Complaint::new(
                "where workers are to be found, this and `max_connections` say the same: the most requests in service",
                "keep one of them",
            );
            let other = Other { span: &connections.span, what: "`max_connections` is given" };
            findings.add_with(Code::Conflict, &workers.span, complaint, other);
        }
        let most = number(&capacity.max_workers).or(number(&keys.max_connections)).unwrap_or(MOST);
        let least = number(&capacity.min_workers).unwrap_or(1);
        if least > most {
            nothing_between(least, most, keys, findings);
        }
        let found = Some(WorkerBounds { least, most });
        Workers { begin_with: BEGIN_WITH.min(most).max(least), found, max_connections: most }
    }
}

/// Refuses bounds of a search beside the number itself.
fn told_and_to_be_found(capacity: &CapacityKeys, workers: &Range<usize>, findings: &mut Findings) {
    let bounds = [
        ("min_workers", capacity.min_workers.as_ref().map(|bound| &bound.span)),
        ("max_workers", capacity.max_workers.as_ref().map(|bound| &bound.span)),
        ("workers_from", capacity.workers_from.as_ref().map(|page| &page.span)),
    ];
    for (name, bound) in bounds {
        let Some(bound) = bound else { continue };
        let complaint = Complaint::new(
            format!("`{name}` is for workers that are to be found, and `workers` tells them"),
            format!("keep `workers` if you know how many they are; to have them found, keep `{name}`"),
        );
        let other = Other { span: workers, what: "`workers` is given" };
        findings.add_with(Code::Conflict, bound, complaint, other);
    }
}

fn nothing_between(least: u32, most: u32, keys: &UpstreamKeys, findings: &mut Findings) {
    let capacity = &keys.capacity.value;
    let Some(min) = &capacity.min_workers else { return };
    let message = format!("no number of workers is at least {least} and at most {most}");
    let max = capacity.max_workers.as_ref().map(|max| (&max.span, "`max_workers` is given"));
    let connections = keys.max_connections.as_ref().map(|max| (&max.span, "`max_connections` is given"));
    match max.or(connections) {
        Some((span, what)) => {
            let complaint = Complaint::new(message, format!("write at most `{most}`, or raise the other"));
            findings.add_with(Code::Unreachable, &min.span, complaint, Other { span, what });
        }
        None => {
            let complaint = Complaint::new(message, format!("add `max_workers`: {most} without it"));
            findings.add(Code::Unreachable, &min.span, complaint);
        }
    }
}

/// The load lines that were not told, and whether each can be reached. `plants` are those of the file, upstreams first.
pub(super) fn set_load_lines(file: &File, plants: &mut [Plant], sites: &[Site], findings: &mut Findings) {
    for (index, ((_, keys), plant)) in file.upstream.value.0.iter().zip(plants).enumerate() {
        let capacity = &keys.value.capacity.value;
        if capacity.load_line.is_none() && only_times(index, sites) {
            plant.set_point = LOAD_LINE_OF_DELAYS;
        }
        if let Some(most) = &keys.value.max_connections {
            load_line_is_reachable(plant, &most.span, capacity, findings);
        }
    }
}

/// Whether the plant serves sites, and all their classes were promised a delay or a deadline; a site that it serves at some
/// level counts too.
fn only_times(plant: usize, sites: &[Site]) -> bool {
    let serves =
        |site: &&Site| site.plant == plant || site.levels.iter().any(|level| level.plant == Some(plant));
    let promised = |site: &Site| {
        let own = |class: &Class| class.delay.is_some() || class.deadline.is_some();
        site.deadline.is_some() || (site.default_delay.is_some() && site.classes.iter().all(own))
    };
    sites.iter().any(|site| site.plant == plant) && sites.iter().filter(serves).all(promised)
}

/// With n connections at most n workers are ever busy: a load line above n / workers would never be seen reached.
fn load_line_is_reachable(
    plant: &Plant,
    span: &Range<usize>,
    capacity: &CapacityKeys,
    findings: &mut Findings,
) {
    let Some(workers) = &capacity.workers else { return };
    let most = plant.max_connections;
    let needed = (plant.set_point * workers.value.0 as f64).ceil() as u32;
    if plant.sense == Sense::Gap && most < needed {
        let complaint = Complaint::new(
            format!("with {most} connections at most {most} of {} workers are ever busy", workers.value.0),
            format!("write at least {needed}, or lower `workers` to the share that is the gateway's"),
        );
        let other = Other { span: &workers.span, what: "`workers` is given" };
        findings.add_with(Code::Unreachable, span, complaint, other);
    }
}
