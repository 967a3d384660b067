//! The figures as text.

use super::figures::{Figures, Share};
use super::inputs::Kind;
use super::{Simulated, promises};
use crate::output::text;
use plimsoll_core::telemetry::Histogram;
use plimsoll_sim::LogNotes;
use std::path::Path;
use std::time::Duration;

/// Paths that are shown.
const PATHS: usize = 8;

pub(crate) fn text(simulated: &Simulated) -> String {
    let mut text = headline(simulated);
    text += "\n";
    text += &comparison(simulated);
    if simulated.figures.iter().any(|figures| figures.classes.len() > 1) {
        text += "\n";
        text += &classes(simulated);
    }
    let of_all = simulated.figures.iter().map(|figures| &figures.promised);
    let promised = promises::table(of_all.zip(&simulated.inputs.contenders), simulated.runs.len() > 1);
    if !promised.is_empty() {
        text += "\n";
        text += &promised;
    }
    text += &heaviest(simulated);
    for note in notes(simulated) {
        text += &format!("\nnote: {note}");
    }
    text
}

/// What was simulated, in a sentence.
pub(crate) fn headline(simulated: &Simulated) -> String {
    let run = &simulated.runs[0];
    format!(
        "{}: {} requests in {} of virtual time (seed {}, simulated in {:.2} s)\n",
        simulated.inputs.arrivals,
        grouped(run.requests),
        span(run.ended.as_secs_f64()),
        simulated.seed,
        simulated.took.as_secs_f64()
    )
}

/// One column for each contender.
fn comparison(simulated: &Simulated) -> String {
    let mut header = vec![String::new()];
    header.extend(simulated.inputs.contenders.iter().take(simulated.runs.len()).map(|one| short(&one.name)));
    let mut rows = vec![header];
    let figures = &simulated.figures;
    let mut row = |name: String, of: &dyn Fn(&Figures) -> String| {
        let mut cells = vec![name];
        cells.extend(figures.iter().map(of));
        rows.push(cells);
    };
    row("requests, with those that came again".to_owned(), &|figures| grouped(figures.total.arrivals));
    for (number, plant) in figures[0].plants.iter().enumerate() {
        row(format!("utilization of {}", plant.name), &|figures| {
            format!("{:.3}", figures.plants[number].utilization)
        });
        row("  95 % of the time below".to_owned(), &|figures| format!("{:.3}", figures.plants[number].p95));
        row("  its load line".to_owned(), &|figures| format!("{:.3}", figures.plants[number].set_point));
        if figures.iter().any(|figures| figures.plants[number].link > 0.0) {
            row("  its link".to_owned(), &|figures| format!("{:.3}", figures.plants[number].link));
        }
    }
    for level in distinct(figures.iter().flat_map(|figures| &figures.levels), |(level, _)| level) {
        row(format!("served {level}"), &|figures| {
            let of = figures.levels.iter().find(|(name, _)| *name == level);
            of.map_or(String::new(), |(_, count)| part(&figures.total, *count))
        });
    }
    row("turned away".to_owned(), &|figures| part(&figures.total, figures.total.rejected));
    for (number, (reason, _)) in figures[0].total.reasons.iter().enumerate() {
        let of = |figures: &Figures| figures.total.reasons.get(number).map_or(0, |(_, count)| *count);
        if figures.iter().any(|figures| of(figures) > 0) {
            row(format!("  {reason}"), &|figures| part(&figures.total, of(figures)));
        }
    }
    row("failed".to_owned(), &|figures| part(&figures.total, figures.total.failed));
    if figures.iter().any(|figures| figures.total.abandoned > 0) {
        row("client left".to_owned(), &|figures| part(&figures.total, figures.total.abandoned));
    }
    if figures.iter().any(|figures| figures.total.under_way > 0) {
        row("under way at the end".to_owned(), &|figures| part(&figures.total, figures.total.under_way));
    }
    row("response time p50".to_owned(), &|figures| time(&figures.total.response, 0.5));
    row("  p99".to_owned(), &|figures| time(&figures.total.response, 0.99));
    row("delivered".to_owned(), &|figures| bytes(figures.total.bytes));
    let right: Vec<usize> = (1..=figures.len()).collect();
    text::table(&rows, &right)
}

