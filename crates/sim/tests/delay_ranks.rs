//! Which of several classes with a promised delay gets the workers: a class without traffic keeps none from the lower ones,
//! and classes of equal priority share what is short, whichever was declared first.
//!
//! One server of eight workers with exponential service of 40 ms, 200/s, and best effort beyond it.

use crate::waits::{self, Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use std::ops::RangeInclusive;
use std::time::Duration;

const SEEDS: RangeInclusive<u64> = 6101..=6106;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn scene(flows: Vec<Flow>, seconds: f64, seed: u64) -> Scene {
    Scene::new(8, MS(40), flows, seconds, seed)
}

/// The mean response time of a class that arrived between two seconds.
fn between(heard: &Heard, class: usize, from: f64, until: f64) -> f64 {
    let own = heard.answers.iter();
    let own = own.filter(|a| a.class == class && a.completed && (from..until).contains(&a.arrived));
    mean(&own.map(waits::Answer::response).collect::<Vec<_>>())
}

/// Its quota is judged too: with the least quota its mean is near the promise in this scene, by workers that are lent.
#[test]
fn a_class_that_never_spoke_keeps_no_workers_from_a_lower_one() {
    let scene = |premium, seed| {
        let premium = Flow::new("premium", premium).delay(MS(60), None).priority(1);
        let gold = Flow::new("gold", 100.0).delay(MS(100), None).priority(2);
        scene(vec![premium, gold, Flow::new("default", 400.0)], 120.0, seed)
    };
    for seed in SEEDS {
        let heard = scene(0.0, seed).run();
        let (found, status) = (between(&heard, 1, 30.0, 120.0), heard.status.expect("the engine ran"));
        let quota = status.classes[1].response.as_ref().and_then(|gold| gold.quota).expect("a quota");
        let reduction = status.plants[0].set_point_reduction;
        println!("gold {:.1} ms, quota {quota:.2}, set point reduced by {reduction:.3}", 1e3 * found);
        assert!((0.088..=0.106).contains(&found) && (4.0..=6.0).contains(&quota), "{found}, {quota}");
        assert!(reduction < 0.02, "{reduction}");
    }
    // Beside a premium class that speaks, gold has what is left.
    let beside =
        mean(&SEEDS.map(|seed| between(&scene(100.0, seed).run(), 1, 30.0, 120.0)).collect::<Vec<_>>());
    println!("the twin beside a class that speaks: gold {:.1} ms", 1e3 * beside);
    assert!((0.13..=0.17).contains(&beside), "{beside}");
}

#[test]
fn a_class_that_leaves_gives_its_workers_to_a_lower_one_and_has_them_when_it_is_back() {
    let scene = |away, seed| {
        let first =
            Flow::new("a", 100.0).delay(MS(42), None).priority(1).then(120.0, away).then(240.0, 100.0);
        let second = Flow::new("b", 80.0).delay(MS(80), None).priority(2);
        scene(vec![first, second, Flow::new("default", 400.0)], 300.0, seed)
    };
    let (mut without, mut back) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let heard = scene(0.0, seed).run();
        without.push(between(&heard, 1, 140.0, 240.0));
        back.push(between(&heard, 0, 240.0, 245.0));
    }
    let (without, back) = (mean(&without), mean(&back));
    println!("b while a is away {:.1} ms, a's first 5 s back {:.1} ms", 1e3 * without, 1e3 * back);
    assert!((0.068..=0.083).contains(&without) && (0.043..=0.055).contains(&back), "{without}, {back}");
    // The twins: the class stays and brings more, and it is back without a promise.
    let (mut beside, mut behind) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        beside.push(between(&scene(130.0, seed).run(), 1, 140.0, 240.0));
        let mut twin = scene(0.0, seed);
        (twin.flows[0].class.delay, twin.flows[0].class.priority) = (None, 9);
        behind.push(between(&twin.run(), 0, 240.0, 245.0));
    }
    let (beside, behind) = (mean(&beside), mean(&behind));
    println!("b beside an a of 130/s {:.1} ms, an a without a promise {:.1} ms", 1e3 * beside, 1e3 * behind);
    assert!(beside > 0.1 && behind > 0.07, "{beside}, {behind}");
}

/// Each alone would have 4.4 of the workers, and 3.4 are busy with its work.
#[test]
fn of_two_classes_with_one_priority_the_first_is_not_preferred() {
    let scene = |priorities: [u8; 2], seed| {
        let of = |name, priority| Flow::new(name, 85.0).delay(MS(60), None).priority(priority);
        let flows = vec![of("a", priorities[0]), of("b", priorities[1]), Flow::new("default", 100.0)];
        scene(flows, 240.0, seed)
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let heard = scene([1, 1], seed).run();
        first.push(heard.mean(0, 60.0));
        second.push(heard.mean(1, 60.0));
    }
    let (first, second) = (mean(&first), mean(&second));
    println!("declared first {:.1} ms, second {:.1} ms", 1e3 * first, 1e3 * second);
    assert!(
        (0.97..=1.03).contains(&(second / first)) && (0.063..=0.07).contains(&first),
        "{first}, {second}"
    );
    let twin = scene([1, 2], *SEEDS.start()).run();
    let (first, second) = (twin.mean(0, 60.0), twin.mean(1, 60.0));
    println!("the twin of two priorities: {:.1} ms and {:.1} ms", 1e3 * first, 1e3 * second);
    assert!(second / first > 1.2, "{first}, {second}");
}

