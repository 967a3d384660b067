//! Requests that hold their worker for longer than the others can wait, and nothing that they show says so: what is left of
//! a request that has been in service for long is not what its type takes on average.

use crate::scene::{Flow, Kind, Scene, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

/// One page in a hundred takes this long, the others 20 ms, before eight workers.
fn mixed(rate: f64, long: u64, seed: u64) -> Scene {
    let page =
        |weight, service| Kind::new("/page-*.html", weight, ms(service), Law::Lognormal { variation: 0.3 });
    let kinds = vec![page(99.0, 20), page(1.0, long)];
    Scene::new(8, vec![Flow::new("pages", rate, kinds).within(Some(ms(500)))], 200.0, seed)
}

#[test]
fn a_tail_beyond_the_deadline_makes_nobody_else_late() {
    for (rate, long) in [(80.0, 5000), (100.0, 5000), (200.0, 5000), (300.0, 2000)] {
        for seed in 8101..=8103 {
            let scene = mixed(rate, long, seed);
            let heard = scene.run();
            let (missed, good) = (heard.missed(0, 0.5, (20.0, 195.0)), heard.in_time(0, 0.5, (20.0, 195.0)));
            let twin = Scene { mode: Mode::Off, ..scene }.run().in_time(0, 0.5, (20.0, 195.0));
            println!("{rate}/s, {long} ms: missed {missed:.4}, in time {good:.3}, {twin:.3} without control");
            // One in a hundred is late by itself.
            assert!((0.005..=0.02).contains(&missed) && good > twin, "{missed} {good}");
        }
    }
}
