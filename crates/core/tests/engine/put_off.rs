//! A shell that knows the next arrival may put ticks off; the result is the same, bit for bit.

use crate::get;
use plimsoll_core::promises::{Guarantee, Plant, Promises, Site};
use plimsoll_core::random::Random;
use plimsoll_core::request::{Arrival, Outcome, Service, Token, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};

/// An engine, one lane, and whether its shell looks ahead.
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) lane: Lane,
    pub(crate) due: Instant,
    looks_ahead: bool,
    ticks: u64,
    pub(crate) verdicts: Verdicts,
}

impl Run {
    pub(crate) fn new(promises: &Promises, looks_ahead: bool) -> Run {
        let (engine, mut lanes) = Engine::new(promises, 1, 1).expect("valid promises");
        let lane = lanes.pop().expect("one lane");
        let due = Instant::ZERO;
        let mut run = Run { engine, lane, due, looks_ahead, ticks: 0, verdicts: Verdicts::new() };
        // The clock starts before the first request.
        run.rest(due, due);
        run
    }

    /// Ticks up to and including `until`; the next request comes at `next`.
    pub(crate) fn rest(&mut self, until: Instant, next: Instant) {
        while self.due <= until {
            let due = self.engine.tick(self.due, &Readings::default(), &mut self.verdicts);
            self.ticks += 1;
            self.due = if self.looks_ahead { self.engine.put_off(due, next) } else { due };
        }
    }

    /// Serves one request at once, for this long; the next one comes after it.
    fn serve(&mut self, [now, end, next]: [Instant; 3], client: u32) {
        let target = self.lane.classify(&get("/", client)).expect("any host");
        let arrival = self.lane.arrive(now, target, Token(client.into()), &mut self.verdicts);
        let (Arrival::Serve(mut permit) | Arrival::Exempt(mut permit)) = arrival else { return };
        self.rest(end, next);
        let answered = Service { response_bytes: 1000, representative: true, ..Service::default() };
        self.lane.sent(&permit, 1000);
        self.lane.release(end, &mut permit, answered, &mut self.verdicts);
        self.lane.depart(end, permit, Outcome::Completed, &mut self.verdicts);
    }
}

/// The same bursts with long pauses for both engines; at each request both are in the same state.
fn compare(promises: &Promises, seed: u64) -> (u64, u64) {
    let mut runs = [false, true].map(|looks_ahead| Run::new(promises, looks_ahead));
    let mut random = Random::new(seed);
    let mut now = Instant::ZERO;
    for number in 0..300 {
        let end = now + Duration::from_secs_f64(random.exponential(0.5));
        let pause = random.exponential(if number % 20 == 0 { 30.0 } else { 0.3 });
        let next = end + Duration::from_secs_f64(pause);
        let client = random.below(5) as u32;
        for run in &mut runs {
            run.serve([now, end, next], client);
            run.rest(next, next);
        }
        now = next;
        let status = |run: &Run| {
            let mut status = run.engine.status();
            // The plan weighs by rates, and some samples of them are taken later.
            status.plan.clear();
            format!("{status:?}")
        };
        let [one, other] = runs.each_ref().map(status);
        assert_eq!(one, other, "seed {seed}, after request {number} at {now:?}");
    }
    let [one, other] = runs;
    (one.ticks, other.ticks)
}

#[test]
fn ticks_that_are_put_off_come_to_the_same() {
    let alone = Promises::of(Plant::new("app", 1), Site::new("site", &["light", "full"]));
    let mut shared = alone.clone();
    shared.sites[0].hosts = vec!["h".into()];
    shared.sites[0].guarantee =
        Some(Guarantee { rate: 0.5, bandwidth_bytes_per_second: None, burst: Guarantee::BURST });
    shared.sites.push(Site { hosts: vec!["other".into()], ..Site::new("other", &["light", "full"]) });
    for (promises, seed) in
        [&alone, &shared].into_iter().flat_map(|promises| (1..=5).map(move |seed| (promises, seed)))
    {
        let (all, some) = compare(promises, seed);
        assert!(some * 3 < all, "{some} of {all} ticks: nothing was put off");
    }
}

#[test]
fn no_tick_is_put_off_while_a_request_waits() {
    let promises = Promises::of(Plant::new("app", 1), Site::new("site", &["light", "full"]));
    let mut run = Run::new(&promises, true);
    let far = Instant::from_nanos(60_000_000_000);
    assert!(run.engine.put_off(run.due, far) > run.due, "nothing is there");
    for client in 0..2 {
        let target = run.lane.classify(&get("/", client)).expect("any host");
        // The request does not depart, so the second one waits for it.
        let _ = run.lane.arrive(Instant::ZERO, target, Token(client.into()), &mut run.verdicts);
    }
    assert_eq!(run.engine.put_off(run.due, far), run.due);
}
