//! The access log, through the binary: a line for each request, whatever became of it; a file that is moved away; a disk that
//! is full; and `plimsoll simulate` reads each form back.

use nix::sys::signal::Signal;
use plimsoll_e2e::certificates::certificate;
use plimsoll_e2e::configuration::{before, plain, site, two_levels};
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::{Folder, PlayedUpstream, Plimsoll, SLOW_PAGES, exchange, get, program};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// The package's file for logrotate as it stands, but for the folder, the user and how the process is found.
#[test]
fn logrotate_moves_a_log_away_and_has_it_opened_anew() {
    let packaged = include_str!("../../packaging/debian/plimsoll.logrotate");
    assert!(include_str!("../../docs/access-log.md").contains(packaged), "the documentation has it");
    let (origin, folder) = (SLOW_PAGES.origin(&[]), Folder::new());
    let logs = folder.path().join("log");
    fs::create_dir(&logs).expect("a folder");
    let log = logs.join("access.log");
    let mut gateway = Plimsoll::run(&format!(
        "{}\n[access_log]\nfile = \"{}\"\n",
        before(origin.address(), &two_levels()),
        log.display()
    ));
    let ask = || assert_eq!(get(gateway.address, "/page").status, 200);
    ask();
    lines(&log, 1);
    let own = [
        ("/var/log/plimsoll", logs.display().to_string()),
        ("    su plimsoll plimsoll\n", String::new()),
        ("$(systemctl show --property=MainPID --value plimsoll)", gateway.process.pid().to_string()),
    ];
    let text = own.iter().fold(packaged.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{text}");
        text.replace(from, to)
    });
    let (file, state) = (folder.write("logrotate", text), folder.path().join("state"));
    let mut command = Command::new(program("logrotate"));
    let rotated = command.arg("--force").arg("--state").arg(state).arg(file).output().expect("it runs");
    assert!(rotated.status.success(), "{}", String::from_utf8_lossy(&rotated.stderr));
    let start = Instant::now();
    while !log.exists() && start.elapsed() < PATIENCE {
        ask();
    }
    ask();
    assert!(gateway.stop().success());
    assert!(lines_of(&logs.join("access.log.1")) >= 1 && lines_of(&log) >= 1);
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

#[test]
fn what_stands_between_the_parts_of_a_body_is_not_counted() {
    let server = PlayedUpstream::new();
    let file = before(server.address(), &plain()) + "\n[access_log]\nfile = \"access.log\"\n";
    let mut gateway = Plimsoll::run(&file);
    let address = gateway.address;
    let client = thread::spawn(move || get(address, "/page").text().len());
    let (mut stream, _) = server.request();
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: a\r\n\r\n2\r\nok\r\n3;x=y\r\nyes\r\n0\r\na: b\r\n\r\n";
    stream.write_all(answer.as_bytes()).expect("it takes an answer");
    client.join().expect("an answer");
    assert!(gateway.stop().success());
    let line: Value = serde_json::from_str(&lines(&beside(&gateway, "access.log"), 1)[0]).expect("JSON");
    assert_eq!((line["status"].as_u64(), line["bytes"].as_u64()), (Some(200), Some(5)), "{line}");
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

/// A request whose answer goes on for this long after the client has its head, which the server sends.
fn stay_open(gateway: SocketAddr, server: &PlayedUpstream, head: &str, answer: &str, length: Duration) {
    let mut client = TcpStream::connect(gateway).expect("a connection");
    client.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    client.write_all(head.as_bytes()).expect("it takes a head");
    let (mut stream, _) = server.request();
    stream.write_all(answer.as_bytes()).expect("it takes an answer");
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the head of an answer");
        read.extend(byte);
    }
    thread::sleep(length);
    drop(stream);
    client.read_to_end(&mut read).expect("the end of an answer");
}

/// A site with two levels and a short queue, one whose answers stay open, and TLS, to which nothing is redirected yet.
fn with_streams(origin: SocketAddr, live: SocketAddr, certificates: &Folder) -> String {
    let (chain, key) = certificate(certificates, "e2e", "e2e.test");
    let more = format!(
        "\n[report]\nwhen = \"always\"\n[access_log]\nfile = \"access.log\"\n[limits]\nbody = \"1 KiB\"\n\
         [upstream.live]\naddress = \"{live}\"\ncapacity = {{ workers = 2 }}\n\
         [[site]]\nname = \"live\"\nhost = \"live.test\"\nupstream = \"live\"\n{}\n\
         [tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
        site("site", "upstream = \"server\""),
        chain.display(),
        key.display()
    );
    let few = "max_connections = 8\nmax_waiting = 20";
    before(origin, &plain()).replace("max_connections = 8", few) + &more
}

/// What follows the request line of a request that stays open, and what its server answers.
const OPEN: [(&str, &str, &str); 2] = [
    (
        "/socket",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ),
    (
        "/events",
        "Connection: close\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n",
    ),
];

/// What a request that stays open takes ends with its head: its place was given back then.
fn ends_with_its_head(lines: &[String], path: &str, open: Duration) {
    let line = lines.iter().find(|line| line.contains(path)).expect("its line");
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    let took = |field: &str| line[field].as_f64().expect("a time");
    assert!(took("delivery_time") > took("service_time") + open.as_secs_f64(), "{line}");
}

#[test]
fn simulate_reads_back_all_that_the_gateway_wrote() {
    let (origin, live, certificates) = (SLOW_PAGES.origin(&[]), PlayedUpstream::new(), Folder::new());
    let file = with_streams(origin.address(), live.address(), &certificates);
    let mut gateway = Plimsoll::run(&file);
    let rate = 20.0 * SLOW_PAGES.capacity();
    let flown = drive(gateway.address, &[Flow::new("e2e.test", "/page", &[(1.0, rate)])], PATIENCE, || {});
    let pages = flown[0].all().requests();
    let open = Duration::from_millis(300);
    for (path, more, answer) in OPEN {
        let head = format!("GET {path} HTTP/1.1\r\nHost: live.test\r\n{more}\r\n");
        stay_open(gateway.address, &live, &head, answer, open);
    }
    let address = gateway.address;
    let ask = |line: &str, more: &str| {
        let head = format!("{line} HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n{more}\r\n");
        exchange(address, head).status
    };
    assert_eq!(ask("POST /form", "Content-Length: 4096\r\n"), 413);
    assert_eq!(exchange(address, "BAD\r\n\r\n").status, 400);
    gateway.rewrite(&(file + "redirect = 8443\n"));
    gateway.hang_up(1);
    assert_eq!((ask("GET /page", ""), ask("DELETE /page", "")), (301, 308));
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert!(gateway.stop().success());
    let log = beside(&gateway, "access.log");
    let lines = lines(&log, pages + 6);
    OPEN.iter().for_each(|(path, ..)| ends_with_its_head(&lines, path, open));
    let (file, log) = (gateway.file(), log.to_string_lossy().into_owned());
    let output = Plimsoll::output(&["simulate", &file.to_string_lossy(), "--log", &log, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let found =
        ["lines", "skipped", "no_load", "requests", "timed"].map(|what| report["logs"][0][what].as_u64());
    let wanted = [pages + 6, 0, 4, pages + 2, pages + 2].map(|count| Some(count as u64));
    assert_eq!(found, wanted, "{}", report["notes"]);
    assert_eq!(report["runs"][0]["total"]["arrivals"].as_u64(), Some(pages as u64 + 2));
    eprintln!("the log: {:?}; its replay: {}", counted(&lines, "reason"), report["runs"][0]["total"]);
}
