//! Whether a plant refuses requests because too many are in service, and beyond how many.
//!
//! A server with a short listen queue refuses what is more than its workers and that queue hold. While its workers are searched
//! for, or if the operator configured more than there are, most of an overload would fail: each start beyond the number is
//! refused at once, and the next waiting request is started in its place. A server whose refusals do not depend on the number
//! in service, because one of its pages is broken or all of it is down, would be helped by no limit.
//!
//! *Where.* Each request that was answered or refused is counted by how many were in service right after its start. For each c
//! the counts are compared with two shares of refusals, one up to c and a higher one beyond it, against one share for all: G(c)
//! is the gain in the logarithm of the binomial likelihood. The best c beyond which hardly any request is answered is a
//! candidate, if its G exceeds chance by five deviations, for it is the best of many and is looked for several times a second.
//! A bin of several numbers may hold the boundary, and both answers and refusals; then the candidate is the most below it. Each
//! bin remembers its latest outcomes only. Between two numbers at which nothing was seen the lower one is taken. Where refusals
//! come late, as connections that time out, they fill the limit and all requests start at one number: that is no evidence. (To
//! try half of the number there was no cure, since a page that breaks in bursts looks the same for seconds.)
//!
//! *Whether.* A candidate is an experiment, for the number in service is no cause by itself: a broken page that is asked for
//! in bursts fills the server, and fails where many are in service. The plant is given no more than the candidate, and the
//! share of all requests that is refused must fall below half of what it was. Otherwise the limit goes back, and the next
//! experiment comes after a pause that is twice as long. This is tested for as long as the ceiling holds, over as many
//! requests as were measured before it: an experiment begins in a burst, so a longer mean would always be less.
//!
//! *Back.* While requests wait below a ceiling, a number a little above it is tried from time to time, after longer and longer
//! pauses. The first refusal beyond the ceiling ends the trial at once, in the lane that meets it: the next sample would come
//! too late, since a plant refuses a whole queue within milliseconds. If the plant takes a few, the ceiling is that number,
//! and the next is tried soon. The ceiling is given up once a trial has lasted for long without a request beyond it.

use crate::control::{Due, Loop};
use crate::telemetry::counters::{LOADS, LaneCounters, bin_loads, load_bin};
use crate::time::Instant;
use alloc::{sync::Arc, vec::Vec};
use libm::log;

/// A smaller G is chance: half the square of five deviations.
const EVIDENCE: f64 = 12.5;
/// The outcomes that each bin remembers, and all bins together.
const OF_BIN: f64 = 100.0;
const OF_ALL: f64 = 400.0;
/// The part of the requests beyond a candidate that must be refused.
const CLEAR: f64 = 0.9;
/// The fewest refusals and answers, and the least share of refusals, for which a ceiling is tried.
const FEWEST: f64 = 10.0;
const LEAST_SHARE: f64 = 0.02;
/// Requests below a ceiling before it is judged.
const JUDGED: f64 = 40.0;
/// After so many a ceiling that does not help any more was no chance.
const HELPED: f64 = 4000.0;
/// The part of the refusals that may be left below a ceiling that helps.
const LEFT: f64 = 0.5;
/// Outcomes before the next experiment if one did not help, and before the next trial of a higher number: at first, and the
/// most of both.
const FIRST_PAUSE: f64 = 1000.0;
const FIRST_TRIAL: f64 = 250.0;
const LONGEST_PAUSE: f64 = 16_000.0;
/// Answers beyond a ceiling, none of them a refusal, for the plant to take as many.
const TAKEN: f64 = 20.0;

/// Requests that were answered and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcomes {
    pub(crate) answered: f64,
    pub(crate) refused: f64,
}

impl Outcomes {
    fn all(self) -> f64 {
        self.answered + self.refused
    }

    fn share(self) -> f64 {
        self.refused / self.all().max(1.0)
    }

    fn and(self, other: Outcomes) -> Self {
        Outcomes { answered: self.answered + other.answered, refused: self.refused + other.refused }
    }

    fn less(self, other: Outcomes) -> Self {
        let (answered, refused) = (self.answered - other.answered, self.refused - other.refused);
        Outcomes { answered: answered.max(0.0), refused: refused.max(0.0) }
    }

    /// Adds outcomes, and keeps as many as the memory holds.
    fn learn(&mut self, new: Outcomes, memory: f64) {
        let sum = self.and(new);
        let kept = (memory / sum.all().max(1.0)).min(1.0);
        *self = Outcomes { answered: kept * sum.answered, refused: kept * sum.refused };
    }

    /// The logarithm of the likelihood of these, at their own share.
    fn likelihood(self) -> f64 {
        let part = |n: f64| if n > 0.0 { n * log(n / self.all()) } else { 0.0 };
        part(self.answered) + part(self.refused)
    }
}

