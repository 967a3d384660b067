//! Turns the stamps of a log into microseconds since its first line that never go backwards.
//!
//! - Servers write a line when a request ends, so small steps back are usual: such a line is put back in its place
//!   (`window.rs`).
//! - A gap of more than [`GAP`] is cut to that: a night in which nothing happened need not be simulated.
//! - A clock that went back for good (two logs in one file, a rotated one after its successor) is moved, so that time
//!   goes on.
//!
//! A line more than [`BACK`] behind or [`GAP`] ahead may be the first of many, or a stray with an absurd stamp that must not
//! move the others. So the line is held until later lines decide. A line ahead is believed if one more like it follows (a quiet
//! server's lines are all far apart); a line behind, if [`RUN`] more do. Strays ahead get the latest time so far; strays behind
//! come as early as they still can. Memory is constant: at most `RUN + 1` lines are held, besides those in the window.

use super::LogNotes;
use super::window::{Placed, ReorderWindow, WINDOW};
use std::collections::VecDeque;

/// Longest time without a line (us).
const GAP: i64 = 3_600 * 1_000_000;
/// Longest step back that is taken for a request that took long (us).
const BACK: i64 = WINDOW;
/// More lines in a row than this, each further back, mean that the clock was set back.
const RUN: usize = 100;

/// A line's stamp (us since 1970), its number, and what is in it.
struct Line<T> {
    stamp: i64,
    number: u64,
    item: T,
}

#[derive(PartialEq)]
enum Deviation {
    Near,
    Ahead,
    Behind,
}

/// Puts lines in order of time.
pub(super) struct Clock<T> {
    /// What is subtracted from stamps; `None` before the first line.
    offset: Option<i64>,
    latest: i64,
    /// Held lines are either all ahead or all behind.
    held: VecDeque<Line<T>>,
    window: ReorderWindow<T>,
    /// The time of the first line that went out, from which times count; `None` before.
    origin: Option<i64>,
}

impl<T: Ord> Clock<T> {
    pub(super) fn new() -> Self {
        Clock { offset: None, latest: 0, held: VecDeque::new(), window: ReorderWindow::new(), origin: None }
    }

    /// The next line whose time is settled, with that time (us since the first line).
    pub(super) fn pop(&mut self, notes: &mut LogNotes) -> Option<(i64, T)> {
        let (time, item) = self.window.pop()?;
        let origin = *self.origin.get_or_insert_with(|| {
            // The line that was read first need not be the earliest.
            notes.began = notes.began.map(|began| began.saturating_add(time));
            time
        });
        Some((time - origin, item))
    }

    /// Takes the line just read, with its stamp (us since 1970).
    pub(super) fn push(&mut self, stamp: i64, item: T, notes: &mut LogNotes) {
        self.take(Line { stamp, number: notes.lines, item }, notes);
    }

    /// Says that no more lines come.
    pub(super) fn end(&mut self, notes: &mut LogNotes) {
        match self.held.front().map(|first| self.place(first.stamp)) {
            // The last line of a log is believed even if it comes after a long gap.
            Some(Deviation::Ahead) => self.believe(notes),
            _ => self.give_up(notes),
        }
        self.window.end();
    }

    fn take(&mut self, line: Line<T>, notes: &mut LogNotes) {
        let place = self.place(line.stamp);
        if self.held.front().is_some_and(|first| self.place(first.stamp) != place) {
            self.give_up(notes);
        }
        if place == Deviation::Near {
            return self.release(line, notes);
        }
        self.held.push_back(line);
        if self.held.len() > if place == Deviation::Ahead { 1 } else { RUN } {
            self.believe(notes);
        }
    }

