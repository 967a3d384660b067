//! `plimsoll simulate` as a user meets it: figures, logs with errors in them, wrong input, Ctrl-C.

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::{binary, done, example, failed, has, of_repository, place, said, temporary, without_types};

/// Runs it from the repository's root, as the examples say.
fn plimsoll(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary runs")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = binary();
    command.current_dir(of_repository("")).arg("simulate").args(arguments);
    command
}

#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    failed(&plimsoll(arguments), 2, parts);
}

/// What it says, on both streams, where it is done.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = plimsoll(arguments);
    done(&output);
    said(&output)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(&plimsoll(&[arguments, &["--json"]].concat())))
        .expect("one JSON object and nothing else")
}

fn name(path: &Path) -> &str {
    path.to_str().expect("its name is text")
}

const STEP: [&str; 3] = ["examples/one-site.toml", "--workload", "examples/workloads/step.toml"];

/// A server of two workers that takes 10 ms a request, and its light level.
const TIMED: &str = "[gateway]\nlisten = \"127.0.0.1:8080\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n\
                     capacity = { workers = 2, costs = { request = \"5ms\" } }\n[[site]]\nname = \"site\"\n\
                     [[site.level]]\nname = \"light\"\nprefix = \"/light\"\ncost = 0.2\n\
                     [[site.level]]\nname = \"full\"\n";

/// A log of so many lines a second for a minute.
fn log(per_second: u32) -> String {
    let line = |second: u32, number: u32| {
        format!(
            "10.0.{second}.{number} - - [01/Aug/2026:10:00:{second:02} +0000] \"GET /page{} HTTP/1.1\" 200 5000\n",
            number % 7
        )
    };
    (0..60).flat_map(|second| (0..per_second).map(move |number| line(second, number))).collect()
}

#[test]
fn the_step_is_held_and_the_comparator_melts() {
    let report = json(&[&STEP[..], &["--against", "none"]].concat());
    let [with, without] = [0, 1].map(|run| &report["runs"][run]);
    assert_eq!((&with["kind"], &without["name"]), (&"configuration".into(), &"none".into()));
    let failed = |run: &Value| run["total"]["failed"].as_f64().expect("a number");
    let arrivals = with["total"]["arrivals"].as_f64().expect("a number");
    assert!(failed(with) < 0.001 * arrivals && failed(without) > 0.4 * arrivals, "{report}");
    let light = with["levels"]["light"].as_f64().expect("a number") / arrivals;
    assert!((0.6..0.8).contains(&light), "{light}");
    let paths = with["most_affected_paths"].as_array().expect("a list");
    assert!(paths.iter().any(|path| path["degraded"].as_u64() > Some(5)), "{report}");
    let periods = with["periods"].as_array().expect("a list");
    let from: Vec<f64> = periods.iter().filter_map(|period| period["from"].as_f64()).collect();
    assert_eq!(from, (0..60).map(f64::from).collect::<Vec<_>>(), "whole seconds are whole");
}

const DELAYS: [&str; 3] = ["examples/delays.toml", "--workload", "examples/workloads/delays.toml"];

#[test]
fn a_promised_delay_is_kept_in_a_crowd_and_the_comparator_breaks_it() {
    let report = json(&[&DELAYS[..], &["--against", "none"]].concat());
    let class = |run: usize, name: &str| {
        let classes = report["runs"][run]["classes"].as_array().expect("a list");
        classes.iter().find(|class| class["name"] == name).expect("its class").clone()
    };
    let late = |run| class(run, "shop/premium")["promise"]["late_share"].as_f64().expect("a number");
    assert!((0.001..0.065).contains(&late(0)), "{}", late(0));
    assert!(late(1) > 0.1, "{}", late(1));
    let premium = class(0, "shop/premium");
    assert_eq!(
        (&premium["promise"]["delay_seconds"], &premium["promise"]["percentile"]),
        (&0.2.into(), &95.into())
    );
    assert_eq!(
        (&premium["degraded"], &premium["rejected"]),
        (&0.into(), &0.into()),
        "who was promised pays nothing"
    );
    assert!(class(0, "shop/default")["degraded"].as_u64() > Some(1000));
    assert!(class(1, "shop/premium")["promise"]["missed_share_of_time"].is_null(), "nobody says it there");
    let subscribers = class(0, "reports/subscribers");
    assert_eq!(subscribers["promise"]["ratio"], 1);
    assert!(subscribers["promise"]["infeasible_share_of_time"].is_number(), "{subscribers}");
    let last = report["runs"][0]["periods"].as_array().and_then(|all| all.last()).expect("a period");
    assert!((6..=11).contains(&last["upstreams"][0]["workers"].as_u64().expect("a number")), "{last}");
    let quota =
        last["classes"].as_array().into_iter().flatten().find(|class| class["name"] == "shop/premium");
    let quota = quota.and_then(|class| class["quota"].as_f64()).expect("a number");
    assert!((1.5..6.0).contains(&quota), "40/s of 40 ms are 1.6 workers' work: {quota}");
}

#[test]
fn promises_are_reported_as_text_and_drawn_on_the_page() {
    let page = place("delays.html");
    let text = printed(&[&DELAYS[..], &["--report", name(&page)]].concat());
    has(&text, &["95 % within 200 ms", "subscribers 1 : default 2"]);
    has(&text, &["app has 8 workers, and the gateway does not know it"]);
    let page = fs::read_to_string(&page).expect("the page was written");
    has(&page, &["Promised response times", "shop/premium: 95 % take at most", ">Quotas<"]);
    has(&page, &["over their ratio, reports", "Workers of app"]);
    let text = printed(&STEP);
    assert!(!text.contains("promised"), "where nothing is promised nothing is reported:\n{text}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let trace = place("trace.jsonl");
    let traced = |seed: &str| {
        let report = plimsoll(&[&STEP[..], &["--json", "--seed", seed, "--trace", name(&trace)]].concat());
        (done(&report), fs::read(&trace).expect("the trace was written"))
    };
    let (first, again, other) = (traced("7"), traced("7"), traced("8"));
    assert!(first == again, "two runs of one seed differ");
    assert!(first.0 != other.0 && first.1 != other.1, "another seed gives the same run");
    let lines = first.1.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("JSON lines")).collect();
    let of = |event: &str| events.iter().filter(|line| line["event"] == event).count();
    let (started, completed) = (of("start"), of("completed"));
    assert!(started > 10_000 && (completed..=completed + 8).contains(&started), "{started} {completed}");
}

