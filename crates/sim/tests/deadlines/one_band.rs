//! Several deadlines, or several sites, within one priority.

use crate::scene::{Flow, Kind, Scene, mean, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

/// Icons that ask for half more than one worker has, and reports of 300 ms, at one site or at two.
fn icons_and_reports(site: usize, seed: u64) -> Scene {
    let icon = Kind::new("/icon-*.png", 1.0, ms(2), Law::Lognormal { variation: 0.3 });
    let report = Kind::new("/report-*", 1.0, ms(300), Law::Lognormal { variation: 0.1 });
    let flows =
        vec![Flow::new("icons", 750.0, vec![icon]), Flow::new("reports", 0.5, vec![report]).at_site(site)];
    Scene::new(1, flows, 250.0, seed)
}

#[test]
fn room_is_kept_for_the_dearest_type_of_a_priority_wherever_it_is() {
    let span = (20.0, 245.0);
    let good = [0, 1].map(|site| {
        let all = (8401..=8404).map(|seed| {
            let heard = icons_and_reports(site, seed).run();
            // The first site has the classes `default` and `exempt` after its icons.
            let [icons, reports] = [0, 1 + 2 * site].map(|class| heard.in_time(class, 1.0, span));
            let missed = heard.missed(0, 1.0, span);
            println!(
                "site {site}: reports in time {reports:.3}, icons {icons:.3}, of which missed {missed:.4}"
            );
            assert!(missed <= 0.02, "{missed}");
            reports
        });
        mean(all)
    });
    assert!(good[1] >= 0.3 && (good[1] - good[0]).abs() <= 0.2, "{good:?}");
}

/// One worker and requests of 10 ms, of which those with the short deadline ask for more than there is.
fn two_deadlines((short, at): (u64, f64), (long, rate): (u64, f64), seed: u64) -> Scene {
    let kind = |path| vec![Kind::new(path, 1.0, ms(10), Law::Exponential)];
    let flows = vec![
        Flow::new("short", 100.0 * at, kind("/a")).within(Some(ms(short))).priority(1),
        Flow::new("long", 100.0 * rate, kind("/b")).within(Some(ms(long))).priority(1),
    ];
    Scene::new(1, flows, 300.0, seed)
}

#[test]
fn a_longer_deadline_of_the_same_priority_is_not_locked_out() {
    for (short, long) in [((500, 1.5), (5000, 0.3)), ((300, 2.0), (2000, 0.2)), ((500, 0.6), (5000, 0.3))] {
        for seed in 8411..=8413 {
            let scene = two_deadlines(short, long, seed);
            let heard = scene.run();
            let limits = [short.0 as f64 * 1e-3, long.0 as f64 * 1e-3];
            let span = (60.0, 290.0);
            let good = [0, 1].map(|class| heard.in_time(class, limits[class], span));
            let missed = [0, 1].map(|class| heard.missed(class, limits[class], span));
            let twin = Scene { mode: Mode::Off, ..scene }.run().in_time(1, limits[1], span);
            println!("{short:?} {long:?}: {good:.3?} missed {missed:.4?}; twin {twin:.3}");
            assert!(missed[0] <= 0.012 && missed[1] <= 0.012, "{missed:?}");
            assert!(good[1] >= 0.5, "{good:?}");
        }
    }
}
