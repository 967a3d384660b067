//! How many of the admitted requests are in time is promised (`in_time`). The more may be late, the longer is the queue.

use crate::scene::{Flow, Heard, Kind, Scene, mean, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

const DEADLINE: f64 = 0.5;

/// Twice the capacity of so many workers with requests of 40 ms.
fn crowded(workers: u32, in_time: f64, law: Law, seed: u64) -> Scene {
    let page = Kind::new("/page-*", 1.0, ms(40), law);
    let flow = Flow::new("all", 2.0 * f64::from(workers) * 25.0, vec![page]).within(Some(ms(500)));
    let mut scene = Scene::new(workers, vec![flow], 130.0, seed);
    scene.site.in_time = in_time;
    scene
}

/// The part of requests that takes longer than the deadline alone, whatever is promised.
fn late_alone(law: &Law) -> f64 {
    match law {
        Law::Exponential => (-12.5_f64).exp(),
        // ln 12.5 lies 2.62 deviations above the mean of the logarithm.
        _ => 0.0044,
    }
}

#[test]
fn as_many_are_in_time_as_were_promised() {
    for (workers, law, seed) in [
        (1, Law::Exponential, 71),
        (8, Law::Exponential, 72),
        (8, Law::Lognormal { variation: 2.0 }, 73),
        (20, Law::Deterministic, 74),
    ] {
        for in_time in [50.0, 80.0, 90.0, 95.0, 99.0, 99.9] {
            let heard = crowded(workers, in_time, law.clone(), seed).run();
            let missed = heard.missed(0, DEADLINE, (10.0, 129.0));
            let busy = mean(heard.busy[10..].iter().copied());
            let good = heard.in_time(0, DEADLINE, (10.0, 129.0));
            println!(
                "{workers} workers, {law:?}, {in_time}: missed {missed:.4}, busy {busy:.3}, in time {good:.3}"
            );
            let may_miss = 1.0 - in_time / 100.0 * (1.0 - late_alone(&law));
            // Three deviations of a share of some ten thousand requests.
            let most = 1.2 * may_miss + 3.0 * (may_miss / 1e4).sqrt();
            // Times that are known vary less than estimates err, and one worker's wait is not normal.
            let least = if workers == 8 && in_time <= 99.0 { 0.3 * may_miss } else { 0.0 };
            assert!((least..=most).contains(&missed), "{missed} is not within {least} and {most}");
            assert!(busy >= if workers == 1 { 0.93 } else { 0.995 }, "{busy}");
        }
    }
    let twin = Scene { mode: Mode::Off, ..crowded(8, 50.0, Law::Exponential, 72) }.run();
    let missed = twin.missed(0, DEADLINE, (10.0, 129.0));
    assert!(missed > 0.95, "the twin without control: {missed}");
}

/// Pages, and reports of which seven in ten would be in time alone.
fn beside_reports(pages: f64, reports: f64, mode: Mode, seed: u64) -> Heard {
    let page = Kind::new("/page-*", 1.0, ms(40), Law::Exponential);
    let report = Kind::new("/report-*", 1.0, ms(400), Law::Exponential);
    let flows = vec![
        Flow::new("pages", pages, vec![page]).within(Some(ms(500))),
        Flow::new("reports", reports, vec![report]).within(Some(ms(500))),
    ];
    Scene { mode, ..Scene::new(8, flows, 130.0, seed) }.run()
}

#[test]
fn a_request_with_an_even_chance_is_served_by_an_idle_worker() {
    // Less than the chance of a request alone, 0.71, by the chance that no worker is idle.
    for (pages, reports, least) in [(120.0, 2.0, 0.5), (140.0, 2.0, 0.35), (140.0, 4.0, 0.3)] {
        for seed in 81..=83 {
            let heard = beside_reports(pages, reports, Mode::Control, seed);
            let both = [0, 1].map(|class| heard.in_time(class, DEADLINE, (10.0, 129.0)));
            let missed = [0, 1].map(|class| heard.missed(class, DEADLINE, (10.0, 129.0)));
            println!("pages {pages}, reports {reports}: {both:.4?} missed {missed:.4?}");
            assert!(both[0] >= 0.999 && (least..=0.71).contains(&both[1]), "{both:?}");
            assert!(missed[0] <= 0.001, "{missed:?}");
        }
    }
    // The twin without control: at nine tenths of the capacity reports make the pages wait.
    let twin = beside_reports(140.0, 4.0, Mode::Off, 81).in_time(0, DEADLINE, (10.0, 129.0));
    assert!(twin < 0.98, "{twin}");
}
