//! Reloads leave nothing behind: tables are as long as those of an engine that knew the last promises only.

use crate::engine::{Engine, Lane};
use crate::promises::{
    Admission, Class, Condition, Control, Delay, Guarantee, Plant, Promises, QueueBounds, Site,
};
use crate::request::{Arrival, Outcome, Permit, Service, Target, Token, Verdict, Verdicts};
use crate::telemetry::Readings;
use crate::time::{Duration, Instant};
use alloc::{format, vec::Vec};

const RELOADS: u64 = 500;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// What changes with each reload.
#[derive(Clone, Copy, Debug)]
enum Change {
    Deadline,
    Priority,
    Delay,
    Ratio,
    Contract,
    Site,
}

const CHANGES: [Change; 6] =
    [Change::Deadline, Change::Priority, Change::Delay, Change::Ratio, Change::Contract, Change::Site];

/// One worker for two sites with two classes each, of which one changes.
fn promises(change: Change, round: u64, admission: Admission) -> Promises {
    let ms = |ms: u64| Some(Duration::from_millis(ms));
    let mut plant = Plant::new("app", 1);
    plant.queue = QueueBounds { max_waiting: 100, max_wait: ms(10_000) };
    let named = |name: &str| {
        let buy = Class { deadline: ms(1000), ..Class::new("buy", Condition::default()) };
        Site { classes: alloc::vec![buy], ..Site::new(name, &["full"]) }
    };
    let is_odd = !round.is_multiple_of(2);
    let mut shop = named("shop");
    let mut blog = named("blog");
    let own = &mut shop.classes[0];
    match change {
        Change::Deadline => own.deadline = ms(2000 + round),
        Change::Priority => own.priority = 2 + (round % 200) as u8,
        Change::Delay => {
            (own.deadline, own.priority) = (ms(5000 + round), 1 + (round % 200) as u8);
            own.delay =
                (is_odd).then(|| Delay { target: Duration::from_millis(300 + round), percentile: None });
        }
        Change::Ratio => {
            (own.deadline, own.priority) = (None, 1 + (round % 200) as u8);
            (own.ratio, shop.default_ratio, shop.default_priority) = (Some(1.0), Some(2.0), own.priority);
        }
        Change::Contract => {
            shop.guarantee = (is_odd).then(|| Guarantee::new(5.0 + round as f64, 1e6));
            blog.guarantee = Some(Guarantee::new(5.0, 1e6));
        }
        Change::Site if is_odd => blog.name = format!("wiki {}", round % 8),
        Change::Site => {}
    }
    let control = Control { admission, ..Control::default() };
    Promises { plants: alloc::vec![plant], sites: alloc::vec![shop, blog], control }
}

/// Lets one request of each class arrive, of which the first is served and the others wait.
fn arrive(engine: &Engine, lane: &mut Lane, ms: u64) -> Vec<Permit> {
    let mut served = Vec::new();
    for numbers in &engine.registry.sites {
        for class in &numbers.classes {
            let target = Target { site: numbers.site, class: *class, client: 7, ..Target::default() };
            match lane.arrive(at(ms), target, Token(0), &mut Verdicts::new()) {
                Arrival::Serve(permit) | Arrival::Exempt(permit) => served.push(permit),
                Arrival::Wait(_) | Arrival::Reject(_) => {}
            }
        }
    }
    served
}

/// Ends these requests, each a millisecond later, and those that start meanwhile.
fn end(lane: &mut Lane, mut ms: u64, mut served: Vec<Permit>) {
    let mut verdicts = Verdicts::new();
    while let Some(mut permit) = served.pop() {
        ms += 1;
        lane.release(at(ms), &mut permit, Service::default(), &mut verdicts);
        lane.depart(at(ms), permit, Outcome::Completed, &mut verdicts);
        served.extend(verdicts.drain(..).filter_map(Verdict::permit));
    }
}

/// The lengths of the tables that follow promises.
fn lengths(engine: &Engine) -> Vec<(&'static str, usize)> {
    let plant = &engine.published().plants[0];
    let tables = plant.unfinished.lengths().into_iter().chain(plant.gate.lengths());
    tables.chain(engine.loops.deadlines.lengths()).collect()
}

/// Reloads with one change after the other; requests come and go under each of the promises.
fn reloaded(change: Change, admission: Admission, rounds: core::ops::RangeInclusive<u64>) -> Engine {
    let first = promises(change, *rounds.start(), admission);
    let (mut engine, mut lanes) = Engine::new(&first, 1, 42).expect("valid promises");
    let mut ms = 0;
    engine.tick(at(ms), &Readings::default(), &mut Verdicts::new());
    for round in rounds {
        engine.reload(&promises(change, round, admission)).expect("valid promises");
        ms += 1000;
        let served = arrive(&engine, &mut lanes[0], ms);
        end(&mut lanes[0], ms, served);
        engine.tick(at(ms + 500), &Readings::default(), &mut Verdicts::new());
    }
    engine
}

#[test]
fn tables_are_as_long_after_many_reloads_as_after_one() {
    for change in CHANGES {
        for admission in [Admission::Work, Admission::Synthetic, Admission::Budget] {
            let fresh = lengths(&reloaded(change, admission, RELOADS..=RELOADS));
            let old = lengths(&reloaded(change, admission, 1..=RELOADS));
            for ((name, fresh), (_, old)) in fresh.into_iter().zip(old) {
                assert!(
                    old <= fresh + 2,
                    "{change:?} {admission:?} {name}: {old}, and {fresh} where nothing was before"
                );
            }
        }
    }
}

#[test]
fn what_is_in_flight_keeps_its_account_over_reloads() {
    for change in CHANGES {
        for admission in [Admission::Work, Admission::Synthetic, Admission::Budget] {
            let first = promises(change, 0, admission);
            let (mut engine, mut lanes) = Engine::new(&first, 2, 42).expect("valid promises");
            engine.tick(at(0), &Readings::default(), &mut Verdicts::new());
            let (lane, mut ms) = (&mut lanes[0], 0);
            let mut served = Vec::new();
            for round in 0..60 {
                ms += 10;
                served.extend(arrive(&engine, lane, ms));
                engine.reload(&promises(change, round, admission)).expect("valid promises");
                if round % 7 == 6 {
                    let _: Vec<()> =
                        served.drain(..).map(|permit| end(lane, ms, alloc::vec![permit])).collect();
                }
            }
            end(lane, ms, served);
            engine.reload(&first).expect("valid promises");
            let plant = &engine.published().plants[0];
            assert_eq!((plant.gate.in_service(), plant.gate.is_waited_at()), (0, false), "{change:?}");
            assert!(plant.unfinished.is_empty(), "{change:?} {admission:?}");
        }
    }
}
