//! What is learned of the requests of one type at one level.
//!
//! A type that takes longer than its deadline even alone would never be admitted, and a wrong estimate would never be
//! corrected. So one of its requests is admitted now and then, the more seldom the better its cost is known
//! ([`TIMES_KNOWN`]), and one after the other on a server that has a worker to spare for it: nobody is locked out of an
//! idle server.

use crate::admission::estimates::{Alone, OwnTime, TypeEstimate};
use crate::control::deadline::service_allowance::own_time;
use crate::model::{Batch, ServiceHistogram, ServiceTime, SizeLaw, Sized};
use libm::sqrt;

/// A type at one level. In microseconds, or of announced costs in millionths of the announcement.
#[derive(Clone, Debug)]
pub(super) struct LearnedType {
    pub(super) time: ServiceTime,
    pub(super) times: ServiceHistogram,
    pub(super) size: SizeLaw,
    pub(super) requests: u64,
    /// Whether some of its requests had a deadline.
    pub(super) has_deadline: bool,
    /// The time (s) since a request of the type was last served.
    silent: f64,
    /// The time (s) for which every request of the type was refused because of its cost.
    refused: f64,
}

/// A type whose estimate exceeds its deadline in an empty queue is admitted once in this many times its own service time, times
/// the number of requests that its cost was learned from, but at least once in [`RARELY`] times, which takes one per cent of
/// a worker.
const TIMES_KNOWN: f64 = 5.0;
const RARELY: f64 = 100.0;
/// The time (s) after which a server with a worker to spare serves another request of a type that takes too long, if it did
/// not hear of the last one.
const SILENT: f64 = 60.0;

impl LearnedType {
    /// A type of which this much is known.
    pub(super) fn new(time: ServiceTime) -> Self {
        let (times, size) = (ServiceHistogram::default(), SizeLaw::default());
        LearnedType { time, times, size, requests: 0, has_deadline: false, silent: 0.0, refused: 0.0 }
    }

    /// A type as another engine knew it.
    pub(super) fn known(time: ServiceTime, times: ServiceHistogram, size: SizeLaw, requests: u64) -> Self {
        LearnedType { times, ..LearnedType::new(time).after(size, requests) }
    }

    /// The type, of which these requests were seen elsewhere.
    pub(super) fn after(self, size: SizeLaw, requests: u64) -> Self {
        LearnedType { size, requests, ..self }
    }

    /// Learns from the requests released since the last call; returns whether there were any.
    pub(super) fn learn(&mut self, row: &TypeEstimate, seconds: f64, soon: SoonEnough) -> bool {
        let seen = row.take();
        let requests = seen.requests as f64;
        self.requests += seen.requests;
        self.has_deadline |= seen.too_long;
        let [blocks, squares, products] = seen.blocks.map(|sum| sum as f64);
        // The sum excludes the time of the blocks.
        let took = seen.sum_us as f64 + blocks * self.size.slope();
        self.size.learn(&Sized { requests, took, blocks, squares, products });
        let batch = Batch { requests, sum: seen.sum_us as f64, squares: seen.squares_us2 as f64 };
        let stepped = self.time.learn(&batch);
        self.silent += seconds;
        if requests > 0.0 || self.silent >= SILENT {
            self.silent = 0.0;
            row.invite_if_idle();
        }
        if requests > 0.0 {
            self.refused = 0.0;
            // After a step the cost is that of as many requests as showed it.
            let remember = if stepped { self.time.weight() } else { f64::INFINITY };
            self.times.learn(remember, row.take_times());
            // After one that was in time the next follows at once: a few of them show that the type has become cheaper.
            let was_in_time = batch.sum <= requests * soon.deadline_us;
            if was_in_time && self.own_time(soon.deadline_us, soon.in_time).alone == Alone::Late {
                row.invite();
            }
        } else if seen.too_long {
            self.refused += seconds;
            let times = (TIMES_KNOWN * self.time.weight()).min(RARELY);
            if self.refused >= times * self.whole(soon.longest_us).0 * 1e-6 {
                self.refused = 0.0;
                row.invite();
            }
        }
        requests > 0.0
    }

    /// What its requests need within a deadline that this part of them keeps.
    pub(super) fn own_time(&self, deadline_us: f64, in_time: f64) -> OwnTime {
        own_time(&self.time, &self.times, (deadline_us, in_time))
    }

    /// The share of its requests that take no longer than a deadline; `None` if none of them had one.
    pub(super) fn in_time(&self, deadline_us: f64) -> Option<f64> {
        self.has_deadline.then(|| self.times.within(deadline_us, &self.time))
    }

    /// The mean time of its requests and its deviation, with what they take beyond the longest time that the estimate counts.
    pub(super) fn whole(&self, longest_us: f64) -> (f64, f64) {
        let (mean, deviation) = (self.time.mean(), self.time.deviation());
        let (beyond, squares) = self.times.beyond(longest_us);
        let whole = mean + beyond;
        (whole, sqrt((deviation * deviation + mean * mean + squares - whole * whole).max(0.0)))
    }
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoonEnough {
    /// The shortest deadline of its site.
    pub(super) deadline_us: f64,
    /// The part of its requests that keeps it.
    pub(super) in_time: f64,
    /// The longest time that estimates count.
    pub(super) longest_us: f64,
}
