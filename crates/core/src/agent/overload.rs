//! Overload, found by probes (CA 4.1): an answer that comes later than a threshold.
//!
//! In overload the server's counters show completed requests, not offered ones, since requests that the listen queue drops are
//! in no log (CA 4.2.1). So in overload all clients are degraded, and the load is known again after the overload. Without
//! overload the response time shows nothing about the load (CA 4.2), so the load alone decides on the return to full quality.
//!
//! The listen queue of a server is nearly full or nearly empty, hardly ever between, so the time that a probe waits in it is a
//! clear sign. The threshold is the promised response time, or `0.9 Q S` on top of the fastest answer of the last minutes,
//! because a probe waits in the queue and is then served itself. Only answers that were not late count for the fastest one,
//! since a queue that never runs empty for minutes makes all answers late. So an overload does not raise its own threshold. If
//! a server has become slower but its answers are not late, the fastest answer is its own within ten minutes. S is measured
//! (`offered_load.rs`), so that the server need not be benchmarked first. More than a second in the queue is too late however
//! long the queue is: 511 requests before a server of 40 pages a second wait for 11 s, and by then the clients are gone.
//!
//! One late answer may come from a slow disk; two in succession are overload. If a probe is still open after the threshold, it
//! counts as late already, and once more for each further interval, so that overload is found although no answer comes.
//!
//! If the counters show how many requests wait (`utilization.rs`), a probe's answer is not needed: n waiting requests take `n
//! S`, so a request that comes now is late if that exceeds the threshold. The counters show a long queue at once, the probes
//! later by the threshold, and in that time a short queue would overflow. One sample may have met a busy moment, so the wait
//! must also have been more than half of the threshold at the sample before.

use super::{Threshold, Why};
use crate::time::Duration;

/// The state of the probes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Probe {
    /// The number of probes that have ended.
    pub ended: u64,
    /// The response time of the last ended probe; `None` if it failed: refused, given up, or not a good answer.
    pub answered: Option<Duration>,
    /// The response time of the probe before that; `None` if it failed.
    pub previous: Option<Duration>,
    /// The time since the open probe was sent.
    pub waiting: Option<Duration>,
}

impl Probe {
    /// The state after the next probe has ended: with this response time, or failed.
    pub fn next(self, answered: Option<Duration>) -> Probe {
        Probe { ended: self.ended + 1, answered, previous: self.answered, waiting: None }
    }
}

/// The number of late answers in succession that are overload.
const RUNNING: u64 = 2;
/// The part of the listen queue that may be full.
const NEARLY_FULL: f64 = 0.9;
/// The longest acceptable time in the queue, and the threshold before S is known.
const LONGEST: Duration = Duration::from_secs(1);
/// The least threshold by the queue.
const LEAST: Duration = Duration::from_millis(20);

/// The fastest answer counts for at least this time, and at most twice as long.
const FASTEST_FOR: Duration = Duration::from_secs(300);
/// If probes are rarer, the fastest answer counts for this number of answers.
const FASTEST_OF: u32 = 20;

/// The fastest answer of the present span of time and of the one before it.
#[derive(Default)]
struct Fastest {
    now: Option<Duration>,
    before: Option<Duration>,
    answers: u32,
}

impl Fastest {
    /// Takes an answer; probes are sent at intervals of `every`.
    fn note(&mut self, time: Duration, every: Duration) {
        let span = (FASTEST_FOR.as_nanos() / every.as_nanos().max(1)) as u32;
        if self.answers >= span.max(FASTEST_OF) {
            *self = Fastest { before: self.now, ..Fastest::default() };
        }
        self.answers += 1;
        self.now = Some(self.now.map_or(time, |fastest| fastest.min(time)));
    }

    fn get(&self) -> Duration {
        self.now.into_iter().chain(self.before).min().unwrap_or_default()
    }
}

pub(super) struct Overload {
    rule: Threshold,
    every: Duration,
    threshold: Duration,
    fastest: Fastest,
    seen: u64,
    /// Late answers in succession, among the last probes that have ended.
    late: u64,
    over: bool,
    last: Probe,
    queue: ListenQueue,
}

/// The requests that wait before the server, as the counters show them.
#[derive(Clone, Copy, Default)]
struct ListenQueue {
    waiting: u32,
    /// The wait of the last request in it.
    wait: Duration,
    /// Whether a request that comes now will be late.
    over: bool,
}

