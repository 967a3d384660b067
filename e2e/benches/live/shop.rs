//! A site of photos at three times the capacity of its server, with its lighter trees and without control: how many visits
//! fail (in virtual time: the first scene of `e2e/src/scenes/list.rs`, which `e2e/tests/scenes.rs` judges).

use super::row;
use plimsoll_e2e::site::{SETTLED, Shop, VISITS, Visit, WORKERS, before_trees, failed, visits};
use plimsoll_e2e::{Apache, Plimsoll};

pub(super) fn show() {
    println!("a shop of photos at three times the capacity, its trees by `plimsoll adapt`");
    let shop = Shop::adapted(&[]);
    for (mode, asked) in [("control", "less than off"), ("off", "-")] {
        let apache = Apache::serving(&shop.trees(), WORKERS);
        let gateway = Plimsoll::run(&before_trees(apache.upstream, mode));
        let all = visits(gateway.address, VISITS);
        let settled: Vec<&Visit> =
            all.iter().filter(|(due, _)| *due >= SETTLED).map(|(_, visit)| visit).collect();
        row(&format!("visits that failed, {mode}"), failed(&settled), "-", asked);
    }
}
