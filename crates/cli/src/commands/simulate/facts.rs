//! The facts of a simulation, from the plants' own busy time and the clients' own clocks.
//!
//! [`SimulationReport`] is the JSON; `page.rs` makes the same facts into tables and adds charts.

use super::Simulated;
use super::inputs::Contender;
use super::logs;
use super::notes::notes;
use super::promises::KeptPromises;
use crate::output::facts::{Facts, Value, figure, hidden, response_times, rounded};
use crate::output::found_types;
use crate::output::units::Unit;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::time::Instant;
use plimsoll_sim::workload::Arrivals;
use plimsoll_sim::{ClassRow, Heavy, LogNotes, PlantRow, Row, Run};
use serde::Serialize;

#[derive(Serialize)]
pub(crate) struct SimulationReport {
    /// Assumptions that no file states, one sentence each. Readers must know them first.
    pub(crate) assumptions: Vec<String>,
    pub(crate) arrivals: String,
    pub(crate) seed: u64,
    /// The rates of arrivals.
    pub(crate) offered: Facts,
    pub(crate) runs: Vec<RunFacts>,
    logs: Vec<Facts>,
    /// The types that the engine found for the configuration, as sections to paste.
    pub(crate) found_types: Option<String>,
    pub(crate) notes: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct RunFacts {
    pub(crate) name: String,
    kind: &'static str,
    complete: bool,
    seconds: f64,
    requests: u64,
    retries: u64,
    no_site: u64,
    pub(crate) upstreams: Vec<Facts>,
    pub(crate) total: Facts,
    /// Requests completed at each level, by the level's name, highest quality first.
    pub(crate) levels: Facts,
    pub(crate) classes: Vec<ClassFacts>,
    most_affected_paths: Vec<Facts>,
    /// The control periods; in a long run, several to a row.
    periods: Vec<Facts>,
    #[serde(skip)]
    pub(crate) promised: KeptPromises,
}

/// The facts of a class that had requests.
#[derive(Serialize)]
pub(crate) struct ClassFacts {
    /// `site` or `site/class`.
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) number: usize,
    #[serde(skip)]
    pub(crate) arrivals: u64,
    #[serde(flatten)]
    pub(crate) figures: Facts,
    promise: Option<Facts>,
}

impl SimulationReport {
    pub(crate) fn of(simulated: &Simulated) -> SimulationReport {
        let Simulated { inputs, seed, runs, .. } = simulated;
        let contenders = runs.iter().zip(&inputs.contenders);
        let streams = &inputs.contenders[0].workload.streams;
        let of_logs = runs[0].notes.iter().filter_map(|(number, notes)| {
            let stream = &streams[*number];
            let Arrivals::Log { options, .. } = &stream.arrivals else { return None };
            logs::assumption(&stream.name, notes, options)
        });
        SimulationReport {
            assumptions: inputs.assumptions.iter().cloned().chain(of_logs).collect(),
            arrivals: inputs.arrivals.clone(),
            seed: *seed,
            offered: offered(&runs[0]),
            runs: contenders.map(|(run, contender)| RunFacts::of(run, contender)).collect(),
            logs: runs[0].notes.iter().map(|(stream, notes)| log(&streams[*stream].name, notes)).collect(),
            found_types: found_types(&runs[0]),
            notes: notes(simulated),
        }
    }
}

/// The arrival rates: the mean, and those of the busiest minute and second.
fn offered(run: &Run) -> Facts {
    // If arrivals lasted for less than a second, the rate is taken over a second.
    let seconds = run.offered_until.as_secs_f64().max(1.0);
    let rate = |count: u64, seconds: f64| {
        let rate = count as f64 / seconds.max(f64::MIN_POSITIVE);
        Value::Number((rate * 10.0).round() / 10.0, Unit::Plain(1))
    };
    // If arrivals lasted for less than a minute, there is no busiest minute.
    let minute =
        (seconds >= 60.0).then(|| figure("busiest_minute", "busiest minute", rate(run.peaks.minute, 60.0)));
    let mean = figure("mean", "mean", rate(run.requests, seconds));
    let second = figure("busiest_second", "busiest second", rate(run.peaks.second, 1.0));
    Facts([mean].into_iter().chain(minute).chain([second]).collect())
}

