//! The chance of being late that admission accepts of a rank's requests.
//!
//! A request is admitted if its chance to be late is at most the promised one. If waits are due to lower ranks, whose requests
//! in service are not preempted, this rule refuses many requests: the late share of the admitted requests stays far below the
//! promised one, and each refused request had a good chance to be in time. So while more of a rank's work is refused than is
//! late, the accepted chance grows, and otherwise it falls again:
//!
//! ```text
//! d ln(chance) / dt = +1 / PACE  if refused > late + LEAST * admitted,  else -1 / PACE
//! ```
//!
//! all three over the last ten seconds or so. A chance above one half is never accepted: up to that, a late request is no
//! greater loss than a refused one. A late request takes the place of other requests of its rank and of higher ranks, so the
//! chance is at most the part of the plant that lower ranks use and that its own and higher ranks leave: a rank that wants more
//! than the whole plant gains nothing from later answers. A request that takes too long even alone does not count as refused,
//! since no greater chance would admit it.
//!
//! **No rank is locked out.** While a greater chance is accepted, one request of the rank at a time that would wait for too
//! long is admitted all the same. If next to no work of a rank is admitted while lower ranks are served, one request at a time
//! is admitted even if it would take too long alone: its estimate may be of other requests, or of a server that was slower. A
//! pause of nine times the service time of that request follows, so that such requests take a tenth of a worker.

use crate::admission::lateness::{AcceptedLateness, Invited, Lateness};
use crate::model::normal_quantile;
use libm::{exp, log};

/// The sums of one rank, which are forgotten within [`MEMORY`].
#[derive(Clone, Default)]
pub(super) struct LatenessLaw {
    /// The work that was refused for its wait, and all refused work.
    refused: f64,
    turned_away: f64,
    late: f64,
    admitted: f64,
    /// All work so far that was refused for its wait, was late, and was refused, at the last look (us).
    last: [u64; 3],
    /// The natural logarithm of the accepted chance over [`LEAST_CHANCE`].
    raised: f64,
    /// The time (s) until the next request is invited.
    pause: f64,
}

/// A rank at one look.
pub(super) struct SeenRank {
    /// The time since the last look (s), and the work that was started in it (us).
    pub(super) seconds: f64,
    pub(super) started_us: f64,
    /// All work that was ever refused (us).
    pub(super) refused_us: u64,
    /// The part of the plant that lower ranks use and that this rank and higher ranks leave.
    pub(super) room: f64,
    /// Whether requests of the rank are in service.
    pub(super) is_served: bool,
}

/// The time within which sums are forgotten (s).
const MEMORY: f64 = 10.0;
/// The time in which the chance changes by a factor of e (s).
const PACE: f64 = 1.0;
/// The least chance, below which no promise goes.
const LEAST_CHANCE: f64 = 0.001;
/// The greatest chance that is accepted: it is no loss to refuse a request that is as likely to be late as in time.
const MOST_CHANCE: f64 = 0.5;
/// Refused work up to this part of the admitted work does not raise the chance.
const LEAST: f64 = 0.002;
/// A rank whose admitted work is less than this part of its refused work is locked out, if more than this part of the plant is
/// left for it. Invited requests take this part of a worker.
const LOCKED_OUT: f64 = 0.1;

impl LatenessLaw {
    /// A law that begins now; `turned_away_us` is all work that was ever refused.
    pub(super) fn since_now(lateness: &Lateness, turned_away_us: u64) -> Self {
        LatenessLaw {
            last: [lateness.refused_us(), lateness.late_us(), turned_away_us],
            ..LatenessLaw::default()
        }
    }

