//! The learned costs of one class's requests, for the loops of all plants that serve it.

use crate::model::{CostEstimate, LinearModel, Served};
use crate::promises::{Costs, MAX_LEVELS};
use crate::telemetry::measurement::ClassMeasurement;
use core::ops::{Add, Range};

/// The most periods for which a rise counts as unconfirmed.
const UNCONFIRMED: u32 = 3;

/// The cost models of one class.
#[derive(Clone, Debug)]
pub(crate) struct ClassCosts {
    /// M.
    levels: usize,
    /// The work and the size of one request, by level.
    pub(crate) by_level: [CostEstimate; MAX_LEVELS + 1],
    /// Work [seconds of one worker] as a linear function of size, over all levels.
    pub(crate) line: LinearModel,
    /// The costs that were promised when the line was last set.
    pub(crate) promised: Option<Costs>,
    /// Whether the line has learned from any period since it was set.
    pub(crate) line_learned: bool,
    /// Whether the last period had no requests from which the line could learn.
    pub(crate) frozen: bool,
    /// Whether a cost stepped in the last period.
    pub(crate) stepped: bool,
    /// Whether a cost stepped in the last period, or fell back from a step.
    pub(crate) moved: bool,
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
            moved: false,
            unconfirmed: 0,
        }
    }

    /// Forgets what the line has learned; `line` holds the promised costs.
    pub(crate) fn set_line(&mut self, line: LinearModel) {
        (self.line, self.line_learned) = (line, false);
    }

    /// Replaces the levels, because they or their plants changed; `costs` are the known costs of levels 1..=M.
    pub(crate) fn relevel(&mut self, costs: &[CostEstimate]) {
        self.levels = costs.len();
        self.by_level = Default::default();
        self.by_level[1..=costs.len()].clone_from_slice(costs);
    }

    /// Work of one request at full quality [worker seconds]; 0 while none was seen.
    pub(crate) fn full_seconds(&self) -> f64 {
        self.by_level[self.levels].seconds().unwrap_or(0.0)
    }

    /// Forgets what was learned of a level.
    pub(crate) fn forget(&mut self, level: usize) {
        self.by_level[level] = CostEstimate::default();
    }

    /// Whether the cost of the lowest level rose by a step that may not last. A class that is quiet since then confirms
    /// nothing, so the answer is true for a few periods at most.
    pub(crate) fn rose(&self) -> bool {
        self.by_level[1].is_unconfirmed() && self.unconfirmed < UNCONFIRMED
    }

    /// Learns from a period. Most classes have no requests in most periods; from these nothing is learned.
    pub(crate) fn learn(&mut self, measured: &ClassMeasurement) {
        (self.stepped, self.moved) = (false, false);
        self.unconfirmed =
            if self.by_level[1].is_unconfirmed() { self.unconfirmed.saturating_add(1) } else { 0 };
        if !measured.active {
            self.frozen = true;
            return;
        }
        for level in 1..=self.levels {
            self.stepped |= self.by_level[level].learn(measured.served[level]);
            self.moved |= self.by_level[level].step().is_some();
        }
        self.frozen = !self.line.learn(measured.samples.as_slice().iter().copied());
        self.line_learned |= !self.frozen;
    }

    /// Carries a step of some levels' costs over to those of the plant's `levels` that had hardly any requests in the latest
    /// period: a server that has become slow is slow for all of them. Otherwise lighter pages would be given at their cost
    /// before the step. If the plant has all levels of the class (`is_all`), the line follows too, since it would take thirty
    /// periods to forget the former server. The line moves by the factor that it fails to explain of the period, at most by the
    /// step, because it does explain larger pages.
    #[cold]
    pub(crate) fn carry_step(&mut self, (levels, is_all): (Range<usize>, bool), served: &[Served]) {
        let (mut before, mut after, mut is_sure) = (0.0, 0.0, true);
        for (cost, served) in self.by_level[levels.clone()].iter().zip(&served[levels.clone()]) {
            if let (Some(factor), Some(seconds)) = (cost.step(), cost.seconds()) {
                after += served.requests * seconds;
                before += served.requests * seconds / factor;
                is_sure &= !cost.is_unconfirmed();
            }
        }
        if before > 0.0 {
            self.follow_step((levels, is_all), served, (after / before, is_sure));
        }
    }

    fn follow_step(
        &mut self,
        (levels, is_all): (Range<usize>, bool),
        served: &[Served],
        (factor, is_sure): (f64, bool),
    ) {
        for (cost, served) in self.by_level[levels.clone()].iter_mut().zip(&served[levels.clone()]) {
            if cost.hardly_knows(served.requests) {
                cost.follow_step(factor, is_sure);
            }
        }
        let all = served[levels].iter().copied().fold(Served::default(), Served::add);
        let (a, b) = self.line.costs();
        let expected = a * all.requests + b * all.bytes;
        if is_all && expected > 0.0 {
            let own = all.work_seconds / expected;
            self.line.scale(own.clamp(factor.min(1.0), factor.max(1.0)));
        }
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

    /// A class has two levels: a full page takes 10 ms and has 1,000 bytes, a light page half of both. Then comes one period
    /// with full pages alone, which take `times` times as long and have `sizes` times as many bytes.
    fn after(times: f64, sizes: f64) -> ClassCosts {
        let mut costs = ClassCosts::new(LinearModel::default(), 2);
        let mut measured = ClassMeasurement { active: true, ..ClassMeasurement::default() };
        let period = |costs: &mut ClassCosts, measured: &mut ClassMeasurement, light: f64, full: Served| {
            let part = |n: f64| Served { requests: n, work_seconds: 0.005 * n, bytes: 500.0 * n };
            (measured.served[1], measured.served[2]) = (part(light), full);
            measured.samples.clear();
            measured.served[1..=2].iter().for_each(|served| measured.samples.push(*served));
            costs.learn(measured);
            costs.carry_step((1..3, true), &measured.served);
        };
        for n in [90.0, 110.0].into_iter().cycle().take(20) {
            let full = Served { requests: n, work_seconds: 0.01 * n, bytes: 1000.0 * n };
            period(&mut costs, &mut measured, n, full);
        }
        let full = Served { requests: 100.0, work_seconds: times, bytes: 1e5 * sizes };
        period(&mut costs, &mut measured, 0.0, full);
        costs
    }

    #[test]
    fn what_was_not_served_becomes_dearer_with_what_was() {
        let slow = after(2.5, 1.0);
        let light = slow.by_level[1].seconds().expect("seen before");
        let (a, b) = slow.line.costs();
        assert!((light - 0.0125).abs() < 1e-4, "{light}");
        assert!((a + 1000.0 * b - 0.025).abs() < 1e-4, "{a} {b}");
        // The step may not last.
        assert!(slow.rose());
    }

    #[test]
    fn larger_pages_do_not_change_what_the_line_says() {
        let (a, b) = after(2.5, 2.5).line.costs();
        assert!((a + 1000.0 * b - 0.01).abs() < 1e-3, "{a} {b}");
    }
}
