//! Which thread a client's connection is for, once it has one.
//!
//! A connection is placed by count and stays where it is, unless one of two things is seen between two of its requests:
//!
//! - **Relief.** Its thread has little rest, and threads on average have more: connections that live long need not be the
//!   ones that work. Each look gives half of what would bring the thread to the average, for what it knows of others is
//!   from their last look. The last connection that works stays: to move a load does not make it less.
//! - **Gathering.** Its request waited, another thread began it ([ahead](crate::ahead)), and both rest nearly always. Who
//!   waits for the same places is cheaper on one thread: nothing changes hands between cores. Connections gather downwards
//!   only, so each follows a few times at most; and a part of them at a look, so that it is not too much at once.
//!
//! Connections count that have asked for something since the last look; idle ones take no time, and cannot move either.
//!
//! A thread rests while it sleeps in its selector. It tells the others ten times a second. One that has not for a while is
//! stuck, in a read of a disk for instance, and is taken for one that has no rest.

use plimsoll_core::time::{Duration, Instant};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A thread that rests for less of its time gives connections away,
const LITTLE: f64 = 1.0 / 4.0;
/// if others on average rest for so much more.
const LOPSIDED: f64 = 1.0 / 16.0;
/// Two that both rest for more of their time are better off as one. After that the one rests for half at least.
const NEARLY_ALWAYS: f64 = 3.0 / 4.0;
/// So much of a thread's connections follows in a look, where there are two threads.
const FOLLOWS: f64 = 1.0 / 4.0;
/// What a thread told counts for so long.
const STALE: Duration = Duration::from_millis(300);

/// How much a thread rests. Its own thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Rest {
    /// Since when it sleeps, if it does (ns).
    asleep_since: AtomicU64,
    /// Asleep since the last look (ns).
    asleep: AtomicU64,
    told: Told,
}

/// What others read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Told {
    /// When it looked last (ns).
    at: AtomicU64,
    /// How much of its time before it rested, in thousandths.
    share: AtomicU32,
}

impl Rest {
    pub(crate) fn fall_asleep(&self, now: Instant) {
        self.asleep_since.store(now.as_nanos(), Relaxed);
    }

    pub(crate) fn wake_up(&self, now: Instant) {
        let slept = now.as_nanos().saturating_sub(self.asleep_since.load(Relaxed));
        self.asleep.store(self.asleep.load(Relaxed) + slept, Relaxed);
    }

    /// Tells how much it rested since the last look.
    fn look(&self, now: Instant) {
        let passed = now.as_nanos().saturating_sub(self.told.at.swap(now.as_nanos(), Relaxed));
        let asleep = self.asleep.swap(0, Relaxed);
        if passed > 0 {
            self.told.share.store((asleep.min(passed) as f64 / passed as f64 * 1000.0) as u32, Relaxed);
        }
    }

    fn share(&self, now: Instant) -> f64 {
        let is_stale = now.since(Instant::from_nanos(self.told.at.load(Relaxed))) > STALE;
        if is_stale { 0.0 } else { f64::from(self.told.share.load(Relaxed)) / 1000.0 }
    }
}

/// The look at which a connection was counted last.
pub(crate) type Counted = u32;

/// What a thread does with its connections.
#[derive(Debug)]
pub(crate) struct Balance {
    thread: usize,
    rests: Arc<[Rest]>,
    looks: Cell<Counted>,
    looked: Cell<Instant>,
    /// Connections that have asked for something since the last look.
    active: Cell<u32>,
    /// Connections that may go for relief, and that may follow, until it looks again.
    relieving: Cell<f64>,
    following: Cell<f64>,
    /// How much threads rest on average.
    mean: Cell<f64>,
    /// Which thread was given one last.
    turn: Cell<usize>,
}

impl Balance {
    pub(crate) fn new(thread: usize, rests: Arc<[Rest]>) -> Self {
        Balance {
            thread,
            rests,
            looks: Cell::default(),
            looked: Cell::new(Instant::from_nanos(0)),
            active: Cell::default(),
            relieving: Cell::default(),
            following: Cell::default(),
            mean: Cell::default(),
            turn: Cell::new(thread),
        }
    }

