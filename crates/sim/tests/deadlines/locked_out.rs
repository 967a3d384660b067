//! What spoils an estimate: requests of the same type that have no deadline and take far longer, and a server that was ill.
//! On a server that idles neither refuses the others for long.

use crate::scene::{Answer, Flow, Heard, Kind, Scene, ms};
use plimsoll_sim::workload::Law;

fn refused(heard: &Heard, seconds: (f64, f64)) -> f64 {
    1.0 - heard.in_time(0, 1.0, seconds)
}

/// Articles, of which one in so many is followed by a download that has no deadline. Nothing tells them apart.
fn beside_downloads((workers, found): (u32, bool), part: f64, seconds: u64, seed: u64) -> Heard {
    let article = Kind::new("/article/", 1.0, ms(20), Law::Lognormal { variation: 1.0 });
    let download = Kind::new("/files/", 1.0, ms(1000 * seconds), Law::Exponential);
    let flows = vec![
        Flow::new("articles", 0.2, vec![article]),
        Flow::new("downloads", 0.2 * part, vec![download]).within(None),
    ];
    Scene::new(workers, flows, 5000.0, seed).finding_workers(found).run()
}

#[test]
fn downloads_without_a_deadline_refuse_no_article() {
    for (workers, part, seconds) in [(8, 0.05, 60), (8, 0.3, 20), (4, 0.02, 30)] {
        for (seed, found) in [(8531, false), (8532, false), (8533, true)] {
            let heard = beside_downloads((workers, found), part, seconds, seed);
            let lost = refused(&heard, (0.0, 4990.0));
            println!(
                "{workers} workers, found {found}, one in {part}, {seconds} s: {:.3} % not in time",
                100.0 * lost
            );
            assert!(lost <= 0.005, "{lost}");
        }
    }
}

/// Everything takes two hundred times as long for some minutes, and then no longer.
#[test]
fn an_illness_is_forgotten_soon_after_it() {
    for (workers, rate) in [(8, 1.0), (4, 0.2), (1, 0.2)] {
        for seed in 8534..=8536 {
            let page = Kind::new("/page-*.html", 1.0, ms(20), Law::Exponential);
            let mut scene = Scene::new(workers, vec![Flow::new("pages", rate, vec![page])], 1500.0, seed);
            scene.slow((200.0, 800.0), 200.0);
            let heard = scene.run();
            let (soon, then) = (refused(&heard, (805.0, 900.0)), refused(&heard, (900.0, 1490.0)));
            println!("{workers} workers, {rate}/s: {soon:.3} refused soon after, {then:.3} then");
            assert!(soon <= 0.15 && then <= 0.03, "{soon} {then}");
        }
    }
}

/// Everything stands still for five seconds, and a server that is nearly idle takes what comes afterwards.
#[test]
fn a_pause_of_a_large_server_is_forgotten_at_once() {
    for (workers, rate, pause) in [(256, 50.0, 5.0), (64, 20.0, 3.0), (256, 200.0, 2.0)] {
        for seed in 8601..=8603 {
            let page = Kind::new("/page-*.html", 1.0, ms(20), Law::Exponential);
            let mut scene = Scene::new(workers, vec![Flow::new("pages", rate, vec![page])], 60.0, seed);
            scene.slow((30.0, 30.0 + pause), f64::INFINITY);
            let heard = scene.run();
            let end = 30.0 + pause;
            let [soon, then] = [(end, end + 5.0), (end + 5.0, 59.0)].map(|span| refused(&heard, span));
            println!("{workers} workers, {rate}/s, {pause} s: {soon:.3} refused soon after, {then:.3} then");
            assert!(soon <= 0.1 && then <= 0.002, "{soon} {then}");
        }
    }
}

/// Everything stands still once, and no request takes long by itself: what was held then is forgotten.
#[test]
fn a_pause_of_a_busy_server_is_forgotten() {
    for (load, seed) in [(0.8, 8611), (0.9, 8612), (0.9, 8613), (0.95, 8614)] {
        let run = |stands: bool| {
            let page = Kind::new("/page-*.html", 1.0, ms(20), Law::Lognormal { variation: 0.3 });
            let flow = Flow::new("pages", load * 50.0, vec![page]).within(Some(ms(500)));
            let mut scene = Scene::new(1, vec![flow], 300.0, seed);
            if stands {
                scene.slow((30.0, 35.0), f64::INFINITY);
            }
            1.0 - scene.run().in_time(0, 0.5, (65.0, 299.0))
        };
        let [with, without] = [true, false].map(run);
        println!("load {load}: {with:.4} refused or late 30 s after a pause, {without:.4} without one");
        assert!(with <= without + 0.005, "{with}, {without}");
    }
}

/// Pages of 40 ms before this many workers, of which half are used, while the server stands still for some seconds.
fn during_a_pause(workers: u32, (deadline, pause): (u64, f64), seed: u64) -> Heard {
    let page = Kind::new("/page-*.html", 1.0, ms(40), Law::Exponential);
    let flow = Flow::new("pages", 12.5 * f64::from(workers), vec![page]).within(Some(ms(1000 * deadline)));
    let mut scene = Scene::new(workers, vec![flow], 40.0, seed);
    scene.slow((20.1, 20.1 + pause), f64::INFINITY);
    scene.run()
}

/// All that wait for the end of the pause are in time. When each request that was old held its worker, 45 to 54 were refused in
/// a second before eight workers that have two, and 70 to 103 in two seconds of five.
#[test]
fn a_pause_that_all_outlast_refuses_nobody() {
    for times in [(2, 1.0), (5, 0.5), (5, 2.0), (10, 3.0)] {
        for seed in 8621..=8624 {
            for workers in [2, 8, 32] {
                let heard = during_a_pause(workers, times, seed);
                let refused = heard.answers.iter().filter(|answer| answer.reason.is_some()).count();
                let latest = heard.answers.iter().map(Answer::response).fold(0.0, f64::max);
                let (deadline, pause) = (times.0 as f64, times.1);
                assert_eq!(refused, 0, "{workers} workers, {times:?}, {seed}");
                assert!(latest > pause && latest < 0.7 * deadline, "{latest}, {times:?}, {seed}");
            }
        }
    }
}

/// A request that comes while the server has stood still for more than a deadline is refused at once.
#[test]
fn a_pause_that_few_outlast_refuses_after_a_deadline() {
    for seed in 8625..=8628 {
        for workers in [2, 8, 32] {
            let heard = during_a_pause(workers, (2, 6.0), seed);
            let late = heard.missed(0, 2.0, (20.1, 23.1));
            let refused = refused(&heard, (23.1, 24.1));
            println!("{workers} workers: first {late:.3} late, then {refused:.3} refused");
            assert!(late > 0.8 && refused > 0.99, "{late}, {refused}, {workers}, {seed}");
        }
    }
}
