//! Records a run as rows of time, in bounded memory.
//!
//! A row covers one control period at first. When there are [`MOST_ROWS`] rows, each two become one and rows cover twice the
//! time, so that a run of months needs no more memory than one of minutes; sums stay exact.

use crate::plant::Busy;
use plimsoll_core::promises::MAX_LEVELS;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::Histogram;
use plimsoll_core::telemetry::status::{PlantStatus, ResponseStatus, Status};
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// The most rows of a record.
pub const MOST_ROWS: usize = 2400;

/// A row of the record: one stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The beginning of the row.
    pub from: Instant,
    /// The length of the row.
    pub length: Duration,
    /// Plants, in the order of the promises.
    pub plants: Vec<PlantRow>,
    /// Classes, numbered as in [`Target::class`](plimsoll_core::request::Target::class).
    pub classes: Vec<ClassRow>,
}

/// A plant in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlantRow {
    /// The plant's true utilization, from its own busy time: that of its workers or of its link, whichever is higher.
    pub utilization: f64,
    /// The utilization of the link alone; 0 without one.
    pub link: f64,
    /// Utilization as the engine measured it at the end of the row; NaN with a comparator.
    pub measured: f64,
    /// The offered load as the engine estimates it at the end of the row; NaN with a comparator.
    pub offered: f64,
    /// Requests that wait in the gateway at the end of the row.
    pub waiting: u32,
    /// Requests lost at the plant's listen queue.
    pub lost: u64,
    /// Workers as the engine knows them at the end of the row, configured or found; 0 with a comparator.
    pub workers: u32,
}

/// How far a promise of response times is kept, as the engine says at the end of a row. Merged rows have the mean over time, so
/// `missed` and `infeasible` become parts of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// The class's quota of workers; `None` for a ratio.
    pub quota: Option<f64>,
    /// 1 if the promised delay is missed.
    pub missed: f64,
    /// 1 if the promised ratio is not feasible at this load.
    pub infeasible: f64,
}

/// What the record keeps of the engine's status.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The status of each plant.
    pub plants: Vec<PlantStatus>,
    /// For each class with promised response times, its number and status.
    pub responses: Vec<(usize, ResponseStatus)>,
}

impl From<Status> for Recorded {
    fn from(status: Status) -> Self {
        let responses = status.classes.iter().enumerate();
        Recorded {
            responses: responses.filter_map(|(number, class)| Some((number, class.response?))).collect(),
            plants: status.plants,
        }
    }
}

/// A class in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassRow {
    /// The mean service level m; NaN with a comparator.
    pub service_level: f64,
    /// Requests that arrived.
    pub arrivals: u64,
    /// Requests completed, by level (index 0 is not used).
    pub completed: [u64; MAX_LEVELS + 1],
    /// Requests turned away, at arrival or after they waited.
    pub rejected: u64,
    /// Decisions by reason, in the order of [`Reason::ALL`]. In observe mode, the reason that would have applied.
    pub reasons: [u64; Reason::ALL.len()],
    /// Ends by outcome, in the order of [`Outcome::ALL`]. Rejected requests have none.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Body bytes delivered.
    pub bytes: u64,
    /// Response times of completed requests: from arrival until the plant was done with them.
    pub response: Histogram,
    /// How many clients left before they were answered, by how long they had waited.
    pub left: BTreeMap<Duration, u64>,
    /// Requests of clients that were served another level than at their last request.
    pub changes: u64,
    /// How far a promise of response times is kept; `None` for a class without one, and with a comparator.
    pub held: Option<Held>,
}

impl Held {
    fn of(known: &ResponseStatus) -> Held {
        let part = |holds: bool| f64::from(u8::from(holds));
        Held { quota: known.quota, missed: part(known.missed), infeasible: part(known.infeasible) }
    }

    fn merge(self, other: Held, weights: [f64; 2]) -> Held {
        let quota = match (self.quota, other.quota) {
            (Some(mine), Some(theirs)) => Some(mean([mine, theirs], weights)),
            (mine, theirs) => mine.or(theirs),
        };
        let missed = mean([self.missed, other.missed], weights);
        Held { quota, missed, infeasible: mean([self.infeasible, other.infeasible], weights) }
    }
}

impl ClassRow {
    /// Requests completed, at whatever level.
    pub fn served(&self) -> u64 {
        self.completed.iter().sum()
    }

