//! The forecast of when a plant will have room for requests that are turned away.
//!
//! Rejected clients that retry form a queue of V seconds of work outside the server. It drains with the capacity that first
//! requests leave free:
//!
//! ```text
//! latest = soonest + (V + T max(X - U*, 0)) / room,    at most two minutes
//! room = 0.8 max(U* - (X - what comes again), U* / 5),    V' = turned away - what comes again
//! ```
//!
//! X is the arriving load at the lowest level, and T the period: requests that are turned away until the next step get the same
//! times. The times that are sent with rejections are spread evenly from the soonest to the latest, so the part T / (the latest
//! that was sent) of V comes again in a period. The soonest time is when the requests that wait inside have been served. An
//! overload that goes on leaves no room. The forecast takes a part of the set point as room even then, since the end of the
//! overload cannot be foreseen, and it bounds the latest time.

use crate::actuator::retry_after::{LONGEST, ReturnTimes};
use crate::time::Duration;

/// The least room that is forecast, as a part of the set point. The end of a crowd mostly leaves more.
const LEAST_ROOM: f64 = 0.2;
/// The part of the room that returning clients are to fill, since rates vary.
const FILLED: f64 = 0.8;

/// The inputs of the forecast in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnedAway {
    /// The length of a period (s).
    pub(super) seconds: f64,
    /// U*.
    pub(super) set_point: f64,
    /// The arriving load at the lowest level, that of retries included.
    pub(super) arriving: f64,
    /// The part of `arriving` that was turned away.
    pub(super) turned_away: f64,
    /// The work of the requests that wait inside, in seconds of the whole plant.
    pub(super) waiting: f64,
}

/// The queue of rejected clients outside the server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturningClients {
    /// V (s).
    outside: f64,
    /// The time within which all of them come again (s).
    window: f64,
}

impl ReturningClients {
    pub(super) fn step(&mut self, seen: &TurnedAway) -> ReturnTimes {
        // If less load arrives than should have come again, fewer clients are outside.
        let window = self.window.max(seen.seconds);
        let outside = self.outside.min(seen.arriving * window);
        // Rounding may make this product larger than `outside`.
        let returned = (outside * seen.seconds / window).min(outside);
        self.outside = outside - returned + seen.turned_away * seen.seconds;
        let first_time = seen.arriving - returned / seen.seconds;
        let room = FILLED * (seen.set_point - first_time).max(LEAST_ROOM * seen.set_point);
        // Requests that will be turned away until the next step get the same times.
        let next = (seen.arriving - seen.set_point).max(0.0) * seen.seconds;
        let soonest = (seen.waiting / seen.set_point).min(LONGEST);
        let latest = (soonest + (self.outside + next) / room).min(LONGEST);
        self.window = latest.max(self.window - seen.seconds);
        ReturnTimes { soonest: Duration::from_secs_f64(soonest), latest: Duration::from_secs_f64(latest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The load by second: ten seconds at three times the set point, then calm at a half. All rejected clients come again,
    /// within the times that they were given if `obeys`, else in the next second.
    fn loads(obeys: bool) -> Vec<f64> {
        let mut clients = ReturningClients::default();
        let mut coming = [0.0; 300];
        let mut loads = Vec::new();
        for second in 0..120 {
            let first_time = if second < 10 { 3.0 } else { 0.5 };
            let arriving: f64 = first_time + coming[second];
            let turned_away = (arriving - 1.0).max(0.0);
            loads.push(arriving);
            let seen = TurnedAway { seconds: 1.0, set_point: 1.0, arriving, turned_away, waiting: 0.0 };
            let told = clients.step(&seen);
            // Rejected clients of this second have the times of the step before; the times of this step are as good here.
            let spread = if obeys { told.latest.as_secs_f64().ceil().max(1.0) as usize } else { 1 };
            (1..=spread).for_each(|after| coming[second + after] += turned_away / spread as f64);
        }
        loads
    }

    #[test]
    fn clients_that_come_when_told_are_no_second_wave() {
        let (told, at_once) = (loads(true), loads(false));
        let most = |loads: &[f64], from: usize| loads[from..].iter().copied().fold(0.0, f64::max);
        assert!(most(&told, 13) < 1.1, "{told:?}");
        assert!(most(&at_once, 13) > 3.0, "{at_once:?}");
    }

    #[test]
    fn nobody_is_told_to_stay_away_from_a_server_with_room() {
        let mut clients = ReturningClients::default();
        let calm =
            TurnedAway { seconds: 1.0, set_point: 0.85, arriving: 0.5, turned_away: 0.0, waiting: 0.17 };
        assert_eq!(clients.step(&calm).soonest, Duration::from_millis(200));
        let flood = TurnedAway { arriving: 30.0, turned_away: 29.0, ..calm };
        (0..100).for_each(|_| _ = clients.step(&flood));
        assert_eq!(clients.step(&flood).latest, Duration::from_secs(120));
        (0..120).for_each(|_| _ = clients.step(&calm));
        assert!(
            clients.step(&calm).latest < Duration::from_millis(500),
            "clients that do not come again are forgotten"
        );
    }
}
