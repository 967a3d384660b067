//! A second of the demo in a few numbers, for the screen, the log line, the report and the picture.

use super::side::DemoPeriod;
use super::side::Seen;

/// One control period of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moment {
    /// The part of the server's workers that held a request.
    pub(crate) utilization: f64,
    pub(crate) full: u64,
    pub(crate) light: u64,
    pub(crate) rejected: u64,
    pub(crate) failed: u64,
    /// Median and 99th percentile of response times (ms); `None` while nothing was answered.
    pub(crate) response: Option<[f64; 2]>,
}

impl Moment {
    pub(crate) fn of(period: &DemoPeriod) -> Moment {
        let Seen { pages: [light, full], rejected, errors, latency, .. } = &period.seen;
        let ms = |quantile| latency.quantile(quantile).as_secs_f64() * 1e3;
        Moment {
            utilization: period.utilization,
            full: *full,
            light: *light,
            rejected: *rejected,
            failed: *errors,
            response: (latency.count() > 0).then(|| [0.5, 0.99].map(ms)),
        }
    }

    /// Requests that ended, however.
    fn ended(&self) -> u64 {
        self.full + self.light + self.rejected + self.failed
    }

    /// `count` as a part of the requests that ended.
    pub(crate) fn share(&self, count: u64) -> f64 {
        count as f64 / self.ended().max(1) as f64
    }
}
