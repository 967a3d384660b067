//! The loop of promised ratios of delays (PR): the classes of one site take turns by weight.
//!
//! *Observes*: the response times of each class, over a long and a short window of departures. *Law*: `law.rs`; whether a
//! ratio can be reached at this load is `feasibility.rs`. *Gives out*: the turn of each class, which the queue reads.

pub(crate) mod feasibility;
pub(crate) mod law;

use crate::control::departures::{DepartureInput, WINDOW, first_due, next_due};
use crate::control::{Due, Loop};
use crate::promises::Delay;
use crate::telemetry::departure_window::{DepartureCounts, DepartureWindow, Seen};
use crate::telemetry::status::ResponseStatus;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use law::{RatioLaw, Reached, Turn};

/// Departures that the short window of a site holds; older ones fade.
const SHORT: f64 = 500.0;
/// Departures of a site over which the shares of its classes are counted. If a share followed the last few departures, it would
/// vary with their response times, and a product of share and response time would be biased.
const SHARES: f64 = 10_000.0;
/// The mix of the classes has changed if the share of a class among arrivals and its share among departures differ by more than
/// this.
const OTHER_MIX: f64 = 0.1;

/// A class with a promised ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RatioPromise {
    pub(crate) class: usize,
    pub(crate) site: usize,
    pub(crate) plant: usize,
    /// delta.
    pub(crate) delta: f64,
    /// The longest that a request is held for the ratio while workers are idle (s); 0 unless it is strict.
    pub(crate) longest_hold: f64,
}

/// The turn of a class, which the queue follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClassTurn {
    pub(crate) class: usize,
    pub(crate) turn: Turn,
    /// S (s).
    pub(crate) service: f64,
    /// The most that one service time counts for in S.
    pub(crate) longest_service: Option<Duration>,
}

/// The loop, for the sites of all plants.
#[derive(Default)]
pub(crate) struct RatioLoop {
    sites: Vec<SiteRatios>,
    turns: Vec<ClassTurn>,
    due: Due,
}

/// The classes of one site that have a ratio.
struct SiteRatios {
    members: Vec<Member>,
    law: RatioLaw,
    /// The instant of the law's last step.
    stepped: Instant,
}

struct Member {
    promise: RatioPromise,
    window: DepartureWindow,
    seen: Seen,
    /// The instant of `seen`.
    updated: Instant,
    /// Departures of the site since the class's own last one.
    silent: f64,
    /// Departures of the class and the sum of their response times (s), over about the last [`SHORT`] departures of the site.
    short: (f64, f64),
    /// Departures of the class, over about the last [`SHARES`] departures of the site.
    departures: f64,
    turn: Turn,
    status: ResponseStatus,
}

impl Loop for RatioLoop {
    type Inputs<'a> = DepartureInput<'a>;
    type Outputs<'a> = &'a [ClassTurn];
    type Promises<'a> = Vec<RatioPromise>;

    fn due(&self) -> Due {
        self.due
    }

    fn step(&mut self, now: Instant, input: DepartureInput<'_>) -> &[ClassTurn] {
        if self.due == Due::Never {
            return &[];
        }
        self.sites.iter_mut().for_each(|site| site.step(now, &input));
        let classes = self.sites.iter().flat_map(|site| &site.members).map(|member| member.promise.class);
        self.due = next_due(now, classes.map(|class| input.monitors.rate(class)));
        self.set_turns();
        &self.turns
    }

    /// A class that had a ratio at the same plant before keeps its window and what was learned of it.
    fn reload(&mut self, promises: Vec<RatioPromise>) {
        let mut sites: Vec<SiteRatios> = Vec::new();
        for promise in promises {
            match sites.iter_mut().find(|known| known.members[0].promise.site == promise.site) {
                Some(known) => known.members.push(Member::new(promise)),
                None => sites.push(SiteRatios {
                    members: alloc::vec![Member::new(promise)],
                    law: RatioLaw::new(0, promise.longest_hold),
                    stepped: Instant::default(),
                }),
            }
        }
        for site in &mut sites {
            match self.sites.iter_mut().find(|known| known.shares_a_class_with(site)) {
                Some(known) => site.go_on_from(known),
                None => site.law = RatioLaw::new(site.members.len(), site.members[0].promise.longest_hold),
            }
        }
        self.sites = sites;
        self.due = first_due(!self.sites.is_empty());
        self.set_turns();
    }
}

impl RatioLoop {
    /// The turns in force.
    pub(crate) fn turns(&self) -> &[ClassTurn] {
        &self.turns
    }

