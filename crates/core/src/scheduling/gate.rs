//! The gate of a plant: how many requests it has in service, whether any wait, and how long it was busy.
//!
//! One 64-bit word holds the number in service, a *waits* bit, and the time of the last change. Every change is one
//! compare-and-swap. The thread whose swap succeeds learns the interval since the previous change and accounts
//! `min(in service, s) dt` in its own lane. So busy time is exact, with no lock and no shared sum (gap estimation, CA 4.2.1,
//! over s workers).
//!
//! | bits | content |
//! |---|---|
//! | 0..16 | the number in service |
//! | 16 | the *waits* bit: requests wait |
//! | 17..64 | time of the last change, in ns modulo 2^47 (`tick` touches every gate each period, and must within 19 h) |
//!
//! *Protocol.* A request that finds room and a clear waits bit enters without a lock. Otherwise its thread takes the lock. Then
//! it either enters, if the queue is empty, by a compare-and-swap that fails if there is no room any more, or it sets the waits
//! bit by one that fails if there is room again. Both act on the same word, so a release in between makes the swap fail, and it
//! is tried again. So no wake-up is lost: a thread that ends a service and sees the bit takes the lock and dispatches. A thread
//! that finds the queue empty clears the bit, under the lock. `model_check.rs` checks this file under loom.
//!
//! A strict ratio may hold every waiting request, and exempt requests are held while they have half of the places. Then the
//! gate has room while the bit is set, and the next arrival, or `tick`, dispatches.
//!
//! The order of waiting requests is in `queue.rs`.

use crate::scheduling::queue::{Queue, RejectedWaits, Waiting};
use crate::scheduling::quota::Quota;
use crate::sync::lock::Lock;
use crate::sync::shared::Shared;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const COUNT: u64 = 0xffff;
const WAITS: u64 = 1 << 16;
const TIME_SHIFT: u32 = 17;
const TIME_MASK: u64 = u64::MAX >> TIME_SHIFT;

/// The most requests in service at once: the largest count that the word has room for.
pub(crate) const MOST_IN_SERVICE: u32 = COUNT as u32;

#[derive(Clone)]
pub(crate) struct Gate {
    words: Shared<GateWords>,
    queue: Arc<Lock<Queue>>,
}

/// The words of a gate.
#[derive(Default)]
#[repr(C)]
pub(crate) struct GateWords {
    word: AtomicU64,
    /// Exempt requests in service. The count follows the word, so that a race lets in at most one more for each thread.
    exempt: AtomicU32,
}

impl GateWords {
    /// The number of requests in service, and how many of these are exempt.
    pub(crate) fn in_service(&self) -> (u32, u32) {
        ((self.word.load(Ordering::Acquire) & COUNT) as u32, self.exempt.load(Ordering::Acquire))
    }
}

/// A change that was made, and the interval that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GateChange {
    /// Requests in service during the interval.
    pub(crate) before: u32,
    /// Requests in service after the change.
    pub(crate) after: u32,
    /// The length of the interval.
    pub(crate) elapsed_ns: u64,
    /// Whether requests wait.
    pub(crate) waits: bool,
}

/// What became of a request that found the gate full.
pub(crate) enum Entry {
    Entered(GateChange),
    /// The request waits. If the queue was full, it displaced a request that ranks lower.
    Waits {
        ticket: u64,
        displaced: Option<Waiting>,
    },
    Overflow,
}

impl Gate {
    pub(crate) fn new(words: Shared<GateWords>, classes: usize) -> Self {
        Gate { words, queue: Arc::new(Lock::new(Queue::new(classes))) }
    }

    /// The number of requests in service.
    pub(crate) fn in_service(&self) -> u32 {
        (self.words.word.load(Ordering::Relaxed) & COUNT) as u32
    }

    /// Whether requests may wait; `false` is certain at the moment of the call. Takes no lock.
    pub(crate) fn is_waited_at(&self) -> bool {
        self.words.word.load(Ordering::Relaxed) & WAITS != 0
    }

