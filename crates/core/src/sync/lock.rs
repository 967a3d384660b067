//! The core's one mutex, and the only file that names std.
//!
//! The mutex guards a plant's queue for a few instructions and never across a wait, so a blocking mutex is right on an
//! asynchronous thread too. A poisoned lock is used all the same: the queue is valid after each of its statements.

extern crate std;

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};

pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(test)]
        tests::TAKEN.with(|taken| taken.set(taken.get() + 1));
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use crate::promises::{Class, Condition, Delay, Plant, Promises, Site};
    use crate::request::{Arrival, Outcome, Service, Target, Token, Verdicts};
    use crate::time::{Duration, Instant};
    use crate::{Engine, Lane};
    use alloc::vec;
    use core::cell::Cell;

    super::std::thread_local! {
        /// How often this thread took a lock.
        pub(super) static TAKEN: Cell<u64> = const { Cell::new(0) };
    }

    fn arrive(lane: &mut Lane, class: u16, number: u64, verdicts: &mut Verdicts) -> Arrival {
        let target = Target { class, ..Target::default() };
        lane.arrive(Instant::from_nanos(number), target, Token(number), verdicts)
    }

    #[test]
    fn a_request_that_need_not_wait_takes_no_lock_whatever_was_promised() {
        let mut site = Site::new("site", &["full"]);
        let class = |name: &str| Class::new(name, Condition::default());
        let delay = Delay { target: Duration::from_millis(100), percentile: Some(95.0) };
        let mean = Class { delay: Some(Delay { percentile: None, ..delay }), ..class("mean") };
        let share = Class { delay: Some(delay), ..class("share") };
        site.classes = vec![mean, share, Class { ratio: Some(2.0), ..class("ratio") }];
        site.default_ratio = Some(1.0);
        let (_engine, mut lanes) =
            Engine::new(&Promises::of(Plant::new("app", 8), site), 1, 1).expect("valid promises");
        let lane = &mut lanes[0];
        let mut verdicts = Verdicts::new();
        let taken = || TAKEN.with(Cell::get);
        let before = taken();
        for number in 0..1000 {
            let arrival = arrive(lane, number as u16 % 4, number, &mut verdicts);
            let Arrival::Serve(mut permit) = arrival else { panic!("there is room: {arrival:?}") };
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(Instant::from_nanos(number), &mut permit, service, &mut verdicts);
            lane.depart(Instant::from_nanos(number), permit, Outcome::Completed, &mut verdicts);
        }
        assert_eq!(taken(), before);
        let all = (0..9).map(|number| arrive(lane, 0, number, &mut verdicts));
        assert!(all.last().is_some_and(|arrival| matches!(arrival, Arrival::Wait(..))));
        assert!(taken() > before, "a request that waits takes the lock");
    }
}
