//! Pages from a made-up status.

mod controller;
mod deadline;
mod exposition;
mod listener;
mod otlp;
mod response;
mod types;

use super::journal::View;
use super::operator::{Pulse, Source};
use super::scrape::{GatewayFigures, Scrape, ShellFigures};
use super::*;
use crate::client::spill_files::Buffered;
use crate::http2::floods::EndedConnections;
use crate::listen::clients::ClientConnections;
use crate::listen::kernel_shed::ShedStatus;
use crate::settings::SeedSource;
use crate::upstream::ejection::{RosterStatus, ServerStatus};
use crate::worker::shared::Reloads;
use plimsoll_core::promises::plan::{ContractRow, PlantPlan};
use plimsoll_core::promises::{Guarantee, MAX_LEVELS, Mode};
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::{
    ClassStatus, Counts, ModelStatus, PartStatus, PlantStatus, SiteStatus, Status,
};
use std::time::{Duration, Instant};

/// One upstream and two classes; one name needs escaping, one level's cost is not known.
fn sample() -> Status {
    let mut counts = Counts { arrivals: 100, bytes: (1 << 53) + 1, unserved: 10, ..Counts::default() };
    counts.served[1..3].copy_from_slice(&[60, 20]);
    counts.reasons[Reason::Full as usize] = 20;
    counts.reasons[Reason::Degraded as usize] = 60;
    counts.reasons[Reason::Overload as usize] = 10;
    counts.outcomes[Outcome::Completed as usize] = 70;
    let responses = [0, 70, 0, 0, 10];
    let class = ClassStatus {
        removed: false,
        site: "shop".to_owned(),
        class: "default".to_owned(),
        plant: 0,
        levels: vec!["light".to_owned(), "full".to_owned()],
        service_level: 1.25,
        parts: vec![part("origin", 1, 2, 1.5), part("cache", 0, 1, 0.5)],
        site_level: Some(1.125),
        request_rate: 50.0,
        bandwidth: 1e6,
        model: ModelStatus {
            per_request_seconds: Some(0.005),
            per_byte_seconds: Some(1e-9),
            confidence: 0.9,
            frozen: false,
        },
        response: None,
        deadline: None,
        level_cost_seconds: vec![Some(0.00075), None],
        heavy_clients: 1,
        counts,
        queue_delay: Duration::from_millis(2),
        response_time: Duration::from_millis(42),
        responses,
        ..ClassStatus::default()
    };
    let odd = ClassStatus {
        class: "a \"b\"\\\nc".to_owned(),
        levels: vec!["only".to_owned()],
        ..ClassStatus::default()
    };
    Status {
        at: plimsoll_core::time::Instant::from_nanos(12_500_000_000),
        mode: Mode::Control,
        period: Duration::from_secs(1),
        rekey: Some(Duration::from_secs(86_400)),
        plants: vec![sample_plant()],
        sites: vec![SiteStatus {
            name: "shop".to_owned(),
            plant: 0,
            utilization_promised: Some(0.375),
            utilization: 0.5,
            guaranteed_share: 0.75,
            types: Vec::new(),
            found_types: Vec::new(),
        }],
        plan: vec![sample_plan()],
        classes: vec![class, odd],
        rejection_cost_seconds: None,
    }
}

fn part(plant: &str, base: usize, top: usize, service_level: f64) -> PartStatus {
    PartStatus { plant: plant.to_owned(), base, top, service_level }
}

fn sample_plant() -> PlantStatus {
    PlantStatus {
        name: "origin".to_owned(),
        limit: 8,
        available: 1.0,
        set_point_reduction: 0.125,
        workers: 8,
        set_point: 0.85,
        utilization: 0.84,
        utilization_model: 0.83,
        utilization_offered: 2.5,
        service_level: 1.25,
        bias: -0.01,
        come_again: (Duration::from_millis(250), Duration::from_secs(4)),
        response_time_override: false,
        in_service: 7,
        waiting: 3,
        service_time: Duration::from_millis(40),
        ..PlantStatus::default()
    }
}

fn sample_plan() -> PlantPlan {
    let row = ContractRow {
        site: "shop".to_owned(),
        guarantee: Guarantee::new(100.0, 1e6),
        utilization: Some(0.375),
    };
    PlantPlan {
        plant: "origin".to_owned(),
        ceiling: 0.85,
        sum: 0.375,
        rows: vec![row],
        ..PlantPlan::default()
    }
}

fn scrape(status: Status) -> Scrape {
    Scrape {
        status,
        shell: ShellFigures::Gateway(Box::new(sample_gateway())),
        in_force_since: Duration::ZERO,
        log_lines_dropped: 0,
        seed_from: SeedSource::Kept,
        last_step: Duration::from_millis(1_800_000_000_500),
        process: metrics::ProcessFigures::default(),
    }
}