    /// Accepts the held lines: the clock moves so that the first of them is near the others, and the rest follow it.
    fn believe(&mut self, notes: &mut LogNotes) {
        let held = std::mem::take(&mut self.held);
        if let Some(first) = held.front() {
            let step = self.time(first.stamp).saturating_sub(self.latest);
            let goal = if step > GAP { GAP } else { 0 };
            let moved = step - goal;
            if step > GAP {
                notes.gaps.0 += 1;
                notes.gaps.1 += moved as f64 * 1e-6;
            } else {
                notes.restarts += 1;
            }
            self.offset = self.offset.map(|offset| offset.saturating_add(moved));
        }
        // The first line is near now, so fewer lines are held again and the recursion ends.
        for line in held {
            self.take(line, notes);
        }
    }

    /// Treats the held lines as strays: those ahead come at the latest time, those behind as early as they still can.
    fn give_up(&mut self, notes: &mut LogNotes) {
        while let Some(line) = self.held.pop_front() {
            if self.place(line.stamp) == Deviation::Ahead {
                notes.strays += 1;
                self.window.push(self.latest, line.item);
            } else {
                self.release(line, notes);
            }
        }
    }

    fn release(&mut self, line: Line<T>, notes: &mut LogNotes) {
        let time = self.time(line.stamp);
        self.offset.get_or_insert(line.stamp);
        notes.began.get_or_insert(line.stamp);
        let late_by = (line.number, (self.latest as f64 - time as f64) * 1e-6);
        match self.window.push(time, line.item) {
            Placed::InOrder => {}
            Placed::Moved => {
                notes.moved += 1;
                notes.first_moved.get_or_insert(late_by);
            }
            Placed::TooLate => {
                notes.backwards += 1;
                notes.first_backwards.get_or_insert(late_by);
            }
        }
        self.latest = self.latest.max(time);
    }

    fn place(&self, stamp: i64) -> Deviation {
        match self.time(stamp).saturating_sub(self.latest) {
            step if step < -BACK => Deviation::Behind,
            step if step > GAP => Deviation::Ahead,
            _ => Deviation::Near,
        }
    }

