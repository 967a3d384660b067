//! First come, first served, in front of s workers whose speed somebody sets: a small event loop of its own, because the
//! simulator's servers have a speed that is given and QM's have one that is moved.

use plimsoll_core::random::Random;
use plimsoll_core::scheduling::ArrivalGaps;
use plimsoll_core::telemetry::DepartureCounts;
use plimsoll_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// Times between arrivals.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrivals {
    Poisson,
    /// A Pareto law of this shape, from its lowest value to infinity.
    Pareto(f64),
}

impl Arrivals {
    fn gap(self, random: &mut Random, rate: f64) -> f64 {
        match self {
            Arrivals::Poisson => random.exponential(1.0 / rate),
            Arrivals::Pareto(shape) => {
                (shape - 1.0) / (shape * rate) * (1.0 - random.uniform()).powf(-1.0 / shape)
            }
        }
    }
}

/// Seconds of a unit of time: a window of the engine's is over before its departures are too old to count.
pub(crate) const UNIT: f64 = 0.01;

struct Job {
    arrived: f64,
    started: f64,
    work: f64,
}

pub(crate) struct Queue {
    random: Random,
    workers: usize,
    now: f64,
    next_arrival: f64,
    waiting: VecDeque<Job>,
    served: Vec<Job>,
    pub(crate) arrivals: Arrivals,
    pub(crate) rate: f64,
    /// Work done per unit of time by a worker; a request is one unit on the mean, exponential.
    pub(crate) speed: f64,
    pub(crate) gaps: ArrivalGaps,
    /// Counted as a lane of the engine counts.
    pub(crate) counts: DepartureCounts,
}

impl Queue {
    pub(crate) fn new(seed: u64, workers: usize, arrivals: Arrivals, rate: f64) -> Self {
        let mut random = Random::new(seed);
        let gap = arrivals.gap(&mut random, rate);
        Queue {
            random,
            workers,
            now: 0.0,
            next_arrival: gap,
            waiting: VecDeque::new(),
            served: Vec::new(),
            arrivals,
            rate,
            speed: 1.0,
            gaps: ArrivalGaps::default(),
            counts: DepartureCounts::default(),
        }
    }

    /// Runs until the next departure: its delay, from arrival to departure.
    pub(crate) fn departure(&mut self) -> f64 {
        loop {
            let first =
                (0..self.served.len()).min_by(|a, b| self.served[*a].work.total_cmp(&self.served[*b].work));
            let ends = first.map_or(f64::INFINITY, |job| self.now + self.served[job].work / self.speed);
            let until = ends.min(self.next_arrival);
            for job in &mut self.served {
                job.work -= (until - self.now) * self.speed;
            }
            self.now = until;
            match first {
                Some(job) if ends <= self.next_arrival => {
                    let job = self.served.swap_remove(job);
                    if let Some(next) = self.waiting.pop_front() {
                        self.served.push(Job { started: self.now, ..next });
                    }
                    return self.count(&job);
                }
                _ => self.arrive(),
            }
        }
    }

    fn count(&mut self, job: &Job) -> f64 {
        let delay = self.now - job.arrived;
        let (response, service) = (UNIT * delay, UNIT * (self.now - job.started));
        let at = self.instant();
        let counts = &mut self.counts;
        counts.at = at;
        counts.released += 1;
        counts.answered += 1;
        counts.response_ns += (1e9 * response) as u64;
        counts.service_ns += (1e9 * service) as u64;
        counts.service_us2 = counts.service_us2.wrapping_add((1e6 * service).powi(2) as u64);
        delay
    }

    fn instant(&self) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(UNIT * self.now)
    }

    fn arrive(&mut self) {
        if let Some(gap_ns) = self.gaps.arrive(self.instant(), self.served.is_empty()) {
            self.counts.gaps += 1;
            self.counts.gap_ns += gap_ns;
            self.counts.gap_us2 = self.counts.gap_us2.wrapping_add((gap_ns / 1000).pow(2));
        }
        let work = self.random.exponential(1.0);
        let job = Job { arrived: self.now, started: self.now, work };
        if self.served.len() < self.workers {
            self.served.push(job)
        } else {
            self.waiting.push_back(job)
        }
        let gap = self.arrivals.gap(&mut self.random, self.rate);
        self.next_arrival = self.now + gap;
    }
}
