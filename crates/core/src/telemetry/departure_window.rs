//! The last N departures of a class, renewed after every n of them (QM 2.2: a long window of observation, a short one of
//! control). The window keeps sums of counters at the updates, so nothing is kept by request.

use crate::request::Reason;
use crate::telemetry::counters::{ClassCounters, Counter, LaneCounters};
use crate::telemetry::snapshot::sum_over;
use crate::time::Instant;
use alloc::{collections::VecDeque, sync::Arc};

/// Sums of one class over all lanes, at one instant.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    at: Instant,
    arrivals: u64,
    released: u64,
    response_ns: u64,
    late: u64,
    dropped: u64,
    service_ns: u64,
    service_us2: u64,
    interarrival_us2: u64,
}

/// The departures of a class.
pub(crate) struct Window {
    updates: VecDeque<Sums>,
    departures: u64,
    update: u64,
    /// Departures, their service times and their response times (s), of the last [`RECENT`] or so.
    recent: (f64, f64, f64),
}

/// The figures of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Departures in the window.
    pub(crate) departures: f64,
    /// Departures since the last update.
    pub(crate) fresh: f64,
    /// Mean response time (s).
    pub(crate) response: f64,
    /// The same of the last [`RECENT`] or so (s).
    pub(crate) recent_response: f64,
    /// The sum of the response times since the last update (s).
    pub(crate) fresh_sum: f64,
    /// The share of requests that took longer than D_ref or were dropped after waiting.
    pub(crate) late: f64,
    /// S (s), over fewer departures than the other figures, so that a server that slows down shows before a window is over.
    pub(crate) service: f64,
    pub(crate) service_variability: f64,
    /// c_a^2; 1 while too little is known.
    pub(crate) arrival_variability: f64,
}

/// The bound of c_a^2, which has none for a Pareto process with a shape below 2.
const MOST_VARIABILITY: f64 = 8.0;
/// Departures that count as recent.
const RECENT: f64 = 50.0;
/// The fewest samples that give a variance.
const ENOUGH: f64 = 30.0;

impl Window {
    /// The last `departures`, seen after each `update`.
    pub(crate) fn new(departures: u64, update: u64) -> Self {
        Window { updates: VecDeque::new(), departures, update, recent: (0.0, 0.0, 0.0) }
    }

    /// Looks at the counters; what is seen if an update is due.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        lanes: &[Arc<LaneCounters>],
        class: usize,
    ) -> Option<Seen> {
        let sums = sums(now, lanes, class);
        let Some(last) = self.updates.back() else {
            self.updates.push_back(sums);
            return None;
        };
        let fresh = sums.ended().wrapping_sub(last.ended());
        if fresh < self.update {
            return None;
        }
        let fresh_sum = sums.response_ns.wrapping_sub(last.response_ns) as f64 * 1e-9;
        let released = sums.released.wrapping_sub(last.released) as f64;
        let service = sums.service_ns.wrapping_sub(last.service_ns) as f64 * 1e-9;
        let kept = (1.0 - released / RECENT).max(0.0);
        let (count, services, responses) = self.recent;
        self.recent = (count * kept + released, services * kept + service, responses * kept + fresh_sum);
        self.updates.push_back(sums);
        while self.updates.len() > 2 && sums.ended().wrapping_sub(self.updates[1].ended()) >= self.departures
        {
            self.updates.pop_front();
        }
        let seen = seen(&self.updates[0], &sums);
        let (count, services, responses) = self.recent;
        let (service, recent_response) =
            if count > 0.0 { (services / count, responses / count) } else { (seen.service, seen.response) };
        Some(Seen { fresh: fresh as f64, fresh_sum, service, recent_response, ..seen })
    }
}

impl Sums {
    fn ended(&self) -> u64 {
        self.released.wrapping_add(self.dropped)
    }
}

fn sums(at: Instant, lanes: &[Arc<LaneCounters>], class: usize) -> Sums {
    let sum = |counter: fn(&ClassCounters) -> &Counter| sum_over(lanes, class, counter);
    Sums {
        at,
        arrivals: sum(|c| &c.arrivals),
        released: sum(|c| &c.released),
        response_ns: sum(|c| &c.response_ns),
        late: sum(|c| &c.timing.late),
        dropped: sum(|c| &c.reasons[Reason::WaitTimeout as usize]),
        service_ns: sum(|c| &c.timing.service_ns),
        service_us2: sum(|c| &c.timing.service_us2),
        interarrival_us2: sum(|c| &c.timing.interarrival_us2),
    }
}

