//! The counters of deadlines that threads share, under every interleaving of them that loom can make.
//!
//! Most of them are sums (`unfinished_work.rs`, `residual_work.rs`, `waiting_by_age.rs`). The thread that adds to such a word
//! takes the same amount away later, or hands the permit to the thread that does, and each is one atomic operation. So no order
//! of them leaves anything over or takes a word below zero. Work that is added in two words is only an estimate while a reader
//! is between them. What the estimates count is swapped out as it is (`estimates.rs`), and tagged words are checked in
//! `sync/model_check.rs`.
//!
//! The ring of held workers is no sum: a start may take over the word of an earlier part of time and then moves what was
//! there to the old ones, in a second operation, and a request that ends must be found in the one or the other.
//!
//! `make model-check` runs it (RUSTFLAGS="--cfg loom").

use crate::admission::held_workers::HeldWorkers;
use crate::request::work::{Cost, Work};
use crate::time::{Duration, Instant};
use loom::sync::Arc;
use loom::thread;

/// With a part of time of a millisecond: eight words, and old after eight of them.
const DEADLINE_NS: u64 = 32_000_000;

fn work() -> Work {
    Work::of(Cost { mean_us: 100, deviation_us: 0 })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(90_000 + ms)
}

/// A request as a thread brings it: it starts at this millisecond and ends.
fn request(held: &HeldWorkers, ms: u64) {
    held.start(at(ms), &work());
    held.finish(at(ms), &work(), (100, true));
}

/// How many requests are in service, as a thread sees it that admits another.
fn counted(held: &HeldWorkers) -> u32 {
    let holding = held.holding(Some(at(9)));
    holding.others.max(holding.workers)
}

/// A request ends as another one takes over the word of its part of time. No thread sees more requests than there are.
#[test]
fn a_request_whose_part_of_time_is_over_as_it_ends_is_counted_once() {
    loom::model(|| {
        let held = Arc::new(HeldWorkers::new(DEADLINE_NS, 0));
        held.start(at(0), &work());
        let other = {
            let held = held.clone();
            thread::spawn(move || request(&held, 8))
        };
        let seen = counted(&held);
        assert!(seen <= 3, "{seen}");
        held.finish(at(0), &work(), (9_000, true));
        other.join().unwrap();
        assert_eq!(counted(&held), 0);
    });
}

/// A thread that was held up starts a request in an earlier part of time than the other thread, in either order: both are
/// counted while they stay, and none afterwards.
#[test]
fn a_request_that_stays_is_counted_whoever_takes_its_word() {
    loom::model(|| {
        let held = Arc::new(HeldWorkers::new(DEADLINE_NS, 0));
        let other = {
            let held = held.clone();
            thread::spawn(move || held.start(at(8), &work()))
        };
        request(&held, 0);
        held.start(at(0), &work());
        other.join().unwrap();
        assert_eq!(counted(&held), 2);
        [0, 8].iter().for_each(|ms| held.finish(at(*ms), &work(), (100, true)));
        assert_eq!(counted(&held), 0);
    });
}