#[test]
fn a_log_at_three_times_the_load_is_degraded_where_at_its_own_it_is_not() {
    let (file, log) = (temporary("timed.toml", TIMED), temporary("access.log", &log(100)));
    let arguments = [name(&file), "--log", name(&log)];
    let calm = json(&arguments);
    let crowd = json(&[&arguments[..], &["--scale", "3"]].concat());
    let fast = json(&[&arguments[..], &["--speed", "3"]].concat());
    let part = |report: &Value, of: &str| {
        let total = &report["runs"][0]["total"];
        total[of].as_f64().expect("a number") / total["arrivals"].as_f64().expect("a number")
    };
    assert_eq!(calm["runs"][0]["total"]["arrivals"], 6000);
    assert_eq!((&calm["logs"][0]["lines"], &calm["logs"][0]["skipped"]), (&6000.into(), &0.into()));
    assert!(part(&calm, "full") > 0.97, "{calm}");
    assert_eq!(crowd["runs"][0]["total"]["arrivals"], 18_000);
    assert!((crowd["runs"][0]["seconds"].as_f64().expect("a number") - 60.0).abs() < 5.0);
    assert!((fast["runs"][0]["seconds"].as_f64().expect("a number") - 20.0).abs() < 5.0);
    for report in [&crowd, &fast] {
        assert!(part(report, "degraded") > 0.5 && part(report, "full") > 0.05, "{report}");
        assert!(part(report, "rejected") < 0.05, "{report}");
    }
}

#[test]
fn lines_that_do_not_parse_are_counted_and_the_first_is_shown() {
    let file = temporary("timed2.toml", TIMED);
    let mut text = log(10);
    text.insert_str(0, "# a comment\n");
    text.push_str("10.0.0.1 - - [01/Aug/2026:09:59:50 +0000] \"GET /late HTTP/1.1\" 200 1\n");
    let broken = temporary("broken.log", &text);
    let text = printed(&[name(&file), "--log", name(&broken)]);
    has(&text, &["1 of 602 lines were skipped; the first is line 1", "# a comment"]);
    has(&text, &["first at line 602, by 69 s"]);
}

#[test]
fn a_log_may_come_from_standard_input() {
    let file = temporary("timed3.toml", TIMED);
    let mut child = command(&[name(&file), "--log", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("it has a standard input");
    stdin.write_all(log(20).as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["runs"][0]["total"]["arrivals"], 1200);
    refused(&[name(&file), "--log", "-", "--against", "none"], &["read once only"]);
}

#[test]
fn a_pipe_is_not_compared_with_nothing() {
    let file = temporary("timed5.toml", TIMED);
    let workload = temporary("piped.toml", "[[stream]]\nlog = \"-\"\n");
    for arguments in [["--log", "/dev/stdin"], ["--workload", name(&workload)]] {
        let arguments = [&[name(&file)], &arguments[..], &["--against", "none"]].concat();
        let output = command(&arguments).stdin(Stdio::piped()).output().expect("the binary runs");
        failed(&output, 2, &["read once only"]);
    }
}

#[test]
fn another_configuration_may_have_other_classes_and_levels() {
    let file = temporary("timed6.toml", TIMED);
    let other = TIMED.replace("name = \"light\"\nprefix = \"/light\"", "name = \"tiny\"\nprefix = \"/tiny\"")
        + "[[site.class]]\nname = \"first\"\nmatch = { path = [\"/page1\"] }\n";
    let other = temporary("classed.toml", &other);
    let log = temporary("compared.log", &log(100));
    let page = place("compared.html");
    let more = ["--log", name(&log), "--scale", "3", "--report", name(&page)];
    for [one, against] in [[&file, &other], [&other, &file]] {
        let text = printed(&[&[name(one), "--against", name(against)], &more[..]].concat());
        has(&text, &["served tiny", "served light", "site/first"]);
    }
}

#[test]
fn what_is_under_way_when_time_is_up_is_reported() {
    let report = json(&[&STEP[..], &["--against", "none"]].concat());
    let cut = example("workloads/step.toml").replace("duration = \"60s\"", "duration = \"30s\"");
    let cut: String =
        cut.lines().filter(|line| !line.contains("40s")).map(|line| format!("{line}\n")).collect();
    let cut = temporary("cut.toml", &cut);
    let arguments = [STEP[0], "--workload", name(&cut), "--against", "none"];
    let cut = json(&arguments);
    for run in [&report, &cut].map(|report| report["runs"].as_array().expect("a list")).into_iter().flatten()
    {
        let count = |of: &str| run["total"][of].as_u64().expect("a number");
        let known = ["full", "degraded", "rejected", "failed", "abandoned", "under_way"].map(count);
        assert_eq!(known.iter().sum::<u64>(), count("arrivals"), "{}", run["total"]);
    }
    // Every listen queue is full then.
    assert!(cut["runs"][1]["total"]["under_way"].as_u64() > Some(400), "{}", cut["runs"][1]["total"]);
    assert!(said(&plimsoll(&arguments)).contains("under way at the end"));
}

#[test]
fn the_page_is_one_file() {
    let page = place("report.html");
    printed(&[&STEP[..], &["--against", "gradient2", "--report", name(&page)]].concat());
    let html = fs::read_to_string(&page).expect("the page was written");
    assert!(html.starts_with("<!doctype html>"));
    for load in ["<link", " src=", " href=\"http", "@import", "url("] {
        assert!(!html.contains(load), "{load:?} on the page");
    }
    has(&html, &["Utilization of app", "load line", "Service level m"]);
    has(&html, &["gradient2", "99th percentile", "By class"]);
}

/// A chart of a page: the names of its lines, and under each the values that its drawn line has.
fn chart(html: &str, title: &str) -> Vec<(String, Vec<f64>)> {
    let between = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from:?} in {title:?}"));
        rest.split_once(to).expect("its end").0.to_owned()
    };
    let figure = between(html, &format!("<h3>{title}</h3>"), "</figure>");
    let data = between(&figure, "<pre class=\"data\" tabindex=\"0\">", "</pre>");
    let mut rows = data.lines().map(|row| row.split('\t').skip(1).map(str::to_owned).collect::<Vec<_>>());
    let names = rows.next().expect("names");
    let rows: Vec<Vec<String>> = rows.collect();
    let line = |(number, name): (usize, String)| {
        assert!(
            figure.contains(&format!("data-i=\"{number}\"><i></i>{name}</button>")),
            "{name} in the legend"
        );
        let drawn =
            between(&figure, &format!("<g class=\"line c{number}\" data-i=\"{number}\"><path d=\""), "\"/>");
        assert!(drawn.split(' ').count() > 250, "{title}: {name} is drawn as {drawn}");
        (name, rows.iter().map(|row| row[number].parse().unwrap_or(f64::NAN)).collect())
    };
    names.into_iter().enumerate().map(line).collect()
}

