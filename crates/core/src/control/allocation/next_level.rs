//! From a load to a level: the highest m whose offered load fits, with the rules that `feed_forward` states.

use crate::control::{Demand, LoadTarget};
use libm::fabs;

/// The deadband of m: 0.002 of all clients; if few clients are served, a tenth of those.
const DEADBAND: f64 = 0.002;
const DEADBAND_OF_FEW: f64 = 0.1;

/// Whether no client has more than the lowest level, apart from the remainder that the deadband leaves.
pub(crate) fn is_lowest(m: f64) -> bool {
    m <= 1.0 + DEADBAND
}

/// The m that follows `m`, for clients with this demand.
pub(crate) fn next_level(target: &LoadTarget, m: f64, demand: &Demand) -> f64 {
    let top = f64::from(demand.top);
    let mut next = demand.solve(target.load, target.drain);
    if next < 1.0 {
        next = next.max(least(target, m, demand));
    }
    if m >= top && target.calm {
        next = top;
    }
    let at_an_end = next <= 0.0 || next >= top;
    let deadband = DEADBAND.min(DEADBAND_OF_FEW * next);
    if fabs(next - m) >= deadband || at_an_end { next } else { m }
}

/// The least m that the rules allow if the formula demands rejections.
fn least(target: &LoadTarget, m: f64, demand: &Demand) -> f64 {
    if target.carried || (target.unconfirmed && m >= 1.0) {
        return 1.0;
    }
    let spare = (target.room - demand.offered(1.0, 0.0)).max(1e-9);
    let drains_in_time = demand.backlog(1.0) / spare < 0.5 * target.wait_periods;
    let only_backlog = target.backlog && demand.solve(target.load, 0.0) >= 1.0;
    if only_backlog && drains_in_time { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: LoadTarget = LoadTarget::plain(0.8);

    #[test]
    fn m_fills_the_load_and_stands_still_within_the_deadband() {
        let demand = Demand::arriving(&[0.0, 0.4, 1.2]);
        let m = next_level(&TARGET, 2.0, &demand);
        assert!(fabs(m - 1.5) < 1e-12, "{m}");
        assert_eq!(next_level(&TARGET, m + 0.9 * DEADBAND, &demand), m + 0.9 * DEADBAND);
        assert_eq!(next_level(&TARGET, m + 1.1 * DEADBAND, &demand), m);
    }

    #[test]
    fn an_unconfirmed_step_and_a_backlog_that_drains_in_time_reject_nobody() {
        let over = Demand::arriving(&[0.0, 1.6]);
        assert_eq!(next_level(&TARGET, 1.0, &over), 0.5);
        assert_eq!(next_level(&LoadTarget { unconfirmed: true, ..TARGET }, 1.0, &over), 1.0);
        let mut waits = Demand::arriving(&[0.0, 0.5]);
        waits.levels[1].waiting = 1.5;
        let drains = LoadTarget { drain: 1.0, backlog: true, ..TARGET };
        assert_eq!(next_level(&drains, 1.0, &waits), 1.0);
        assert!(next_level(&LoadTarget { wait_periods: 2.0, ..drains }, 1.0, &waits) < 1.0);
    }

    #[test]
    fn a_calm_plant_at_the_top_stays_there() {
        let over = Demand::arriving(&[0.0, 0.4, 1.2]);
        assert_eq!(next_level(&LoadTarget { calm: true, ..TARGET }, 2.0, &over), 2.0);
    }
}