impl Overload {
    pub(super) fn new(rule: Threshold, every: Duration) -> Self {
        let threshold = match rule {
            Threshold::Promised(time) => time,
            Threshold::Queue(_) => LONGEST,
        };
        let last = Probe::default();
        let queue = ListenQueue::default();
        let fastest = Fastest::default();
        Overload { rule, every, threshold, fastest, seen: 0, late: 0, over: false, last, queue }
    }

    /// Takes a sample; returns whether the server is in overload. `cost` is S at the present mix, `waiting` the number of
    /// waiting requests, if they are known.
    pub(super) fn look(&mut self, probe: &Probe, waiting: Option<u32>, cost: Option<f64>) -> bool {
        let timely = probe.answered.filter(|time| probe.ended > self.seen && *time <= self.threshold);
        if let Some(time) = timely {
            self.fastest.note(time, self.every);
        }
        if let (Threshold::Queue(queue), Some(cost)) = (self.rule, cost) {
            let full = Duration::from_secs_f64((NEARLY_FULL * f64::from(queue) * cost).min(3600.0));
            self.threshold = LEAST.max(full.min(LONGEST) + self.fastest.get());
        }
        if probe.ended > self.seen {
            let late = |answered: Option<Duration>| answered.is_none_or(|time| time > self.threshold);
            // Two late answers are overload, so earlier answers than the last two do not matter.
            let before = match probe.ended - self.seen {
                1 => self.late,
                _ => u64::from(late(probe.previous)),
            };
            self.late = if late(probe.answered) { before + 1 } else { 0 };
            self.seen = probe.ended;
        }
        let open = probe.waiting.map_or(0, |waiting| match waiting.checked_sub(self.threshold) {
            Some(longer) if longer > Duration::ZERO => {
                1 + (longer.as_nanos() / self.every.as_nanos().max(1)) as u64
            }
            _ => 0,
        });
        self.last = *probe;
        self.look_at_queue(waiting, cost);
        self.over = self.late + open >= RUNNING || self.queue.over;
        self.over
    }