/// Fig. 4, 6 and 8 of AC: three schemes and the engine while the load rises to 2.5 times the capacity, on one plot each, as
/// docs/simulating.md has it.
#[test]
fn four_schemes_are_on_one_plot() {
    let page = place("ramp.html");
    let fronts = ["sac:1ms", "cac", "aces:1ms"];
    let mut arguments = vec![
        "examples/within-a-second.toml",
        "--workload",
        "examples/workloads/ramp.toml",
        "--report",
        name(&page),
    ];
    arguments.extend(fronts.iter().flat_map(|front| ["--against", front]));
    printed(&arguments);
    let html = fs::read_to_string(&page).expect("the page was written");
    // In the last minute the load is twice the capacity and more. The bounds are those of its means, the engine's first.
    let charts = [
        ("Answered in front of each", [(600.0, 660.0), (600.0, 660.0), (600.0, 660.0), (600.0, 660.0)]),
        (
            "Mean response time in front of each",
            [(700.0, 900.0), (1400.0, 2000.0), (180.0, 320.0), (180.0, 320.0)],
        ),
        ("Late, of what was admitted", [(0.0, 0.05), (99.0, 100.0), (0.0, 0.0), (0.1, 1.0)]),
    ];
    for (title, bounds) in charts {
        let lines = chart(&html, title);
        let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [&["within-a-second.toml"][..], &fronts].concat(), "{title}");
        for ((name, values), (least, most)) in lines.iter().zip(bounds) {
            let mean = values[240..300].iter().sum::<f64>() / 60.0;
            assert!((least..=most).contains(&mean), "{title}: {mean} of {name}");
        }
    }
}

#[test]
fn wrong_input_is_answered_with_what_to_write() {
    let timed = temporary("timed4.toml", TIMED);
    let other = temporary("other.toml", &TIMED.replace("upstream.app", "upstream.web"));
    let nonsense = temporary("nonsense.log", "this is\nno log\n");
    let example = STEP[0];
    refused(&[example], &["not provided:\n  <--log <FILE>|--workload <FILE>>"]);
    refused(&[example, "--log", "no/such.log"], &["no/such.log"]);
    refused(&[name(&timed), "--log", name(&nonsense)], &["nonsense.log", "this is"]);
    refused(
        &[example, "--workload", "no/such.toml"],
        &["cannot read no/such.toml", "examples/workloads/step.toml"],
    );
    refused(
        &[&STEP[..], &["--against", "gradiant"]].concat(),
        &["neither a file nor a comparator", "gradient"],
    );
    refused(
        &[&STEP[..], &["--against", name(&other)]].concat(),
        &["not about the same servers", "web, not app"],
    );
    refused(&[&STEP[..], &["--speed", "2"]].concat(), &["not provided:\n  --log <FILE>"]);
    refused(&["--log", "-", "--capacity", "-1/s"], &["'--capacity <N/s>': write requests a second"]);
    refused(
        &[name(&timed), "--log", name(&temporary("empty.log", ""))],
        &["empty.log: there is nothing in it"],
    );
    // Neither the configuration nor the log says what a request takes.
    let log = temporary("untimed.log", &log(1));
    refused(&[example, "--log", name(&log)], &["costs"]);
}

/// A configuration that states nothing but the address, and its sites' hosts.
fn address_alone(name: &str, hosts: &[&str]) -> PathBuf {
    let sites = hosts.iter().enumerate().map(|(number, host)| {
        format!("[[site]]\nname = \"site{number}\"\nhost = \"{host}\"\n[[site.level]]\nname = \"full\"\n")
    });
    let server = "[gateway]\nlisten = \"127.0.0.1:8080\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n";
    temporary(name, &(server.to_owned() + &sites.collect::<String>()))
}

#[test]
fn an_ordinary_log_needs_one_number() {
    let log = temporary("ordinary.log", &log(10));
    let shop = address_alone("shop.toml", &["shop.example"]);
    refused(&[name(&shop), "--log", name(&log)], &["`app`", "--capacity 200/s", "costs"]);
    let report = json(&[name(&shop), "--log", name(&log), "--capacity", "20/s"]);
    let first = &report["runs"][0];
    assert_eq!((first["requests"].as_u64(), first["no_site"].as_u64()), (Some(600), Some(0)));
    let utilization = first["upstreams"][0]["utilization"].as_f64().expect("a number");
    assert!((0.45..0.55).contains(&utilization), "10/s of 20/s: {utilization}");
    let assumptions = report["assumptions"].as_array().expect("a list");
    assert!(
        assumptions
            .iter()
            .any(|what| what.as_str().is_some_and(|what| what.contains("20 requests a second")))
    );
    let text = said(&plimsoll(&[name(&shop), "--log", name(&log), "--capacity", "20/s"]));
    assert!(text.starts_with("assumption: "), "{text}");
    let timed = temporary("timed5.toml", TIMED);
    refused(&[name(&timed), "--log", name(&log), "--capacity", "20/s"], &["says again", "leave it out"]);
    refused(&[name(&shop), "--log", name(&log), "--capacity", "many"], &["such as 200/s"]);
}

