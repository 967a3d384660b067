//! Promised response times in the journal: what is missed and kept again, a ratio that cannot be had, the workers that
//! were found, and delays that the plan can keep no more.
//!
//! A line at a change, none while it lasts. A missed promise is told at once; that it is kept again, and what is no alarm,
//! once it has stood for [`STEADY`] periods: what wavers is not news each period.

use crate::output::promised;
use plimsoll_core::promises::plan::{DelayRow, Feasibility, PlantPlan};
use plimsoll_core::telemetry::status::{ClassStatus, PlantStatus, Status};

/// Periods that a state stands before it counts.
const STEADY: u32 = 5;
/// A delay fits again when it could be this part of what was promised.
const CLEARLY: f64 = 0.95;

/// What was last said, and for how long something else is so.
#[derive(Clone, Copy, Debug, Default)]
struct Said<T> {
    said: T,
    seen: T,
    looks: u32,
}

impl<T: Copy + PartialEq> Said<T> {
    /// Whether `now` is news, having been so for `steady` looks.
    fn is_news(&mut self, now: T, steady: u32) -> bool {
        self.looks = if now == self.seen { self.looks.saturating_add(1) } else { 1 };
        self.seen = now;
        let news = now != self.said && self.looks >= steady;
        if news {
            self.said = now;
        }
        news
    }
}

/// What was said of all promises.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// By class.
    missed: Vec<Said<bool>>,
    /// By site.
    infeasible: Vec<Said<bool>>,
    /// By plant; 0 before anything was found.
    workers: Vec<Said<u32>>,
    /// By plant.
    exceeded: Vec<bool>,
}

impl Responses {
    pub(super) fn look(&mut self, status: &Status) -> Vec<String> {
        self.workers.resize(status.plants.len(), Said::default());
        self.missed.resize(status.classes.len(), Said::default());
        // Sites have no numbers for life: what was said of others is forgotten with a reload that changes how many.
        if self.infeasible.len() != status.sites.len() {
            self.infeasible = vec![Said::default(); status.sites.len()];
        }
        self.exceeded.resize(status.plan.len(), false);
        let plants = self.workers.iter_mut().zip(&status.plants);
        let mut lines: Vec<String> = plants.filter_map(|(said, plant)| workers(said, plant)).collect();
        let plans = self.exceeded.iter_mut().zip(&status.plan);
        lines.extend(plans.filter_map(|(said, plan)| planned(said, plan)));
        let classes = self.missed.iter_mut().zip(&status.classes);
        lines.extend(classes.filter_map(|(said, class)| delay(said, class, status)));
        let sites = self.infeasible.iter_mut().zip(&status.sites);
        lines.extend(sites.filter_map(|(said, site)| ratio(said, &site.name, status)));
        lines
    }
}

