//! The mean service time of requests that were released lately, of one class or of several together.

/// The remembered requests and their service times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentService {
    /// Requests released, and their service times (ns), up to the last look.
    before: Option<[u64; 2]>,
    /// Requests and service times (ns), the recent ones with more weight.
    recent: [f64; 2],
}

impl RecentService {
    /// The requests released since the last look and their service times (ns), if `now` are all those up to now; zeros at the
    /// first look.
    pub(crate) fn come(&mut self, now: [u64; 2]) -> [u64; 2] {
        let before = self.before.replace(now).unwrap_or(now);
        [0, 1].map(|place| now[place].wrapping_sub(before[place]))
    }

    /// Forgets the last look, since the sums of the next one are those of other requests.
    pub(crate) fn look_anew(&mut self) {
        self.before = None;
    }

    /// Remembers new requests, and keeps this part of those remembered before.
    pub(crate) fn remember(&mut self, come: [u64; 2], kept: f64) {
        for (recent, new) in self.recent.iter_mut().zip(come) {
            *recent = kept * *recent + new as f64;
        }
    }

    /// The mean service time (s); 0 where nothing was released.
    pub(crate) fn mean_seconds(&self) -> f64 {
        let [released, service_ns] = self.recent;
        if released > 0.0 { service_ns * 1e-9 / released } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_released_before_the_first_look_counts_for_nothing_and_what_follows_fades() {
        let mut service = RecentService::default();
        let mut mean_after = |now: [u64; 2]| {
            let come = service.come(now);
            service.remember(come, 0.5);
            service.mean_seconds()
        };
        assert_eq!(mean_after([100, 5_000_000_000]), 0.0);
        assert!((mean_after([110, 5_200_000_000]) - 0.02).abs() < 1e-12);
        assert!((mean_after([130, 6_500_000_000]) - 0.056).abs() < 1e-12, "five of 20 ms and twenty of 65");
        service.look_anew();
        let come = service.come([7, 7]);
        assert_eq!(come, [0, 0]);
        assert!((service.mean_seconds() - 0.056).abs() < 1e-12);
    }
}
