//! The comparator `aces`, the paper AC's own scheme: admission by estimated service time, a budget for each period and
//! priority, two queues. The budget's formula and the prediction are the engine's own (`crates/core/src/admission/aces/`),
//! which offers them as an expert option.
//!
//! ```text
//!            estimate (quanta)          primary --+
//!  arrive -> C_p of this period? -> admit -> |    +--> so many in service as there are workers
//!                 | no                 T     v    |
//!              reject                      backup +  (only while the primary is empty; cleared when full)
//! ```
//!
//! X. Chen, H. Chen and P. Mohapatra, "ACES: An Efficient Admission Control Scheme for QoS-Aware Web Servers". It is here to be
//! compared with: Plimsoll's own promise of a deadline decides at each arrival by the work that is unfinished then, and needs
//! neither period nor prediction. The paper's waiting times, (10), (11) and (13), are misprinted; no decision of AC uses them,
//! so they are left out.
//!
//! Priorities are those of the promises, 1 the highest (the paper counts the other way). Classes of one priority at a plant
//! share an account. Predicted rates are those of all arrivals, admitted or not; a prediction in service-seconds is the
//! predicted rate times the recent mean estimate. Exempt requests pass and are not counted, as with the other comparators.

mod admission;
mod quanta;
mod queues;
mod settings;

pub(super) use settings::AcesSettings;

use super::books::{Asking, Books, Left, Policy, Ruled, Stage, Waiting};
use super::comparator::known_unit;
use super::full_quality::FullQuality;
use super::priorities::{places, priorities_at};
use crate::workload::Workload;
use admission::{Admitted, PlantAdmission};
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Reason, Token};
use plimsoll_core::time::Instant;
use queues::Place;

/// AC in front of the plants.
pub(super) struct Aces {
    /// By class: the rank of its priority among those of its plant; 0 is the highest.
    places: Vec<usize>,
    /// Admission, by plant.
    plants: Vec<PlantAdmission>,
    arrivals: u64,
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
    ) -> Result<Books<Self>, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let rate_forecast = read_rate_forecast(settings).map_err(|wrong| vec![wrong])?;
        let mut plants = Vec::new();
        for (number, plant) in workload.plants.iter().enumerate() {
            let unit = known_unit("aces", "quantum", settings.unit, plant).map_err(|wrong| vec![wrong])?;
            let priorities = priorities_at(promises, number);
            plants.push(PlantAdmission::new(settings, unit, plant.discipline.servers(), priorities.len()));
            if number == 0 {
                plants[0].remember(&rate_forecast);
            }
        }
        Ok(Books::new(full, Aces { places: places(promises), plants, arrivals: 0 }))
    }

    /// Begins the periods that are due at each plant.
    fn advance(&mut self, now: Instant) {
        self.plants.iter_mut().for_each(|plant| plant.advance(now));
    }
}

fn read_rate_forecast(settings: &AcesSettings) -> Result<RateForecasts, String> {
    let Some(path) = &settings.rate_forecast else { return Ok(RateForecasts::default()) };
    match std::fs::read_to_string(path) {
        Ok(text) => text.parse().map_err(|wrong| format!("{}: {wrong}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RateForecasts::default()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

impl Policy for Aces {
    type Place = Place;
    type Kept = ();

    fn arrive(&mut self, now: Instant, asking: Asking<'_>, waiting: &mut Waiting<'_, Self>) -> Ruled<Self> {
        let Asking { request, class, plant, waiter, .. } = asking;
        self.advance(now);
        self.arrivals += 1;
        let place = (self.places[usize::from(class)], self.arrivals);
        match self.plants[plant].admit(now, request, place, waiter)? {
            Admitted::Starts => Ok(Stage::InService(())),
            Admitted::Waits(dropped) => {
                for dropped in dropped {
                    waiting.resume(plant, (dropped.token, dropped.level), Err(Reason::QueueFull));
                }
                Ok(Stage::Waiting(place))
            }
        }
    }

    fn forget(&mut self, plant: usize, _token: Token, place: Place) {
        self.plants[plant].forget(place);
    }

    /// Frees a worker and starts waiting requests.
    fn leave(&mut self, now: Instant, gone: Left<()>, waiting: &mut Waiting<'_, Self>) {
        self.advance(now);
        let plant = &mut self.plants[gone.plant];
        plant.end(now, gone.token);
        while let Some(waiter) = plant.start_next(now) {
            waiting.resume(gone.plant, (waiter.token, waiter.level), Ok(Stage::InService(())));
        }
    }

    fn tick(&mut self, now: Instant, _waiting: &mut Waiting<'_, Self>) -> Instant {
        self.advance(now);
        self.plants.iter().map(PlantAdmission::next_period).min().unwrap_or(Instant::FAR)
    }

    /// The rate forecast that was learned at the first plant, in the format that `rate_forecast=FILE` reads.
    fn learned(&self) -> Option<String> {
        Some(self.plants.first().map(PlantAdmission::rate_forecast).unwrap_or_default().to_string())
    }
}