    /// Whether an exempt request may start. Exempt requests come before all others, so they hold at most half of the `shared`
    /// places, and at least one: otherwise a few clients that ask for a slow exempt path would keep everybody else out.
    pub(crate) fn may_start_exempt(&self, shared: u32) -> bool {
        self.words.exempt.load(Ordering::Relaxed) < (shared / 2).max(1)
    }

    /// Counts the start of an exempt request, after the change of the gate.
    pub(crate) fn enter_exempt(&self) {
        self.words.exempt.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of an exempt request's service, after the change of the gate.
    pub(crate) fn leave_exempt(&self) {
        self.words.exempt.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether requests wait for room. Exempt requests that wait only for their own share of the places do not count.
    pub(crate) fn lacks_room(&self, shared: u32) -> bool {
        self.is_waited_at() && (self.may_start_exempt(shared) || self.queue.lock().waiting_for_room() > 0)
    }

    /// Starts one request if fewer than `limit` are in service and none waits. Takes no lock.
    pub(crate) fn enter(&self, now: Instant, limit: u32) -> Option<GateChange> {
        self.change(now, |word| (word & WAITS == 0 && word & COUNT < u64::from(limit)).then_some(word + 1))
    }

    /// Ends the service of one request. If the change says that requests wait, the caller must [`Gate::dispatch`].
    pub(crate) fn leave(&self, now: Instant) -> GateChange {
        debug_assert!(self.in_service() > 0, "every leave follows an enter");
        self.always(now, |word| word - 1)
    }

    /// Ends an interval without changing anything, so that busy time is accounted up to `now`.
    pub(crate) fn touch(&self, now: Instant) -> GateChange {
        self.always(now, |word| word)
    }

    /// Starts the request if there is room after all, else puts it into the queue.
    pub(crate) fn enter_or_wait(
        &self,
        now: Instant,
        limit: u32,
        most_waiting: u32,
        waiting: Waiting,
    ) -> Entry {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_empty()
                && let Some(change) = self.change(now, |w| (w & COUNT < u64::from(limit)).then_some(w + 1))
            {
                return Entry::Entered(change);
            }
            let is_full = queue.is_full(most_waiting as usize, waiting.rank);
            let lowest = if is_full { queue.lowest_below(&waiting) } else { None };
            if is_full && lowest.is_none() {
                return Entry::Overflow;
            }
            // The swap fails if the bit is clear and there is room; then the request tries again to enter. While the bit is
            // set, a thread that ends a service waits for the lock.
            let full = |w: u64| (w & WAITS != 0 || w & COUNT >= u64::from(limit)).then_some(w | WAITS);
            if self.change_quietly(full) {
                let displaced = lowest.and_then(|fifo| queue.displace(fifo));
                return Entry::Waits { ticket: queue.push(waiting), displaced };
            }
        }
    }

    /// Starts waiting requests while there is room, exempt ones within their part of the `shared` places. A request whose
    /// turn comes after its latest start is taken out without a change of the gate. `next` is called under the lock, so it
    /// must be short.
    pub(crate) fn dispatch(
        &self,
        now: Instant,
        (limit, shared): (u32, u32),
        mut next: impl FnMut(Waiting, Option<GateChange>),
    ) {
        let mut queue = self.queue.lock();
        while !queue.is_empty() {
            // While the bit is set only the holder of this lock adds to the count, so room stays room.
            if self.in_service() >= limit {
                return;
            }
            queue.hold_exempt(!self.may_start_exempt(shared));
            let Some(waiting) = queue.pop(now) else { return };
            let is_late = waiting.is_late(now);
            next(waiting, (!is_late).then(|| self.always(now, |word| word + 1)));
        }
        self.change_quietly(|word| Some(word & !WAITS));
    }

    /// Takes a request out of the queue; false if it is not there any more (its verdict is on the way).
    pub(crate) fn cancel(&self, ticket: u64) -> bool {
        self.queue.lock().remove(ticket)
    }

    /// Takes out a request that was passed down from the plant of this number and has its ticket, if it waits here.
    pub(crate) fn cancel_passed_down(&self, from: (u16, u64)) -> Option<Waiting> {
        if self.is_waited_at() { self.queue.lock().remove_passed_down(from) } else { None }
    }

    /// Makes room for classes, and takes the quota of each class that was promised a delay or a ratio.
    pub(crate) fn promise(&self, quotas: &[Option<Arc<Quota>>]) {
        self.queue.lock().promise(quotas);
    }

    /// Sets the classes whose requests are rejected for the load, and how their requests wait if a class has no promise of its
    /// own.
    pub(crate) fn set_rejected(&self, waits: RejectedWaits, classes: &[usize]) {
        self.queue.lock().set_rejected(waits, classes);
    }

    /// Starts the clock: the first interval begins at `now`, however far that is from the origin. No interval ends.
    pub(crate) fn start_clock(&self, now: Instant) {
        let time = (now.as_nanos() & TIME_MASK) << TIME_SHIFT;
        self.change_quietly(|word| Some(word & (COUNT | WAITS) | time));
    }

    /// Takes out requests that have waited `max_wait`, or as long as their class may, except exempt ones. Returns when
    /// the next request will have waited that long, or when a held request may start.
    pub(crate) fn expire(&self, now: Instant, max_wait: Duration, drop: impl FnMut(Waiting)) -> Instant {
        if !self.is_waited_at() {
            return Instant::FAR;
        }
        let mut queue = self.queue.lock();
        queue.expire(now, max_wait, drop).min(queue.next_held(now))
    }

    /// Whether requests of other classes wait.
    pub(crate) fn is_waited_at_beside(&self, class: usize) -> bool {
        self.is_waited_at() && {
            let queue = self.queue.lock();
            queue.waiting_for_room() > queue.by_class()[class] as usize
        }
    }

    /// Waiting requests by class.
    pub(crate) fn waiting_by_class(&self, by_class: &mut [u32]) {
        if self.is_waited_at() {
            by_class.copy_from_slice(self.queue.lock().by_class());
        } else {
            by_class.fill(0);
        }
    }

    /// The lengths of the tables that follow promises.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lengths(&self) -> [(&'static str, usize); 3] {
        self.queue.lock().lengths()
    }