fn sample_gateway() -> GatewayFigures {
    GatewayFigures {
        rosters: vec![sample_roster()],
        reloads: Reloads::default(),
        access_log_lines_dropped: 0,
        traced: [3, 1],
        handshakes: [7, 5, 3],
        certificate_ends: vec![("/etc/shop.pem".to_owned(), Duration::from_secs(1_900_000_000))],
        buffered: Buffered::default(),
        connections: 12,
        turned_away: ClientConnections::default().turned_away(),
        shed: Some(ShedStatus { table: "plimsoll_80_0a".to_owned(), failures: 2, failing: None }),
        http2: EndedConnections::default().status(128),
    }
}

/// The text of `/metrics`.
fn render_metrics(status: &Status) -> String {
    metrics::render(scrape(status.clone()))
}

/// A gateway with the sample's figures.
#[derive(Default)]
struct SampleGateway {
    tokens: AdminTokens,
}

impl Source for SampleGateway {
    fn scrape(&self) -> Scrape {
        scrape(sample())
    }

    fn view(&self, status: &Status) -> View {
        view(status)
    }

    fn events_after(&self, _: u64) -> JournalDocument {
        JournalDocument::default()
    }

    fn tokens(&self) -> AdminTokens {
        self.tokens.clone()
    }
}

/// Nothing is promised, and nothing was seen before.
fn view(status: &Status) -> View {
    let recent = vec![journal::Recent::default(); status.classes.len()];
    View { unix_seconds: 1e9, promises: Vec::new(), recent }
}

/// No plant, site or class.
pub(in crate::admin) fn empty() -> Status {
    let (plants, sites, plan, classes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Status { plants, sites, plan, classes, ..sample() }
}

/// The text of `/status`.
fn render_status(status: &Status) -> String {
    document::render(&StatusDocument::new(&scrape(status.clone()), &view(status)))
}

fn sample_roster() -> RosterStatus {
    let server = ServerStatus {
        address: "10.0.0.1:80".to_owned(),
        state: "ejected",
        since: Duration::from_millis(1500),
        why: Some("errors".to_owned()),
        weight: 0.0,
        in_service: 1,
        served: 70,
        errors: 5,
        unreachable: 2,
        ejections: 3,
    };
    let other = ServerStatus {
        address: "unix:/run/\"a\"".to_owned(),
        state: "starting",
        why: None,
        weight: 0.5,
        ..server.clone()
    };
    RosterStatus {
        servers: vec![server, other],
        retries: [4, 1],
        lookup_failure: Some("no answer".to_owned()),
    }
}

/// The text of `/status`, in one line.
fn status_line(status: &Status) -> String {
    serde_json::to_string(&StatusDocument::new(&scrape(status.clone()), &view(status))).unwrap()
}

fn ask(method: Method, path: &str) -> Response<String> {
    ask_while(method, path, None)
}

fn ask_while(method: Method, path: &str, stalled: Option<Duration>) -> Response<String> {
    route(&method, path, OperatorLook { scrape: scrape(sample()), view: view(&sample()), stalled })
}

fn get(path: &str) -> Response<String> {
    ask(Method::GET, path)
}

#[test]
fn routes() {
    let content_type = |path| (get(path).status().as_u16(), get(path).headers()[CONTENT_TYPE].clone());
    assert_eq!(content_type("/metrics"), (200, HeaderValue::from_static(EXPOSITION)));
    assert_eq!(content_type("/status"), (200, HeaderValue::from_static("application/json")));
    assert_eq!((get("/healthz").status().as_u16(), &**get("/healthz").body()), (200, "ok\n"));
    assert_eq!(*get("/").body(), index(ShellKind::Gateway));
    for path in ["/metrics/", "/Metrics", "/nothing", "", "*"] {
        assert_eq!(get(path).status(), 404, "{path}");
    }
    assert_eq!(ask(Method::HEAD, "/metrics").status(), 200);
    let refused = ask(Method::POST, "/metrics");
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()[ALLOW]),
        (405, &HeaderValue::from_static("GET, HEAD"))
    );
    assert_eq!(get("/reload").headers()[ALLOW], "POST");
    let stalled = Some(Duration::from_secs(12));
    let stalled = ask_while(Method::GET, "/healthz", stalled);
    assert_eq!(stalled.status(), 503);
    assert!(stalled.body().contains("12 s"));
}

#[test]
fn a_stall_is_a_tick_that_does_not_come() {
    let (mut pulse, start, mut status) = (Pulse::default(), Instant::now(), sample());
    let after = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(pulse.look(start, &status), None, "the first look cannot know");
    assert_eq!(pulse.look(after(5), &status), None);
    assert_eq!(pulse.look(after(6), &status), Some(Duration::from_secs(6)));
    status.at += Duration::from_secs(1);
    assert_eq!(pulse.look(after(7), &status), None);
    assert_eq!(pulse.look(after(12), &status), None);
    assert_eq!(pulse.look(after(13), &status), Some(Duration::from_secs(6)));
    status.period = Duration::from_secs(60);
    assert_eq!(pulse.look(after(300), &status), None, "a long period may take its time");
    assert!(pulse.look(after(308), &status).is_some());
}