    fn look_at_queue(&mut self, waiting: Option<u32>, cost: Option<f64>) {
        let (Some(waiting), Some(cost)) = (waiting, cost) else {
            self.queue.over = false;
            return;
        };
        let wait = Duration::from_secs_f64((f64::from(waiting) * cost).min(3600.0));
        let over = wait > self.threshold && self.queue.wait > self.threshold / 2;
        self.queue = ListenQueue { waiting, wait, over };
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether a queue stands before the server, or the server fails. Then its completed requests are no measure of
    /// costs.
    pub(super) fn is_queueing(&self) -> bool {
        let Probe { answered, waiting, .. } = self.last;
        let short = self.fastest.get() + self.threshold / 4;
        let long = |time: Option<Duration>| time.is_some_and(|time| time > short);
        self.over || self.late > 0 || long(answered) || long(waiting) || self.queue.wait > self.threshold / 4
    }

    pub(super) fn threshold(&self) -> Duration {
        self.threshold
    }

    pub(super) fn response(&self) -> Option<Duration> {
        self.last.answered
    }

    pub(super) fn why(&self) -> Why {
        if self.queue.over {
            let ListenQueue { waiting, wait, .. } = self.queue;
            return Why::Queue { waiting, wait, threshold: self.threshold };
        }
        let open = self.last.waiting.filter(|waiting| *waiting > self.threshold);
        Why::Overload { response: open.or(self.last.answered), threshold: self.threshold }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn answered(ended: u64, ms: u64) -> Probe {
        Probe { ended, answered: Some(MS(ms)), previous: Some(MS(5)), waiting: None }
    }

    #[test]
    fn two_late_answers_running_and_not_one() {
        let mut overload = Overload::new(Threshold::Promised(MS(500)), MS(500));
        let mut look = |probe| overload.look(&probe, None, None);
        assert!(!look(answered(1, 900)));
        assert!(!look(answered(1, 900)), "the same answer again");
        assert!(!look(answered(2, 100)));
        assert!(!look(answered(3, 900)));
        assert!(look(answered(4, 501)));
        assert!(look(Probe { answered: None, ..answered(5, 0) }), "a refused probe is late too");
        assert!(!look(answered(6, 500)), "not later than the threshold");
    }

    #[test]
    fn one_late_answer_among_several_since_the_last_sample_is_one() {
        let mut late = Overload::new(Threshold::Promised(MS(500)), MS(50));
        assert!(!late.look(&answered(1, 5), None, None));
        assert!(!late.look(&answered(6, 900), None, None), "the last of five");
        assert!(late.look(&answered(7, 900), None, None), "the second in succession");
        // A good answer ends the succession, even if no sample met it.
        assert!(!late.look(&answered(9, 900), None, None));
        let two = Probe { previous: Some(MS(900)), ..answered(12, 900) };
        assert!(late.look(&two, None, None), "the last two of three");
    }

    #[test]
    fn an_open_question_counts_before_its_answer() {
        let mut overload = Overload::new(Threshold::Promised(MS(500)), MS(200));
        let mut look =
            |waiting| overload.look(&Probe { waiting: Some(MS(waiting)), ..answered(1, 5) }, None, None);
        assert!(!look(500));
        assert!(!look(650));
        assert!(look(700));
    }

    #[test]
    fn the_threshold_is_the_queue_in_time_and_the_probe_itself() {
        let mut overload = Overload::new(Threshold::Queue(100), MS(500));
        overload.look(&answered(1, 300), None, None);
        assert_eq!(overload.threshold(), LONGEST);
        overload.look(&answered(2, 40), None, Some(0.01));
        assert_eq!(overload.threshold(), MS(940));
        overload.look(&answered(2, 40), None, Some(0.02));
        assert_eq!(overload.threshold(), MS(1040), "no longer than a second");
        overload.look(&answered(3, 80), None, Some(0.002));
        assert_eq!(overload.threshold(), MS(220));
        assert!(!overload.look(&answered(4, 220), None, Some(0.002)));
    }

    /// Sends a probe every half second, each of which is answered after `ms`.
    fn probed(overload: &mut Overload, ended: &mut u64, seconds: u64, ms: u64) {
        for _ in 0..2 * seconds {
            *ended += 1;
            overload.look(&answered(*ended, ms), None, Some(0.001));
        }
    }

    /// The queue holds 100 requests of 1 ms, so a probe is late after 90 ms and its own service.
    #[test]
    fn a_server_that_was_once_faster_is_compared_with_itself_after_minutes() {
        let (mut overload, mut ended) = (Overload::new(Threshold::Queue(100), MS(500)), 0);
        probed(&mut overload, &mut ended, 60, 5);
        assert_eq!(overload.threshold(), MS(95));
        probed(&mut overload, &mut ended, 240, 60);
        assert!(overload.threshold() == MS(95) && overload.is_queueing(), "perhaps a queue");
        probed(&mut overload, &mut ended, 400, 60);
        assert!(overload.threshold() == MS(150) && !overload.is_queueing(), "{:?}", overload.threshold());
        probed(&mut overload, &mut ended, 1, 5);
        assert_eq!(overload.threshold(), MS(95), "a faster one counts at once");
    }

    /// The opposite fault would be a threshold that rises with the answers of an overload.
    #[test]
    fn an_overload_of_an_hour_does_not_raise_its_threshold() {
        let (mut overload, mut ended) = (Overload::new(Threshold::Queue(100), MS(500)), 0);
        probed(&mut overload, &mut ended, 60, 5);
        for ms in (96..150).cycle().take(1200) {
            probed(&mut overload, &mut ended, 3, ms);
            assert!(overload.threshold() == MS(95) && (ended < 122 || overload.is_over()));
        }
    }

    #[test]
    fn a_queue_that_grows_too_long_is_late_before_any_answer_is() {
        let mut overload = Overload::new(Threshold::Promised(MS(500)), MS(500));
        let good = answered(1, 5);
        let mut look = |waiting| overload.look(&good, waiting, Some(0.025));
        assert!(!look(Some(0)));
        assert!(!look(Some(40)), "a busy moment, perhaps");
        assert!(look(Some(21)), "525 ms, after a sample that was long too");
        assert!(!look(Some(20)), "500 ms is not too late");
        assert!(look(Some(21)));
        assert!(!look(None), "not seen");
        assert!(matches!(overload.why(), Why::Overload { .. }));
        assert!(!overload.look(&good, Some(60), None), "of unknown cost");
        assert!(overload.look(&good, Some(60), Some(0.025)));
        let Why::Queue { waiting: 60, wait, threshold } = overload.why() else {
            panic!("{:?}", overload.why())
        };
        assert_eq!((wait, threshold), (MS(1500), MS(500)));
        assert!(
            overload.is_queueing() && !overload.look(&good, Some(6), Some(0.025)) && overload.is_queueing()
        );
        assert!(!overload.look(&good, Some(4), Some(0.025)) && !overload.is_queueing());
    }
}
