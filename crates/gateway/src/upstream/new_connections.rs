//! New connections to a server on which it has not answered yet.
//!
//! A prefork server gives each connection a worker for as long as it is open; further connections wait in its listen queue. If
//! the server has fewer workers than the gateway takes it to have, the gateway's idle connections may hold all of them. New
//! requests use the idle connections again and again, while requests on new connections starve. So if a new connection waits
//! for much longer than quick answers take, a connection that is or becomes idle is closed, and its worker accepts the next
//! connection. The new connection asks again each time that its wait has doubled, since the worker may have accepted another
//! one. If the server was only slow, this costs one connection that must be made again.

use crate::sync::lock;
use plimsoll_core::time::{Duration, Instant};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The shortest and the longest wait after which a new connection counts as one that no worker has accepted; in between, the
/// wait is this multiple of a quick answer's time. If services take a second on average, one in three takes longer than the
/// longest wait, so that needless closes become fewer and fewer. With slower servers they do not, but cost little beside the
/// requests.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);
const MOST_PATIENCE: Duration = Duration::from_secs(1);
const QUICK_ANSWERS: u32 = 8;

#[derive(Debug)]
pub(super) struct NewConnections {
    /// When the first of the new connections may ask, or an earlier time, in nanoseconds; the largest number if there are none.
    /// Threads read it without the lock.
    asks_at: AtomicU64,
    list: Mutex<List>,
}

/// The new connections, in the order of their numbers.
#[derive(Debug, Default)]
struct List {
    next: u64,
    waiting: Vec<Waiting>,
    /// The time of a quick answer, once there was one: the shortest one lately, which grows by a quarter with each slower one.
    quick: Option<Duration>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    since: Instant,
    asked: u32,
}

impl List {
    fn remove(&mut self, number: u64) {
        if let Ok(index) = self.waiting.binary_search_by_key(&number, |waiting| waiting.number) {
            self.waiting.remove(index);
        }
    }

    /// When a waiting connection asks next.
    fn asks_at(&self, waiting: &Waiting) -> Instant {
        let patience = self.quick.unwrap_or_default().min(MOST_PATIENCE) * QUICK_ANSWERS;
        let patience = patience.clamp(LEAST_PATIENCE, MOST_PATIENCE);
        waiting.since + patience * (1 << waiting.asked.min(16))
    }

    /// The connection that asks first, and when.
    fn first(&self) -> Option<(usize, Instant)> {
        let all = self.waiting.iter().enumerate();
        all.map(|(index, waiting)| (index, self.asks_at(waiting))).min_by_key(|(_, at)| *at)
    }
}

impl NewConnections {
    pub(super) fn new() -> Self {
        NewConnections { asks_at: AtomicU64::new(u64::MAX), list: Mutex::default() }
    }

    /// Adds a new connection, and returns its number.
    pub(super) fn begin(&self, now: Instant) -> u64 {
        let mut list = lock(&self.list);
        let number = list.next;
        list.next += 1;
        list.waiting.push(Waiting { number, since: now, asked: 0 });
        self.asks_at.fetch_min((now + LEAST_PATIENCE).as_nanos(), Relaxed);
        number
    }

    /// The first bytes of an answer came, on the new connection of this number or on an older connection (`None`). Answers on
    /// older connections count only while there are new ones.
    pub(super) fn answered(&self, number: Option<u64>, took: Duration) {
        if number.is_none() && self.asks_at.load(Relaxed) == u64::MAX {
            return;
        }
        let mut list = lock(&self.list);
        number.into_iter().for_each(|number| list.remove(number));
        // By the thread's coarse clock an answer may take no time, so a millisecond is added for the time to grow from.
        let most = list.quick.map_or(took, |quick| quick * 5 / 4 + Duration::from_millis(1));
        list.quick = Some(took.min(most));
        self.store(&list);
    }

    /// The connection of this number was closed without an answer.
    pub(super) fn end(&self, number: u64) {
        let mut list = lock(&self.list);
        list.remove(number);
        self.store(&list);
    }

    /// Whether an idle connection is to be closed so that its worker accepts a new one.
    pub(super) fn asks_for_worker(&self, now: Instant) -> bool {
        if now.as_nanos() < self.asks_at.load(Relaxed) {
            return false;
        }
        let mut list = lock(&self.list);
        let first = list.first().filter(|(_, at)| *at <= now);
        if let Some((index, _)) = first {
            list.waiting[index].asked += 1;
        }
        self.store(&list);
        first.is_some()
    }

    fn store(&self, list: &List) {
        let next = list.first().map_or(u64::MAX, |(_, at)| at.as_nanos());
        self.asks_at.store(next, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn each_asks_once_it_has_waited_and_again_at_twice_that_time() {
        let connections = NewConnections::new();
        let ask = |times: &[u64]| -> Vec<u64> {
            times.iter().copied().filter(|ms| connections.asks_for_worker(at(*ms))).collect()
        };
        let [first, second, third] = [0, 10, 20].map(|ms| connections.begin(at(ms)));
        assert!(ask(&[249]).is_empty());
        connections.end(second);
        assert_eq!(ask(&[250, 251, 269, 270, 499, 500, 501, 520, 521]), [250, 270, 500, 520]);
        connections.end(first);
        connections.answered(Some(third), Duration::from_millis(501));
        assert!(ask(&[5_000]).is_empty());
        assert_eq!(connections.asks_at.load(Relaxed), u64::MAX);
    }

    /// Each connection that is closed is made again.
    #[test]
    fn before_a_slow_server_connections_that_are_made_again_become_few() {
        let mut random = plimsoll_core::random::Random::new(7);
        let connections = NewConnections::new();
        // Fifty requests are always under way, with a mean service time of 0.5 s. All connections are new at first, and none is
        // idle for long.
        let mut under_way: Vec<(f64, f64, Option<u64>)> = Vec::new();
        let (mut is_new, mut made, mut of_late) = (true, 0, 0);
        for n in 0..5_000 {
            let begun = if n < 50 { 0.0 } else { under_way[0].1 };
            if n >= 50 {
                let (since, end, number) = under_way.remove(0);
                connections.answered(number, Duration::from_secs_f64(end - since));
                is_new = connections.asks_for_worker(Instant::ZERO + Duration::from_secs_f64(end));
            }
            let number = is_new.then(|| connections.begin(Instant::ZERO + Duration::from_secs_f64(begun)));
            (made, of_late) = (made + u32::from(is_new), of_late + u32::from(is_new && n >= 4_000));
            under_way.push((begun, begun + random.exponential(0.5), number));
            under_way.sort_by(|one, other| one.1.total_cmp(&other.1));
        }
        assert!(made < 1_000 && of_late < 20, "{made} of 5,000 connections, {of_late} of the last thousand");
    }
}
