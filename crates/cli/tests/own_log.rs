//! A run's own log, replayed by `plimsoll simulate --log`, gives the run's own shares of levels and rejections. The run is the
//! simulator's, whose events are written down as the gateway writes its access log; its twin is the same log without the
//! fields by which the gateway's own lines are known, so that its times are taken for those of full quality.

use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Gateway, Order, Start};
use plimsoll_sim::{Event, Setup, Watch};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

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

fn temporary(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("the folder for tests can be written");
    path
}

/// The shares of light answers and of rejections in a replay of this log, and what is said of it.
fn replayed(log: &Path, configuration: &str, more: &[&str]) -> ([f64; 2], String) {
    let configuration = temporary("own-log.toml", configuration);
    let output = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .arg("simulate")
        .arg(configuration)
        .arg("--log")
        .arg(log)
        .arg("--json")
        .args(more)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let run = &report["runs"][0];
    let arrivals = run["total"]["arrivals"].as_f64().expect("a number");
    let part = |value: &Value| value.as_f64().unwrap_or(0.0) / arrivals;
    let shares = [part(&run["levels"]["light"]), part(&run["total"]["rejected"])];
    (shares, format!("{} {}", report["assumptions"], report["notes"]))
}

#[test]
fn a_runs_own_log_gives_its_own_shares() {
    let configuration = plimsoll_config::parse(CONFIGURATION, "own-log.toml").expect("it is right");
    let promises = configuration.promises;
    let workload =
        plimsoll_config::parse_workload(WORKLOAD, "crowd.toml", &promises).expect("it is right").workload;
    let mut writer = LogWriter::default();
    let mut gateway = Gateway::new(&promises, 1).expect("it is possible");
    let setup = Setup { promises: &promises, workload: &workload, seed: 1 };
    setup.run_with(&mut gateway, &mut writer).expect("it runs");
    let own = [writer.light, writer.rejected].map(|count| count as f64 / writer.arrivals as f64);
    assert!(own[0] > 0.3 && own[1] > 0.2, "the crowd is degraded and rejected: {own:?}");
    let text = writer.lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
    let log = temporary("own.log", &text);
    let near = |shares: [f64; 2]| iter::zip(shares, own).all(|(is, was)| (is - was).abs() < 0.03);
    let (shares, said) = replayed(&log, CONFIGURATION, &[]);
    eprintln!("own shares {own:?}, replayed {shares:?}");
    assert!(near(shares), "{shares:?} for {own:?}");
    for part in ["of the level that was served", "requests were not served when it was written"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    // With a capacity the times weigh: 200 requests a second are 8 workers by 40 ms.
    let (shares, _) = replayed(&log, CONFIGURATION, &["--capacity", "200/s"]);
    eprintln!("with a capacity {shares:?}");
    assert!(near(shares), "{shares:?} for {own:?}");
    // The same with what requests cost in the file, which lines without a time need where they are not the gateway's own.
    let costs = CONFIGURATION.replace("workers = 8", "workers = 8, costs = { request = \"5ms\" }");
    let (shares, _) = replayed(&log, &costs, &[]);
    assert!(near(shares), "{shares:?} for {own:?}");
    let foreign = temporary("foreign.log", &text.replace("\"reason\"", "\"why\""));
    let (shares, _) = replayed(&foreign, &costs, &[]);
    eprintln!("where the level is not believed {shares:?}");
    assert!(!near(shares), "the twin: {shares:?} for {own:?}");
}
