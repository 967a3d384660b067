//! The relay (CA 4.1): one tree of files for all clients, with the hysteresis that the paper says is missing.
//!
//! All clients are degraded in overload, which `overload.rs` finds by response times. They return to full quality by load,
//! since below capacity response times hardly differ: the utilization at full quality for all clients must have been below the
//! back line for a hold time.
//!
//! The hold time depends on the load since the degradation. If the load fell by a third, the hold time is a few seconds. If it
//! did not, only the model can have changed, and the hold time is a minute, so that a constant load is not tried again and
//! again. Whether the load fell is judged by the last few seconds, at the largest rate that so few requests allow. If overload
//! comes again within half a minute after a return, the next hold time is doubled, up to ten minutes. If the load is next to
//! nothing by the model, it needs no hold time. But if the overload came within a minute after a return, the model may be
//! wrong, and the load must have fallen by a third as well. So at constant load there is at most one switch per 30 s after the
//! first return, however wrong the model is.
//!
//! A second threshold of the response time would not do: CA 4.2 measured that the queue is as short at half of the load as at
//! nine tenths. A fixed hold time would be too short for a constant load or too long for a load that has gone.

use super::offered_load::{LATELY, OfferedLoad};
use super::{Change, LawInput, Why};
use crate::time::{Duration, Instant};

/// For this long after a switch the queue drains, and the rate of completed requests is no measure of the offered load.
const SETTLE: Duration = Duration::from_secs(3);
/// The load has fallen if it is below this part of its peak.
const FALLEN: f64 = 0.67;
const HOLD_STANDING: Duration = Duration::from_secs(60);
const LONGEST_HOLD: Duration = Duration::from_secs(600);
/// Overload within this time after a return means that the return was wrong.
const JUDGED: Duration = Duration::from_secs(30);
/// Below this part of the back line, U at full quality is next to nothing.
const NEXT_TO_NOTHING: f64 = 0.4;

pub(super) struct Relay {
    down: Option<Down>,
    /// When the relay last returned to full quality.
    returned: Option<Instant>,
    /// Wrong returns in succession.
    wrong: u32,
}

/// The state while all clients are degraded.
struct Down {
    since: Instant,
    /// The highest rate since the degradation.
    peak: f64,
    /// The time since which full quality would keep to the back line.
    fits: Option<Instant>,
    /// The time since which it would, and the load has fallen or is next to nothing.
    fallen: Option<Instant>,
    /// Whether the relay had returned to full quality shortly before.
    tried: bool,
}

impl Relay {
    pub(super) fn new(applied: f64) -> Self {
        let down = Down::new(Instant::ZERO, false);
        Relay { down: (applied < 0.5).then_some(down), returned: None, wrong: 0 }
    }

    pub(super) fn step(
        &mut self,
        now: Instant,
        seen: &LawInput,
        load: &OfferedLoad,
        back_line: f64,
    ) -> Option<Change> {
        match &mut self.down {
            None if seen.overloaded => {
                let within = |time| self.returned.is_some_and(|back| now.since(back) < time);
                self.wrong = if within(JUDGED) { self.wrong + 1 } else { 0 };
                self.down = Some(Down::new(now, within(HOLD_STANDING)));
                Some(Change { fraction: 0.0, why: seen.why })
            }
            None => None,
            Some(down) => {
                let at_full = load.at(1.0).filter(|_| seen.load_known && !seen.overloaded)?;
                if !down.may_return((now, at_full), load, back_line, self.wrong) {
                    return None;
                }
                (self.down, self.returned) = (None, Some(now));
                Some(Change { fraction: 1.0, why: Why::Load { at_full, line: back_line } })
            }
        }
    }
}

impl Down {
    fn new(since: Instant, tried: bool) -> Down {
        Down { since, peak: 0.0, fits: None, fallen: None, tried }
    }

    /// Whether U at full quality is at most the back line, and has been for the hold time.
    fn may_return(
        &mut self,
        (now, at_full): (Instant, f64),
        load: &OfferedLoad,
        line: f64,
        wrong: u32,
    ) -> bool {
        if now.since(self.since) < SETTLE {
            return false;
        }
        self.peak = self.peak.max(load.rate());
        let since = |so: bool, was: Option<Instant>| if so { was.or(Some(now)) } else { None };
        let longer = |hold: Duration| LONGEST_HOLD.min(hold * 2_u32.saturating_pow(wrong.min(10)));
        let held = |from: Option<Instant>, hold| from.is_some_and(|from| now.since(from) >= hold);
        self.fits = since(at_full <= line, self.fits);
        if held(self.fits, longer(HOLD_STANDING)) {
            return true;
        }
        let lately = load.lately().filter(|_| now.since(self.since) >= SETTLE + LATELY);
        let Some((rate, at_full)) = lately else { return false };
        let fell = rate <= FALLEN * self.peak;
        let gone = at_full < NEXT_TO_NOTHING * line && (fell || !self.tried);
        self.fallen = since(at_full <= line && (gone || fell), self.fallen);
        // The recent samples already cover the first seconds of the hold time.
        held(self.fallen, if gone { Duration::ZERO } else { longer(LATELY).saturating_sub(LATELY) })
    }
}
