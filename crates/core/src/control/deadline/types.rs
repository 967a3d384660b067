//! The costs of one site's types: learned from the requests released, and published for admission.
//!
//! A type that was never seen costs its quantum times the cost per quantum of the types that were seen. The learned costs of
//! one type are in `learned_type.rs`.

use super::found_types::{FoundTypes, Regrouped, is_room};
use crate::admission::estimates::{Alone, Estimates};
use crate::admission::headroom::Needs;
use crate::control::deadline::learned_type::LearnedType;
use crate::model::{Moments, ServiceTime};
use crate::request::work::{Cost, Work};
use crate::telemetry::status::TypeStatus;
use crate::time::Duration;
use alloc::{string::String, sync::Arc, vec::Vec};

/// The types of one site.
pub(crate) struct SiteTypes {
    pub(crate) promised: PromisedTypes,
    pub(super) found: Option<FoundTypes>,
    /// By row and index of the promise: the time (s) since a request arrived.
    absent: Vec<f64>,
    /// The time (s) since requests of known size or cost were last forgotten.
    remembered: f64,
    /// The recent sums of the costs that the server reported, and of the times of the same requests.
    reported: [f64; 2],
    pub(crate) estimates: Arc<Estimates>,
    /// By row: types by levels, then the same of announced costs.
    pub(super) rows: Vec<LearnedType>,
}

/// The promises for a site's types.
pub(crate) struct PromisedTypes {
    /// The site's number.
    pub(crate) site: u16,
    /// Names and quanta: those of the promised types, then room for found types.
    pub(crate) types: Vec<(String, f64)>,
    /// Whether types are found, because none is configured.
    pub(crate) finds: bool,
    pub(crate) levels: Vec<String>,
    /// The time of a quantum of 1 before any cost is known (us).
    pub(crate) unit_us: f64,
    /// The promises of the site's classes, by index.
    pub(crate) promises: Vec<DeadlinePromise>,
    /// The longest deadline of the sites that share a plant with this site (us).
    pub(crate) longest_us: u64,
    /// The plants that serve the site, and whether the site has a contract.
    pub(crate) plants: Vec<usize>,
    pub(crate) has_contract: bool,
}

/// The promise of a class. In the order of promises, the shortest deadline comes first.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct DeadlinePromise {
    pub(crate) deadline: Duration,
    /// The part of the class's admitted requests that keeps the deadline.
    pub(crate) in_time: f64,
    pub(crate) priority: u8,
}

/// Room is kept for the types that had a request within this time (s).
const OF_LATE: f64 = 60.0;
/// The part of the reported sums that is forgotten at each step with a new report.
const REPORTED: f64 = 0.02;
/// The real cost of a request until it is learned, in millionths of its announced cost.
const AS_ANNOUNCED: f64 = 1e6;
/// The relative deviation of an announced cost, until it is learned.
const ANNOUNCED_VARIES: f64 = 0.05;

impl DeadlinePromise {
    pub(super) fn deadline_us(&self) -> f64 {
        self.deadline.as_secs_f64() * 1e6
    }
}

impl PromisedTypes {
    /// Whether both distinguish the same types of requests, with the same promises.
    fn has_types_of(&self, other: &PromisedTypes) -> bool {
        self.types == other.types
            && self.levels == other.levels
            && self.unit_us == other.unit_us
            && self.promises == other.promises
    }
}

impl SiteTypes {
    /// Keeps the costs that `before` has learned of the same types, and all its state if the types did not change.
    pub(crate) fn new(promised: PromisedTypes, before: Option<SiteTypes>) -> Self {
        let mut before = match before {
            Some(known) if known.promised.has_types_of(&promised) => {
                known.estimates.set_longest(promised.longest_us);
                return SiteTypes { promised, ..known };
            }
            other => other,
        };
        let PromisedTypes { types, finds, levels, unit_us, promises, plants, .. } = &promised;
        let kept = before
            .as_mut()
            .and_then(|known| known.found.take_if(|_| *finds && known.promised.levels == *levels));
        let keeps = kept.is_some();
        let found = kept.or_else(|| finds.then(|| FoundTypes::new(levels.len())));
        let shapes = found.as_ref().map(|found| found.table.clone());
        let one_plant = plants.windows(2).all(|two| two[0] == two[1]);
        let estimates =
            Arc::new(Estimates::new(types.len(), (levels.len(), one_plant), promises.len(), shapes));
        estimates.set_longest(promised.longest_us);
        let known = |name: &str, level: &str, announced: bool| {
            let SiteTypes { promised: before, rows, .. } =
                before.as_ref().filter(|_| keeps || !is_room(name))?;
            let index = before.types.iter().position(|(known, _)| known == name)?;
            let level = before.levels.iter().position(|known| known == level)?;
            let row = (usize::from(announced) * before.types.len() + index) * before.levels.len() + level;
            Some(rows[row].clone()).filter(|row| row.time.is_known())
        };
        let mut rows: Vec<LearnedType> = Vec::new();
        for announced in [false, true] {
            for (name, quantum) in types {
                for level in levels {
                    let prior = if announced {
                        ServiceTime::varying(AS_ANNOUNCED, ANNOUNCED_VARIES)
                    } else {
                        ServiceTime::expected(quantum * unit_us)
                    };
                    rows.push(known(name, level, announced).unwrap_or_else(|| LearnedType::new(prior)));
                }
            }
        }
        let absent = rows.iter().map(|row| if row.requests > 0 { 0.0 } else { OF_LATE });
        let absent = absent.flat_map(|seconds| promises.iter().map(move |_| seconds)).collect();
        let (remembered, reported) = (0.0, [0.0; 2]);
        let learned = SiteTypes { promised, found, absent, remembered, reported, estimates, rows };
        (0..learned.rows.len()).for_each(|row| learned.publish(row));
        learned
    }

