//! Promises: contracts and delays that the present costs no longer allow, delays and ratios that are missed, and workers that
//! were found. A line is logged at each change. A missed promise is logged at once; that it is kept again, and everything about
//! ratios, is logged once it has lasted for [`STEADY`] periods.

use super::{STEADY, Steady};
use crate::output::{plan, promised};
use crate::service::log::{News, Subject};
use plimsoll_core::promises::plan::{DelayRow, Feasibility, PlantPlan};
use plimsoll_core::telemetry::status::{ClassStatus, PlantStatus, Status};

/// Contracts count as fitting again when they take this part of the ceiling, so that costs near the ceiling do not fill the
/// log.
const FITS_AGAIN: f64 = 0.98;
/// A planned delay counts as possible again when this part of it could be kept.
const CLEARLY: f64 = 0.95;

/// Contracts that no longer fit, or fit again, because costs have moved: a warning with the plan's table.
pub(super) fn contracts(said: &mut bool, plan: &PlantPlan) -> Option<News> {
    let exceeds = plan.verdict == Feasibility::Exceeds;
    let settled = exceeds || plan.sum < FITS_AGAIN * plan.ceiling;
    if exceeds == *said || !settled {
        return None;
    }
    *said = exceeds;
    let subject = Subject::Plant(plan.plant.clone());
    Some(match exceeds {
        true => News::warn(
            subject,
            format!(
                "with the costs as they are now more is guaranteed than it can keep\n{}",
                plan::contracts(plan).trim_end()
            ),
        ),
        false => News::info(subject, "what is guaranteed fits again"),
    })
}

/// Planned delays that are no longer possible, or are again, because costs have moved.
pub(super) fn planned_delays(said: &mut bool, plan: &PlantPlan) -> Option<News> {
    let exceeds = |row: &DelayRow| row.verdict() == Feasibility::Exceeds;
    let clear = |row: &DelayRow| {
        row.least_seconds.is_none_or(|least| least <= CLEARLY * row.delay.target.as_secs_f64())
    };
    let subject = Subject::Plant(plan.plant.clone());
    if !*said {
        *said = plan.delays.iter().any(exceeds);
        let table = promised::refusal(plan).filter(|_| *said)?;
        let message = format!("with the costs as they are now\n{}", table.trim_end());
        return Some(News::warn(subject, message));
    }
    *said = !plan.delays.iter().all(clear);
    (!*said).then(|| News::info(subject, "the delays that were promised can be kept again"))
}

/// The number of workers, when it was found, and when it has changed.
pub(super) fn workers(said: &mut Steady<u32>, plant: &PlantStatus) -> Option<News> {
    let before = said.said;
    let found = plant.workers_found == Some(true);
    // Changes of at most a quarter are ignored, because the search itself tries one worker more or less.
    let differs = 4 * plant.workers.abs_diff(before) > before;
    if !found || !differs || !said.is_news(plant.workers, STEADY) {
        return None;
    }
    let PlantStatus { name, workers, .. } = plant;
    let message = match before {
        0 if plant.workers_reported => format!("works on {workers} requests at once, as its server reports"),
        0 => format!("works on {workers} requests at once, as its throughput shows"),
        before => format!("works on {workers} requests at once now, {before} before"),
    };
    Some(News::info(Subject::Plant(name.clone()), message))
}

/// A class's delay. If a reload removed the promise, its state is dropped.
pub(super) fn delay(said: &mut Steady<bool>, class: &ClassStatus, status: &Status) -> Option<News> {
    let rows = status.plan.iter().flat_map(|plan| &plan.delays);
    let row = rows.into_iter().find(|row| row.site == class.site && row.class == class.class);
    let Some((row, held)) = row.zip(class.response) else {
        *said = Steady::default();
        return None;
    };
    if !said.is_news(held.missed, if held.missed { 1 } else { STEADY }) {
        return None;
    }
    let lately = match row.delay.percentile {
        Some(_) => format!("{:.1} % took longer", 100.0 * held.late),
        None => format!("it was {}", promised::time(held.response)),
    };
    let promise = promised::delay(row.delay);
    if !held.missed {
        let message = format!("promise kept again: {promise}; lately {lately}");
        return Some(News::info(Subject::of(class), message));
    }
    let workers = status.plants.get(class.plant).map_or(0, |plant| plant.workers);
    let quota = held.quota.map_or(String::new(), |quota| format!(", with {quota:.1} of {workers} workers"));
    Some(News::warn(Subject::of(class), format!("promise missed: {promise}; lately {lately}{quota}")))
}

/// The ratios of a site's classes.
pub(super) fn ratio(said: &mut Steady<bool>, site: &str, status: &Status) -> Option<News> {
    let own = status.classes.iter().filter(|class| class.site == site && !class.removed);
    let held: Vec<_> = own
        .filter_map(|class| class.response.filter(|held| held.weight.is_some()).map(|held| (class, held)))
        .collect();
    let infeasible = held.iter().any(|(_, held)| held.infeasible);
    if held.is_empty() || !said.is_news(infeasible, STEADY) {
        return None;
    }
    let times: Vec<String> = held
        .iter()
        .map(|(class, held)| format!("{} {}", class.class, promised::time(held.response)))
        .collect();
    let (news, what): (fn(_, _) -> _, _) = match infeasible {
        true => (News::warn, "cannot be had at this load"),
        false => (News::info, "can be had again"),
    };
    let message = format!("the ratio of response times {what}: {}", times.join(", "));
    Some(news(Subject::Site(site.to_owned()), message))
}
