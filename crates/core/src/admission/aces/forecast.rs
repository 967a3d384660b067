//! The forecast of the next period's rate, by a Markov chain of three states for each hour of the day (AC, section
//! 4.1).
//!
//! From one period to the next a rate goes up, stays, or falls; it stays if it changes by at most delta / 2 = 5 %, so
//! each step is taken as the nearest of -delta, 0, +delta. Each hour of the day has its own matrix, which counts how
//! often each step followed each other step. With p the row of the last step, `predicted = rate (1 + delta (p_up -
//! p_down))`, delta = 10 %.
//!
//! Eq. 6, `[lambda((k-1)T)] Q(kT)`, becomes this with the three states of the paper's experiment. The equation has a state
//! vector of rates and the experiment three probabilities; the experiment is followed, since its figures are to be repeated.
//! The rate is the smoothed one, not the last: where few requests come in a period, the last count is chance, and after a
//! period without any the forecast would be 0. Until a row has been seen [`TRUSTED`] times, the prediction is the smoothed
//! rate.
//!
//! Q is adjusted by the difference between what was predicted and what was measured, as the paper says it may be: a prediction
//! after a step is multiplied by the ratio of all rates that followed such predictions to the predictions themselves. So after
//! a step that was mostly chance the rate is predicted to fall back. On two recordings of counts by minute the error is then 12
//! % and 1 % below that of the last value. The error of the smoothed rate alone is as small on the first recording, and 0.3 %
//! larger on the second. Matrices for each hour of the *week* predict neither better than those of the day, so there are none
//! (`crates/sim/tests/prediction.rs`).
//!
//! The counts are saved as text, for people and for the next run. A full row is halved, so that last month has more weight
//! than last year.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};
use core::str::FromStr;

/// delta, the relative size of a step.
const STEP: f64 = 0.1;
/// A row is used once it was seen this often.
const TRUSTED: u32 = 30;
/// The weight of a new rate in the smoothed one.
const SMOOTHING: f64 = 0.5;
/// What the adjustment keeps of earlier periods at each new one: it covers a thousand periods, in which chance is small.
const KEEP: f64 = 0.999;
/// An adjustment is at most this, and at least one over this. After hours without requests nearly nothing is kept, and the
/// first period of requests, which nothing predicted, would make any ratio.
const MOST_ADJUSTED: f64 = 2.0;
/// The weight of a period's mean estimate in the smoothed mean.
const LATE: f64 = 0.2;
/// A row is full at this count.
const FULL: u32 = 100_000;
/// Hours of a day.
pub const HOURS: usize = 24;

/// The step of a rate from one period to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Up,
    Same,
    Down,
}

impl Step {
    fn of(before: f64, after: f64) -> Step {
        if after > before * (1.0 + STEP / 2.0) {
            Step::Up
        } else if after < before * (1.0 - STEP / 2.0) {
            Step::Down
        } else {
            Step::Same
        }
    }
}

/// How often each step (column) followed each step (row).
type Matrix = [[u32; 3]; 3];

/// Halves a full row.
fn halve(row: &mut [u32; 3]) {
    if row.iter().sum::<u32>() >= FULL {
        row.iter_mut().for_each(|count| *count /= 2);
    }
}

/// The steps of one priority's rate that were counted, by hour of the day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day([Matrix; HOURS]);

impl Day {
    fn count(&mut self, hour: usize, from: Step, to: Step) {
        let row = &mut self.0[hour % HOURS][from as usize];
        row[to as usize] += 1;
        halve(row);
    }

    /// Adds another's counts.
    fn add(&mut self, other: &Day) {
        for (row, more) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            row.iter_mut().zip(more).for_each(|(count, more)| *count += more);
            halve(row);
        }
    }

    /// p_up - p_down after this step; `None` until the row is trusted.
    fn drift(&self, hour: usize, from: Step) -> Option<f64> {
        let [up, same, down] = self.0[hour % HOURS][from as usize];
        let seen = up + same + down;
        (seen >= TRUSTED).then(|| (f64::from(up) - f64::from(down)) / f64::from(seen))
    }
}

