//! From the allocation to the actuators: the service level of each class, corrected for what its clients ask.

use super::view::{ClassView, PlantView};
use crate::actuator::fraction_calibration::FractionCalibration;
use crate::control::allocation::Allocation;
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// The service levels of one plant's classes.
#[derive(Debug)]
pub(crate) struct Levels {
    /// By class of the view: the share of requests behind a fraction of its clients.
    shares: Vec<FractionCalibration>,
    /// The number and the service level of each class that the loop moves, in the view's order.
    set: Vec<(usize, f64)>,
}

/// The classes whose service level the loop moves.
fn is_moved(class: &ClassView) -> bool {
    class.owns_actuator && !class.exempt
}

/// Room for the levels of all classes that the loop moves.
fn highest(plant: &PlantView) -> Vec<(usize, f64)> {
    let moved = plant.classes.iter().filter(|class| is_moved(class));
    moved.map(|class| (class.class, class.top as f64)).collect()
}

impl Levels {
    pub(crate) fn new(plant: &PlantView) -> Self {
        Levels {
            shares: alloc::vec![FractionCalibration::default(); plant.classes.len()],
            set: highest(plant),
        }
    }

    /// Begins with the classes of a new view. What was learned of a class whose levels stay is kept.
    pub(crate) fn reload(&mut self, before: &PlantView, plant: &PlantView) {
        let kept = plant.classes.iter().map(|class| {
            let mut known =
                before.classes.iter().zip(&self.shares).filter(|(old, _)| old.class == class.class);
            let known = known.next().filter(|(old, _)| old.top == class.top && old.here == class.here);
            known.map_or_else(FractionCalibration::default, |(_, share)| share.clone())
        });
        self.shares = kept.collect();
        self.set = highest(plant);
    }

    /// The levels that apply the allocation.
    pub(crate) fn set(
        &mut self,
        plant: &PlantView,
        allocation: &Allocation,
        measured: &Measurement<'_>,
    ) -> &[(usize, f64)] {
        let classes = plant.classes.iter().zip(&mut self.shares).filter(|(class, _)| is_moved(class));
        for ((class, share), (_, level)) in classes.zip(&mut self.set) {
            let top = class.top as f64;
            let own = &measured.classes[class.class];
            share.learn(if own.active { &own.window.decided[..=class.top] } else { &[] });
            *level = share.service_level(allocation.level_of(plant, class).min(top), top);
        }
        &self.set
    }

    /// Lets what was learned fade: nothing came for so many periods.
    pub(crate) fn rest(&mut self, periods: u32) {
        self.shares.iter_mut().for_each(|share| share.idle(periods));
    }
}
