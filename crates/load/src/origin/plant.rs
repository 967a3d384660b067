//! The server that the origin plays: s workers, first come first served, a finite queue, in exact virtual time.
//!
//! No thread sleeps in a worker's place. Each job's end is known when it arrives (Kiefer and Wolfowitz 1955):
//! `start = max(arrival, earliest free worker)`, `end = start + service`. A timer only *reports* ends, so a late timer
//! delays an answer but never the next job, and the capacity s / S is exact.
//!
//! Jobs use a work clock that advances by `speed` per nanosecond of real time; at speed zero the server stands still. So a
//! change of speed moves all ends at once without changing any job.
//!
//! A job runs to its end even if its client has left, as in a server that does not look at the socket while it works.
//!
//! A request that finds no room may cost the server too (UC 7.5: T_f): the cost is a piece of work that takes no place in the
//! queue, but waits for its turn like any other.
//!
//! The plant is pure: time is an argument in nanoseconds from the origin's start, and randomness is seeded.

use super::ledger::{BusyLedger, BusyReading};
use crate::Random;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A job that has ended: its exact end, and its payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndedJob<P> {
    pub(crate) at_ns: u64,
    pub(crate) payload: P,
}

/// How the plant is built.
#[derive(Clone, Debug)]
pub(crate) struct PlantShape {
    pub(crate) workers: u32,
    pub(crate) queue: usize,
    /// The generator of exponential service times; `None`: service times are deterministic.
    pub(crate) exponential: Option<Random>,
}

/// The workers, their queue and the work clock.
pub(crate) struct Plant<P> {
    shape: PlantShape,
    free_at_work: BinaryHeap<Reverse<u64>>,
    /// Jobs by their end on the work clock and their order of arrival, with the caller's payload; `None` for work without a
    /// client.
    jobs: BTreeMap<(u64, u64), Option<P>>,
    order: u64,
    /// How many of the jobs have no client.
    unheard: usize,
    ledger: BusyLedger,
    speed: f64,
    /// The work clock was at `base_work` at time `base_ns`.
    base_ns: u64,
    base_work: u64,
}

impl<P> Plant<P> {
    pub(crate) fn new(shape: PlantShape) -> Self {
        Self {
            free_at_work: (0..shape.workers).map(|_| Reverse(0)).collect(),
            jobs: BTreeMap::new(),
            order: 0,
            unheard: 0,
            ledger: BusyLedger::new(shape.workers),
            speed: 1.0,
            base_ns: 0,
            base_work: 0,
            shape,
        }
    }

    /// Adds a request of `service_ns`; if the queue is full its payload is returned. Call [`Plant::advance`] with the same
    /// `now_ns` first, so that ended jobs no longer take places.
    pub(crate) fn arrive(&mut self, now_ns: u64, service_ns: u64, payload: P) -> Result<(), P> {
        if self.jobs.len() - self.unheard >= self.shape.workers as usize + self.shape.queue {
            return Err(payload);
        }
        let service_ns = match &mut self.shape.exponential {
            Some(random) => (service_ns as f64 * random.exponential(1.0)) as u64,
            None => service_ns,
        };
        self.take_turn(now_ns, service_ns, Some(payload));
        Ok(())
    }

    /// Adds work that no client waits for: the cost of a refusal.
    pub(crate) fn waste(&mut self, now_ns: u64, service_ns: u64) {
        if service_ns > 0 {
            self.unheard += 1;
            self.take_turn(now_ns, service_ns, None);
        }
    }

    fn take_turn(&mut self, now_ns: u64, service_ns: u64, payload: Option<P>) {
        let now_work = self.work_at(now_ns);
        let free = self.free_at_work.pop().map_or(0, |Reverse(free)| free);
        let end_work = free.max(now_work) + service_ns;
        self.free_at_work.push(Reverse(end_work));
        self.jobs.insert((end_work, self.order), payload);
        self.order += 1;
        self.ledger.enter(now_ns);
    }

    /// Moves to `now_ns` and puts the jobs that have ended by then into `ended`, in order.
    pub(crate) fn advance(&mut self, now_ns: u64, ended: &mut Vec<EndedJob<P>>) {
        while let Some(at_ns) = self.next_end()
            && at_ns <= now_ns
            && let Some((_, payload)) = self.jobs.pop_first()
        {
            self.ledger.leave(at_ns);
            match payload {
                Some(payload) => ended.push(EndedJob { at_ns, payload }),
                None => self.unheard -= 1,
            }
        }
    }

    /// When the next job ends; `None` if there is none, or at speed zero.
    pub(crate) fn next_end(&self) -> Option<u64> {
        let speed = self.speed;
        let work = self.jobs.first_key_value()?.0.0.saturating_sub(self.base_work);
        (speed > 0.0).then(|| {
            let real = if speed == 1.0 { work } else { (work as f64 / speed).ceil() as u64 };
            self.base_ns.saturating_add(real)
        })
    }