/// The ratio of all measured rates to all predicted ones, so that predictions are right on average.
#[derive(Clone, Copy, Debug, Default)]
struct Adjustment {
    measured: f64,
    predicted: f64,
    seen: u32,
}

impl Adjustment {
    fn learn(&mut self, predicted: f64, measured: f64) {
        self.measured = KEEP * self.measured + measured;
        self.predicted = KEEP * self.predicted + predicted;
        self.seen = self.seen.saturating_add(1);
    }

    fn ratio(&self) -> f64 {
        let ratio = self.measured / self.predicted;
        let is_known = self.seen >= TRUSTED && self.predicted > 0.0;
        if is_known { ratio.clamp(MOST_ADJUSTED.recip(), MOST_ADJUSTED) } else { 1.0 }
    }
}

/// Predicts one priority's rate.
#[derive(Clone, Debug, Default)]
struct RatePredictor {
    day: Day,
    /// The rate of the last period, and the step to it.
    last: Option<(f64, Step)>,
    smoothed: Option<f64>,
    /// By the step before the prediction.
    adjustments: [Adjustment; 3],
}

impl RatePredictor {
    /// Learns the rate of a period that ended in this hour.
    fn learn(&mut self, hour: usize, rate: f64) {
        let step = match self.last {
            Some((before, last_step)) => {
                if let Some(predicted) = self.by_chain(hour) {
                    self.adjustments[last_step as usize].learn(predicted, rate);
                }
                let step = Step::of(before, rate);
                self.day.count(hour, last_step, step);
                step
            }
            None => Step::Same,
        };
        self.last = Some((rate, step));
        let before = self.smoothed.unwrap_or(rate);
        self.smoothed = Some(before + SMOOTHING * (rate - before));
    }

    /// The rate of the period that begins in this hour.
    fn predict(&self, hour: usize) -> f64 {
        let adjusted = |rate| {
            let step = self.last.map_or(Step::Same, |(_, step)| step);
            rate * self.adjustments[step as usize].ratio()
        };
        self.by_chain(hour).map(adjusted).or(self.smoothed).unwrap_or(0.0)
    }

    /// The rate by the matrix alone; `None` until its row is trusted.
    fn by_chain(&self, hour: usize) -> Option<f64> {
        let (_, step) = self.last?;
        Some(self.smoothed? * (1.0 + STEP * self.day.drift(hour, step)?))
    }
}

/// Forecasts the work that one priority will request: its rate, times the mean estimate of one request.
#[derive(Clone, Debug, Default)]
pub struct RateForecast {
    trend: RatePredictor,
    mean_seconds: Option<f64>,
}

impl RateForecast {
    /// A forecast that continues from earlier days.
    pub fn of(day: Day) -> Self {
        RateForecast { trend: RatePredictor { day, ..RatePredictor::default() }, mean_seconds: None }
    }

    /// Adds what was learned before this run, if that becomes known after the run has begun.
    pub(crate) fn recall(&mut self, day: &Day) {
        self.trend.day.add(day);
    }

    /// The steps counted so far, by hour of the day; a later run continues from them ([`RateForecast::of`]).
    pub fn day(&self) -> &Day {
        &self.trend.day
    }

    /// Ends a period of `seconds` in one hour, and begins the next in another. Learns the work that was requested,
    /// admitted or not; returns the work of the next period, if it is as long (service-seconds).
    pub fn turn(&mut self, requested: &RequestedWork, seconds: f64, (ended, begun): (usize, usize)) -> f64 {
        self.trend.learn(ended, requested.requests as f64 / seconds);
        if requested.requests > 0 {
            let mean = requested.seconds / requested.requests as f64;
            let before = self.mean_seconds.unwrap_or(mean);
            self.mean_seconds = Some(before + LATE * (mean - before));
        }
        self.trend.predict(begun) * seconds * self.mean_seconds.unwrap_or(0.0)
    }
}

/// The work that was requested in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestedWork {
    /// The number of requests.
    pub requests: u64,
    /// The requests' estimated service time together (service-seconds).
    pub seconds: f64,
}