/// What gold is promised is less than its service takes. It asks for the workers that are of use to it, and silver for its own.
#[test]
fn a_promise_that_nothing_keeps_takes_no_workers_of_a_lower_one() {
    let of = |silver_promised: bool, seed| {
        let mut gold = Flow::new("gold", 5.0).delay(MS(100), None).priority(1);
        gold.service = Some(MS(120));
        let silver = Flow::new("silver", 60.0).priority(2);
        let silver = if silver_promised { silver.delay(MS(200), None) } else { silver };
        let heard = scene(vec![gold, silver, Flow::new("default", 400.0)], 120.0, seed).run();
        [0, 1].map(|class| between(&heard, class, 30.0, 120.0))
    };
    let over = |promised: bool| {
        let runs: Vec<[f64; 2]> = SEEDS.map(|seed| of(promised, seed)).collect();
        [0, 1].map(|class| mean(&runs.iter().map(|run| run[class]).collect::<Vec<_>>()))
    };
    let ([gold, silver], [_, twin]) = (over(true), over(false));
    println!(
        "gold {:.1} ms, silver {:.1} ms, {:.1} without its promise",
        1e3 * gold,
        1e3 * silver,
        1e3 * twin
    );
    assert!((0.11..=0.135).contains(&gold) && (0.1..=0.2).contains(&silver), "{gold}, {silver}");
    assert!(twin < 0.1, "the twin, whose priority alone counts: {twin}");
}

/// A class whose requests come 25 at a time, every ten seconds, has a load of 0.1 workers.
#[test]
fn a_class_that_comes_in_short_bursts_keeps_no_workers_between_them() {
    let of = |seed| {
        let mut page = Flow::new("page", 0.0).delay(MS(100), None).priority(1);
        for burst in 0..12 {
            let at = 10.0 * f64::from(burst) + 5.0;
            page = page.then(at, 1000.0).then(at + 0.025, 0.0);
        }
        let gold = Flow::new("gold", 100.0).delay(MS(100), None).priority(2);
        scene(vec![page, gold, Flow::new("default", 400.0)], 120.0, seed)
    };
    let heard: Vec<Heard> = SEEDS.map(|seed| of(seed).run()).collect();
    let [page, gold] = [0, 1]
        .map(|class| mean(&heard.iter().map(|heard| between(heard, class, 30.0, 120.0)).collect::<Vec<_>>()));
    println!("gold beside a class of bursts: {:.1} ms, that class: {:.1} ms", 1e3 * gold, 1e3 * page);
    assert!((0.095..=0.107).contains(&gold) && (0.08..=0.105).contains(&page), "{gold}, {page}");
    let twin = Scene { mode: Mode::Off, ..of(*SEEDS.start()) }.run();
    let (gold, page) = (between(&twin, 1, 0.0, 30.0), between(&twin, 0, 0.0, 30.0));
    assert!(gold > 1.0 && page > 1.0, "without control: {gold}, {page}");
}

/// Gold brings three times what it was to, for two minutes, so that a lower class waits whatever its own quota is. What it
/// missed then is no effect of the quota, and teaches the law nothing: before, silver had 45 of its 100 ms for five minutes.
#[test]
fn a_shortage_that_a_higher_class_makes_is_not_made_up_for_with_a_larger_quota() {
    let (mut after, mut lowest) = (Vec::new(), Vec::new());
    let scene = |seed| {
        let class = |name, rate, priority| Flow::new(name, rate).delay(MS(100), None).priority(priority);
        let gold = class("gold", 100.0, 1).then(60.0, 340.0).then(180.0, 100.0);
        let flows =
            vec![gold, class("silver", 65.0, 2), class("bronze", 100.0, 3), Flow::new("default", 300.0)];
        Scene::new(16, MS(40), flows, 420.0, seed)
    };
    for seed in 6111..=6114 {
        let heard = scene(seed).run();
        after.push(between(&heard, 1, 240.0, 420.0));
        lowest.push(between(&heard, 2, 240.0, 420.0));
    }
    println!("silver {after:.3?} s, bronze {lowest:.3?} s");
    assert!((0.086..=0.102).contains(&mean(&after)), "{after:?}");
    assert!((0.088..=0.104).contains(&mean(&lowest)), "{lowest:?}");
    // The twin whose lower two classes have their priorities alone.
    let mut twin = scene(6111);
    twin.flows[1..3].iter_mut().for_each(|flow| flow.class.delay = None);
    let heard = twin.run();
    let [silver, bronze] = [1, 2].map(|class| between(&heard, class, 240.0, 420.0));
    println!("by priorities alone: silver {:.1} ms, bronze {:.1} ms", 1e3 * silver, 1e3 * bronze);
    assert!(silver < 0.06 && bronze < 0.065, "{silver}, {bronze}");
}

