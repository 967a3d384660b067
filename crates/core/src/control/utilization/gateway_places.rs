//! A server behind a gateway that has its places there taken: what the server may count of its workers' time.
//!
//! A request holds a place for S + h: its service S, and its way h to the server and back. The server counts S alone as busy
//! time, so its U is the part of the gateway's places that is taken, times S / (S + h). The load line bounds the larger of the
//! two: the counted one, of the workers, and the reported one, of the gateway's places. Where the second is larger, the set
//! point of the workers is lowered to `U* counted / reported`, and service levels follow it; rejections keep U*. What even
//! light pages for all would need beyond the places, the gateway rejects: a rejection by the server would take a place for h.

use super::sense::Sensed;
use super::{PlantInput, UtilizationLoop};
use crate::telemetry::measurement::Measurement;
use crate::telemetry::status::{HeardPlaces, PlacesStatus};
use crate::time::Duration;

/// What the server counts and what a gateway reports, as they are of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CountedPart {
    counted: f64,
    reported: f64,
}

/// What a period moves them by. The gateway's period is not this one, so that what it reports is of one before.
const GAIN: f64 = 0.2;
/// The least part. If less is counted, requests hold places for something that no level changes, as streams do.
const LEAST: f64 = 0.3;
/// Periods after which what was reported does not count any more.
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

    /// The part of the line that the server may count in the next period. `reported` is what was reported last, and how long
    /// ago.
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

    /// What was reported last, and how long ago, with what follows from it; `None` if it does not count any more.
    fn status(&self, reported: Option<(f64, Duration)>, period: Duration) -> Option<PlacesStatus> {
        let (taken, age) = reported?;
        let heard = HeardPlaces { age, set_point_reduction: 1.0 - self.part() };
        (age <= period * FORGOTTEN).then_some(PlacesStatus { taken, heard: Some(heard) })
    }
}

impl UtilizationLoop {
    /// What a gateway before this server reports of its places: `reported` is what was reported last, and how long ago.
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

    /// The parts after so many periods in which this was reported and counted.
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
        assert!((first - 0.8).abs() < 1e-9, "from the first period on: {first}");
        let next = parts(&mut own, 1, Some((1.75, 0)), 0.7);
        assert!((0.66..0.67).contains(&next), "the gateway turns away half: {next}");
        assert!((parts(&mut own, 40, Some((1.75, 0)), 0.7) - 0.4).abs() < 1e-3);
        assert!((parts(&mut own, 3, Some((1.75, 5)), 0.1) - 0.4).abs() < 1e-3, "nothing new is reported");
        assert_eq!(parts(&mut own, 1, Some((1.75, 11)), 0.1), 1.0, "and then it is forgotten");
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
        assert_eq!(of(&own, 11), None, "it is forgotten");
    }
}