    /// Whether any class of a plant has a ratio.
    pub(crate) fn is_at(&self, plant: usize) -> bool {
        self.sites.iter().flat_map(|site| &site.members).any(|member| member.promise.plant == plant)
    }

    /// The classes of a plant that have a ratio, each with its delta over the least one of its site.
    pub(crate) fn relative_deltas(&self, plant: usize) -> impl Iterator<Item = (usize, f64)> {
        let here = self.sites.iter().filter(move |site| site.members[0].promise.plant == plant);
        here.flat_map(|site| {
            let least = site.members.iter().map(|member| member.promise.delta).fold(f64::INFINITY, f64::min);
            site.members.iter().map(move |member| (member.promise.class, member.promise.delta / least))
        })
    }

    /// The status of each class, with the class's number.
    pub(crate) fn status(&self) -> impl Iterator<Item = (usize, ResponseStatus)> + '_ {
        let members = self.sites.iter().flat_map(|site| &site.members);
        members.map(|member| (member.promise.class, member.status))
    }

    fn set_turns(&mut self) {
        let turn = |member: &Member| ClassTurn {
            class: member.promise.class,
            turn: member.turn,
            service: member.window.service_seconds(),
            longest_service: member.window.service_clip(),
        };
        self.turns.clear();
        self.turns.extend(self.sites.iter().flat_map(|site| &site.members).map(turn));
    }
}

impl Member {
    /// A class with the weight that is right at heavy traffic; it stays until response times are known.
    fn new(promise: RatioPromise) -> Self {
        Member {
            promise,
            window: DepartureWindow::new(WINDOW, 1),
            seen: Seen::default(),
            updated: Instant::default(),
            silent: 0.0,
            short: (0.0, 0.0),
            departures: 0.0,
            turn: Turn { weight: 1.0 / promise.delta, start: 0.0, hold: 0.0 },
            status: ResponseStatus::default(),
        }
    }

    /// Whether the class has none of the site's last [`WINDOW`] departures, over which classes are compared.
    fn is_silent(&self) -> bool {
        self.silent >= WINDOW as f64
    }

    /// Observes the departures since the last step. If the class has had none for [`Delay::EXPIRY`], all that its departures
    /// showed is forgotten.
    fn observe(&mut self, now: Instant, input: &DepartureInput<'_>) {
        match self.window.observe(DepartureCounts::of(now, input.lanes, self.promise.class)) {
            Some(seen) => (self.seen, self.updated) = (seen, now),
            None if now.since(self.updated) > Delay::EXPIRY => {
                (self.seen, self.short, self.departures) = (Seen::default(), (0.0, 0.0), 0.0);
                self.status =
                    ResponseStatus { response: 0.0, infeasible: false, ratio_reached: None, ..self.status };
            }
            None => (self.seen.fresh_ends, self.seen.fresh_sum) = (0.0, 0.0),
        }
    }
}

impl SiteRatios {
    /// Whether both sites have a class in common, at the same plant. After a reload sites have other numbers, and classes do
    /// not.
    fn shares_a_class_with(&self, other: &SiteRatios) -> bool {
        let is_same = |own: &Member, their: &Member| {
            (own.promise.class, own.promise.plant) == (their.promise.class, their.promise.plant)
        };
        self.members.iter().any(|own| other.members.iter().any(|their| is_same(own, their)))
    }

    /// Takes over the members of `before` that are still promised a ratio, whether or not it is another one.
    fn go_on_from(&mut self, before: &mut SiteRatios) {
        let index = |class: usize| before.members.iter().position(|known| known.promise.class == class);
        let places: Vec<_> = self.members.iter().map(|member| index(member.promise.class)).collect();
        let delta = |index: Option<usize>| index.map(|known| before.members[known].promise.delta);
        let is_changed = |(own, known): (&Member, &Option<usize>)| Some(own.promise.delta) != delta(*known);
        let is_other = self.members.iter().zip(&places).any(is_changed);
        self.law = before.law.of_known(&places, self.members[0].promise.longest_hold);
        self.stepped = before.stepped;
        if is_other || self.members.len() != before.members.len() {
            self.law.judge_anew();
        }
        for (member, known) in self.members.iter_mut().zip(&places) {
            if let Some(known) = known {
                let promise = member.promise;
                core::mem::swap(member, &mut before.members[*known]);
                member.turn.weight *= member.promise.delta / promise.delta;
                member.promise = promise;
            }
        }
    }

