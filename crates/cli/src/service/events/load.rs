//! Load: a line when a class begins or ceases to be degraded or rejected, and one every half minute while that lasts. In
//! observe mode the same lines say what would have been.

use plimsoll_core::promises::Mode;
use plimsoll_core::request::Outcome;
use plimsoll_core::telemetry::status::{ClassStatus, Counts, Status};
use plimsoll_core::time::{Duration, Instant};

const REMIND: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LoadState {
    #[default]
    Calm,
    Degraded,
    Rejected,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassLoad {
    state: LoadState,
    at: Instant,
    /// The counts at the last line, and at the last look.
    counts: Counts,
    seen: Counts,
}

impl ClassLoad {
    pub(super) fn look(&mut self, class: &ClassStatus, status: &Status) -> Option<String> {
        let top = class.levels.len();
        let lower = |counts: &Counts| counts.served[1..top].iter().sum::<u64>();
        let (now, seen) = (&class.counts, std::mem::replace(&mut self.seen, class.counts));
        let state = if now.rejected() > seen.rejected() {
            LoadState::Rejected
        } else if lower(now) > lower(&seen) {
            LoadState::Degraded
        } else {
            LoadState::Calm
        };
        if state == self.state && (state == LoadState::Calm || status.at.since(self.at) < REMIND) {
            return None;
        }
        // A line counts from the line before it, or, after a calm, from the last look.
        let before = if self.state == LoadState::Calm { seen } else { self.counts };
        *self = ClassLoad { state, at: status.at, counts: class.counts, seen: class.counts };
        let name = format!("{}/{}", class.site, class.class);
        if state == LoadState::Calm {
            return Some(format!("{name}: calm again, everybody at full quality"));
        }
        let since = |count: &dyn Fn(&Counts) -> u64| count(now) - count(&before);
        let (full, lower) = (since(&|counts| counts.served[top]), since(&lower));
        let rejected = since(&Counts::rejected);
        let failed = since(&|counts| counts.outcomes[Outcome::Failed as usize]);
        let would = if status.mode == Mode::Observe { "would be " } else { "" };
        let plant = &status.plants[class.plant];
        Some(format!(
            "{name}: {full} full, {lower} {would}degraded, {rejected} {would}rejected, {failed} failed; {} at {:.2} of its \
             line {:.2}, level {:.2} of {top}",
            plant.name, plant.utilization, plant.set_point, class.service_level,
        ))
    }
}
