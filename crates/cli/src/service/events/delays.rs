//! Promised delays and ratios: a line at a change, none while it lasts. A missed promise is said at once; that it is kept
//! again, and everything about ratios, is said once it has lasted for [`STEADY`] periods.

use super::{STEADY, Steady};
use crate::output::promised;
use plimsoll_core::telemetry::status::{ClassStatus, Status};

/// A class's delay. A reload may have taken it back: then its state is forgotten.
pub(super) fn delay(said: &mut Steady<bool>, class: &ClassStatus, status: &Status) -> Option<String> {
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
    let name = format!("{}/{}", class.site, class.class);
    let promise = promised::delay(row.delay);
    if !held.missed {
        return Some(format!("{name}: promise kept again: {promise}; lately {lately}"));
    }
    let workers = status.plants.get(class.plant).map_or(0, |plant| plant.workers);
    let quota = held.quota.map_or(String::new(), |quota| format!(", with {quota:.1} of {workers} workers"));
    Some(format!("{name}: promise missed: {promise}; lately {lately}{quota}"))
}

/// The ratios of a site's classes.
pub(super) fn ratio(said: &mut Steady<bool>, site: &str, status: &Status) -> Option<String> {
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
    let what = if infeasible { "cannot be had at this load" } else { "can be had again" };
    Some(format!("{site}: the ratio of response times {what}: {}", times.join(", ")))
}
