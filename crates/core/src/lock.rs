//! The core's one mutex, and the only file that names std.
//!
//! It guards a plant's queue: a few moves of memory, never a wait, so a blocking mutex is right, also on an
//! asynchronous thread. A poisoned lock is taken all the same: the queue is valid between any two of its statements.

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
    use crate::door::{Arrival, Outcome, RequestView, Service, Token, Verdicts};
    use crate::promises::{Class, Condition, Delay, Plant, Promises, Site};
    use crate::time::{Duration, Instant};
    use crate::{Engine, Lane};
    use alloc::vec;
    use core::cell::Cell;
    use core::net::{IpAddr, Ipv4Addr};

    super::std::thread_local! {
        /// How often this thread took a lock.
        pub(super) static TAKEN: Cell<u64> = const { Cell::new(0) };
    }

    struct Request(&'static str);

    impl RequestView for Request {
        fn method(&self) -> &str {
            "GET"
        }
        fn host(&self) -> &str {
            "h"
        }
        fn path(&self) -> &str {
            self.0
        }
        fn header(&self, _: &str) -> Option<&str> {
            None
        }
        fn client(&self) -> IpAddr {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }
    }

    fn arrive(lane: &mut Lane, path: &'static str, number: u64, verdicts: &mut Verdicts) -> Arrival {
        let target = lane.classify(&Request(path)).expect("any host");
        lane.arrive(Instant::from_nanos(number), target, Token(number), verdicts)
    }

    #[test]
    fn who_need_not_wait_takes_no_lock_whatever_was_promised() {
        let mut site = Site::new("site", &["full"]);
        let class = |name: &str| {
            let paths = vec![["/", name].concat()];
            Class::new(name, Condition { paths, ..Condition::default() })
        };
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
            let path = ["/mean", "/share", "/ratio", "/"][number as usize % 4];
            let arrival = arrive(lane, path, number, &mut verdicts);
            let Arrival::Serve(mut permit) = arrival else { panic!("there is room: {arrival:?}") };
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(Instant::from_nanos(number), &mut permit, service, &mut verdicts);
            lane.depart(Instant::from_nanos(number), permit, Outcome::Completed, &mut verdicts);
        }
        assert_eq!(taken(), before);
        let all = (0..9).map(|number| arrive(lane, "/mean", number, &mut verdicts));
        assert!(all.last().is_some_and(|arrival| matches!(arrival, Arrival::Wait(..))));
        assert!(taken() > before, "who waits does");
    }
}
