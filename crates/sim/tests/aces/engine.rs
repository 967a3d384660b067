//! The engine as the front, in AC's experiments: stress, the stand-in week, priorities, fluctuating load.

use crate::heard::{ENGINE, Figures, HIGH, Heard, LOW, Mean, listen, listen_to, promises, within};
use crate::plant::{BOUND, mix, poisson, printed_pages, printed_service, stream, week, workload};
use crate::priorities::{DOWNS, Shares, UPS, after, swings, two};
use crate::stress::Means;
use plimsoll_core::promises::Prefer;
use plimsoll_sim::front::Gateway;
use plimsoll_sim::workload::Content;

const SECONDS: f64 = 80.0;
const JUDGED: (f64, f64) = (15.0, SECONDS - 5.0);

fn stressed(front: &str, load: f64) -> Vec<Figures> {
    (1..=4).map(|seed| Figures::of(&listen(front, &mix(load, SECONDS), seed), JUDGED)).collect()
}

/// The engine's means, and its throughput over SAC's on the same arrivals.
fn against_sac(load: f64) -> (Means, Mean) {
    let (engine, sac) = (stressed(ENGINE, load), stressed("sac", load));
    let over: Vec<f64> =
        engine.iter().zip(&sac).map(|(engine, sac)| engine.answered / sac.answered).collect();
    let over = Mean::of(&over);
    let means = Means::of(format!("engine at {load}"), &engine);
    println!("    throughput over sac's {over}");
    (means, over)
}

#[test]
fn about_the_capacity_all_are_in_time_and_hardly_anybody_is_refused() {
    for (load, refused) in [(0.5, 0.0..=0.002), (0.8, 0.0..=0.002), (1.0, 0.0..=0.02), (1.05, 0.01..=0.06)] {
        let (engine, over) = against_sac(load);
        engine.check("missed", engine.missed, 0.0..=0.0);
        engine.check("refused", engine.refused, refused);
        within("throughput over sac's", over.mean, 0.99..=1.01);
    }
}

#[test]
fn under_stress_all_who_are_admitted_are_in_time() {
    for load in [1.5, 2.0, 2.5] {
        let (engine, over) = against_sac(load);
        engine.check("missed", engine.missed, 0.0..=if load > 2.0 { 0.005 } else { 0.002 });
        engine.check("work", engine.work, 0.99..=1.01);
        engine.check("mean", engine.mean, 0.55..=0.8);
        within("throughput over sac's", over.mean, 0.98..=1.06);
    }
}

#[test]
fn who_prefers_short_waits_has_them() {
    let mut promises = promises();
    promises.sites[0].prefer = Prefer::Delay;
    for load in [1.0, 1.5, 2.5] {
        let run = |seed| {
            let workload = mix(load, SECONDS);
            let mut engine = Gateway::new(&promises, seed).expect("the promises are valid");
            Figures::of(&listen_to(&mut engine, &promises, &workload, seed), JUDGED)
        };
        let runs: Vec<Figures> = (1..=3).map(run).collect();
        let engine = Means::of(format!("engine that prefers delay at {load}"), &runs);
        engine.check("missed", engine.missed, 0.0..=0.0);
        engine.check("mean", engine.mean, 0.03..=0.25);
        engine.check("work", engine.work, if load > 1.0 { 0.98..=1.01 } else { 0.93..=1.0 });
    }
}

/// The most work (per second) that one worker can do of what came, if nobody is ever late.
///
/// What was admitted and is not done is due within the bound, so that it is never more than the bound. Among all
/// rules that keep a backlog below a bound, the one that takes as much of each request as there is room for, parts of requests
/// too, loses least up to any moment, whatever the others know of what will come.
fn most_work(heard: &[Heard], (from, until): (f64, f64)) -> f64 {
    let mut all: Vec<&Heard> = heard.iter().collect();
    all.sort_by(|one, other| one.arrived.total_cmp(&other.arrived));
    let (mut now, mut backlog, mut done) = (0.0, 0.0_f64, 0.0);
    for one in all {
        backlog = (backlog - (one.arrived - now)).max(0.0);
        now = one.arrived;
        let taken = one.cost.min(BOUND - backlog);
        backlog += taken;
        done += if (from..until).contains(&now) { taken } else { 0.0 };
    }
    done / (until - from)
}

