//! Short bursts on top of a rate. Phases are cut where bursts begin and end, so that the simulator needs no notion of bursts. A
//! ramp stays a ramp: each piece begins and ends on the ramp, times the burst's factor.

use super::keys::BurstKeys;
use super::resolve::check_begins_before_end;
use super::values::End;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Table};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::Phase;
use std::collections::BTreeSet;

/// The most bursts in a run, because each takes two phases in memory.
const MOST_BURSTS: u128 = 100_000;

/// The same rate with bursts on top: phases are cut where bursts begin and end.
pub(super) fn with_bursts(
    phases: Vec<Phase>,
    section: &Located<Table<BurstKeys>>,
    duration: &Located<End>,
    findings: &mut Findings,
) -> Vec<Phase> {
    let keys = &section.value.0;
    let (Some(every), Some(length), Some(factor)) = (&keys.every, &keys.length, &keys.factor) else {
        return phases;
    };
    if length.value >= every.value {
        refuse!(findings, OutOfRange at &length.span,
            "a burst is still going on when the next begins",
            help: "write a shorter `length`; a rate that stays high is a phase of `rate`",
            beside &every.span => "`every` is given");
        return phases;
    }
    let Some(end) = duration.value.0 else {
        if !duration.sound {
            return phases;
        }
        refuse!(findings, MissingKey at &section.span,
            "bursts need to know when they end", help: "write `duration = \"60s\"` at the top of the file");
        return phases;
    };
    if end.as_nanos() / every.value.as_nanos() > MOST_BURSTS {
        refuse!(findings, TooMany at &every.span,
            format!("more than {MOST_BURSTS} bursts"),
            help: "write a longer `every`, or `process = { kind = \"modulated\", ... }`",
            beside &duration.span => "`duration` is given");
        return phases;
    }
    check_begins_before_end(every.value, &every.span, duration, findings);
    cut(&phases, Bursts { every: every.value, length: length.value, factor: factor.value.0 }, end)
}

/// Bursts at equal distances.
#[derive(Clone, Copy)]
struct Bursts {
    every: Duration,
    length: Duration,
    factor: f64,
}

impl Bursts {
    /// The factor on the rate at this time.
    fn factor_at(&self, time: Duration) -> f64 {
        let into = time.as_nanos() % self.every.as_nanos();
        if time >= self.every && into < self.length.as_nanos() { self.factor } else { 1.0 }
    }
}

fn cut(phases: &[Phase], bursts: Bursts, end: Duration) -> Vec<Phase> {
    let mut edges: BTreeSet<Duration> = phases.iter().map(|phase| phase.from).collect();
    let mut begin = bursts.every;
    while begin < end {
        edges.extend([begin, begin + bursts.length]);
        begin += bursts.every;
    }
    let edges: Vec<Duration> = edges.into_iter().filter(|edge| *edge < end).collect();
    let next = edges.iter().skip(1).copied().chain([end]);
    let mut pieces = Vec::new();
    let mut index = 0;
    for (from, until) in edges.iter().copied().zip(next) {
        while phases.get(index + 1).is_some_and(|phase| phase.from <= from) {
            index += 1;
        }
        let Some(phase) = phases.get(index).filter(|phase| phase.from <= from) else { continue };
        let line = PhaseSpan { phase, until: phases.get(index + 1).map(|next| next.from) };
        let factor = bursts.factor_at(from);
        pieces.push(Phase {
            from,
            rate: line.at(from) * factor,
            to: phase.to.map(|_| line.at(until) * factor),
        });
    }
    pieces
}

/// A phase and its end.
struct PhaseSpan<'a> {
    phase: &'a Phase,
    until: Option<Duration>,
}

impl PhaseSpan<'_> {
    fn at(&self, time: Duration) -> f64 {
        let Phase { from, rate, to } = *self.phase;
        match (to, self.until) {
            (Some(to), Some(until)) => {
                let part = time.saturating_sub(from).as_secs_f64() / until.saturating_sub(from).as_secs_f64();
                rate + (to - rate) * part
            }
            _ => rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn bursts_cut_a_steady_rate() {
        let steady = [Phase { from: S(0), rate: 100.0, to: None }];
        let bursts = Bursts { every: S(7), length: S(1), factor: 8.0 };
        let cut: Vec<_> = cut(&steady, bursts, S(15)).iter().map(|p| (p.from, p.rate, p.to)).collect();
        let expected = [(0, 100.0), (7, 800.0), (8, 100.0), (14, 800.0)];
        assert_eq!(cut, expected.map(|(from, rate)| (S(from), rate, None)));
    }

    #[test]
    fn bursts_follow_a_ramp() {
        let ramp =
            [Phase { from: S(0), rate: 0.0, to: Some(100.0) }, Phase { from: S(10), rate: 100.0, to: None }];
        let bursts = Bursts { every: S(4), length: S(2), factor: 3.0 };
        let cut: Vec<_> = cut(&ramp, bursts, S(20)).iter().map(|p| (p.from, p.rate, p.to)).collect();
        assert_eq!(
            cut[..4],
            [
                (S(0), 0.0, Some(40.0)),
                (S(4), 120.0, Some(180.0)),
                (S(6), 60.0, Some(80.0)),
                (S(8), 240.0, Some(300.0)),
            ]
        );
        assert_eq!(cut[4], (S(10), 100.0, None));
        assert_eq!(cut[5], (S(12), 300.0, None));
    }

    #[test]
    fn nothing_comes_before_the_first_phase() {
        let late = [Phase { from: S(5), rate: 10.0, to: None }];
        let cut = cut(&late, Bursts { every: S(2), length: S(1), factor: 2.0 }, S(8));
        assert_eq!(
            cut.iter().map(|p| (p.from, p.rate)).collect::<Vec<_>>(),
            [(S(5), 10.0), (S(6), 20.0), (S(7), 10.0)]
        );
    }
}
