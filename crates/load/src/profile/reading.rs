//! The counts of a load up to a moment: its answers and when they came, its failures, and how busy its thread was.
//!
//! The load's thread adds to the counts as requests end, and the profiler's thread reads them meanwhile.

use super::stage::Accept;
use crate::client::{ErrorKind, LoadHandle, Outcome, Record, Sink};
use nix::time::ClockId;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of records for each reading of the thread's processor time, which is a system call.
const EVERY: u32 = 8;

/// All counts up to one moment. Times are in seconds from the load's start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// The moment.
    pub(super) at: f64,
    /// The answers that count.
    pub(super) good: f64,
    /// The sum of these answers' body bytes.
    pub(super) bytes: f64,
    /// The sum of the times at which these answers came, and of the squares of the times.
    pub(super) sum: f64,
    pub(super) squares: f64,
    /// Answers that do not count, and errors of the server.
    pub(super) failed: f64,
    /// The processor time that the load's thread has taken (s).
    pub(super) processor: f64,
}

impl Reading {
    pub(super) fn add_answer(&mut self, at: f64, bytes: f64) {
        self.good += 1.0;
        self.bytes += bytes;
        self.sum += at;
        self.squares += at * at;
    }

    fn add(&mut self, record: &Record, accept: Accept) {
        match record.outcome {
            Outcome::Answer(answer) if accept.counts(answer.status) => {
                self.add_answer((record.arrival + record.latency).as_secs_f64(), answer.bytes as f64);
            }
            Outcome::Error(ErrorKind::LocalLimit) => {}
            Outcome::Answer(_) | Outcome::Error(_) => self.failed += 1.0,
        }
    }

    /// A counter's growth per second since an earlier reading.
    pub(super) fn per_second(&self, earlier: &Reading, of: impl Fn(&Reading) -> f64) -> f64 {
        (of(self) - of(earlier)) / (self.at - earlier.at)
    }

    /// The share of one processor that the load's thread has taken since an earlier reading; none without answers.
    pub(super) fn client_cpu(&self, earlier: &Reading) -> Option<f64> {
        (self.good > earlier.good).then(|| self.per_second(earlier, |reading| reading.processor))
    }

    /// Answers per second since an earlier reading.
    ///
    /// If workers go in step their answers come in batches, and a window has a batch more or less, or a part of one. So an
    /// answer at the share u of the window counts 6 u (1 - u), and answers at its ends weigh nothing. For a window of m batches
    /// that lowers the error from 1 / m to 0.6 / m^2, and it adds a tenth to the noise of a Poisson stream.
    pub(super) fn rate(&self, earlier: &Reading) -> f64 {
        let (begin, seconds) = (earlier.at, self.at - earlier.at);
        let (count, sum) = (self.good - earlier.good, self.sum - earlier.sum);
        let since_begin = sum - count * begin;
        let squares = self.squares - earlier.squares - 2.0 * begin * sum + count * begin * begin;
        let counted = count / seconds;
        let weighted = 6.0 * (since_begin / seconds - squares / (seconds * seconds)) / seconds;
        // If the two are far apart, the answers came in a part of the window only, and the time of their batch is unknown.
        if (weighted / counted - 1.0).abs() < 0.5 { weighted } else { counted }
    }
}

/// Keeps a load's reading up to date; the load's thread writes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reporter(Arc<Mutex<Reading>>);

impl Reporter {
    /// A sink that adds up the answers that `accept` counts.
    pub(super) fn sink(&self, accept: Accept) -> Sink {
        let reading = Arc::clone(&self.0);
        let mut records = 0_u32;
        Box::new(move |record: &Record| {
            let mut reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
            reading.add(record, accept);
            records = records.wrapping_add(1);
            if records.is_multiple_of(EVERY)
                && let Ok(time) = ClockId::CLOCK_THREAD_CPUTIME_ID.now()
            {
                reading.processor = Duration::from(time).as_secs_f64();
            }
        })
    }

    /// The reading at this moment.
    pub(super) fn read(&self, load: &LoadHandle) -> Reading {
        let reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Reading { at: load.started().elapsed().as_secs_f64(), ..*reading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers up to `at`, of a server that answers `batch` every `every` seconds, the batch spread over `over` seconds.
    fn up_to(at: f64, batch: u32, every: f64, over: f64) -> Reading {
        let mut reading = Reading { at, ..Reading::default() };
        let times = (0..10_000).flat_map(|number| {
            let begin = f64::from(number) * every;
            (0..batch).map(move |place| begin + over * f64::from(place) / f64::from(batch))
        });
        times.filter(|time| *time <= at).for_each(|time| reading.add_answer(time, 0.0));
        reading
    }

    #[test]
    fn a_batch_more_or_less_or_a_part_of_one_is_no_other_rate() {
        for over in [0.0, 0.001, 0.01] {
            let (mut worst, mut worst_counted) = (0.0_f64, 0.0_f64);
            for step in 0..100 {
                // The window has 7.5 batches, and begins anywhere.
                let (begin, end) = (0.2 + 2e-4 * f64::from(step), 0.35 + 2e-4 * f64::from(step));
                let (first, last) = (up_to(begin, 8, 0.02, over), up_to(end, 8, 0.02, over));
                let rate = last.rate(&first);
                worst = worst.max((rate / 400.0 - 1.0).abs());
                let counted = (last.good - first.good) / (end - begin);
                worst_counted = worst_counted.max((counted / 400.0 - 1.0).abs());
            }
            assert!(worst < 0.012 && worst_counted > 0.06, "{worst} {worst_counted}");
        }
    }

    #[test]
    fn a_steady_stream_long_after_the_start_is_exact() {
        let (first, last) = (up_to(900.0, 1, 0.1, 0.0), up_to(910.0, 1, 0.1, 0.0));
        let rate = last.rate(&first);
        assert!((rate / 10.0 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn where_answers_did_not_come_throughout_they_are_counted() {
        let nothing = Reading::default();
        let silent = Reading { at: 1.0, ..nothing };
        let mut late = silent;
        (0..8).for_each(|_| late.add_answer(0.99, 0.0));
        assert_eq!((late.rate(&nothing), silent.rate(&nothing)), (8.0, 0.0));
    }
}
