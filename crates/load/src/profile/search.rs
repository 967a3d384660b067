//! The highest rate that a server sustains, found within a time that is given.
//!
//! 1. **Climb**: a closed loop of 1, 2, 4, ... clients until the rate has not risen by [`RISE`] for two doublings, or requests
//!    fail.
//! 2. **Between**: bisection for the fewest clients that keep the server busy, which shows how many requests it works on at
//!    once.
//! 3. **Settle**: the rate is measured afresh, for longer and in parts, because the best of several noisy windows is too good.
//!    It uses the number of clients that did best, or, if it did as well, twice the fewest that keep the server busy, because
//!    with just enough the server idles while requests and answers travel. This is the highest rate; the parts show its
//!    uncertainty.
//! 4. **Confirm**: an open loop with Poisson arrivals at [`FRACTIONS`] of that rate. A rate is sustained if the number of
//!    requests in progress does not grow. A closed loop cannot show that, because it slows down with its server.
//!
//! Response times do not show the highest rate (UC 7.2), because they include waiting and the network.
//!
//! The server is behind a trait, so that the search can be tested on servers whose answers are a formula.

use super::Ended;

/// If twice the clients raise the rate by less than this factor, the rate has stopped rising.
const RISE: f64 = 1.03;
/// The server counts as busy at this part of the highest rate.
const BUSY: f64 = 0.9;
/// The shares of the highest rate that are offered in the open loop, in this order.
const FRACTIONS: [f64; 2] = [0.8, 0.95];
/// The length of a window of the climb, as a share of the whole time.
const WINDOW: f64 = 1.0 / 20.0;
/// The longest window, for servers so slow that few answers come in the shortest.
const LONGEST_WINDOW: f64 = 1.0 / 10.0;
/// The number of answers wanted in a window.
const ANSWERS: f64 = 10.0;
/// The climb ends at this share of the time, however far it has come.
const CLIMB: f64 = 0.6;
/// Steps of the bisection.
const STEPS: u32 = 2;
/// The share of the time left after the climb and the bisection for the settled rate; the rest is the open loop's.
const SETTLED: f64 = 0.5;
/// The share of failed requests above which a window counts as failing.
pub(super) const FAILING: f64 = 0.01;

/// The loads that a search can put on the server.
pub(super) trait Bench {
    /// Runs a closed loop.
    fn closed(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended>;
    /// Runs an open loop at a rate.
    fn open(&mut self, rate: f64, seconds: f64) -> Result<OpenWindow, Ended>;
}

/// The results of a closed loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Window {
    /// Answers per second.
    pub(super) rate: f64,
    /// Answers per second in each part of the window.
    pub(super) parts: Vec<f64>,
    /// Mean body bytes of an answer.
    pub(super) bytes: f64,
    /// Share of failed requests.
    pub(super) failed: f64,
    /// Mean response time of answers below 500 (s).
    pub(super) response_seconds: Option<f64>,
    /// The share of one processor that the client's thread took.
    pub(super) client_cpu: Option<f64>,
    /// The busy share of all of this machine's processors.
    pub(super) machine_cpu: Option<f64>,
}

impl Window {
    /// Half the 95 % confidence interval of the rate, as a share of the rate (Student's t).
    pub(super) fn uncertainty(&self) -> f64 {
        /// For 1, 2, ... degrees of freedom.
        const T: [f64; 5] = [12.7, 4.3, 3.18, 2.78, 2.57];
        let Some(t) = self.parts.len().checked_sub(2).and_then(|freedom| T.get(freedom).or(T.last())) else {
            return f64::INFINITY;
        };
        let n = self.parts.len() as f64;
        let mean = self.parts.iter().sum::<f64>() / n;
        let squares: f64 = self.parts.iter().map(|rate| (rate - mean).powi(2)).sum();
        t * (squares / (n - 1.0) / n).sqrt() / mean
    }
}

/// The results of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OpenWindow {
    /// Answers per second.
    pub(super) rate: f64,
    /// Body bytes per second.
    pub(super) bytes_per_second: f64,
    /// Failures per second.
    pub(super) failures: f64,
    /// The growth of the number of requests in progress, per second.
    pub(super) growth: f64,
    /// Mean time from the intended arrival to the end of answers below 500 (s).
    pub(super) response_seconds: Option<f64>,
    /// How late the client was at its 99th percentile (s).
    pub(super) late_seconds: f64,
    /// The share of one processor that the client's thread took.
    pub(super) client_cpu: Option<f64>,
}

