//! What the profiler finds of a server whose costs are known (in virtual time: `crates/load/src/profile/virtual_time.rs`).

use super::row;
use plimsoll_e2e::Plimsoll;
use plimsoll_load::{Cost, Origin, OriginSettings};
use serde_json::Value;
use std::time::Duration;

/// The time of one worker for each request that finds no room.
const REFUSAL: Duration = Duration::from_millis(8);

/// UC 7.5, Fig. 11: above its highest rate a server spends time on the requests that it fails, and answers fewer for it.
pub(super) fn show() {
    println!("the profiler, a server that spends time on failures (UC 7.5)");
    let cost = Cost::constant(Duration::from_millis(32));
    let settings = OriginSettings { queue: 32, cost, refusal: REFUSAL, ..OriginSettings::default() };
    let workers = f64::from(settings.workers);
    let Ok(origin) = Origin::start(settings) else { return println!("  no port is free") };
    let page = format!("http://{}/page", origin.address());
    let output =
        Plimsoll::output(&["profile", &page, "--seconds-per-size", "4", "--clients", "32", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let figure = |name: &str| found["overload"][name].as_f64().unwrap_or(f64::NAN);
    row(
        "T_f, of the true one",
        figure("failure_seconds") * workers / REFUSAL.as_secs_f64(),
        "-",
        "0.85 to 1.15",
    );
    row("answered, of what was offered", figure("answered") / figure("offered"), "-", "0.28 to 0.38");
}
