//! Two priorities (AC, figures 10 to 15): half of the requests are of each.

use crate::heard::{Fate, Figures, HIGH, Heard, LOW, Mean, listen, within};
use crate::plant::{mean_service, pages, poisson, stream, workload};
use plimsoll_sim::workload::{Content, Workload};

/// Rates of the two, over the capacity, in order of time.
pub(crate) fn two(high: &[(f64, f64)], low: &[(f64, f64)], seconds: f64) -> Workload {
    let of = |name: &str, folder: &str, loads: &[(f64, f64)]| {
        let rates: Vec<_> = loads.iter().map(|(from, load)| (*from, load / mean_service())).collect();
        stream(name, poisson(&rates), Content::Pages(pages(folder)))
    };
    workload(vec![of("high", "/high", high), of("low", "/low", low)], Some(seconds))
}

/// What each of the two got.
pub(crate) struct Shares {
    /// The work that was asked for.
    pub(crate) asked: [f64; 2],
    pub(crate) got: [Figures; 2],
}

impl Shares {
    pub(crate) fn of(heard: &[Heard], (from, until): (f64, f64)) -> Shares {
        let own = |class: usize| heard.iter().filter(move |one| one.class == class);
        let asked = |class: usize| {
            let then = own(class).filter(|one| (from..until).contains(&one.arrived));
            then.map(|one| one.cost).sum::<f64>() / (until - from)
        };
        Shares {
            asked: [HIGH, LOW].map(asked),
            got: [HIGH, LOW].map(|class| Figures::of(own(class), (from, until))),
        }
    }
}

pub(crate) fn shares(front: &str, total: f64) -> Vec<Shares> {
    let run = |seed| {
        let half = [(0.0, total / 2.0)];
        let workload = two(&half, &half, 100.0);
        Shares::of(&listen(front, &workload, seed), (15.0, 95.0))
    };
    (1..=3).map(run).collect()
}

pub(crate) fn mean(runs: &[Shares], value: impl Fn(&Shares) -> f64) -> Mean {
    Mean::of(&runs.iter().map(value).collect::<Vec<_>>())
}

/// Fig. 10, 12 and 13: admission knows no priority, so each class's throughput is in proportion to what comes. Those of the
/// high class that are admitted are served first, and their delay is low; that of the low one is extremely long: a queue of
/// 1,000 that is served with what the high leaves.
#[test]
fn sac_admits_without_priority_and_serves_by_it() {
    for total in [1.6, 2.5] {
        let runs = shares("sac", total);
        let of = |class: usize, value: fn(&Figures) -> f64| mean(&runs, |run| value(&run.got[class]));
        for class in [HIGH, LOW] {
            let got = of(class, |got| got.work);
            within("SAC's work of each", got.mean, 0.47..=0.53);
        }
        let delays = [HIGH, LOW].map(|class| of(class, |got| got.mean).mean);
        let missed = [HIGH, LOW].map(|class| of(class, |got| got.missed).mean);
        println!("sac at {total}: mean delays {delays:.3?} s, missed {missed:.4?}");
        within("the high's mean delay, s", delays[HIGH], mean_service()..=0.05);
        within("the high's share missed", missed[HIGH], 0.0..=0.001);
        // The high gets half of the server.
        let queue = 1000.0 * mean_service() / 0.5;
        within("the low's mean delay over that of its queue", delays[LOW] / queue, 0.85..=1.1);
        within("the low's share missed", missed[LOW], 0.99..=1.0);
    }
}

#[test]
fn aces_gives_the_high_what_it_asks_and_the_low_what_is_left() {
    for total in [0.8, 1.2, 1.6, 1.9, 2.5] {
        let runs = shares("aces:1245us", total);
        let of_asked = mean(&runs, |run| run.got[HIGH].work / run.asked[HIGH]);
        let low = mean(&runs, |run| run.got[LOW].work);
        let both = mean(&runs, |run| run.got[HIGH].work + run.got[LOW].work);
        let delays = [HIGH, LOW].map(|class| mean(&runs, |run| run.got[class].mean));
        println!(
            "{total}: high {of_asked} of its work, mean {} s; low {low}, mean {} s; both {both}",
            delays[0], delays[1]
        );
        let asks = total / 2.0;
        let least = if asks > 1.0 {
            0.75
        } else if asks > 0.9 {
            0.92
        } else {
            0.97
        };
        within("the high's share of what it asks", of_asked.mean, least..=1.01);
        within("the high's mean delay, s", delays[0].mean, 0.005..=0.2);
        let left = (1.0 - asks).clamp(0.0, asks);
        within("the low's work", low.mean, 0.6 * left..=left + 0.03);
        within("the work of both", both.mean, 0.93 * f64::min(total, 1.0)..=1.01);
    }
}