#[test]
fn a_run_in_which_no_request_has_a_site_is_an_error() {
    let log = temporary("hostless.log", &log(1));
    let two = address_alone("two.toml", &["shop.example", "blog.example"]);
    let arguments = [name(&two), "--log", name(&log), "--capacity", "20/s"];
    refused(&arguments, &["nothing was simulated", "name no host", "shop.example, blog.example", "--host"]);
    let named = |host| [&arguments[..], &["--host", host]].concat();
    refused(&named("other.example"), &["nothing was simulated", "`other.example`"]);
    let report = json(&named("blog.example"));
    assert_eq!(report["runs"][0]["classes"][0]["name"], "site1", "{report}");
    // Where only some are for other hosts, they came all the same.
    let line = |n: u32| {
        let host = if n.is_multiple_of(3) { "other.example" } else { "blog.example" };
        format!("{{\"ts\": {n}, \"host\": \"{host}\", \"path\": \"/\"}}\n")
    };
    let mixed = temporary("mixed.jsonl", &(0..60).map(line).collect::<String>());
    let report = json(&[name(&two), "--log", name(&mixed), "--capacity", "20/s"]);
    let requests = &report["runs"][0]["requests"];
    assert_eq!((requests, &report["runs"][0]["total"]["arrivals"]), (&60.into(), &40.into()));
    let note = "20 requests are for hosts that no site has: they are refused, and count as offered, but not in the table";
    assert!(report["notes"].to_string().contains(note), "{}", report["notes"]);
}

#[test]
fn a_log_may_have_the_servers_own_times() {
    let line = |n: u32, took: &str| {
        format!(
            "{{\"time\": {}, \"remote_addr\": \"10.0.0.{}\", \"request\": \"GET /{n} HTTP/1.1\", \
             \"upstream_response_time\": \"{took}\"}}\n",
            1_700_000_000 + n / 20,
            n % 50
        )
    };
    // Twenty requests a second: one is answered without the server, one by the second server that was tried.
    let times = |n: u32| ["-", "0.030, 0.030"].get(n as usize % 20).copied().unwrap_or("0.040");
    let text: String = (0..1200).map(|n| line(n, times(n))).collect();
    let log = temporary("times.log", &text);
    let report = json(&[STEP[0], "--log", name(&log)]);
    let plant = &report["runs"][0]["upstreams"][0];
    // 18 of 40 ms and one of 60 ms a second, of eight workers.
    let utilization = plant["utilization"].as_f64().expect("a number");
    assert!((utilization - 0.78 / 8.0).abs() < 0.01, "{report}");
    assert_eq!((&report["logs"][0]["timed"], &report["logs"][0]["timed_zero"]), (&1200.into(), &60.into()));
    let half = temporary("half.log", &text.replace("upstream_response_time\": \"0.040", "other\": \"0.040"));
    refused(
        &[STEP[0], "--log", name(&half)],
        &[
            "nobody says what a request takes of `app`",
            "in the log not the line of `GET /",
            "--time-field",
            "plimsoll profile",
        ],
    );
}

