//! Utilization from a server's own counters (CA 4.2.1).
//!
//! If a and b are known, U follows from the linear model `U = max(a R + b W, W / bandwidth)`, for which a log is enough. If
//! not, U is the part of the time without gaps, `(T - G) / T`, which with s workers is the time average of min(n, s) / s. The
//! server reports n at the moment of the question, so this is a sample of the average.
//!
//! A server that serves each file between two looks at its sockets never has a request in service when it is asked: gaps show
//! no load at any rate. If the processor time of its processes is known, U is at least the part of it that they used.

use crate::time::Duration;

/// A server's counters since the last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Requests completed since the last sample.
    pub requests: u64,
    /// Bytes of their responses.
    pub bytes: u64,
    /// The sum of their response times, if the source sees when each began and ended. No law uses it.
    pub response: Option<Duration>,
    /// Requests in service at the moment, without the request for the counters.
    pub in_service: Option<u32>,
    /// The number of requests that the server can serve at once, if it reports that.
    pub workers: Option<u32>,
    /// The processor time of its processes, if that can be read.
    pub processor: Option<ProcessorTime>,
}

/// The processor time of a server's processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorTime {
    /// The processor time that they used (s).
    pub used_seconds: f64,
    /// The length of the interval in which they used it (s).
    pub seconds: f64,
    /// The number of processors that they could use at once: one for each of their threads, at most those of the machine.
    pub processors: f64,
}

impl ProcessorTime {
    /// The part that the processes used of the processor time that they could have used.
    pub fn utilization(&self) -> f64 {
        (self.used_seconds / (self.seconds * self.processors).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

/// A request takes at least this much of a worker's time (s); the fastest take several times as much.
const LEAST_SECONDS: f64 = 4e-6;

/// How U is sensed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadSense {
    /// U = a R + b W.
    Linear {
        /// a (s of the whole server).
        per_request_seconds: f64,
        /// b (s of the whole server).
        per_byte_seconds: f64,
        /// The link's bandwidth, if the link may be full first (bytes/s).
        bandwidth: Option<f64>,
    },
    /// U = min(n, s) / s.
    Gap {
        /// s; if `None`, the number that the server reports.
        workers: Option<u32>,
    },
}

impl LoadSense {
    /// U over `seconds` in which the counters moved by `counters`; `None` if they do not show it.
    pub fn utilization(&self, counters: &Counters, seconds: f64) -> Option<f64> {
        match *self {
            LoadSense::Linear { per_request_seconds, per_byte_seconds, bandwidth } => {
                let (requests, bytes) = (counters.requests as f64, counters.bytes as f64);
                let work = per_request_seconds * requests + per_byte_seconds * bytes;
                let link = bandwidth.map_or(0.0, |rate| bytes / rate);
                Some(work.max(link) / seconds)
            }
            LoadSense::Gap { workers } => {
                let both = counters.in_service.zip(workers.or(counters.workers));
                let by_gaps =
                    both.map(|(busy, workers)| (f64::from(busy) / f64::from(workers.max(1))).min(1.0));
                let by_processor = counters.processor.map(|time| time.utilization());
                by_gaps.into_iter().chain(by_processor).reduce(f64::max)
            }
        }
    }

    /// The least U that the requests of these `seconds` make, whatever they are; 0 if costs are known, since it is not needed
    /// then.
    pub fn least_utilization(&self, counters: &Counters, seconds: f64) -> f64 {
        match *self {
            LoadSense::Linear { .. } => 0.0,
            LoadSense::Gap { workers } => {
                let workers = f64::from(workers.or(counters.workers).unwrap_or(1).max(1));
                counters.requests as f64 * LEAST_SECONDS / (workers * seconds)
            }
        }
    }

    /// The number of requests that wait for a worker, as far as the counters show them: nginx counts those in service and those
    /// before its upstream together. A server that counts busy workers does not know its listen queue.
    pub fn waiting(&self, counters: &Counters) -> u32 {
        match *self {
            LoadSense::Linear { .. } => 0,
            LoadSense::Gap { workers } => {
                let both = counters.in_service.zip(workers.or(counters.workers));
                both.map_or(0, |(in_service, workers)| in_service.saturating_sub(workers))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_is_the_fuller_of_two_resources() {
        // CA: 1.6 ms a request, 0.065 ms a KB; 100/s of 64 KB.
        let counters = Counters { requests: 50, bytes: 50 * 65_536, ..Counters::default() };
        let (per_request_seconds, per_byte_seconds) = (1.6e-3, 0.065e-3 / 1024.0);
        let sense = |bandwidth| LoadSense::Linear { per_request_seconds, per_byte_seconds, bandwidth };
        let utilization = |bandwidth| sense(bandwidth).utilization(&counters, 0.5).unwrap();
        assert!((utilization(None) - 0.576).abs() < 1e-9);
        assert!((utilization(Some(12.5e6)) - 0.576).abs() < 1e-9);
        assert!((utilization(Some(7e6)) - 6_553_600.0 / 7e6).abs() < 1e-9);
    }

    #[test]
    fn gaps_count_workers_and_never_more_than_all() {
        let busy = |in_service, workers| Counters { in_service, workers, ..Counters::default() };
        let sense = LoadSense::Gap { workers: None };
        assert_eq!(sense.utilization(&busy(Some(3), Some(8)), 1.0), Some(0.375));
        assert_eq!(sense.utilization(&busy(Some(9), Some(8)), 1.0), Some(1.0));
        assert_eq!(sense.utilization(&busy(None, Some(8)), 1.0), None);
        assert_eq!(sense.utilization(&busy(Some(3), None), 1.0), None);
        let known = LoadSense::Gap { workers: Some(4) };
        assert_eq!(known.utilization(&busy(Some(3), Some(8)), 1.0), Some(0.75));
        // The processor time counts if it shows more.
        let time = |used_seconds| ProcessorTime { used_seconds, seconds: 0.25, processors: 2.0 };
        let with = |used| Counters { processor: Some(time(used)), ..busy(Some(2), Some(8)) };
        assert_eq!(
            [0.05, 0.4, 9.0].map(|used| sense.utilization(&with(used), 0.25)),
            [0.25, 0.8, 1.0].map(Some)
        );
        let alone = Counters { processor: Some(time(0.4)), ..Counters::default() };
        assert_eq!(sense.utilization(&alone, 0.25), Some(0.8));
        // Requests beyond the workers wait.
        let waiting =
            [busy(Some(9), Some(8)), busy(Some(3), Some(8)), busy(None, None)].map(|all| sense.waiting(&all));
        assert_eq!(waiting, [1, 0, 0]);
        assert_eq!(known.waiting(&busy(Some(9), Some(8))), 5);
    }
}
