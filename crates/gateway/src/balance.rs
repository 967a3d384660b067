//! Which thread a client's connection is for, once it has one.
//!
//! A connection is [placed](crate::acceptor) where there is rest, by count, and stays where it is, unless one of two things
//! is seen between two of its requests:
//!
//! - **Relief.** Its thread has little rest, and threads on average have more: connections that live long need not be the
//!   ones that work. What would bring the thread to the average may go.
//! - **Gathering.** Its request waited, another thread began it ([ahead](crate::ahead)), and both rest nearly always. Who
//!   waits for the same places is cheaper on one thread: nothing changes hands between cores. Connections gather downwards
//!   only, so each follows a few times at most; and only as many as leave half of the thread's time.
//!
//! Half of it in a look, for what a thread knows of others is from their last look. It is counted in requests a look, as each
//! connection is: the first to end a request after a look are those that ask most, and by count all of them would go. One that
//! asks for more than may go stays; so does the last that works, for to move a load does not make it less. Idle ones take
//! no time, and cannot move either.
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
/// Of the time of the thread that they follow to, so much is for all that follow at the same time.
const ROOM: f64 = 1.0 / 4.0;
/// What a thread told counts for so long: it has missed a look then.
const STALE: Duration = Duration::from_millis(200);
/// A connection is known after so many looks, one of which is whole.
const KNOWN: u32 = 2;

/// How much a thread rests. Its own thread writes.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Rest {
    /// Since when it sleeps, if it does (ns).
    asleep_since: AtomicU64,
    /// Asleep since the last look (ns).
    asleep: AtomicU64,
    told: Told,
}

/// What others read.
#[derive(Debug)]
#[repr(align(128))]
struct Told {
    /// When it looked last (ns).
    at: AtomicU64,
    /// How much of its time before it rested, in thousandths.
    share: AtomicU32,
}

impl Default for Rest {
    /// Before its first look nothing has been asked of it.
    fn default() -> Self {
        let told = Told { at: AtomicU64::default(), share: AtomicU32::new(1000) };
        Rest { asleep_since: AtomicU64::default(), asleep: AtomicU64::default(), told }
    }
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

/// How often a connection asks.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The look after which its thread got it, and that after which it asked last.
    since: u32,
    look: u32,
    /// Requests since that look, and between it and the one before.
    now: u32,
    before: u32,
}

impl Pace {
    fn count(&mut self, look: u32) {
        if look != self.look {
            let is_next = look.wrapping_sub(self.look) == 1;
            self.before = if is_next { self.now } else { 0 };
            (self.look, self.now) = (look, 0);
        }
        self.now += 1;
    }

    /// Requests a look, once it is known.
    fn requests(&self) -> Option<f64> {
        let is_known = self.look.wrapping_sub(self.since) >= KNOWN;
        is_known.then(|| f64::from(self.before.max(self.now)))
    }
}

/// What a thread does with its connections.
#[derive(Debug)]
pub(crate) struct Balance {
    thread: usize,
    rests: Arc<[Rest]>,
    looks: Cell<u32>,
    looked: Cell<Instant>,
    /// Since the last look.
    requests: Cell<u32>,
    /// Requests a look that may go for relief, and that may follow, until it looks again.
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
            requests: Cell::default(),
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
        let requests = f64::from(self.requests.take());
        let others = (self.rests.len() - 1) as f64;
        let own = self.rest_of(self.thread);
        let mean = self.rests.iter().map(|rest| rest.share(now)).sum::<f64>() / self.rests.len() as f64;
        self.mean.set(mean);
        let gives = own < LITTLE && mean - own > LOPSIDED;
        let surplus = if gives { (mean - own) / (1.0 - own) } else { 0.0 };
        more(&self.relieving, surplus * requests);
        let room = if own > NEARLY_ALWAYS && others > 0.0 { ROOM / others } else { 0.0 };
        let fits = if 1.0 - own > room { room / (1.0 - own) } else { 1.0 };
        more(&self.following, fits * requests);
    }

    /// Of a connection that this thread gets.
    pub(crate) fn pace(&self) -> Pace {
        let look = self.looks.get();
        Pace { since: look, look, now: 0, before: 0 }
    }

    /// Counts a request that is over.
    pub(crate) fn count(&self, pace: &mut Pace) {
        pace.count(self.looks.get());
        self.requests.set(self.requests.get() + 1);
    }

    /// The thread that should have a connection from now on, if another one; its last request waited and was begun by the
    /// thread `begun_by`, if any.
    pub(crate) fn other_thread(&self, pace: &Pace, begun_by: Option<usize>) -> Option<usize> {
        let requests = pace.requests()?;
        begun_by.and_then(|thread| self.follow(thread, requests)).or_else(|| self.relief(requests))
    }

    fn follow(&self, begun_by: usize, requests: f64) -> Option<usize> {
        let may = begun_by < self.thread
            && self.following.get() >= requests
            && self.rest_of(begun_by) > NEARLY_ALWAYS;
        may.then(|| spend(&self.following, requests, begun_by))
    }

    /// One after the other of those that rest more than the average.
    fn relief(&self, requests: f64) -> Option<usize> {
        if self.relieving.get() < requests {
            return None;
        }
        let threads = self.rests.len();
        let mut others = (1..=threads).map(|step| (self.turn.get() + step) % threads);
        let other = others.find(|&other| self.rest_of(other) > self.mean.get())?;
        self.turn.set(other);
        Some(spend(&self.relieving, requests, other))
    }

    /// Whether a thread has more than a little rest.
    pub(crate) fn has_rest(&self, thread: usize) -> bool {
        self.rest_of(thread) > LITTLE
    }

    fn rest_of(&self, thread: usize) -> f64 {
        self.rests[thread].share(self.looked.get())
    }
}