fn seen(first: &Sums, last: &Sums) -> Seen {
    let difference = |of: fn(&Sums) -> u64| of(last).wrapping_sub(of(first)) as f64;
    let (released, dropped) = (difference(|s| s.released), difference(|s| s.dropped));
    let (arrivals, ended) = (difference(|s| s.arrivals), released + dropped);
    let seconds = last.at.since(first.at).as_secs_f64();
    let mean = |sum: f64| if released > 0.0 { sum / released } else { 0.0 };
    let service = mean(difference(|s| s.service_ns) * 1e-9);
    // c^2 from a sum of squares, a count and a mean.
    let variability = |squares: f64, count: f64, mean: f64| {
        if count < ENOUGH || mean <= 0.0 {
            return 1.0;
        }
        (squares * 1e-12 / count / (mean * mean) - 1.0).clamp(0.0, MOST_VARIABILITY)
    };
    Seen {
        departures: ended,
        response: mean(difference(|s| s.response_ns) * 1e-9),
        late: (difference(|s| s.late) + dropped) / ended.max(1.0),
        service,
        service_variability: variability(difference(|s| s.service_us2), released, service),
        arrival_variability: variability(
            difference(|s| s.interarrival_us2),
            arrivals,
            seconds / arrivals.max(1.0),
        ),
        ..Seen::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn counters() -> [Arc<LaneCounters>; 1] {
        [Arc::new(LaneCounters::default().grown(1, 1))]
    }

    /// Counts requests that came 100 ms after one another and were served in 10 ms.
    fn release(lanes: &[Arc<LaneCounters>; 1], count: u64, response_ms: u64, late: bool) {
        let class = &lanes[0].classes[0];
        for _ in 0..count {
            class.arrivals.add(1);
            class.timing.arrive(100_000_000);
            class.released.add(1);
            class.response_ns.add(1_000_000 * response_ms);
            class.timing.release(10_000_000, late);
        }
    }

    #[test]
    fn an_update_shows_the_departures_of_the_window_and_those_since_the_last() {
        let (lanes, at) = (counters(), |seconds: u64| Instant::from_nanos(1_000_000_000 * seconds));
        let mut window = Window::new(100, 10);
        assert_eq!(window.observe(at(0), &lanes, 0), None, "the window begins here");
        release(&lanes, 9, 20, false);
        assert_eq!(window.observe(at(1), &lanes, 0), None, "an update takes ten departures");
        release(&lanes, 1, 20, false);
        let seen = window.observe(at(1), &lanes, 0).expect("ten departures");
        assert_eq!((seen.departures, seen.fresh, seen.late), (10.0, 10.0, 0.0));
        assert!(close(seen.response, 0.02) && close(seen.recent_response, 0.02) && close(seen.service, 0.01));
        assert_eq!((seen.service_variability, seen.arrival_variability), (1.0, 1.0), "too few to tell");

        release(&lanes, 40, 40, true);
        lanes[0].classes[0].reasons[Reason::WaitTimeout as usize].add(10);
        let seen = window.observe(at(5), &lanes, 0).expect("fifty departures");
        assert_eq!((seen.departures, seen.fresh), (60.0, 50.0));
        assert!(close(seen.late, 50.0 / 60.0), "dropped requests are late: {}", seen.late);
        assert!(close(seen.response, 0.036) && close(seen.fresh_sum, 1.6), "{seen:?}");
        // Forty of the last fifty are new, so a fifth of what was recent before is kept.
        assert!(close(seen.recent_response, (0.2 * 0.2 + 1.6) / (0.2 * 10.0 + 40.0)), "{seen:?}");
        assert!(close(seen.service_variability, 0.0) && close(seen.arrival_variability, 0.0), "{seen:?}");
    }

    #[test]
    fn departures_leave_the_window_by_whole_updates() {
        let lanes = counters();
        let mut window = Window::new(20, 10);
        let mut update = |response_ms| {
            release(&lanes, 10, response_ms, false);
            window.observe(Instant::ZERO, &lanes, 0)
        };
        assert_eq!(update(0), None);
        for (response_ms, departures, response) in [(1000, 10.0, 1.0), (500, 20.0, 0.75), (500, 20.0, 0.5)] {
            let seen = update(response_ms).expect("ten departures");
            assert!(seen.departures == departures && close(seen.response, response), "{seen:?}");
        }
    }
}
