//! What the show shows of one second: a few lines for a terminal, one line for a log. Text only; [`super::show`] prints.

use super::plant::SET_POINT;
use super::side::{Period, Seen};
use plimsoll_load::Histogram;

/// One second of the show.
pub(crate) struct Frame<'a> {
    pub(crate) second: u64,
    pub(crate) seconds: u64,
    /// Of the server [full pages/s].
    pub(crate) capacity: f64,
    /// As a multiple of the capacity.
    pub(crate) load: f64,
    pub(crate) with: &'a Period,
    pub(crate) without: &'a Period,
}

/// Whether bars and counts are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Colours,
}

const GOOD: &str = "32";
const BAD: &str = "31";

impl Ink {
    fn paint(self, colour: &str, text: String) -> String {
        if self == Ink::Plain { text } else { format!("\x1b[{colour}m{text}\x1b[0m") }
    }
}

const BAR: usize = 20;
const NAME: usize = 16;
const COLUMN: usize = 30;

impl Frame<'_> {
    /// For a terminal of 80 columns.
    pub(crate) fn lines(&self, ink: Ink) -> Vec<String> {
        let Frame { second, seconds, capacity, load, .. } = *self;
        let rate = load * capacity;
        let load_bar = "#".repeat((load * BAR as f64 / 3.0).round().clamp(1.0, 2.0 * BAR as f64) as usize);
        let mut lines = vec![
            format!(
                "A server for {capacity:.0} full pages/s; a light one costs 15 % of that.  {second}/{seconds} s"
            ),
            String::new(),
            format!("{:NAME$}{load_bar} {load} x the capacity", "load"),
            format!("{:NAME$}{rate:.0} requests/s", ""),
            String::new(),
            format!("{:NAME$}{:COLUMN$}{}", "", "with the gateway", "without it"),
        ];
        let sides = [self.with, self.without];
        lines.push(row("utilization", sides.map(|period| (format!("{:.2}", period.utilization), None)), ink));
        let over = |period: &Period| if period.utilization > SET_POINT + 0.06 { BAD } else { GOOD };
        lines.push(row("", sides.map(|period| (bar(period.utilization), Some(over(period)))), ink));
        lines.push(row(
            "load line",
            [(format!("{}^ {SET_POINT}", " ".repeat(mark())), None), (String::new(), None)],
            ink,
        ));
        for (name, level) in [("full pages", 1), ("light pages", 0)] {
            lines.push(row(
                name,
                sides.map(|period| (share(&period.seen, period.seen.pages[level]), None)),
                ink,
            ));
        }
        let worrying = |count: u64| (count > 0).then_some(BAD);
        lines.push(row(
            "rejected",
            sides.map(|period| (period.seen.rejected.to_string(), worrying(period.seen.rejected))),
            ink,
        ));
        lines.push(row(
            "failed",
            sides.map(|period| (failed(&period.seen), worrying(period.seen.errors))),
            ink,
        ));
        for (name, quantile) in [("response p50", 0.5), ("response p99", 0.99)] {
            lines.push(row(name, sides.map(|period| (time(&period.seen.latency, quantile), None)), ink));
        }
        lines
    }

    /// For a log.
    pub(crate) fn line(&self) -> String {
        let Frame { second, load, with, without, .. } = self;
        format!(
            "{second:3} s  load {load}  with the gateway: utilization {:.2}, full {}, light {}, rejected {}, failed {}, \
             p50 {}, p99 {}  without: utilization {:.2}, failed {}, p50 {}, p99 {}",
            with.utilization,
            share(&with.seen, with.seen.pages[1]),
            share(&with.seen, with.seen.pages[0]),
            with.seen.rejected,
            failed(&with.seen),
            time(&with.seen.latency, 0.5),
            time(&with.seen.latency, 0.99),
            without.utilization,
            failed(&without.seen),
            time(&without.seen.latency, 0.5),
            time(&without.seen.latency, 0.99),
        )
    }
}

/// A name and a cell for each side. Blanks are counted before colour, which takes no room.
fn row(name: &str, cells: [(String, Option<&str>); 2], ink: Ink) -> String {
    let mut line = format!("{name:NAME$}");
    for (text, colour) in cells {
        let blanks = COLUMN.saturating_sub(text.chars().count());
        line += &match colour {
            Some(colour) => ink.paint(colour, text),
            None => text,
        };
        line += &" ".repeat(blanks);
    }
    line.trim_end().to_owned()
}

fn bar(utilization: f64) -> String {
    let full = (utilization * BAR as f64).round().clamp(0.0, BAR as f64) as usize;
    format!("[{:BAR$}]", "#".repeat(full))
}

/// Where the set point stands under a bar.
fn mark() -> usize {
    (SET_POINT * BAR as f64).round() as usize
}

fn share(seen: &Seen, part: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / seen.ended().max(1) as f64)
}

fn failed(seen: &Seen) -> String {
    match seen.errors {
        0 => "0".to_owned(),
        errors => format!("{errors} ({})", share(seen, errors)),
    }
}

fn time(latency: &Histogram, quantile: f64) -> String {
    match latency.count() {
        0 => "-".to_owned(),
        _ => format!("{:.0} ms", latency.quantile(quantile).as_secs_f64() * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_load::LevelChanges;

    fn period(utilization: f64, pages: [u64; 2], errors: u64) -> Period {
        let mut latency = Histogram::default();
        latency.record_ns(70_000_000);
        let seen = Seen { pages, errors, latency, ..Seen::default() };
        Period { utilization, service: utilization, seen, changes: LevelChanges::default(), estimate: None }
    }

    #[test]
    fn a_frame_fits_a_terminal_and_says_what_happens() {
        let (with, without) = (period(0.85, [5040, 960], 0), period(1.0, [0, 2000], 4000));
        let frame =
            Frame { second: 12, seconds: 60, capacity: 2000.0, load: 3.0, with: &with, without: &without };
        let lines = frame.lines(Ink::Plain);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let text = lines.join("\n");
        for part in
            ["12/60 s", "3 x the capacity", "16 %", "84 %", "4000 (67 %)", "[#################   ]", "70 ms"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains('\x1b'));
        let coloured = frame.lines(Ink::Colours).join("\n");
        assert!(coloured.contains("\x1b[31m4000 (67 %)\x1b[0m"), "{coloured:?}");
        let line = frame.line();
        assert!(line.contains("utilization 0.85, full 16 %, light 84 %, rejected 0, failed 0,"), "{line}");
        assert!(line.contains("without: utilization 1.00, failed 4000 (67 %)"), "{line}");
    }
}
