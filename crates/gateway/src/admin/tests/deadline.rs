//! Deadlines in the document and in the metrics.

use super::*;
use plimsoll_core::promises::Condition;
use plimsoll_core::telemetry::status::{DeadlineStatus, FoundType, TypeStatus};

fn promised() -> Status {
    let mut status = sample();
    status.plants[0].unfinished_seconds = Some(1.5);
    let (deadline, wait) = (Duration::from_secs(1), Duration::from_millis(250));
    status.classes[0].deadline =
        Some(DeadlineStatus { deadline, in_time: 99.0, admitted_from: 75.0, wait, missed: 3 });
    let own = TypeStatus {
        name: "report".to_owned(),
        level: "full".to_owned(),
        announced: false,
        requests: 70,
        mean: 0.125,
        deviation: 0.0625,
        in_time: Some(0.9),
        block: 0.5,
    };
    let condition = Condition {
        paths: vec!["/report".to_owned(), "/report/*".to_owned()],
        query: vec!["deep".to_owned()],
        ..Condition::default()
    };
    status.sites[0].found_types =
        vec![FoundType { name: "report".to_owned(), within: "dynamic".to_owned(), condition }];
    let never = TypeStatus { name: "never".to_owned(), requests: 0, ..own.clone() };
    status.sites[0].types = vec![own.clone(), TypeStatus { announced: true, mean: 2.0, ..own }, never];
    status
}

#[test]
fn the_document_says_what_types_cost_and_what_would_be_waited() {
    let text = status_line(&promised());
    for part in [
        "\"unfinished_seconds\":1.5,",
        "\"types\":[{\"name\":\"report\",\"level\":\"full\",\"announced\":false,\"requests\":70,\
         \"mean_seconds\":0.125,\"deviation_seconds\":0.0625,\"in_time_alone\":0.9,\
         \"block_seconds\":0.5},{",
        "\"found_types\":[{\"name\":\"report\",\"within\":\"dynamic\",\"path\":[\"/report\",\"/report/*\"],\"method\":[],\
         \"query\":[\"deep\"]}]",
        "\"deadline\":{\"deadline_seconds\":1.0,\"in_time\":99.0,\"admitted_from\":75.0,\"expected_wait_seconds\":0.25,\"missed\":3},",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_type_that_was_never_served_has_no_metrics() {
    let text = render_metrics(&promised());
    assert!(text.contains("type=\"report\"") && !text.contains("type=\"never\""), "{text}");
}

#[test]
fn a_class_without_a_deadline_has_no_metrics_of_one() {
    let text = render_metrics(&promised());
    exposition::lint(&text).unwrap();
    for line in [
        "plimsoll_unfinished_work_seconds{upstream=\"origin\"} 1.5",
        "plimsoll_deadline_seconds{site=\"shop\",class=\"default\"} 1.0",
        "plimsoll_expected_wait_seconds{site=\"shop\",class=\"default\"} 0.25",
        "plimsoll_deadline_accepted_late_ratio{site=\"shop\",class=\"default\"} 0.25",
        "plimsoll_deadline_missed_total{site=\"shop\",class=\"default\"} 3",
        "plimsoll_type_service_seconds{site=\"shop\",type=\"report\",level_name=\"full\",announced=\"yes\"} 2.0",
        "plimsoll_type_block_seconds{site=\"shop\",type=\"report\",level_name=\"full\",announced=\"no\"} 0.5",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
    }
    let without = render_metrics(&sample());
    assert!(!without.contains("deadline_") && !without.contains("plimsoll_type_"));
}
