//! Promised response times in the document and in the metrics.

use super::*;
use plimsoll_core::promises::Delay;
use plimsoll_core::promises::plan::DelayRow;
use plimsoll_core::telemetry::status::{DelayTerms, LimitReason, ResponseStatus};

/// A class with a delay, two with a ratio, one with nothing; an upstream whose workers were found.
fn promised() -> Status {
    let delay = ResponseStatus {
        quota: Some(2.5),
        response: 0.125,
        late: 0.0625,
        missed: true,
        at_limit: true,
        law: Some(DelayTerms { predicted: 2.0, error: 0.25, gain: 1.5, integral: 0.125 }),
        ..ResponseStatus::default()
    };
    let ratio = |response, weight| ResponseStatus {
        response,
        infeasible: true,
        ratio: Some(2.0),
        ratio_reached: Some(20.0 * response),
        weight: Some(weight),
        ..ResponseStatus::default()
    };
    let class = |class: &str, response| ClassStatus {
        site: "shop".to_owned(),
        class: class.to_owned(),
        levels: vec!["full".to_owned()],
        response,
        ..ClassStatus::default()
    };
    let row = DelayRow {
        site: "shop".to_owned(),
        class: "premium".to_owned(),
        delay: Delay { target: Duration::from_millis(200), percentile: Some(95.0) },
        rate: Some(100.0),
        service_seconds: Some(0.04),
        least_seconds: Some(f64::INFINITY),
        fitting_rate: Some(80.0),
        yields: false,
    };
    let mut status = sample();
    status.plants[0].workers_found = Some(true);
    status.plants[0].limit_reason = Some(LimitReason::Refusals);
    status.classes = vec![
        class("premium", Some(delay)),
        class("gold", Some(ratio(0.1, 1.5))),
        class("plain", Some(ratio(0.15, 0.5))),
        class("default", None),
    ];
    status.plan = vec![PlantPlan { plant: "origin".to_owned(), delays: vec![row], ..PlantPlan::default() }];
    status
}

#[test]
fn the_document_says_what_was_promised_and_how_it_is_kept() {
    let text = status_line(&promised());
    for part in [
        "\"workers\":8,\"workers_found\":true,\"limit\":8,\"limit_reason\":\"refusals\",",
        // The least delay is infinite if the delay cannot be kept at all.
        "\"delays\":[{\"site\":\"shop\",\"class\":\"premium\",\"delay_seconds\":0.2,\"percentile\":95.0,\
         \"requests_per_second\":100.0,\"service_seconds\":0.04,\"least_seconds\":null,\
         \"fitting_requests_per_second\":80.0,\"verdict\":\"exceeds\"}]",
        "\"promise\":{\"delay_seconds\":0.2,\"percentile\":95.0,\"quota\":2.5,\"mean_seconds\":0.125,\
         \"late_share\":0.0625,\"lost_share\":0.0,\"missed\":true,\"at_limit\":true,\"law\":{\"predicted_workers\":2.0,\"error\":0.25,\
         \"workers_per_error\":1.5,\"integral_workers\":0.125},\"infeasible\":false,\"ratio\":null,\"ratio_reached\":null,\"weight\":null}",
        "\"promise\":{\"delay_seconds\":null,\"percentile\":null,\"quota\":null,\"mean_seconds\":0.15,\
         \"late_share\":null,\"lost_share\":null,\"missed\":false,\"at_limit\":false,\"law\":null,\"infeasible\":true,\"ratio\":2.0,\"ratio_reached\":3.0,\"weight\":0.5}",
        "\"promise\":null",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn each_promise_has_the_metrics_that_concern_it() {
    let text = render_metrics(&promised());
    let (_, series) = exposition::lint(&text).unwrap();
    for expected in [
        "plimsoll_workers_found{upstream=\"origin\"} 1.0",
        "plimsoll_promised_delay_seconds{site=\"shop\",class=\"premium\"} 0.2",
        "plimsoll_planned_delay_seconds{site=\"shop\",class=\"premium\"} +Inf",
        "plimsoll_quota_workers{site=\"shop\",class=\"premium\"} 2.5",
        "plimsoll_window_response_time_seconds{site=\"shop\",class=\"premium\"} 0.125",
        "plimsoll_window_response_time_seconds{site=\"shop\",class=\"plain\"} 0.15",
        "plimsoll_late_ratio{site=\"shop\",class=\"premium\"} 0.0625",
        "plimsoll_promise_missed{site=\"shop\",class=\"premium\"} 1.0",
        "plimsoll_quota_at_limit{site=\"shop\",class=\"premium\"} 1.0",
        "plimsoll_ratio_infeasible{site=\"shop\",class=\"gold\"} 1.0",
        "plimsoll_promised_ratio{site=\"shop\",class=\"gold\"} 2.0",
        "plimsoll_reached_ratio{site=\"shop\",class=\"plain\"} 3.0",
        "plimsoll_weight{site=\"shop\",class=\"gold\"} 1.5",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\nis not in\n{text}");
    }
    let of = |family: &str| series.iter().filter(|one| one.starts_with(&format!("{family}{{"))).count();
    assert_eq!(
        [
            "plimsoll_quota_workers",
            "plimsoll_promise_missed",
            "plimsoll_weight",
            "plimsoll_ratio_infeasible",
            "plimsoll_window_response_time_seconds",
        ]
        .map(of),
        [1, 1, 2, 2, 3]
    );
}