#[test]
fn the_stand_in_week_is_kept_up_to_twice_the_capacity() {
    for load in [1.0, 2.0, 2.5] {
        let run = |seed| {
            let (workload, hour) = week(load, 60, seed);
            let judged = (0.0, 60.0 * hour);
            let heard = [ENGINE, "sac"].map(|front| listen(front, &workload, seed));
            let [engine, sac] = heard.each_ref().map(|heard| Figures::of(heard, judged));
            (engine, (sac, most_work(&heard[0], judged)))
        };
        let (engine, others): (Vec<_>, Vec<_>) = (1..=2).map(run).unzip();
        let (sac, most): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let over = Mean::of(
            &engine.iter().zip(&sac).map(|(engine, sac)| engine.answered / sac.answered).collect::<Vec<_>>(),
        );
        let engine = Means::of(format!("the week, engine at {load}"), &engine);
        println!("    throughput over sac's {over}");
        // SAC's 1,000 connections are four seconds of this mix: they carry a morning's rush into the evening.
        let of_sac = Mean::of(&most.iter().zip(&sac).map(|(most, sac)| most / sac.work).collect::<Vec<_>>());
        let of_most = engine.work.mean / Mean::of(&most).mean;
        println!(
            "    most work of whoever is never late, over sac's {of_sac}; the engine's of that {of_most:.4}"
        );
        within("the most work over sac's", of_sac.mean, if load > 1.0 { 0.98..=0.99 } else { 0.965..=0.98 });
        within("the engine's of the most work", of_most, if load > 1.0 { 0.985..=1.0 } else { 0.98..=0.995 });
        within("throughput over sac's", over.mean, if load > 1.0 { 0.98..=1.02 } else { 0.94..=1.0 });
        within("missed", engine.missed.mean, 0.0..=if load > 2.0 { 0.005 } else { 0.002 });
        within("work", engine.work.mean, if load > 1.0 { 0.97..=1.02 } else { 0.82..=0.88 });
    }
}

#[test]
fn the_high_gets_all_it_asks_and_the_low_only_the_rest() {
    for total in [0.8, 1.2, 1.6, 1.9, 2.5] {
        let half = [(0.0, total / 2.0)];
        let run = |seed| Shares::of(&listen(ENGINE, &two(&half, &half, SECONDS), seed), JUDGED);
        let runs: Vec<Shares> = (1..=3).map(run).collect();
        let mean = |value: &dyn Fn(&Shares) -> f64| Mean::of(&runs.iter().map(value).collect::<Vec<_>>());
        let of_asked = mean(&|run| run.got[HIGH].work / run.asked[HIGH]);
        let [high, low] = [HIGH, LOW].map(|class| mean(&|run| run.got[class].work));
        let missed = [HIGH, LOW].map(|class| mean(&|run| run.got[class].missed));
        let delays = [HIGH, LOW].map(|class| mean(&|run| run.got[class].mean));
        println!(
            "engine {total}: high {of_asked} of its work, mean {}, missed {}; low {low}, mean {}, missed {}",
            delays[0], missed[0], delays[1], missed[1]
        );
        let asks = total / 2.0;
        within(
            "the high's share of what it asks",
            of_asked.mean,
            if asks <= 0.95 { 0.995..=1.0 } else { 0.7..=0.9 },
        );
        within("missed of the high", missed[0].mean, 0.0..=0.0);
        let left = (1.0 - high.mean).clamp(0.0, asks);
        within("the low's work", low.mean, 0.75 * left - 0.01..=left + 0.015);
        within("missed of the low", missed[1].mean, 0.0..=0.006);
    }
}

#[test]
fn fluctuating_load_is_followed_within_a_second() {
    let swings = swings(ENGINE, 6);
    for (what, moments) in [("up", &UPS[..]), ("down", &DOWNS)] {
        for seconds in 0..3 {
            let [asked, high, low] = [0, 1, 2].map(|which| after(&swings, moments, seconds, which));
            println!("engine {what} {seconds}: high asked {asked:.3}, got {high:.3}; low got {low:.3}");
        }
    }
    let overload = (20..30).chain(52..62).chain(64..74);
    let overload: f64 = overload.map(|second| swings[second][1] / swings[second][0]).sum::<f64>() / 30.0;
    within("the high's share under overload", overload, 0.97..=1.0);
    within("low in the second of the change", after(&swings, &UPS, 0, 2), 0.0..=0.25);
    within("low a second after", after(&swings, &UPS, 1, 2), 0.0..=0.1);
    within("low in the second of the change back", after(&swings, &DOWNS, 0, 2), 0.2..=0.6);
    within("low a second after it", after(&swings, &DOWNS, 1, 2), 0.5..=0.7);
}

/// The high asks for the whole server by itself. Hardly any of the low is admitted, in lulls of the high, and of that little no
/// more is late than was promised, though the high's next burst may come at any moment.
#[test]
fn beside_a_high_that_asks_for_all_the_few_of_the_low_are_in_time() {
    let of = |folder: &str, load: f64| {
        let rate = poisson(&[(0.0, load / printed_service())]);
        stream(folder, rate, Content::Pages(printed_pages(folder)))
    };
    let (mut admitted, mut late, mut high_late) = (0.0, 0.0, 0.0);
    for seed in 3501..=3520 {
        let workload = workload(vec![of("/high", 1.0), of("/low", 0.6)], Some(120.0));
        let heard = listen(ENGINE, &workload, seed);
        let own = |class: usize| heard.iter().filter(move |one| one.class == class);
        let [high, low] = [HIGH, LOW].map(|class| Figures::of(own(class), (15.0, 115.0)));
        (admitted, late) = (admitted + low.admitted, late + low.missed * low.admitted);
        high_late += high.missed * high.admitted;
    }
    println!("{admitted} of the low admitted, of them {:.4} late; of the high {high_late}", late / admitted);
    assert_eq!(high_late, 0.0);
    within(
        "the low's share of what it asks",
        admitted * printed_service() / (20.0 * 100.0 * 0.6),
        0.003..=0.03,
    );
    within("late of the low", late / admitted, 0.0..=0.01);
}
