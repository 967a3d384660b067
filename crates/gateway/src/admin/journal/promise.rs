//! One row for each promise, and whether it is kept: a pure function of a status and of the last ten seconds.
//!
//! The promises are the load line of each upstream, contracts of sites, and delays, ratios and deadlines of classes. A promise
//! that cannot be judged, because no request came, is idle.

use super::recent::Recent;
use super::sentence::{fate, percent, time};
use plimsoll_core::promises::plan::{ContractRow, DelayRow, Feasibility};
use plimsoll_core::promises::{Delay, Mode};
use plimsoll_core::telemetry::status::{
    ClassStatus, DeadlineStatus, PlantStatus, ResponseStatus, SiteStatus, Status,
};
use serde::{Deserialize, Serialize};

/// If the mean utilization over ten seconds has gone this part of the way from the load line to 1, the plant is at risk. A step
/// of the load, which fills one or two periods, does not bring it so far.
const RISKY: f64 = 0.5;
/// Beyond this part of the way the load line is missed.
const SATURATED: f64 = 0.8;
/// A utilization that exceeds its line by less than this shows the same two digits.
const VISIBLE: f64 = 0.005;
/// Up to this part of its load line a plant has hardly any queue.
const LOADED: f64 = 0.95;
/// A ratio is kept if it is reached within this part of itself.
const RATIO_KEPT: f64 = 0.05;
/// A contract is broken if more than this part of the requests within it is turned away. If the contracts do not fit the
/// server, it is also broken if more than this part is not served in full.
const NOT_IN_FULL: f64 = 0.01;
/// If less than this part of the allowed losses is left, failed and rejected requests put a promise at risk.
const LITTLE: f64 = 0.1;
/// A delay is controlled at its target, so that it is a little more or less at any time. It is at risk beyond this part of the
/// way to a miss; below this part, chance may be the cause.
const CHANCE: f64 = 0.5;
/// A load line that is lowered by less than this is not mentioned.
const LEAST_REDUCTION: f64 = 0.01;
/// The lowest margin that is shown; the response time of now stands beside it.
const LEAST_MARGIN: f64 = -1.0;

/// How a promise is kept, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum PromiseState {
    /// The promise is kept.
    #[default]
    Kept,
    /// Nothing to judge it by: no requests, or not yet learned, or the controller is off.
    Idle,
    /// Kept, with little to spare; or the plan says that it could not be under full use.
    AtRisk,
    /// The promise is not kept.
    Missed,
}

/// What kind of promise it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum PromiseKind {
    /// An upstream's utilization is held at its load line.
    LoadLine,
    /// A site's requests within its contract are served, at full quality unless they would miss their deadline.
    Contract,
    /// A class's response times.
    Delay,
    /// A class's response times in proportion to others'.
    Ratio,
    /// A class's admitted requests are in time.
    Deadline,
}

/// A promise, and how it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PromiseRow {
    /// The kind of the promise.
    pub kind: PromiseKind,
    /// The site, or those that share the upstream.
    pub site: String,
    /// The class; `all` of the site.
    pub class: String,
    /// The upstream or folder.
    pub upstream: String,
    /// What was promised.
    pub guarantee: String,
    /// The promised figure as it is now.
    pub now: String,
    /// What is left, as a part of what was promised; below zero, to -1, if it is exceeded. `None` where there is no such
    /// figure.
    pub margin: Option<f64>,
    /// How it is kept.
    pub state: PromiseState,
    /// Since when it has this state (s, Unix time).
    pub since_unix_seconds: f64,
    /// What the loop does now.
    pub sentence: String,
}

/// The promises of a status. `utilization` gives a plant's mean over the last ten seconds.
pub(super) fn promises(
    status: &Status,
    recent: &[Recent],
    utilization: impl Fn(usize) -> Option<f64>,
) -> Vec<PromiseRow> {
    let mut rows = Vec::new();
    let plants = status.plants.iter().enumerate().filter(|(_, plant)| !plant.is_gone());
    rows.extend(plants.filter_map(|(number, plant)| {
        load_line(status, recent, (number, plant), utilization(number).unwrap_or(plant.utilization))
    }));
    rows.extend(status.sites.iter().filter_map(|site| contract(status, recent, site)));
    for (class, recent) in status.classes.iter().zip(recent).filter(|(class, _)| !class.is_gone()) {
        let judged = JudgedClass { status, class, recent };
        rows.extend(class.response.as_ref().and_then(|held| judged.delay(held)));
        rows.extend(class.response.as_ref().and_then(|held| judged.ratio(held)));
        rows.extend(class.deadline.as_ref().map(|deadline| judged.deadline(deadline)));
    }
    rows
}

