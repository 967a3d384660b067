//! A site that may not take the excess, and has a contract for next to nothing of what it sends.

use crate::waits::{Flow, Scene};
use plimsoll_core::promises::Guarantee;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEED: u64 = 9501;
const SECONDS: f64 = 120.0;
const OFFERED: f64 = 100.0;

/// How many were served in the first second, and after ten.
fn served(rate: f64, shares: bool) -> [usize; 2] {
    let flows = vec![Flow::new("default", OFFERED)];
    let mut scene = Scene::new(8, Duration::from_millis(40), flows, SECONDS, SEED);
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
    for (rate, least, most) in [(0.01, 0, 5), (1.0, 60, 170), (10.0, 1100, 1320)] {
        let [at_first, later] = served(rate, false);
        println!("{rate}/s of {OFFERED}/s: {at_first} in the first second, {later} after ten");
        assert!((80..120).contains(&at_first), "{at_first}");
        assert!((least..=most).contains(&later), "{rate}/s: {later}");
    }
    // The twin that takes the excess is served all, since the server carries it.
    let [_, later] = served(10.0, true);
    assert!(later as f64 > 0.98 * OFFERED * (SECONDS - 10.0), "{later}");
}