    /// Looks at how much all rest. Some ten times a second.
    pub(crate) fn look(&self, now: Instant) {
        self.rests[self.thread].look(now);
        self.looks.set(self.looks.get().wrapping_add(1));
        self.looked.set(now);
        let active = f64::from(self.active.take());
        let others = self.rests.len() - 1;
        let own = self.rest_of(self.thread);
        let mean = self.rests.iter().map(|rest| rest.share(now)).sum::<f64>() / self.rests.len() as f64;
        self.mean.set(mean);
        let gives = own < LITTLE && mean - own > LOPSIDED;
        let relieves = if gives { 0.5 * (mean - own) / (1.0 - own) } else { 0.0 };
        let follows = if own > NEARLY_ALWAYS && others > 0 { FOLLOWS / others as f64 } else { 0.0 };
        // What is less than one connection adds up.
        let more = |left: &Cell<f64>, part: f64, most: f64| {
            left.set(if part > 0.0 { (left.get() + part * active).min(most) } else { 0.0 });
        };
        more(&self.relieving, relieves, (active - 1.0).max(0.0));
        more(&self.following, follows, active);
    }

    /// Counts a connection whose request is over. The thread that should have it from now on, if another one; it waited and
    /// was begun by the thread `begun_by`, if any.
    pub(crate) fn other_thread(&self, counted: &mut Counted, begun_by: Option<usize>) -> Option<usize> {
        if *counted != self.looks.get() {
            *counted = self.looks.get();
            self.active.set(self.active.get() + 1);
        }
        begun_by.and_then(|thread| self.follow(thread)).or_else(|| self.relief())
    }

    fn follow(&self, begun_by: usize) -> Option<usize> {
        let may =
            begun_by < self.thread && self.following.get() >= 1.0 && self.rest_of(begun_by) > NEARLY_ALWAYS;
        may.then(|| spend(&self.following, begun_by))
    }

    /// One after the other of those that rest more than the average.
    fn relief(&self) -> Option<usize> {
        if self.relieving.get() < 1.0 {
            return None;
        }
        let threads = self.rests.len();
        let mut others = (1..=threads).map(|step| (self.turn.get() + step) % threads);
        let other = others.find(|&other| self.rest_of(other) > self.mean.get())?;
        self.turn.set(other);
        Some(spend(&self.relieving, other))
    }

    fn rest_of(&self, thread: usize) -> f64 {
        self.rests[thread].share(self.looked.get())
    }
}

