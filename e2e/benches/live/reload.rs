//! Promises that change under load: what is degraded before and after (in virtual time:
//! `crates/core/tests/engine/reload_contracts.rs`).

use super::row;
use plimsoll_e2e::reloaded::Reloaded;

pub(super) fn show() {
    println!("promises that change under load");
    let changed = ["V1, whose contract becomes wider", "V2, which becomes a site"];
    for ((before, after), what) in Reloaded::run().degraded().into_iter().zip(changed) {
        row(&format!("{what}: degraded"), before, "-", "about half, or all");
        row("  after the change", after, "-", "next to nothing");
    }
}
