//! The access log, through the binary: a line for each request, whatever became of it; a file that is moved away; a disk that
//! is full; and `plimsoll simulate` reads each form back.

use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, site, two_levels};
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::{Plimsoll, SLOW_PAGES, exchange, get};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

const PATIENCE: Duration = Duration::from_secs(30);

fn beside(gateway: &Plimsoll, name: &str) -> PathBuf {
    gateway.file().parent().unwrap_or(Path::new("")).join(name)
}

/// Waits until a log has so many lines, and returns them.
fn lines(file: &Path, wanted: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= wanted || start.elapsed() > PATIENCE {
            assert_eq!(lines.len(), wanted, "{text}");
            return lines;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// How many lines have each value of a field.
fn counted(lines: &[String], field: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let value = entry.get(field).map_or("-".to_owned(), |value| value.to_string().replace('"', ""));
        *counts.entry(value).or_default() += 1;
    }
    counts
}

#[test]
fn every_request_of_an_overload_has_one_line() {
    let origin = SLOW_PAGES.origin(&[]);
    let file = before(origin.address(), &two_levels()) + "\n[access_log]\nfile = \"access.log\"\n";
    let mut gateway = Plimsoll::run(&file);
    let rate = 20.0 * SLOW_PAGES.capacity();
    let flown = drive(gateway.address, &[Flow::new("e2e.test", "/page", &[(2.0, rate)])], PATIENCE, || {});
    let all = flown[0].all();
    assert_eq!(all.count(End::Lost), 0);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let served = gateway.metric("plimsoll_served_total");
    let turned_away = all.requests() - served as usize;
    assert_eq!(exchange(gateway.address, "BAD\r\n\r\n").status, 400);
    assert!(gateway.stop().success());
    let lines = lines(&beside(&gateway, "access.log"), all.requests() + 1);
    let by_status = counted(&lines, "status");
    assert_eq!(by_status.get("400"), Some(&1), "{by_status:?}");
    assert_eq!(by_status.get("503").copied().unwrap_or_default(), turned_away, "{by_status:?}");
    assert_eq!(by_status.get("200").copied().unwrap_or_default(), served as usize, "{by_status:?}");
    eprintln!("an overload, in so far as this machine keeps up: {by_status:?}");
    let by_level = counted(&lines, "level");
    assert_eq!(by_level.get("-").copied(), Some(turned_away + 1), "{by_level:?}");
    let first: Value = serde_json::from_str(&lines[0]).unwrap_or_default();
    for (field, wanted) in
        [("method", "GET"), ("path", "/page"), ("host", "e2e.test"), ("site", "site"), ("class", "default")]
    {
        assert_eq!(first[field], wanted, "{first}");
    }
    let took = |field: &str| first[field].as_f64().unwrap_or(-1.0);
    assert!(took("queue_time") >= 0.0 && took("service_time") > 0.0, "{first}");
    assert!(took("delivery_time") >= took("queue_time") + took("service_time") - 1e-5, "{first}");
    let share = took("client_share");
    assert!((0.0..1.0).contains(&share), "{first}");
}

#[test]
fn a_file_that_was_moved_away_is_opened_anew_and_sites_have_their_own() {
    let origin = SLOW_PAGES.origin(&[]);
    let sites = site("own", "host = \"own.test\"\naccess_log = \"own.log\"")
        + &site("silent", "host = \"silent.test\"\naccess_log = \"off\"")
        + &site("others", "");
    let head = two_levels().split("\n[[site]]").next().unwrap_or_default().to_owned();
    let log = "\n[access_log]\nfile = \"access.log\"\nformat = \"common\"\n";
    let mut gateway = Plimsoll::run(&before(origin.address(), &(head + log + &sites)));
    let ask = |host: &str| {
        let head = format!("GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(exchange(gateway.address, head).status, 200, "{host}");
    };
    for host in ["own.test", "own.test", "silent.test", "others.test"] {
        ask(host);
    }
    let (shared, moved) = (beside(&gateway, "access.log"), beside(&gateway, "access.log.1"));
    lines(&beside(&gateway, "own.log"), 2);
    let before = lines(&shared, 1);
    assert!(
        before[0].starts_with("127.0.0.1 - - [") && before[0].contains("] \"GET /page HTTP/1.1\" 200 "),
        "{before:?}"
    );
    fs::rename(&shared, &moved).expect("it can be moved");
    gateway.process.signal(Signal::SIGUSR1);
    // The signal is taken by another thread than the one that serves: a line may still go to the old file.
    let start = Instant::now();
    let mut asked = 0;
    while !shared.exists() && start.elapsed() < PATIENCE {
        ask("others.test");
        asked += 1;
    }
    ask("others.test");
    // What cannot be opened is said, and the file that is open goes on.
    let later = beside(&gateway, "access.log.2");
    fs::rename(&shared, &later).and_then(|()| fs::create_dir(&shared)).expect("a folder in its place");
    gateway.process.signal(Signal::SIGUSR1);
    gateway.process.wait_for("a warning", |log| log.contains("cannot be opened anew").then_some(()));
    ask("others.test");
    assert!(gateway.stop().success());
    let (old, new) = (lines_of(&moved), lines_of(&later));
    assert_eq!(old + new, 3 + asked, "no line is lost: {old} in the old file, {new} in the new one");
    assert!(new >= 2);
}

#[test]
fn a_failure_has_its_server_its_tries_and_its_cause() {
    let origin = SLOW_PAGES.origin(&[]);
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let upstream = |name: &str, address: SocketAddr| {
        format!("[upstream.{name}]\naddress = \"{address}\"\ncapacity = {{ workers = 2 }}\n")
    };
    let site =
        |name: &str| format!("[[site]]\nname = \"{name}\"\nhost = \"{name}.test\"\nupstream = \"{name}\"\n");
    let file = "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\
                [access_log]\nfile = \"access.log\"\n[limits]\nbody = \"1 KiB\"\n"
        .to_owned()
        + &upstream("works", origin.address())
        + &upstream("gone", closed)
        + &site("works")
        + &site("gone");
    let mut gateway = Plimsoll::run(&file);
    let ask = |line: &str, host: &str, more: &str| {
        let head = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        let answer = exchange(gateway.address, head);
        (answer.status, answer.text().len() as u64)
    };
    let answers = [
        ask("GET /page", "works.test", ""),
        ask("GET /page", "gone.test", ""),
        ask("POST /form", "works.test", "Content-Length: 4096\r\n"),
        ask("GET /page", "nobody.test", ""),
    ];
    assert_eq!(answers.map(|(status, _)| status), [200, 502, 413, 421]);
    assert!(gateway.stop().success());
    let lines: Vec<Value> = lines(&beside(&gateway, "access.log"), 4)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for (line, (status, bytes)) in lines.iter().zip(answers) {
        assert_eq!(
            (line["status"].as_u64(), line["bytes"].as_u64()),
            (Some(status.into()), Some(bytes)),
            "{line}"
        );
        assert_eq!(line["error"].is_string(), status != 200, "{line}");
    }
    let tried = |line: &Value| (line["server"].as_str().map(str::to_owned), line["tries"].as_u64());
    assert_eq!(tried(&lines[0]), (Some(origin.address().to_string()), Some(1)));
    assert_eq!(tried(&lines[1]), (Some(closed.to_string()), Some(1)));
    assert_eq!((tried(&lines[2]), tried(&lines[3])), ((None, None), (None, None)));
    let asked =
        |line: &Value| ["method", "path", "site"].map(|field| line[field].as_str().map(str::to_owned));
    assert_eq!(asked(&lines[2]), ["POST", "/form", "works"].map(|text| Some(text.to_owned())));
}

fn lines_of(file: &Path) -> usize {
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn a_full_disk_loses_lines_and_no_request() {
    let origin = SLOW_PAGES.origin(&[]);
    let file = before(origin.address(), &two_levels()) + "\n[access_log]\nfile = \"/dev/full\"\n";
    let mut gateway = Plimsoll::run(&file);
    let start = Instant::now();
    // The disk is full once the writer's buffer is.
    while gateway.metric("plimsoll_access_log_lines_dropped_total") == 0.0 {
        assert_eq!(get(gateway.address, "/page").status, 200);
        assert!(start.elapsed() < PATIENCE, "no line is lost");
    }
    // Another log does not make up for them: a counter does not go back.
    gateway.rewrite(&file.replace("/dev/full", "access.log"));
    gateway.hang_up(1);
    assert!(gateway.metric("plimsoll_access_log_lines_dropped_total") > 0.0);
    assert!(gateway.stop().success());
}

#[test]
fn a_file_that_cannot_be_opened_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plimsoll.toml");
    let text = "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\n\n[upstream.app]\naddress = \"127.0.0.1:9\"\n\n\
                [access_log]\nfile = \"/nowhere/access.log\"\n";
    fs::write(&file, text).expect("it can be written");
    let output = Plimsoll::output(&["run", &file.to_string_lossy()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the access log /nowhere/access.log cannot be opened: No such file or directory"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}