fn sum(outcomes: &[Outcomes]) -> Outcomes {
    outcomes.iter().copied().fold(Outcomes::default(), Outcomes::and)
}

/// An experiment, or a ceiling that helped.
struct Held {
    ceiling: u32,
    /// Before it, and since; and how many since in all.
    before: Outcomes,
    since: Outcomes,
    age: f64,
    /// Whether a number above it is tried, with the outcomes beyond the ceiling.
    trial: Option<Outcomes>,
    /// Outcomes since the last trial, and how many there must be before the next.
    untried: f64,
    pause: f64,
}

/// The law of one plant.
pub(crate) struct RefusalLaw {
    by_load: Vec<Outcomes>,
    /// The latest outcomes without a ceiling.
    open: Outcomes,
    /// For how many outcomes after the last refusal the plant is watched.
    watch: f64,
    held: Option<Held>,
    /// Outcomes since the last experiment that did not help, and how many there must be before the next.
    untried: f64,
    pause: f64,
}

impl RefusalLaw {
    pub(crate) fn new() -> Self {
        RefusalLaw {
            by_load: alloc::vec![Outcomes::default(); LOADS],
            open: Outcomes::default(),
            watch: 0.0,
            held: None,
            untried: 0.0,
            pause: 0.0,
        }
    }

    /// The most requests that the plant is to be given at once, by its refusals.
    pub(crate) fn ceiling(&self) -> Option<u32> {
        self.held.as_ref().map(|held| match held.trial {
            Some(_) => above(held.ceiling),
            None => held.ceiling,
        })
    }

    /// The ceiling above which a number is tried.
    pub(crate) fn tried_from(&self) -> Option<u32> {
        self.held.as_ref().filter(|held| held.trial.is_some()).map(|held| held.ceiling)
    }

    /// Whether there is a ceiling, or a refusal is remembered, or a pause lasts.
    fn is_concerned(&self) -> bool {
        self.held.is_some() || self.watch > 0.0 || self.untried < self.pause
    }

    /// Takes the outcomes since the last call by bin of the number in service, and whether requests wait. Nothing is left
    /// out: a request that neither was answered nor refused is in neither count.
    pub(crate) fn observe(&mut self, new: &[Outcomes], waits: bool) {
        let all = sum(new);
        for (own, new) in self.by_load.iter_mut().zip(new) {
            own.learn(*new, OF_BIN);
        }
        self.watch = if all.refused > 0.0 { OF_ALL } else { self.watch - all.all() };
        let Some(held) = &mut self.held else { return self.search(all) };
        held.untried += all.all();
        held.age += all.all();
        let (below, beyond) = new.split_at(load_bin(held.ceiling) + 1);
        held.since.learn(sum(below), held.before.all().max(JUDGED));
        if held.since.all() >= JUDGED && held.since.share() > LEFT * held.before.share() {
            let helped = held.age >= HELPED;
            self.give_up(helped);
        } else if let Some(trial) = &mut held.trial {
            *trial = trial.and(sum(beyond));
            if trial.refused > 0.0 {
                (held.trial, held.untried) = (None, 0.0);
                held.pause = (2.0 * held.pause).min(LONGEST_PAUSE);
            } else if trial.answered >= TAKEN {
                (held.trial, held.untried) = (None, 0.0);
                (held.ceiling, held.pause) = (above(held.ceiling), FIRST_TRIAL);
            } else if held.untried >= held.pause + LONGEST_PAUSE {
                // Nothing shows any more that the plant refuses.
                *self = RefusalLaw::new();
            }
        } else if waits && held.untried >= held.pause && held.since.all() >= JUDGED {
            held.trial = Some(Outcomes::default());
        }
    }

    /// Without a ceiling: begins an experiment if there is a candidate.
    fn search(&mut self, all: Outcomes) {
        self.open.learn(all, OF_ALL);
        self.untried += all.all();
        let least = self.open.refused.min(self.open.answered);
        let refuses = least >= FEWEST && self.open.share() >= LEAST_SHARE;
        if !refuses || self.untried < self.pause {
            return;
        }
        if let Some(ceiling) = self.candidate() {
            self.held = Some(Held {
                ceiling,
                before: self.open,
                since: Outcomes::default(),
                age: 0.0,
                trial: None,
                untried: 0.0,
                pause: FIRST_TRIAL,
            });
        }
    }

    /// Ends the trial of a higher number, if there is one, without a verdict.
    fn end_trial(&mut self) {
        if let Some(held) = self.held.as_mut().filter(|held| held.trial.is_some()) {
            (held.trial, held.untried) = (None, 0.0);
        }
    }

