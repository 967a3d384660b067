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

use std::fmt::{self, Write as _};

/// delta.
const STEP: f64 = 0.1;
/// A row that was seen so often is believed.
pub(super) const TRUSTED: u32 = 30;
/// The part of a new rate in the smoothed one.
const SMOOTHING: f64 = 0.5;
/// A row's most.
const FULL: u32 = 100_000;
/// Hours of a day.
pub(super) const HOURS: usize = 24;

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

/// A day of one priority's rate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Day([Matrix; HOURS]);

impl Day {
    fn count(&mut self, hour: usize, from: Step, to: Step) {
        let row = &mut self.0[hour % HOURS][from as usize];
        row[to as usize] += 1;
        if row.iter().sum::<u32>() >= FULL {
            row.iter_mut().for_each(|count| *count /= 2);
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
pub(super) struct Trend {
    pub(super) day: Day,
    /// The rate of the last period, and the step to it.
    last: Option<(f64, Step)>,
    smoothed: Option<f64>,
}

impl Trend {
    /// Learns what came in a period that has ended in this hour.
    pub(super) fn learn(&mut self, hour: usize, rate: f64) {
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
    pub(super) fn predict(&self, hour: usize) -> f64 {
        let of_chain = self
            .last
            .and_then(|(rate, step)| self.day.drift(hour, step).map(|drift| rate * (1.0 + STEP * drift)));
        of_chain.or(self.smoothed).unwrap_or(0.0)
    }
}

/// The days of all priorities, as they are saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Days(pub(super) Vec<Day>);

const HEAD: &str = "# Trends of request rates: how often a rate went up, stayed or fell in the next period.\n\
                    # hour place  after up: up same down  after same: up same down  after down: up same down\n";

impl fmt::Display for Days {
    /// A line for each hour and place (0 is the highest priority) of which anything is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (place, day) in self.0.iter().enumerate() {
            for (hour, matrix) in day.0.iter().enumerate().filter(|(_, matrix)| **matrix != Matrix::default())
            {
                write!(f, "{hour} {place}")?;
                for row in matrix {
                    write!(f, "  {} {} {}", row[0], row[1], row[2])?;
                }
                f.write_char('\n')?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for Days {
    type Err = String;

    fn from_str(text: &str) -> Result<Days, String> {
        let mut days = Days::default();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let numbers: Option<Vec<u32>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
            match numbers.as_deref() {
                Some([hour, place, counts @ ..])
                    if (*hour as usize) < HOURS
                        && *place < 256
                        && counts.len() == 9
                        && counts.iter().all(|count| *count < FULL) =>
                {
                    let place = *place as usize;
                    if days.0.len() <= place {
                        days.0.resize(place + 1, Day::default());
                    }
                    let matrix = &mut days.0[place].0[*hour as usize];
                    for (cell, count) in matrix.iter_mut().flatten().zip(counts) {
                        *cell = *count;
                    }
                }
                _ => {
                    return Err(format!(
                        "line {}: \"{line}\" is not an hour below 24, a place below 256 and nine counts below {FULL}",
                        number + 1
                    ));
                }
            }
        }
        Ok(days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_start_is_smoothed() {
        let mut trend = Trend::default();
        assert_eq!(trend.predict(0), 0.0);
        trend.learn(0, 100.0);
        assert_eq!(trend.predict(0), 100.0);
        trend.learn(0, 200.0);
        assert_eq!(trend.predict(0), 150.0);
    }

    #[test]
    fn a_rate_that_keeps_rising_is_predicted_to_rise() {
        let mut trend = Trend::default();
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
        let mut trend = Trend::default();
        for turn in 0..4 * TRUSTED {
            trend.learn(0, if turn % 2 == 0 { 100.0 } else { 150.0 });
        }
        assert!((trend.predict(0) - 135.0).abs() < 1e-9, "{}", trend.predict(0));
        trend.learn(0, 100.0);
        assert!((trend.predict(0) - 110.0).abs() < 1e-9, "{}", trend.predict(0));
    }

    #[test]
    fn the_text_is_read_back() {
        let mut trends = [Trend::default(), Trend::default()];
        for turn in 0..500_u32 {
            let hour = (turn / 40) as usize;
            trends[0].learn(hour, f64::from(turn * 7 % 13));
            trends[1].learn(hour, f64::from(turn * 5 % 11));
        }
        let days = Days(trends.map(|trend| trend.day).to_vec());
        let text = days.to_string();
        assert_eq!(text.parse::<Days>().as_ref(), Ok(&days), "{text}");
        assert!(text.lines().count() > 20);
        for wrong in ["24 0 0 0 0 0 0 0 0 0 0", "1 0 1 2 3", "1 0 0 0 0 0 0 0 0 0 x"] {
            let error = wrong.parse::<Days>().unwrap_err();
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