fn found_types(run: &Run) -> Option<String> {
    let sites = run.status.iter().flat_map(|status| &status.sites);
    let all: Vec<String> = sites.filter_map(found_types::sections).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

impl RunFacts {
    fn of(run: &Run, contender: &Contender) -> RunFacts {
        let promises = &contender.promises;
        let promised = KeptPromises::of(run, promises);
        let observes = contender.observes();
        let names = classes(promises);
        let mut total = ClassRow::default();
        let (mut full, mut classes) = (0, Vec::new());
        for (number, (row, (name, top_level))) in run.classes.iter().zip(&names).enumerate() {
            total.merge(row, [1.0, 1.0]);
            full += row.completed[*top_level];
            if row.arrivals > 0 {
                classes.push(ClassFacts {
                    name: name.clone(),
                    number,
                    arrivals: row.arrivals,
                    figures: share(row, row.completed[*top_level], observes),
                    promise: promised.of_class(number, row),
                });
            }
        }
        RunFacts {
            name: contender.name.clone(),
            kind: if contender.comparator.is_some() { "comparator" } else { "configuration" },
            complete: run.complete,
            seconds: seconds(run.ended),
            requests: run.requests,
            retries: run.retries,
            no_site: run.unmatched,
            upstreams: (0..promises.plants.len()).map(|number| plant(run, promises, number)).collect(),
            levels: served(run, promises, total.arrivals),
            total: share(&total, full, observes),
            classes,
            most_affected_paths: run.top.iter().take(100).map(path).collect(),
            periods: run.rows.iter().map(|row| period(row, &names)).collect(),
            promised,
        }
    }
}

/// The name and the highest level of each class, in the order of their numbers.
pub(crate) fn classes(promises: &Promises) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for site in &promises.sites {
        let own = site.classes.iter().map(|class| class.name.as_str());
        for name in own.chain(["default", "exempt"]) {
            let alone = site.classes.is_empty() && name == "default";
            let name = if alone { site.name.clone() } else { format!("{}/{name}", site.name) };
            all.push((name, site.levels.len()));
        }
    }
    all
}

/// The fate of the requests of a row; `full` of them were served at the highest level. In observe mode the figures also say
/// what would have become of them.
fn share(row: &ClassRow, full: u64, observes: bool) -> Facts {
    let failed = row.ended(Outcome::Failed);
    let abandoned = row.ended(Outcome::Abandoned) + row.reasons[Reason::ClientLeft as usize];
    let under_way = row.arrivals - row.served() - row.rejected - failed - abandoned;
    let part = |count| Value::Part(count, row.arrivals);
    let rejections = Reason::ALL.into_iter().filter(|reason| reason.is_rejection());
    let turned_away: u64 = rejections.clone().map(|reason| row.reasons[reason as usize]).sum();
    let reasons = rejections
        .map(|reason| figure(reason.as_str(), reason.as_str(), part(row.reasons[reason as usize])).rare());
    let reasons = |key: &'static str| figure(key, "  ", Facts(reasons.collect()));
    let rejected = figure("rejected", "turned away", part(row.rejected)).trouble();
    let rejections = match observes {
        false => vec![rejected, reasons("rejected_by_reason")],
        true => vec![
            rejected,
            figure("would_degrade", "would be degraded", part(row.reasons[Reason::Degraded as usize])),
            figure("would_reject", "would be turned away", part(turned_away)).trouble(),
            reasons("would_reject_by_reason"),
        ],
    };
    let mut facts = Facts(vec![
        figure("arrivals", "requests", row.arrivals),
        figure("full", "full quality", part(full)),
        figure("degraded", "degraded", part(row.served() - full)),
        figure("failed", "failed", part(failed)).trouble(),
        figure("abandoned", "client left", part(abandoned)).rare(),
        figure("under_way", "under way at the end", part(under_way)).rare(),
        figure("bytes", "delivered", Value::Count(row.bytes).said(Unit::Bytes.show(row.bytes as f64))),
        response_times("response_ms", "response", &row.response),
    ]);
    facts.0.splice(3..3, rejections);
    facts
}

fn plant(run: &Run, promises: &Promises, number: usize) -> Facts {
    let plant = &promises.plants[number];
    let seconds: f64 = run.rows.iter().map(|row| row.length.as_secs_f64()).sum();
    let mean = |value: fn(&PlantRow) -> f64| {
        let weighted = |row: &Row| value(&row.plants[number]) * row.length.as_secs_f64();
        run.rows.iter().map(weighted).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
    };
    let mut rows: Vec<f64> = run.rows.iter().map(|row| row.plants[number].utilization).collect();
    rows.sort_by(f64::total_cmp);
    let at = |place: usize| rows.get(place).copied().unwrap_or(0.0);
    let ratio = |value| rounded(value, Unit::Plain(3));
    Facts(vec![
        hidden("name", plant.name.as_str()),
        figure("utilization", format!("utilization of {}", plant.name), ratio(mean(|row| row.utilization))),
        figure("load_line", "  its load line", ratio(plant.set_point)),
        figure("utilization_p95", "  95 % of the time below", ratio(at(rows.len() * 95 / 100))),
        hidden("utilization_highest", ratio(at(rows.len().saturating_sub(1)))),
        figure("link_utilization", "  its link", ratio(mean(|row| row.link))).rare(),
        hidden("lost", run.rows.iter().map(|row| row.plants[number].lost).sum::<u64>()),
    ])
}

