//! A run's own log, replayed by `plimsoll simulate --log`, gives the run's own shares of levels and rejections. The run is the
//! simulator's, whose events are written down as the gateway writes its access log; its twin is the same log without the
//! fields by which the gateway's own lines are known, so that its times are taken for those of full quality.
//!
//! A log that a running gateway wrote is replayed by the end-to-end tests (`e2e/tests/access_log.rs`).

mod support;

use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Gateway, Order, Start};
use plimsoll_sim::{Event, Setup, Watch};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::{fs, iter};
use support::{binary, done, has, temporary};

const CONFIGURATION: &str = r#"
[gateway]
listen = "127.0.0.1:8080"
[upstream.app]
address = "127.0.0.1:8000"
capacity = { workers = 8 }
[[site]]
name = "shop"
[[site.level]]
name = "light"
prefix = "/light"
cost = 0.2
[[site.level]]
name = "full"
"#;

/// A crowd that is below, above and far above what light pages for everybody take.
const WORKLOAD: &str = r#"
duration = "60s"
[[stream]]
name = "visitors"
load = [{ from = "0s", load = 0.5 }, { from = "15s", load = 3.0 }, { from = "35s", load = 9.0 }]
clients = 2000
[[stream.page]]
path = "/page-*.html"
bytes = "16 KiB"
[plant.app]
service = "40ms"
service_law = "exponential"
[site.shop.level.light]
bytes = 0.2
"#;

/// A replay takes other clients for the full pages than the run did.
const OTHER_SEED: &[&str] = &["--seed", "7"];

const LEVELS: [&str; 3] = ["", "light", "full"];

/// What is known of a request before its line is written.
struct Underway {
    fields: Value,
    arrived: Instant,
    started: Option<(Instant, Start)>,
}

/// Writes the access log of a simulated run.
#[derive(Default)]
struct LogWriter {
    lines: Vec<String>,
    underway: HashMap<u64, Underway>,
    /// Arrivals, and those of them that were rejected, and started at the light level.
    arrivals: usize,
    rejected: usize,
    light: usize,
}

fn stamp(now: Instant) -> String {
    let milliseconds = (now.as_secs_f64() * 1e3) as u64;
    let (seconds, milliseconds) = (milliseconds / 1000, milliseconds % 1000);
    format!("2026-08-01T10:{:02}:{:02}.{milliseconds:03}Z", seconds / 60, seconds % 60)
}

impl LogWriter {
    fn begin(&mut self, token: u64, now: Instant, request: &plimsoll_sim::Request) {
        self.arrivals += 1;
        let fields = json!({
            "time": stamp(now), "client": request.client.to_string(), "method": request.method, "host": "shop.example",
            "path": request.path, "protocol": "HTTP/1.1", "site": "shop", "class": "default",
        });
        self.underway.insert(token, Underway { fields, arrived: now, started: None });
    }

    fn start(&mut self, token: u64, now: Instant, start: Start) {
        self.light += usize::from(start.level == 1);
        if let Some(underway) = self.underway.get_mut(&token) {
            underway.started = Some((now, start));
        }
    }

    fn end(&mut self, token: u64, now: Instant, reason: Option<&str>) {
        let Some(Underway { mut fields, arrived, started }) = self.underway.remove(&token) else { return };
        match started {
            Some((at, start)) => {
                fields["status"] = 200.into();
                fields["bytes"] = if start.level == 1 { 3277 } else { 16384 }.into();
                fields["level"] = LEVELS[usize::from(start.level)].into();
                fields["reason"] = start.reason.as_str().into();
                fields["queue_time"] = at.since(arrived).as_secs_f64().into();
                fields["service_time"] = now.since(at).as_secs_f64().into();
            }
            None => {
                self.rejected += 1;
                fields["status"] = 503.into();
                fields["bytes"] = 120.into();
                fields["reason"] = reason.into();
            }
        }
        self.lines.push(fields.to_string());
    }
}