/// The promise of a plant's load line, which all classes there share.
fn load_line(
    status: &Status,
    recent: &[Recent],
    (number, plant): (usize, &PlantStatus),
    utilization: f64,
) -> Option<PromiseRow> {
    let present = status.classes.iter().zip(recent).filter(|(class, _)| !class.is_gone());
    let served: Vec<(&ClassStatus, Recent)> = present
        .filter_map(|(class, recent)| Some((class, served_there(class, recent, number, &plant.name)?)))
        .collect();
    let own: Vec<_> = served.iter().map(|(class, recent)| (*class, recent)).collect();
    let mut sites: Vec<&str> = own.iter().map(|(class, _)| class.site.as_str()).collect();
    sites.dedup();
    let first = (*sites.first()?).to_owned();
    let arrivals: u64 =
        own.iter().map(|(_, recent)| recent.served.iter().sum::<u64>() + recent.rejected()).sum();
    let line = plant.set_point;
    let is_learned = plant.workers_found != Some(false);
    let way = if line < 1.0 { (utilization - line) / (1.0 - line) } else { 0.0 };
    let state = if status.mode == Mode::Off || !is_learned || arrivals == 0 {
        PromiseState::Idle
    } else if way > SATURATED {
        PromiseState::Missed
    } else if plant.response_time_override || way > RISKY {
        PromiseState::AtRisk
    } else {
        PromiseState::Kept
    };
    let fate = fate(&own, status.mode) + &lowered_for_places(plant);
    let sentence = match state {
        _ if status.mode == Mode::Off => format!("control is off: {fate}"),
        _ if !is_learned => {
            format!("finding how many requests {} works on at once; until then {fate}", plant.name)
        }
        PromiseState::Idle => "no requests in the last ten seconds".to_owned(),
        PromiseState::Missed => format!("{utilization:.2} is over the line of {line:.2}: {fate}"),
        _ if plant.response_time_override => {
            format!("{} answers slower than its limit and counts as full: {fate}", plant.name)
        }
        PromiseState::AtRisk => format!("above {line:.2}: {fate}"),
        // A utilization that is controlled at the line exceeds it a little now and then.
        PromiseState::Kept if utilization > line + VISIBLE => {
            format!("holding {line:.2}, at risk above {:.2}: {fate}", line + RISKY * (1.0 - line))
        }
        PromiseState::Kept if own.iter().any(|(class, recent)| recent.is_hit(class.levels.len())) => {
            format!("holding {line:.2}: {fate}")
        }
        PromiseState::Kept => format!("below {line:.2}: {fate}"),
    };
    Some(PromiseRow {
        kind: PromiseKind::LoadLine,
        site: if sites.len() > 1 { format!("{} sites", sites.len()) } else { first },
        class: "all".to_owned(),
        upstream: plant.name.clone(),
        guarantee: format!("utilization at most {line:.2}"),
        now: format!("{utilization:.2}"),
        margin: (state != PromiseState::Idle).then(|| (line - utilization) / line),
        state,
        since_unix_seconds: 0.0,
        sentence,
    })
}

/// The addition to the sentence if a server's levels hold less than its line, because the gateway before it has its places
/// taken.
fn lowered_for_places(plant: &PlantStatus) -> String {
    let heard = plant.places.and_then(|places| places.heard);
    let lowered = heard.filter(|heard| heard.set_point_reduction >= LEAST_REDUCTION).map(|heard| {
        let held = plant.set_point * (1.0 - heard.set_point_reduction);
        format!("; its levels hold {held:.2}, since the gateway before it has its places taken")
    });
    lowered.unwrap_or_default()
}

