//! What a gateway has learned outlives its process: it is kept in a file, handed over in an upgrade, and left out where it does
//! not fit.

use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, two_levels};
use plimsoll_e2e::flows::{Flow, drive};
use plimsoll_e2e::{Plimsoll, SLOW_PAGES, get};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

fn state_of(gateway: &Plimsoll) -> PathBuf {
    gateway.file().with_extension("state")
}

fn read(file: &PathBuf) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("no state: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The measured time of a full page, as the state has it (s).
fn full(state: &Value) -> f64 {
    state["classes"][0]["levels"][1]["seconds"].as_f64().unwrap_or(0.0)
}

#[test]
fn what_was_learned_is_handed_over_kept_and_read_again() {
    let origin = SLOW_PAGES.origin(&[]);
    let text = before(origin.address(), &two_levels());
    let mut gateway = Plimsoll::run(&text);
    let flow = Flow::new("e2e.test", "/page", &[(3.0, 0.5 * SLOW_PAGES.capacity())]);
    drive(gateway.address, &[flow], Duration::from_secs(30), || {});
    let first = gateway.pid();
    gateway.upgrade();
    gateway.wait_for_end_of(first);
    assert!(gateway.process.log().contains("goes on from what an earlier run has learned"));
    // The new process has served nothing: what it keeps at its end is what it was handed.
    assert!(gateway.stop().success());
    let (file, own) = (state_of(&gateway), read(&state_of(&gateway)));
    let seconds = full(&own);
    assert!(seconds >= 0.19, "a full page takes 200 ms, longer on a busy machine: {own}");
    assert_eq!(own["version"], 1);
    // Another start reads it; a configuration with other levels leaves it out, and keeps the seed.
    let mut again = Plimsoll::run_again(&gateway, &text);
    assert!(
        again.process.log().contains("goes on from what an earlier run has learned"),
        "{}",
        again.process.log()
    );
    assert!(again.stop().success());
    let kept = read(&file);
    assert_eq!((full(&kept), &kept["seed"]), (seconds, &own["seed"]));
    let mut other = Plimsoll::run_again(&gateway, &text.replace("\"light\"", "\"lean\""));
    let left_out = "this is left out: class default of site site has other levels";
    assert!(other.process.log().contains(left_out), "{}", other.process.log());
    assert_eq!(get(other.address, "/page").status, 200);
    assert!(other.stop().success());
    assert_eq!(read(&file)["seed"], own["seed"]);
}

#[test]
fn a_state_that_is_none_ends_nothing() {
    let origin = SLOW_PAGES.origin(&[]);
    let text = before(origin.address(), &two_levels());
    let mut gateway = Plimsoll::run(&text);
    assert!(gateway.stop().success());
    fs::write(state_of(&gateway), "{\"version\":1,").expect("it can be written");
    let mut again = Plimsoll::run_again(&gateway, &text);
    assert!(
        again.process.log().contains("what an earlier run has learned is not used: "),
        "{}",
        again.process.log()
    );
    assert_eq!(get(again.address, "/page").status, 200);
    // What cannot be written is said once, and served on.
    let folder = state_of(&gateway);
    fs::remove_file(&folder).and_then(|()| fs::create_dir(&folder)).expect("it can be made a folder");
    again.process.signal(Signal::SIGHUP);
    again
        .process
        .wait_for("a complaint", |log| log.contains("a restart begins with nothing learned").then_some(()));
    assert_eq!(get(again.address, "/page").status, 200);
    assert!(again.stop().success());
}