    /// The time since the first line.
    fn time(&self, stamp: i64) -> i64 {
        self.offset.map_or(0, |offset| stamp.saturating_sub(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    /// 1 August 1995.
    const START: i64 = 807_249_600;

    /// Times (s) of lines with these stamps (s), with each line's index.
    fn straightened(stamps: impl IntoIterator<Item = i64>) -> (Vec<(i64, usize)>, LogNotes) {
        let (mut clock, mut notes, mut times) = (Clock::new(), LogNotes::default(), Vec::new());
        let mut most = 0;
        for (index, stamp) in stamps.into_iter().enumerate() {
            notes.lines += 1;
            clock.push((START + stamp) * SECOND, index, &mut notes);
            times.extend(std::iter::from_fn(|| clock.pop(&mut notes)));
            most = most.max(clock.held.len());
        }
        clock.end(&mut notes);
        times.extend(std::iter::from_fn(|| clock.pop(&mut notes)));
        assert!(most <= RUN, "{most} held");
        assert!(times.windows(2).all(|pair| pair[0].0 <= pair[1].0), "backwards: {times:?}");
        assert_eq!(times.len() as u64, notes.lines);
        (times.into_iter().map(|(time, index)| (time / SECOND, index)).collect(), notes)
    }

    fn at(times: &[(i64, usize)]) -> Vec<i64> {
        times.iter().map(|(time, _)| *time).collect()
    }

    #[test]
    fn small_steps_back_are_put_in_place() {
        let (times, notes) = straightened([0, 5, 3, 7, 6, 8]);
        assert_eq!(times, [(0, 0), (3, 2), (5, 1), (6, 4), (7, 3), (8, 5)]);
        assert_eq!((notes.moved, notes.first_moved), (2, Some((3, 2.0))));
        assert_eq!((notes.backwards, notes.first_backwards), (0, None));
        assert_eq!((notes.restarts, notes.gaps, notes.strays), (0, (0, 0.0), 0));
    }

    #[test]
    fn the_line_that_was_read_first_need_not_be_the_first() {
        let (times, notes) = straightened([30, 5, 40, 0]);
        assert_eq!(times, [(0, 3), (5, 1), (30, 0), (40, 2)]);
        assert_eq!((notes.moved, notes.began), (2, Some(START * SECOND)));
    }

    #[test]
    fn long_gaps_are_cut() {
        let (times, notes) = straightened([0, 3_600, 10_800, 10_801, 50_000]);
        assert_eq!(at(&times), [0, 3_600, 7_200, 7_201, 10_801]);
        assert_eq!(notes.gaps, (2, 3_600.0 + 35_599.0));
        assert_eq!((notes.backwards, notes.strays), (0, 0));
    }

    #[test]
    fn one_absurd_line_moves_nothing() {
        // A stamp of 2099 comes in the middle and at the end of a run of short steps back.
        let (times, notes) = straightened([0, 1, 3_294_000_000, 2, 1, 3_294_000_000, 3, 4]);
        assert_eq!(at(&times), [0, 1, 1, 1, 2, 2, 3, 4]);
        assert_eq!((notes.strays, notes.gaps, notes.moved), (2, (0, 0.0), 1));
        // A stamp of 1970 comes too.
        let (times, notes) = straightened([0, 1, -START, 2]);
        assert_eq!(at(&times), [0, 0, 1, 2], "together with the first that waits");
        assert_eq!(
            (notes.strays, notes.backwards, notes.first_backwards),
            (0, 1, Some((3, (START + 1) as f64)))
        );
    }

    #[test]
    fn several_absurd_lines_are_repaired() {
        let stamps = [0, 1, 3_294_000_000, 3_294_000_000].into_iter().chain(2..500);
        let (times, notes) = straightened(stamps);
        assert_eq!((notes.gaps.0, notes.restarts), (1, 1));
        let last = times.last().unwrap().0;
        assert_eq!(last, 1 + 3_600 + 497, "an hour more, no line lost");
    }

    #[test]
    fn a_restarted_clock_goes_on() {
        // The second half of a log comes before its first half.
        let (times, notes) = straightened((5_000..5_400).chain(0..400));
        assert_eq!((notes.restarts, notes.backwards, notes.first_backwards), (1, 0, None));
        assert_eq!(at(&times), (0..400).chain(399..799).collect::<Vec<_>>(), "no heap at the joint");
        assert!(times.iter().map(|(_, index)| *index).eq(0..800), "in order");
    }

    #[test]
    fn a_short_run_behind_is_no_restart() {
        let (times, notes) = straightened((0..300).chain(0..100).chain(300..310));
        assert_eq!((notes.restarts, notes.backwards), (0, 100));
        assert_eq!(times.last(), Some(&(309, 409)));
        let (_, notes) = straightened((0..300).chain(0..101).chain(300..310));
        assert_eq!(notes.restarts, 1);
    }

    #[test]
    fn two_servers_with_different_clocks_are_no_restart() {
        // Every other line is five minutes behind.
        let (times, notes) = straightened((0..1_000).map(|n| if n % 2 == 0 { n } else { n - 300 }));
        assert_eq!((notes.restarts, notes.backwards), (0, 500));
        assert_eq!(times.last().unwrap().0, 998);
    }

    #[test]
    fn an_absurd_first_line_is_repaired() {
        let (times, notes) = straightened([3_294_000_000].into_iter().chain(0..200));
        assert_eq!((notes.restarts, notes.backwards), (1, 0));
        assert_eq!(times.last().unwrap().0, 199);
    }

    #[test]
    fn the_ends_of_time() {
        let (mut clock, mut notes) = (Clock::new(), LogNotes::default());
        for stamp in [i64::MAX, i64::MIN, 0, i64::MAX, i64::MAX, i64::MIN] {
            clock.push(stamp, (), &mut notes);
        }
        clock.end(&mut notes);
        assert_eq!(std::iter::from_fn(|| clock.pop(&mut notes)).count(), 6);
    }
}
