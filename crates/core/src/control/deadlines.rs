//! What `tick` does for deadlines: learns what each type costs, and what higher ranks take of a plant.
//!
//! Admission itself is at the door (`backlog.rs`): it is decided at each arrival, and there is no budget per period that
//! could be used up or carried over. So there is no backup queue either: what AC's holds, work that a period left over, is
//! counted here as what it is, unfinished work.

use crate::backlog::Backlog;
use crate::estimates::{Cost, Estimates};
use crate::model::{Batch, ServiceTime};
use crate::status::TypeStatus;
use alloc::{string::String, sync::Arc, vec::Vec};

/// The types of one site.
pub(crate) struct SiteTypes {
    /// Its number.
    pub(crate) site: u16,
    /// Names and quanta.
    kinds: Vec<(String, f64)>,
    levels: Vec<String>,
    /// What a quantum of 1 takes before anything is known (us).
    unit_us: f64,
    pub(crate) estimates: Arc<Estimates>,
    /// By row: types by levels, then the same of announced costs.
    learners: Vec<ServiceTime>,
    requests: Vec<u64>,
    /// Of a type never seen: the part of its prior that is believed.
    doubted: Vec<f64>,
}

/// What is known of a site's types beforehand.
pub(crate) struct Told {
    pub(crate) site: u16,
    pub(crate) kinds: Vec<(String, f64)>,
    pub(crate) levels: Vec<String>,
    pub(crate) unit_us: f64,
}

/// A second announced is a second, until it is known better; in millionths.
const AS_ANNOUNCED: f64 = 1e6;

impl SiteTypes {
    /// What `before` knew of the same types stays known; all of it if nothing changed.
    pub(crate) fn new(told: Told, before: Option<SiteTypes>) -> Self {
        let same = |known: &SiteTypes| {
            known.kinds == told.kinds && known.levels == told.levels && known.unit_us == told.unit_us
        };
        let before = match before {
            Some(known) if same(&known) => return known,
            other => other,
        };
        let Told { site, kinds, levels, unit_us } = told;
        let estimates = Arc::new(Estimates::new(kinds.len(), levels.len()));
        let known = |kind: &str, level: &str, announced: bool| {
            let before = before.as_ref()?;
            let kind = before.kinds.iter().position(|(name, _)| name == kind)?;
            let level = before.levels.iter().position(|name| name == level)?;
            let row = (usize::from(announced) * before.kinds.len() + kind) * before.levels.len() + level;
            Some((before.learners[row].clone(), before.requests[row])).filter(|(one, _)| one.is_known())
        };
        let (mut learners, mut requests) = (Vec::new(), Vec::new());
        for announced in [false, true] {
            for (kind, quantum) in &kinds {
                for level in &levels {
                    let prior = if announced { AS_ANNOUNCED } else { quantum * unit_us };
                    let (learner, count) =
                        known(kind, level, announced).unwrap_or((ServiceTime::expected(prior), 0));
                    learners.push(learner);
                    requests.push(count);
                }
            }
        }
        let doubted = alloc::vec![1.0; learners.len()];
        let types = SiteTypes { site, kinds, levels, unit_us, estimates, learners, requests, doubted };
        types.publish();
        types
    }

    fn publish(&self) {
        let us = |value: f64| value.clamp(0.0, f64::from(u32::MAX)) as u32;
        let mut dearest = Cost::default();
        for (number, (row, learner)) in self.estimates.rows().iter().zip(&self.learners).enumerate() {
            let cost = Cost { mean_us: us(learner.mean()), deviation_us: us(learner.deviation()) };
            row.set(cost);
            let announced = number >= self.kinds.len() * self.levels.len();
            if !announced && learner.is_known() && cost.needs_us() > dearest.needs_us() {
                dearest = cost;
            }
        }
        self.estimates.set_dearest(dearest);
    }

    /// Takes what was released since the last call.
    pub(crate) fn learn(&mut self) {
        let known = self.learners.iter_mut().zip(&mut self.requests).zip(&mut self.doubted);
        for (row, ((learner, count), doubted)) in self.estimates.rows().iter().zip(known) {
            let ([requests, sum, squares], refused) = row.take();
            *count += requests;
            let batch = Batch { requests: requests as f64, sum: sum as f64, squares: squares as f64 };
            learner.learn(&batch);
            if refused && requests == 0 {
                learner.doubt();
                *doubted *= ServiceTime::DOUBT;
            }
        }
        self.expect();
        self.publish();
    }

    /// A type never seen costs its quantum of what those cost that were seen.
    fn expect(&mut self) {
        let levels = self.levels.len();
        for level in 0..levels {
            let rows = || {
                self.kinds.iter().enumerate().map(|(kind, (_, quantum))| (*quantum, kind * levels + level))
            };
            let (mut work, mut units) = (0.0, 0.0);
            for (quantum, row) in rows().filter(|(_, row)| self.learners[*row].is_known()) {
                // As many as tell: what is frequent is not to drown the rest.
                let n = self.requests[row].min(100) as f64;
                (work, units) = (work + n * self.learners[row].mean(), units + n * quantum);
            }
            if units > 0.0 {
                let unseen: Vec<_> = rows().filter(|(_, row)| self.requests[*row] == 0).collect();
                for (quantum, row) in unseen {
                    let doubted = self.doubted[row];
                    self.learners[row] = ServiceTime::expected(doubted * quantum * work / units);
                }
            }
        }
    }

    /// What is known, by type and level.
    pub(crate) fn status(&self) -> Vec<TypeStatus> {
        let levels = self.levels.len();
        let row = |row: usize| {
            let (kind, level) = (row / levels, row % levels);
            let (announced, kind) = (kind >= self.kinds.len(), kind % self.kinds.len());
            let learner = &self.learners[row];
            let scale = 1e-6;
            TypeStatus {
                name: self.kinds[kind].0.clone(),
                level: self.levels[level].clone(),
                announced,
                requests: self.requests[row],
                mean: learner.mean() * scale,
                deviation: learner.deviation() * scale,
            }
        };
        (0..self.learners.len()).map(row).filter(|status| !status.announced || status.requests > 0).collect()
    }
}

/// How fast each rank brings work to a plant.
#[derive(Default)]
pub(crate) struct PlantRates {
    /// By slot: started work (us) and its squares (us^2) at the last look, and the rates of both (1/s).
    slots: Vec<([u64; 2], [f64; 2])>,
}

/// What one look counts for against all before.
const GAIN: f64 = 0.5;

impl PlantRates {
    /// Looks at what was started in the last `seconds`, and says to each rank what the higher ones take.
    pub(crate) fn follow(&mut self, backlog: &Backlog, seconds: f64, workers: u32) {
        let slots = backlog.slots();
        self.slots.resize(slots.len(), Default::default());
        for ((_, slot), (last, rates)) in slots.iter().zip(&mut self.slots) {
            let (work, squares) = slot.started();
            for ((now, last), rate) in [work, squares].into_iter().zip(last).zip(rates) {
                *rate += GAIN * (now.wrapping_sub(*last) as f64 / seconds - *rate);
                *last = now;
            }
        }
        let s = f64::from(workers.max(1));
        for (rank, slot) in slots {
            let higher = slots.iter().zip(&self.slots).filter(|((other, _), _)| other < rank);
            let [work, squares] =
                higher.fold([0.0; 2], |sum, (_, (_, rates))| [sum[0] + rates[0], sum[1] + rates[1]]);
            // Of compound Poisson arrivals the variance in w is w times the rate of squares; and s workers do it.
            slot.set_taken((work * 1e-6 / s).min(1.0), squares * 1e-6 / (s * s));
        }
    }
}