    fn always(&self, now: Instant, step: impl Fn(u64) -> u64) -> GateChange {
        loop {
            if let Some(change) = self.change(now, |word| Some(step(word))) {
                return change;
            }
        }
    }

    /// One timed change: `step` maps the low bits of the word, or declines.
    fn change(&self, now: Instant, step: impl Fn(u64) -> Option<u64>) -> Option<GateChange> {
        let now = now.as_nanos() & TIME_MASK;
        let mut word = self.words.word.load(Ordering::Acquire);
        loop {
            let next = step(word)?;
            let last = word >> TIME_SHIFT;
            let difference = now.wrapping_sub(last) & TIME_MASK;
            // Another thread's clock reading may be some nanoseconds later; then no time has passed.
            let (time, elapsed_ns) = if difference > TIME_MASK / 2 { (last, 0) } else { (now, difference) };
            let timed = (next & (COUNT | WAITS)) | time << TIME_SHIFT;
            match self.words.word.compare_exchange_weak(word, timed, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let (before, after) = ((word & COUNT) as u32, (timed & COUNT) as u32);
                    return Some(GateChange { before, after, elapsed_ns, waits: timed & WAITS != 0 });
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// A change of the *waits* bit, which ends no interval.
    fn change_quietly(&self, step: impl Fn(u64) -> Option<u64>) -> bool {
        self.words.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, step).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::scheduling::rank::{Rank, Standing};
    use alloc::vec::Vec;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn waiting(token: u64) -> Waiting {
        Waiting::ordinary(token, at(token))
    }

    fn exempt(token: u64) -> Waiting {
        Waiting { standing: Standing::Exempt, rank: Rank::EXEMPT, ..waiting(token) }
    }

    fn gate() -> Gate {
        Gate::new(Shared::default(), 1)
    }

    #[test]
    fn intervals_tile_time_exactly() {
        let gate = gate();
        let mut busy = 0;
        let mut account = |c: GateChange| busy += u64::from(c.before.min(2)) * c.elapsed_ns;
        for now in [10, 20, 30] {
            account(gate.enter(at(now), 8).expect("room"));
        }
        account(gate.leave(at(50)));
        account(gate.touch(at(60)));
        // One request is in service for 10 ns, two for 10, three (of which two count) for 20, two for 10.
        assert_eq!(busy, 10 + 20 + 40 + 20);
    }

    #[test]
    fn a_late_clock_reading_accounts_nothing_twice() {
        let gate = gate();
        gate.enter(at(100), 8).expect("room");
        assert_eq!(gate.enter(at(90), 8).expect("room").elapsed_ns, 0);
        assert_eq!(gate.leave(at(110)).elapsed_ns, 10);
    }

    #[test]
    fn time_wraps_without_a_jump() {
        let gate = gate();
        gate.touch(at(TIME_MASK / 2));
        gate.touch(at(TIME_MASK - 5));
        assert_eq!(gate.touch(at(TIME_MASK + 6)).elapsed_ns, 11);
    }

    #[test]
    fn an_origin_long_ago_is_no_interval() {
        let gate = gate();
        let sixty_hours = 60 * 3_600_000_000_000;
        gate.start_clock(at(sixty_hours));
        assert_eq!(gate.enter(at(sixty_hours + 5), 8).expect("room").elapsed_ns, 5);
        assert_eq!(gate.leave(at(sixty_hours + 12)).elapsed_ns, 7);
    }

    #[test]
    fn first_come_first_served_with_holes_and_exempt_first() {
        let gate = gate();
        gate.enter(at(0), 1).expect("room");
        let mut tickets = Vec::new();
        for token in 1..=3 {
            match gate.enter_or_wait(at(token), 1, 10, waiting(token)) {
                Entry::Waits { ticket, .. } => tickets.push(ticket),
                _ => panic!("the gate is full"),
            }
        }
        assert!(
            matches!(gate.enter_or_wait(at(9), 1, 3, exempt(9)), Entry::Waits { .. }),
            "exempt never overflows"
        );
        assert!(matches!(gate.enter_or_wait(at(9), 1, 3, waiting(10)), Entry::Overflow));
        assert!(gate.cancel(tickets[1]));
        assert!(!gate.cancel(tickets[1]), "a ticket is good once");
        let mut order = Vec::new();
        for now in 20..23 {
            assert!(gate.leave(at(now)).waits);
            gate.dispatch(at(now), (1, 1), |w, _| order.push(w.token.0));
        }
        assert_eq!(order, [9, 1, 3]);
        assert!(!gate.leave(at(30)).waits, "the bit is cleared with the last");
        assert_eq!(gate.in_service(), 0);
    }

    fn waits(gate: &Gate, most: u32, token: u64, rank: Rank) -> Option<Waiting> {
        match gate.enter_or_wait(at(token), 1, most, Waiting { rank, ..waiting(token) }) {
            Entry::Waits { displaced, .. } => displaced,
            _ => panic!("{token} does not wait"),
        }
    }

    fn starts(gate: &Gate, count: u64) -> Vec<u64> {
        let mut order = Vec::new();
        for _ in 0..count {
            gate.leave(at(1000));
            gate.dispatch(at(1000), (1, 1), |w, _| order.push(w.token.0));
        }
        order
    }

    #[test]
    fn contracts_first_then_by_priority_then_by_deadline_then_by_arrival() {
        let gate = gate();
        gate.enter(at(0), 1).expect("room");
        let soon = Some(Duration::from_nanos(100));
        let ranks = [
            Rank::ordinary(2, None),
            Rank::ordinary(1, None),
            Rank::ordinary(1, Some(Duration::from_nanos(500))),
            Rank::ordinary(1, soon),
            Rank::contracted(9, None),
            Rank::guaranteed(9, None),
            Rank::ordinary(1, soon),
        ];
        for (token, rank) in (1..).zip(ranks) {
            assert_eq!(waits(&gate, 10, token, rank), None);
        }
        let _ = gate.enter_or_wait(at(8), 1, 10, exempt(8));
        assert_eq!(starts(&gate, 8), [8, 6, 5, 4, 7, 3, 2, 1]);
    }

    /// A priority is an order inside one site, inside its contract and beyond it.
    #[test]
    fn sites_with_a_contract_take_turns_and_each_serves_its_priorities_in_order() {
        for rank in [Rank::guaranteed, Rank::contracted] {
            let gate = gate();
            gate.enter(at(0), 1).expect("room");
            let of = |token: u64, site: u16, priority: u8| {
                let rank = rank(priority, None);
                Waiting { site, rank, pace_ns: 10, ..waiting(token) }
            };
            let all = [of(1, 0, 255), of(2, 0, 255), of(3, 0, 1), of(4, 1, 1), of(5, 1, 1), of(6, 1, 1)];
            for waiting in all {
                assert!(matches!(gate.enter_or_wait(waiting.arrived, 1, 10, waiting), Entry::Waits { .. }));
            }
            // The sites alternate, and the first serves 3, its first priority, before 1 and 2.
            let order = starts(&gate, 6);
            let places = |tokens: [u64; 3]| {
                tokens.map(|one| order.iter().position(|token| *token == one).expect("it starts"))
            };
            let [first, second] = [places([3, 1, 2]), places([4, 5, 6])];
            assert!(first.is_sorted() && second.is_sorted(), "{order:?}");
            assert!(first.iter().zip(second).all(|(a, b)| a.abs_diff(b) == 1), "{order:?}");
        }
    }

    #[test]
    fn a_full_queue_gives_up_its_lowest_for_a_higher_one() {
        let gate = gate();
        gate.enter(at(0), 1).expect("room");
        for token in 1..=2 {
            waits(&gate, 3, token, Rank::ordinary(2, None));
        }
        waits(&gate, 3, 3, Rank::ordinary(1, None));
        let displaced = waits(&gate, 3, 4, Rank::guaranteed(9, None)).expect("one lost its place");
        assert_eq!(displaced.token.0, 1, "the oldest of the lowest");
        assert_eq!(waits(&gate, 3, 5, Rank::ordinary(1, None)).expect("the other").token.0, 2);
        let low = Waiting { rank: Rank::ordinary(2, None), ..waiting(6) };
        assert!(matches!(gate.enter_or_wait(at(6), 1, 3, low), Entry::Overflow));
        assert!(!gate.cancel(0), "its ticket is spent");
        let mut by_class = alloc::vec![0];
        gate.waiting_by_class(&mut by_class);
        assert_eq!((by_class[0], starts(&gate, 3)), (3, alloc::vec![4, 3, 5]));
    }

    #[test]
    fn a_flood_of_exempt_requests_takes_no_place_of_others() {
        let gate = gate();
        gate.enter(at(0), 1).expect("room");
        waits(&gate, 50, 1, Rank::guaranteed(9, None));
        (2..66).for_each(|token| assert_eq!(waits(&gate, 50, token, Rank::EXEMPT), None));
        assert!(matches!(gate.enter_or_wait(at(66), 1, 50, exempt(66)), Entry::Overflow));
        assert!(gate.cancel(1 + (1 << 48)) || gate.lacks_room(1), "the other request waits still");
    }

    #[test]
    fn expiry_takes_the_oldest_only_and_no_exempt_request() {
        let gate = gate();
        gate.enter(at(0), 1).expect("room");
        let _ = gate.enter_or_wait(at(1), 1, 10, exempt(1));
        for token in [10, 20] {
            let _ = gate.enter_or_wait(at(token), 1, 10, waiting(token));
        }
        let mut dropped = Vec::new();
        let next = gate.expire(at(115), Duration::from_nanos(100), |w| dropped.push(w.token.0));
        assert_eq!((dropped, next), (alloc::vec![10], at(120)));
    }
}
