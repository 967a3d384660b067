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
    /// The shortest of its classes' deadlines.
    least_deadline_us: f64,
    pub(crate) estimates: Arc<Estimates>,
    /// By row: types by levels, then the same of announced costs.
    learners: Vec<ServiceTime>,
    requests: Vec<u64>,
    /// Somebody came for it.
    asked: Vec<bool>,
    /// Of a type never seen: the part of its prior that is believed.
    doubted: Vec<f64>,
}

/// What is known of a site's types beforehand.
pub(crate) struct Told {
    pub(crate) site: u16,
    pub(crate) kinds: Vec<(String, f64)>,
    pub(crate) levels: Vec<String>,
    pub(crate) unit_us: f64,
    pub(crate) least_deadline_us: f64,
}

/// The part of a deadline that a type may take on average and still be waited for.
const MOST_NEEDED: f64 = 0.25;
/// A second announced is a second, until it is known better; in millionths.
const AS_ANNOUNCED: f64 = 1e6;
/// Who announces a cost is taken to know it so well, until it is known better.
const ANNOUNCED_VARIES: f64 = 0.05;

impl SiteTypes {
    /// What `before` knew of the same types stays known; all of it if nothing changed.
    pub(crate) fn new(told: Told, before: Option<SiteTypes>) -> Self {
        let same = |known: &SiteTypes| {
            known.kinds == told.kinds && known.levels == told.levels && known.unit_us == told.unit_us
        };
        let before = match before {
            Some(known) if same(&known) => {
                return SiteTypes { least_deadline_us: told.least_deadline_us, ..known };
            }
            other => other,
        };
        let Told { site, kinds, levels, unit_us, least_deadline_us } = told;
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
                    let prior = if announced {
                        ServiceTime::varying(AS_ANNOUNCED, ANNOUNCED_VARIES)
                    } else {
                        ServiceTime::expected(quantum * unit_us)
                    };
                    let (learner, count) = known(kind, level, announced).unwrap_or((prior, 0));
                    learners.push(learner);
                    requests.push(count);
                }
            }
        }
        let doubted = alloc::vec![1.0; learners.len()];
        let asked = requests.iter().map(|count| *count > 0).collect();
        let types = SiteTypes {
            asked,
            site,
            kinds,
            levels,
            unit_us,
            least_deadline_us,
            estimates,
            learners,
            requests,
            doubted,
        };
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
            // For one that is in time only if it need not wait no room is kept.
            let waits = f64::from(cost.mean_us) <= MOST_NEEDED * self.least_deadline_us;
            if !announced && self.asked[number] && waits && cost.needs_us() > dearest.needs_us() {
                dearest = cost;
            }
        }
        self.estimates.set_dearest(dearest);
    }

    /// Takes what was released since the last call.
    pub(crate) fn learn(&mut self) {
        for (number, row) in self.estimates.rows().iter().enumerate() {
            let seen = row.take();
            self.requests[number] += seen.requests;
            self.asked[number] |= seen.refused || seen.requests > 0;
            let learner = &mut self.learners[number];
            learner.learn(&Batch {
                requests: seen.requests as f64,
                sum: seen.sum_us as f64,
                squares: seen.squares_us2 as f64,
            });
            if seen.too_dear && seen.requests == 0 {
                learner.doubt();
                self.doubted[number] *= ServiceTime::DOUBT;
            }
        }
        self.expect();
        self.publish();
        self.estimates.fade();
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
    slots: Vec<SlotRates>,
}

/// Of one rank.
#[derive(Clone, Default)]
struct SlotRates {
    /// Started work (us) and its squares (us^2) at the last look.
    last: [u64; 2],
    /// How fast both grow (1/s), by the last looks and by the last ten or so.
    fast: [f64; 2],
    slow: [f64; 2],
}

/// What one look counts for against all before.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.1;

impl PlantRates {
    /// Looks at what was started in the last `seconds`, and says to each rank what the higher ones take. Of two means the
    /// larger counts: a load that rises is seen at once, and chance does not make it look small.
    pub(crate) fn follow(&mut self, backlog: &Backlog, seconds: f64, workers: u32) {
        let slots = backlog.slots();
        self.slots.resize(slots.len(), SlotRates::default());
        for ((_, slot), own) in slots.iter().zip(&mut self.slots) {
            let (work, squares) = slot.started();
            for (index, now) in [work, squares].into_iter().enumerate() {
                let rate = now.wrapping_sub(own.last[index]) as f64 / seconds;
                own.fast[index] += FAST * (rate - own.fast[index]);
                own.slow[index] += SLOW * (rate - own.slow[index]);
                own.last[index] = now;
            }
        }
        let s = f64::from(workers.max(1));
        for (rank, slot) in slots {
            let higher = || slots.iter().zip(&self.slots).filter(|((other, _), _)| other < rank);
            let sum = |of: fn(&SlotRates) -> f64| higher().map(|(_, own)| of(own)).sum::<f64>();
            let work = sum(|own| own.fast[0]).max(sum(|own| own.slow[0]));
            let squares = sum(|own| own.fast[1]).max(sum(|own| own.slow[1]));
            // Of compound Poisson arrivals the variance in w is w times the rate of squares; and s workers do it.
            slot.set_taken((work * 1e-6 / s).min(1.0), squares * 1e-6 / (s * s));
        }
    }
}
