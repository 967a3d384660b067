//! AC 5.2: two priorities with half of the load each, then a load that fluctuates.

use crate::scene::{Flow, Heard, Scene, mean, mean_service, mix, ms};
use plimsoll_core::promises::Mode;

/// High and low at these loads.
fn shared(high: f64, low: f64, seed: u64) -> Scene {
    let rate = |load: f64| load / mean_service(&mix());
    let flows = vec![
        Flow::new("high", rate(high), mix()).priority(1),
        Flow::new("low", rate(low), mix()).priority(2),
    ];
    Scene::new(1, flows, 100.0, seed)
}

const JUDGED: (f64, f64) = (10.0, 98.0);

#[test]
fn high_gets_all_it_asks_and_low_the_rest() {
    for (each, least) in [(0.4, 0.98), (0.6, 0.6), (0.8, 0.18), (0.9, 0.06), (0.95, 0.02)] {
        let heard = shared(each, each, 3).run();
        let (high, low) = (heard.in_time(0, 1.0, JUDGED), heard.in_time(1, 1.0, JUDGED));
        let missed = [0, 1].map(|class| heard.missed(class, 1.0, JUDGED));
        let busy = mean(heard.busy[10..].iter().copied());
        println!("{each} each: high {high:.3}, low {low:.3}, missed {missed:?}, busy {busy:.3}");
        let rest = ((1.0 - each) / each).clamp(0.0, 1.0);
        // Where there is little over, the low ones are refused rather than made to wait in vain.
        assert!(high >= 0.999 && missed[0] == 0.0 && missed[1] <= 0.01, "{high} {missed:?}");
        assert!(low <= rest + 0.05 && low >= least, "{low} of {rest}");
        assert!(busy >= 0.93 * (2.0 * each).min(1.0), "{busy}");
    }
}

/// High: a fifth of the capacity, then all but a tenth of it, then a fifth again.
fn fluctuating(seed: u64) -> Scene {
    let mut scene = shared(0.2, 1.0, seed);
    let rate = |load: f64| load / mean_service(&mix());
    scene.flows[0] = scene.flows[0].clone().then(40.0, rate(0.9)).then(70.0, rate(0.2));
    scene
}

#[test]
fn a_load_that_fluctuates_is_followed_within_a_second() {
    for seed in 1..=3 {
        let heard = fluctuating(seed).run();
        let high = heard.in_time(0, 1.0, (40.0, 70.0));
        let (during, after) = (heard.in_time(1, 1.0, (42.0, 70.0)), heard.in_time(1, 1.0, (71.0, 98.0)));
        let missed = (heard.missed(1, 1.0, (0.0, 98.0)), heard.missed(1, 1.0, (42.0, 98.0)));
        println!("high {high:.3}; low {during:.3} during, {after:.3} after, missed {missed:?}");
        assert!(high >= 0.999, "{high}");
        assert!((0.05..0.15).contains(&during) && (0.8..0.9).contains(&after), "{during} {after}");
        assert!(missed.0 <= 0.02 && missed.1 <= 0.01, "{missed:?}");
        let twin = Scene { mode: Mode::Off, ..fluctuating(seed) }.run().in_time(0, 1.0, (40.0, 70.0));
        assert!(twin < 0.1, "the twin without control: {twin}");
    }
}

/// A shorter deadline beside a longer one in the same priority is not starved by it.
#[test]
fn a_shorter_deadline_of_the_same_priority_goes_first() {
    let mut scene = shared(0.3, 1.5, 2);
    scene.flows[1].priority = 1;
    scene.flows[0].deadline = Some(ms(500));
    let heard = scene.run();
    let (short, long) = (heard.in_time(0, 0.5, JUDGED), heard.in_time(1, 1.0, JUDGED));
    let missed = (heard.missed(0, 0.5, JUDGED), heard.missed(1, 1.0, JUDGED));
    println!("500 ms: {short:.3} in time; 1 s: {long:.3}; missed {missed:?}");
    assert!(
        short >= 0.99 && (0.5..=0.7).contains(&long) && missed.0 <= 0.001 && missed.1 <= 0.005,
        "{short} {long} {missed:?}"
    );
    let twin = Scene { mode: Mode::Off, ..scene }.run().in_time(0, 0.5, JUDGED);
    assert!(twin < 0.1, "the twin without control: {twin}");
}

/// The twin: no priorities that anybody keeps.
#[test]
fn the_twin_without_control_keeps_nothing_of_high() {
    let heard: Heard = Scene { mode: Mode::Off, ..shared(0.8, 0.8, 3) }.run();
    assert!(heard.in_time(0, 1.0, JUDGED) < 0.1);
}
