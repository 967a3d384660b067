//! Tests of the log's lines, with made-up statuses.

use super::*;
use plimsoll_core::promises::plan::{ContractRow, DelayRow, Feasibility, PlantPlan};
use plimsoll_core::promises::{Delay, Guarantee};
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::{ClassStatus, Counts, PlantStatus, ResponseStatus, SiteStatus};
use plimsoll_core::time::Duration;

/// The lines as a text log writes them.
impl EventLog {
    fn lines(&mut self, status: &Status) -> Vec<String> {
        self.look(status).iter().map(News::to_string).collect()
    }

    fn last_lines(&self, status: &Status) -> Vec<String> {
        self.end(status).iter().map(News::to_string).collect()
    }
}

fn loaded(seconds: u64, served: [u64; 2], rejected: u64) -> Status {
    let mut counts = Counts::default();
    counts.served[1..3].copy_from_slice(&served);
    counts.reasons[Reason::Overload as usize] = rejected;
    let levels = vec!["light".to_owned(), "full".to_owned()];
    let class = ClassStatus {
        site: "shop".to_owned(),
        class: "default".to_owned(),
        levels,
        counts,
        ..ClassStatus::default()
    };
    Status {
        rekey: None,
        at: Instant::ZERO + Duration::from_secs(seconds),
        mode: Mode::Control,
        period: Duration::from_secs(1),
        plants: vec![PlantStatus { name: "app".to_owned(), set_point: 0.85, ..PlantStatus::default() }],
        sites: Vec::new(),
        plan: Vec::new(),
        classes: vec![class],
        rejection_cost_seconds: None,
    }
}

#[test]
fn an_incident_has_a_line_at_its_start_one_a_minute_and_one_at_its_end_with_all_that_was() {
    let mut log = EventLog::default();
    let mut lines = |seconds, served, rejected| log.lines(&loaded(seconds, served, rejected));
    assert!(lines(1, [0, 100], 0).is_empty(), "calm is not worth a line");
    let began = lines(2, [80, 120], 0);
    assert!(
        began[0].starts_with(
            "shop/default: overload: 20 (20.0 %) full, 80 (80.0 %) degraded, 0 rejected, 0 failed; app's utilization"
        ),
        "{began:?}"
    );
    assert!(lines(2, [80, 120], 0).is_empty(), "the same period twice");
    assert!(lines(3, [160, 140], 7).is_empty(), "no line a second");
    assert!(lines(60, [200, 150], 8).is_empty());
    let minute = lines(61, [260, 150], 1000);
    assert!(
        minute[0]
            .starts_with("shop/default: overload for 60 s so far: 50 (3.8 %) full, 260 (19.8 %) degraded"),
        "{minute:?}"
    );
    assert!(minute[0].contains("1,000 (76.3 %) rejected for overload 1,000,"), "{minute:?}");
    assert!(lines(100, [260, 150], 190_000).is_empty());
    assert!(lines(109, [260, 400], 190_000).is_empty(), "not calm for long enough");
    let calm = lines(110, [260, 400], 190_000);
    assert_eq!(
        calm,
        [
            "shop/default: calm again after 99 s of overload: 50 (0.0 %) full, 260 (0.1 %) degraded, 190,000 (99.8 %) \
             rejected for overload 190,000, 0 failed; worst in the minute after 60 s: 189,000 rejected, 0 degraded"
        ]
    );
    assert!(lines(111, [260, 500], 190_000).is_empty());
    assert!(
        lines(112, [261, 510], 190_000)[0].contains("10 (90.9 %) full, 1 (9.1 %) degraded"),
        "calm is not counted in"
    );
}

#[test]
fn bursts_in_step_are_one_incident() {
    let mut log = EventLog::default();
    let mut said = Vec::new();
    for second in 1..=300 {
        // There are fifty rejections every five seconds.
        said.extend(log.lines(&loaded(second, [0, 100 * second], second / 5 * 50)));
    }
    let begun = said.iter().filter(|line| line.contains(": overload: ")).count();
    assert_eq!((begun, said.len()), (1, 5), "{said:?}");
    let end: Vec<String> =
        (301..320).flat_map(|second| log.lines(&loaded(second, [0, 40_000], 3000))).collect();
    assert!(end.len() == 1 && end[0].contains("3,000 (9.2 %) rejected"), "{end:?}");
}

