//! The rate of the next period, by a Markov chain of three states per hour of day (AC, section 4.1).
//!
//! From one period to the next a rate goes up, stays or falls; stays: within delta / 2 = 5 % of what it was, so that a
//! step is told as the nearest of -delta, 0, +delta. Each hour of the day has its own matrix of how often which step
//! followed which. With p the row of the last step,
//! `predicted = rate (1 + delta (p_up - p_down))`, delta = 10 %.
//!
//! That is what eq. 6, `[lambda((k-1)T)] Q(kT)`, comes to with the three states of the paper's experiment: print and
//! experiment differ (a state vector of rates, and the trend's three probabilities), and the experiment's figures are
//! what is to be repeated. Until a row has been seen [`TRUSTED`] times, the rate is predicted by exponential smoothing.
//!
//! The counts are the memory: as text, they are read by people and by the next run. A row is halved when it is full, so
//! that last month weighs more than last year.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};
use core::str::FromStr;

/// delta.
const STEP: f64 = 0.1;
/// A row that was seen so often is believed.
const TRUSTED: u32 = 30;
/// The part of a new rate in the smoothed one.
const SMOOTHING: f64 = 0.5;
/// The part of a period's mean estimate in the mean of late.
const LATE: f64 = 0.2;
/// A row's most.
const FULL: u32 = 100_000;
/// Hours of a day.
pub const HOURS: usize = 24;

/// From one period to the next.
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

/// How often which step followed which.
type Matrix = [[u32; 3]; 3];

/// Makes room in a full row.
fn halve(row: &mut [u32; 3]) {
    if row.iter().sum::<u32>() >= FULL {
        row.iter_mut().for_each(|count| *count /= 2);
    }
}

/// A day of one priority's rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day([Matrix; HOURS]);

impl Day {
    fn count(&mut self, hour: usize, from: Step, to: Step) {
        let row = &mut self.0[hour % HOURS][from as usize];
        row[to as usize] += 1;
        halve(row);
    }

    /// With what another has counted.
    fn add(&mut self, other: &Day) {
        for (row, more) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            row.iter_mut().zip(more).for_each(|(count, more)| *count += more);
            halve(row);
        }
    }

    /// p_up - p_down after this step; `None` until it is known well enough.
    fn drift(&self, hour: usize, from: Step) -> Option<f64> {
        let [up, same, down] = self.0[hour % HOURS][from as usize];
        let seen = up + same + down;
        (seen >= TRUSTED).then(|| (f64::from(up) - f64::from(down)) / f64::from(seen))
    }
}

/// Predicts one priority's rate.
#[derive(Clone, Debug, Default)]
struct RatePredictor {
    day: Day,
    /// The rate of the last period, and the step to it.
    last: Option<(f64, Step)>,
    smoothed: Option<f64>,
}