    /// Exact busy time. Call [`Plant::advance`] with the same `now_ns` first.
    pub(crate) fn busy(&mut self, now_ns: u64) -> BusyReading {
        self.ledger.read(now_ns)
    }

    /// Sets the work done per unit of time from now on; 1 is the speed at which service times are stated.
    pub(crate) fn set_speed(&mut self, now_ns: u64, speed: f64) {
        self.base_work = self.work_at(now_ns);
        self.base_ns = self.base_ns.max(now_ns);
        self.speed = if speed.is_finite() { speed.max(0.0) } else { self.speed };
    }

    fn work_at(&self, now_ns: u64) -> u64 {
        let passed = now_ns.saturating_sub(self.base_ns);
        self.base_work + if self.speed == 1.0 { passed } else { (passed as f64 * self.speed) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plant(workers: u32, queue: usize) -> Plant<u32> {
        Plant::new(PlantShape { workers, queue, exponential: None })
    }

    fn ends(plant: &mut Plant<u32>, now_ns: u64) -> Vec<(u64, u32)> {
        let mut ended = Vec::new();
        plant.advance(now_ns, &mut ended);
        ended.into_iter().map(|job| (job.at_ns, job.payload)).collect()
    }

    #[test]
    fn first_come_first_served_over_two_workers() {
        let mut plant = plant(2, 8);
        for (name, service) in [(0, 100), (1, 50), (2, 100), (3, 10)] {
            plant.arrive(10, service, name).unwrap();
        }
        assert_eq!(plant.next_end(), Some(60));
        assert_eq!(ends(&mut plant, 110), [(60, 1), (110, 0)]);
        // The third took the worker that was free at 60, the fourth the one free at 110.
        assert_eq!(ends(&mut plant, 1000), [(120, 3), (160, 2)]);
        assert_eq!(plant.busy(1000).busy_worker_ns, 100 + 50 + 100 + 10);
    }

    #[test]
    fn an_idle_gap_is_not_carried_over() {
        let mut plant = plant(1, 8);
        plant.arrive(0, 10, 0).unwrap();
        assert_eq!(ends(&mut plant, 500), [(10, 0)]);
        plant.arrive(500, 10, 1).unwrap();
        assert_eq!(ends(&mut plant, 600), [(510, 1)]);
    }

    #[test]
    fn beyond_the_queue_it_refuses_and_recovers() {
        let mut plant = plant(1, 2);
        (0..3).for_each(|name| plant.arrive(0, 10, name).unwrap());
        assert_eq!(plant.arrive(0, 10, 9), Err(9));
        assert_eq!(ends(&mut plant, 10), [(10, 0)]);
        assert_eq!(plant.arrive(10, 10, 9), Ok(()));
    }

    #[test]
    fn a_refused_request_costs_time_and_no_place() {
        let mut plant = plant(1, 1);
        (0..2).for_each(|name| plant.arrive(0, 10, name).unwrap());
        assert_eq!(plant.arrive(0, 10, 8), Err(8));
        plant.waste(0, 4);
        assert_eq!(ends(&mut plant, 10), [(10, 0)]);
        assert_eq!(plant.arrive(10, 10, 2), Ok(()), "the place of the first is free");
        assert_eq!(plant.arrive(10, 10, 9), Err(9));
        plant.waste(10, 4);
        // The refusals' work of 4 each comes after both jobs.
        assert_eq!(ends(&mut plant, 100), [(20, 1), (34, 2)]);
        assert_eq!(plant.busy(100).busy_worker_ns, 38);
    }

    #[test]
    fn half_speed_doubles_what_is_left_and_a_stall_stops_it() {
        let mut plant = plant(1, 8);
        plant.arrive(0, 100, 0).unwrap();
        plant.set_speed(40, 0.5);
        assert_eq!(plant.next_end(), Some(160));
        plant.set_speed(60, 0.0); // 50 of 100 done
        assert_eq!(plant.next_end(), None);
        assert_eq!(ends(&mut plant, 1000), []);
        plant.set_speed(1000, 1.0);
        assert_eq!(ends(&mut plant, 2000), [(1050, 0)]);
        assert_eq!(plant.busy(2000).busy_worker_ns, 1050, "a worker that stands still is busy");
    }

    #[test]
    fn exponential_service_keeps_the_mean() {
        let shape = PlantShape { workers: 1, queue: 100_000, exponential: Some(Random::new(2)) };
        let mut plant = Plant::new(shape);
        (0..50_000_u32).for_each(|name| plant.arrive(0, 1000, name).unwrap());
        let done = ends(&mut plant, u64::MAX);
        let mean = done[49_999].0 as f64 / 50_000.0;
        assert!((mean / 1000.0 - 1.0).abs() < 0.02, "mean {mean}");
    }
}