    /// The plant refuses as much with the ceiling as without. If it helped for long the plant has changed, and the next
    /// experiment need not wait.
    fn give_up(&mut self, helped: bool) {
        let pause = if helped { 0.0 } else { (2.0 * self.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
        *self = RefusalLaw { watch: self.watch, pause, ..RefusalLaw::new() };
    }

    /// The number beyond which the plant seems to refuse.
    fn candidate(&self) -> Option<u32> {
        let all = sum(&self.by_load);
        let met: Vec<(usize, Outcomes)> =
            self.by_load.iter().copied().enumerate().filter(|(_, own)| own.all() > 0.0).collect();
        let (mut below, mut best) = (Outcomes::default(), (0, 0.0));
        for pair in met.windows(2) {
            let ((bin, own), (next, first)) = (pair[0], pair[1]);
            below = below.and(own);
            let beyond = all.less(below);
            let is_mixed = bin_loads(next).0 < bin_loads(next).1;
            let sure = if is_mixed { beyond.less(first) } else { beyond };
            if sure.all() < 0.5 || sure.share() > CLEAR {
                let gain = below.likelihood() + beyond.likelihood() - all.likelihood();
                if gain > best.1 {
                    best = (bin, gain);
                }
            }
        }
        (best.1 >= EVIDENCE).then(|| bin_loads(best.0).1)
    }
}

/// The loop of one plant.
pub(crate) struct RefusalLoop {
    law: RefusalLaw,
    /// All refusals up to the last step, and outcomes by bin.
    seen: u64,
    answered: Vec<u64>,
    refused: Vec<u64>,
}

impl RefusalLoop {
    pub(crate) fn new() -> Self {
        let none = || alloc::vec![0; LOADS];
        RefusalLoop { law: RefusalLaw::new(), seen: 0, answered: none(), refused: none() }
    }

    /// What the last step gave out.
    pub(crate) fn output(&self) -> FoundRefusals {
        FoundRefusals {
            refuses: self.law.is_concerned(),
            ceiling: self.law.ceiling(),
            tried_from: self.law.tried_from(),
        }
    }
}

/// What a step observes.
pub(crate) struct RefusalInput<'a> {
    pub(crate) lanes: &'a [Arc<LaneCounters>],
    pub(crate) plant: usize,
    /// Whether requests wait.
    pub(crate) waits: bool,
    /// Whether all servers of the plant are in use: the number beyond which it refuses is that of all of them.
    pub(crate) is_whole: bool,
}

/// What a step gives out.
pub(crate) struct FoundRefusals {
    /// Whether answers are to be counted by how many are in service, which they need not be while nothing is refused.
    pub(crate) refuses: bool,
    pub(crate) ceiling: Option<u32>,
    /// The ceiling that holds again after a refusal, while a higher one is tried.
    pub(crate) tried_from: Option<u32>,
}

impl Loop for RefusalLoop {
    type Inputs<'a> = RefusalInput<'a>;
    type Outputs<'a> = FoundRefusals;
    type Promises<'a> = ();

    fn due(&self) -> Due {
        Due::Sample
    }

    fn step(
        &mut self,
        _now: Instant,
        RefusalInput { lanes, plant, waits, is_whole }: RefusalInput<'_>,
    ) -> FoundRefusals {
        let counted = || lanes.iter().map(|lane| &lane.plants[plant].by_load);
        let seen = counted().map(|own| own.refusals.get()).fold(0, u64::wrapping_add);
        let is_new = core::mem::replace(&mut self.seen, seen) != seen;
        let was_concerned = self.law.is_concerned();
        if is_new || was_concerned {
            let since = |before: &mut u64, sum: u64| sum.wrapping_sub(core::mem::replace(before, sum)) as f64;
            let mut outcomes = [Outcomes::default(); LOADS];
            for (bin, own) in outcomes.iter_mut().enumerate() {
                let answered = counted().map(|own| own.answered[bin].get()).fold(0, u64::wrapping_add);
                let refused = counted().map(|own| own.refused[bin].get()).fold(0, u64::wrapping_add);
                own.answered = since(&mut self.answered[bin], answered);
                own.refused = since(&mut self.refused[bin], refused);
            }
            if was_concerned && !is_whole {
                self.law.end_trial();
            } else if was_concerned {
                self.law.observe(&outcomes, waits);
            } else {
                // Answers are counted from now on, so that the shares of this sample are none.
                self.law = RefusalLaw { watch: OF_ALL, ..RefusalLaw::new() };
            }
        }
        self.output()
    }

