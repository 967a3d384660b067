//! Types that are in time alone more often than not, but not as often as is usual.

use crate::scene::{Flow, Kind, Scene, mean, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

/// Reports of 600 ms and priority 1 beside twice what four workers can do of requests that were promised nothing.
fn premium(rate: f64, service: u64, seed: u64) -> Scene {
    let report = Kind::new("/report-*", 1.0, ms(600), Law::Exponential);
    let page = Kind::new("/page-*", 1.0, ms(service), Law::Exponential);
    let pages = Flow::new("pages", 8.0 / (0.001 * service as f64), vec![page]).within(None).priority(2);
    Scene::new(4, vec![Flow::new("reports", rate, vec![report]).priority(1), pages], 150.0, seed)
}

#[test]
fn a_request_with_an_even_chance_does_not_wait_for_lower_priorities() {
    for (rate, service) in [(1.0, 40), (2.5, 40), (1.0, 400)] {
        for seed in 8301..=8303 {
            let scene = premium(rate, service, seed);
            let heard = scene.run();
            let good = heard.in_time(0, 1.0, (20.0, 145.0));
            let others = heard.in_time(1, 1.0, (20.0, 145.0));
            let twin = Scene { mode: Mode::Off, ..scene }.run().in_time(0, 1.0, (20.0, 145.0));
            println!("{rate}/s beside {service} ms: in time {good:.3}, others {others:.3}, twin {twin:.3}");
            assert!((0.6..0.82).contains(&good) && twin < 0.1, "{good}, without control {twin}");
        }
    }
}

/// Four fifths are in time alone, and three fifths are promised.
#[test]
fn a_promise_that_is_easy_to_keep_refuses_nobody_for_his_cost() {
    for (in_time, seed) in [(60.0, 8311), (60.0, 8312), (75.0, 8313)] {
        let page = Kind::new("/page-*", 1.0, ms(310), Law::Exponential);
        let flow = Flow::new("all", 16.0 / 0.31, vec![page]).within(Some(ms(500)));
        let mut scene = Scene::new(8, vec![flow], 130.0, seed);
        scene.site.in_time = in_time;
        let heard = scene.run();
        let (missed, busy) = (heard.missed(0, 0.5, (10.0, 129.0)), mean(heard.busy[10..].iter().copied()));
        println!("in time {in_time}: missed {missed:.3}, busy {busy:.3}");
        assert!(busy >= 0.9 && missed <= 1.05 * (1.0 - in_time / 100.0) + 0.02, "{missed} {busy}");
    }
}

/// Two classes, of which the one with the short deadline sends nothing of the type that became cheap again.
#[test]
fn a_type_is_tried_again_by_the_deadline_of_those_who_send_it() {
    for (deadline, seed) in [(2000, 8321), (2000, 8322), (1500, 8323)] {
        let page = Kind::new("/page-*", 1.0, ms(5), Law::Exponential);
        let report = Kind::new("/report-*", 1.0, ms(500), Law::Lognormal { variation: 0.1 });
        let flows = vec![
            Flow::new("pages", 20.0, vec![page]).within(Some(ms(50))).priority(1),
            Flow::new("reports", 0.5, vec![report]).within(Some(ms(deadline))).priority(2),
        ];
        let mut scene = Scene::new(1, flows, 400.0, seed);
        scene.slow((60.0, 120.0), 8.0);
        let heard = scene.run();
        let limit = deadline as f64 * 1e-3;
        let [before, soon] = [(10.0, 59.0), (220.0, 390.0)].map(|span| heard.in_time(1, limit, span));
        println!("{deadline} ms: {before:.3} in time before, {soon:.3} soon after");
        assert!(before >= 0.85 && soon >= 0.7, "{before} {soon}");
    }
}
