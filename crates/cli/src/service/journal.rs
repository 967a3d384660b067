//! What `plimsoll run` logs of the loops' decisions: a line when a class begins or ceases to be degraded or turned away,
//! and one every half minute while it lasts. In observe mode the same lines say what would have been. What was promised of
//! response times is in `journal/response.rs`.
//!
//! Single requests are not logged here: their level and reason are in the response header, their counts in `/metrics`.

use crate::output::plan::contracts;
use deadline::Deadlines;
use plimsoll_core::promises::Mode;
use plimsoll_core::promises::plan::{Feasibility, PlantPlan};
use plimsoll_core::request::Outcome;
use plimsoll_core::telemetry::status::{ClassStatus, Counts, Status};
use plimsoll_core::time::{Duration, Instant};
use response::Responses;

mod deadline;
mod response;

const REMIND: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Calm,
    Degraded,
    Rejected,
}

/// What was last said of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    state: State,
    at: Instant,
    /// Counted up to the last line, and up to the last look.
    counts: Counts,
    seen: Counts,
}

/// The journal of a run.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    said: Vec<Said>,
    /// By plant: whether its contracts exceeded it when that was last said.
    exceeded: Vec<bool>,
    responses: Responses,
    deadlines: Deadlines,
    last: Instant,
}

impl Journal {
    /// Lines for what is new in `status`; none if no control period has ended since the last look.
    pub(crate) fn look(&mut self, status: &Status) -> Vec<String> {
        if status.at <= self.last || status.mode == Mode::Off {
            return Vec::new();
        }
        self.last = status.at;
        self.said.resize(status.classes.len(), Said::default());
        let pairs = self.said.iter_mut().zip(&status.classes);
        let mut lines: Vec<String> = pairs.filter_map(|(said, class)| line(said, class, status)).collect();
        self.exceeded.resize(status.plan.len(), false);
        for (said, plan) in self.exceeded.iter_mut().zip(&status.plan) {
            lines.extend(moved(said, plan));
        }
        lines.extend(self.responses.look(status));
        lines.extend(self.deadlines.look(status));
        lines
    }
}

/// Costs that have moved since the contracts were planned: what they make of the plan, with its table.
fn moved(said: &mut bool, plan: &PlantPlan) -> Option<String> {
    let exceeds = plan.verdict == Feasibility::Exceeds;
    // Costs that waver about the ceiling are not news each period.
    let settled = exceeds || plan.sum < 0.98 * plan.ceiling;
    if exceeds == *said || !settled {
        return None;
    }
    *said = exceeds;
    Some(match exceeds {
        true => format!(
            "warning: with the costs as they are now more is guaranteed than {} can keep\n{}",
            plan.plant,
            contracts(plan).trim_end()
        ),
        false => format!("{}: what is guaranteed fits again", plan.plant),
    })
}