/// Fifty-eight seconds of few rejections, a pause over the end of the minute, and many afterwards.
#[test]
fn a_minute_ends_after_a_minute_though_nothing_is_rejected_just_then() {
    let mut log = EventLog::default();
    let rejected = |second: u64| match second {
        0..=58 => 10 * second,
        59..=66 => 580,
        _ => 580 + 1000 * (second.min(80) - 66),
    };
    let said: Vec<_> =
        (1..=90).flat_map(|second| log.lines(&loaded(second, [0, 10], rejected(second)))).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[1].starts_with("shop/default: overload for 67 s so far: "),
        "once more is rejected: {said:?}"
    );
    assert!(said[2].contains("calm again after 80 s"), "{said:?}");
    assert!(said[2].ends_with("worst in the minute after 60 s: 14,000 rejected, 0 degraded"), "{said:?}");
}

#[test]
fn a_stop_ends_an_incident_with_all_that_was() {
    let mut log = EventLog::default();
    assert!(log.last_lines(&loaded(1, [0, 100], 0)).is_empty(), "calm");
    for second in 1..=100 {
        log.lines(&loaded(second, [0, 100], 7 * second));
    }
    assert_eq!(
        log.last_lines(&loaded(100, [0, 100], 700)),
        [
            "shop/default: stopped after 100 s of overload: 100 (12.5 %) full, 0 degraded, 700 (87.5 %) rejected for \
             overload 700, 0 failed; worst in the minute after 0 s: 420 rejected, 0 degraded"
        ]
    );
    (101..120).for_each(|second| drop(log.lines(&loaded(second, [0, 100], 700))));
    assert!(log.last_lines(&loaded(120, [0, 100], 700)).is_empty(), "it is over");
}

#[test]
fn incidents_are_listed_the_latest_first_and_a_hundred_at_most() {
    let list = Arc::<Mutex<Incidents>>::default();
    let mut log = EventLog::new(list.clone());
    let listed = || -> serde_json::Value {
        serde_json::from_str(&list.lock().expect("no test failed").json()).expect("it is JSON")
    };
    assert_eq!(listed()["incidents"], serde_json::json!([]));
    for number in 1..=120 {
        let rejected = 10 * number;
        log.lines(&loaded(20 * number, [0, 100 * number], rejected));
        let now = &listed()["incidents"][0];
        assert_eq!((&now["is_over"], &now["rejected"]), (&false.into(), &10.into()), "{now}");
        log.lines(&loaded(20 * number + 11, [0, 100 * number], rejected));
    }
    let incidents = &listed()["incidents"];
    assert_eq!(incidents.as_array().map(Vec::len), Some(100));
    let latest = &incidents[0];
    let page = include_str!("../../../../../docs/admin.md");
    let described =
        page.split("## Incidents").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    for key in latest.as_object().into_iter().flat_map(|incident| incident.keys()) {
        assert!(described.contains(&format!("`{key}`")), "docs/admin.md does not describe {key}");
    }
    assert_eq!((&latest["site"], &latest["is_over"]), (&"shop".into(), &true.into()), "{latest}");
    assert_eq!(latest["reasons"], serde_json::json!({ "overload": 10 }), "{latest}");
    assert!(latest["began_unix_seconds"].as_u64() > Some(1_600_000_000), "{latest}");
}

/// A controller that goes on with a state has the counts of those before it, and the machine's clock.
#[test]
fn what_was_counted_before_the_loops_began_is_no_incident() {
    let day = 86_400;
    let list = Arc::<Mutex<Incidents>>::default();
    let mut log = EventLog::going_on(list.clone(), &loaded(day, [10_762, 3110], 40));
    let mut said = Vec::new();
    for second in 0..30 {
        said.extend(log.lines(&loaded(day + second, [10_762, 3110 + second], 40)));
    }
    assert_eq!(said, [""; 0], "nothing has happened");
    assert!(log.last_lines(&loaded(day + 30, [10_762, 3140], 40)).is_empty());
    let began = log.lines(&loaded(day + 31, [10_763, 3140], 41));
    assert!(
        began[0].contains("overload: 1 (33.3 %) full, 1 (33.3 %) degraded, 1 (33.3 %) rejected"),
        "{began:?}"
    );
    assert!(began[0].contains("app's utilization is 0.00"), "{began:?}");
    let listed = list.lock().expect("no test failed").json();
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("it is JSON");
    assert!(listed["incidents"][0]["seconds"].as_f64() <= Some(2.0), "{listed}");
    let calm = log.lines(&loaded(day + 60, [10_763, 3140], 41));
    assert!(calm.len() == 1 && calm[0].contains("calm again after 2 s of overload"), "{calm:?}");

    let mut log = EventLog::going_on(list, &loaded(day, [10, 10], 0));
    let early = log.lines(&loaded(day + 1, [20, 10], 0));
    assert!(early[0].contains("not measured yet"), "its first period: {early:?}");
}

