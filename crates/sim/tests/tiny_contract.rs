//! A site that may not take the excess, and has a contract for next to nothing of what it sends.

use crate::waits::{Flow, Scene};
use plimsoll_core::promises::Guarantee;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9501..=9506;
const SECONDS: f64 = 120.0;
const OFFERED: f64 = 100.0;

/// How many were served in the first second, and after ten, of each seed.
fn served(rate: f64, shares: bool) -> Vec<[usize; 2]> {
    SEEDS.map(|seed| served_of(seed, rate, shares)).collect()
}

fn served_of(seed: u64, rate: f64, shares: bool) -> [usize; 2] {
    let flows = vec![Flow::new("default", OFFERED)];
    let mut scene = Scene::new(8, Duration::from_millis(40), flows, SECONDS, seed);
    scene.plant.set_point = 0.85;
    scene.site.share_excess = shares;
    let bandwidth_bytes_per_second = None;
    scene.site.guarantee = Some(Guarantee { rate, bandwidth_bytes_per_second, burst: Guarantee::BURST });
    let heard = scene.run();
    let between = |from: f64, until: f64| {
        let own = heard.answers.iter().filter(|answer| answer.completed);
        own.filter(|answer| (from..until).contains(&answer.arrived)).count()
    };
    [between(0.0, 1.0), between(10.0, SECONDS)]
}

/// In the first control period nothing is known of what a request costs, so nobody is rejected. From then on the site has what
/// its contract is for.
#[test]
fn a_site_that_takes_no_excess_is_served_its_contract_but_for_the_first_period() {
    for (rate, least, most) in
        [(0.01, 0, 5), (0.1, 6, 18), (1.0, 95, 125), (2.0, 190, 245), (10.0, 1100, 1320)]
    {
        let served = served(rate, false);
        println!("{rate}/s of {OFFERED}/s: in the first second, and after ten: {served:?}");
        let at_first = served.iter().map(|[at_first, _]| at_first).sum::<usize>() / served.len();
        assert!((90..=115).contains(&at_first), "{at_first}");
        for [_, later] in served {
            assert!((least..=most).contains(&later), "{rate}/s: {later}");
        }
    }
    // The twin that takes the excess is served all, since the server carries it.
    for [_, later] in served(10.0, true) {
        assert!(later as f64 > 0.98 * OFFERED * (SECONDS - 10.0), "{later}");
    }
}