fn line(said: &mut Said, class: &ClassStatus, status: &Status) -> Option<String> {
    let top = class.levels.len();
    let lower = |counts: &Counts| counts.served[1..top].iter().sum::<u64>();
    let (now, seen) = (&class.counts, std::mem::replace(&mut said.seen, class.counts));
    let state = if now.rejected() > seen.rejected() {
        State::Rejected
    } else if lower(now) > lower(&seen) {
        State::Degraded
    } else {
        State::Calm
    };
    if state == said.state && (state == State::Calm || status.at.since(said.at) < REMIND) {
        return None;
    }
    // What a line counts came since the last one; of a calm before it, since the last look.
    let before = if said.state == State::Calm { seen } else { said.counts };
    *said = Said { state, at: status.at, counts: class.counts, seen: class.counts };
    let since = |of: &dyn Fn(&Counts) -> u64| of(now) - of(&before);
    let (full, lower) = (since(&|counts| counts.served[top]), since(&lower));
    let rejected = since(&Counts::rejected);
    let failed = since(&|counts| counts.outcomes[Outcome::Failed as usize]);
    let name = format!("{}/{}", class.site, class.class);
    if state == State::Calm {
        return Some(format!("{name}: calm again, everybody at full quality"));
    }
    let would = if status.mode == Mode::Observe { "would be " } else { "" };
    let plant = &status.plants[class.plant];
    Some(format!(
        "{name}: {full} full, {lower} {would}degraded, {rejected} {would}rejected, {failed} failed; {} at {:.2} of its line \
         {:.2}, level {:.2} of {top}",
        plant.name, plant.utilization, plant.set_point, class.service_level,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::request::Reason;
    use plimsoll_core::telemetry::status::PlantStatus;

    fn status(seconds: u64, served: [u64; 2], rejected: u64) -> Status {
        let mut counts = Counts::default();
        counts.served[1..3].copy_from_slice(&served);
        counts.reasons[Reason::Overload as usize] = rejected;
        let levels = vec!["light".to_owned(), "full".to_owned()];
        let class = ClassStatus {
            site: "shop".to_owned(),
            class: "default".to_owned(),
            levels,
            counts,
            ..ClassStatus::default()
        };
        Status {
            at: Instant::ZERO + Duration::from_secs(seconds),
            mode: Mode::Control,
            period: Duration::from_secs(1),
            plants: vec![PlantStatus { name: "app".to_owned(), set_point: 0.85, ..PlantStatus::default() }],
            sites: Vec::new(),
            plan: Vec::new(),
            classes: vec![class],
            rejection_cost_seconds: None,
        }
    }

    #[test]
    fn a_line_at_each_change_and_a_reminder_while_it_lasts() {
        let mut journal = Journal::default();
        let mut lines = |seconds, served, rejected| journal.look(&status(seconds, served, rejected));
        assert!(lines(1, [0, 100], 0).is_empty(), "calm is not worth a line");
        let degraded = lines(2, [80, 120], 0);
        assert!(degraded[0].starts_with("shop/default: 20 full, 80 degraded, 0 rejected"), "{degraded:?}");
        assert!(lines(2, [80, 120], 0).is_empty(), "the same period twice");
        assert!(lines(3, [160, 140], 0).is_empty());
        assert!(lines(4, [240, 150], 7)[0].contains("160 degraded, 7 rejected"));
        assert!(lines(30, [250, 150], 8).is_empty());
        assert!(
            lines(35, [260, 150], 9)[0].contains("20 degraded, 2 rejected"),
            "counted since the last line"
        );
        assert!(lines(36, [270, 150], 9)[0].contains("10 degraded, 0 rejected"));
        assert_eq!(lines(37, [270, 400], 9), ["shop/default: calm again, everybody at full quality"]);
        assert!(lines(38, [270, 500], 9).is_empty());
        assert!(lines(39, [271, 510], 9)[0].contains("10 full, 1 degraded"), "calm is not counted in");
    }

    #[test]
    fn observing_says_what_would_have_been() {
        let observed = Status { mode: Mode::Observe, ..status(1, [5, 5], 1) };
        let lines = Journal::default().look(&observed);
        assert!(lines[0].contains("5 would be degraded, 1 would be rejected"), "{lines:?}");
    }

    #[test]
    fn costs_that_moved_make_a_warning_with_the_table_once() {
        use plimsoll_core::promises::Guarantee;
        use plimsoll_core::promises::plan::ContractRow;
        let with = |seconds, sum: f64| {
            let row = ContractRow {
                site: "shop".to_owned(),
                guarantee: Guarantee::new(100.0, 1e6),
                utilization: Some(sum),
            };
            let verdict = if sum > 0.85 { Feasibility::Exceeds } else { Feasibility::Fits };
            let rows = vec![row];
            let plan = PlantPlan {
                plant: "app".to_owned(),
                ceiling: 0.85,
                sum,
                verdict,
                rows,
                ..PlantPlan::default()
            };
            Status { plan: vec![plan], ..status(seconds, [0, 10], 0) }
        };
        let mut journal = Journal::default();
        assert!(journal.look(&with(1, 0.8)).is_empty());
        let warning = journal.look(&with(2, 0.9)).join("\n");
        for part in ["warning: with the costs as they are now", "shop", "0.900 of 0.850", "would fit"] {
            assert!(warning.contains(part), "no {part:?} in\n{warning}");
        }
        assert!(journal.look(&with(3, 0.9)).is_empty(), "said once");
        assert!(journal.look(&with(4, 0.845)).is_empty(), "hardly below the ceiling");
        assert_eq!(journal.look(&with(5, 0.7)), ["app: what is guaranteed fits again"]);
    }
}