fn served(run: &Run, promises: &Promises, arrivals: u64) -> Facts {
    let levels = levels_by_name(promises).into_iter().map(|level| {
        let served = level.completed(&run.classes);
        let label = format!("served {}", level.name);
        figure(level.name, label, Value::Part(served, arrivals))
    });
    Facts(levels.collect())
}

fn path(heavy: &Heavy) -> Facts {
    Facts(vec![
        hidden("path", heavy.path.as_str()),
        hidden("degraded", heavy.degraded),
        hidden("rejected", heavy.rejected),
        hidden("at_most_too_many", heavy.error),
    ])
}

fn log(name: &str, notes: &LogNotes) -> Facts {
    let first = notes.first_skipped.as_ref().map(|(line, text, wrong)| {
        let wrong = wrong.to_string();
        Facts(vec![hidden("line", *line), hidden("text", text.as_str()), hidden("wrong", wrong)])
    });
    Facts(vec![
        hidden("name", name),
        hidden("lines", notes.lines),
        hidden("skipped", notes.skipped),
        hidden("first_skipped", first),
        hidden("no_load", notes.no_load.values().sum::<u64>()),
        hidden("sorted", notes.sorted),
        hidden("moved", notes.moved),
        hidden("backwards", notes.backwards),
        hidden("format", notes.format.map(|format| format.to_string())),
        hidden("requests", notes.requests),
        hidden("times", notes.times.as_ref().map(ToString::to_string)),
        hidden("odd_times", notes.odd_times),
        hidden("left_out", notes.left_out.map(|left| left.requests)),
        hidden("times_are_bounds", notes.times.as_ref().map(|times| !times.own)),
        hidden("timed", notes.timed.0),
        hidden("timed_zero", notes.timed.1),
        hidden("strays", notes.strays),
        hidden("clock_restarts", notes.restarts),
        hidden("gaps_cut", notes.gaps.0),
        hidden("gaps_cut_seconds", notes.gaps.1),
    ])
}

/// Seconds of virtual time as they are printed: whole ones are whole.
pub(super) fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_secs_f64()
}

fn period(row: &Row, names: &[(String, usize)]) -> Facts {
    let four = |value| rounded(value, Unit::Plain(4));
    let plants = row.plants.iter().map(|plant| {
        Facts(vec![
            hidden("utilization", four(plant.utilization)),
            hidden("offered", four(plant.offered)),
            hidden("workers", plant.workers),
        ])
    });
    let is_there = |class: &ClassRow| class.arrivals + class.served() + class.rejected > 0;
    let classes = row.classes.iter().zip(names).filter(|(class, _)| is_there(class));
    let classes = classes.map(|(class, (name, _))| {
        let levels = class.completed.iter().enumerate().filter(|(_, count)| **count > 0);
        let levels = levels.map(|(level, count)| figure(level.to_string(), "", *count));
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        Facts(vec![
            hidden("name", name.as_str()),
            hidden("service_level", four(class.service_level)),
            hidden("arrivals", class.arrivals),
            hidden("completed_by_level", Facts(levels.collect())),
            hidden("rejected", class.rejected),
            hidden("quota", class.held.and_then(|held| held.quota).map(four)),
            hidden("response_ms_mean", ms(class.response.mean())),
            hidden("response_ms_p99", ms(class.response.quantile(0.99))),
        ])
    });
    Facts(vec![
        hidden("from", seconds(row.from)),
        hidden("seconds", row.length.as_secs_f64()),
        hidden("upstreams", plants.collect::<Vec<_>>()),
        hidden("classes", classes.collect::<Vec<_>>()),
    ])
}

/// A service level by its name, and where its requests are counted. Level numbers cannot be compared across sites: the highest
/// level of one site may have the number of another's lowest.
pub(crate) struct NamedLevel {
    pub(crate) name: String,
    /// The class's number and the level's number in the class.
    counted: Vec<(usize, usize)>,
}

impl NamedLevel {
    pub(crate) fn completed(&self, classes: &[ClassRow]) -> u64 {
        let count = |(class, level): &(usize, usize)| classes.get(*class).map(|row| row.completed[*level]);
        self.counted.iter().filter_map(count).sum()
    }
}

/// The levels of all sites, each site's highest first.
pub(crate) fn levels_by_name(promises: &Promises) -> Vec<NamedLevel> {
    let mut all: Vec<NamedLevel> = Vec::new();
    let mut class = 0;
    for site in &promises.sites {
        // `default` and `exempt` come after a site's own classes.
        let own = class..class + site.classes.len() + 2;
        class = own.end;
        for (number, level) in site.levels.iter().enumerate().rev() {
            let counted = own.clone().map(|class| (class, number + 1));
            match all.iter_mut().find(|known| known.name == level.name) {
                Some(known) => known.counted.extend(counted),
                None => all.push(NamedLevel { name: level.name.clone(), counted: counted.collect() }),
            }
        }
    }
    all
}
