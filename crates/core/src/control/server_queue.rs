//! How many requests a plant gets at once if its classes were promised times.
//!
//! Requests in service beyond a plant's workers wait in the server, where nothing puts one before another. There n - s requests
//! take `(n - s) S / s`, so n is bounded by the part of the shortest promised time that this may take. A ratio divides the
//! waiting in the gateway, so beside a ratio no request is to wait in the server.

use crate::time::Duration;

/// The part of the shortest promised delay for which a request may wait in the server.
const PART_OF_DELAY: f64 = 0.15;
/// The part of the shortest deadline. Admission must be sure of nearly every request. A longer queue in the server varies more,
/// and a request of higher rank does not pass it, so admission would refuse many.
const PART_OF_DEADLINE: f64 = 0.05;
/// How long a request may wait in the server while S is not known, in units of S.
const UNKNOWN: f64 = 1.0;

/// The times that a plant's classes were promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromisedTimes {
    pub(crate) shortest_delay: Option<Duration>,
    pub(crate) shortest_deadline: Option<Duration>,
    pub(crate) has_ratio: bool,
}

impl PromisedTimes {
    /// The most requests in service at once at a plant with this number of workers. `service_seconds` is S, the mean
    /// service time, if it is known (s). `None` where no times are promised.
    pub(crate) fn most_in_service(self, workers: u32, service_seconds: Option<f64>) -> Option<u32> {
        let delay = self.shortest_delay.map(|time| PART_OF_DELAY * time.as_secs_f64());
        let deadline = self.shortest_deadline.map(|time| PART_OF_DEADLINE * time.as_secs_f64());
        let wait = delay.into_iter().chain(deadline).reduce(f64::min);
        let services = match (wait, service_seconds) {
            _ if self.has_ratio => 0.0,
            (Some(wait), Some(service)) => wait / service,
            (Some(_), None) => UNKNOWN,
            (None, _) => return None,
        };
        Some(workers.saturating_add((f64::from(workers) * services) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_shortest_time_is_waited_in_the_server() {
        let most = |delay: Option<u64>, has_ratio, service: Option<f64>| {
            let shortest_delay = delay.map(Duration::from_millis);
            PromisedTimes { shortest_delay, shortest_deadline: None, has_ratio }.most_in_service(8, service)
        };
        assert_eq!(most(Some(400), false, Some(0.04)), Some(8 + 12));
        assert_eq!(most(Some(400), true, Some(0.04)), Some(8));
        assert_eq!(most(Some(400), false, None), Some(8 + 8));
        assert_eq!(most(None, true, Some(0.04)), Some(8));
        assert_eq!(most(None, false, Some(0.04)), None);
        assert_eq!(most(Some(400), false, Some(1e-12)), Some(u32::MAX), "it saturates");
        let [shortest_delay, shortest_deadline] = [300, 400].map(|ms| Some(Duration::from_millis(ms)));
        let both = PromisedTimes { shortest_delay, shortest_deadline, has_ratio: false };
        assert_eq!(both.most_in_service(8, Some(0.04)), Some(8 + 4));
    }
}
