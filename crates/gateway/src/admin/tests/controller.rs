//! What is shown of a controller, whose server's own processes decide: nothing that only a gateway knows, and the rest as of a
//! gateway.

use super::listener::{ask, watch};
use super::*;
use plimsoll_core::telemetry::status::{HeardPlaces, PlacesStatus};
use std::collections::BTreeSet;

const FIGURES: ControllerFigures =
    ControllerFigures { lanes: 256, attached: 4, deaths: 2, returned: 7, listen_queue: Some(31) };

/// The sample inside its server, to which a gateway reports its places.
fn inside() -> Status {
    let mut status = sample();
    let heard = HeardPlaces { age: Duration::from_millis(250), set_point_reduction: 0.125 };
    status.plants[0].places = Some(PlacesStatus { taken: 1.5, heard: Some(heard) });
    status
}

fn controller_scrape(figures: ControllerFigures) -> Scrape {
    Scrape { shell: ShellFigures::Controller(figures), ..scrape(inside()) }
}

fn families(text: &str) -> BTreeSet<String> {
    exposition::lint(text).unwrap().0.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_metrics_of_a_controller_are_those_of_a_gateway_without_what_only_a_gateway_counts() {
    let text = metrics::render(controller_scrape(FIGURES));
    let (own, gateway) = (families(&text), families(&metrics::render(scrape(inside()))));
    for expected in [
        "plimsoll_controller_lanes 256",
        "plimsoll_controller_attached_processes 4",
        "plimsoll_controller_dead_processes_total 2",
        "plimsoll_controller_returned_requests_total 7",
        "plimsoll_listen_queue_connections 31",
        "plimsoll_places_taken_ratio{upstream=\"origin\"} 1.5",
        "plimsoll_places_set_point_reduction{upstream=\"origin\"} 0.125",
        "plimsoll_last_control_step_timestamp_seconds 1800000000.5",
        "plimsoll_utilization_ratio{upstream=\"origin\"} 0.84",
        "plimsoll_in_service{upstream=\"origin\"} 7.0",
        "plimsoll_served_total{site=\"shop\",class=\"default\",level=\"1\",level_name=\"light\"} 60",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\nis not in\n{text}");
    }
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).map(|name| name.trim_start_matches("plimsoll_").to_owned()).collect()
    };
    assert_eq!(
        only(&gateway, &own),
        [
            "access_log_lines_dropped_total",
            "buffer_bytes",
            "buffer_file_failures_total",
            "certificate_end_timestamp_seconds",
            "connections",
            "connections_turned_away_total",
            "http2_connections_ended_total",
            "in_service_limit",
            "kernel_shed_failures_total",
            "queue_seconds",
            "reloads_total",
            "responses_total",
            "server_ejections_total",
            "server_in_service",
            "server_requests_total",
            "server_weight_ratio",
            "tls_handshakes_total",
            "traced_requests_total",
            "tunnels",
            "upstream_all_servers_out",
            "upstream_lookup_failed",
            "upstream_retries_total",
            "waiting",
        ]
    );
    assert_eq!(
        only(&own, &gateway),
        [
            "controller_attached_processes",
            "controller_dead_processes_total",
            "controller_lanes",
            "controller_returned_requests_total",
            "listen_queue_connections",
        ]
    );
    let unseen = ControllerFigures { listen_queue: None, ..FIGURES };
    assert!(!metrics::render(controller_scrape(unseen)).contains("listen_queue"), "nobody has looked");
}

#[test]
fn what_a_gateway_reports_of_its_places_is_in_its_own_figures_without_a_reduction() {
    let mut status = sample();
    status.plants[0].places = Some(PlacesStatus { taken: 0.875, heard: None });
    let text = render_metrics(&status);
    assert!(text.contains("\nplimsoll_places_taken_ratio{upstream=\"origin\"} 0.875\n"), "{text}");
    assert!(!text.contains("plimsoll_places_set_point_reduction"), "{text}");
    let reported = "\"places\":{\"taken\":0.875,\"reported_seconds_ago\":null,\"set_point_reduction\":null}";
    assert!(status_line(&status).contains(reported));
    assert!(!render_metrics(&sample()).contains("plimsoll_places"), "nothing is reported");
}