/// After an upgrade under load, the new process goes on at the levels of the old one before it has measured anything.
#[test]
fn before_the_first_period_no_utilization_is_logged() {
    let early = Status { at: Instant::ZERO + Duration::from_millis(100), ..loaded(1, [5, 5], 0) };
    let lines = EventLog::default().lines(&early);
    assert!(lines[0].contains("app's utilization is not measured yet, its load line 0.85"), "{lines:?}");
}

#[test]
fn observing_says_what_would_have_been() {
    let observed = Status { mode: Mode::Observe, ..loaded(1, [5, 5], 1) };
    let lines = EventLog::default().lines(&observed);
    assert!(lines[0].contains("5 (45.5 %) would be degraded, 1 (9.1 %) would be rejected"), "{lines:?}");
}

#[test]
fn costs_that_moved_make_a_warning_with_the_table_once() {
    let with = |seconds, sum: f64| {
        let row = ContractRow {
            site: "shop".to_owned(),
            guarantee: Guarantee::new(100.0, 1e6),
            utilization: Some(sum),
        };
        let verdict = if sum > 0.85 { Feasibility::Exceeds } else { Feasibility::Fits };
        let rows = vec![row];
        let plan =
            PlantPlan { plant: "app".to_owned(), ceiling: 0.85, sum, verdict, rows, ..PlantPlan::default() };
        Status { plan: vec![plan], ..loaded(seconds, [0, 10], 0) }
    };
    let mut log = EventLog::default();
    assert!(log.lines(&with(1, 0.8)).is_empty());
    let warning = log.lines(&with(2, 0.9)).join("\n");
    for part in ["app: with the costs as they are now", "shop", "0.900 of 0.850", "would fit"] {
        assert!(warning.contains(part), "no {part:?} in\n{warning}");
    }
    assert!(log.lines(&with(3, 0.9)).is_empty(), "said once");
    assert!(log.lines(&with(4, 0.845)).is_empty(), "hardly below the ceiling");
    assert_eq!(log.lines(&with(5, 0.7)), ["app: what is guaranteed fits again"]);
}

fn class(name: &str, response: ResponseStatus) -> ClassStatus {
    ClassStatus {
        site: "shop".to_owned(),
        class: name.to_owned(),
        levels: vec!["full".to_owned()],
        response: Some(response),
        ..ClassStatus::default()
    }
}

fn held(late: f64, missed: bool) -> ResponseStatus {
    ResponseStatus { quota: Some(2.5), response: 0.1, late, missed, ..ResponseStatus::default() }
}

/// A shop of 8 workers whose premium class has a delay.
fn status(classes: Vec<ClassStatus>) -> Status {
    let row = DelayRow {
        site: "shop".to_owned(),
        class: "premium".to_owned(),
        delay: Delay { target: Duration::from_millis(200), percentile: Some(95.0) },
        rate: Some(100.0),
        service_seconds: Some(0.04),
        least_seconds: Some(0.1),
        fitting_rate: None,
        yields: false,
    };
    Status {
        plants: vec![PlantStatus { name: "app".to_owned(), workers: 8, ..PlantStatus::default() }],
        sites: vec![SiteStatus { name: "shop".to_owned(), ..SiteStatus::default() }],
        plan: vec![PlantPlan { plant: "app".to_owned(), delays: vec![row], ..PlantPlan::default() }],
        classes,
        ..loaded(0, [0, 0], 0)
    }
}

/// The lines of this number of looks, a period apart.
fn looks(log: &mut EventLog, status: &Status, looks: u32) -> Vec<String> {
    let look = |_| {
        let at = log.last + Duration::from_secs(1);
        log.lines(&Status { at, ..status.clone() })
    };
    (0..looks).flat_map(look).collect()
}

