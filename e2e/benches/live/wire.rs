//! The agent's `wire` at 5,000 requests a second (CA 4.2.2): what it reads from the packets beside what the server says itself,
//! which differs by at most 3 %.
//!
//! Requests and bytes are those of nginx's access log. Response times and U are those of a server with a thread for each
//! connection, which sleeps for a page's time and times itself from the request's last byte to its answer's. The binary needs
//! the feature `wire` (`PLIMSOLL_BIN=... cargo test -p plimsoll-e2e --bench live -- wire`, as root).

use plimsoll_e2e::agent::{Agent, link, static_trees};
use plimsoll_e2e::{Folder, Nginx};
use plimsoll_load::{OpenLoop, Random, Target};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const RATE: f64 = 5000.0;
const LASTS: Duration = Duration::from_secs(15);
/// Clients, each with a connection that it keeps while no more than one of its requests is under way.
const CLIENTS: u32 = 100;
/// What the agent takes for the server's workers. More are never under way but by a rare chance.
const WORKERS: u32 = 64;
/// The mean time of a page, exponential.
const SERVICE: Duration = Duration::from_millis(8);
const BODY: usize = 4096;
/// The most that a figure may differ by, as a part of the server's own.
const BOUND: f64 = 0.03;
/// The agent looks so often; what it saw last is in the figures of the next period.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the agent beside a server, which it never changes; says why where it cannot.
fn beside(folder: &Folder, server: SocketAddr) -> Option<Agent> {
    link(folder.path(), "trees/full");
    let more = format!(
        "every = \"60s\"\nworkers = {WORKERS}\n[load]\nwire = \"lo\"\n[trees]\nfull = \"trees/full\"\n\
         degraded = \"trees/light\"\n[link]\npath = \"www\"\n[control]\nperiod = \"{}s\"\n",
        PERIOD.as_secs()
    );
    let file = Agent::file(folder, server, ("/probe", 511), &more);
    let checked = Agent::output(&file, "--check");
    if checked.status.code() == Some(2) {
        println!("  not measured: {}", String::from_utf8_lossy(&checked.stderr).trim());
        return None;
    }
    Some(Agent::start(&file, &["--dry-run", "--json"]))
}