/// The highest rate of one size or kind of content.
#[derive(Clone, Debug, PartialEq)]
pub struct Highest {
    /// Requests per second.
    pub rate: f64,
    /// Half the 95 % confidence interval of the rate, as a share of the rate; infinite if nothing shows it.
    pub uncertainty: f64,
    /// Mean body bytes of an answer.
    pub bytes: f64,
    /// The number of clients at this rate.
    pub clients: u32,
    /// The fewest clients that keep the server busy, at 90 % of the highest rate.
    pub busy_clients: u32,
    /// The rate of one client alone.
    pub alone: f64,
    /// Each number of clients of the climb with its rate.
    pub climb: Vec<(u32, f64)>,
    /// The largest share of the rate that the open loop sustained; `None`: not even 80 %.
    pub sustained: Option<f64>,
    /// Mean response time at that share (s).
    pub response_seconds: Option<f64>,
    /// The greatest lateness of the client in the open loop, at its 99th percentile (s).
    pub late_seconds: f64,
    /// The share of one processor that the client's thread took, at the highest rate.
    pub client_cpu: Option<f64>,
    /// The busy share of all of the client machine's processors, at the highest rate.
    pub machine_cpu: Option<f64>,
}

impl Highest {
    /// The time that a request takes of the whole server (s).
    pub fn service_seconds(&self) -> f64 {
        1.0 / self.rate
    }

    /// The most clients that were tried at once.
    pub fn most_tried(&self) -> u32 {
        self.climb.iter().map(|(clients, _)| *clients).fold(self.clients, u32::max)
    }
}

/// Searches for `seconds`, with at most `most_clients`.
pub(super) fn highest(bench: &mut dyn Bench, seconds: f64, most_clients: u32) -> Result<Highest, Ended> {
    let mut search = Search { bench, used: 0.0, alone: 0.0, climb: Vec::new() };
    let window = search.climb(seconds, most_clients)?;
    let busy_clients = search.between(window)?;
    let clients = search.plenty(busy_clients);
    let left = seconds - search.used;
    let settled = search.bench.closed(clients, left * SETTLED)?;
    let rate = settled.rate;
    let mut highest = Highest {
        rate,
        uncertainty: settled.uncertainty(),
        bytes: settled.bytes,
        clients,
        busy_clients,
        alone: search.alone,
        climb: search.climb,
        sustained: None,
        response_seconds: None,
        late_seconds: 0.0,
        client_cpu: settled.client_cpu,
        machine_cpu: settled.machine_cpu,
    };
    for fraction in FRACTIONS {
        let seconds = left * (1.0 - SETTLED) / FRACTIONS.len() as f64;
        let open = bench.open(rate * fraction, seconds)?;
        highest.late_seconds = highest.late_seconds.max(open.late_seconds);
        if !is_sustained(&open, rate * fraction, seconds) {
            break;
        }
        highest.sustained = Some(fraction);
        highest.response_seconds = open.response_seconds;
    }
    Ok(highest)
}

/// Whether nothing fails, and requests in progress do not pile up more than by chance.
///
/// Near capacity a queue makes a random walk: the slope fitted to a walk of variance `rate` per second over t seconds has the
/// variance `6 rate / 5 t`. Only a slope beyond that, and beyond 2 % of the rate, counts as growth.
fn is_sustained(open: &OpenWindow, offered: f64, seconds: f64) -> bool {
    let chance = 2.5 * (1.2 * offered / seconds).sqrt();
    open.failures <= FAILING * offered && open.growth < 0.02 * offered + chance
}

struct Search<'a> {
    bench: &'a mut dyn Bench,
    /// The time used so far (s).
    used: f64,
    /// The rate of one client alone.
    alone: f64,
    climb: Vec<(u32, f64)>,
}