#[test]
fn the_status_of_a_controller_has_no_zero_for_what_it_does_not_know() {
    let scrape = controller_scrape(FIGURES);
    let text = serde_json::to_string(&StatusDocument::new(&scrape, &view(&scrape.status))).unwrap();
    for part in [
        "\"controller\":{\"lanes\":256,\"attached\":4,\"deaths\":2,\"returned_requests\":7,\"listen_queue\":31}",
        "\"buffers\":null,\"http2\":null,\"connections\":null,\"connections_turned_away\":null,\"kernel_shed\":null",
        "\"limit\":null,",
        "\"in_service\":7,\"waiting\":null,\"tunnels\":null,",
        "\"places\":{\"taken\":1.5,\"reported_seconds_ago\":0.25,\"set_point_reduction\":0.125},\"servers\":null,\
         \"all_servers_out\":null,\"retries\":null,\"retries_refused\":null,\"lookup_failure\":null",
        "\"queue_delay_seconds\":null,",
        "\"arrivals\":100,\"rejected\":10",
    ] {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

/// Says that it can do nothing.
struct Silent;

impl Owner for Silent {
    fn reload(&self) -> Result<Reloaded, String> {
        Err("the file is read at the start only".to_owned())
    }

    fn log_lines_dropped(&self) -> u64 {
        3
    }

    fn incidents(&self) -> String {
        "[]\n".to_owned()
    }
}

fn started(tokens: AdminTokens) -> ControllerDesk {
    let admin = ControllerAdmin { tokens, ..ControllerAdmin::default() };
    let listener = ControllerDesk::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
    ControllerDesk::start((listener, admin), Box::new(Silent), (inside(), FIGURES)).expect("a thread")
}

#[test]
fn the_listener_of_a_controller_answers_with_what_was_reported_last() {
    let desk = started(AdminTokens::default());
    let get = |path: &str| ask(desk.address(), &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(get("/healthz").ends_with("\r\n\r\nok\n"));
    assert!(get("/metrics").contains("\nplimsoll_controller_attached_processes 4\n"));
    assert!(get("/metrics").contains("\nplimsoll_log_lines_dropped_total 3.0\n"));
    let mut later = inside();
    later.at += Duration::from_secs(1);
    later.classes[0].counts.arrivals = 101;
    desk.report(later, ControllerFigures { attached: 5, ..FIGURES });
    let text = get("/metrics");
    assert!(text.contains("\nplimsoll_controller_attached_processes 5\n"), "{text}");
    assert!(text.contains("\nplimsoll_arrivals_total{site=\"shop\",class=\"default\"} 101\n"), "{text}");
    assert!(get("/status").contains("\"at_seconds\": 13.5"));
    assert!(get("/events").contains("\"text\": \"the controller started\""), "{}", get("/events"));
    assert!(get("/incidents").ends_with("\r\n\r\n[]\n"));
    let (_stream, said) = watch(desk.address(), "", "\"listen_queue\":");
    assert!(said.contains("\nevent: journal\n") && said.contains("\"controller\":{\"lanes\":256"), "{said}");
}

#[test]
fn a_controller_says_what_it_cannot_do() {
    let desk = started(AdminTokens::default());
    let all = |line: &str| ask(desk.address(), &format!("{line} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let reload = all("POST /reload");
    assert!(reload.starts_with("HTTP/1.1 422 "), "{reload}");
    assert!(reload.ends_with("the file is read at the start only\n"), "{reload}");
    assert!(all("GET /what-if").starts_with("HTTP/1.1 404 "));
    let index = all("GET /");
    assert!(
        index.contains("/metrics ") && !index.contains("/reload") && !index.contains("/what-if"),
        "{index}"
    );
    assert!(!all("GET /nothing").contains("/reload"));
}

#[test]
fn a_controller_answers_whoever_shows_its_token() {
    let token = "a-token-of-thirty-two-characters-1";
    let desk = started(AdminTokens::read(token).unwrap());
    let get = |path: &str, fields: &str| {
        ask(desk.address(), &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"))
    };
    assert!(get("/metrics", "").starts_with("HTTP/1.1 401 "));
    assert!(get("/healthz", "").starts_with("HTTP/1.1 200 "));
    assert!(get("/metrics", &format!("Authorization: Bearer {token}\r\n")).starts_with("HTTP/1.1 200 "));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let desk = started(AdminTokens::default());
    let error = ControllerDesk::bind(desk.address()).expect_err("it is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&desk.address().to_string()), "{error}");
}