fn workers(said: &mut Said<u32>, plant: &PlantStatus) -> Option<String> {
    let before = said.said;
    let found = plant.workers_found == Some(true);
    // One more or less is how the search looks around.
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

/// Costs that have moved since the delays were planned.
fn planned(said: &mut bool, plan: &PlantPlan) -> Option<String> {
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

/// Of a class that was promised a delay; a reload may have taken it back.
fn delay(said: &mut Said<bool>, class: &ClassStatus, status: &Status) -> Option<String> {
    let rows = status.plan.iter().flat_map(|plan| &plan.delays);
    let row = rows.into_iter().find(|row| row.site == class.site && row.class == class.class);
    let Some((row, held)) = row.zip(class.response) else {
        *said = Said::default();
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

/// Of all classes of a site that have a ratio.
fn ratio(said: &mut Said<bool>, site: &str, status: &Status) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::promises::{Delay, Mode};
    use plimsoll_core::telemetry::status::ResponseStatus;
    use plimsoll_core::telemetry::status::SiteStatus;
    use plimsoll_core::time::{Duration, Instant};

    fn class(name: &str, response: ResponseStatus) -> ClassStatus {
        ClassStatus {
            site: "shop".to_owned(),
            class: name.to_owned(),
            response: Some(response),
            ..ClassStatus::default()
        }
    }

    fn held(late: f64, missed: bool) -> ResponseStatus {
        ResponseStatus { quota: Some(2.5), response: 0.1, late, missed, ..ResponseStatus::default() }
    }

    /// A shop of 8 workers whose premium class has a delay.
    fn status(classes: Vec<ClassStatus>) -> Status {
        let row = DelayRow {
            site: "shop".to_owned(),
            class: "premium".to_owned(),
            delay: Delay { target: Duration::from_millis(200), percentile: Some(95.0) },
            rate: Some(100.0),
            service_seconds: Some(0.04),
            least_seconds: Some(0.1),
            fitting_rate: None,
        };
        Status {
            at: Instant::ZERO,
            mode: Mode::Control,
            period: Duration::from_secs(1),
            plants: vec![PlantStatus { name: "app".to_owned(), workers: 8, ..PlantStatus::default() }],
            sites: vec![SiteStatus { name: "shop".to_owned(), ..SiteStatus::default() }],
            plan: vec![PlantPlan { plant: "app".to_owned(), delays: vec![row], ..PlantPlan::default() }],
            classes,
            rejection_cost_seconds: None,
        }
    }

    /// Lines at each of so many looks.
    fn looks(responses: &mut Responses, status: &Status, looks: u32) -> Vec<String> {
        (0..looks).flat_map(|_| responses.look(status)).collect()
    }

    #[test]
    fn a_missed_promise_is_told_at_once_and_kept_again_when_it_stands() {
        let mut responses = Responses::default();
        let mut lines = |late, missed, many| {
            looks(&mut responses, &status(vec![class("premium", held(late, missed))]), many)
        };
        assert!(lines(0.04, false, 20).is_empty(), "a promise that is kept is not worth a line");
        assert_eq!(
            lines(0.124, true, 20),
            [
                "shop/premium: promise missed: 95 % within 200 ms; lately 12.4 % took longer, with 2.5 of 8 workers"
            ]
        );
        assert!(lines(0.06, false, STEADY - 1).is_empty(), "not yet");
        assert!(lines(0.07, true, 3).is_empty(), "it was not said that it is kept");
        assert_eq!(
            lines(0.05, false, 20),
            ["shop/premium: promise kept again: 95 % within 200 ms; lately 5.0 % took longer"]
        );
        assert_eq!(lines(0.08, true, 20).len(), 1, "and missed anew");
    }

    #[test]
    fn a_promise_that_is_taken_back_is_neither_missed_nor_kept() {
        let mut responses = Responses::default();
        assert_eq!(looks(&mut responses, &status(vec![class("premium", held(0.2, true))]), 3).len(), 1);
        let taken = Status { plan: Vec::new(), ..status(vec![class("premium", held(0.0, false))]) };
        assert!(looks(&mut responses, &taken, 10).is_empty());
        assert_eq!(looks(&mut responses, &status(vec![class("premium", held(0.2, true))]), 3).len(), 1);
    }

    #[test]
    fn a_ratio_is_told_once_for_its_site_when_it_stands() {
        let mut responses = Responses::default();
        let ratio = |response, infeasible| ResponseStatus {
            response,
            infeasible,
            weight: Some(1.0),
            ..ResponseStatus::default()
        };
        let mut lines = |infeasible, many| {
            let classes =
                vec![class("gold", ratio(0.05, infeasible)), class("plain", ratio(0.07, infeasible))];
            looks(&mut responses, &status(classes), many)
        };
        assert!(lines(false, 9).is_empty());
        assert!(lines(true, STEADY - 1).is_empty() && lines(false, 1).is_empty(), "it wavers");
        assert_eq!(
            lines(true, 9),
            ["shop: the ratio of response times cannot be had at this load: gold 50 ms, plain 70 ms"]
        );
        assert!(lines(false, 9)[0].contains("can be had again"));
    }

    #[test]
    fn workers_are_told_when_they_were_found_and_when_they_are_others() {
        let mut responses = Responses::default();
        let mut lines = |workers, found, many| {
            let mut status = status(Vec::new());
            (status.plants[0].workers, status.plants[0].workers_found) = (workers, found);
            looks(&mut responses, &status, many)
        };
        assert!(lines(16, Some(false), 9).is_empty(), "being looked for");
        assert_eq!(lines(8, Some(true), 9), ["app: works on 8 requests at once, as its throughput shows"]);
        assert!(lines(12, Some(true), STEADY - 1).is_empty() && lines(8, Some(true), 9).is_empty());
        assert!(lines(10, Some(true), 20).is_empty(), "two more are no news");
        assert_eq!(lines(4, Some(true), 9), ["app: works on 4 requests at once now, 8 before"]);
        assert!(lines(12, None, 9).is_empty(), "whoever told it knows");
    }

    #[test]
    fn learned_costs_that_break_a_planned_delay_are_a_warning_with_the_table_once() {
        let mut responses = Responses::default();
        let mut lines = |least, many| {
            let mut status = status(Vec::new());
            status.plan[0].delays[0].least_seconds = Some(least);
            looks(&mut responses, &status, many)
        };
        assert!(lines(0.19, 3).is_empty());
        let warning = lines(0.25, 3);
        assert_eq!(warning.len(), 1, "{warning:?}");
        for part in ["warning: with the costs", "shop premium", "250 ms", "app: these delays cannot be kept"]
        {
            assert!(warning[0].contains(part), "no {part:?} in\n{}", warning[0]);
        }
        assert!(lines(0.195, 3).is_empty(), "hardly below what was promised");
        assert_eq!(lines(0.1, 3), ["app: the delays that were promised can be kept again"]);
    }
}