    /// What a server refuses is not promised.
    fn reload(&mut self, (): ()) {}
}

/// The number that is tried above a ceiling.
fn above(ceiling: u32) -> u32 {
    ceiling + (ceiling / 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LIMIT: u32 = 16;

    /// A quarter of a second in which fifty requests start, at most as many at once as the ceiling or [`LIMIT`] allows.
    /// `wanted` is how many there would be, `refuses` with what chance the plant refuses one that starts as the n-th.
    fn quarter(law: &mut RefusalLaw, wanted: u32, refuses: impl Fn(u32) -> f64, random: &mut Random) {
        let mut outcomes = [Outcomes::default(); LOADS];
        let limit = law.ceiling().unwrap_or(LIMIT);
        for _ in 0..50 {
            let n = (1 + random.below(u64::from(wanted)) as u32).min(limit);
            let own = &mut outcomes[load_bin(n)];
            *(if random.uniform() < refuses(n) { &mut own.refused } else { &mut own.answered }) += 1.0;
        }
        law.observe(&outcomes, wanted >= limit);
    }

    fn beyond(capacity: u32) -> impl Fn(u32) -> f64 + Copy {
        move |n| f64::from(u8::from(n > capacity))
    }

    #[test]
    fn the_number_beyond_which_a_plant_refuses_is_found_and_followed() {
        let (mut law, mut random) = (RefusalLaw::new(), Random::new(3));
        let mut after = |seconds: usize, capacity: u32| {
            (0..4 * seconds).for_each(|_| quarter(&mut law, 24, beyond(capacity), &mut random));
            law.ceiling()
        };
        for (seconds, capacity) in [(1, 10), (60, 10), (10, 6)] {
            let found = after(seconds, capacity);
            assert!(
                found.is_some_and(|found| found.abs_diff(capacity) <= 1),
                "{found:?} instead of {capacity}"
            );
        }
        assert!(after(300, 40).is_none_or(|ceiling| ceiling >= LIMIT), "the plant takes all");
    }

    #[test]
    fn refusals_that_do_not_depend_on_the_number_hold_no_ceiling() {
        let (mut held, mut all) = (0, 0);
        for seed in 1..=20 {
            let (mut law, mut random) = (RefusalLaw::new(), Random::new(seed));
            for _ in 0..4 * 120 {
                quarter(&mut law, 24, |_| 0.3, &mut random);
                (held, all) = (held + u32::from(law.ceiling().is_some()), all + 1);
            }
        }
        assert!(held * 50 <= all, "{held} of {all}");
    }

    /// A page that is broken is asked for in bursts, which fill the server.
    #[test]
    fn refusals_that_come_in_bursts_hold_no_ceiling() {
        let (mut held, mut all) = (0, 0);
        for seed in 1..=20 {
            let (mut law, mut random) = (RefusalLaw::new(), Random::new(seed));
            for quarters in 0..4 * 240 {
                match quarters % 8 {
                    0 => quarter(&mut law, 60, |_| 0.95, &mut random),
                    _ => quarter(&mut law, 4, |_| 0.0, &mut random),
                }
                (held, all) = (held + u32::from(law.ceiling().is_some()), all + 1);
            }
        }
        assert!(held * 5 <= all, "{held} of {all}");
    }

    #[test]
    fn a_plant_that_refuses_all_has_no_ceiling_once_it_answers_again() {
        let (mut law, mut random) = (RefusalLaw::new(), Random::new(5));
        (0..40).for_each(|_| quarter(&mut law, 6, |_| 0.0, &mut random));
        (0..40).for_each(|_| quarter(&mut law, 24, |_| 1.0, &mut random));
        (0..400).for_each(|_| quarter(&mut law, 24, |_| 0.0, &mut random));
        assert!(law.ceiling().is_none_or(|ceiling| ceiling >= LIMIT), "{:?}", law.ceiling());
    }

    /// What a plant refuses while some of its servers are out says nothing of all of them.
    #[test]
    fn outcomes_of_a_part_of_the_servers_are_counted_and_not_learned_from() {
        let lanes = [Arc::new(LaneCounters::default().grown(1, 1))];
        let of = |is_whole: bool| {
            let mut own = RefusalLoop::new();
            for quarter in 0..40 {
                let by_load = &lanes[0].plants[0].by_load;
                for n in [4, 20] {
                    (0..20).for_each(|_| match n {
                        4 => by_load.answered[load_bin(n)].add(1),
                        _ => {
                            by_load.refusals.add(1);
                            by_load.refused[load_bin(n)].add(1);
                        }
                    });
                }
                // All are there in the last two steps.
                let is_whole = is_whole || quarter >= 38;
                own.step(Instant::ZERO, RefusalInput { lanes: &lanes, plant: 0, waits: true, is_whole });
            }
            own.law.by_load[load_bin(20)].refused
        };
        assert_eq!((of(true), of(false)), (100.0, 40.0));
    }
}
