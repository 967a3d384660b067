//! PR's integrated controller (PR 4.2), to compare with: a pool of processes for each class, moved once a period.
//!
//! Each class's requests wait in a line of their own for a process of its pool; the processor is shared by all processes
//! that are at work. Every period, of so many departures as the paper's 1,000 mean requests:
//!
//! 1. the load is predicted, an exponential average over about five periods (PR 5.1);
//! 2. the processor is shared out by M/M/1, `rho_i + (1 - sum rho) (S_i / delta_i) / sum_l (S_l / delta_l)`: a class with the
//!    share p_i is an M/M/1 queue of `T_i = S_i / (p_i - rho_i)`. (The printed eq. 4 assumes equal S and does not sum to 1:
//!    `sum_l delta_l` stands where `1 / sum_l (1 / delta_l)` belongs.)
//! 3. PID corrects that (eq. 7): `p_i = P share_i + K_P e_i + K_I sum e_i + K_D (e_i - e_i before)`, in processes, where
//!    `e_i = ln(T_i / delta_i)` less its mean over the classes, so that the corrections sum to zero. (The printed error,
//!    `(delta_i / delta_1) T_1 - T_i`, is positive for a class that is too fast, and gives it more.)
//! 4. whole processes by largest remainder, at least one for each class, P in all.
//!
//! A process that is at work when its pool shrinks ends its request first, as Apache's do.
//!
//! Not here: pools that grow or shrink together, since P is the server's; more than one plant.

use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Classifier, Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Instant;
use plimsoll_sim::Request;
use plimsoll_sim::front::{Arriving, Decision, Front, Order, Start};
use std::collections::{BTreeMap, VecDeque};

/// How the pools are moved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PoolSettings {
    /// P.
    pub(super) processes: u32,
    /// delta, by the classes' numbers.
    pub(super) deltas: Vec<f64>,
    /// K_P, K_I and K_D, in processes. `None`: the allocation alone (PR 4.1).
    pub(super) gains: Option<[f64; 3]>,
    /// Departures of a period.
    pub(super) period: u32,
    /// Mean service time (s) by the classes' numbers, of the whole server.
    pub(super) services: Vec<f64>,
}

/// A front of pools, before one plant.
pub(super) struct Pools {
    classifier: Classifier,
    settings: PoolSettings,
    pools: Vec<Pool>,
    /// By token.
    requests: BTreeMap<u64, UnderWay>,
    departures: u32,
    since: Instant,
}

#[derive(Clone, Debug, Default)]
struct Pool {
    processes: u32,
    busy: u32,
    line: VecDeque<Token>,
    /// Counted in this period: arrivals, and departures with the sum of their response times (s).
    arrivals: u32,
    departures: u32,
    responses: f64,
    /// Predicted arrivals per second; 0 before the first period.
    rate: f64,
    error: f64,
    error_sum: f64,
}

/// A request in a line or at a process.
struct UnderWay {
    class: usize,
    arrived: Instant,
    waits: bool,
}

/// What one more period weighs in a prediction: five of them, 2 / (5 + 1).
const FRESH: f64 = 1.0 / 3.0;
/// The sum of errors is kept within so many.
const MOST_SUM: f64 = 20.0;

impl Pools {
    /// Pools of these promises' classes, which take nothing else from them.
    pub(super) fn new(promises: &Promises, settings: PoolSettings) -> Result<Self, Vec<String>> {
        let classifier = Classifier::new(promises, 0)?;
        let even = vec![1.0 / settings.deltas.len() as f64; settings.deltas.len()];
        let whole = largest_remainders(&even, settings.processes);
        let pools = whole.into_iter().map(|processes| Pool { processes, ..Pool::default() }).collect();
        let (requests, since) = (BTreeMap::new(), Instant::default());
        Ok(Pools { classifier, settings, pools, requests, departures: 0, since })
    }

