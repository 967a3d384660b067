//! First come, first served, in front of s workers whose speed somebody sets: a small event loop of its own, because the
//! simulator's servers have a speed that is given and QM's have one that is moved.

use plimsoll_core::random::Random;
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

/// A request that left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// Between its predecessor's arrival and its own.
    pub(crate) gap: f64,
    /// From arrival to departure.
    pub(crate) delay: f64,
    /// In service.
    pub(crate) service: f64,
}

struct Job {
    arrived: f64,
    gap: f64,
    started: f64,
    work: f64,
}

pub(crate) struct Queue {
    random: Random,
    workers: usize,
    now: f64,
    next_arrival: (f64, f64),
    waiting: VecDeque<Job>,
    served: Vec<Job>,
    pub(crate) arrivals: Arrivals,
    pub(crate) rate: f64,
    /// Work done per unit of time by a worker; a request is one unit on the mean, exponential.
    pub(crate) speed: f64,
}

impl Queue {
    pub(crate) fn new(seed: u64, workers: usize, arrivals: Arrivals, rate: f64) -> Self {
        let mut random = Random::new(seed);
        let gap = arrivals.gap(&mut random, rate);
        Queue {
            random,
            workers,
            now: 0.0,
            next_arrival: (gap, gap),
            waiting: VecDeque::new(),
            served: Vec::new(),
            arrivals,
            rate,
            speed: 1.0,
        }
    }

    /// Runs until the next departure.
    pub(crate) fn departure(&mut self) -> Departure {
        loop {
            let first =
                (0..self.served.len()).min_by(|a, b| self.served[*a].work.total_cmp(&self.served[*b].work));
            let ends = first.map_or(f64::INFINITY, |job| self.now + self.served[job].work / self.speed);
            let until = ends.min(self.next_arrival.0);
            for job in &mut self.served {
                job.work -= (until - self.now) * self.speed;
            }
            self.now = until;
            match first {
                Some(job) if ends <= self.next_arrival.0 => {
                    let job = self.served.swap_remove(job);
                    if let Some(next) = self.waiting.pop_front() {
                        self.served.push(Job { started: self.now, ..next });
                    }
                    return Departure {
                        gap: job.gap,
                        delay: self.now - job.arrived,
                        service: self.now - job.started,
                    };
                }
                _ => self.arrive(),
            }
        }
    }

    fn arrive(&mut self) {
        let work = self.random.exponential(1.0);
        let job = Job { arrived: self.now, gap: self.next_arrival.1, started: self.now, work };
        if self.served.len() < self.workers {
            self.served.push(job)
        } else {
            self.waiting.push_back(job)
        }
        let gap = self.arrivals.gap(&mut self.random, self.rate);
        self.next_arrival = (self.now + gap, gap);
    }
}
