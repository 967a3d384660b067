//! Judges one side of the demo, by the server's ledger and the clients' clocks.

use super::plant::{FULL_BYTES, LIGHT_BYTES, LIGHT_COST, PERIOD, SET_POINT};
use super::side::{DemoPeriod, Seen};
use plimsoll_load::Histogram;
use plimsoll_sim::settling::{mean, settled_after};

/// A mean of [`WINDOW`] periods this near to the set point counts as settled.
const TOLERANCE: f64 = 0.02;
const WINDOW: usize = 5;

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Periods until utilization settled; `None` if it never did.
    pub(crate) settled: Option<usize>,
    /// Utilization of the steady periods: those after settling, or the second half of a run that did not settle.
    pub(crate) utilization: Spread,
    /// Utilization of every period, from the first.
    pub(crate) periods: Vec<f64>,
    /// How far the largest period's utilization lies above the set point.
    pub(crate) overshoot: f64,
    pub(crate) total: Seen,
    pub(crate) steady_latency: Histogram,
    /// The largest share of the clients seen in a period that changed level in it, from [`WINDOW`] periods after settling on. A
    /// client's change shows only at its next visit: after five periods of one and a half visits each, all but one client in
    /// two thousand have come. Earlier periods would count changes from before settling.
    pub(crate) changed_per_period: f64,
    /// Delivered bytes of the steady periods over what the set point allows.
    pub(crate) bandwidth_ratio: f64,
    /// Mean utilization of the steady periods as the gateway estimates it.
    pub(crate) estimate: Option<f64>,
    /// The part of the steady periods' mean utilization that comes from this machine's delays: workers whose answer is ready
    /// but not yet sent.
    pub(crate) lateness: f64,
    /// Whether the machine kept up; virtual time always does.
    pub(crate) machine: Option<Machine>,
}

/// How far the machine kept up; if it did not, the other figures mean little.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// How late this machine sent requests.
    pub(crate) client_lateness: Histogram,
    pub(crate) origin_lateness: Histogram,
    pub(crate) cpu_share: f64,
}

/// What happened, from the first period to the last.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) periods: Vec<DemoPeriod>,
    /// Requests that were sent, by period.
    pub(crate) arrivals: Vec<u64>,
    /// The requests that ended after the last period, as clients saw them.
    pub(crate) rest: Seen,
    pub(crate) machine: Option<Machine>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) p5: f64,
    pub(crate) p95: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Spread { mean: mean(values), p5: percentile(&sorted, 0.05), p95: percentile(&sorted, 0.95) }
    }
}

/// The percentile, interpolated between the two nearest values; zero if there are none.
fn percentile(sorted: &[f64], p: f64) -> f64 {
    let place = p * sorted.len().saturating_sub(1) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or(0.0);
    let (low, high) = (at(place.floor()), at(place.ceil()));
    low + (high - low) * place.fract()
}

impl Figures {
    /// Judges a step from no load, given the course of its periods.
    pub(crate) fn of(course: Course, capacity: f64) -> Figures {
        let Course { periods, arrivals, rest, machine } = course;
        let utilization: Vec<f64> = periods.iter().map(|period| period.utilization).collect();
        let settled = settled_after(&utilization, SET_POINT, TOLERANCE, WINDOW);
        let from = settled.unwrap_or(periods.len() / 2);
        let steady = &periods[from..];
        let mut total = rest;
        periods.iter().for_each(|period| total.merge(&period.seen));
        let mut steady_latency = Histogram::default();
        steady.iter().for_each(|period| steady_latency.merge(&period.seen.latency));
        let changed =
            |period: &DemoPeriod| f64::from(period.changes.changed) / f64::from(period.changes.seen.max(1));
        let arrivals: u64 = arrivals.iter().skip(from).take(steady.len()).sum();
        let delivered: u64 = steady.iter().map(|period| period.seen.bytes).sum();
        let estimates: Vec<f64> = steady.iter().filter_map(|period| period.estimate).collect();
        Figures {
            settled,
            utilization: Spread::of(&utilization[from..]),
            overshoot: utilization.iter().copied().fold(0.0, f64::max) - SET_POINT,
            total,
            steady_latency,
            changed_per_period: steady.iter().skip(WINDOW).map(changed).fold(0.0, f64::max),
            bandwidth_ratio: delivered as f64
                / allowed_bytes(arrivals, capacity * PERIOD.as_secs_f64() * steady.len() as f64),
            estimate: (!estimates.is_empty()).then(|| mean(&estimates)),
            lateness: mean(
                &steady.iter().map(|period| period.utilization - period.service).collect::<Vec<_>>(),
            ),
            machine,
            periods: utilization,
        }
    }

    pub(crate) fn settling_seconds(&self) -> Option<f64> {
        self.settled.map(|periods| periods as f64 * PERIOD.as_secs_f64())
    }
}

/// The bytes that the set point allows for `arrivals` requests while the server could carry `carried` full pages (CA Fig.
/// 8): all pages light, times `1 + F (k - 1)` with `F = (U* / L - r) / (1 - r)`. k is the ratio of sizes, r that of costs,
/// L the load.
fn allowed_bytes(arrivals: u64, carried: f64) -> f64 {
    let load = arrivals as f64 / carried;
    let fraction = ((SET_POINT / load - LIGHT_COST) / (1.0 - LIGHT_COST)).clamp(0.0, 1.0);
    let sizes = FULL_BYTES as f64 / LIGHT_BYTES as f64;
    arrivals as f64 * LIGHT_BYTES as f64 * (1.0 + fraction * (sizes - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_values() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(Spread::of(&values), Spread { mean: 50.0, p5: 5.0, p95: 95.0 });
        assert_eq!(percentile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }

    #[test]
    fn what_the_set_point_allows() {
        // L = 3: F = (0.85 / 3 - 0.15) / 0.85 = 0.1569, so 1 + 7 F = 2.098 times all pages light.
        let ratio = allowed_bytes(6000, 2000.0) / (6000.0 * 2048.0);
        assert!((ratio - 2.098).abs() < 0.001, "{ratio}");
        // Below capacity all pages are full; far above it all are light.
        assert_eq!(allowed_bytes(1000, 2000.0), 1000.0 * 16384.0);
        assert_eq!(allowed_bytes(20_000, 2000.0), 20_000.0 * 2048.0);
    }
}
