//! What was learned of the requests of one class, for the loops of all plants that serve it.

use crate::model::{CostEstimate, LinearModel};
use crate::promises::{Costs, MAX_LEVELS};
use crate::telemetry::measurement::ClassMeasurement;

/// The most periods for which a rise counts as unconfirmed.
const UNCONFIRMED: u32 = 3;

/// The cost models of one class.
#[derive(Clone, Debug)]
pub(crate) struct ClassCosts {
    /// M.
    levels: usize,
    /// One request's work and size, by level.
    pub(crate) by_level: [CostEstimate; MAX_LEVELS + 1],
    /// Work [seconds of one worker] as a linear function of size, over all levels.
    pub(crate) line: LinearModel,
    /// The costs that were promised when the line was last set.
    pub(crate) promised: Option<Costs>,
    /// Whether the line holds more than what was promised.
    pub(crate) line_learned: bool,
    /// Whether the last period served nothing that the line could be learned from.
    pub(crate) frozen: bool,
    /// Whether a cost stepped in the last period.
    pub(crate) stepped: bool,
    /// For how many periods the rise of the lowest level's cost has not been confirmed.
    unconfirmed: u32,
}

impl ClassCosts {
    pub(crate) fn new(line: LinearModel, levels: usize) -> Self {
        ClassCosts {
            levels,
            by_level: Default::default(),
            line,
            promised: None,
            line_learned: false,
            frozen: true,
            stepped: false,
            unconfirmed: 0,
        }
    }

    /// Forgets what the line has learned; `line` is what was promised.
    pub(crate) fn set_line(&mut self, line: LinearModel) {
        (self.line, self.line_learned) = (line, false);
    }

    /// Replaces the levels, because they or their plants changed; `costs` are what is known of them at levels 1..=M.
    pub(crate) fn relevel(&mut self, costs: &[CostEstimate]) {
        self.levels = costs.len();
        self.by_level = Default::default();
        self.by_level[1..=costs.len()].clone_from_slice(costs);
    }

    /// Forgets what was learned of a level.
    pub(crate) fn forget(&mut self, level: usize) {
        self.by_level[level] = CostEstimate::default();
    }

    /// Whether the cost of the lowest level rose by a step that may be a moment's. A class that is quiet since then confirms
    /// nothing, so it lasts for a few periods at most.
    pub(crate) fn rose(&self) -> bool {
        self.by_level[1].is_unconfirmed() && self.unconfirmed < UNCONFIRMED
    }

    /// Learns from a period. From a period without requests, as most classes have most of the time, nothing is learned.
    pub(crate) fn learn(&mut self, measured: &ClassMeasurement) {
        self.stepped = false;
        self.unconfirmed =
            if self.by_level[1].is_unconfirmed() { self.unconfirmed.saturating_add(1) } else { 0 };
        if !measured.active {
            self.frozen = true;
            return;
        }
        for level in 1..=self.levels {
            self.stepped |= self.by_level[level].learn(measured.served[level]);
        }
        self.frozen = !self.line.learn(measured.samples.as_slice().iter().copied());
        self.line_learned |= !self.frozen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Served;

    #[test]
    fn a_period_teaches_each_level_and_the_line_and_an_idle_one_teaches_nothing() {
        let mut costs = ClassCosts::new(LinearModel::default(), 2);
        let mut measured = ClassMeasurement { active: true, ..ClassMeasurement::default() };
        measured.served[2] = Served { requests: 10.0, work_seconds: 0.2, bytes: 1e4 };
        measured.samples.push(measured.served[2]);
        costs.learn(&measured);
        assert!(costs.stepped && !costs.frozen);
        assert!((costs.by_level[2].seconds().expect("seen") - 0.02).abs() < 1e-12);
        assert_eq!(costs.by_level[1].seconds(), None);
        costs.learn(&ClassMeasurement::default());
        assert!(!costs.stepped && costs.frozen && costs.by_level[2].seconds().is_some());
    }
}