/// The figures of each period.
fn figures(agent: &Agent) -> Vec<Value> {
    agent.process.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn total(figures: &[Value], name: &str) -> f64 {
    figures.last().and_then(|last| last[name].as_f64()).unwrap_or(f64::NAN)
}

/// Loads the server, and calls `meanwhile` when the load has begun.
fn load(server: SocketAddr, path: &str, meanwhile: impl FnOnce()) {
    let open = OpenLoop {
        path: path.into(),
        clients: CLIENTS,
        ..OpenLoop::new(Target::new(server), vec![(LASTS, RATE)])
    };
    let load = open.start(None).unwrap_or_else(|error| panic!("the load does not start: {error}"));
    meanwhile();
    let tally = load.join();
    println!(
        "  {} requests at {:.0} a second, of which {} were not answered",
        tally.requests,
        tally.requests as f64 / LASTS.as_secs_f64(),
        tally.errors.iter().sum::<u64>()
    );
}

fn row(what: &str, wire: f64, server: f64) {
    let error = wire / server - 1.0;
    let verdict = if error.abs() <= BOUND { "within 3 %" } else { "not within 3 %" };
    println!("    {what:<24} {wire:>14.3} {server:>14.3} {:>+8.2} %   {verdict}", 100.0 * error);
}

/// Requests and bytes of files, beside nginx's own log.
fn beside_nginx(bytes: usize) -> Option<()> {
    let (root, folder) = (Folder::new(), static_trees());
    root.write("page", "x".repeat(bytes));
    root.write("probe", "well");
    let nginx = Nginx::logging(root.path(), Some("$body_bytes_sent $uri"), ("", ""));
    let agent = beside(&folder, nginx.address)?;
    println!("  nginx, files of {bytes} bytes");
    sleep(2 * PERIOD);
    load(nginx.address, "/page", || ());
    sleep(3 * PERIOD);
    let seen = figures(&agent);
    let log = fs::read_to_string(nginx.access_log()).unwrap_or_default();
    let pages = log.lines().filter_map(|line| line.strip_suffix(" /page")?.parse::<u64>().ok());
    let (requests, sent) = pages.fold((0_u64, 0), |(requests, sum), bytes| (requests + 1, sum + bytes));
    row("requests", total(&seen, "requests"), requests as f64);
    row("bytes", total(&seen, "bytes"), sent as f64);
    Some(())
}

/// What a server says of itself.
#[derive(Debug, Default)]
struct Answered {
    answers: AtomicU64,
    /// The sum of its threads' times with requests (ns).
    busy: AtomicU64,
}

impl Answered {
    fn read(&self) -> [f64; 2] {
        [self.answers.load(Relaxed) as f64, self.busy.load(Relaxed) as f64 / 1e9]
    }
}

/// Answers in a connection that stays open.
fn answer(mut stream: TcpStream, mut random: Random, own: &Answered) {
    let Ok(copy) = stream.try_clone() else { return };
    let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n{}", "x".repeat(BODY));
    let (mut reader, mut head) = (BufReader::new(copy), String::new());
    while reader.read_line(&mut head).is_ok_and(|read| read > 0) {
        if !head.ends_with("\r\n\r\n") {
            continue;
        }
        let begun = Instant::now();
        sleep(Duration::from_secs_f64(random.exponential(SERVICE.as_secs_f64())));
        if stream.write_all(page.as_bytes()).is_err() {
            return;
        }
        own.busy.fetch_add(begun.elapsed().as_nanos() as u64, Relaxed);
        own.answers.fetch_add(1, Relaxed);
        head.clear();
    }
}

fn server() -> (SocketAddr, Arc<Answered>) {
    let own: Arc<Answered> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("no port: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
    let shared = Arc::clone(&own);
    // It ends with the program.
    thread::spawn(move || {
        for (number, stream) in (1..).zip(listener.incoming().map_while(Result::ok)) {
            let own = Arc::clone(&shared);
            thread::spawn(move || answer(stream, Random::new(number), &own));
        }
    });
    (address, own)
}

/// Response times and U, beside a server that times itself.
fn beside_threads() -> Option<()> {
    let folder = static_trees();
    let (address, own) = server();
    let agent = beside(&folder, address)?;
    println!("  a server that times itself, pages of {} ms (exponential)", SERVICE.as_millis());
    sleep(2 * PERIOD);
    let (before, seen) = (own.read(), figures(&agent));
    let (skipped, requests) = (seen.len(), total(&seen, "requests"));
    // The agent smooths its U, which is that of a steady load some seconds after its beginning.
    let mut steady = Vec::new();
    load(address, "/page", || {
        for wait in [LASTS / 3, LASTS / 2] {
            sleep(wait);
            steady.push((Instant::now(), own.read()[1], figures(&agent).len()));
        }
    });
    sleep(3 * PERIOD);
    let seen = figures(&agent);
    let after = own.read();
    let [answers, busy] = [after[0] - before[0], after[1] - before[1]];
    row("requests", total(&seen, "requests") - requests, answers);
    // Each line has the mean of the requests that have ended since the line before, and the sum of all so far.
    let (mut so_far, mut response) = (requests, 0.0);
    for line in &seen[skipped..] {
        let ended = line["requests"].as_f64().unwrap_or(so_far) - so_far;
        response += ended * line["server_response_ms"].as_f64().unwrap_or(0.0);
        so_far += ended;
    }
    row("mean response (ms)", response / (so_far - requests), 1e3 * busy / answers);
    let [(begun, busy_then, from), (ended, busy_now, until)] = steady[..] else { return None };
    let used: Vec<f64> = seen[from..until].iter().filter_map(|line| line["utilization"].as_f64()).collect();
    row(
        "U",
        used.iter().sum::<f64>() / used.len() as f64,
        (busy_now - busy_then) / (ended - begun).as_secs_f64() / f64::from(WORKERS),
    );
    Some(())
}

pub(super) fn show() {
    println!(
        "the agent's `wire` at {RATE} requests a second: by the packets, by the server, and the difference"
    );
    for bytes in [1 << 10, 20_000] {
        if beside_nginx(bytes).is_none() {
            return;
        }
    }
    beside_threads();
}