impl Search<'_> {
    /// Doubles the clients until the rate stops rising. Returns the length of a window.
    fn climb(&mut self, seconds: f64, most_clients: u32) -> Result<f64, Ended> {
        // The rate of one client alone gets a longer window, because its ratio to the highest rate shows the number of workers.
        let mut window = seconds * LONGEST_WINDOW;
        let (mut clients, mut level) = (1, 0);
        loop {
            let before = self.climb.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            let seen = self.measure(clients, window)?;
            if clients == 1 {
                // A count of few answers is uncertain by one answer; their mean time is not.
                self.alone = seen.response_seconds.map_or(seen.rate, |seconds| 1.0 / seconds);
            }
            window = (ANSWERS / seen.rate).clamp(seconds * WINDOW, seconds * LONGEST_WINDOW);
            level = if seen.rate < RISE * before { level + 1 } else { 0 };
            let last = level == 2 || seen.failed > FAILING || self.used + window > CLIMB * seconds;
            clients = clients.saturating_mul(2);
            if last || clients > most_clients {
                return Ok(window);
            }
        }
    }

    /// The fewest clients that keep the server busy, found by bisection between the numbers of the climb.
    fn between(&mut self, window: f64) -> Result<u32, Ended> {
        for _ in 0..STEPS {
            let (below, busy) = self.around();
            let middle = below + (busy - below) / 2;
            if middle == below || middle == busy || busy - below <= busy / 8 {
                break;
            }
            self.measure(middle, window)?;
        }
        Ok(self.around().1)
    }

    /// The fewest clients tried that keep the server busy, and the most tried below them.
    fn around(&self) -> (u32, u32) {
        let enough = BUSY * self.best().1;
        let busy = self.climb.iter().filter(|(_, rate)| *rate >= enough).map(|(clients, _)| *clients).min();
        let busy = busy.unwrap_or(1);
        let below = self.climb.iter().map(|(clients, _)| *clients).filter(|clients| *clients < busy).max();
        (below.unwrap_or(0), busy)
    }

    fn best(&self) -> (u32, f64) {
        let better = |best: (u32, f64), next: &(u32, f64)| if next.1 > best.1 { *next } else { best };
        self.climb.iter().fold((1, 0.0), better)
    }

    /// The number of clients that does best. The climb does not distinguish numbers whose rates differ by less than [`RISE`];
    /// among those, the fewest that are at least twice `busy` count.
    fn plenty(&self, busy: u32) -> u32 {
        let (best, rate) = self.best();
        let as_good =
            self.climb.iter().filter(|(_, other)| other * RISE >= rate).map(|(clients, _)| *clients);
        as_good.filter(|clients| *clients >= busy.saturating_mul(2)).min().unwrap_or(best)
    }

    fn measure(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended> {
        let window = self.bench.closed(clients, seconds)?;
        self.used += seconds;
        // Failures make room for other answers to come sooner, so such a rate is not the server's.
        if window.failed <= FAILING || self.climb.is_empty() {
            self.climb.push((clients, window.rate));
            self.climb.sort_by_key(|(clients, _)| *clients);
        }
        Ok(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// A server of `workers` with `service` seconds each, with a client's own time, a queue, and noise.
    struct Formula {
        workers: f64,
        service: f64,
        beside: f64,
        queue: u32,
        noise: f64,
        random: Random,
        seconds: f64,
        dies_after: f64,
    }

    impl Formula {
        fn new(workers: f64, service: f64) -> Self {
            let random = Random::new(7);
            let dies_after = f64::INFINITY;
            Self { workers, service, beside: 1e-4, queue: 511, noise: 0.01, random, seconds: 0.0, dies_after }
        }

        fn capacity(&self) -> f64 {
            self.workers / self.service
        }

        fn pass(&mut self, seconds: f64) -> Result<(), Ended> {
            self.seconds += seconds;
            if self.seconds > self.dies_after {
                Err(Ended::Died("it".into(), "is gone".into()))
            } else {
                Ok(())
            }
        }
    }

    impl Bench for Formula {
        fn closed(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended> {
            self.pass(seconds)?;
            let rate = f64::min(f64::from(clients) / (self.service + self.beside), self.capacity());
            let parts = (0..5).map(|_| rate * (1.0 + self.noise * (2.0 * self.random.uniform() - 1.0)));
            let failed = if clients > self.queue { 0.5 } else { 0.0 };
            // A request that fails at once lets its client retry at once, so the rate is too high.
            let parts: Vec<f64> = parts.map(|rate| if failed > 0.0 { 3.0 * rate } else { rate }).collect();
            let rate = parts.iter().sum::<f64>() / parts.len() as f64;
            Ok(Window { rate, parts, bytes: 1024.0, failed, ..Window::default() })
        }

        fn open(&mut self, rate: f64, seconds: f64) -> Result<OpenWindow, Ended> {
            self.pass(seconds)?;
            let growth = f64::max(0.0, rate - self.capacity());
            Ok(OpenWindow { rate: rate.min(self.capacity()), growth, ..OpenWindow::default() })
        }
    }

    fn close(value: f64, wanted: f64, share: f64) {
        assert!((value / wanted - 1.0).abs() < share, "{value} is not {wanted}");
    }

    #[test]
    fn the_capacity_and_the_workers_are_found_in_the_time_given() {
        for (workers, service) in [(1.0, 0.002), (6.0, 0.01), (8.0, 0.008), (100.0, 0.2)] {
            let mut server = Formula::new(workers, service);
            let found = highest(&mut server, 8.0, 256).unwrap();
            close(found.rate, workers / service, 0.01);
            assert!(found.uncertainty < 0.02, "{found:?}");
            assert!((f64::from(found.busy_clients) - workers).abs() <= 0.2 * workers, "{found:?}");
            assert_eq!(found.sustained, Some(0.95));
            assert!((found.rate / found.alone / workers - 1.0).abs() < 0.1, "{found:?}");
            assert!(server.seconds <= 8.01, "{} s", server.seconds);
        }
    }

    #[test]
    fn a_slow_server_gets_longer_windows_and_no_more_time() {
        let mut server = Formula::new(64.0, 3.0);
        let found = highest(&mut server, 8.0, 256).unwrap();
        assert!(server.seconds <= 8.01, "{} s", server.seconds);
        assert!(found.climb.len() >= 3, "{found:?}");
    }

    #[test]
    fn rates_with_failures_do_not_count() {
        let mut server = Formula { queue: 40, ..Formula::new(32.0, 0.01) };
        let found = highest(&mut server, 8.0, 256).unwrap();
        assert_eq!(found.clients, 32);
        close(found.rate, 32.0 / 0.0101, 0.01);
    }

    #[test]
    fn just_enough_clients_do_not_settle_it() {
        /// Answers come in batches, so a short window cannot distinguish nearly all of the capacity from all of it.
        struct Batches(Formula);
        impl Bench for Batches {
            fn closed(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended> {
                let mut window = self.0.closed(clients, seconds)?;
                let batch = self.0.capacity() / 17.9;
                if seconds < 1.0 {
                    window.rate = (window.rate / batch).floor() * batch;
                }
                Ok(window)
            }
            fn open(&mut self, rate: f64, seconds: f64) -> Result<OpenWindow, Ended> {
                self.0.open(rate, seconds)
            }
        }
        let mut server = Batches(Formula { beside: 0.000_4, noise: 0.0, ..Formula::new(8.0, 0.01) });
        let found = highest(&mut server, 8.0, 256).unwrap();
        assert_eq!((found.busy_clients, found.clients), (8, 16), "{found:?}");
        close(found.rate, 800.0, 0.01);
    }

    #[test]
    fn too_few_clients_are_used_up() {
        let found = highest(&mut Formula::new(100.0, 0.1), 8.0, 16).unwrap();
        assert_eq!(found.clients, 16);
    }

    #[test]
    fn what_the_closed_loop_promises_and_the_open_one_does_not_keep_is_said() {
        /// A server whose capacity is lower in the open loop, because it cannot handle many connections.
        struct Shy(Formula);
        impl Bench for Shy {
            fn closed(&mut self, clients: u32, seconds: f64) -> Result<Window, Ended> {
                self.0.closed(clients, seconds)
            }
            fn open(&mut self, rate: f64, seconds: f64) -> Result<OpenWindow, Ended> {
                self.0.open(rate / 0.85, seconds)
            }
        }
        let found = highest(&mut Shy(Formula::new(8.0, 0.008)), 8.0, 256).unwrap();
        assert_eq!(found.sustained, Some(0.8));
    }

    #[test]
    fn a_server_that_dies_ends_the_search() {
        let mut server = Formula { dies_after: 3.0, ..Formula::new(8.0, 0.008) };
        assert!(matches!(highest(&mut server, 8.0, 256), Err(Ended::Died(..))));
    }
}
