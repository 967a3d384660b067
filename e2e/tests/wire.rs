//! `plimsoll agent` with `[load] wire`: what a server did, from the packets of the loopback interface, beside the server's own
//! counts. The binary needs the feature `wire` (`make test` builds it so); the right to capture is root's.

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use plimsoll_e2e::agent::{Agent, link, static_trees};
use plimsoll_e2e::serving_each;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The server takes at least so long for each answer; what the packets show of it may begin a little later.
const TAKES: Duration = Duration::from_millis(25);
const SEEN_TO_TAKE_MS: f64 = 20.0;
const CONNECTIONS: u64 = 4;
const ROUNDS: u64 = 10;
const BODY: usize = 3000;
const PROBE: &str = "well";

/// What the server has answered.
#[derive(Debug, Default)]
struct Served {
    probes: AtomicU64,
    pages: AtomicU64,
    /// Bytes of pages' bodies, with the framing of chunks.
    bytes: AtomicU64,
}

/// Answers in connections that stay open, with a length or in chunks.
fn serve(mut stream: TcpStream, served: &Served) {
    let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 0) {
        if !head.ends_with("\r\n\r\n") {
            continue;
        }
        thread::sleep(TAKES);
        let body = "x".repeat(BODY);
        let (fields, sent) = match head.split(' ').nth(1) {
            Some("/probe") => (format!("Content-Length: {}", PROBE.len()), PROBE.to_owned()),
            Some("/chunks") => {
                ("Transfer-Encoding: chunked".to_owned(), format!("{BODY:x}\r\n{body}\r\n0\r\n\r\n"))
            }
            _ if head.starts_with("HEAD") => (format!("Content-Length: {BODY}"), String::new()),
            _ => (format!("Content-Length: {BODY}"), body),
        };
        if sent == PROBE {
            served.probes.fetch_add(1, Relaxed);
        } else {
            served.pages.fetch_add(1, Relaxed);
            served.bytes.fetch_add(sent.len() as u64, Relaxed);
        }
        if stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{sent}").as_bytes()).is_err() {
            return;
        }
        head.clear();
    }
}

fn server() -> (SocketAddr, Arc<Served>) {
    let served: Arc<Served> = Arc::default();
    let own = Arc::clone(&served);
    (serving_each(move |stream| serve(stream, &own)), served)
}

/// Asks for pages of each kind in one connection; gives the longest time that one took (ms).
fn ask(server: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(server).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    let mut longest = Duration::ZERO;
    for _ in 0..ROUNDS {
        for (start, length) in [("GET /page", BODY), ("GET /chunks", BODY + 12), ("HEAD /page", 0)] {
            let started = Instant::now();
            stream.write_all(format!("{start} HTTP/1.1\r\nHost: e2e.test\r\n\r\n").as_bytes()).expect("sent");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            stream.read_exact(&mut vec![0; length]).expect("a body");
            longest = longest.max(started.elapsed());
        }
    }
    longest.as_secs_f64() * 1e3
}

/// The figures of each period.
fn figures(log: &str) -> Vec<Value> {
    log.lines()
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn later_figures(agent: &mut Agent, count: usize) {
    let so_far = figures(&agent.process.log()).len();
    agent.process.wait_for("figures", |log| (figures(log).len() >= so_far + count).then_some(()));
}

#[test]
fn packets_show_each_request_and_byte_once_and_how_long_answers_took() {
    let (address, served) = server();
    let folder = static_trees();
    link(folder.path(), "trees/full");
    // The probe comes twice at the start, and not again for a minute.
    let more = "every = \"60s\"\nworkers = 4\n[load]\nwire = \"lo\"\n[trees]\nfull = \"trees/full\"\n\
                degraded = \"trees/light\"\n[link]\npath = \"www\"\n[control]\nperiod = \"200ms\"\n";
    let file = Agent::file(&folder, address, ("/probe", 511), more);
    if !geteuid().is_root() {
        let output = Agent::output(&file, "--check");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return assert!(output.status.code() == Some(2) && said.contains("CAP_NET_RAW"), "{said}");
    }
    let mut agent = Agent::start(&file, &["--dry-run", "--json"]);
    later_figures(&mut agent, 3);
    let longest = thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(|| ask(address))).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).fold(0.0, f64::max)
    });
    let (pages, bytes) = (served.pages.load(Relaxed), served.bytes.load(Relaxed));
    assert_eq!(pages, 3 * ROUNDS * CONNECTIONS);
    agent.process.wait_for("all pages", |log| {
        figures(log).last().is_some_and(|last| last["requests"].as_u64() >= Some(pages)).then_some(())
    });
    // Nothing comes afterwards that was counted twice.
    later_figures(&mut agent, 3);
    let log = agent.process.log();
    let all = figures(&log);
    let last = all.last().expect("figures");
    // The first probe is over before the packets are captured, the second may be.
    let requests = last["requests"].as_u64().expect("a count");
    assert!((pages..pages + served.probes.load(Relaxed)).contains(&requests), "{last}");
    let probed = (requests - pages) * PROBE.len() as u64;
    assert_eq!(last["bytes"].as_u64(), Some(bytes + probed), "{last}");
    assert_eq!(last["dropped_bytes"], 0, "{last}");
    let responses: Vec<f64> = all.iter().filter_map(|line| line["server_response_ms"].as_f64()).collect();
    let probe = last["response_ms"].as_f64().expect("the probe's time");
    assert!(!responses.is_empty(), "{log}");
    for response in responses {
        assert!((SEEN_TO_TAKE_MS..=longest.max(probe)).contains(&response), "{response} of {longest}: {log}");
    }
    assert!(last["server_response_ms"].is_null(), "nothing came lately: {last}");
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
}
