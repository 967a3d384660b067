//! Measurements: what one period showed of a class and of a plant, made from differences of counter snapshots.

use crate::actuator::levels_by_plant::LevelsByPlant;
use crate::model::Served;
use crate::promises::MAX_LEVELS;
use crate::telemetry::counters::BINS;
use crate::telemetry::snapshot::{ClassSnapshot, PlantSnapshot};

/// What one period showed of one class.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassMeasurement {
    /// R: arrivals per second now, followed through noise and steps.
    pub(crate) rate: f64,
    /// The rate rose by a step in the last sample, and no second one has confirmed it.
    pub(crate) rose: bool,
    /// The rate stepped since the last period's end.
    pub(crate) stepped: bool,
    /// Whether anything happened.
    pub(crate) active: bool,
    /// The differences of its counters.
    pub(crate) window: ClassSnapshot,
    /// What was released, by level.
    pub(crate) served: [Served; MAX_LEVELS + 1],
    /// What was released by level and size bin, where there was any: the samples that a linear model learns from.
    pub(crate) samples: Samples,
}

/// A list in place, without memory of its own: of hundreds of classes most have one sample or two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    length: usize,
    list: [[Served; BINS]; MAX_LEVELS],
}

impl Samples {
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Adds the next; there is room for one of each level and size bin.
    pub(crate) fn push(&mut self, served: Served) {
        self.list.as_flattened_mut()[self.length] = served;
        self.length += 1;
    }

    pub(crate) fn as_slice(&self) -> &[Served] {
        &self.list.as_flattened()[..self.length]
    }
}

/// Everything that one period showed at one plant, and how the plant stands at the period's end.
#[derive(Debug)]
pub(crate) struct Measurement<'a> {
    /// The period's length.
    pub(crate) seconds: f64,
    /// T, as promised.
    pub(crate) nominal_seconds: f64,
    /// By class number.
    pub(crate) classes: &'a [ClassMeasurement],
    /// By class number: its service levels, which say what plants above pass down.
    pub(crate) levels_by_plant: &'a [LevelsByPlant],
    /// What was counted of the plant.
    pub(crate) counted: PlantSnapshot,
    /// The mean utilization that the plant reported.
    pub(crate) reported: Option<f64>,
    /// Requests in service at the end.
    pub(crate) in_service: u32,
    /// Requests that wait at the end, by class number.
    pub(crate) waiting: &'a [u32],
    /// s, as promised or found, of the plant's servers in use.
    pub(crate) workers: u32,
    /// How many requests the plant works on at once: its workers, or fewer while the worker search tries fewer.
    pub(crate) serving: u32,
    /// The time that a request recently took of a worker, without its wait in the server (s); `None` before the first release.
    pub(crate) service_seconds: Option<f64>,
}