    /// Counts the departures of each class, `fresh` in all. The counts of silent classes are kept, so a silent class comes back
    /// with its former share.
    fn count_shares(&mut self, fresh: f64) {
        let (silent, present): (Vec<_>, Vec<_>) = self.members.iter_mut().partition(|one| one.is_silent());
        let room = SHARES - silent.iter().map(|one| one.departures).sum::<f64>();
        let counted: f64 = present.iter().map(|one| one.departures).sum();
        let kept = ((room - fresh) / counted.max(1e-9)).clamp(0.0, 1.0);
        for one in present {
            one.departures = one.departures * kept + one.seen.fresh_ends;
        }
    }

    /// If the rates of arrivals are another mix than the counted shares, sets the shares by the rates.
    fn follow_mix(&mut self, input: &DepartureInput<'_>) {
        let rate = |one: &Member| input.monitors.rate(one.promise.class);
        let mut present: Vec<_> = self.members.iter_mut().filter(|one| !one.is_silent()).collect();
        let rates: f64 = present.iter().map(|one| rate(one)).sum();
        let counted: f64 = present.iter().map(|one| one.departures).sum();
        let differs = |one: &Member| (rate(one) / rates - one.departures / counted).abs() > OTHER_MIX;
        if rates > 0.0 && counted > 0.0 && present.iter().any(|one| differs(one)) {
            present.iter_mut().for_each(|one| one.departures = counted * rate(one) / rates);
        }
    }