/// Half of `most` in a look; what is left of it adds up, to `most`.
fn more(left: &Cell<f64>, most: f64) {
    left.set((left.get() + 0.5 * most).min(most));
}

fn spend(left: &Cell<f64>, requests: f64, thread: usize) -> usize {
    left.set(left.get() - requests);
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
        paces: Vec<Vec<Pace>>,
        looks: u64,
    }

    /// In a look, of a connection.
    const REQUESTS: u32 = 3;

    impl Threads {
        fn new(active: &[usize]) -> Self {
            let rests: Arc<[Rest]> = active.iter().map(|_| Rest::default()).collect();
            let balance = |thread| Balance::new(thread, rests.clone());
            let balances: Vec<Balance> = (0..active.len()).map(balance).collect();
            let of_each = |(balance, &count): (&Balance, _)| (0..count).map(|_| balance.pace()).collect();
            let paces = balances.iter().zip(active).map(of_each).collect();
            Threads { balances, rests, paces, looks: 0 }
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

        /// Each connection asks [`REQUESTS`] times, the first on each thread `most` times; how many go from each thread to
        /// each.
        fn ask_unevenly(&mut self, most: u32, begun_by: Option<usize>) -> Vec<Vec<usize>> {
            let mut gone = vec![vec![0; self.balances.len()]; self.balances.len()];
            for (from, balance) in self.balances.iter().enumerate() {
                let mut times = most;
                self.paces[from].retain_mut(|pace| {
                    let to = (0..std::mem::replace(&mut times, REQUESTS)).find_map(|_| {
                        balance.count(pace);
                        balance.other_thread(pace, begun_by)
                    });
                    to.inspect(|&to| gone[from][to] += 1).is_none()
                });
            }
            gone
        }

        fn ask(&mut self, begun_by: Option<usize>) -> Vec<Vec<usize>> {
            self.ask_unevenly(REQUESTS, begun_by)
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
    fn who_asks_for_more_than_may_go_stays() {
        for light in [0, 29] {
            let mut threads = Threads::new(&[1 + light, 0]);
            for _ in 0..20 {
                threads.look(&[0.0, 1.0]);
                let _ = threads.ask_unevenly(900, None);
            }
            let left: Vec<u32> = threads.paces[0].iter().map(|pace| pace.now).collect();
            assert_eq!(left, [900], "to move it would move the load; the {light} others go");
        }
    }

    #[test]
    fn heavy_ones_go_until_they_are_even() {
        let mut threads = Threads::new(&[3, 0, 0]);
        let mut all = [0; 3];
        for _ in 0..20 {
            threads.look(&[0.0, 1.0, 1.0]);
            let gone = threads.ask(None);
            all.iter_mut().zip(&gone[0]).for_each(|(all, gone)| *all += gone);
        }
        assert_eq!(all, [0, 1, 1]);
    }

    #[test]
    fn a_connection_that_came_is_known_first() {
        let mut threads = Threads::new(&[64, 0]);
        threads.look(&[0.0, 1.0]);
        let _ = threads.ask(None);
        threads.paces[0] = (0..64).map(|_| threads.balances[0].pace()).collect();
        threads.look(&[0.0, 1.0]);
        assert_eq!(threads.ask(None)[0], [0, 0]);
        threads.look(&[0.0, 1.0]);
        assert_eq!(threads.ask(None)[0], [0, 32], "half of half, of two looks");
    }

    #[test]
    fn what_is_less_than_a_connection_asks_adds_up() {
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
    fn heavy_ones_of_many_threads_do_not_gather() {
        let mut threads = Threads::new(&[1; 8]);
        for _ in 0..50 {
            threads.look(&[0.76; 8]);
            let gone = threads.ask(Some(0));
            assert!(gone.iter().flatten().all(|&gone| gone == 0), "{gone:?}");
        }
        let mut threads = Threads::new(&[1; 2]);
        let gone: usize = (0..8)
            .map(|_| {
                threads.look(&[0.76; 2]);
                threads.ask(Some(0))[1][0]
            })
            .sum();
        assert_eq!(gone, 1, "those of two threads do: the one rests for half");
    }

    #[test]
    fn who_comes_is_for_a_thread_with_rest() {
        let mut threads = Threads::new(&[0; 3]);
        let rested = |threads: &Threads| [0, 1, 2].map(|thread| threads.balances[0].has_rest(thread));
        assert_eq!(rested(&threads), [true; 3], "nothing was asked of them yet");
        threads.look(&[0.0, 0.2, 0.3]);
        // The first knows of itself what it told now, and of the others what they told before.
        threads.look(&[0.9, 0.2, 0.3]);
        assert_eq!(rested(&threads), [true, false, true]);
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
        assert_eq!(gone(&[0.9, 0.9], 0), [[0, 0], [32, 0]], "half at a look");
        assert_eq!(
            gone(&[0.8, 0.8, 0.8], 1),
            [[0, 0, 0], [0, 0, 0], [0, 20, 0]],
            "half of an eighth of its time, for there may follow as many from another one"
        );
        assert_eq!(gone(&[0.9, 0.9], 1), [[0, 0], [0, 0]], "not up");
        assert_eq!(gone(&[0.7, 0.9], 0), [[0, 0], [0, 0]], "the other works");
        assert_eq!(gone(&[0.9, 0.7], 0), [[0, 0], [0, 0]], "this one works");
    }
}
