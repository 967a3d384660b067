//! What a load's thread tells while it runs: when answers came, and how busy it was. A rate that the client could not
//! exceed says nothing of the server.

use super::stage::Accept;
use crate::client::{Outcome, Record, Sink};
use nix::time::ClockId;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The clock of the load's thread is read once in so many records; it is a system call.
const EVERY: u32 = 8;

/// What is reported, up to one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    /// Seconds of a processor that the thread has taken.
    pub(super) processor: f64,
    /// The answers that count.
    pub(super) answers: AnswerTimes,
}

/// The place where a load's thread reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Reporter(Arc<Mutex<Reported>>);

impl Reporter {
    /// A sink that keeps it up to date, of such answers.
    pub(super) fn sink(&self, accept: Accept) -> Sink {
        let reported = Arc::clone(&self.0);
        let mut records = 0_u32;
        Box::new(move |record: &Record| {
            let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
            if let Outcome::Answer(answer) = record.outcome
                && accept.counts(answer.status)
            {
                reported.answers.add((record.arrival + record.latency).as_secs_f64());
            }
            records = records.wrapping_add(1);
            if records.is_multiple_of(EVERY)
                && let Ok(time) = ClockId::CLOCK_THREAD_CPUTIME_ID.now()
            {
                reported.processor = Duration::from(time).as_secs_f64();
            }
        })
    }

    /// What is reported by now.
    pub(super) fn now(&self) -> Reported {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moments of the times at which answers came (s from the load's start).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerTimes {
    count: f64,
    sum: f64,
    squares: f64,
}

impl AnswerTimes {
    pub(super) fn add(&mut self, at: f64) {
        self.count += 1.0;
        self.sum += at;
        self.squares += at * at;
    }

    /// AnswerTimes per second between two moments, each with the answers up to it.
    ///
    /// The answers of workers that go in step come in batches, and a window has a batch more or less of them, or a part
    /// of one. So an answer at the share u of the window counts 6 u (1 - u): answers at its ends weigh nothing. That
    /// takes the error of a window of m batches from 1 / m to 0.6 / m^2, and adds a tenth to the noise of a Poisson
    /// stream.
    pub(super) fn rate((begin, first): (f64, &AnswerTimes), (end, last): (f64, &AnswerTimes)) -> f64 {
        let seconds = end - begin;
        let (count, sum) = (last.count - first.count, last.sum - first.sum);
        let since_begin = sum - count * begin;
        let squares = last.squares - first.squares - 2.0 * begin * sum + count * begin * begin;
        let counted = count / seconds;
        let weighted = 6.0 * (since_begin / seconds - squares / (seconds * seconds)) / seconds;
        // Where the two are far apart the answers did not come throughout, and nothing tells how long their batch took.
        if (weighted / counted - 1.0).abs() < 0.5 { weighted } else { counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers up to `at`, of a server that answers `batch` every `every` seconds, the batch spread over `over` seconds.
    fn up_to(at: f64, batch: u32, every: f64, over: f64) -> AnswerTimes {
        let mut answers = AnswerTimes::default();
        let times = (0..10_000).flat_map(|number| {
            let begin = f64::from(number) * every;
            (0..batch).map(move |place| begin + over * f64::from(place) / f64::from(batch))
        });
        times.filter(|time| *time <= at).for_each(|time| answers.add(time));
        answers
    }

    #[test]
    fn a_batch_more_or_less_or_a_part_of_one_is_no_other_rate() {
        for over in [0.0, 0.001, 0.01] {
            let (mut worst, mut worst_counted) = (0.0_f64, 0.0_f64);
            for step in 0..100 {
                // 7.5 batches, from anywhere.
                let (begin, end) = (0.2 + 2e-4 * f64::from(step), 0.35 + 2e-4 * f64::from(step));
                let (first, last) = (up_to(begin, 8, 0.02, over), up_to(end, 8, 0.02, over));
                let rate = AnswerTimes::rate((begin, &first), (end, &last));
                worst = worst.max((rate / 400.0 - 1.0).abs());
                let counted = (last.count - first.count) / (end - begin);
                worst_counted = worst_counted.max((counted / 400.0 - 1.0).abs());
            }
            assert!(worst < 0.012 && worst_counted > 0.06, "{worst} {worst_counted}");
        }
    }

    #[test]
    fn a_steady_stream_long_after_the_start_is_exact() {
        let (first, last) = (up_to(900.0, 1, 0.1, 0.0), up_to(910.0, 1, 0.1, 0.0));
        let rate = AnswerTimes::rate((900.0, &first), (910.0, &last));
        assert!((rate / 10.0 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn where_answers_did_not_come_throughout_they_are_counted() {
        let nothing = AnswerTimes::default();
        let mut late = AnswerTimes::default();
        (0..8).for_each(|_| late.add(0.99));
        assert_eq!(AnswerTimes::rate((0.0, &nothing), (1.0, &late)), 8.0);
        assert_eq!(AnswerTimes::rate((0.0, &nothing), (1.0, &nothing)), 0.0);
    }
}
