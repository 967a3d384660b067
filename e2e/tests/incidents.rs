//! What the log and `/incidents` say of an overload, against what was counted.

use plimsoll_e2e::{Plimsoll, answering, get};
use std::thread;
use std::time::Duration;

/// An incident is over ten seconds after its last rejection.
const CALM: Duration = Duration::from_secs(10);
/// Requests at once, of which a server with a single place turns most away: ten wait at most.
const BURST: usize = 60;

/// A gateway before a server that answers each request after 50 ms.
fn gateway() -> Plimsoll {
    let address = answering(|_| {
        thread::sleep(Duration::from_millis(50));
        "page"
    });
    Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\n\
         [upstream.app]\naddress = \"{address}\"\nmax_waiting = 10\ncapacity = {{ workers = 1 }}\n\n\
         [[site]]\nname = \"shop\"\n"
    ))
}

/// So many requests at once; how many were turned away.
fn burst(gateway: &Plimsoll) -> u64 {
    let address = gateway.address;
    let clients: Vec<_> = (0..BURST).map(|_| thread::spawn(move || get(address, "/").status)).collect();
    let answers: Vec<u16> = clients.into_iter().map(|client| client.join().expect("an answer")).collect();
    assert!(answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");
    answers.into_iter().filter(|status| *status == 503).count() as u64
}

fn listed(gateway: &Plimsoll) -> serde_json::Value {
    let answer = gateway.ask_admin("/incidents");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    serde_json::from_str(&answer.text()).expect("it is JSON")
}

/// The number before `what` in a line of the log.
fn told(line: &str, what: &str) -> Option<u64> {
    let before = line.split(what).next()?.trim_end();
    // `12 (3.4 %) rejected`: the number stands before its share.
    let before = before.rsplit_once(" (").map_or(before, |(before, _)| before);
    before.rsplit([' ', ',']).next()?.replace(',', "").parse().ok()
}

/// Bursts until something is rejected and told: the line at the end, the list and the counters have the same totals, which
/// are what clients saw. A burst that a stop cuts short has its line too.
#[test]
fn the_log_the_list_and_the_counters_tell_what_clients_saw() {
    let mut gateway = gateway();
    assert_eq!(listed(&gateway)["incidents"], serde_json::json!([]));
    let rejected = burst(&gateway);
    assert!(rejected > 0, "ten wait at most");
    let line = gateway.process.wait_for("the end of the incident", |log| {
        log.lines().find(|line| line.contains("calm again after")).map(str::to_owned)
    });
    assert_eq!(told(&line, " rejected"), Some(rejected), "{line}");
    let incidents = listed(&gateway);
    let over = &incidents["incidents"][0];
    assert_eq!((&over["rejected"], &over["is_over"]), (&rejected.into(), &true.into()), "{incidents}");
    let reasons = over["reasons"].as_object().expect("by reason");
    let metrics = gateway.ask_admin("/metrics").text();
    let mut by_reason = 0;
    for (reason, count) in reasons {
        let counted = format!("class=\"default\",reason=\"{reason}\"}} {count}\n");
        assert!(metrics.contains(&counted), "no {counted} in\n{metrics}");
        assert!(line.contains(&format!("{reason} {count}")), "{line}");
        by_reason += count.as_u64().unwrap_or(0);
    }
    assert_eq!(by_reason, rejected, "{incidents}");

    let again = burst(&gateway);
    gateway
        .process
        .wait_for("the second incident", |log| (log.matches(": overload: ").count() == 2).then_some(()));
    assert!(gateway.stop().success());
    let log = gateway.process.log();
    let line = log
        .lines()
        .find(|line| line.contains("stopped after "))
        .unwrap_or_else(|| panic!("no end in\n{log}"));
    assert_eq!(told(line, " rejected"), Some(again), "{line}");
    assert!(log.matches("calm again after").count() == 1, "within {CALM:?}: {log}");
}