/// The server takes more requests at once than the eight it works on, so they wait in it, and a service time is the time of a
/// place. A quota of workers that was made of such times was too large: gold has far more time than it needs here, and had
/// nearly all workers. Silver's mean was 319 ms in place of 250, and 5 % took longer than 388 ms in place of 250. The twin is
/// the same without promises.
#[test]
fn a_lower_class_is_in_time_before_a_server_that_takes_more_than_it_has_workers() {
    let silver = |percentile: Option<f64>, is_promised: bool| {
        let (mut means, mut late) = (Vec::new(), Vec::new());
        for seed in 6121..=6124 {
            let class = |name, rate, priority, target| {
                let flow = Flow::new(name, rate).priority(priority);
                if is_promised { flow.delay(target, percentile) } else { flow }
            };
            let flows = vec![
                class("gold", 90.0, 1, MS(600)),
                class("silver", 60.0, 2, MS(250)),
                Flow::new("default", 400.0).priority(2),
            ];
            let mut scene = scene(flows, 180.0, seed);
            scene.plant.max_connections = 64;
            let heard = scene.run();
            let own = heard.answers.iter().filter(|a| a.class == 1 && a.completed && a.arrived >= 60.0);
            late.push(mean(&own.map(|a| f64::from(u8::from(a.response() > 0.25))).collect::<Vec<_>>()));
            means.push(between(&heard, 1, 60.0, 180.0));
        }
        (mean(&means), mean(&late))
    };
    let [(by_mean, _), (_, late), twin] = [(None, true), (Some(95.0), true), (None, false)]
        .map(|(percentile, promised)| silver(percentile, promised));
    println!("silver {by_mean:.3} s, {late:.4} late; without promises {twin:.3?}");
    assert!((0.15..=0.255).contains(&by_mean), "{by_mean}");
    assert!((0.01..=0.055).contains(&late), "{late}");
    assert!(twin.0 > 0.3 && twin.1 > 0.3, "{twin:?}");
}

/// The higher class and the one with a delay ask for more than the server does, so the delay cannot be kept. The set point was
/// reduced for it all the same: in a run of ten minutes 4 % of the higher class were refused.
#[test]
fn a_delay_that_is_missed_refuses_no_request_of_a_higher_class() {
    let peak = |rate: [f64; 2], flow: Flow| flow.then(60.0, rate[1]).then(150.0, rate[0]);
    let scene = |seed| {
        let high = peak([320.0, 560.0], Flow::new("high", 320.0)).priority(1);
        let promised = peak([160.0, 560.0], Flow::new("promised", 160.0)).delay(MS(50), None).priority(2);
        let rest = peak([80.0, 400.0], Flow::new("default", 80.0));
        Scene::new(8, MS(10), vec![high, promised, rest], 300.0, seed)
    };
    let refused = |heard: &Heard, class: usize, (from, until): (f64, f64)| {
        let own = heard.answers.iter().filter(|a| a.class == class && (from..until).contains(&a.arrived));
        mean(&own.map(|a| f64::from(u8::from(!a.completed))).collect::<Vec<_>>())
    };
    for seed in 6131..=6133 {
        let heard = scene(seed).run();
        let (peak, after) = ((70.0, 150.0), (180.0, 299.0));
        let high = [peak, after].map(|span| refused(&heard, 0, span));
        let (promised, rest) = (refused(&heard, 1, peak), [1, 2].map(|class| refused(&heard, class, after)));
        let kept = [peak, after].map(|(from, until)| between(&heard, 1, from, until));
        println!(
            "high {high:.4?}, promised {promised:.3} in the peak; after it the others {rest:.4?}; {kept:.3?} s"
        );
        assert!(high.iter().all(|part| *part < 0.001), "{high:?}");
        // 240 of its 560 requests a second have room.
        assert!((0.55..=0.68).contains(&promised), "{promised}");
        assert!(rest.iter().all(|part| *part < 0.001), "{rest:?}");
        assert!(kept[0] < 0.3 && (0.005..0.03).contains(&kept[1]), "{kept:?}");
    }
    let twin = Scene { mode: Mode::Off, ..scene(6131) }.run();
    let high = between(&twin, 0, 70.0, 150.0);
    assert!(high > 1.0, "without control: {high} s");
}
