//! A server behind a gateway whose places at that server are taken: how much of its workers' time the server may count.
//!
//! A request holds a place for S + h: its service S, and its way h to the server and back. The server counts S alone as busy
//! time, so its U is the part of the gateway's places that is taken, times S / (S + h). The load line bounds the larger of two
//! loads: the counted load of the workers, and the reported load of the gateway's places. If the second is larger, the set
//! point of the workers is lowered to `U* counted / reported`, and service levels follow it; rejections keep U*. If even light
//! pages for all clients need more than the places, the gateway rejects the excess: a rejection by the server would take a
//! place for h.

use super::sense::Sensed;
use super::{PlantInput, UtilizationLoop};
use crate::telemetry::measurement::Measurement;
use crate::telemetry::status::{HeardPlaces, PlacesStatus};
use crate::time::Duration;

/// The load that the server counts and the load that a gateway reports, as means over recent periods.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedPart {
    counted: f64,
    reported: f64,
}

/// The weight of a new period in these means. The gateway's periods are not the server's, so its report is about an earlier
/// period.
const GAIN: f64 = 0.2;
/// The least part to which a set point is lowered. If less is counted, requests hold places for something that no level
/// changes, as streams do, and the set point stays.
const LEAST: f64 = 0.3;
/// Periods after which a report does not count any more.
const FORGOTTEN: u32 = 10;

/// The set point of levels and that of rejections.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetPoints {
    /// U*, lowered while a gateway has its places taken.
    pub(super) of_levels: f64,
    /// U* as it is.
    pub(super) of_rejections: f64,
}

impl CountedPart {
    /// The set points for the next period.
    pub(super) fn set_points(
        &mut self,
        set_point: f64,
        input: &PlantInput<'_>,
        sensed: &Sensed,
    ) -> SetPoints {
        let part = self.step(input.reported_load, sensed, &input.measured);
        SetPoints { of_levels: set_point * part, of_rejections: set_point }
    }

    /// The part of the line that the server may count in the next period. `reported` is the load that was reported last, and
    /// how long ago.
    fn step(
        &mut self,
        reported: Option<(f64, Duration)>,
        sensed: &Sensed,
        measured: &Measurement<'_>,
    ) -> f64 {
        let Some((reported, ago)) = reported else { return 1.0 };
        let periods = ago.as_secs_f64() / measured.nominal_seconds;
        if periods > f64::from(FORGOTTEN) {
            *self = CountedPart::default();
        } else if periods < 1.0 {
            let gain = if self.reported > 0.0 { GAIN } else { 1.0 };
            self.counted += gain * (sensed.utilization - self.counted);
            self.reported += gain * (reported - self.reported);
        }
        self.part()
    }

    fn part(&self) -> f64 {
        let part = self.counted / self.reported;
        if part >= LEAST { part.min(1.0) } else { 1.0 }
    }

    /// The load that was reported last, and how long ago, with the reduction that follows; `None` if the report does not count
    /// any more.
    fn status(&self, reported: Option<(f64, Duration)>, period: Duration) -> Option<PlacesStatus> {
        let (taken, age) = reported?;
        let heard = HeardPlaces { age, set_point_reduction: 1.0 - self.part() };
        (age <= period * FORGOTTEN).then_some(PlacesStatus { taken, heard: Some(heard) })
    }
}

impl UtilizationLoop {
    /// The status of the places of a gateway before this server. `reported` is the load that was reported last, and how long
    /// ago.
    pub(crate) fn places_heard(
        &self,
        reported: Option<(f64, Duration)>,
        period: Duration,
    ) -> Option<PlacesStatus> {
        self.places.status(reported, period)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::by_hand::measured;
    use super::*;

    /// The part after `periods` periods with this report and this counted utilization.
    fn parts(own: &mut CountedPart, periods: usize, reported: Option<(f64, u64)>, utilization: f64) -> f64 {
        let reported = reported.map(|(load, seconds)| (load, Duration::from_secs(seconds)));
        let sensed = Sensed { utilization, ..Sensed::default() };
        (0..periods).map(|_| own.step(reported, &sensed, &measured(&[], &[]))).last().expect("a period")
    }

    #[test]
    fn the_server_may_count_as_much_less_of_the_line_as_it_counts_of_what_is_reported() {
        let mut own = CountedPart::default();
        assert_eq!(parts(&mut own, 3, None, 0.7), 1.0, "no gateway reports anything");
        let first = parts(&mut own, 1, Some((0.875, 0)), 0.7);
        assert!((first - 0.8).abs() < 1e-9, "lowered from the first period on: {first}");
        let next = parts(&mut own, 1, Some((1.75, 0)), 0.7);
        assert!((0.66..0.67).contains(&next), "the gateway turns away half: {next}");
        assert!((parts(&mut own, 40, Some((1.75, 0)), 0.7) - 0.4).abs() < 1e-3);
        assert!((parts(&mut own, 3, Some((1.75, 5)), 0.1) - 0.4).abs() < 1e-3, "nothing new is reported");
        assert_eq!(parts(&mut own, 1, Some((1.75, 11)), 0.1), 1.0, "the old report is forgotten");
        assert_eq!(parts(&mut own, 9, Some((0.6, 0)), 0.7), 1.0, "there are more places than workers");
        assert_eq!(parts(&mut own, 60, Some((0.9, 0)), 0.2), 1.0, "places are held for something else");
        assert_eq!(parts(&mut CountedPart::default(), 2, Some((0.0, 0)), 0.0), 1.0);
    }

    #[test]
    fn the_status_has_what_was_reported_and_by_how_much_the_line_is_lowered_until_it_is_forgotten() {
        let period = Duration::from_secs(1);
        let of = |own: &CountedPart, seconds| own.status(Some((0.875, Duration::from_secs(seconds))), period);
        let mut own = CountedPart::default();
        assert_eq!(own.status(None, period), None);
        parts(&mut own, 1, Some((0.875, 0)), 0.7);
        let reported = of(&own, 3).expect("it was reported");
        let heard = reported.heard.expect("this is the server");
        assert_eq!((reported.taken, heard.age), (0.875, Duration::from_secs(3)));
        assert!((heard.set_point_reduction - 0.2).abs() < 1e-9, "{heard:?}");
        assert_eq!(of(&own, 11), None, "the report is forgotten");
    }
}
