//! AC itself: admission by estimated service time, a budget per period and priority, two queues. The budget's formula and the
//! prediction are the engine's own (`crates/core/src/admission/aces/`), where an expert may ask for them.
//!
//! ```text
//!            estimate (quanta)          primary --+
//!  arrive -> C_p of this period? -> admit -> |    +--> so many in service as there are workers
//!                 | no                 T     v    |
//!              reject                      backup +  (only while the primary is empty; cleared when full)
//! ```
//!
//! X. Chen, H. Chen and P. Mohapatra, "ACES: An Efficient Admission Control Scheme for QoS-Aware Web Servers". It is
//! here to be compared with: Plimsoll's own promise of a deadline decides at each arrival by the work that is unfinished
//! then, and needs neither period nor prediction. The paper's waiting times, (10), (11) and (13), are misprinted; no
//! decision of AC rests on them, so that they are not here.
//!
//! Priorities are the promises' own, 1 the highest (the paper counts the other way). Classes of one priority at a plant
//! share an account. Rates are predicted of what arrives, admitted or not; a prediction in service-seconds is the rate
//! times the mean estimate of late. Exempt requests pass and are not counted, as before the other comparators.

mod admission;
mod quanta;
mod queues;
mod settings;

pub(super) use settings::AcesSettings;

use super::comparator::known_unit;
use super::full_quality::FullQuality;
use super::priorities::{places, priorities_at};
use super::slots::Slots;
use super::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use crate::workload::Workload;
use admission::{Admitted, PlantAdmission};
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Instant;
use queues::Place;

/// AC in front of the plants.
pub(super) struct Aces {
    full: FullQuality,
    /// By class: the rank of its priority among those of its plant; 0 is the highest.
    places: Vec<usize>,
    /// Admission, by plant.
    plants: Vec<PlantAdmission>,
    slots: Slots<AcesStage>,
    arrivals: u64,
}

#[derive(Clone, Copy, Default)]
enum AcesStage {
    #[default]
    Free,
    Waiting {
        plant: usize,
        place: Place,
    },
    InService {
        plant: usize,
    },
}

impl Aces {
    /// AC in front of these plants.
    ///
    /// # Errors
    /// Promises that contradict each other; plants that the workload does not describe; a quantum whose time is not
    /// known; a file of rate forecasts that cannot be read.
    pub(super) fn new(
        settings: &AcesSettings,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Self, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let trends = read_trends(settings).map_err(|wrong| vec![wrong])?;
        let mut plants = Vec::new();
        for (number, plant) in workload.plants.iter().enumerate() {
            let unit = known_unit("aces", "quantum", settings.unit, plant).map_err(|wrong| vec![wrong])?;
            let priorities = priorities_at(promises, number);
            plants.push(PlantAdmission::new(settings, unit, plant.discipline.servers(), priorities.len()));
            if number == 0 {
                plants[0].remember(&trends);
            }
        }
        Ok(Aces { full, places: places(promises), plants, slots: Slots::new(), arrivals: 0 })
    }

    /// Begins new periods.
    fn advance(&mut self, now: Instant) {
        self.plants.iter_mut().for_each(|plant| plant.advance(now));
    }

    /// A worker is free.
    fn leave(&mut self, now: Instant, plant: usize, token: Token, orders: &mut Vec<Order>) {
        self.advance(now);
        self.plants[plant].end(now, token);
        while let Some(waiter) = self.plants[plant].start_next(now) {
            *self.slots.at(waiter.token) = AcesStage::InService { plant };
            let start = Start { plant, level: waiter.level, reason: Reason::Full };
            orders.push(Order::Start(waiter.token, start));
        }
    }
}

fn read_trends(settings: &AcesSettings) -> Result<RateForecasts, String> {
    let Some(path) = &settings.trends else { return Ok(RateForecasts::default()) };
    match std::fs::read_to_string(path) {
        Ok(text) => text.parse().map_err(|wrong| format!("{}: {wrong}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RateForecasts::default()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

impl Front for Aces {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.full.classifier.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        let Arriving { request, target, token } = arrival;
        let start = self.full.start(&target);
        let Start { plant, level, .. } = start;
        if target.exempt {
            return Decision::Start(start);
        }
        self.advance(now);
        self.arrivals += 1;
        let place = (self.places[usize::from(target.class)], self.arrivals);
        match self.plants[plant].admit(now, request, place, (token, level)) {
            Ok(Admitted::Starts) => {
                *self.slots.at(token) = AcesStage::InService { plant };
                Decision::Start(start)
            }
            Ok(Admitted::Waits(dropped)) => {
                for dropped in dropped {
                    *self.slots.at(dropped.token) = AcesStage::Free;
                    orders.push(Order::Drop(dropped.token, Reason::QueueFull));
                }
                *self.slots.at(token) = AcesStage::Waiting { plant, place };
                Decision::Wait
            }
            Err(reason) => Decision::Reject(reason),
        }
    }

    fn release(&mut self, now: Instant, token: Token, _service: Service, orders: &mut Vec<Order>) {
        if let AcesStage::InService { plant } = *self.slots.at(token) {
            *self.slots.at(token) = AcesStage::Free;
            self.leave(now, plant, token, orders);
        }
    }

    fn depart(&mut self, now: Instant, token: Token, _outcome: Outcome, orders: &mut Vec<Order>) {
        match self.slots.take(token) {
            AcesStage::Free => {}
            AcesStage::Waiting { plant, place } => self.plants[plant].forget(place),
            AcesStage::InService { plant } => self.leave(now, plant, token, orders),
        }
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, _orders: &mut Vec<Order>) -> Instant {
        self.advance(now);
        self.plants.iter().map(PlantAdmission::next_period).min().unwrap_or(Instant::FAR)
    }

    /// The trends that were learned at the first plant, as `trends=FILE` reads them.
    fn learned(&self) -> Option<String> {
        Some(self.plants.first().map(PlantAdmission::trends).unwrap_or_default().to_string())
    }
}
