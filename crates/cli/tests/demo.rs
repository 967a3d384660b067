//! `plimsoll demo --json`: one object; in virtual time the server is held at its line and fails without the gateway. The same
//! two in real time have all their figures, and answers: how many depends on the machine.

mod support;

use serde_json::Value;
use std::process::Output;
use support::{binary, done, failed};

fn demo(arguments: &[&str]) -> Output {
    binary().arg("demo").args(arguments).output().expect("the binary runs")
}

#[test]
fn three_times_the_capacity_is_held_and_fails_without_the_gateway() {
    let output = demo(&["--seconds", "8", "--load", "3", "--capacity", "500", "--json"]);
    done(&output);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else");
    let sides = ["simulated", "uncontrolled", "simulated_uncontrolled"].map(|side| &report[side]);
    for side in sides.into_iter().chain([&report]) {
        check_figures(side);
    }
    for condition in ["capacity", "period_seconds", "seed", "seconds", "load", "cores"] {
        assert!(report["at"][condition].is_number(), "{condition} in {report}");
    }
    let [simulated, uncontrolled, simulated_uncontrolled] = sides;
    let mean = simulated["utilization"]["mean"].as_f64().expect("a number");
    assert!((0.75..=0.95).contains(&mean), "{report}");
    assert!(share_of_errors(simulated) <= 0.01, "{report}");
    assert!(simulated["responses"]["light"].as_u64() > simulated["responses"]["full"].as_u64(), "{report}");
    assert!(share_of_errors(simulated_uncontrolled) > 0.1, "{report}");
    assert_eq!(simulated_uncontrolled["settling_seconds"], Value::Null, "{report}");
    for live in [&report, uncontrolled] {
        let answers = &live["responses"];
        assert!(answers["light"].as_u64() > Some(0) || answers["full"].as_u64() > Some(0), "{report}");
    }
}

/// All figures of a side are there.
fn check_figures(side: &Value) {
    for figure in ["overshoot", "rejected", "errors", "changed_per_period", "bandwidth_ratio"] {
        assert!(side[figure].is_number(), "{figure} in {side}");
    }
    for (figure, parts) in [
        ("utilization", &["mean", "p5", "p95"][..]),
        ("responses", &["light", "full"]),
        ("latency_ms", &["p50", "p99"]),
    ] {
        assert!(parts.iter().all(|part| side[figure][part].is_number()), "{figure} in {side}");
    }
    assert!(side.get("settling_seconds").is_some(), "settling_seconds in {side}");
}

/// The part of all requests that ended in an error.
fn share_of_errors(side: &Value) -> f64 {
    let count = |value: &Value| value.as_f64().expect("a number");
    let errors = count(&side["errors"]);
    let rest =
        count(&side["rejected"]) + count(&side["responses"]["light"]) + count(&side["responses"]["full"]);
    errors / (errors + rest)
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_load() {
    let output = demo(&["--seconds", "3600", "--report", "no/such/report.html"]);
    failed(&output, 1, &["cannot write no/such/report.html"]);
}
