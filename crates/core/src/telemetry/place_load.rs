//! How much of its places at a server a gateway uses, which it reports to a server that decides itself.
//!
//! A request holds a place at the server on its way too, of which the server sees nothing: its workers may be below their load
//! line while all places are taken and requests wait in the gateway. So the gateway says with each request what part of its
//! places was taken in its last period, and the server holds its line for that part or its workers' utilization, whichever is
//! more. That part does not depend on how long the queue is, which a promised delay or ratio may keep long by design.

use crate::sync::shared::Shared;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The part of its places at a server that a gateway uses, of those that its own loop may fill, in thousandths. While it turns
/// requests away, the part is what all requests would take, so more than 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceLoad(u32);

impl PlaceLoad {
    /// The header by which a gateway reports it to a server.
    pub const HEADER: &str = "x-plimsoll-places";
    /// The highest value that is sent, and the highest that is believed.
    const MOST: u32 = 2000;
    const ALL: u32 = 1000;

    /// The value of such a header; `None` unless it is as a gateway writes it, a digit and three decimals.
    pub fn of_header(value: &str) -> Option<PlaceLoad> {
        let &[whole, b'.', ref part @ ..] = value.as_bytes() else { return None };
        let digits = || core::iter::once(&whole).chain(part);
        let is_number = part.len() == 3 && digits().all(u8::is_ascii_digit);
        is_number.then(|| Self::bounded(digits().fold(0, |sum, digit| 10 * sum + u32::from(digit - b'0'))))
    }

    /// The part as a number.
    pub(crate) fn as_part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ALL)
    }

    fn bounded(thousandths: u32) -> PlaceLoad {
        PlaceLoad(thousandths.min(Self::MOST))
    }
}

/// Writes the load as the header has it.
impl fmt::Display for PlaceLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / Self::ALL, self.0 % Self::ALL)
    }
}

/// What a gateway reports; its loop writes it.
#[derive(Debug, Default)]
pub(crate) struct AtomicPlaceLoad(AtomicU32);

impl AtomicPlaceLoad {
    pub(crate) fn set(&self, load: f64) {
        self.0.store((load * f64::from(PlaceLoad::ALL)) as u32, Relaxed);
    }

    pub(crate) fn get(&self) -> PlaceLoad {
        PlaceLoad::bounded(self.0.load(Relaxed))
    }
}

/// The latest load that a gateway has sent, and when, in one word that all processes of a server write: the time in units
/// of 2^20 ns above [`ReportedPlaceLoad::TIME`] bits, and below it the load in thousandths plus one. 0 if no gateway has sent
/// any.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct ReportedPlaceLoad(AtomicU64);

impl ReportedPlaceLoad {
    const TIME: u32 = 16;
    const UNIT: u32 = 20;

    /// A word that says the same already is not written, so that no other process has to fetch it.
    #[inline]
    pub(crate) fn note(&self, now: Instant, load: PlaceLoad) {
        let word = (now.as_nanos() >> Self::UNIT) << Self::TIME | u64::from(load.0 + 1);
        if self.0.load(Relaxed) != word {
            self.0.store(word, Relaxed);
        }
    }

    /// What was reported, as a number, and how long ago.
    pub(crate) fn read(&self, now: Instant) -> Option<(f64, Duration)> {
        let word = self.0.load(Relaxed);
        let thousandths = (word & ((1 << Self::TIME) - 1)).checked_sub(1)?;
        let reported_at = Instant::from_nanos((word >> Self::TIME) << Self::UNIT);
        let load = PlaceLoad::bounded(thousandths as u32);
        Some((load.as_part(), now.since(reported_at)))
    }
}

/// The words of a plant: what this gateway reports, and what was reported to this server.
#[derive(Clone, Default)]
pub(crate) struct PlaceLoads {
    pub(crate) own: Arc<AtomicPlaceLoad>,
    pub(crate) reported: Shared<ReportedPlaceLoad>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn what_a_loop_sets_is_reported_by_a_header_and_read_with_its_age() {
        let (own, reported) = (AtomicPlaceLoad::default(), ReportedPlaceLoad::default());
        let at = |ms: u64| Instant::from_nanos(ms << 20);
        assert_eq!(reported.read(at(5)), None);
        let loads =
            [(0.0, "0.000", 0.0), (0.8765, "0.876", 0.876), (1.2, "1.200", 1.2), (70.0, "2.000", 2.0)];
        for (load, text, read) in loads {
            own.set(load);
            assert_eq!(format!("{}", own.get()), text);
            reported.note(at(1000), PlaceLoad::of_header(text).expect("as it is written"));
            let (reported, age) = reported.read(at(3000)).expect("it was reported");
            assert_eq!((reported, age.as_nanos() as u64 >> 20), (read, 2000));
        }
        own.set(f64::NAN);
        assert_eq!(own.get(), PlaceLoad::default());
        assert_eq!(
            reported.read(at(500)).map(|(_, age)| age),
            Some(Duration::ZERO),
            "another process is ahead"
        );
    }

    #[test]
    fn a_header_is_believed_up_to_twice_all_places_and_only_as_a_gateway_writes_it() {
        assert_eq!(PlaceLoad::of_header("9.999"), Some(PlaceLoad(2000)));
        for wrong in
            ["", "1", "1.0", "1.0000", "-.500", "0.5e0", " 0.500", "10.000", "0,500", "x.500", "0.50\u{b2}"]
        {
            assert_eq!(PlaceLoad::of_header(wrong), None, "{wrong:?}");
        }
    }
}