/// The requests of a class that a plant serves: all of them if it is the class's own plant, otherwise those at the levels that
/// it serves.
fn served_there(class: &ClassStatus, recent: &Recent, number: usize, name: &str) -> Option<Recent> {
    if class.plant == number {
        return Some(recent.clone());
    }
    let part = class.parts.iter().find(|part| part.plant == name)?;
    let is_there = |level: usize| (part.base + 1..=part.top).contains(&level);
    let served = recent.served.iter().enumerate();
    let served = served.map(|(level, count)| if is_there(level) { *count } else { 0 }).collect();
    Some(Recent { served, reasons: Default::default(), ..recent.clone() })
}

/// A site's contract: within it the site's requests have full quality whatever the load is, except where they would miss their
/// deadline.
pub(super) fn contract(status: &Status, recent: &[Recent], site: &SiteStatus) -> Option<PromiseRow> {
    let plan = status.plan.iter().find(|plan| plan.rows.iter().any(|row| row.site == site.name))?;
    let row = plan.rows.iter().find(|row| row.site == site.name)?;
    let is_own = |class: &ClassStatus| class.site == site.name && !class.is_gone();
    let own: Vec<_> = status.classes.iter().zip(recent).filter(|(class, _)| is_own(class)).collect();
    let rate: f64 = own.iter().map(|(class, _)| class.request_rate).sum();
    let came: u64 = own.iter().map(|(_, recent)| recent.arrivals).sum();
    let full: u64 = own.iter().filter_map(|(_, recent)| recent.served.last()).sum();
    let is_broken = rate <= row.guarantee.rate && (full as f64) < (1.0 - NOT_IN_FULL) * came as f64;
    let loses = status.mode == Mode::Control && rate <= row.guarantee.rate && loses_inside(&own, row);
    let state = match plan.verdict {
        Feasibility::Exceeds if is_broken => PromiseState::Missed,
        Feasibility::Exceeds => PromiseState::AtRisk,
        _ if rate == 0.0 => PromiseState::Idle,
        // Nobody has counted which of the requests exceeded the bandwidth.
        _ if loses && row.guarantee.bandwidth_bytes_per_second.is_some() => PromiseState::AtRisk,
        _ if loses => PromiseState::Missed,
        Feasibility::Fits | Feasibility::Unverified => PromiseState::Kept,
    };
    let fate = fate(&own, status.mode);
    let inside = percent(site.guaranteed_share);
    let sentence = match (state, plan.verdict) {
        (PromiseState::Idle, _) => "no requests in the last ten seconds".to_owned(),
        (_, Feasibility::Exceeds) => format!(
            "with the costs as they are now more is guaranteed than {} can keep ({:.2} of {:.2}); {fate}",
            plan.plant, plan.sum, plan.ceiling
        ),
        (PromiseState::Missed, _) => format!("requests inside the contract are turned away: {fate}"),
        (PromiseState::AtRisk, _) => {
            format!(
                "requests are turned away that are inside the contract unless their bytes exceed it: {fate}"
            )
        }
        (_, Feasibility::Unverified) => {
            format!("{inside} inside the contract; costs are not known yet: {fate}")
        }
        _ => format!("{inside} inside the contract: {fate}"),
    };
    Some(PromiseRow {
        kind: PromiseKind::Contract,
        site: site.name.clone(),
        class: "all".to_owned(),
        upstream: plan.plant.clone(),
        guarantee: format!("full quality up to {:.0} requests/s", row.guarantee.rate),
        now: format!("{rate:.0} requests/s"),
        margin: (plan.ceiling > 0.0).then(|| (plan.ceiling - plan.sum) / plan.ceiling),
        state,
        since_unix_seconds: 0.0,
        sentence,
    })
}

/// How far a delay may be exceeded before it is at risk, as a part of the allowed value.
fn tolerance(delay: Delay) -> f64 {
    let miss = if delay.percentile.is_some() { Delay::MISSED_SHARE } else { Delay::MISSED_MEAN };
    CHANCE * (miss - 1.0)
}