    /// Requests of one outcome.
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Adds another row's counts. m and `held` are averaged by time.
    pub fn merge(&mut self, other: &ClassRow, weights: [f64; 2]) {
        self.service_level = mean([self.service_level, other.service_level], weights);
        self.arrivals += other.arrivals;
        add(&mut self.completed, &other.completed);
        self.rejected += other.rejected;
        add(&mut self.reasons, &other.reasons);
        add(&mut self.outcomes, &other.outcomes);
        self.bytes += other.bytes;
        self.response.merge(&other.response);
        other.left.iter().for_each(|(waited, count)| *self.left.entry(*waited).or_default() += count);
        self.changes += other.changes;
        self.held = match (self.held, other.held) {
            (Some(mine), Some(theirs)) => Some(mine.merge(theirs, weights)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

impl Row {
    /// Merges two rows that follow each other.
    fn merge(&mut self, other: &Row) {
        let weights = [self.length.as_secs_f64(), other.length.as_secs_f64()];
        for (mine, theirs) in self.plants.iter_mut().zip(&other.plants) {
            *mine = PlantRow {
                utilization: mean([mine.utilization, theirs.utilization], weights),
                link: mean([mine.link, theirs.link], weights),
                measured: mean([mine.measured, theirs.measured], weights),
                offered: mean([mine.offered, theirs.offered], weights),
                waiting: theirs.waiting,
                lost: mine.lost + theirs.lost,
                workers: theirs.workers,
            };
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs, weights);
        }
        self.length += other.length;
    }
}

fn mean(values: [f64; 2], weights: [f64; 2]) -> f64 {
    (values[0] * weights[0] + values[1] * weights[1]) / (weights[0] + weights[1]).max(f64::MIN_POSITIVE)
}

fn add<const N: usize>(mine: &mut [u64; N], theirs: &[u64; N]) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

/// A record under way.
pub(crate) struct Recorder {
    /// Control periods to a row, a power of two.
    periods_per_row: u64,
    period: Duration,
    rows: Vec<Row>,
    /// The row in progress.
    pub(crate) row: Row,
    /// When the present period ends.
    period_end: Instant,
    /// Periods of the row in progress that have ended.
    periods: u64,
    servers: Vec<u32>,
    busy: Vec<Busy>,
    /// `None` if there is only one level, so that no client changes it.
    levels: Option<LastLevels>,
}

impl Recorder {
    /// For plants with these numbers of servers, and this many classes whose sites have at most this many levels.
    pub(crate) fn new(period: Duration, servers: Vec<u32>, (classes, levels): (usize, usize)) -> Self {
        let busy = vec![Busy::default(); servers.len()];
        let mut recorder = Recorder {
            periods_per_row: 1,
            period,
            rows: Vec::new(),
            row: Row::default(),
            period_end: Instant::ZERO + period,
            periods: 0,
            servers,
            busy,
            levels: (levels > 1).then(LastLevels::new),
        };
        recorder.row = recorder.empty(Instant::ZERO, classes);
        recorder
    }

    fn empty(&self, from: Instant, classes: usize) -> Row {
        Row {
            from,
            length: Duration::ZERO,
            plants: vec![PlantRow::default(); self.servers.len()],
            classes: vec![ClassRow::default(); classes],
        }
    }

    /// When the present period ends.
    pub(crate) fn due(&self) -> Instant {
        self.period_end
    }

    /// Ends a period. True if the row ends too: the caller must then call [`close`](Recorder::close).
    pub(crate) fn period(&mut self, level: impl Fn(u16) -> Option<f64>) -> bool {
        self.period_end += self.period;
        self.periods += 1;
        for (class, row) in self.row.classes.iter_mut().enumerate() {
            row.service_level += level(class as u16).unwrap_or(f64::NAN);
        }
        self.periods == self.periods_per_row
    }

    /// Counts a completed request and its level.
    pub(crate) fn completed(&mut self, class: u16, client: u64, level: u8) {
        let row = &mut self.row.classes[usize::from(class)];
        row.completed[usize::from(level)] += 1;
        if let Some(levels) = &mut self.levels {
            row.changes += u64::from(levels.changed(client, level));
        }
    }

    /// Ends the row at `now`.
    pub(crate) fn close(&mut self, now: Instant, busy: &[Busy], known: Option<Recorded>) {
        let mut row = std::mem::take(&mut self.row);
        row.length = now.since(row.from);
        let seconds = row.length.as_secs_f64().max(f64::MIN_POSITIVE);
        for (number, plant) in row.plants.iter_mut().enumerate() {
            let last = self.busy[number];
            let servers = (busy[number].servers - last.servers).as_secs_f64();
            plant.link = (busy[number].link - last.link).as_secs_f64() / seconds;
            plant.utilization = (servers / f64::from(self.servers[number]) / seconds).max(plant.link);
            let known = known.as_ref().map(|known| &known.plants[number]);
            plant.measured = known.map_or(f64::NAN, |known| known.utilization);
            plant.offered = known.map_or(f64::NAN, |known| known.utilization_offered);
            plant.waiting = known.map_or(0, |known| known.waiting);
            plant.workers = known.map_or(0, |known| known.workers);
        }
        for class in &mut row.classes {
            class.service_level /= self.periods.max(1) as f64;
        }
        for (class, response) in known.iter().flat_map(|known| &known.responses) {
            row.classes[*class].held = Some(Held::of(response));
        }
        self.busy.copy_from_slice(busy);
        self.periods = 0;
        self.row = self.empty(now, row.classes.len());
        self.rows.push(row);
        if self.rows.len() == MOST_ROWS {
            self.halve();
        }
    }

    /// Merges each two rows into one.
    fn halve(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let pairs = rows.chunks_exact(2).map(|pair| {
            let mut row = pair[0].clone();
            row.merge(&pair[1]);
            row
        });
        self.rows = pairs.collect();
        self.periods_per_row *= 2;
    }

    /// The rows. The row in progress becomes a shorter one.
    pub(crate) fn finish(mut self, now: Instant, busy: &[Busy], known: Option<Recorded>) -> Vec<Row> {
        if now > self.row.from {
            self.close(now, busy, known);
        }
        self.rows
    }
}

/// The last level of each client, in a table of fixed size: two clients with the same entry overwrite each other. An entry
/// holds 12 bits of the client's number and, below them, its level. If two clients share an entry, one in four thousand is
/// taken for the other; in return the table stays in the processor's caches.
struct LastLevels(Vec<u16>);

const _: () = assert!(MAX_LEVELS < 1 << LastLevels::LEVEL_BITS, "a level has its bits");

impl LastLevels {
    const PLACES: usize = 1 << 16;
    const LEVEL_BITS: u32 = 4;

    fn new() -> Self {
        LastLevels(vec![0; Self::PLACES])
    }

    /// Whether the client's level was another one at its last request.
    fn changed(&mut self, client: u64, level: u8) -> bool {
        // The client's number is a hash already. Its lowest 16 bits are the index of its entry; the 12 above them tell clients
        // apart.
        let now = ((client >> 16) as u16) << Self::LEVEL_BITS | u16::from(level);
        let last = std::mem::replace(&mut self.0[client as usize % Self::PLACES], now);
        last != now && last >> Self::LEVEL_BITS == now >> Self::LEVEL_BITS && last != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a run in which every period has one arrival, and a utilization that is the parity of the period's number.
    fn rows(periods: u64) -> Vec<Row> {
        let period = Duration::from_secs(1);
        let mut recorder = Recorder::new(period, vec![1], (1, 1));
        let mut busy = [Busy::default()];
        for number in 0..periods {
            recorder.row.classes[0].arrivals += 1;
            recorder.row.classes[0].response.record_ns(number);
            let now = recorder.due();
            busy[0].servers += period * (number % 2) as u32;
            if recorder.period(|_| Some(number as f64)) {
                recorder.close(now, &busy, None);
            }
        }
        recorder.finish(Instant::from_nanos(periods * 1_000_000_000), &busy, None)
    }

    #[test]
    fn a_row_a_period_until_there_are_too_many() {
        let rows = rows(100);
        assert_eq!(rows.len(), 100);
        assert_eq!((rows[7].plants[0].utilization, rows[7].classes[0].service_level), (1.0, 7.0));
    }

    #[test]
    fn of_two_rows_what_is_held_is_the_mean_over_their_time() {
        let of = |quota, missed| ClassRow {
            held: Some(Held { quota, missed, infeasible: 0.0 }),
            ..ClassRow::default()
        };
        let mut row = of(Some(2.0), 1.0);
        row.merge(&of(Some(5.0), 0.0), [1.0, 2.0]);
        let held = row.held.expect("both have it");
        assert_eq!((held.quota, held.missed), (Some(4.0), 1.0 / 3.0));
        row.merge(&of(None, 1.0), [3.0, 3.0]);
        assert_eq!(row.held.and_then(|held| held.quota), Some(4.0), "not yet known is not nothing");
        let mut none = ClassRow::default();
        none.merge(&ClassRow::default(), [1.0, 1.0]);
        assert_eq!(none.held, None);
    }

    #[test]
    fn long_runs_keep_sums_and_means_in_few_rows() {
        let rows = rows(20_001);
        assert!((MOST_ROWS / 2..=MOST_ROWS).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.classes[0].arrivals).sum::<u64>(), 20_001);
        assert_eq!(rows.iter().map(|row| row.classes[0].response.count()).sum::<u64>(), 20_001);
        let length: Duration = rows.iter().map(|row| row.length).sum();
        assert_eq!(length, Duration::from_secs(20_001));
        assert_eq!(rows[3].plants[0].utilization, 0.5);
        // Each row has sixteen periods, so the fourth row has periods 48 to 63.
        assert_eq!(rows[3].classes[0].service_level, 55.5);
    }
}