fn spend(left: &Cell<f64>, thread: usize) -> usize {
    left.set(left.get() - 1.0);
    thread
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_NS: u64 = 100_000_000;

    /// Threads, each with the connections that work.
    struct Threads {
        rests: Arc<[Rest]>,
        balances: Vec<Balance>,
        counted: Vec<Vec<Counted>>,
        looks: u64,
    }

    impl Threads {
        fn new(active: &[usize]) -> Self {
            let rests: Arc<[Rest]> = active.iter().map(|_| Rest::default()).collect();
            let balance = |thread| Balance::new(thread, rests.clone());
            let counted = active.iter().map(|&count| vec![0; count]).collect();
            Threads { balances: (0..active.len()).map(balance).collect(), rests, counted, looks: 0 }
        }

        /// All look, having rested for such shares of their time.
        fn look(&mut self, shares: &[f64]) {
            let before = Instant::from_nanos(self.looks * LOOK_NS);
            self.looks += 1;
            let now = Instant::from_nanos(self.looks * LOOK_NS);
            for (rest, share) in self.rests.iter().zip(shares) {
                rest.fall_asleep(before);
                rest.wake_up(Instant::from_nanos(before.as_nanos() + (share * LOOK_NS as f64) as u64));
            }
            self.balances.iter().for_each(|balance| balance.look(now));
        }

        /// Each connection asks three times; how many go from each thread to each.
        fn ask(&mut self, begun_by: Option<usize>) -> Vec<Vec<usize>> {
            let mut gone = vec![vec![0; self.balances.len()]; self.balances.len()];
            for (from, balance) in self.balances.iter().enumerate() {
                self.counted[from].retain_mut(|counted| {
                    let to = (0..3).find_map(|_| balance.other_thread(counted, begun_by));
                    to.inspect(|&to| gone[from][to] += 1).is_none()
                });
            }
            gone
        }

        /// After a first look, at which nobody knows what others will tell.
        fn gone(shares: &[f64], active: &[usize], begun_by: Option<usize>) -> Vec<Vec<usize>> {
            let mut threads = Threads::new(active);
            threads.look(shares);
            let none = vec![vec![0; active.len()]; active.len()];
            assert_eq!(threads.ask(begun_by), none, "nobody is known to have worked");
            threads.look(shares);
            threads.ask(begun_by)
        }
    }

    #[test]
    fn who_has_little_rest_gives_to_those_that_have_more() {
        assert_eq!(Threads::gone(&[0.0, 1.0], &[64, 0], None), [[0, 16], [0, 0]], "half of half");
        let one_of_four = Threads::gone(&[0.0, 1.0, 1.0, 1.0], &[64, 0, 0, 0], None);
        assert_eq!(one_of_four[0], [0, 8, 8, 8], "half of three quarters");
        let four_of_six = Threads::gone(&[0.0, 0.9, 0.0, 0.0, 0.9, 0.0], &[40, 9, 40, 40, 9, 40], None);
        for giver in [0, 2, 3, 5] {
            assert_eq!(four_of_six[giver], [0, 3, 0, 0, 3, 0], "half of 0.3, to both");
        }
    }

    #[test]
    fn nobody_gives_where_all_work_or_all_rest() {
        for shares in [[0.02, 0.10], [0.02, 0.02], [0.3, 1.0], [1.0, 1.0]] {
            assert_eq!(Threads::gone(&shares, &[64, 64], None), [[0, 0], [0, 0]], "{shares:?}");
        }
    }

    #[test]
    fn one_heavy_connection_stays_where_it_is() {
        let mut threads = Threads::new(&[1, 0]);
        for _ in 0..20 {
            threads.look(&[0.0, 1.0]);
            assert_eq!(threads.ask(None), [[0, 0], [0, 0]]);
        }
    }

    #[test]
    fn less_than_one_adds_up() {
        let mut threads = Threads::new(&[2, 0]);
        // Half of half of two is a half.
        threads.look(&[0.0, 1.0]);
        let gone: Vec<usize> = (0..5)
            .map(|_| {
                let gone = threads.ask(None)[0][1];
                threads.look(&[0.0, 1.0]);
                gone
            })
            .collect();
        assert_eq!(gone, [0, 0, 1, 0, 0], "and then there is one");
    }

    #[test]
    fn a_stuck_thread_gets_nothing() {
        let mut threads = Threads::new(&[64, 0]);
        threads.look(&[0.0, 1.0]);
        let _ = threads.ask(None);
        let later = Instant::from_nanos(threads.looks * LOOK_NS + STALE.as_nanos() as u64 + 1);
        threads.balances[0].look(later);
        assert_eq!(threads.ask(None)[0], [0, 0]);
    }

    #[test]
    fn who_rests_follows_to_a_lower_thread_that_rests() {
        let gone = |shares: &[f64], begun_by| Threads::gone(shares, &vec![64; shares.len()], Some(begun_by));
        assert_eq!(gone(&[0.9, 0.9], 0), [[0, 0], [16, 0]], "a part at a look");
        assert_eq!(
            gone(&[0.9, 0.9, 0.9], 1),
            [[0, 0, 0], [0, 0, 0], [0, 8, 0]],
            "less where more may follow"
        );
        assert_eq!(gone(&[0.9, 0.9], 1), [[0, 0], [0, 0]], "not up");
        assert_eq!(gone(&[0.7, 0.9], 0), [[0, 0], [0, 0]], "the other works");
        assert_eq!(gone(&[0.9, 0.7], 0), [[0, 0], [0, 0]], "this one works");
    }
}