impl RatePredictor {
    /// Learns what came in a period that has ended in this hour.
    fn learn(&mut self, hour: usize, rate: f64) {
        let step = match self.last {
            Some((before, last_step)) => {
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

    /// The rate of the period that begins, in this hour.
    fn predict(&self, hour: usize) -> f64 {
        let of_chain = self
            .last
            .and_then(|(rate, step)| self.day.drift(hour, step).map(|drift| rate * (1.0 + STEP * drift)));
        of_chain.or(self.smoothed).unwrap_or(0.0)
    }
}

/// What one priority asks for: its rate, and the mean estimate of one request.
#[derive(Clone, Debug, Default)]
pub struct RateForecast {
    trend: RatePredictor,
    mean_seconds: Option<f64>,
}

impl RateForecast {
    /// With what was learned of its days before.
    pub fn of(day: Day) -> Self {
        RateForecast { trend: RatePredictor { day, ..RatePredictor::default() }, mean_seconds: None }
    }

    /// What was learned before it is remembered late: what it learned itself is added.
    pub(crate) fn recall(&mut self, day: &Day) {
        self.trend.day.add(day);
    }

    /// What it learned.
    pub fn day(&self) -> &Day {
        &self.trend.day
    }

    /// A period of so many seconds ends in one hour, and the next begins in another. Learns what was asked for, admitted
    /// or not; returns what will be in as long a period (service-seconds).
    pub fn turn(&mut self, asked: &RequestedWork, seconds: f64, (ended, begun): (usize, usize)) -> f64 {
        self.trend.learn(ended, asked.requests as f64 / seconds);
        if asked.requests > 0 {
            let mean = asked.seconds / asked.requests as f64;
            let before = self.mean_seconds.unwrap_or(mean);
            self.mean_seconds = Some(before + LATE * (mean - before));
        }
        self.trend.predict(begun) * seconds * self.mean_seconds.unwrap_or(0.0)
    }
}

/// What came in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestedWork {
    /// How many.
    pub requests: u64,
    /// What they were estimated to take together (service-seconds).
    pub seconds: f64,
}

/// The days of all priorities at all plants, as they are saved: by the plant's name and the rank, 0 the highest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateForecasts(BTreeMap<(String, u16), Day>);

impl RateForecasts {
    /// Of one rank.
    pub fn get(&self, plant: &str, rank: u16) -> Option<&Day> {
        self.0.get(&(plant.to_string(), rank))
    }

    /// Takes the place of what was known of all that others know.
    pub(crate) fn extend(&mut self, others: RateForecasts) {
        self.0.extend(others.0);
    }

    /// Takes the place of what was known of it.
    pub fn set(&mut self, plant: &str, rank: u16, day: Day) {
        self.0.insert((plant.to_string(), rank), day);
    }
}

const HEAD: &str = "# RateForecasts of request rates: how often a rate went up, stayed or fell in the next period.\n\
                    # Ranks: 0 is the highest. Of a gateway 0 are exempt requests, 1 those inside a contract, 2 + priority classes\n\
                    # of sites with a contract, 258 + priority all others; 513 those without a priority. Hours are UTC.\n\
                    # hour rank  after up: up same down  after same: up same down  after down: up same down\n";

impl fmt::Display for RateForecasts {
    /// A line for each hour and rank of which anything is known, below one that names the plant.
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

/// What a line that names a plant begins with.
const PLANT: &str = "upstream";
/// Above every rank.
const RANKS: u32 = 1024;

impl FromStr for RateForecasts {
    type Err = String;

    fn from_str(text: &str) -> Result<RateForecasts, String> {
        let mut trends = RateForecasts::default();
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
            trends.0.entry((plant.clone(), rank)).or_default().0[hour] = matrix;
        }
        Ok(trends)
    }
}

/// One line of counts.
fn read(line: &str) -> Option<(usize, u16, Matrix)> {
    let mut numbers = line.split_whitespace().map(str::parse::<u32>);
    let mut next = |below: u32| numbers.next()?.ok().filter(|number| *number < below);
    let (hour, rank) = (next(HOURS as u32)?, next(RANKS)?);
    let mut matrix = Matrix::default();
    for cell in matrix.iter_mut().flatten() {
        *cell = next(FULL)?;
    }
    // A row is halved when it is full.
    let rows_fit = matrix.iter().all(|row| row.iter().sum::<u32>() < FULL);
    (numbers.next().is_none() && rows_fit).then_some((hour as usize, rank as u16, matrix))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for _ in 0..TRUSTED + 2 {
            rate *= 1.2;
            trend.learn(3, rate);
        }
        assert!((trend.predict(3) / (1.1 * rate) - 1.0).abs() < 1e-9);
        // Another hour has its own matrix, and has learned nothing.
        assert!(trend.predict(4) < rate);
    }

    #[test]
    fn what_swings_is_predicted_to_swing_back() {
        let mut trend = RatePredictor::default();
        for turn in 0..4 * TRUSTED {
            trend.learn(0, if turn % 2 == 0 { 100.0 } else { 150.0 });
        }
        assert!((trend.predict(0) - 135.0).abs() < 1e-9, "{}", trend.predict(0));
        trend.learn(0, 100.0);
        assert!((trend.predict(0) - 110.0).abs() < 1e-9, "{}", trend.predict(0));
    }

    #[test]
    fn the_text_is_read_back() {
        let mut trends = [RatePredictor::default(), RatePredictor::default()];
        for turn in 0..500_u32 {
            let hour = (turn / 40) as usize;
            trends[0].learn(hour, f64::from(turn * 7 % 13));
            trends[1].learn(hour, f64::from(turn * 5 % 11));
        }
        let [first, second] = trends.map(|trend| trend.day);
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
