//! `/metrics` as Prometheus' own tools read it, and what is in `packaging/prometheus` in a real Prometheus.

use plimsoll_e2e::{Folder, Plimsoll, Process, exchange, free_port, get, program};
use serde_json::Value;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/prometheus").join(name)
}

/// A gateway with a promise of each kind, which has served a request of each class.
fn gateway(pages: &Folder) -> Plimsoll {
    pages.write("index.html", "<!doctype html><title>A page</title>");
    let gateway = Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [folder.www]\nroot = \"{}\"\n\
         [[site]]\nname = \"shop\"\nfolder = \"www\"\nguarantee = {{ rate = \"5/s\" }}\n\
         [[site.class]]\nname = \"quick\"\nmatch = {{ path = \"/quick\" }}\ndelay = \"2s\"\npercentile = 95\n\
         [[site.class]]\nname = \"dated\"\nmatch = {{ path = \"/dated\" }}\ndeadline = \"5s\"\n",
        pages.path().display()
    ));
    for (path, status) in [("/", 200), ("/quick", 404), ("/dated", 404)] {
        assert_eq!(get(gateway.address, path).status, status, "{path}");
    }
    gateway
}

/// What promtool prints. Panics, with that, if it finds something wrong or warns.
fn promtool(arguments: &[&str], input: Stdio) -> String {
    let mut command = Command::new(program("promtool"));
    command.args(arguments).current_dir(kept("")).stdin(input);
    let output = command.output().unwrap_or_else(|error| panic!("promtool: {error}"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{arguments:?}: {said:?}");
    said.concat()
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let pages = Folder::new();
    let mut gateway = gateway(&pages);
    let page = gateway.ask_admin("/metrics").text();
    for metric in [
        "plimsoll_build_info{version=\"",
        "plimsoll_promised_delay_seconds{site=\"shop\",class=\"quick\"} 2",
        "plimsoll_deadline_promised_late_ratio{site=\"shop\",class=\"dated\"} 0.01",
        "plimsoll_responses_total{site=\"shop\",class=\"default\",code=\"2xx\"} 1",
        "plimsoll_responses_total{site=\"shop\",class=\"quick\",code=\"4xx\"} 1",
        "plimsoll_service_seconds_count{site=\"shop\",class=\"quick\"} 1",
        "process_resident_memory_bytes ",
        "process_start_time_seconds ",
    ] {
        assert!(page.contains(&format!("\n{metric}")), "{metric} is not in\n{page}");
    }
    let lint = |text: &str| {
        let file = pages.write("metrics", text);
        let open = File::open(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let output = Command::new(program("promtool")).args(["check", "metrics"]).stdin(open).output();
        let output = output.unwrap_or_else(|error| panic!("promtool: {error}"));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(lint(&page), "");
    assert_ne!(lint("# HELP a A.\n# TYPE a counter\na 1\n"), "", "the lint can fail");
    assert!(gateway.stop().success());
}

#[test]
fn the_rules_fire_when_they_should_and_only_then() {
    promtool(&["check", "rules", "plimsoll.rules.yml"], Stdio::null());
    promtool(&["test", "rules", "plimsoll.test.yml"], Stdio::null());
}

/// What Prometheus answers to a query of its API.
fn ask(server: SocketAddr, path: &str) -> Value {
    // A body of version 1.0 comes whole.
    let answer = exchange(server, format!("GET {path} HTTP/1.0\r\n\r\n"));
    let answer: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    assert_ne!(answer["status"], "error", "{path}: {answer}");
    answer["data"].clone()
}

fn query(server: SocketAddr, expression: &str) -> Value {
    let escaped = expression.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    ask(server, &format!("/api/v1/query?query={escaped}"))["result"].clone()
}

fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// The queries of the dashboard, with what Grafana puts in place of its variables.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(kept("grafana.json")).expect("it is there");
    let page: Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = page["panels"].as_array().expect("it has panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.chain(page["annotations"]["list"].as_array().expect("it has annotations"));
    let whole = |expression: &Value| {
        let text = expression["expr"].as_str().expect("it is a query");
        let known = text.replace("$__rate_interval", "1m");
        ["$instance", "$site", "$job"].iter().fold(known, |text, name| text.replace(name, ".*"))
    };
    expressions.map(whole).collect()
}

#[test]
fn a_real_prometheus_takes_the_metrics_the_rules_and_the_queries_of_the_dashboard() {
    let (pages, folder) = (Folder::new(), Folder::new());
    let mut gateway = gateway(&pages);
    let file = folder.write(
        "prometheus.yml",
        format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\n\
             scrape_configs: [{{ job_name: plimsoll, static_configs: [{{ targets: [\"{}\"] }}] }}]\n",
            kept("plimsoll.rules.yml").display(),
            gateway.admin
        ),
    );
    let server = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = Command::new(program("prometheus"));
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
    command.arg(format!("--web.listen-address={server}"));
    let mut process = Process::spawn("prometheus", &mut command, &folder.path().join("log"));
    process.wait_for("readiness", |log| log.contains("Server is ready to receive").then_some(()));

    let found = |expression: &str| query(server, expression).as_array().map_or(0, Vec::len);
    soon("a scrape", || found("up == 1") == 1 && found("plimsoll_build_info") == 1);
    let rules = || ask(server, "/api/v1/rules")["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
    soon("the rules are evaluated", || {
        let rules = rules();
        rules.len() >= 7 && rules.iter().all(|rule| rule["health"] == "ok")
    });
    let firing: Vec<_> = rules().into_iter().filter(|rule| rule["state"] != "inactive").collect();
    assert!(firing.is_empty(), "of a gateway without load: {firing:?}");
    let queries = dashboard();
    assert!(queries.len() > 20, "{queries:?}");
    let empty: Vec<_> = queries.iter().filter(|text| !text.contains("rate(") && found(text) == 0).collect();
    assert!(empty.len() <= 2, "panels without a value: {empty:?}");
    assert!(gateway.stop().success());
}