/// The high one's load (AC, figures 14 and 15): sustained overload of 10 s, occasional overload and occasional light load of
/// 2 s. At its most it asks for the whole capacity.
const SWINGS: [(f64, f64); 9] = [
    (0.0, 0.3),
    (20.0, 1.0),
    (30.0, 0.3),
    (40.0, 1.0),
    (42.0, 0.3),
    (52.0, 1.0),
    (62.0, 0.3),
    (64.0, 1.0),
    (74.0, 0.3),
];
const STEADY: f64 = 0.6;

/// Each second of the swings: what the high asked for, what each got, in work; the mean over so many seeds.
pub(crate) fn swings(front: &str, seeds: u64) -> Vec<[f64; 3]> {
    let seconds = 84;
    let mut sums = vec![[0.0; 3]; seconds];
    for seed in 1..=seeds {
        let workload = two(&SWINGS, &[(0.0, STEADY)], seconds as f64 + 5.0);
        let heard = listen(front, &workload, seed);
        for one in heard.iter().filter(|one| one.arrived < seconds as f64) {
            let got = if one.fate == Fate::Answered { one.cost } else { 0.0 };
            let sums = &mut sums[one.arrived as usize];
            if one.class == HIGH {
                sums[0] += one.cost;
                sums[1] += got;
            } else {
                sums[2] += got;
            }
        }
    }
    sums.iter().map(|sum| sum.map(|value| value / seeds as f64)).collect()
}

/// The mean over the seconds so long after each of these moments.
pub(crate) fn after(swings: &[[f64; 3]], moments: &[usize], seconds: usize, which: usize) -> f64 {
    moments.iter().map(|at| swings[at + seconds][which]).sum::<f64>() / moments.len() as f64
}

/// When the high one's load goes up, and when it goes down.
pub(crate) const UPS: [usize; 4] = [20, 40, 52, 64];
pub(crate) const DOWNS: [usize; 3] = [30, 42, 74];

#[test]
fn aces_follows_fluctuating_load_within_two_periods() {
    let swings = swings("aces:1245us", 6);
    for (what, moments) in [("up", &UPS[..]), ("down", &DOWNS)] {
        for seconds in 0..4 {
            let [asked, high, low] = [0, 1, 2].map(|which| after(&swings, moments, seconds, which));
            println!("{what} {seconds}: high asked {asked:.3}, got {high:.3}; low got {low:.3}");
        }
    }
    let overload: f64 =
        (20..30).chain(52..62).chain(64..74).map(|second| swings[second][1] / swings[second][0]).sum::<f64>()
            / 30.0;
    within("the high's share under overload", overload, 0.88..=0.99);
    within("low in the second of the change", after(&swings, &UPS, 0, 2), 0.2..=0.5);
    within("low a second after", after(&swings, &UPS, 1, 2), 0.0..=0.1);
    // What is no longer asked for is still predicted for a period.
    within("low in the second of the change back", after(&swings, &DOWNS, 0, 2), 0.0..=0.1);
    within("low a second after it", after(&swings, &DOWNS, 1, 2), 0.3..=0.5);
    within("low two seconds after it", after(&swings, &DOWNS, 2, 2), 0.45..=0.62);
}

/// The twin of all of these: the high gets no more than its part of what comes.
#[test]
fn before_sac_the_high_is_refused_for_the_low() {
    let swings = swings("sac", 3);
    let overload: f64 = (24..30).map(|second| swings[second][1] / swings[second][0]).sum::<f64>() / 6.0;
    within("the high's share under overload", overload, 0.5..=0.75);
}

#[test]
fn weighted_shares_hold_from_both_sides() {
    // The high may have at most 0.6, and the low has at least 0.3 of what it asks for.
    for (total, high, low) in [(2.0, 0.58..=0.63, 0.36..=0.42), (1.0, 0.47..=0.52, 0.42..=0.50)] {
        let runs = shares("aces:1245us,shares=0-0.6/0.3-1", total);
        let got = [HIGH, LOW].map(|class| mean(&runs, |run| run.got[class].work));
        println!("{total}: high {}, low {}", got[0], got[1]);
        within(&format!("the high's work at {total}"), got[0].mean, high);
        within(&format!("the low's work at {total}"), got[1].mean, low);
    }
}