#[test]
fn a_missed_promise_is_logged_at_once_and_kept_again_when_it_stands() {
    let mut log = EventLog::default();
    let mut lines =
        |late, missed, many| looks(&mut log, &status(vec![class("premium", held(late, missed))]), many);
    assert!(lines(0.04, false, 20).is_empty(), "a promise that is kept is not worth a line");
    assert_eq!(
        lines(0.124, true, 20),
        [
            "shop/premium: promise missed: 95 % within 200 ms; lately 12.4 % took longer, with 2.5 of 8 workers"
        ]
    );
    assert!(lines(0.06, false, STEADY - 1).is_empty(), "not yet");
    assert!(lines(0.07, true, 3).is_empty(), "it was not said that it is kept");
    assert_eq!(
        lines(0.05, false, 20),
        ["shop/premium: promise kept again: 95 % within 200 ms; lately 5.0 % took longer"]
    );
    assert_eq!(lines(0.08, true, 20).len(), 1, "and missed anew");
}

#[test]
fn a_promise_that_is_taken_back_is_neither_missed_nor_kept() {
    let mut log = EventLog::default();
    assert_eq!(looks(&mut log, &status(vec![class("premium", held(0.2, true))]), 3).len(), 1);
    let taken = Status { plan: Vec::new(), ..status(vec![class("premium", held(0.0, false))]) };
    assert!(looks(&mut log, &taken, 10).is_empty());
    assert_eq!(looks(&mut log, &status(vec![class("premium", held(0.2, true))]), 3).len(), 1);
}

#[test]
fn a_ratio_is_logged_once_for_its_site_when_it_stands() {
    let mut log = EventLog::default();
    let ratio = |response, infeasible| ResponseStatus {
        response,
        infeasible,
        weight: Some(1.0),
        ..ResponseStatus::default()
    };
    let mut lines = |infeasible, many| {
        let classes = vec![class("gold", ratio(0.05, infeasible)), class("plain", ratio(0.07, infeasible))];
        looks(&mut log, &status(classes), many)
    };
    assert!(lines(false, 9).is_empty());
    assert!(lines(true, STEADY - 1).is_empty() && lines(false, 1).is_empty(), "it wavers");
    assert_eq!(
        lines(true, 9),
        ["shop: the ratio of response times cannot be had at this load: gold 50 ms, plain 70 ms"]
    );
    assert!(lines(false, 9)[0].contains("can be had again"));
}

#[test]
fn workers_are_logged_when_they_were_found_and_when_they_are_others() {
    let mut log = EventLog::default();
    let mut lines = |workers, found, many| {
        let mut status = status(Vec::new());
        (status.plants[0].workers, status.plants[0].workers_found) = (workers, found);
        looks(&mut log, &status, many)
    };
    assert!(lines(16, Some(false), 9).is_empty(), "being looked for");
    assert_eq!(lines(8, Some(true), 9), ["app: works on 8 requests at once, as its throughput shows"]);
    assert!(lines(12, Some(true), STEADY - 1).is_empty() && lines(8, Some(true), 9).is_empty());
    assert!(lines(10, Some(true), 20).is_empty(), "two more are no news");
    assert_eq!(lines(4, Some(true), 9), ["app: works on 4 requests at once now, 8 before"]);
    assert!(lines(12, None, 9).is_empty(), "the operator configured it");
}

#[test]
fn learned_costs_that_break_a_planned_delay_are_a_warning_with_the_table_once() {
    let mut log = EventLog::default();
    let mut lines = |least, many| {
        let mut status = status(Vec::new());
        status.plan[0].delays[0].least_seconds = Some(least);
        looks(&mut log, &status, many)
    };
    assert!(lines(0.19, 3).is_empty());
    let warning = lines(0.25, 3);
    assert_eq!(warning.len(), 1, "{warning:?}");
    for part in ["app: with the costs", "shop premium", "250 ms", "app: these delays cannot be kept"] {
        assert!(warning[0].contains(part), "no {part:?} in\n{}", warning[0]);
    }
    assert!(lines(0.195, 3).is_empty(), "hardly below what was promised");
    assert_eq!(lines(0.1, 3), ["app: the delays that were promised can be kept again"]);
}
