//! Remarks: a sentence for each thing that a reader of the figures must know beside them.

use super::Simulated;
use super::inputs::{Contender, Kind};
use crate::output::units::{grouped, printable, short, span};
use plimsoll_sim::{LogNotes, Run};

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
            "{} requests are for hosts that no site has: they are refused, and not in the figures",
            grouped(runs[0].unmatched)
        ));
    }
    // Each contender has its own number, because a client that is answered does not come again.
    for (run, contender) in runs.iter().zip(&inputs.contenders).filter(|(run, _)| run.retries > 0) {
        let before = if runs.len() > 1 { format!("{}: ", short(&contender.name)) } else { String::new() };
        all.push(format!("{before}{} requests are of clients that tried again", grouped(run.retries)));
    }
    if matches!(inputs.contenders[0].kind, Kind::Configuration) {
        all.extend(found_workers(&runs[0], &inputs.contenders[0]));
    }
    for (stream, notes) in &runs[0].notes {
        log_notes(&inputs.contenders[0].workload.streams[*stream].name, notes, &mut all);
    }
    all.extend(inputs.assumptions.iter().cloned());
    all
}

fn log_notes(name: &str, notes: &LogNotes, all: &mut Vec<String>) {
    if let Some((line, text, wrong)) = &notes.first_skipped {
        all.push(format!(
            "{name}: {} of {} lines were skipped; the first is line {line}: {wrong}: {}",
            grouped(notes.skipped),
            grouped(notes.lines),
            printable(text)
        ));
    }
    let (timed, zero) = notes.timed;
    if timed > 0 && timed < notes.requests {
        all.push(format!(
            "{name}: the lines of {} of {} requests tell the server's own time; the others take what their bytes cost",
            grouped(timed),
            grouped(notes.requests)
        ));
    }
    if zero > timed / 2 {
        all.push(format!(
            "{name}: of {} requests the server's own time is zero: it is finer than the log tells, or no server was \
             asked; they take nothing of it here",
            grouped(zero)
        ));
    }
    if notes.backwards > notes.requests / 2 {
        all.push(format!(
            "{name}: most lines are out of order, so that the figures are worth little: sort it by time first"
        ));
    }
    if let Some((line, seconds)) = notes.first_backwards {
        all.push(format!(
            "{name}: the time of {} lines lies before that of an earlier one (first at line {line}, by {}): they come \
             at that one's time",
            grouped(notes.backwards),
            span(seconds)
        ));
    }
    if notes.restarts > 0 {
        all.push(format!(
            "{name}: its clock went back {} times for good; time goes on from there",
            notes.restarts
        ));
    }
    if notes.strays > 0 {
        all.push(format!(
            "{name}: {} lines alone are more than an hour ahead of those around them: they come at the time of the line \
             before",
            grouped(notes.strays)
        ));
    }
    if notes.gaps.0 > 0 {
        all.push(format!(
            "{name}: {} gaps of more than an hour were cut to one, {} together",
            notes.gaps.0,
            span(notes.gaps.1)
        ));
    }
}

/// The number of workers that each plant truly has and the number that was found, where workers are looked for.
fn found_workers(run: &Run, contender: &Contender) -> Vec<String> {
    let plants =
        contender.promises.plants.iter().enumerate().filter(|(_, plant)| plant.find_workers.is_some());
    let found = plants.filter_map(|(number, plant)| {
        let truth = contender.workload.plants.get(number)?.discipline.servers();
        let second_half = run.rows.iter().skip(run.rows.len() / 2).map(|row| row.plants[number].workers);
        let (last, least, most) = (second_half.clone().next_back()?, second_half.clone().min()?, second_half.max()?);
        (last > 0).then(|| {
            format!(
                "{} has {truth} workers, and the gateway is not told: it takes them for {last} at the end, and for {least} to \
                 {most} in the second half of the run",
                plant.name
            )
        })
    });
    found.collect()
}
