//! A static rate limit: the leaky bucket of nginx `limit_req` with `nodelay`, one for each plant.
//!
//! `excess = max(0, excess - rate dt + 1)`; a request is rejected if that is above `burst` (nginx
//! `src/http/modules/ngx_http_limit_req_module.c`, `ngx_http_limit_req_lookup`). A rejected request does not fill the bucket,
//! and the first request finds it empty. nginx counts in milliseconds and thousandths of a request; here time is exact. nginx's
//! default burst is 0: then the second of two requests closer than 1 / rate is rejected, however low the load.

use super::{Ask, Limiter};
use plimsoll_core::time::Instant;

/// A leaky bucket.
#[derive(Debug)]
pub(in crate::front) struct Rate {
    per_second: f64,
    burst: f64,
    excess: f64,
    last: Option<Instant>,
}

impl Rate {
    pub(in crate::front) fn new(per_second: f64, burst: u32) -> Self {
        Rate { per_second, burst: burst.into(), excess: 0.0, last: None }
    }
}

impl Limiter for Rate {
    fn admit(&mut self, now: Instant, _ask: Ask) -> bool {
        let excess = match self.last {
            Some(last) => {
                let leaked = self.per_second * now.since(last).as_secs_f64();
                (self.excess - leaked + 1.0).max(0.0)
            }
            None => 0.0,
        };
        // Intervals of exactly 1 / rate conform, so an excess of a billionth counts as rounding.
        if excess > self.burst + 1e-9 {
            return false;
        }
        (self.excess, self.last) = (excess, Some(now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ask, at};
    use super::*;

    fn admitted(limiter: &mut Rate, times: impl Iterator<Item = f64>) -> usize {
        times.filter(|t| limiter.admit(at(*t), ask(0))).count()
    }

    #[test]
    fn without_burst_only_evenly_spaced_requests_pass() {
        assert_eq!(admitted(&mut Rate::new(10.0, 0), (0..100).map(|n| f64::from(n) * 0.1)), 100);
        // At twice the rate, every second request passes.
        assert_eq!(admitted(&mut Rate::new(10.0, 0), (0..200).map(|n| f64::from(n) * 0.05)), 100);
    }

    #[test]
    fn a_burst_passes_at_once_and_leaks_at_the_rate() {
        let mut limiter = Rate::new(10.0, 5);
        // One request and the burst pass.
        assert_eq!(admitted(&mut limiter, [1.0; 20].into_iter()), 6);
        // Rejected requests do not fill the bucket, so after 0.3 s three more pass.
        assert_eq!(admitted(&mut limiter, [1.3; 20].into_iter()), 3);
        assert_eq!(admitted(&mut limiter, [100.0; 20].into_iter()), 6);
    }
}