    /// Starts requests of a class while its pool has an idle process.
    fn dispatch(&mut self, class: usize, orders: &mut Vec<Order>) {
        while self.pools[class].busy < self.pools[class].processes {
            let Some(token) = self.pools[class].line.pop_front() else { return };
            if let Some(request) = self.requests.get_mut(&token.0) {
                request.waits = false;
            }
            self.pools[class].busy += 1;
            orders.push(Order::Start(token, START));
        }
    }

    /// A process is free again.
    fn leave(&mut self, now: Instant, token: Token, orders: &mut Vec<Order>) {
        let Some(UnderWay { class, arrived, .. }) = self.requests.remove(&token.0) else { return };
        let pool = &mut self.pools[class];
        pool.busy -= 1;
        pool.departures += 1;
        pool.responses += now.since(arrived).as_secs_f64();
        self.departures += 1;
        if self.departures >= self.settings.period {
            self.allocate(now);
        }
        (0..self.pools.len()).for_each(|class| self.dispatch(class, orders));
    }

    /// The end of a period.
    fn allocate(&mut self, now: Instant) {
        let seconds = now.since(self.since).as_secs_f64();
        (self.since, self.departures) = (now, 0);
        for pool in &mut self.pools {
            let measured = f64::from(pool.arrivals) / seconds;
            pool.rate += if pool.rate == 0.0 { measured } else { FRESH * (measured - pool.rate) };
        }
        let rates: Vec<f64> = self.pools.iter().map(|pool| pool.rate).collect();
        let shares = shares(&rates, &self.settings.services, &self.settings.deltas);
        let processes = f64::from(self.settings.processes);
        let wanted: Vec<f64> = match self.settings.gains {
            None => shares,
            Some(gains) => {
                let corrections = self.corrections(gains);
                shares.iter().zip(corrections).map(|(share, more)| share + more / processes).collect()
            }
        };
        let whole = largest_remainders(&wanted, self.settings.processes);
        for (pool, processes) in self.pools.iter_mut().zip(whole) {
            pool.processes = processes;
            (pool.arrivals, pool.departures, pool.responses) = (0, 0, 0.0);
        }
    }

    /// PID, in processes.
    fn corrections(&mut self, [proportional, integral, derivative]: [f64; 3]) -> Vec<f64> {
        let normalized = |(pool, delta): (&Pool, &f64)| {
            (pool.departures > 0).then(|| (pool.responses / f64::from(pool.departures) / delta).ln())
        };
        let logs: Vec<Option<f64>> = self.pools.iter().zip(&self.settings.deltas).map(normalized).collect();
        let known: Vec<f64> = logs.iter().flatten().copied().collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let correct = |(pool, log): (&mut Pool, &Option<f64>)| {
            let error = log.map_or(0.0, |log| log - mean);
            let change = error - pool.error;
            pool.error = error;
            pool.error_sum = (pool.error_sum + error).clamp(-MOST_SUM, MOST_SUM);
            proportional * error + integral * pool.error_sum + derivative * change
        };
        self.pools.iter_mut().zip(&logs).map(correct).collect()
    }
}

const START: Start = Start { plant: 0, level: 1, reason: Reason::Full };

/// Shares of the processor, by M/M/1.
fn shares(rates: &[f64], services: &[f64], deltas: &[f64]) -> Vec<f64> {
    let loads: Vec<f64> = rates.iter().zip(services).map(|(rate, service)| rate * service).collect();
    let all: f64 = loads.iter().sum();
    let weights: Vec<f64> = services.iter().zip(deltas).map(|(service, delta)| service / delta).collect();
    let spare = (1.0 - all).max(0.0) / weights.iter().sum::<f64>();
    loads.iter().zip(&weights).map(|(load, weight)| load / all.max(1.0) + spare * weight).collect()
}