impl Watch for LogWriter {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        match *event {
            Event::Arrived { token, request, decision, .. } => {
                self.begin(token.0, now, request);
                match decision {
                    Decision::Start(start) => self.start(token.0, now, start),
                    Decision::Wait => {}
                    Decision::Reject(reason) => self.end(token.0, now, Some(reason.as_str())),
                }
            }
            Event::Ordered(Order::Start(token, start)) => self.start(token.0, now, start),
            Event::Ordered(Order::Drop(token, reason)) => self.end(token.0, now, Some(reason.as_str())),
            Event::Ended { token, .. } => self.end(token.0, now, None),
        }
    }
}

/// What a replay of this log reports; `name` is the configuration's file.
fn report(log: &Path, (name, configuration): (&str, &str), more: &[&str]) -> Value {
    let configuration = temporary(name, configuration);
    let mut command = binary();
    command.arg("simulate").arg(configuration).arg("--json").args(more);
    let log_input = fs::File::open(log).expect("the log");
    match more {
        ["--log", "-", ..] => command.stdin(Stdio::from(log_input)),
        _ => command.arg("--log").arg(log),
    };
    let output = command.output().expect("the binary runs");
    done(&output);
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The shares of light answers and of rejections in a replay of this log, and what is said of it.
fn replayed(log: &Path, configuration: (&str, &str), more: &[&str]) -> ([f64; 2], String) {
    let report = report(log, configuration, more);
    let run = &report["runs"][0];
    let arrivals = run["total"]["arrivals"].as_f64().expect("a number");
    let part = |value: &Value| value.as_f64().unwrap_or(0.0) / arrivals;
    let shares = [part(&run["levels"]["light"]), part(&run["total"]["rejected"])];
    (shares, format!("{} {}", report["assumptions"], report["notes"]))
}

/// The log of a simulated run, and its shares of light answers and of rejections.
fn written(configuration: &str, workload: &str) -> (String, [f64; 2]) {
    let configuration = plimsoll_config::parse(configuration, "own-log.toml").expect("it is right");
    let promises = configuration.promises;
    let workload =
        plimsoll_config::parse_workload(workload, "crowd.toml", &promises).expect("it is right").workload;
    let mut writer = LogWriter::default();
    let mut gateway = Gateway::new(&promises, 1).expect("it is possible");
    let setup = Setup { promises: &promises, workload: &workload, seed: 1 };
    setup.run_with(&mut gateway, &mut writer).expect("it runs");
    let own = [writer.light, writer.rejected].map(|count| count as f64 / writer.arrivals as f64);
    (writer.lines.iter().flat_map(|line| [line, "\n"]).collect(), own)
}

/// Whether shares are those of a run.
fn near(shares: [f64; 2], own: [f64; 2]) -> bool {
    iter::zip(shares, own).all(|(is, was)| (is - was).abs() < 0.03)
}

#[test]
fn a_runs_own_log_gives_its_own_shares() {
    let (text, own) = written(CONFIGURATION, WORKLOAD);
    assert!(own[0] > 0.3 && own[1] > 0.2, "the crowd is degraded and rejected: {own:?}");
    let log = temporary("own.log", &text);
    let near = |shares| near(shares, own);
    let promised = ("own-log.toml", CONFIGURATION);
    let (shares, said) = replayed(&log, promised, OTHER_SEED);
    eprintln!("own shares {own:?}, replayed {shares:?}");
    assert!(near(shares), "{shares:?} for {own:?}");
    has(&said, &["of the level that was served", "requests were not served when it was written"]);
    // With a capacity the times weigh: 200 requests a second are 8 workers by 40 ms.
    let (shares, _) = replayed(&log, promised, &["--capacity", "200/s", "--seed", "7"]);
    eprintln!("with a capacity {shares:?}");
    assert!(near(shares), "{shares:?} for {own:?}");
    // The same with what requests cost in the file, which lines without a time need where they are not the gateway's own.
    let costs = CONFIGURATION.replace("workers = 8", "workers = 8, costs = { request = \"5ms\" }");
    let (shares, _) = replayed(&log, ("own-costs.toml", &costs), OTHER_SEED);
    assert!(near(shares), "{shares:?} for {own:?}");
    let foreign = temporary("foreign.log", &text.replace("\"reason\"", "\"why\""));
    let (shares, _) = replayed(&foreign, ("own-costs.toml", &costs), OTHER_SEED);
    eprintln!("where the level is not believed {shares:?}");
    assert!(!near(shares), "the twin: {shares:?} for {own:?}");
}

/// Light pages come from another server, of which the configuration's `cost` says nothing. The twin is the same log by standard
/// input, which is read once, so that nothing is learned from it beforehand.
#[test]
fn a_level_on_another_upstream_takes_what_its_own_lines_say() {
    let configuration = CONFIGURATION
        .replace(
            "[[site]]",
            "[upstream.small]\naddress = \"127.0.0.1:8001\"\ncapacity = { workers = 2 }\n[[site]]",
        )
        .replace("name = \"shop\"", "name = \"shop\"\nupstream = \"app\"")
        .replace("prefix", "upstream = \"small\"\nprefix");
    let workload = WORKLOAD.replace("[plant.app]", "[plant.small]\nservice = \"15ms\"\n[plant.app]");
    let (text, own) = written(&configuration, &workload);
    assert!(own[0] > 0.1, "{own:?}");
    let log = temporary("elsewhere.log", &text);
    let promised = ("elsewhere.toml", configuration.as_str());
    let (shares, said) = replayed(&log, promised, OTHER_SEED);
    eprintln!("own shares {own:?}, replayed {shares:?}");
    assert!(near(shares, own), "{shares:?} for {own:?}");
    assert!(said.contains("on an upstream of its own, a request takes 0.0"), "{said}");
    let (shares, _) = replayed(&log, promised, &["--log", "-", "--seed", "7"]);
    eprintln!("where nothing is learned {shares:?}");
    assert!(!near(shares, own), "the twin: {shares:?} for {own:?}");
}

/// One line of each kind that has no time.
#[test]
fn what_the_gateway_answered_itself_is_no_load_and_what_stayed_open_is() {
    let known = |status: u16, more: Value| {
        let mut line = json!({
            "client": "192.0.2.1", "method": "GET", "host": "shop.example", "path": "/work", "protocol": "HTTP/1.1",
            "status": status, "bytes": 0, "site": "shop", "class": "default", "client_share": 0.5,
        });
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        line
    };
    let served = |status, more: Value| {
        let mut line = known(status, json!({"level": "full", "reason": "full"}));
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        line
    };
    let mut lines = vec![
        served(101, json!({})),
        known(301, json!({})),
        known(308, json!({})),
        known(408, json!({"error": "the request body did not come in time"})),
        known(413, json!({"error": "the request body is too large"})),
        json!({"client": "192.0.2.1", "protocol": "HTTP/1.1", "status": 400, "bytes": 9, "error": "no request line"}),
        served(200, json!({"error": "the gateway stopped before the answer was whole"})),
        known(503, json!({"reason": "overload"})),
        known(504, json!({"error": "no place at the upstream became free in time"})),
    ];
    lines.extend((0..5).map(|_| served(200, json!({"service_time": 0.04}))));
    let stamped = (0_u32..).zip(&mut lines).map(|(second, line)| {
        line["time"] = stamp(Instant::from_secs_f64(second.into())).into();
        line.to_string() + "\n"
    });
    let log = temporary("kinds.log", &stamped.collect::<String>());
    for more in [&[][..], &["--capacity", "200/s"]] {
        let report = report(&log, ("kinds.toml", CONFIGURATION), more);
        assert_eq!(report["runs"][0]["total"]["arrivals"], 9, "{report}");
        let found = ["lines", "skipped", "no_load"].map(|what| report["logs"][0][what].as_u64());
        assert_eq!(found, [Some(14), Some(0), Some(5)], "{report}");
        let said = report["notes"].to_string();
        assert!(
            said.contains("5 lines are of requests that the gateway, or the proxy that wrote them, answered without a server"),
            "{said}"
        );
        assert!(said.contains("(1 with 301, 1 with 308, 1 with 400, 1 with 408, 1 with 413)"), "{said}");
        assert!(said.contains("2 requests were served, but their lines have no time"), "{said}");
    }
}