#[test]
fn told_to_stop_it_prints_what_there_is() {
    // Two hours of virtual time at three times the load are millions of requests.
    let long = example("workloads/demo.toml").replace("duration = \"30s\"", "duration = \"100h\"");
    let workload = temporary("long.toml", &long);
    let child = command(&["examples/demo.toml", "--workload", name(&workload)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let pid = i32::try_from(child.id()).expect("a process number");
    // A signal before the run has begun stops it at once. A signal before signals are blocked, and waited for by a
    // thread, would end the process without a word.
    let blocks_interrupts = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a Linux");
        u64::from_str_radix(blocked.trim(), 16).expect("a mask") & 2 != 0
    };
    let started = Instant::now();
    while !blocks_interrupts() {
        assert!(started.elapsed() < Duration::from_secs(60), "it never waits for signals");
        std::thread::sleep(Duration::from_millis(10));
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGINT)
        .expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    done(&output);
    has(&said(&output), &["stopped after", "utilization of shop"]);
}

#[test]
fn types_that_were_found_can_be_pasted() {
    let config = temporary("found-types.toml", &without_types());
    let workload = "examples/workloads/deadlines.toml";
    let found = json(&[name(&config), "--workload", workload]);
    let sections = found["found_types"].as_str().expect("reports are dear").to_owned();
    has(&sections, &["[[site.type]]", "name = \"reports\"", "\"/reports/*\""]);
    let text = printed(&[name(&config), "--workload", workload]);
    has(&text, &["types that were found, to paste", "/reports/*"]);
    let pasted = temporary("pasted-types.toml", &(without_types() + "\n" + &sections));
    let report = json(&[name(&pasted), "--workload", workload]);
    assert!(report["found_types"].is_null(), "none is searched for where one is configured");
}

/// The agent by itself, and beside the server of a configuration.
#[test]
fn the_agent_is_simulated_like_the_gateway() {
    const CROWD: &str = "examples/workloads/agent.toml";
    let report = json(&["examples/agent.toml", "--workload", CROWD, "--against", "none"]);
    let part = |run: usize, what: &str| {
        let total = &report["runs"][run]["total"];
        total[what].as_f64().expect("a number") / total["arrivals"].as_f64().expect("a number")
    };
    assert_eq!(part(0, "rejected"), 0.0, "it cannot");
    assert!((0.5..0.9).contains(&part(0, "degraded")) && part(0, "failed") < 0.01);
    assert!(part(1, "degraded") == 0.0 && part(1, "failed") > 0.3);
    let both = json(&[&STEP[..], &["--against", "examples/agent.toml"]].concat());
    let failed = |run: usize| both["runs"][run]["total"]["failed"].as_f64().expect("a number");
    assert!(failed(0) == 0.0 && (1.0..1000.0).contains(&failed(1)), "{} and {}", failed(0), failed(1));
    let two = ["examples/contracts.toml", "--workload", CROWD, "--against", "examples/agent.toml"];
    refused(&two, &["plant.server"]);
}

/// What a gateway learned of its rates (`rate_forecast`) moves the budgets of a simulation, which leaves the file as it is.
#[test]
fn what_a_gateway_learned_of_rates_is_read_and_left_alone() {
    let rate_forecast = temporary("kept-forecast.txt", "");
    let site = "[[site]]\nname = \"site\"\ndeadline = \"500ms\"\ndefault_priority = 2\n\
                [[site.class]]\nname = \"gold\"\nmatch = { path = \"/gold/*\" }\npriority = 1\n";
    let (server, _) = TIMED.split_once("[[site]]").expect("a site");
    let promises = format!("{server}{site}");
    let budget =
        format!("{promises}[control]\nadmission = \"budget\"\nrate_forecast = {:?}\n", name(&rate_forecast));
    let configuration = temporary("kept-forecast.toml", &budget);
    let stream = |name: &str, rate: u32| {
        format!(
            "[[stream]]\nname = {name:?}\nrate = \"{rate}/s\"\n[[stream.page]]\npath = \"/{name}/*.html\"\n"
        )
    };
    let plant = "duration = \"30s\"\n[plant.app]\nservice = \"10ms\"\n";
    let workload = temporary(
        "kept-forecast-load.toml",
        &format!("{plant}{}{}", stream("gold", 80), stream("rest", 300)),
    );
    let arguments = [name(&configuration), "--workload", name(&workload)];
    let of_rate = |learned: &str| {
        let hours: String =
            (0..24).map(|hour| format!("{hour} 1026  {learned}  {learned}  {learned}\n")).collect();
        let text = format!("upstream app\n{hours}");
        fs::write(&rate_forecast, &text).expect("the folder for tests can be written");
        let figures = json(&arguments);
        assert_eq!(fs::read_to_string(&rate_forecast).expect("it is there"), text);
        figures["runs"][0]["total"].clone()
    };
    assert_ne!(of_rate("9000 0 0"), of_rate("0 0 9000"), "the rate of gold rises, or falls, in each period");
    fs::write(&rate_forecast, "1 1026 many\n").expect("the folder for tests can be written");
    refused(&arguments, &["kept-forecast.txt: line 1: \"1 1026 many\""]);
}

#[test]
fn a_log_without_a_configuration_is_a_report_in_one_command() {
    let log = temporary("alone.log", &log(10));
    let page = place("alone.html");
    let arguments = ["--log", name(&log), "--capacity", "20/s"];
    let text = printed(&[&arguments[..], &["--report", name(&page)]].concat());
    let first = "no configuration is given: one site with the levels `light` and `full`";
    assert!(text.starts_with(&format!("assumption: {first}")), "{text}");
    let html = fs::read_to_string(&page).expect("the page was written");
    let header = html.split_once("<header>").expect("a header").1;
    assert!(header.lines().nth(1).is_some_and(|line| line.contains(first)), "{header:.400}");
    let report = printed(&[&arguments[..], &["--json"]].concat());
    assert!(report.starts_with(&format!("{{\"assumptions\":[\"{first}")), "{report}");
    // Three times the load is more than the server takes.
    let crowd = json(&[&arguments[..], &["--speed", "3"]].concat());
    let total = &crowd["runs"][0]["total"];
    assert!(total["degraded"].as_u64() > Some(60) && total["failed"] == 0, "{total}");
    refused(&["--log", name(&log)], &["nobody says what a request takes of `server`", "--capacity 200/s"]);
    refused(&["--workload", "examples/workloads/step.toml"], &["name FILE before it"]);
}

/// The log with a time behind each line.
fn with_times(log: &str, time: impl Fn(usize) -> String) -> String {
    log.lines().enumerate().map(|(n, line)| format!("{line} \"-\" \"agent\" {}\n", time(n))).collect()
}

#[test]
fn times_behind_a_common_line_are_learned() {
    let utilization = |arguments: &[&str]| {
        let report = json(arguments);
        let is = report["runs"][0]["upstreams"][0]["utilization"].as_f64().expect("a number");
        (is, report)
    };
    // 10 requests a second, each of 40 or 120 ms, for eight workers.
    let time = |n: usize| if n.is_multiple_of(2) { 40 } else { 120 };
    let micros = temporary("micros.log", &with_times(&log(10), |n| format!("{}", 1000 * time(n))));
    let (is, report) = utilization(&["--log", name(&micros)]);
    assert!((is - 0.1).abs() < 0.01, "{is}");
    let assumed = report["assumptions"].to_string();
    assert!(
        assumed.contains("field 1 behind the format's own, in microseconds. THAT IS AN UPPER BOUND"),
        "{assumed}"
    );
    assert_eq!(report["logs"][0]["times_are_bounds"], true);
    // The server's own of nginx's two times is taken.
    let two = |n: usize| format!("0.{:03} 0.{:03}", 4 * time(n), time(n));
    let two = temporary("two.log", &with_times(&log(10), two));
    let (is, report) = utilization(&["--log", name(&two)]);
    assert!((is - 0.1).abs() < 0.01, "{is}");
    assert_eq!(report["logs"][0]["times_are_bounds"], false);
    let (is, _) = utilization(&["--log", name(&two), "--time-field", "1"]);
    assert!((is - 0.4).abs() < 0.02, "{is}");
    let (is, _) = utilization(&["--log", name(&micros), "--time-field", "1:ns"]);
    assert!(is < 0.001, "{is}");
    refused(&["--log", name(&two), "--time-field", "none"], &["nobody says", "--capacity"]);
    refused(&["--log", name(&two), "--time-field", "2:hours"], &["such as 2:ms"]);
    // With a capacity they weigh the requests: their mean takes what the capacity says.
    let (is, report) = utilization(&["--log", name(&micros), "--capacity", "20/s"]);
    assert!((is - 0.5).abs() < 0.05, "{is}");
    let assumed = report["assumptions"].to_string();
    assert!(assumed.contains("beside the mean of the log") && !assumed.contains("BOUND"), "{assumed}");
    // What files say of costs is better than a bound.
    let timed = temporary("timed7.toml", TIMED);
    let (is, report) = utilization(&[name(&timed), "--log", name(&micros)]);
    assert!((is - 0.05).abs() < 0.01, "5 ms of all workers: {is}");
    assert!(!report["assumptions"].to_string().contains("BOUND"), "{report}");
}

#[test]
fn a_bound_in_json_is_taken_aloud() {
    let line = |n: u32| {
        format!(
            "{{\"time\": {}.{}, \"request\": \"GET /{n} HTTP/1.1\", \"request_time\": \"0.080\"}}\n",
            1_700_000_000 + n / 10,
            n % 10
        )
    };
    let log = temporary("bound.json", &(0..600).map(line).collect::<String>());
    let text = printed(&["--log", name(&log)]);
    let second = text.lines().find(|line| line.contains("bound.json says")).map(str::to_owned);
    assert!(second.is_some_and(|line| line.contains("`request_time`, in seconds. THAT IS AN UPPER BOUND")));
}

#[test]
fn a_log_out_of_order_is_sorted_where_it_is_asked() {
    // The lines of two servers in turn: those of one are three minutes ahead, and those of the other run backwards.
    let (one, other) = (log(5), log(5).replace("10:00:", "10:03:"));
    let mut lines: Vec<&str> = one.lines().rev().zip(other.lines()).flat_map(|(a, b)| [a, b]).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    lines.sort_by_key(|line| line.split_once('[').map(|(_, rest)| &rest[..20]));
    let in_order: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (shuffled, in_order) = (temporary("shuffled.log", &text), temporary("in-order.log", &in_order));
    let runs = |arguments: &[&str]| json(&[arguments, &["--capacity", "20/s"]].concat());
    let expected = runs(&["--log", name(&in_order)]);
    let sorted = runs(&["--log", name(&shuffled), "--sort"]);
    assert_eq!(sorted["runs"], expected["runs"]);
    assert_eq!((&sorted["logs"][0]["sorted"], &sorted["logs"][0]["backwards"]), (&true.into(), &0.into()));
    let unsorted = plimsoll(&["--log", name(&shuffled), "--capacity", "20/s"]);
    has(&said(&unsorted), &["lines were too late for that", "`--sort` puts all in order"]);
    let mut child = command(&["--log", "-", "--sort", "--capacity", "20/s", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("it has a standard input").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let piped: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(piped["runs"], expected["runs"]);
}

/// How far the server is from its capacity is asked of the busiest moments.
#[test]
fn what_was_offered_is_reported_with_its_peaks() {
    let busy = log(2).replace("10:00:", "10:01:");
    let busy: String = busy
        .lines()
        .flat_map(|line| [line, "\n"].repeat(1 + 9 * usize::from(line.contains("10:01:07"))))
        .collect();
    let log = temporary("offered.log", &(log(2) + &busy));
    let arguments = ["--log", name(&log), "--capacity", "100/s"];
    let offered = &json(&arguments)["offered"];
    let of = |key: &str| offered[key].as_f64().expect("a rate");
    assert!((2.0..2.3).contains(&of("mean")) && (2.2..2.4).contains(&of("busiest_minute")), "{offered}");
    assert!((18.0..=20.0).contains(&of("busiest_second")), "{offered}");
    let text = said(&plimsoll(&arguments));
    assert!(text.contains("(seed 1); offered: mean 2.2/s, busiest minute 2.3/s, busiest second "), "{text}");
}

/// A run that ends within a minute has its last minute too, whose rate is not that of its first half.
#[test]
fn the_busiest_minute_is_not_below_the_mean() {
    let offered = |seconds: u32| {
        let workload = format!(
            "duration = \"{seconds}s\"\n[[stream]]\nname = \"crowd\"\nrate = [{{ from = \"0s\", rate = \"30/s\" }}, \
             {{ from = \"25s\", rate = \"130/s\" }}]\n[[stream.page]]\npath = \"/a\"\nbytes = \"1 KiB\"\n\
             [plant.app]\nservice = \"10ms\"\n"
        );
        let workload = temporary(&format!("offered-{seconds}.toml"), &workload);
        json(&["examples/one-site.toml", "--workload", name(&workload)])["offered"].clone()
    };
    let long = offered(100);
    let of = |key: &str| long[key].as_f64().expect("a rate");
    assert!((95.0..115.0).contains(&of("mean")) && (120.0..140.0).contains(&of("busiest_minute")), "{long}");
    assert!(of("busiest_second") >= of("busiest_minute"), "{long}");
    let short = offered(50);
    assert!(short["mean"].is_number() && short["busiest_minute"].is_null(), "{short}");
}

/// `tac` of a log: figures of it would be of a load that never was.
#[test]
fn a_log_that_runs_backwards_is_refused() {
    let minutes = (0..20).map(|minute| log(10).replace("10:00:", &format!("10:{minute:02}:")));
    let lines = minutes.collect::<String>();
    let reversed: String = lines.lines().rev().map(|line| format!("{line}\n")).collect();
    let log = temporary("backwards.log", &reversed);
    let arguments = ["--log", name(&log), "--capacity", "20/s"];
    refused(
        &arguments,
        &["backwards.log is not in order of time", "of 12,000 lines", "help: `--sort` puts all"],
    );
    let sorted = plimsoll(&[&arguments[..], &["--sort"]].concat());
    assert_eq!(sorted.status.code(), Some(0), "{}", said(&sorted));
}

#[test]
fn a_log_that_is_packed_otherwise_names_the_command_that_unpacks_it() {
    let log = temporary("access.log.xz", "");
    fs::write(&log, b"\xfd7zXZ\0\0\x04\xe6").expect("it can be written");
    refused(
        &["--log", name(&log)],
        &["it is compressed by xz", "access.log.xz | plimsoll simulate --log -`"],
    );
    fs::write(&log, b"\x80\x01\xff\x07\0\x10").expect("it can be written");
    refused(&["--log", name(&log)], &["Line 1 is `(no text)`"]);
}

/// What is read stays, and so does an old report where nothing came of the new one.
#[test]
fn no_input_is_overwritten_and_a_failed_run_leaves_the_old_report() {
    let log = temporary("kept.log", &log(2));
    let configuration = temporary("kept.toml", TIMED);
    let old = temporary("kept.html", "old");
    let read = |path: &Path| fs::read_to_string(path).expect("it is there");
    let asked = [name(&configuration), "--log", name(&log)];
    for (option, path) in [("--report", &log), ("--trace", &log), ("--report", &configuration)] {
        let before = read(path);
        refused(&[&asked[..], &[option, name(path)]].concat(), &["would be overwritten", name(path)]);
        assert_eq!(read(path), before);
    }
    // What a gateway keeps is read too: its state, and the rate forecast of each configuration.
    let state = temporary("kept.state", "{}");
    let rate_forecast = temporary("kept-input-forecast.txt", "");
    let budget =
        format!("{TIMED}[control]\nadmission = \"budget\"\nrate_forecast = {:?}\n", name(&rate_forecast));
    let other = temporary("kept-other-forecast.toml", &budget);
    let compared = [&asked[..], &["--against", name(&other)]].concat();
    let with_forecast = [name(&other), "--log", name(&log)];
    for (asked, path) in
        [(&asked[..], &state), (&with_forecast[..], &rate_forecast), (&compared[..], &rate_forecast)]
    {
        for option in ["--report", "--trace"] {
            let before = read(path);
            refused(&[asked, &[option, name(path)]].concat(), &["would be overwritten", name(path)]);
            assert_eq!(read(path), before);
        }
    }
    refused(
        &[&asked[..], &["--report", name(&old), "--trace", name(&old)]].concat(),
        &["`--report` and `--trace`"],
    );
    let other = temporary(
        "kept-other.toml",
        &TIMED.replace("name = \"site\"\n", "name = \"site\"\nhost = \"shop.example\"\n"),
    );
    let nothing = [name(&other), "--log", name(&log), "--host", "other.example", "--report", name(&old)];
    refused(&nothing, &["nothing was simulated"]);
    assert_eq!(read(&old), "old");
    let (page, trace) = (old.with_extension("new.html"), old.with_extension("new.jsonl"));
    let written = plimsoll(&[&asked[..], &["--report", name(&page), "--trace", name(&trace)]].concat());
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert!(read(&page).starts_with("<!doctype html>") && read(&trace).lines().count() > 100);
    // Nothing in the report is of this run alone.
    let again = old.with_extension("again.html");
    plimsoll(&[&asked[..], &["--report", name(&again)]].concat());
    assert_eq!(read(&page), read(&again));
    let full = plimsoll(&[&asked[..], &["--report", "/dev/full"]].concat());
    assert!(
        full.status.code() == Some(1) && said(&full).contains("cannot write /dev/full"),
        "{}",
        said(&full)
    );
    let out = plimsoll(&[&asked[..], &["--json", "--report", "/dev/stdout"]].concat());
    assert!(said(&out).contains("\n<!doctype html>"), "{}", said(&out));
}

/// A comparator twice shows nothing, nor does a time that no line has.
#[test]
fn what_shows_nothing_is_said() {
    refused(
        &[&STEP[..], &["--against", "none", "--against", "none"]].concat(),
        &["`--against none` is given twice"],
    );
    let log = temporary("no-such-field.log", &log(2));
    let asked = ["--log", name(&log), "--capacity", "20/s"];
    refused(
        &[&asked[..], &["--time-field", "3:us"]].concat(),
        &["`--time-field 3`: none of the 120 lines that were read has a time in that field"],
    );
    assert!(!json(&asked)["assumptions"].to_string().contains("--time-field"));
    // A log that ends in the middle of its compressed form.
    let cut = place("cut.log.gz");
    let whole = "crates/sim/tests/data/nasa-1995-08-01-pages-and-pictures.log.gz";
    let whole = fs::read(of_repository(whole));
    fs::write(&cut, &whole.expect("it is there")[..5000]).expect("it can be written");
    refused(&["--log", name(&cut), "--capacity", "20/s"], &["It ends in the middle"]);
}

/// What an earlier run has kept of the workers is taken, and where the number is from is said.
#[test]
fn workers_are_those_that_a_run_has_kept() {
    let configuration = temporary("found.toml", &TIMED.replace("workers = 2, ", ""));
    let state = configuration.with_extension("state");
    let _ = fs::remove_file(&state);
    let log = temporary("found.log", &log(2));
    let workers_of = |arguments: &[&str]| {
        let report = json(&[&[name(&configuration)], arguments].concat());
        let all = report["assumptions"].as_array().expect("a list").iter().filter_map(Value::as_str);
        all.filter(|note| note.contains("at once")).collect::<String>()
    };
    let workers = || workers_of(&["--log", name(&log)]);
    // A workload may leave them out only where somebody knows them.
    let stream = "duration = \"5s\"\n[[stream]]\nrate = \"10/s\"\n[[stream.page]]\npath = \"/\"\n";
    let workload = temporary("found-workload.toml", stream);
    let by_workload = ["--workload", name(&workload)];
    refused(&[&[name(&configuration)], &by_workload[..]].concat(), &["how many workers `app` truly has"]);
    assert!(workers().starts_with("`app` works on 16 requests at once: THAT IS A GUESS"), "{}", workers());
    let kept = "{\"version\":1,\"written\":1,\"plants\":[{\"name\":\"app\",\"service_level\":2.0,\"bias\":0.0,\
                \"workers\":{\"workers\":4,\"limit\":4,\"possible\":4,\"found\":true,\"highest\":4,\"evidence\":[]}}]}";
    fs::write(&state, kept).expect("it can be written");
    let found = workers();
    assert!(found.starts_with("`app` works on 4 requests at once: an earlier run ("), "{found}");
    assert!(found.contains("found.state) has found so many"), "{found}");
    assert_eq!(workers_of(&by_workload), found);
    let compared = [&by_workload[..], &["--against", name(&configuration)]].concat();
    assert_eq!(workers_of(&compared), found, "another configuration meets the same servers");
    let own = temporary("found-own.toml", &format!("{stream}[plant.app]\nworkers = 3\n"));
    assert_eq!(workers_of(&["--workload", name(&own)]), "");
}

/// JSON lines for a minute, ten a second, with a whole time of about 1,000 each.
fn json_log(name: &str, odd: &str) -> PathBuf {
    let line = |n: u32| {
        let time = if n == 300 { odd.to_owned() } else { (850 + n * 37 % 300).to_string() };
        format!(
            "{{\"time\": {}, \"path\": \"/\", \"client\": \"10.0.0.1\", \"duration\": {time}}}\n",
            1_700_000_000 + n / 10
        )
    };
    temporary(name, &(0..600).map(line).collect::<String>())
}

#[test]
fn a_time_has_one_unit_in_the_whole_log() {
    let log = json_log("whole.jsonl", "900");
    let report = json(&["--log", name(&log)]);
    assert!(report["assumptions"].to_string().contains("`duration`, in microseconds"), "{report}");
    // Ten requests a second of a millisecond, before eight workers.
    let utilization = report["runs"][0]["upstreams"][0]["utilization"].as_f64().expect("a number");
    assert!((0.001..0.002).contains(&utilization), "{utilization}");
    assert_eq!(report["logs"][0]["odd_times"], 0);
    let odd = json_log("odd.jsonl", "0.25");
    has(&printed(&["--log", name(&odd)]), &["`duration`, in microseconds (first at line 301: 0.25)"]);
}

#[test]
fn what_the_end_of_the_run_leaves_out_of_the_log_is_said() {
    let (file, log) = (temporary("timed8.toml", TIMED), temporary("left.log", &log(10)));
    let workload = |duration: &str| temporary("left.toml", &format!("duration = \"{duration}\"\n"));
    let arguments = |workload: &Path| {
        let all = [name(&file), "--log", name(&log), "--workload", name(workload)];
        all.map(str::to_owned)
    };
    let run = |duration: &str| {
        let arguments = arguments(&workload(duration));
        json(&arguments.each_ref().map(String::as_str))
    };
    let cut = run("30s");
    let left = "ends the run before the log: 300 of its 600 requests are left out; `duration = \\\"60s\\\"` takes them in";
    assert!(cut["notes"].to_string().contains(left), "{}", cut["notes"]);
    assert_eq!((&cut["runs"][0]["requests"], &cut["logs"][0]["left_out"]), (&300.into(), &300.into()));
    assert_eq!(cut["logs"][0]["requests"], 300);
    let whole = run("60s");
    assert_eq!((&whole["runs"][0]["requests"], &whole["logs"][0]["left_out"]), (&600.into(), &Value::Null));
}

#[test]
fn a_field_that_no_line_has_is_refused_by_its_name() {
    let log = json_log("named.jsonl", "900");
    let timed = temporary("timed9.toml", TIMED);
    let parts = [
        "`--time-field durration`: none of the 600 lines that were read",
        "`duration` is near; those with a number in the first lines are duration, time",
    ];
    refused(&[name(&timed), "--log", name(&log), "--time-field", "durration"], &parts);
    refused(&["--log", name(&log), "--time-field", "durration", "--capacity", "20/s"], &parts);
    refused(
        &["--log", name(&log), "--time-field", "durration"],
        &["`--time-field durration`", "duration, time"],
    );
    refused(
        &[name(&timed), "--log", name(&log), "--time-field", "1"],
        &["`--time-field 1`", "duration, time"],
    );
    json(&[name(&timed), "--log", name(&log), "--time-field", "duration:us"]);
}

#[test]
fn in_observe_mode_the_figures_say_what_would_have_been() {
    let slow = TIMED
        .replace("5ms", "110ms")
        .replace("cost = 0.2", "cost = 0.8")
        .replace("[upstream.app]", "mode = \"observe\"\n[upstream.app]");
    let (file, log) = (temporary("observe.toml", &slow), temporary("observe.log", &log(40)));
    let page = place("observe.html");
    let arguments = [name(&file), "--log", name(&log)];
    let report = json(&arguments);
    let total = &report["runs"][0]["total"];
    assert_eq!((&total["rejected"], &total["degraded"]), (&0.into(), &0.into()), "{total}");
    let [degraded, rejected] =
        ["would_degrade", "would_reject"].map(|key| total[key].as_u64().expect("a number"));
    assert!(degraded > 300 && rejected > 300, "{total}");
    assert_eq!(total["would_reject_by_reason"]["overload"], rejected);
    let text = printed(&[&arguments[..], &["--against", "none", "--report", name(&page)]].concat());
    has(&text, &["would be degraded", "would be turned away"]);
    let html = fs::read_to_string(&page).expect("the page was written");
    assert!(html.contains("observe.toml: would be turned away, by reason"), "the chart's title");
}

#[test]
fn the_offered_rate_is_that_of_the_time_in_which_it_came() {
    let (file, log) =
        (temporary("timed10.toml", &TIMED.replace("5ms", "500ms")), temporary("drained.log", &log(10)));
    let report = json(&[name(&file), "--log", name(&log), "--against", "none"]);
    let seconds = report["runs"][1]["seconds"].as_f64().expect("a number");
    assert!(seconds > 100.0, "what waits is served later: {seconds}");
    let report = json(&[name(&file), "--log", name(&log)]);
    assert!(report["runs"][0]["seconds"].as_f64() > Some(60.5), "{report}");
    let mean = report["offered"]["mean"].as_f64().expect("a number");
    assert!((9.9..10.2).contains(&mean), "{mean}");
}

/// Four workers of 40 ms, 110 requests a second, and nobody stays longer than was promised.
#[test]
fn who_left_without_an_answer_was_not_served_in_time() {
    for (promise, share) in
        [("delay = \"200ms\"\npercentile = 95", 0.1..0.9), ("delay = \"201ms\"\npercentile = 95", 0.0..0.001)]
    {
        let server = "[gateway]\nlisten = \"127.0.0.1:8080\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n\
                      capacity = { workers = 4 }\n[[site]]\nname = \"shop\"\n";
        let class = format!("[[site.class]]\nname = \"all\"\nmatch = {{ path = \"/*\" }}\n{promise}\n");
        let file = temporary("leaving.toml", &(server.to_owned() + &class));
        let workload = "duration = \"60s\"\n[[stream]]\nrate = \"110/s\"\npatience = \"200ms\"\n\
                        [plant.app]\nservice = \"40ms\"\nservice_law = \"exponential\"\n";
        let workload = temporary("leaving.workload.toml", workload);
        let arguments = [name(&file), "--workload", name(&workload), "--against", "none"];
        let report = json(&arguments);
        let class = &report["runs"][1]["classes"][0];
        let late = class["promise"]["late_share"].as_f64().expect("a number");
        let left =
            class["abandoned"].as_f64().expect("a number") / class["arrivals"].as_f64().expect("a number");
        assert!(share.contains(&late) && left > 0.1, "{promise}: {left} left, {late} late");
    }
}
