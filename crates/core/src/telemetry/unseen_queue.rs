//! The listen queue of a server that decides inside: its requests cannot be seen, but its length is reported.
//!
//! A request arrives when a process takes it. So while requests wait, the counters show what the server can take, and not what
//! comes. Arrivals are the requests that were taken plus the growth of the queue. That growth is divided among the classes as
//! what was taken is, since the mix of the queue is not seen; the oldest are taken first.

use crate::telemetry::measurement::ClassMeasurement;

/// What is known of the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnseenQueue {
    /// How many requests waited when its length was last reported.
    length: u32,
    /// By how much it has grown since requests were last taken.
    growth: i64,
}

impl UnseenQueue {
    /// Takes the queue's length; `None` if no process has looked at it lately.
    pub(crate) fn set_length(&mut self, length: Option<u32>) {
        let before = core::mem::replace(&mut self.length, length.unwrap_or(0));
        match length {
            Some(length) => self.growth += i64::from(length) - i64::from(before),
            None => self.growth = 0,
        }
    }

    /// How many requests have come for each that was taken; `None` if one has, or none was taken.
    #[inline]
    pub(crate) fn come_for_each(&mut self, taken: impl Iterator<Item = u64>) -> Option<f64> {
        if self.growth == 0 {
            return None;
        }
        let taken = taken.sum::<u64>() as f64;
        if taken == 0.0 {
            return None;
        }
        let growth = core::mem::take(&mut self.growth) as f64;
        Some((1.0 + growth / taken).max(0.0))
    }

    /// Adds to each class its part of the queue.
    pub(crate) fn add_waiting(&self, classes: &[ClassMeasurement], waiting: &mut [u32]) {
        if self.length == 0 {
            return;
        }
        let taken = |class: &ClassMeasurement| class.window.counts.arrivals as f64;
        let all: f64 = classes.iter().map(taken).sum();
        for (waiting, class) in waiting.iter_mut().zip(classes).filter(|_| all > 0.0) {
            *waiting += libm::round(f64::from(self.length) * taken(class) / all) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(arrivals: u64) -> ClassMeasurement {
        let mut class = ClassMeasurement::default();
        class.window.counts.arrivals = arrivals;
        class
    }

    #[test]
    fn what_has_come_is_what_was_taken_and_what_the_queue_has_grown_by() {
        let mut queue = UnseenQueue::default();
        let mut come = |length: Option<u32>, taken: u64| {
            queue.set_length(length);
            queue.come_for_each([taken / 4, taken - taken / 4].into_iter())
        };
        assert_eq!(come(Some(0), 40), None);
        assert_eq!(come(Some(20), 40), Some(1.5));
        assert_eq!(come(Some(20), 40), None);
        assert_eq!(come(Some(30), 0), None, "nothing shows of which class they are");
        assert_eq!(come(Some(40), 20), Some(2.0), "so they are counted with the next");
        assert_eq!(come(Some(0), 40), Some(0.0), "all were there before");
        assert_eq!(come(Some(9), 0), None);
        assert_eq!(come(None, 3), None);
        assert_eq!(come(Some(3), 3), Some(2.0));
    }

    #[test]
    fn what_waits_is_of_the_classes_that_were_taken() {
        let (mut queue, mut waiting) = (UnseenQueue::default(), [1, 0, 0]);
        let classes = [taken(10), taken(30), taken(0)];
        queue.add_waiting(&classes, &mut waiting);
        assert_eq!(waiting, [1, 0, 0]);
        queue.set_length(Some(100));
        queue.add_waiting(&classes, &mut waiting);
        assert_eq!(waiting, [26, 75, 0]);
        queue.add_waiting(&[taken(0)], &mut waiting[..1]);
        assert_eq!(waiting, [26, 75, 0]);
    }
}
