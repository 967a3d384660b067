//! The costs of one site's types: learned from the requests released, and published for admission.
//!
//! A type that was never seen costs its quantum times the cost per quantum of the types that were seen. A type whose estimate
//! exceeds its deadline in an empty queue would never be admitted, and a wrong estimate would never be corrected: so one of
//! its requests is admitted now and then, the more seldom the better its cost is known (`TIMES_KNOWN`).

use crate::admission::estimates::Estimates;
use crate::model::{Batch, ServiceTime, SizeLaw, Sized};
use crate::request::work::Cost;
use crate::telemetry::status::TypeStatus;
use alloc::{string::String, sync::Arc, vec::Vec};

/// The types of one site.
pub(crate) struct SiteTypes {
    /// Its number.
    pub(crate) site: u16,
    /// Names and quanta.
    types: Vec<(String, f64)>,
    levels: Vec<String>,
    /// What a quantum of 1 takes before anything is known (us).
    unit_us: f64,
    /// The shortest of its classes' deadlines.
    least_deadline_us: f64,
    pub(crate) estimates: Arc<Estimates>,
    /// By row: types by levels, then the same of announced costs.
    learners: Vec<ServiceTime>,
    sizes: Vec<SizeLaw>,
    requests: Vec<u64>,
    /// The time (s) since a request of the type came.
    absent: Vec<f64>,
    /// The part of recent requests that was refused.
    turned_away: f64,
    /// The time (s) for which every request of the type was rejected because of its cost.
    refused: Vec<f64>,
}

/// What is promised of a site's types.
pub(crate) struct PromisedTypes {
    pub(crate) site: u16,
    pub(crate) types: Vec<(String, f64)>,
    pub(crate) levels: Vec<String>,
    pub(crate) unit_us: f64,
    pub(crate) least_deadline_us: f64,
}

/// Room is kept for types that had a request in so many seconds.
const OF_LATE: f64 = 60.0;
/// A type whose estimate exceeds its deadline in an empty queue is admitted once in this many times its own service time, times
/// the number of requests that its cost was learned from, but at least once in [`RARELY`] times, which takes one per cent of
/// a worker.
const TIMES_KNOWN: f64 = 5.0;
const RARELY: f64 = 100.0;
/// Room for the most costly type is kept in proportion to the part of requests that is refused, and in full from this part on.
/// A queue that seldom overflows loses more by the room than that type gains.
const REFUSED: f64 = 0.1;
/// The gain of the running mean of refusals.
const LOOK: f64 = 0.2;
/// The real time of an announced second until it is learned, in millionths.
const AS_ANNOUNCED: f64 = 1e6;
/// The relative deviation of an announced cost, until it is learned.
const ANNOUNCED_VARIES: f64 = 0.05;

