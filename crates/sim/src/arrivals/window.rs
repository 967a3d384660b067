//! Puts a log's lines in order of time, as long as they are not too late.
//!
//! Servers write a line when its request ends, so the line of a long request stands behind later ones; a log that several
//! processes write, or that was joined from several files, has more such lines. So each line waits until a line was read whose
//! time is [`WINDOW`] later. A line that is even later comes together with the first that still waits, because the requests
//! before were already simulated.
//!
//! Memory is bounded by [`MOST_WAITING`] lines, half a gigabyte of them: a minute of 20,000 lines a second. Beyond that the
//! first goes out before its time, so that in a log with more than that in a minute a line is too late sooner.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How long a line waits for earlier ones (us).
pub(super) const WINDOW: i64 = 60 * 1_000_000;
/// The most lines of a log that wait for earlier ones.
pub const MOST_WAITING: usize = 1_200_000;

/// Where a line was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// At the end of the lines.
    InOrder,
    /// Before lines that were read earlier.
    Moved,
    /// After lines that it should have preceded.
    TooLate,
}

/// Lines that wait for earlier ones.
pub(super) struct ReorderWindow<T> {
    /// Ordered by time; lines of one time keep their order in the log.
    waiting: BinaryHeap<Reverse<(i64, u64, T)>>,
    pushed: u64,
    latest: i64,
    /// The time of the last line that went out.
    floor: i64,
    ended: bool,
}

impl<T: Ord> ReorderWindow<T> {
    /// No line comes more than a window before time zero.
    pub(super) fn new() -> Self {
        ReorderWindow { waiting: BinaryHeap::new(), pushed: 0, latest: 0, floor: -WINDOW, ended: false }
    }

    /// Adds a line.
    pub(super) fn push(&mut self, time: i64, item: T) -> Placed {
        let placed = match time {
            _ if time < self.floor => Placed::TooLate,
            _ if time < self.latest => Placed::Moved,
            _ => Placed::InOrder,
        };
        self.latest = self.latest.max(time);
        let earliest = self.waiting.peek().map_or(self.floor, |Reverse(first)| first.0);
        let time = if placed == Placed::TooLate { earliest } else { time };
        self.waiting.push(Reverse((time, self.pushed, item)));
        self.pushed += 1;
        placed
    }

    /// Says that no more lines come.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The first line, if no line can come before it any more.
    pub(super) fn pop(&mut self) -> Option<(i64, T)> {
        let Reverse((first, ..)) = self.waiting.peek()?;
        let settled = *first <= self.latest.saturating_sub(WINDOW);
        if !settled && !self.ended && self.waiting.len() <= MOST_WAITING {
            return None;
        }
        let Reverse((time, _, item)) = self.waiting.pop()?;
        self.floor = time;
        Some((time, item))
    }

    #[cfg(test)]
    pub(super) fn latest(&self) -> i64 {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn popped(window: &mut ReorderWindow<usize>) -> Vec<(i64, usize)> {
        std::iter::from_fn(|| window.pop()).map(|(time, item)| (time / SECOND, item)).collect()
    }

    #[test]
    fn a_line_waits_a_minute_for_earlier_ones() {
        let mut window = ReorderWindow::new();
        let placed: Vec<Placed> =
            [0, 30, 10, 30].into_iter().enumerate().map(|(n, at)| window.push(at * SECOND, n)).collect();
        assert_eq!(placed, [Placed::InOrder, Placed::InOrder, Placed::Moved, Placed::InOrder]);
        assert_eq!(popped(&mut window), []);
        window.push(90 * SECOND, 4);
        assert_eq!(popped(&mut window), [(0, 0), (10, 2), (30, 1), (30, 3)], "equal times keep their order");
        assert_eq!(window.push(20 * SECOND, 5), Placed::TooLate);
        window.end();
        assert_eq!(popped(&mut window), [(90, 4), (90, 5)]);
        assert_eq!(window.latest(), 90 * SECOND);
    }

    #[test]
    fn a_busy_minute_is_as_long_as_any() {
        let mut window = ReorderWindow::new();
        for n in 0..20_000 * 59 {
            window.push(i64::from(n) * SECOND / 20_000, 0_usize);
            assert!(window.pop().is_none());
        }
        assert_eq!(window.push(0, 0), Placed::Moved);
    }

    #[test]
    fn the_number_of_lines_that_wait_is_bounded() {
        let mut window = ReorderWindow::new();
        let mut out = 0;
        for n in 0..MOST_WAITING + 500 {
            window.push(n as i64, n);
            out += popped(&mut window).len();
        }
        assert_eq!(out, 500);
        assert_eq!(window.waiting.len(), MOST_WAITING);
    }
}