/// The steps of the rates of all priorities at all plants, as they are saved: by the plant's name and the rank, 0 the
/// highest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateForecasts(BTreeMap<(String, u16), Day>);

impl RateForecasts {
    /// The steps that were counted of one rank.
    pub fn get(&self, plant: &str, rank: u16) -> Option<&Day> {
        self.0.get(&(plant.to_string(), rank))
    }

    /// Takes over all that `others` know, in place of what was known of the same plants and ranks.
    pub(crate) fn extend(&mut self, others: RateForecasts) {
        self.0.extend(others.0);
    }

    /// Sets what was learned of one rank.
    pub fn set(&mut self, plant: &str, rank: u16, day: Day) {
        self.0.insert((plant.to_string(), rank), day);
    }
}

const HEAD: &str = "# Trends of request rates: how often a rate went up, stayed or fell in the next period.\n\
                    # Ranks: 0 is the highest. A gateway has 0 for exempt requests, 513 + priority for those inside a contract,\n\
                    # 769 + priority for others of sites with a contract, 1025 + priority for all else. Hours are UTC.\n\
                    # hour rank  after up: up same down  after same: up same down  after down: up same down\n";

impl fmt::Display for RateForecasts {
    /// Writes a line for each hour and rank with counts, below a line that names the plant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        let mut named = "";
        for ((plant, rank), day) in &self.0 {
            if plant != named {
                writeln!(f, "{PLANT} {plant}")?;
                named = plant;
            }
            for (hour, matrix) in day.0.iter().enumerate().filter(|(_, matrix)| **matrix != Matrix::default())
            {
                write!(f, "{hour} {rank}")?;
                for row in matrix {
                    write!(f, "  {} {} {}", row[0], row[1], row[2])?;
                }
                f.write_char('\n')?;
            }
        }
        Ok(())
    }
}

/// The first word of a line that names a plant.
const PLANT: &str = "upstream";
/// Ranks lie below this.
const RANKS: u32 = crate::scheduling::rank::BANDS as u32;

impl FromStr for RateForecasts {
    type Err = String;

    fn from_str(text: &str) -> Result<RateForecasts, String> {
        let mut forecasts = RateForecasts::default();
        let mut plant = String::new();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let mut words = line.split_whitespace();
            if let (Some(PLANT), Some(name), None) = (words.next(), words.next(), words.next()) {
                plant = name.to_string();
                continue;
            }
            let Some((hour, rank, matrix)) = read(line) else {
                return Err(format!(
                    "line {}: \"{line}\" is neither `{PLANT} NAME` nor an hour below 24, a rank below {RANKS} and nine \
                     counts below {FULL}; remove the file to learn anew",
                    number + 1
                ));
            };
            forecasts.0.entry((plant.clone(), rank)).or_default().0[hour] = matrix;
        }
        Ok(forecasts)
    }
}