impl SiteTypes {
    /// Keeps what `before` has learned of the same types; all of it if nothing changed.
    pub(crate) fn new(promised: PromisedTypes, before: Option<SiteTypes>) -> Self {
        let same = |known: &SiteTypes| {
            known.types == promised.types
                && known.levels == promised.levels
                && known.unit_us == promised.unit_us
        };
        let before = match before {
            Some(known) if same(&known) => {
                return SiteTypes { least_deadline_us: promised.least_deadline_us, ..known };
            }
            other => other,
        };
        let PromisedTypes { site, types, levels, unit_us, least_deadline_us } = promised;
        let estimates = Arc::new(Estimates::new(types.len(), levels.len()));
        let known = |name: &str, level: &str, announced: bool| {
            let before = before.as_ref()?;
            let place = before.types.iter().position(|(known, _)| known == name)?;
            let level = before.levels.iter().position(|known| known == level)?;
            let row = (usize::from(announced) * before.types.len() + place) * before.levels.len() + level;
            let known = (before.learners[row].clone(), before.sizes[row].clone(), before.requests[row]);
            Some(known).filter(|(one, ..)| one.is_known())
        };
        let (mut learners, mut sizes, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        for announced in [false, true] {
            for (name, quantum) in &types {
                for level in &levels {
                    let prior = if announced {
                        ServiceTime::varying(AS_ANNOUNCED, ANNOUNCED_VARIES)
                    } else {
                        ServiceTime::expected(quantum * unit_us)
                    };
                    let found = known(name, level, announced);
                    let (learner, size, count) = found.unwrap_or((prior, SizeLaw::default(), 0));
                    learners.push(learner);
                    sizes.push(size);
                    requests.push(count);
                }
            }
        }
        let absent = requests.iter().map(|count| if *count > 0 { 0.0 } else { OF_LATE }).collect();
        let refused = alloc::vec![0.0; learners.len()];
        let learned = SiteTypes {
            absent,
            // Room is kept in full until costs are learned.
            turned_away: 1.0,
            site,
            types,
            levels,
            unit_us,
            least_deadline_us,
            estimates,
            learners,
            sizes,
            requests,
            refused,
        };
        learned.publish();
        learned
    }

    fn publish(&self) {
        let us = |value: f64| value.clamp(0.0, f64::from(u32::MAX)) as u32;
        let mut dearest = Cost::default();
        for (number, (row, learner)) in self.estimates.rows().iter().zip(&self.learners).enumerate() {
            let cost = Cost { mean_us: us(learner.mean()), deviation_us: us(learner.deviation()) };
            row.set(cost);
            row.set_block(self.sizes[number].slope());
            let announced = number >= self.types.len() * self.levels.len();
            // No room is kept for a type that would be late even in an empty queue.
            let fits = f64::from(cost.mean_us) + f64::from(cost.deviation_us) <= self.least_deadline_us;
            let of_late = self.absent[number] < OF_LATE;
            if !announced && of_late && fits {
                dearest = dearest.max(cost);
            }
        }
        self.estimates.set_costliest(dearest);
    }

    /// Learns from the requests released in the last `seconds`.
    pub(crate) fn learn(&mut self, seconds: f64) {
        let (mut refused, mut served) = (0, 0);
        for (number, row) in self.estimates.rows().iter().enumerate() {
            let seen = row.take();
            self.requests[number] += seen.requests;
            (refused, served) = (refused + seen.refused, served + seen.requests);
            let came = seen.refused + seen.requests > 0;
            self.absent[number] = if came { 0.0 } else { self.absent[number] + seconds };
            let [blocks, squares, products] = seen.blocks.map(|sum| sum as f64);
            let size = &mut self.sizes[number];
            // The sum excludes the time of the blocks.
            let took = seen.sum_us as f64 + blocks * size.slope();
            size.learn(&Sized { requests: seen.requests as f64, took, blocks, squares, products });
            let learner = &mut self.learners[number];
            learner.learn(&Batch {
                requests: seen.requests as f64,
                sum: seen.sum_us as f64,
                squares: seen.squares_us2 as f64,
            });
            if seen.requests > 0 {
                self.refused[number] = 0.0;
            } else if seen.too_long {
                self.refused[number] += seconds;
                let times = (TIMES_KNOWN * learner.weight()).min(RARELY);
                if self.refused[number] >= times * learner.mean() * 1e-6 {
                    self.refused[number] = 0.0;
                    row.invite();
                }
            }
        }
        if refused + served > 0 {
            let part = refused as f64 / (refused + served) as f64;
            self.turned_away += LOOK * (part - self.turned_away);
        }
        self.estimates.set_headroom((self.turned_away / REFUSED).min(1.0));
        self.expect();
        self.publish();
        self.estimates.fade();
    }

    /// Sets the cost of each type that was never seen to its quantum times the cost per quantum of the types that were seen.
    fn expect(&mut self) {
        let levels = self.levels.len();
        for level in 0..levels {
            let rows = || {
                self.types.iter().enumerate().map(|(place, (_, quantum))| (*quantum, place * levels + level))
            };
            let (mut work, mut units) = (0.0, 0.0);
            for (quantum, row) in rows().filter(|(_, row)| self.learners[*row].is_known()) {
                // A bounded weight, so that a frequent type does not decide alone.
                let n = self.requests[row].min(100) as f64;
                (work, units) = (work + n * self.learners[row].mean(), units + n * quantum);
            }
            if units > 0.0 {
                let unseen: Vec<_> = rows().filter(|(_, row)| self.requests[*row] == 0).collect();
                for (quantum, row) in unseen {
                    self.learners[row] = ServiceTime::expected(quantum * work / units);
                }
            }
        }
    }

    /// What is known, by type and level.
    pub(crate) fn status(&self) -> Vec<TypeStatus> {
        let levels = self.levels.len();
        let row = |row: usize| {
            let (place, level) = (row / levels, row % levels);
            let (announced, place) = (place >= self.types.len(), place % self.types.len());
            let learner = &self.learners[row];
            let scale = 1e-6;
            TypeStatus {
                name: self.types[place].0.clone(),
                level: self.levels[level].clone(),
                announced,
                requests: self.requests[row],
                mean: learner.mean() * scale,
                deviation: learner.deviation() * scale,
                block: self.sizes[row].slope() * scale,
            }
        };
        (0..self.learners.len()).map(row).filter(|status| !status.announced || status.requests > 0).collect()
    }
}