/// Whole numbers that sum to `all`, each at least 1, as near as can be to these shares of it.
fn largest_remainders(shares: &[f64], all: u32) -> Vec<u32> {
    // Each class gets one process first; the rest is shared by what is still wanted.
    let left = f64::from(all) - shares.len() as f64;
    let wanted: Vec<f64> = shares.iter().map(|share| (share * f64::from(all) - 1.0).max(0.0)).collect();
    let sum: f64 = wanted.iter().sum::<f64>().max(1e-12);
    let exact: Vec<f64> = wanted.iter().map(|wanted| wanted / sum * left).collect();
    let mut whole: Vec<u32> = exact.iter().map(|exact| exact.floor() as u32 + 1).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| (exact[*b] - exact[*b].floor()).total_cmp(&(exact[*a] - exact[*a].floor())));
    let missing = all.saturating_sub(whole.iter().sum()) as usize;
    order.iter().cycle().take(missing).for_each(|class| whole[*class] += 1);
    whole
}

impl Front for Pools {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.classifier.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, _orders: &mut Vec<Order>) -> Decision {
        let Arriving { target, token, .. } = arrival;
        let class = usize::from(target.class).min(self.pools.len() - 1);
        let pool = &mut self.pools[class];
        pool.arrivals += 1;
        if pool.busy < pool.processes && pool.line.is_empty() {
            pool.busy += 1;
            self.requests.insert(token.0, UnderWay { class, arrived: now, waits: false });
            return Decision::Start(START);
        }
        pool.line.push_back(token);
        self.requests.insert(token.0, UnderWay { class, arrived: now, waits: true });
        Decision::Wait
    }

    fn release(&mut self, now: Instant, token: Token, _service: Service, orders: &mut Vec<Order>) {
        self.leave(now, token, orders);
    }

    fn depart(&mut self, now: Instant, token: Token, _outcome: Outcome, orders: &mut Vec<Order>) {
        match self.requests.get(&token.0) {
            Some(UnderWay { class, waits: true, .. }) => {
                self.pools[*class].line.retain(|waiting| *waiting != token);
                self.requests.remove(&token.0);
            }
            _ => self.leave(now, token, orders),
        }
    }

    fn tick(&mut self, _now: Instant, _readings: &Readings, _orders: &mut Vec<Order>) -> Instant {
        Instant::FAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_give_the_ratios() {
        let (deltas, services) = ([1.0, 2.0, 3.0], [0.01, 0.04, 0.02]);
        for load in [0.3, 0.6, 0.9, 0.99] {
            // 3:2:1 arrivals, 0.13 s of work in six.
            let rates = [3.0, 2.0, 1.0].map(|part| part * load / 0.13);
            let shares = shares(&rates, &services, &deltas);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
            let responses = [0, 1, 2].map(|n| services[n] / (shares[n] - rates[n] * services[n]));
            for n in [1, 2] {
                let ratio = responses[n] / responses[0];
                assert!((ratio / deltas[n] - 1.0).abs() < 1e-9, "{responses:?} at {load}");
            }
        }
        let overloaded = shares(&[120.0, 20.0, 10.0], &services, &deltas);
        assert!((overloaded.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{overloaded:?}");
    }

    #[test]
    fn whole_processes_sum_to_all_and_nobody_has_none() {
        assert_eq!(largest_remainders(&[0.5, 0.3, 0.2], 10), [5, 3, 2]);
        assert_eq!(largest_remainders(&[1.3, -0.3], 8), [7, 1]);
        assert_eq!(largest_remainders(&[0.0, 0.0], 8).iter().sum::<u32>(), 8);
        for part in 0..=20 {
            let share = f64::from(part) / 20.0;
            let whole = largest_remainders(&[share, 1.0 - share], 8);
            assert_eq!(whole.iter().sum::<u32>(), 8);
            assert!((f64::from(whole[0]) - share * 8.0).abs() <= 1.0, "{whole:?} for {share}");
        }
    }
}