    /// The site's number, if it takes turns with other sites.
    pub(super) fn turns(&self) -> Option<u16> {
        self.promised.has_contract.then_some(self.promised.site)
    }

    /// The names of a row's type and level, and whether it is of announced costs.
    pub(super) fn row_names(&self, row: usize) -> (&str, &str, bool) {
        let levels = self.promised.levels.len();
        let index = (row / levels) % self.promised.types.len();
        (&self.promised.types[index].0, &self.promised.levels[row % levels], self.is_announced(row))
    }

    /// Counts the requests of a row as if some had arrived just now.
    pub(super) fn came_of_late(&mut self, row: usize) {
        self.absent[row * self.promised.promises.len()..][..self.promised.promises.len()].fill(0.0);
    }

    /// Whether a row is of announced costs.
    fn is_announced(&self, row: usize) -> bool {
        row >= self.promised.types.len() * self.promised.levels.len()
    }

    /// Publishes the cost of a row, and the time that its requests need within each promised deadline.
    pub(super) fn publish(&self, number: usize) {
        let us = |value: f64| value.clamp(0.0, f64::from(u32::MAX)) as u32;
        let (row, learned) = (&self.estimates.rows()[number], &self.rows[number]);
        let (mean, deviation) = (learned.time.mean(), learned.time.deviation());
        let (whole, _) = learned.whole(self.longest_us(number));
        row.set(Cost { mean_us: us(mean), deviation_us: us(deviation) });
        row.set_stretch((f64::from(Work::ONCE) * whole / mean.max(1.0)).min(u16::MAX.into()) as u16);
        row.set_block(learned.size.slope());
        for (index, promise) in self.promised.promises.iter().enumerate() {
            // An announced cost is learned as a part of the announcement, whatever the deadline.
            let within = if self.is_announced(number) { f64::INFINITY } else { promise.deadline_us() };
            self.estimates.set_own(number, index, learned.own_time(within, promise.in_time));
        }
    }

    /// The needs of the costliest types with recent requests of this promise.
    fn costliest(&self, index: usize) -> Needs {
        let mut costliest = Needs::default();
        for row in 0..self.promised.types.len() * self.promised.levels.len() {
            let own = self.estimates.own(row, index);
            // No room is kept for a type that would be late even alone.
            if own.alone == Alone::Likely && self.absent[row * self.promised.promises.len() + index] < OF_LATE
            {
                costliest = costliest.max(own.needs(self.rows[row].time.mean()));
            }
        }
        costliest
    }

    /// Learns from the requests released in the last `seconds`.
    pub(crate) fn learn(&mut self, seconds: f64) {
        for number in 0..self.rows.len() {
            for index in 0..self.promised.promises.len() {
                let (absent, came) = (
                    &mut self.absent[number * self.promised.promises.len() + index],
                    self.estimates.take_came(number, index),
                );
                *absent = if came { 0.0 } else { *absent + seconds };
                self.rows[number].has_deadline |= came;
            }
            // Whether a request with an announced cost is in time depends on the announcement.
            let promises = if self.is_announced(number) { &[][..] } else { &self.promised.promises };
            let longest_us = self.longest_us(number);
            if self.rows[number].learn(&self.estimates.rows()[number], seconds, promises, longest_us) {
                self.publish(number);
            }
        }
        self.learn_reported();
        self.remembered += seconds;
        if self.remembered >= OF_LATE {
            self.remembered = 0.0;
            self.estimates.turn();
        }
        let regrouped = self.found.as_mut().map_or_else(Vec::new, |found| found.step(seconds));
        regrouped.iter().for_each(|group| self.regroup(group));
        self.expect();
    }

    /// Lets the learned times of requests count as little known.
    pub(super) fn lower_confidence(&mut self) {
        let known = |row: &LearnedType| row.time.is_known();
        for number in (0..self.rows.len()).filter(|row| known(&self.rows[*row])).collect::<Vec<_>>() {
            self.rows[number].lower_confidence(&self.estimates.rows()[number]);
            self.publish(number);
        }
    }

