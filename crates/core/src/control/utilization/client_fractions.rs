//! The fraction of clients that sends the allocated share of requests: the last correction of a class's service level.
//!
//! The allocation is a share of the requests, and m between two levels is a fraction of the clients. Clients differ in how many
//! requests they send, so the fraction is moved until the share of the requests is as allocated.

use super::view::{ClassView, PlantView};
use crate::actuator::fraction_calibration::FractionCalibration;
use crate::control::allocation::Allocation;
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// The calibrated fractions, and so the service levels, of one plant's classes.
#[derive(Debug)]
pub(crate) struct ClientFractions {
    /// By class of the view: the share of requests behind a fraction of its clients.
    calibrations: Vec<FractionCalibration>,
    /// The service level of each class that the loop moves, in the view's order.
    set: Vec<ClassLevel>,
}

/// The service level of one class at one plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClassLevel {
    /// The class's number.
    pub(crate) class: usize,
    pub(crate) m: f64,
    /// The part of the class's requests that has none of the levels here; 0 if this plant serves all levels.
    pub(crate) passes: f64,
}

/// The classes whose service level the loop moves.
fn is_moved(class: &ClassView) -> bool {
    !class.exempt
}

/// Room for the levels of all classes that the loop moves.
fn highest(plant: &PlantView) -> Vec<ClassLevel> {
    let moved = plant.classes.iter().filter(|class| is_moved(class));
    moved.map(|class| ClassLevel { class: class.class, m: class.top as f64, passes: 0.0 }).collect()
}

impl ClientFractions {
    pub(crate) fn new(plant: &PlantView) -> Self {
        ClientFractions {
            calibrations: alloc::vec![FractionCalibration::default(); plant.classes.len()],
            set: highest(plant),
        }
    }

    /// Takes the classes of a new view; a class whose levels stay keeps its calibration.
    pub(crate) fn reload(&mut self, before: &PlantView, plant: &PlantView) {
        let kept = plant.classes.iter().map(|class| {
            let mut known =
                before.classes.iter().zip(&self.calibrations).filter(|(old, _)| old.class == class.class);
            let known = known.next().filter(|(old, _)| old.top == class.top && old.base == class.base);
            known.map_or_else(FractionCalibration::default, |(_, share)| share.clone())
        });
        self.calibrations = kept.collect();
        self.set = highest(plant);
    }

    /// The calibration of the service level of the class with this index in the view.
    pub(super) fn calibration(&self, index: usize) -> f64 {
        self.calibrations[index].log_ratio()
    }

    /// Goes on from the calibration of a class of the view, and from the service level that was set.
    pub(super) fn restore(&mut self, index: usize, calibration: f64, set: f64, top: f64) {
        self.calibrations[index].restore(calibration, set, top);
    }

    /// The levels that apply the allocation.
    pub(crate) fn set(
        &mut self,
        plant: &PlantView,
        allocation: &Allocation,
        measured: &Measurement<'_>,
    ) -> &[ClassLevel] {
        let classes = plant.classes.iter().zip(&mut self.calibrations).filter(|(class, _)| is_moved(class));
        for ((class, share), set) in classes.zip(&mut self.set) {
            let top = class.top as f64;
            let own = &measured.classes[class.class];
            share.learn(if own.active { &own.window.decided[..=class.top] } else { &[] });
            let wanted = allocation.level_of(plant, class).clamp(class.least, top);
            set.m = share.service_level(wanted, top);
            if !class.is_all_here {
                set.passes = 1.0 - (wanted - class.base as f64).clamp(0.0, 1.0);
            }
        }
        &self.set
    }

    /// Lets the calibrations fade over this number of idle periods.
    pub(crate) fn idle(&mut self, periods: u32) {
        self.calibrations.iter_mut().for_each(|share| share.idle(periods));
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::by_hand::{arrivals, class, measured, plant};
    use super::*;

    #[test]
    fn each_class_that_the_loop_moves_has_its_level_within_its_own_range() {
        let (mut exempt, mut upper) = (class(1, 3), class(3, 3));
        (exempt.exempt, upper.base, upper.least, upper.is_all_here) = (true, 2, 2.0, false);
        let mut own = plant(alloc::vec![class(0, 3), exempt, class(2, 1), upper]);
        own.is_shared = false;
        let mut allocation = Allocation::top(&own);
        allocation.level = 1.5;
        let classes = [0; 4].map(|_| arrivals(0.0, 1));
        let mut fractions = ClientFractions::new(&own);
        let set = fractions.set(&own, &allocation, &measured(&classes, &[0; 4]));
        let set: Vec<_> = set.iter().map(|set| (set.class, set.m, set.passes)).collect();
        assert_eq!(set, [(0, 1.5, 0.0), (2, 1.0, 0.0), (3, 2.0, 1.0)]);
    }

    #[test]
    fn clients_that_ask_for_much_move_the_fraction_and_a_reload_keeps_it() {
        let own = plant(alloc::vec![class(0, 1)]);
        let mut allocation = Allocation::top(&own);
        allocation.level = 0.5;
        let mut fractions = ClientFractions::new(&own);
        // Half of the clients were admitted, and sent nine tenths of the requests.
        let mut classes = [arrivals(1000.0, 1)];
        classes[0].window.decided[..2].copy_from_slice(&[100, 900]);
        let mut m = 0.5;
        for _ in 0..3 {
            m = fractions.set(&own, &allocation, &measured(&classes, &[0]))[0].m;
        }
        assert!(m < 0.45, "{m}");
        let quiet = [arrivals(0.0, 1)];
        let mut changed = ClientFractions::new(&own);
        changed.calibrations.clone_from(&fractions.calibrations);
        fractions.reload(&own, &own);
        let kept = fractions.set(&own, &allocation, &measured(&quiet, &[0]))[0].m;
        assert!((m..0.5).contains(&kept), "{kept}");
        changed.reload(&own, &plant(alloc::vec![class(0, 2)]));
        assert_eq!(
            changed.calibrations[0].clone().service_level(0.5, 2.0),
            0.5,
            "fractions of other levels are learned anew"
        );
    }
}
