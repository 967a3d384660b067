//! News of a server's processes: those that died, and those for which there was no lane. Input: the counts of the shared state
//! at each look. Output: lines for the log.

use crate::output::units::grouped;
use std::time::{Duration, Instant};

/// The least time between two lines about processes without a lane, which try again each second.
const PAUSE: Duration = Duration::from_secs(60);

/// The shared state's counts of its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessCounts {
    /// Processes that were found dead.
    pub(crate) deaths: u64,
    /// The requests that dead processes held.
    pub(crate) returned: u64,
    /// Attachments that were refused because there was no lane.
    pub(crate) refused: u64,
}

/// A line, and whether it is a warning.
#[derive(Debug, PartialEq)]
pub(crate) struct ProcessLine {
    pub(crate) is_warning: bool,
    pub(crate) text: String,
}

/// What was logged about the processes.
#[derive(Debug)]
pub(crate) struct ProcessNews {
    lanes: usize,
    logged: ProcessCounts,
    /// When the last line about refused attachments was written.
    logged_refused: Option<Instant>,
}

impl ProcessNews {
    /// The state in which earlier counts are no news.
    pub(crate) fn going_on(lanes: usize, counts: ProcessCounts) -> Self {
        ProcessNews { lanes, logged: counts, logged_refused: None }
    }

    /// Lines for what was counted since the last look.
    pub(crate) fn look(&mut self, counts: ProcessCounts, now: Instant) -> Vec<ProcessLine> {
        let died = counts.deaths - self.logged.deaths;
        let held = counts.returned - self.logged.returned;
        (self.logged.deaths, self.logged.returned) = (counts.deaths, counts.returned);
        let mut lines: Vec<ProcessLine> = deaths(died, held).into_iter().collect();
        let refused = counts.refused - self.logged.refused;
        if refused > 0 && self.logged_refused.is_none_or(|at| now.duration_since(at) >= PAUSE) {
            (self.logged.refused, self.logged_refused) = (counts.refused, Some(now));
            lines.push(self.without_lane(refused));
        }
        lines
    }

    fn without_lane(&self, refused: u64) -> ProcessLine {
        let (tries, lanes) = (counted(refused, "attachment was", "attachments were"), self.lanes);
        let text = format!(
            "{tries} refused: all {lanes} lanes belong to living processes, and a process without one serves every request at \
             full quality; start this controller with more `--lanes` (a graceful restart needs room for both generations of \
             processes), then the server's processes anew"
        );
        ProcessLine { is_warning: true, text }
    }
}

/// A line about deaths: a warning if they cost requests. The requests that a process held are counted a moment after its death.
fn deaths(died: u64, held: u64) -> Option<ProcessLine> {
    let who = counted(died, "process", "processes");
    let text = match (died, held) {
        (0, 0) => return None,
        (_, 0) => format!("{who} ended without giving a lane back, and held no request"),
        (0, _) => format!("{} of dead processes failed", counted(held, "request", "requests")),
        _ => format!("{who} died at work: {} failed", counted(held, "request", "requests")),
    };
    Some(ProcessLine { is_warning: held > 0, text })
}

fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_held_decides_whether_its_end_is_an_alarm() {
        let before = ProcessCounts { deaths: 18, returned: 78, refused: 3 };
        let (mut news, now) = (ProcessNews::going_on(4, before), Instant::now());
        let mut look = |deaths, returned| {
            let lines = news.look(ProcessCounts { deaths, returned, refused: 3 }, now);
            lines.into_iter().map(|line| (line.is_warning, line.text)).collect::<Vec<_>>()
        };
        assert_eq!(look(18, 78), [], "what was counted before is no news");
        let line = |is_warning, text: &str| [(is_warning, text.to_owned())];
        assert_eq!(
            look(19, 78),
            line(false, "1 process ended without giving a lane back, and held no request")
        );
        assert_eq!(look(20, 79), line(true, "1 process died at work: 1 request failed"));
        assert_eq!(look(22, 1079), line(true, "2 processes died at work: 1,000 requests failed"));
        assert_eq!(look(22, 1081), line(true, "2 requests of dead processes failed"));
        assert_eq!(look(22, 1081), []);
    }

    #[test]
    fn processes_without_a_lane_are_logged_at_once_and_then_once_a_minute() {
        let before = ProcessCounts { refused: 7, ..ProcessCounts::default() };
        let (mut news, start) = (ProcessNews::going_on(4, before), Instant::now());
        let mut said = Vec::new();
        for second in 0..130 {
            // Four processes try to attach each second, from the third second on.
            let refused = 7 + 4 * second.max(2) - 8;
            let counts = ProcessCounts { refused, ..before };
            said.extend(news.look(counts, start + Duration::from_secs(second)));
        }
        assert!(said.iter().all(|line| line.is_warning), "{said:?}");
        let begins: Vec<_> =
            said.iter().map(|line| line.text.split(':').next().unwrap_or_default()).collect();
        let tries = |tries: u64| format!("{tries} attachments were refused");
        assert_eq!(begins, [tries(4), tries(240), tries(240)]);
        assert!(said[0].text.contains("all 4 lanes") && said[0].text.contains("`--lanes`"), "{said:?}");
    }
}