    fn step(&mut self, now: Instant, input: &DepartureInput<'_>) {
        let mut fresh = 0.0_f64;
        for member in &mut self.members {
            member.observe(now, input);
            fresh += member.seen.fresh_ends;
        }
        if fresh == 0.0 {
            return;
        }
        let kept = (1.0 - fresh / SHORT).max(0.0);
        for Member { short, seen, silent, .. } in &mut self.members {
            *silent = if seen.fresh_ends > 0.0 { 0.0 } else { *silent + fresh };
            *short = (short.0 * kept + seen.fresh_ends, short.1 * kept + seen.fresh_sum);
        }
        self.count_shares(fresh);
        self.follow_mix(input);
        let all: f64 = self.members.iter().filter(|one| !one.is_silent()).map(|one| one.departures).sum();
        let reached = |member: &Member| match member.is_silent() {
            true => Reached { delta: member.promise.delta, ..Reached::default() },
            false => Reached {
                delta: member.promise.delta,
                short: member.short.1 / member.short.0.max(1e-9),
                ends: member.short.0,
                long: member.seen.response,
                share: member.departures / all,
                fresh: (member.seen.fresh_ends, member.seen.fresh_sum),
            },
        };
        let reached: Vec<_> = self.members.iter().map(reached).collect();
        let normalized: f64 = reached.iter().map(|one| one.share * one.long / one.delta).sum();
        let elapsed = now.since(core::mem::replace(&mut self.stepped, now));
        let turns = self.law.next(&reached, WINDOW as f64, elapsed.as_secs_f64());
        let infeasible = self.law.is_infeasible();
        for (member, turn) in self.members.iter_mut().zip(turns) {
            let response = member.seen.response;
            let known = response > 0.0 && normalized > 0.0 && !member.is_silent();
            member.turn = turn;
            member.status = ResponseStatus {
                response,
                infeasible,
                ratio: Some(member.promise.delta),
                ratio_reached: known.then(|| response / normalized),
                weight: Some(turn.weight),
                ..member.status
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::LaneCounters;
    use crate::telemetry::monitor::Monitors;
    use alloc::sync::Arc;

    fn promise(class: usize, delta: f64) -> RatioPromise {
        RatioPromise { class, site: 0, plant: 0, delta, longest_hold: 0.0 }
    }

    /// One step after ten departures of each class with these response times (s); `at` is in tenths of a second.
    fn step(one: &mut RatioLoop, lane: &Arc<LaneCounters>, at: u64, responses: [f64; 2]) -> [ClassTurn; 2] {
        for (class, response) in lane.classes.iter().zip(responses) {
            class.arrivals.add(10);
            class.released.add(10);
            class.timing.answered.add(10);
            class.timing.answer_ns.add((response * 1e10) as u64);
        }
        idle(one, lane, at)
    }

    /// One step without departures.
    fn idle(one: &mut RatioLoop, lane: &Arc<LaneCounters>, at: u64) -> [ClassTurn; 2] {
        let mut monitors = Monitors::default();
        (0..2).for_each(|_| monitors.push(1));
        let lanes = core::slice::from_ref(lane);
        let input = DepartureInput {
            lanes,
            monitors: &monitors,
            workers: &|_| 4,
            service_seconds: &|_| 0.0,
            set_point: &|_| 0.85,
            contended: &|_, _| true,
        };
        let turns = one.step(Instant::ZERO + Duration::from_millis(100 * at), input);
        [turns[0], turns[1]]
    }

    #[test]
    fn what_a_class_reached_is_forgotten_after_ten_minutes_without_traffic() {
        let lane = Arc::new(LaneCounters::default().grown(2, 1));
        let mut one = RatioLoop::default();
        one.reload(alloc::vec![promise(0, 1.0), promise(1, 3.0)]);
        (1..=600).for_each(|at| {
            step(&mut one, &lane, at, [0.3, 0.3]);
        });
        let known = |one: &RatioLoop| {
            one.status()
                .map(|(_, own)| (own.response > 0.0, own.ratio_reached.is_some(), own.infeasible))
                .collect::<Vec<_>>()
        };
        assert_eq!(known(&one), [(true, true, true); 2]);
        idle(&mut one, &lane, 6_600);
        assert_eq!(known(&one), [(true, true, true); 2]);
        idle(&mut one, &lane, 6_601);
        assert_eq!(known(&one), [(false, false, false); 2]);
    }

    /// Turns go by usual service times: a service of a minute among those of 10 ms does not prefer its class for long.
    #[test]
    fn a_service_counts_for_no_more_than_many_usual_ones() {
        let lane = Arc::new(LaneCounters::default().grown(2, 1));
        let mut one = RatioLoop::default();
        one.reload(alloc::vec![promise(0, 1.0), promise(1, 2.0)]);
        assert_eq!(one.turns()[0].longest_service, None, "no service time is known");
        let clip = |turn: &ClassTurn| turn.longest_service.map_or(u64::MAX, |clip| clip.as_nanos() as u64);
        let usual = Duration::from_millis(10).as_nanos() as u64;
        for at in 1..=40 {
            let longest = clip(&one.turns()[0]);
            let minute = if at == 20 { 60_000_000_000 } else { usual };
            for service in [usual; 9].into_iter().chain([minute]) {
                lane.classes[0].timing.release(service, u64::MAX, longest);
            }
            step(&mut one, &lane, at, [0.1, 0.2]);
        }
        let found = one.turns()[0];
        assert!(clip(&found) < 5_000_000_000 && (0.01..0.03).contains(&found.service), "{found:?}");
    }

    #[test]
    fn a_class_that_lags_behind_its_ratio_gets_the_turn() {
        let lane = Arc::new(LaneCounters::default().grown(2, 1));
        let mut one = RatioLoop::default();
        assert_eq!(one.due(), Due::Never);
        one.reload(alloc::vec![promise(0, 1.0), promise(1, 3.0)]);
        assert_eq!(one.due(), Due::At(Instant::ZERO));
        assert_eq!(one.turns()[1].turn, Turn { weight: 1.0 / 3.0, start: 0.0, hold: 0.0 });
        step(&mut one, &lane, 1, [0.0, 0.0]);
        // Class 1 may take three times as long, so at equal response times class 0 lags.
        let [first, second] = step(&mut one, &lane, 2, [0.3, 0.3]);
        assert!(first.turn.start > second.turn.start && first.turn.hold == 0.0, "{first:?} {second:?}");
        assert!(one.due().instant() > Instant::ZERO);
        // After a reload classes go on, in any order and beside any other class, and with the weights of new ratios.
        one.reload(alloc::vec![promise(1, 3.0), promise(0, 1.0)]);
        assert_eq!((one.turns()[1], one.turns()[0]), (first, second));
        one.reload(alloc::vec![promise(0, 1.0), promise(2, 5.0), promise(1, 2.0)]);
        assert_eq!(one.turns()[0], first);
        assert_eq!(one.turns()[1].turn, Turn { weight: 0.2, start: 0.0, hold: 0.0 });
        assert!((one.turns()[2].turn.weight / second.turn.weight - 1.5).abs() < 1e-12);
        // At another plant classes begin anew, since another server has other response times.
        let elsewhere = |promise| RatioPromise { plant: 1, ..promise };
        one.reload(alloc::vec![elsewhere(promise(0, 1.0)), elsewhere(promise(1, 2.0))]);
        assert_eq!(one.turns()[0].turn, Turn { weight: 1.0, start: 0.0, hold: 0.0 });
    }
}