/// Reads one line of counts.
fn read(line: &str) -> Option<(usize, u16, Matrix)> {
    let mut numbers = line.split_whitespace().map(str::parse::<u32>);
    let mut next = |below: u32| numbers.next()?.ok().filter(|number| *number < below);
    let (hour, rank) = (next(HOURS as u32)?, next(RANKS)?);
    let mut matrix = Matrix::default();
    for cell in matrix.iter_mut().flatten() {
        *cell = next(FULL)?;
    }
    // A full row would have been halved.
    let rows_fit = matrix.iter().all(|row| row.iter().sum::<u32>() < FULL);
    (numbers.next().is_none() && rows_fit).then_some((hour as usize, rank as u16, matrix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_cold_start_is_smoothed() {
        let mut trend = RatePredictor::default();
        assert_eq!(trend.predict(0), 0.0);
        trend.learn(0, 100.0);
        assert_eq!(trend.predict(0), 100.0);
        trend.learn(0, 200.0);
        assert_eq!(trend.predict(0), 150.0);
    }

    #[test]
    fn a_rate_that_keeps_rising_is_predicted_to_rise() {
        let mut trend = RatePredictor::default();
        let mut rate = 1.0;
        for _ in 0..3 * TRUSTED {
            rate *= 1.2;
            trend.learn(3, rate);
        }
        assert!((trend.predict(3) / (1.2 * rate) - 1.0).abs() < 0.02, "{} after {rate}", trend.predict(3));
        // Another hour has a matrix of its own, which has learned nothing.
        assert!(trend.predict(4) < rate);
    }

    #[test]
    fn the_first_requests_after_quiet_hours_are_no_forecast_of_thousands() {
        let mut trend = RatePredictor::default();
        (0..8 * TRUSTED).for_each(|_| trend.learn(0, 100.0));
        (0..10_000).for_each(|_| trend.learn(0, 0.0));
        for period in 0..10 {
            trend.learn(0, 100.0);
            let predicted = trend.predict(0);
            assert!((50.0..=220.0).contains(&predicted), "{predicted} after {period} periods of 100");
        }
    }

    #[test]
    fn what_swings_is_predicted_to_swing_back() {
        let mut trend = RatePredictor::default();
        for turn in 0..8 * TRUSTED {
            trend.learn(0, if turn % 2 == 0 { 100.0 } else { 120.0 });
        }
        assert!((trend.predict(0) - 100.0).abs() < 1.0, "{}", trend.predict(0));
        trend.learn(0, 100.0);
        assert!((trend.predict(0) - 120.0).abs() < 1.0, "{}", trend.predict(0));
    }

    #[test]
    fn a_period_without_requests_is_no_forecast_of_none() {
        let (mut trend, mut random) = (RatePredictor::default(), Random::new(5));
        for _ in 0..20 * TRUSTED {
            trend.learn(0, f64::from(u8::from(random.uniform() < 0.5)));
        }
        trend.learn(0, 1.0);
        trend.learn(0, 0.0);
        assert!(trend.predict(0) > 0.1, "{}", trend.predict(0));
    }

    #[test]
    fn what_swings_further_than_a_step_is_learned_from_the_error() {
        let mut trend = RatePredictor::default();
        for turn in 0..8 * TRUSTED {
            trend.learn(0, if turn % 2 == 0 { 100.0 } else { 150.0 });
        }
        assert!((trend.predict(0) - 100.0).abs() < 1e-6, "{}", trend.predict(0));
        trend.learn(0, 100.0);
        assert!((trend.predict(0) - 150.0).abs() < 1e-6, "{}", trend.predict(0));
    }

    #[test]
    fn the_text_is_read_back() {
        let mut predictors = [RatePredictor::default(), RatePredictor::default()];
        for turn in 0..500_u32 {
            let hour = (turn / 40) as usize;
            predictors[0].learn(hour, f64::from(turn * 7 % 13));
            predictors[1].learn(hour, f64::from(turn * 5 % 11));
        }
        let [first, second] = predictors.map(|trend| trend.day);
        let mut days = RateForecasts::default();
        days.set("", 0, first.clone());
        days.set("shop.a-b", 0, second);
        days.set("shop.a-b", 513, first);
        let text = days.to_string();
        assert_eq!(text.parse::<RateForecasts>().as_ref(), Ok(&days), "{text}");
        assert!(text.lines().count() > 30 && text.contains("\nupstream shop.a-b\n"), "{text}");
        let wrong =
            ["24 0 0 0 0 0 0 0 0 0 0", "1 0 1 2 3", "1 0 0 0 0 0 0 0 0 0 x", "1 0 0 0 0 0 0 0 0 0 0 0"];
        for wrong in wrong.into_iter().chain(["upstream", "1 0 60000 60000 0 0 0 0 0 0 0"]) {
            let error = wrong.parse::<RateForecasts>().unwrap_err();
            assert!(error.starts_with("line 1: ") && error.contains("nine counts"), "{error}");
        }
    }

    #[test]
    fn a_full_row_keeps_its_shares() {
        let mut day = Day::default();
        for turn in 0..250_000 {
            day.count(0, Step::Up, if turn % 4 == 0 { Step::Down } else { Step::Up });
        }
        assert!((day.drift(0, Step::Up).unwrap() - 0.5).abs() < 0.001);
        assert!(day.0[0][0].iter().sum::<u32>() < FULL);
    }
}