    /// Follows the sums of one look, and publishes the accepted chance.
    pub(super) fn step(&mut self, lateness: &Lateness, seen: &SeenRank) {
        let now = [lateness.refused_us(), lateness.late_us(), seen.refused_us];
        let last = core::mem::replace(&mut self.last, now);
        let [refused, late, turned_away] = [0, 1, 2].map(|index| now[index].wrapping_sub(last[index]) as f64);
        let kept = exp(-seen.seconds / MEMORY);
        let sums = [&mut self.refused, &mut self.late, &mut self.turned_away, &mut self.admitted];
        for (sum, came) in sums.into_iter().zip([refused, late, turned_away, seen.started_us]) {
            *sum = kept * *sum + came;
        }
        lateness.accept(self.accepted(seen));
        lateness.invite(self.invites(seen));
    }

    /// The accepted lateness, if its chance is more than the least.
    fn accepted(&mut self, seen: &SeenRank) -> Option<AcceptedLateness> {
        let most = log((seen.room.min(MOST_CHANCE) / LEAST_CHANCE).max(1.0));
        let direction = if self.refused > self.late + LEAST * self.admitted { 1.0 } else { -1.0 };
        self.raised = (self.raised + direction * seen.seconds / PACE).clamp(0.0, most);
        let chance = LEAST_CHANCE * exp(self.raised);
        (self.raised > 0.0).then(|| AcceptedLateness { chance, deviations: normal_quantile(1.0 - chance) })
    }

    /// Which requests are admitted one at a time whatever their estimate.
    fn invites(&mut self, seen: &SeenRank) -> Invited {
        let is_locked_out = self.admitted < LOCKED_OUT * self.turned_away && seen.room > LOCKED_OUT;
        if !is_locked_out {
            self.pause = 0.0;
            return if self.raised > 0.0 { Invited::Waiting } else { Invited::None };
        }
        let longer = if seen.is_served { 1.0 / LOCKED_OUT - 1.0 } else { -1.0 };
        self.pause = (self.pause + longer * seen.seconds).max(0.0);
        if self.pause <= 0.0 { Invited::Any } else { Invited::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: f64 = 0.25;

    fn seen(started_us: f64, refused_us: u64, is_served: bool) -> SeenRank {
        SeenRank { seconds: SECONDS, started_us, refused_us, room: 0.8, is_served }
    }

    #[test]
    fn a_greater_chance_is_accepted_while_more_is_refused_than_is_late() {
        let (mut law, lateness) = (LatenessLaw::default(), Lateness::default());
        let promised = AcceptedLateness { chance: 0.01, deviations: 2.326 };
        for look in 1..=40 {
            lateness.refuse(100);
            law.step(&lateness, &seen(1000.0, 100 * look, false));
        }
        let accepted = lateness.accepted(promised);
        assert!((accepted.chance - 0.5).abs() < 1e-6 && accepted.deviations.abs() < 1e-6, "{accepted:?}");
        lateness.add(10_000);
        law.step(&lateness, &seen(1000.0, 4000, false));
        let less = lateness.accepted(promised).chance;
        assert!((0.35..0.45).contains(&less), "{less}");
        law.step(&lateness, &SeenRank { room: 0.05, ..seen(1000.0, 4000, false) });
        let least = lateness.accepted(promised).chance;
        assert!((0.04..0.0501).contains(&least), "the part of lower ranks bounds it: {least}");
    }

    #[test]
    fn one_at_a_time_is_invited_of_a_rank_that_is_locked_out() {
        let (mut law, lateness) = (LatenessLaw::default(), Lateness::default());
        law.step(&lateness, &seen(1000.0, 5000, false));
        assert!(!lateness.invites(false), "a part of the work is admitted");
        law.step(&lateness, &seen(0.0, 50_000, false));
        assert!(lateness.invites(false));
        law.step(&lateness, &seen(0.0, 100_000, true));
        let pauses = (0..20).take_while(|_| {
            law.step(&lateness, &seen(0.0, 100_000, false));
            !lateness.invites(false)
        });
        assert_eq!(pauses.count(), 8, "invited at the ninth look after one in service");
        law.step(&lateness, &SeenRank { room: 0.0, ..seen(0.0, 200_000, false) });
        assert!(!lateness.invites(false), "no room is left for the rank");
    }
}
