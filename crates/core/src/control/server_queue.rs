//! How many requests a plant is given at once where classes were promised times.
//!
//! What a plant is given beyond its workers waits in the server, where nothing puts one request before another. There
//! n - s requests take `(n - s) S / s`, so n is bounded by the part of the shortest promised delay that this may take.
//! A ratio divides what waits in the gateway, so beside one nothing is to wait in the server.

use crate::time::Duration;

/// The part of the shortest promised delay for which a request may wait in the server.
const PART: f64 = 0.15;
/// The same as long as S is not known, in S.
const UNKNOWN: f64 = 1.0;

/// The most requests in service at once before so many workers, each of which takes S for a request (s).
pub(crate) fn most_in_service(
    workers: u32,
    service_seconds: Option<f64>,
    (shortest, has_ratio): (Option<Duration>, bool),
) -> u32 {
    let services = match (shortest, service_seconds) {
        _ if has_ratio => 0.0,
        (Some(delay), Some(service)) => PART * delay.as_secs_f64() / service,
        _ => UNKNOWN,
    };
    workers.saturating_add((f64::from(workers) * services) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_shortest_delay_is_waited_in_the_server() {
        let delay = Some(Duration::from_millis(400));
        assert_eq!(most_in_service(8, Some(0.04), (delay, false)), 8 + 12);
        assert_eq!(most_in_service(8, Some(0.04), (delay, true)), 8);
        assert_eq!(most_in_service(8, None, (delay, false)), 8 + 8);
        assert_eq!(most_in_service(8, Some(0.04), (None, true)), 8);
        assert_eq!(most_in_service(8, Some(1e-12), (delay, false)), u32::MAX, "it saturates");
    }
}
