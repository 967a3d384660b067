//! Remarks: a sentence for each thing that a reader of the figures must know.

use super::Simulated;
use super::inputs::Contender;
use crate::output::type_costs;
use crate::output::units::{grouped, printable, short, span};
use plimsoll_sim::{LeftOut, LogNotes, MOST_WAITING, Run};

pub(crate) fn notes(simulated: &Simulated) -> Vec<String> {
    let mut all = Vec::new();
    let Simulated { runs, inputs, .. } = simulated;
    if let Some(run) = runs.iter().find(|run| !run.complete) {
        all.push(format!(
            "stopped after {} of virtual time: these are the figures so far",
            span(run.ended.as_secs_f64())
        ));
    }
    for contender in &inputs.contenders[runs.len()..] {
        all.push(format!("{} was not begun", contender.name));
    }
    if runs[0].unmatched > 0 {
        all.push(format!(
            "{} requests are for hosts that no site has: they are refused, and count as offered, but not in the table",
            grouped(runs[0].unmatched)
        ));
    }
    // Contenders have different numbers of retries, because a client that is answered does not retry.
    for (run, contender) in runs.iter().zip(&inputs.contenders).filter(|(run, _)| run.retries > 0) {
        let before = if runs.len() > 1 { format!("{}: ", short(&contender.name)) } else { String::new() };
        all.push(format!("{before}{} requests are of clients that tried again", grouped(run.retries)));
    }
    if inputs.contenders[0].comparator.is_none() {
        all.extend(found_workers(&runs[0], &inputs.contenders[0]));
        all.extend(costs_that_differ(&runs[0]));
    }
    for (stream, notes) in &runs[0].notes {
        log_notes(&inputs.contenders[0].workload.streams[*stream].name, notes, &mut all);
    }
    all
}

fn log_notes(name: &str, notes: &LogNotes, all: &mut Vec<String>) {
    let mut note = |text: String| all.push(format!("{name}: {text}"));
    notes.left_out.map(left_out).into_iter().for_each(&mut note);
    if let Some((line, text, wrong)) = &notes.first_skipped {
        let (skipped, lines, text) = (grouped(notes.skipped), grouped(notes.lines), printable(text));
        note(format!("{skipped} of {lines} lines were skipped; the first is line {line}: {wrong}: {text}"));
    }
    own_log_notes(notes).chain(time_notes(notes)).for_each(&mut note);
    if let Some((line, seconds)) = notes.first_moved {
        let (lines, by) = (grouped(notes.moved), span(seconds));
        let how = if notes.sorted { "it was sorted" } else { "they were put in place" };
        note(format!("{lines} lines stood behind later ones (first at line {line}, by {by}): {how}"));
    }
    if let Some((line, seconds)) = notes.first_backwards {
        let (lines, by) = (grouped(notes.backwards), span(seconds));
        note(format!(
            "{lines} lines were too late for that, by more than a minute or {} lines (first at line {line}, by {by}): they \
             come later than their time; `--sort` puts all in order",
            grouped(MOST_WAITING as u64)
        ));
    }
    if notes.restarts > 0 {
        note(format!("its clock went back {} times for good; time goes on from there", notes.restarts));
    }
    if notes.strays > 0 {
        note(format!(
            "{} lines alone are more than an hour ahead of those around them: they come at the time of the line before",
            grouped(notes.strays)
        ));
    }
    let (gaps, seconds) = notes.gaps;
    if gaps > 0 {
        note(format!("{gaps} gaps of more than an hour were cut to one, {} together", span(seconds)));
    }
}

/// A sentence about the part of a log that the end of the run left out, and how to include it.
fn left_out(left: LeftOut) -> String {
    let (requests, last) = (grouped(left.requests), left.last.ceil());
    match left.is_all {
        true => format!(
            "`duration` of the workload ends the run before the log: {requests} of its {} requests are left out; \
             `duration = \"{last}s\"` takes them in, and without it the run ends with the log",
            grouped(left.of)
        ),
        false => "`duration` of the workload ends the run before the log: the rest is left out; without it the run ends with \
                  the log"
            .to_owned(),
    }
}

/// Remarks on the times in a log.
fn time_notes(notes: &LogNotes) -> impl Iterator<Item = String> {
    let (timed, zero) = notes.timed;
    let untimed = (timed > 0 && timed < notes.requests).then(|| {
        let (timed, requests) = (grouped(timed), grouped(notes.requests));
        format!(
            "the lines of {timed} of {requests} requests have the server's own time; the others take what their bytes cost"
        )
    });
    let zero = (zero > timed / 2).then(|| {
        format!(
            "of {} requests the server's own time is zero: it is finer than the log shows, or no server was asked; they \
             take nothing of it here",
            grouped(zero)
        )
    });
    let odd = notes.first_odd_time.zip(notes.times.as_ref()).map(|((line, value), field)| {
        format!(
            "the time of {} lines is hardly in the unit of the first ones, {field} (first at line {line}: {value}): it is taken \
             for that all the same; `--time-field` states another unit",
            grouped(notes.odd_times)
        )
    });
    [untimed, zero, odd].into_iter().flatten()
}

/// Remarks on a log that the gateway itself wrote.
fn own_log_notes(notes: &LogNotes) -> impl Iterator<Item = String> {
    let (_, unserved) = notes.own;
    let unserved = (unserved > 0).then(|| {
        format!(
            "{} requests were not served when it was written: they take here what the last one of their path took",
            grouped(unserved)
        )
    });
    let untimed = (notes.untimed > 0).then(|| {
        format!(
            "{} requests were served, but their lines have no time: they take here what the last one of their path took",
            grouped(notes.untimed)
        )
    });
    let no_load = (!notes.no_load.is_empty()).then(|| {
        let by_status =
            notes.no_load.iter().map(|(status, lines)| format!("{} with {status}", grouped(*lines)));
        format!(
            "{} lines are of requests that the gateway, or the proxy that wrote them, answered without a server, a redirect or a \
             refusal: they are no load and left out ({})",
            grouped(notes.no_load.values().sum()),
            by_status.collect::<Vec<_>>().join(", ")
        )
    });
    [unserved, untimed, no_load].into_iter().flatten()
}

/// Remarks on types whose costs vary too much for a deadline.
fn costs_that_differ(run: &Run) -> impl Iterator<Item = String> + '_ {
    let sites = run.status.iter().flat_map(|status| status.sites.iter().map(move |site| (status, site)));
    sites.flat_map(|(status, site)| {
        let promised = type_costs::promised(status, site);
        let named = type_costs::known(site).filter(move |(_, in_time)| *in_time < promised);
        named.map(|(own, in_time)| format!("{}: {}", site.name, type_costs::verdict(&own.name, in_time)))
    })
}

/// For each plant whose workers are searched for, the true number of workers and the number found.
fn found_workers(run: &Run, contender: &Contender) -> Vec<String> {
    let plants =
        contender.promises.plants.iter().enumerate().filter(|(_, plant)| plant.find_workers.is_some());
    let found = plants.filter_map(|(number, plant)| {
        let truth = contender.workload.plants.get(number)?.discipline.servers();
        let second_half = run.rows.iter().skip(run.rows.len() / 2).map(|row| row.plants[number].workers);
        let (last, least, most) = (second_half.clone().next_back()?, second_half.clone().min()?, second_half.max()?);
        (last > 0).then(|| {
            format!(
                "{} has {truth} workers, and the gateway does not know it: it takes them for {last} at the end, and for \
                 {least} to {most} in the second half of the run",
                plant.name
            )
        })
    });
    found.collect()
}