fn classes(simulated: &Simulated) -> String {
    let cells = |cells: [&str; 9]| cells.map(str::to_owned).to_vec();
    let mut rows =
        vec![cells(["class", "", "arrivals", "full", "degraded", "turned away", "failed", "p50", "p99"])];
    let of_all = simulated.figures.iter().flat_map(|figures| &figures.classes);
    for class in distinct(of_all, |class| &class.name) {
        let mut name = class;
        for (figures, contender) in simulated.figures.iter().zip(&simulated.inputs.contenders) {
            let Some(of) = figures.classes.iter().find(|of| of.name == class) else { continue };
            let percent = |count| format!("{:.1} %", of.share.percent(count));
            rows.push(vec![
                std::mem::take(&mut name).to_owned(),
                if simulated.figures.len() > 1 { short(&contender.name) } else { String::new() },
                grouped(of.share.arrivals),
                percent(of.share.full),
                percent(of.share.degraded),
                percent(of.share.rejected),
                percent(of.share.failed),
                time(&of.share.response, 0.5),
                time(&of.share.response, 0.99),
            ]);
        }
    }
    text::table(&rows, &[2, 3, 4, 5, 6, 7, 8])
}

/// What they are called, each once, in the order in which the contenders have them.
fn distinct<'a, T: 'a>(all: impl Iterator<Item = &'a T>, name: impl Fn(&'a T) -> &'a String) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for one in all.map(|one| name(one).as_str()) {
        if !names.contains(&one) {
            names.push(one);
        }
    }
    names
}

/// The paths that suffered most under the first contender.
fn heaviest(simulated: &Simulated) -> String {
    let top = &simulated.runs[0].top;
    if top.is_empty() {
        return String::new();
    }
    let cells = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![cells(["less than full quality most often", "degraded", "turned away"])];
    for heavy in top.iter().take(PATHS) {
        rows.push(vec![printable(&heavy.path), grouped(heavy.degraded), grouped(heavy.rejected)]);
    }
    format!("\n{}", text::table(&rows, &[1, 2]))
}

/// What the reader must know beside the figures, a sentence each.
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
    // Each front has its own: who is answered does not come again.
    for (run, contender) in runs.iter().zip(&inputs.contenders).filter(|(run, _)| run.retries > 0) {
        let before = if runs.len() > 1 { format!("{}: ", short(&contender.name)) } else { String::new() };
        all.push(format!("{before}{} requests are of clients that tried again", grouped(run.retries)));
    }
    if matches!(inputs.contenders[0].kind, Kind::Configuration) {
        all.extend(promises::workers_notes(&runs[0], &inputs.contenders[0]));
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

/// A name without its folders.
pub(crate) fn short(name: &str) -> String {
    Path::new(name).file_name().map_or(name.to_owned(), |file| file.to_string_lossy().into_owned())
}

fn part(share: &Share, count: u64) -> String {
    format!("{:.2} %", share.percent(count))
}

fn time(response: &Histogram, q: f64) -> String {
    if response.count() == 0 {
        return "-".to_owned();
    }
    let time: Duration = response.quantile(q);
    match time.as_secs_f64() {
        seconds if seconds < 0.01 => format!("{:.2} ms", seconds * 1e3),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        _ if count < 1e6 => format!("{:.0} kB", count / 1e3),
        _ if count < 1e9 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.2} GB", count / 1e9),
    }
}

/// A time span in two units at most.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 120.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        _ if whole < 7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ if whole < 172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// Digits in threes.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Text from a log may hold anything: a terminal gets none of its control characters.
pub(super) fn printable(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut shown: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1000), grouped(3_461_610)),
            ("0".into(), "999".into(), "1,000".into(), "3,461,610".into())
        );
        let spans = [30.0, 119.94, 3_725.0, 46_320.0, 5_059_950.0].map(span);
        assert_eq!(spans, ["30 s", "119.9 s", "62 min 5 s", "12 h 52 min", "58 d 13 h"]);
    }

    #[test]
    fn what_a_log_holds_does_not_reach_the_terminal() {
        assert_eq!(printable("/a\u{1b}[31m\n"), "/a\u{fffd}[31m\u{fffd}");
        assert_eq!(printable(&"x".repeat(101)), format!("{}...", "x".repeat(100)));
    }
}
