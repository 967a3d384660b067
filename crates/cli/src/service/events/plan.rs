//! The plan: contracts and delays that the costs as they are known now do not allow any more, and workers that were found.

use super::{STEADY, Steady};
use crate::output::{plan, promised};
use plimsoll_core::promises::plan::{DelayRow, Feasibility, PlantPlan};
use plimsoll_core::telemetry::status::PlantStatus;

/// Contracts fit again when they take this part of the ceiling: costs that waver about the ceiling are not news.
const FITS_AGAIN: f64 = 0.98;
/// A delay fits again when this part of it could be kept.
const CLEARLY: f64 = 0.95;

/// Contracts, when costs have moved since they were planned: a warning with the plan's table.
pub(super) fn contracts(said: &mut bool, plan: &PlantPlan) -> Option<String> {
    let exceeds = plan.verdict == Feasibility::Exceeds;
    let settled = exceeds || plan.sum < FITS_AGAIN * plan.ceiling;
    if exceeds == *said || !settled {
        return None;
    }
    *said = exceeds;
    Some(match exceeds {
        true => format!(
            "warning: with the costs as they are now more is guaranteed than {} can keep\n{}",
            plan.plant,
            plan::contracts(plan).trim_end()
        ),
        false => format!("{}: what is guaranteed fits again", plan.plant),
    })
}

/// Delays, when costs have moved since they were planned.
pub(super) fn delays(said: &mut bool, plan: &PlantPlan) -> Option<String> {
    let exceeds = |row: &DelayRow| row.verdict() == Feasibility::Exceeds;
    let clear = |row: &DelayRow| {
        row.least_seconds.is_none_or(|least| least <= CLEARLY * row.delay.target.as_secs_f64())
    };
    if !*said {
        *said = plan.delays.iter().any(exceeds);
        let table = promised::refusal(plan).filter(|_| *said)?;
        return Some(format!("warning: with the costs as they are now\n{}", table.trim_end()));
    }
    *said = !plan.delays.iter().all(clear);
    (!*said).then(|| format!("{}: the delays that were promised can be kept again", plan.plant))
}

/// Workers, when their number was found, and when it is another.
pub(super) fn workers(said: &mut Steady<u32>, plant: &PlantStatus) -> Option<String> {
    let before = said.said;
    let found = plant.workers_found == Some(true);
    // The search itself tries one worker more or less.
    let differs = 4 * plant.workers.abs_diff(before) > before;
    if !found || !differs || !said.is_news(plant.workers, STEADY) {
        return None;
    }
    let PlantStatus { name, workers, .. } = plant;
    Some(match before {
        0 => format!("{name}: works on {workers} requests at once, as its throughput shows"),
        before => format!("{name}: works on {workers} requests at once now, {before} before"),
    })
}
