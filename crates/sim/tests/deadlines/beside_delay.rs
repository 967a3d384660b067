//! A class with a deadline beside one with a delay, which has a quota of the workers.

use crate::scene::{Flow, Kind, Scene, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

/// Both classes take 40 ms before eight workers.
fn scene(deadline: f64, (delay, target): (f64, u64), seed: u64) -> Scene {
    let kind = |path| vec![Kind::new(path, 1.0, ms(40), Law::Exponential)];
    let flows = vec![
        Flow::new("deadline", deadline, kind("/a")).within(Some(ms(500))).priority(1),
        Flow::new("delay", delay, kind("/b")).delay(ms(target)).priority(1),
    ];
    Scene::new(8, flows, 150.0, seed)
}

#[test]
fn what_a_quota_takes_is_not_promised_to_a_deadline() {
    for (deadline, delay) in [
        (200.0, (90.0, 80)),
        (200.0, (140.0, 80)),
        (60.0, (140.0, 80)),
        (150.0, (60.0, 60)),
        (200.0, (300.0, 200)),
    ] {
        for seed in 8201..=8202 {
            let scene = scene(deadline, delay, seed);
            let heard = scene.run();
            let span = (20.0, 145.0);
            let (missed, good) = (heard.missed(0, 0.5, span), heard.in_time(0, 0.5, span));
            let all: Vec<f64> =
                heard.of(1, 20.0).filter(|own| own.reason.is_none()).map(|own| own.response()).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let rate = all.len() as f64 / 130.0;
            let busy = crate::scene::mean(heard.busy[20..].iter().copied());
            let twin = Scene { mode: Mode::Off, ..scene }.run().missed(0, 0.5, span);
            println!(
                "{deadline}/s beside {delay:?}: missed {missed:.4}, in time {good:.3}, busy {busy:.3}, other's mean {mean:.4} at {rate:.0}/s; twin missed {twin:.3}"
            );
            assert!(missed <= 0.012, "{missed}");
        }
    }
}

/// Both have one priority, and the class with the deadline asks for twice the server. The deadline refuses what the server
/// cannot do in time, and the load rejected two fifths of the other class beside that.
#[test]
fn a_small_class_with_a_delay_is_not_rejected_for_what_a_deadline_takes() {
    for (within, seed) in [(500, 8211), (500, 8212), (2000, 8213)] {
        for swapped in [false, true] {
            let kind = |path| vec![Kind::new(path, 1.0, ms(50), Law::Exponential)];
            let mut flows = vec![
                Flow::new("deadline", 320.0, kind("/a")).within(Some(ms(within))),
                Flow::new("delay", 32.0, kind("/b")).delay(ms(150)),
            ];
            let (deadline, delay) = if swapped { (1, 0) } else { (0, 1) };
            if swapped {
                flows.reverse();
            }
            let scene = Scene::new(8, flows, 150.0, seed);
            let heard = scene.run();
            let span = (20.0, 145.0);
            let missed = heard.missed(deadline, ms(within).as_secs_f64(), span);
            let good = heard.in_time(deadline, ms(within).as_secs_f64(), span);
            let own = || heard.of(delay, 20.0);
            let refused = own().filter(|one| one.reason.is_some()).count() as f64 / own().count() as f64;
            let mean = crate::scene::mean(own().filter(|one| one.reason.is_none()).map(|one| one.response()));
            let twin = Scene { mode: Mode::Off, ..scene }.run().missed(deadline, 0.5, span);
            println!(
                "within {within} ms: missed {missed:.4}, in time {good:.3}; the delay's mean {mean:.4} s, refused {refused:.4}; twin missed {twin:.3}"
            );
            assert!(refused < 0.005 && (0.12..=0.152).contains(&mean), "{refused}, {mean}");
            assert!(missed <= 0.015 && good > 0.9 * (160.0 - 32.0) / 320.0, "{missed}, {good}");
        }
    }
}
