//! The state from which the loop of a plant goes on after a restart: its service levels and the correction of its law.

use super::UtilizationLoop;
use crate::actuator::levels_by_plant::LevelsByPlant;
use crate::control::KnownContract;
use alloc::vec::Vec;

/// The state of a plant's loop, as plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoopState {
    /// m of the plant as a whole.
    pub(crate) level: f64,
    pub(crate) bias: f64,
}

/// The state of one class in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClassLoopState {
    pub(crate) class: usize,
    /// The number of its plant.
    pub(crate) plant: usize,
    /// m of the class's group, or of the plant if it is not shared.
    pub(crate) allocated: f64,
    /// ln of the ratio of the part of the requests at the higher level to the fraction of the clients there.
    pub(crate) calibration: f64,
    /// m as it was set for requests.
    pub(crate) set: f64,
}

impl UtilizationLoop {
    pub(crate) fn state(&self) -> LoopState {
        LoopState { level: self.allocation.level, bias: self.law.bias() }
    }

    /// The plans of the contracts at the plant.
    pub(crate) fn known_contracts(&self) -> Vec<KnownContract> {
        self.contracts.known(&self.view, &self.demand)
    }

    /// Goes on from these plans unless one of their numbers is impossible; returns whether it does.
    pub(crate) fn restore_contracts(&mut self, known: &[KnownContract]) -> bool {
        let possible = known.iter().all(KnownContract::is_possible);
        if possible {
            self.contracts.restore(&self.view, known.to_vec());
        }
        possible
    }

    /// The state of each class whose service level the loop moves at the plant of this number; `applied` are the service levels
    /// as applied, by class number.
    pub(crate) fn class_states(&self, plant: usize, applied: &[LevelsByPlant]) -> Vec<ClassLoopState> {
        let owned = self.view.classes.iter().enumerate();
        let owned = owned.filter(|(_, class)| !class.exempt);
        let state = |(index, class): (usize, &super::view::ClassView)| ClassLoopState {
            class: class.class,
            allocated: self.allocation.wanted(&self.view, class),
            calibration: self.fractions.calibration(index),
            plant,
            set: applied[class.class].at(plant).unwrap_or(class.top as f64),
        };
        owned.map(state).collect()
    }

    /// Goes on from a bias, and from the service levels if they still hold.
    pub(crate) fn restore(&mut self, state: LoopState, classes: Option<&[ClassLoopState]>) {
        self.law.restore(state.bias);
        self.status.bias = state.bias;
        let Some(classes) = classes else { return };
        self.allocation.restore(state.level.clamp(0.0, self.view.top));
        self.status.service_level = self.allocation.level;
        let mut lowest = self.allocation.level;
        for own in classes {
            let index = self.view.classes.iter().position(|class| class.class == own.class);
            let Some(index) = index else { continue };
            let class = &self.view.classes[index];
            if self.view.is_shared {
                self.allocation.set_group_level(&self.view, class, own.allocated.max(0.0));
                lowest = lowest.min(own.allocated);
            }
            self.fractions.restore(index, own.calibration, own.set, self.view.top);
        }
        self.allocation.rejects = lowest < 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::registry::Registry;
    use crate::promises::{Plant, Promises, Site};

    #[test]
    fn the_bias_is_handed_over_as_the_law_has_it_after_idle_periods() {
        let promises = Promises::of(Plant::new("server", 8), Site::new("site", &["light", "full"]));
        let registry = Registry::default().next(&promises).expect("room");
        let mut utilization = UtilizationLoop::new(&registry, 0);
        utilization.restore(LoopState { level: 1.0, bias: -0.1 }, None);
        assert_eq!(utilization.state().bias.to_bits(), (-0.1_f64).to_bits());
        utilization.end_idle(20);
        assert!((-0.05..0.0).contains(&utilization.state().bias), "{:?}", utilization.state());
    }
}