    /// Learns the time behind a unit of reported cost.
    fn learn_reported(&mut self) {
        let lately = self.estimates.take_reported();
        if lately[0] > 0.0 {
            for (known, lately) in self.reported.iter_mut().zip(lately) {
                *known += lately - REPORTED * *known;
            }
            self.estimates.set_per_reported(self.reported[1] / self.reported[0]);
        }
    }

    /// The needs of the costliest requests of each promise.
    pub(super) fn costliest_by_promise(&self) -> impl Iterator<Item = (DeadlinePromise, Needs)> + '_ {
        let needs = |index| self.costliest(index).max(self.estimates.costliest_announced(index));
        self.promised.promises.iter().enumerate().map(move |(index, promise)| (*promise, needs(index)))
    }

    /// Keeps for each promise the room that `needs` gives.
    pub(super) fn keep_room(&self, needs: impl Fn(&DeadlinePromise) -> Needs) {
        let promises = self.promised.promises.iter().enumerate();
        promises.for_each(|(index, promise)| self.estimates.set_costliest(index, needs(promise)));
    }

    /// The longest service time that counts in the estimate of a row.
    fn longest_us(&self, row: usize) -> f64 {
        if self.is_announced(row) { f64::INFINITY } else { self.promised.longest_us as f64 }
    }

    /// Sets the cost of a type whose requests are now grouped otherwise, by the times that they took.
    fn regroup(&mut self, Regrouped { number, parent, ratio, moments }: &Regrouped) {
        for level in 0..self.promised.levels.len() {
            let [row, parent] = [number, parent].map(|index| index * self.promised.levels.len() + level);
            let longest = self.longest_us(row);
            let known = moments.get(level).and_then(Moments::time);
            let requests = moments.get(level).map_or(0.0, |moments| moments.n);
            if row == parent && known.is_none() {
                continue;
            }
            let time = match known {
                Some((mean, variation)) => ServiceTime::found(mean.min(longest), variation, requests),
                None => ServiceTime::expected(ratio * self.rows[parent].time.mean()),
            };
            let size = self.rows[parent].size.clone();
            let beyond = known.map_or(0.0, |(mean, _)| (mean - longest).max(0.0));
            let requests = requests as u64;
            self.rows[row] = LearnedType { size, requests, beyond, ..LearnedType::new(time) };
            let absent = if known.is_some() { 0.0 } else { OF_LATE };
            self.absent[row * self.promised.promises.len()..][..self.promised.promises.len()].fill(absent);
            self.publish(row);
        }
    }

    /// Sets the cost of each type that was never seen to its quantum times the cost per quantum of the types that were seen.
    fn expect(&mut self) {
        let levels = self.promised.levels.len();
        for level in 0..levels {
            let rows = || {
                let promised = self.promised.types.iter().enumerate().filter(|(_, (name, _))| !is_room(name));
                promised.map(|(index, (_, quantum))| (*quantum, index * levels + level))
            };
            let (mut work, mut units) = (0.0, 0.0);
            for (quantum, row) in rows().filter(|(_, row)| self.rows[*row].time.is_known()) {
                // The weight is bounded, so that a frequent type does not decide alone.
                let n = self.rows[row].requests.min(100) as f64;
                (work, units) = (work + n * self.rows[row].time.mean(), units + n * quantum);
            }
            if units > 0.0 {
                let unseen: Vec<_> = rows().filter(|(_, row)| self.rows[*row].requests == 0).collect();
                for (quantum, row) in unseen {
                    self.rows[row].time = ServiceTime::expected(quantum * work / units);
                    self.publish(row);
                }
            }
        }
    }

    /// The status by type and level.
    pub(crate) fn status(&self) -> Vec<TypeStatus> {
        let levels = self.promised.levels.len();
        let row = |row: usize| {
            let (index, level) = (row / levels, row % levels);
            let (announced, index) = (index >= self.promised.types.len(), index % self.promised.types.len());
            let (learned, scale) = (&self.rows[row], 1e-6);
            let (mean, deviation) = learned.whole(self.longest_us(row));
            let deadline = Some(self.promised.promises[0]).filter(|_| !announced);
            Some(TypeStatus {
                name: self.name(index)?.into(),
                level: self.promised.levels[level].clone(),
                announced,
                requests: learned.requests,
                mean: mean * scale,
                deviation: deviation * scale,
                in_time: deadline.and_then(|promise| learned.in_time(promise.deadline_us())),
                block: learned.size.slope() * scale,
            })
        };
        let all = (0..self.rows.len()).filter_map(row);
        all.filter(|status| !status.announced || status.requests > 0).collect()
    }

    /// The name of the type with this number, if it exists.
    fn name(&self, number: usize) -> Option<&str> {
        let promised = self.promised.types[number].0.as_str();
        if is_room(promised) { self.found.as_ref()?.name(number) } else { Some(promised) }
    }
}