#[test]
fn the_status_document() {
    let status = Status { classes: sample().classes[..1].to_vec(), ..sample() };
    let expected = r#"{
"version":"0.1.0","unix_seconds":1000000000.0,"at_seconds":12.5,"mode":"control","period_seconds":1.0,"rejection_cost_seconds":null,"promises":[],
"clients":{"seed":"kept","rekey_seconds":86400.0},"controller":null,"buffers":{"memory_bytes":0,"file_bytes":0,"file_failures":0},
"http2":{"streams":128,"idle_frames":1000,"idle_frames_per_second":100,"ended":{"codec":0,"empty_frames":0,"pings":0,"resets":0,"settings":0,"windows":0}},
"connections":12,"connections_turned_away":{"connections_per_client":0,"kernel":0,"overload":0},"kernel_shed":{"table":"plimsoll_80_0a","failures":2,"failing":null},
"upstreams":[{"name":"origin","workers":8,"workers_found":null,"limit":8,"limit_reason":null,"available":1.0,
"utilization":{"set_point":0.85,"measured":0.84,"model":0.83,"offered":2.5},
"service_level":1.25,"bias":-0.01,"set_point_reduction":0.125,"come_again":{"soonest_seconds":0.25,"latest_seconds":4.0},"response_time_override":false,"in_service":7,"waiting":3,"tunnels":0,"unfinished_seconds":null,
"service_time_seconds":0.04,"places":null,
"servers":[{"address":"10.0.0.1:80","state":"ejected","since_seconds":1.5,"why":"errors","weight":0.0,"in_service":1,"served":70,"errors":5,"unreachable":2,"ejections":3},
{"address":"unix:/run/\"a\"","state":"starting","since_seconds":1.5,"why":null,"weight":0.5,"in_service":1,"served":70,"errors":5,"unreachable":2,"ejections":3}],
"all_servers_out":false,"retries":4,"retries_refused":1,"lookup_failure":"no answer"}],
"sites":[{"name":"shop","upstream":"origin","utilization":0.5,"utilization_promised":0.375,"guaranteed_share":0.75,"types":[],"found_types":[]}],
"plan":[{"upstream":"origin","ceiling":0.85,"sum":0.375,"reserve":0.0,"verdict":"fits",
"guarantees":[{"site":"shop","utilization":0.375}],"delays":[]}],
"classes":[{"site":"shop","class":"default","upstream":"origin","service_level":1.25,"service_level_of_contract":1.125,
"service_level_by_upstream":{"cache":0.5,"origin":1.5},
"levels":[{"level":1,"name":"light","cost_seconds":0.00075,"served":60},
{"level":2,"name":"full","cost_seconds":null,"served":20}],
"request_rate_per_second":50.0,"bandwidth_bytes_per_second":1000000.0,
"queue_delay_seconds":0.002,"response_time_seconds":0.042,"promise":null,"deadline":null,
"model":{"per_request_seconds":0.005,"per_byte_seconds":1e-9,"confidence":0.9,"frozen":false},
"heavy_clients":1,"arrivals":100,"rejected":10,"in_flight":20,"delivered_bytes":9007199254740993,
"recent":{"seconds":0.0,"arrivals":0,"served":[],"rejected":0,"reasons":{},"failed":0,"response_p50_seconds":null,"response_p95_seconds":null,"response_p99_seconds":null},
"reasons":{"full":20,"guaranteed":0,"degraded":60,"exempt":0,"overload":10,"queue-full":0,"too-many-streams":0,"wait-timeout":0,"deadline":0,"late":0,"client-left":0,"no-site":0},
"outcomes":{"completed":70,"failed":0,"abandoned":0}}]}"#;
    assert_eq!(status_line(&status), expected.replace('\n', ""));
    let text = render_status(&status);
    assert!(text.starts_with("{\n  \"version\": \"") && text.ends_with("\n}\n"));
}

#[test]
fn a_status_before_the_first_tick_renders() {
    let mut status = sample();
    status.classes[0].level_cost_seconds.clear();
    status.classes[0].levels = vec![String::new(); MAX_LEVELS];
    status.plants[0].utilization_offered = f64::NAN;
    exposition::lint(&render_metrics(&status)).unwrap();
    assert!(render_status(&status).contains("\"offered\": null"));
    let empty = empty();
    exposition::lint(&render_metrics(&empty)).unwrap();
    assert_eq!(status_line(&empty).matches("[]").count(), 5);
}