/// Where a delay is at risk, in words: `above 105 ms`.
fn at_risk_beyond(delay: Delay) -> String {
    let times = 1.0 + tolerance(delay);
    match delay.percentile {
        Some(part) => format!("below {}", percent(1.0 - (1.0 - part / 100.0) * times)),
        None => format!("above {}", time(delay.target.as_secs_f64() * times)),
    }
}

/// Whether more than a small part of a site's requests was turned away, although no more requests came than its contract
/// covers.
fn loses_inside(own: &[(&ClassStatus, &Recent)], row: &ContractRow) -> bool {
    let seconds = own.iter().map(|(_, recent)| recent.seconds).fold(0.0, f64::max);
    let came: u64 = own.iter().map(|(_, recent)| recent.arrivals).sum();
    let lost: u64 = own.iter().map(|(_, recent)| recent.rejected()).sum();
    came as f64 <= row.guarantee.rate * seconds && lost as f64 > NOT_IN_FULL * came as f64
}

/// A class with its last seconds.
struct JudgedClass<'a> {
    status: &'a Status,
    class: &'a ClassStatus,
    recent: &'a Recent,
}

impl JudgedClass<'_> {
    fn row(&self, kind: PromiseKind, state: PromiseState) -> PromiseRow {
        let plant = self.status.plants.get(self.class.plant);
        PromiseRow {
            kind,
            site: self.class.site.clone(),
            class: self.class.class.clone(),
            upstream: plant.map_or(String::new(), |plant| plant.name.clone()),
            guarantee: String::new(),
            now: String::new(),
            margin: None,
            state,
            since_unix_seconds: 0.0,
            sentence: String::new(),
        }
    }

    fn fate(&self) -> String {
        fate(&[(self.class, self.recent)], self.status.mode)
    }

    fn delay(&self, held: &ResponseStatus) -> Option<PromiseRow> {
        let mut rows = self.status.plan.iter().flat_map(|plan| &plan.delays);
        let row: &DelayRow = rows.find(|row| row.site == self.class.site && row.class == self.class.class)?;
        let target = row.delay.target.as_secs_f64();
        let (guarantee, mut now, kept_by) = match row.delay.percentile {
            Some(percentile) => {
                let allowed = 1.0 - percentile / 100.0;
                let guarantee = format!("{percentile} % within {}", time(target));
                (
                    guarantee,
                    format!("{} within it", percent(1.0 - held.late)),
                    (allowed - held.late) / allowed,
                )
            }
            None => {
                let guarantee = format!("{} on average", time(target));
                (guarantee, time(held.response), (target - held.response) / target)
            }
        };
        // Failed and rejected requests break a delay, too.
        let allowed =
            row.delay.percentile.map_or(Delay::MOST_LOST, |part| (1.0 - part / 100.0).max(Delay::MOST_LOST));
        let spare = (allowed - held.lost) / allowed;
        let margin = kept_by.min(spare).max(LEAST_MARGIN);
        if held.lost > 0.0 {
            now += &format!(", {} failed or turned away", percent(held.lost));
        }
        let workers = self.status.plants.get(self.class.plant).map_or(0, |plant| plant.workers);
        // The quota is shown with one digit; a quota that is shown as all workers counts as all.
        let has_all = held.at_limit || held.quota.is_some_and(|quota| quota > f64::from(workers) - 0.05);
        let state = match held {
            _ if held.missed => PromiseState::Missed,
            _ if held.response == 0.0 || self.status.mode == Mode::Off => PromiseState::Idle,
            _ if spare < LITTLE || kept_by < if has_all { 0.0 } else { -tolerance(row.delay) } => {
                PromiseState::AtRisk
            }
            _ => PromiseState::Kept,
        };
        let quota = held.quota.map_or("first in turn".to_owned(), |quota| {
            format!("{quota:.1} of {workers} workers are its own")
        });
        let fate = self.fate();
        let sentence = match state {
            PromiseState::Idle => "no requests yet to judge it by".to_owned(),
            PromiseState::Missed if kept_by > 0.0 => {
                format!("missed by requests that failed or were turned away: {fate}")
            }
            PromiseState::Missed if has_all => {
                format!("missed although {quota}, which is all it can have: {fate}")
            }
            PromiseState::Missed => format!("missed, and more is given to it: {quota}; {fate}"),
            PromiseState::AtRisk => format!("just kept: {quota}; {fate}"),
            PromiseState::Kept if kept_by < 0.0 => {
                format!("held, at risk {}: {quota}; {fate}", at_risk_beyond(row.delay))
            }
            PromiseState::Kept => format!("kept: {quota}; {fate}"),
        };
        let margin = (state != PromiseState::Idle).then_some(margin);
        Some(PromiseRow { guarantee, now, margin, sentence, ..self.row(PromiseKind::Delay, state) })
    }

    fn ratio(&self, held: &ResponseStatus) -> Option<PromiseRow> {
        let ratio = held.ratio?;
        // If hardly any request waits, there are no waiting times to compare.
        let plant = self.status.plants.get(self.class.plant);
        let is_loaded = plant.is_some_and(|plant| plant.utilization_offered > LOADED * plant.set_point);
        let state = match held.ratio_reached {
            _ if held.infeasible && is_loaded => PromiseState::Missed,
            None => PromiseState::Idle,
            Some(_) if held.infeasible || self.recent.arrivals == 0 => PromiseState::Idle,
            Some(reached) if (reached / ratio - 1.0).abs() > RATIO_KEPT => PromiseState::AtRisk,
            Some(_) => PromiseState::Kept,
        };
        let now = held
            .ratio_reached
            .map_or("-".to_owned(), |reached| format!("{reached:.2} ({})", time(held.response)));
        let fate = self.fate();
        let sentence = match state {
            PromiseState::Missed => format!("the ratio cannot be had at this load: {fate}"),
            _ if held.infeasible => format!("hardly anybody waits, so there are no times to divide: {fate}"),
            PromiseState::Idle if held.ratio_reached.is_some() => {
                "no requests in the last ten seconds".to_owned()
            }
            PromiseState::Idle => "no requests yet to judge it by".to_owned(),
            PromiseState::AtRisk => format!("turns in the queue bring it nearer: {fate}"),
            _ => format!("held by turns in the queue: {fate}"),
        };
        let guarantee = format!("response time in ratio {ratio}");
        Some(PromiseRow { guarantee, now, sentence, ..self.row(PromiseKind::Ratio, state) })
    }

    fn deadline(&self, promised: &DeadlineStatus) -> PromiseRow {
        // A failed request was not answered in time.
        let answered = self.recent.responses.count();
        let late = (self.recent.late + self.recent.failed).min(answered);
        let allowed = promised.may_be_late(answered).max(1.0);
        let is_missed = promised.is_missed(late, answered);
        let late = late as f64;
        let state = match answered {
            0 => PromiseState::Idle,
            _ if is_missed => PromiseState::Missed,
            _ if late > allowed => PromiseState::AtRisk,
            _ => PromiseState::Kept,
        };
        let in_time = 1.0 - late / answered.max(1) as f64;
        let (fate, wait) = (self.fate(), time(promised.wait.as_secs_f64()));
        let sentence = match state {
            PromiseState::Idle => "no requests in the last ten seconds".to_owned(),
            _ => format!("a request that comes now waits {wait}: {fate}"),
        };
        PromiseRow {
            guarantee: format!(
                "{} within {}",
                percent(promised.in_time / 100.0),
                time(promised.deadline.as_secs_f64())
            ),
            now: if answered == 0 { "-".to_owned() } else { format!("{} within it", percent(in_time)) },
            margin: (answered > 0).then(|| ((allowed - late) / allowed).max(LEAST_MARGIN)),
            sentence,
            ..self.row(PromiseKind::Deadline, state)
        }
    }
}

/// The row of the first class's ratio.
#[cfg(test)]
pub(super) fn ratio_row(status: &Status, recent: &Recent, held: &ResponseStatus) -> Option<PromiseRow> {
    JudgedClass { status, class: &status.classes[0], recent }.ratio(held)
}

/// The row of the first class's deadline.
#[cfg(test)]
pub(super) fn deadline_row(status: &Status, recent: &Recent, promised: &DeadlineStatus) -> PromiseRow {
    JudgedClass { status, class: &status.classes[0], recent }.deadline(promised)
}
