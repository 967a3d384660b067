//! The periods of a plant with admission by budget: the work that is predicted for each, and the work carried over.
//!
//! Rates are predicted from all arrivals, admitted or not. A prediction in service-seconds is the rate times the smoothed mean
//! estimate ([`RateForecast`]). Carried work is the waiting work of each priority; that of the highest priority includes the
//! residual work in service, which is ahead of all priorities.

use super::forecast::{HOURS, RateForecast, RateForecasts};
use crate::admission::aces::budget::Budget;
use crate::admission::unfinished_work::UnfinishedWork;
use crate::time::{Duration, Instant};
use alloc::{string::String, vec::Vec};

/// The periods of one plant.
#[derive(Default)]
pub(crate) struct Periods {
    name: String,
    /// By band.
    forecasts: Vec<(u16, RateForecast)>,
    /// When the present period began, and in which hour.
    began: Option<(Instant, usize)>,
    due: Instant,
    /// The number of the present period.
    number: u16,
}

/// The hour of a time of day.
fn hour(day: Duration) -> usize {
    (day.as_secs() / 3600) as usize % HOURS
}

impl Periods {
    /// Sets the plant's name. If it changes, what was learned is discarded.
    pub(crate) fn rename(&mut self, name: &str) {
        if self.name != name {
            *self = Periods { name: name.into(), ..Periods::default() };
        }
    }

    /// Ends a period if it is over, and begins the next; returns when that one ends. `day` is the time since midnight.
    pub(crate) fn turn(
        &mut self,
        now: Instant,
        day: Duration,
        unfinished: &UnfinishedWork,
        known: &RateForecasts,
    ) -> Instant {
        let Some(budget) = unfinished.budget() else {
            self.began = None;
            return Instant::FAR;
        };
        let Some((began, ended)) = self.began else {
            return self.begin(now, hour(day), budget);
        };
        if now < self.due.min(began + budget.period) {
            return self.due.min(began + budget.period);
        }
        let (seconds, begun) = (now.since(began).as_secs_f64(), hour(day));
        self.number = self.number.wrapping_add(1);
        let in_service = unfinished.residual().left(now).0 as u64;
        for (index, (band, words)) in budget.accounts().iter().enumerate() {
            let predicted =
                self.forecast(*band, known).turn(&words.take_requested(), seconds, (ended, begun));
            let carried = unfinished.waiting_us(*band) + if index == 0 { in_service } else { 0 };
            // The ended period may have been longer because of a late tick; the next one has the usual length.
            words.begin(self.number, predicted * budget.period.as_secs_f64() / seconds, carried);
        }
        self.begin(now, begun, budget)
    }

    fn begin(&mut self, now: Instant, hour: usize, budget: &Budget) -> Instant {
        // After a late tick periods stay on their grid, unless the next one would be shorter than a half.
        let due = (self.due + budget.period).max(now + budget.period / 2).min(now + budget.period);
        (self.began, self.due) = (Some((now, hour)), due);
        budget.set_next(due);
        due
    }

    fn forecast(&mut self, band: u16, known: &RateForecasts) -> &mut RateForecast {
        let index = match self.forecasts.iter().position(|(own, _)| *own == band) {
            Some(index) => index,
            None => {
                let day = known.get(&self.name, band).cloned().unwrap_or_default();
                self.forecasts.push((band, RateForecast::of(day)));
                self.forecasts.len() - 1
            }
        };
        &mut self.forecasts[index].1
    }

    /// Adds what was learned before this run. Some periods may have ended already.
    pub(crate) fn recall(&mut self, known: &RateForecasts) {
        for (band, forecast) in &mut self.forecasts {
            if let Some(day) = known.get(&self.name, *band) {
                forecast.recall(day);
            }
        }
    }

    /// Adds what was learned here.
    pub(crate) fn add_to(&self, forecasts: &mut RateForecasts) {
        for (band, forecast) in &self.forecasts {
            forecasts.set(&self.name, *band, forecast.day().clone());
        }
    }
}
