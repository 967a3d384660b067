//! The loop of admission by budget (AC): ends the budget periods of each plant.
//!
//! *Observes*: the work that was requested in the period, and the work carried over. *Law*: the formula and the rate forecast
//! of [`aces`](crate::admission::aces). *Gives out*: the budgets of the next period, in words that admission shares.

use crate::admission::aces::forecast::RateForecasts;
use crate::admission::aces::periods::Periods;
use crate::admission::unfinished_work::UnfinishedWork;
use crate::control::{Due, Loop};
use crate::promises::Admission;
use crate::promises::registry::Registry;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// The loop, for all plants.
#[derive(Default)]
pub(crate) struct BudgetLoop {
    /// By plant.
    periods: Vec<Periods>,
    /// Rate forecasts that were restored, and those of plants that are gone.
    known: RateForecasts,
    due: Due,
}

/// The observations of a step.
pub(crate) struct BudgetInput<'a> {
    /// The time since the Unix epoch, UTC.
    pub(crate) unix_time: Duration,
    /// The plants with deadlines to keep, by number.
    pub(crate) unfinished: &'a mut dyn Iterator<Item = (usize, &'a UnfinishedWork)>,
}

impl Loop for BudgetLoop {
    type Inputs<'a> = BudgetInput<'a>;
    type Outputs<'a> = ();
    type Promises<'a> = &'a Registry;

    fn due(&self) -> Due {
        self.due
    }

    fn step(&mut self, now: Instant, BudgetInput { unix_time, unfinished }: BudgetInput<'_>) {
        let BudgetLoop { periods, known, .. } = self;
        let ends = unfinished.map(|(plant, own)| periods[plant].turn(now, unix_time, own, known));
        self.due = ends.min().map_or(Due::Never, Due::At);
    }

    fn reload(&mut self, registry: &Registry) {
        self.known = self.rate_forecasts();
        self.periods.resize_with(registry.promises.plants.len(), Periods::default);
        for (periods, plant) in self.periods.iter_mut().zip(&registry.promises.plants) {
            periods.rename(&plant.name);
        }
        let runs = registry.promises.control.admission == Admission::Budget;
        self.due = if runs { Due::At(Instant::ZERO) } else { Due::Never };
    }
}

impl BudgetLoop {
    /// The learned forecasts of how rates go on, by the hour of day.
    pub(crate) fn rate_forecasts(&self) -> RateForecasts {
        let mut forecasts = self.known.clone();
        self.periods.iter().for_each(|periods| periods.add_to(&mut forecasts));
        forecasts
    }

    /// Takes over forecasts that were learned before.
    pub(crate) fn restore_rate_forecasts(&mut self, known: RateForecasts) {
        self.periods.iter_mut().for_each(|periods| periods.recall(&known));
        self.known.extend(known);
    }
}
