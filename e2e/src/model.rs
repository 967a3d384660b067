//! The server that a test loads, as it truly is: its workers, and what a page takes of one of them.
//!
//! A page holds its worker for a time without using the processor, as a slow database does. The capacity is therefore the same
//! on every machine, and the gateway and its clients do not share two cores with a burning loop. One model describes the
//! application behind a real nginx or Apache, the origin of known capacity in the test's own process, and the plant of a
//! simulation.

use plimsoll_load::{Cost, Origin, OriginHandle, OriginSettings, PathClass};
use std::time::Duration;

/// Where the tree of light pages begins.
pub const LIGHT_TREE: &str = "/light";
/// The bytes of a light page, as a part of the full page's.
pub const LIGHT_PART: usize = 8;

/// Workers that serve first come first served, and pages that take `fixed + per_kib * size` of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerModel {
    /// How many requests are in service at once.
    pub workers: u32,
    /// How many requests may wait for a worker; a real server's listen queue.
    pub queue: u32,
    /// The time of a page without its bytes.
    pub fixed: Duration,
    /// The time for each KiB.
    pub per_kib: Duration,
    /// The size of a full page in KiB.
    pub kib: usize,
    /// Service times are exponential with that mean; else they are the mean.
    pub exponential: bool,
}

/// Pages of 24 KiB that take 200 ms, light ones 30 ms: long beside what a CGI process costs to start.
pub const SLOW_PAGES: ServerModel = ServerModel {
    workers: 8,
    queue: 16,
    fixed: Duration::from_micros(5_714),
    per_kib: Duration::from_nanos(8_095_238),
    kib: 24,
    exponential: false,
};

impl ServerModel {
    /// Pages of 4 KiB with exponential service times of this mean.
    pub const fn exponential(workers: u32, mean: Duration) -> ServerModel {
        ServerModel { workers, queue: 128, fixed: mean, per_kib: Duration::ZERO, kib: 4, exponential: true }
    }

    /// The mean service time of a page of this size.
    pub fn time(&self, bytes: usize) -> Duration {
        self.fixed + self.per_kib.mul_f64(bytes as f64 / 1024.0)
    }

    /// The bytes of a full page.
    pub fn bytes(&self) -> usize {
        self.kib << 10
    }

    /// The mean service time of a full page.
    pub fn full(&self) -> Duration {
        self.time(self.bytes())
    }

    /// The service time of a light page as a part of the full page's.
    pub fn light_cost(&self) -> f64 {
        self.time(self.bytes() / LIGHT_PART).as_secs_f64() / self.full().as_secs_f64()
    }

    /// The most full pages per second.
    pub fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.full().as_secs_f64()
    }

    /// The gateway's `costs`: the time of the whole server for a request and for a byte.
    pub fn costs(&self) -> String {
        let whole = 1e3 / f64::from(self.workers);
        let (request, byte) = (self.fixed.as_secs_f64() * whole, self.per_kib.as_secs_f64() * whole / 1024.0);
        format!("costs = {{ request = \"{request:.6}ms\", byte = \"{:.6}ns\" }}", byte * 1e6)
    }

    /// The plant of a workload file.
    pub fn plant(&self) -> String {
        // A duration of nothing is refused.
        let [fixed, per_kib] = [self.fixed, self.per_kib].map(|time| time.as_nanos().max(1));
        let law = if self.exponential { "exponential" } else { "deterministic" };
        format!(
            "[plant.server]\nworkers = {}\nlisten_queue = {}\nservice = \"{fixed}ns\"\nservice_per_kib = \"{per_kib}ns\"\n\
             service_law = \"{law}\"\n",
            self.workers, self.queue
        )
    }

    /// The origin of known capacity, with a page of another size under each of `others`.
    pub fn origin(&self, others: &[(&str, usize)]) -> OriginHandle {
        let own = [("/", self.bytes()), (LIGHT_TREE, self.bytes() / LIGHT_PART)];
        let classes = own.iter().chain(others).map(|(prefix, bytes)| PathClass::new(prefix, *bytes));
        let settings = OriginSettings {
            workers: self.workers,
            queue: self.queue as usize,
            cost: Cost { fixed: self.fixed, per_kilobyte: self.per_kib },
            classes: classes.collect(),
            exponential: self.exponential.then_some(3),
            ..OriginSettings::default()
        };
        Origin::start(settings).unwrap_or_else(|error| panic!("the origin does not start: {error}"))
    }

    /// The model as one argument of a program.
    pub fn to_argument(&self) -> String {
        let ServerModel { workers, queue, fixed, per_kib, kib, exponential } = self;
        let numbers =
            [(*workers).into(), (*queue).into(), fixed.as_nanos(), per_kib.as_nanos(), *kib as u128];
        numbers.map(|number| number.to_string()).join(",") + if *exponential { ",1" } else { ",0" }
    }

    /// Reads what [`to_argument`](ServerModel::to_argument) wrote.
    pub fn from_argument(text: &str) -> Option<ServerModel> {
        let numbers: Vec<u64> = text.split(',').map_while(|number| number.parse().ok()).collect();
        let [workers, queue, fixed, per_kib, kib, exponential] = numbers[..] else { return None };
        let [fixed, per_kib] = [fixed, per_kib].map(Duration::from_nanos);
        let (workers, queue) = (workers as u32, queue as u32);
        Some(ServerModel { workers, queue, fixed, per_kib, kib: kib as usize, exponential: exponential == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_page_costs_what_its_bytes_say() {
        let [full, light] = [SLOW_PAGES.bytes(), SLOW_PAGES.bytes() / LIGHT_PART];
        let milliseconds = |bytes| SLOW_PAGES.time(bytes).as_secs_f64() * 1e3;
        assert!((milliseconds(full) - 200.0).abs() < 0.01 && (milliseconds(light) - 30.0).abs() < 0.01);
        assert!((SLOW_PAGES.capacity() - 40.0).abs() < 0.01);
        assert_eq!(ServerModel::from_argument(&SLOW_PAGES.to_argument()), Some(SLOW_PAGES));
    }
}
