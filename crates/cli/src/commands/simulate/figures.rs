//! What a run is worth: its figures by plant and by class, by the plants' own busy time and the clients' own clocks.

use super::inputs::Contender;
use super::promises::Promised;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::Histogram;
use plimsoll_sim::{ClassRow, Row, Run};

/// The figures of one contender.
pub(crate) struct Figures {
    pub(crate) plants: Vec<PlantFigures>,
    /// Of all classes together.
    pub(crate) total: Share,
    /// Classes that somebody belonged to.
    pub(crate) classes: Vec<ClassFigures>,
    /// The names of the levels below the highest, and of it, over all sites, with the requests completed there;
    /// highest quality first.
    pub(crate) levels: Vec<(String, u64)>,
    /// What became of promised response times.
    pub(crate) promised: Promised,
}

pub(crate) struct PlantFigures {
    pub(crate) name: String,
    pub(crate) set_point: f64,
    /// Over the whole run.
    pub(crate) utilization: f64,
    /// The highest and the 95th percentile of a row.
    pub(crate) highest: f64,
    pub(crate) p95: f64,
    pub(crate) link: f64,
    /// Lost at its listen queue.
    pub(crate) lost: u64,
}

pub(crate) struct ClassFigures {
    /// `site` or `site/class`.
    pub(crate) name: String,
    /// Its number.
    pub(crate) class: usize,
    pub(crate) share: Share,
}

/// What became of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    pub(crate) arrivals: u64,
    pub(crate) full: u64,
    pub(crate) degraded: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// Their client left before the answer.
    pub(crate) abandoned: u64,
    /// Neither of these yet when the run ended.
    pub(crate) under_way: u64,
    pub(crate) bytes: u64,
    pub(crate) response: Histogram,
    /// By reason, rejections only.
    pub(crate) reasons: Vec<(Reason, u64)>,
}

impl Share {
    fn of(row: &ClassRow, top_level: usize) -> Share {
        let full = row.completed[top_level];
        let left = row.reasons[Reason::ClientLeft as usize];
        let (failed, abandoned) = (row.ended(Outcome::Failed), row.ended(Outcome::Abandoned) + left);
        let reasons = Reason::ALL.into_iter().filter(|reason| reason.is_rejection());
        Share {
            arrivals: row.arrivals,
            full,
            degraded: row.served() - full,
            rejected: row.rejected,
            failed,
            abandoned,
            under_way: row.arrivals - row.served() - row.rejected - failed - abandoned,
            bytes: row.bytes,
            response: row.response.clone(),
            reasons: reasons.map(|reason| (reason, row.reasons[reason as usize])).collect(),
        }
    }

    fn add(&mut self, other: &Share) {
        self.arrivals += other.arrivals;
        self.full += other.full;
        self.degraded += other.degraded;
        self.rejected += other.rejected;
        self.failed += other.failed;
        self.abandoned += other.abandoned;
        self.under_way += other.under_way;
        self.bytes += other.bytes;
        self.response.merge(&other.response);
        self.reasons.resize(other.reasons.len(), (Reason::Overload, 0));
        for (mine, theirs) in self.reasons.iter_mut().zip(&other.reasons) {
            *mine = (theirs.0, mine.1 + theirs.1);
        }
    }

    /// So many of the arrivals, in percent; of nothing, nothing.
    pub(crate) fn percent(&self, count: u64) -> f64 {
        count as f64 / self.arrivals.max(1) as f64 * 100.0
    }
}

/// A class's number, name and highest level.
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

impl Figures {
    pub(crate) fn of(run: &Run, contender: &Contender) -> Figures {
        let promises = &contender.promises;
        let mut figures = Figures {
            plants: plants(run, promises),
            total: Share::default(),
            classes: Vec::new(),
            levels: levels(run, promises),
            promised: Promised::of(run, promises),
        };
        for (class, (name, top_level)) in classes(promises).into_iter().enumerate() {
            let Some(row) = run.classes.get(class) else { continue };
            let share = Share::of(row, top_level);
            figures.total.add(&share);
            if share.arrivals > 0 {
                figures.classes.push(ClassFigures { name, class, share });
            }
        }
        figures
    }
}

fn plants(run: &Run, promises: &Promises) -> Vec<PlantFigures> {
    let seconds: f64 = run.rows.iter().map(|row| row.length.as_secs_f64()).sum();
    let promised = promises.plants.iter().enumerate();
    let figures = promised.map(|(number, plant)| {
        let mean = |of: fn(&plimsoll_sim::PlantRow) -> f64| {
            let weighted = |row: &Row| of(&row.plants[number]) * row.length.as_secs_f64();
            run.rows.iter().map(weighted).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
        };
        let mut rows: Vec<f64> = run.rows.iter().map(|row| row.plants[number].utilization).collect();
        rows.sort_by(f64::total_cmp);
        PlantFigures {
            name: plant.name.clone(),
            set_point: plant.set_point,
            utilization: mean(|row| row.utilization),
            highest: rows.last().copied().unwrap_or(0.0),
            p95: rows.get(rows.len() * 95 / 100).copied().unwrap_or(0.0),
            link: mean(|row| row.link),
            lost: run.rows.iter().map(|row| row.plants[number].lost).sum(),
        }
    });
    figures.collect()
}

/// Requests completed by level.
fn levels(run: &Run, promises: &Promises) -> Vec<(String, u64)> {
    let served =
        |level: Level| (level.name.clone(), level.places.iter().map(|at| at.completed(&run.classes)).sum());
    by_name(promises).into_iter().map(served).collect()
}

/// A level's name, and where it is counted.
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) places: Vec<Place>,
}

/// A class and a level's number in it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    class: usize,
    level: usize,
}

impl Place {
    pub(crate) fn completed(self, classes: &[ClassRow]) -> u64 {
        classes.get(self.class).map_or(0, |row| row.completed[self.level])
    }
}

/// Levels by name, each site's highest first. By name, not by number: what is the highest level of one site may have the
/// number of another's lowest.
pub(crate) fn by_name(promises: &Promises) -> Vec<Level> {
    let mut all: Vec<Level> = Vec::new();
    let mut class = 0;
    for site in &promises.sites {
        let own = class..class + site.classes.len() + 2;
        class = own.end;
        for (number, level) in site.levels.iter().enumerate().rev() {
            let places = own.clone().map(|class| Place { class, level: number + 1 });
            match all.iter_mut().find(|known| known.name == level.name) {
                Some(known) => known.places.extend(places),
                None => all.push(Level { name: level.name.clone(), places: places.collect() }),
            }
        }
    }
    all
}
