//! `plimsoll agent` beside an unmodified Apache prefork and an unmodified nginx (CA 4.1, 4.2): it degrades under load, restores
//! without it, and leaves full quality behind. When it switches, how often, and how many requests fail is judged in virtual
//! time by `crates/sim/tests/agent.rs`.

use crate::page;
use nix::sys::signal::Signal;
use plimsoll_e2e::agent::{self, Agent, CA_PAGES, NGINX_PAGES, fraction, link, linked};
use plimsoll_e2e::flows::{Flow, Recorded};
use plimsoll_e2e::{Apache, Folder, Nginx, ServerModel};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the agent may take to act; it takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `seen` holds.
fn wait_until(agent: &Agent, what: &str, mut seen: impl FnMut() -> bool) {
    let start = Instant::now();
    while !seen() {
        assert!(start.elapsed() < PATIENCE, "{what} does not come:\n{}", agent.process.log());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Loads a server at one and a half times its capacity until `degraded` holds, after a calm in which it does not; every request
/// ends.
fn overload(
    server: SocketAddr,
    path: &'static str,
    model: ServerModel,
    agent: &Agent,
    mut degraded: impl FnMut() -> bool,
) {
    let load = |seconds, part: f64| {
        let flow = Flow::new("e2e.test", path, &[(seconds, part * model.capacity())]);
        Recorded::start(flow.load(server, 1, Duration::from_secs(4)))
    };
    let (tally, _) = load(3.0, 0.3).join();
    assert_eq!((tally.status(200), degraded()), (tally.requests, false), "calm: {:?}", tally.errors);
    let running = load(600.0, 1.5);
    wait_until(agent, "degradation", &mut degraded);
    running.load.stop();
    drop(running.join());
}

fn link_file(server: &Apache, costs: &str) -> PathBuf {
    let more = format!(
        "{costs}\n[load]\nlog = \"access.log\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n"
    );
    Agent::file(&server.folder, server.direct, ("/robots.txt", CA_PAGES.queue), &more)
}

/// The paper's minimal agent: the link leads to the light tree under load, and back when the load has gone.
#[test]
fn apache_with_a_link_is_degraded_and_restored() {
    let server = agent::apache(page());
    let place = server.folder.path();
    let mut agent = Agent::start(&link_file(&server, &CA_PAGES.costs()), &[]);
    overload(server.direct, "/page", CA_PAGES, &agent, || linked(place) == "light");
    wait_until(&agent, "full quality", || linked(place) == "full");
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
}

/// PI on the fraction that is degraded, by gaps in Apache's own status page; Apache reads the map by itself.
#[test]
fn apache_with_a_map_is_degraded_in_part() {
    let server = agent::apache(page());
    let status = format!("http://{}/server-status?auto", server.direct);
    let more = format!(
        "[load]\nserver_status = \"{status}\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n[apache]\nmap = \"trees.map\"\n"
    );
    let file = Agent::file(&server.folder, server.direct, ("/robots.txt", CA_PAGES.queue), &more);
    let mut agent = Agent::start(&file, &[]);
    let fraction = || fraction(server.folder.path(), "trees.map");
    overload(server.direct, "/mapped", CA_PAGES, &agent, || fraction() < 1.0);
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
    assert_eq!(fraction(), 1.0, "restored at the end");
}

fn nginx_file(server: &Nginx) -> PathBuf {
    let (status, workers) = (format!("http://{}/nginx_status", server.address), NGINX_PAGES.workers);
    let more = format!(
        "workers = {workers}\nresponse_time = \"500ms\"\n[load]\nstub_status = \"{status}\"\n\
         [trees]\nfull = \"/full\"\ndegraded = \"/light\"\n\
         [nginx]\nfile = \"split.conf\"\npid = \"nginx.pid\"\nconfiguration = \"nginx.conf\"\nseed = 11\n"
    );
    Agent::file(&server.folder, server.address, ("/probe", NGINX_PAGES.queue), &more)
}

/// The same with nginx, which the agent makes read its file again; full quality comes back by itself when the load has gone.
#[test]
fn nginx_with_a_split_is_degraded_in_part_and_restored() {
    let server = agent::nginx(page());
    let mut agent = Agent::start(&nginx_file(&server), &[]);
    let fraction = || fraction(server.folder.path(), "split.conf");
    overload(server.address, "/page", NGINX_PAGES, &agent, || fraction() < 1.0);
    wait_until(&agent, "full quality", || fraction() == 1.0);
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
}

/// nginx says only in its own log that it goes on with its former configuration.
#[test]
fn what_nginx_refuses_is_said_and_the_file_stays_as_nginx_has_it() {
    let server = agent::nginx(page());
    let file = nginx_file(&server);
    let said = Agent::output(&file, "--restore");
    assert!(said.status.success(), "{said:?}");
    let [split, own] = ["split.conf", "nginx.conf"].map(|name| server.folder.path().join(name));
    let as_nginx_has_it = fs::read_to_string(&split).unwrap().replace("quality: 1", "quality: 0");
    fs::write(&split, &as_nginx_has_it).unwrap();
    fs::write(&own, fs::read_to_string(&own).unwrap() + "\nno_directive;\n").unwrap();
    let refused = Agent::output(&file, "--restore");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("no_directive"), "{refused:?}");
    assert_eq!(fs::read_to_string(&split).unwrap(), as_nginx_has_it);
}

fn static_file(folder: &Folder, address: SocketAddr) -> PathBuf {
    let place = folder.path().display();
    let more = format!(
        "workers = 8\n[load]\nstub_status = \"http://{address}/nginx_status\"\n\
         [trees]\nfull = \"{place}/trees/full\"\ndegraded = \"{place}/trees/light\"\n\
         [nginx]\nfile = \"split.conf\"\npid = \"nginx.pid\"\nconfiguration = \"nginx.conf\"\n"
    );
    Agent::file(folder, address, ("/page.html", 511), &more)
}

/// Asks for a page again and again until `done`, many times on a connection.
fn ask_on(address: SocketAddr, done: &AtomicBool) -> Option<()> {
    let request = format!("GET /page.html HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let many = request.repeat(100);
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let (mut answers, mut length) = ([0; 16 * 1024], 0);
    while !answers[..length].ends_with(b"<p>full") {
        length += stream.read(&mut answers[length..]).ok().filter(|count| *count > 0)?;
    }
    // The others are as long.
    while !done.load(Ordering::Relaxed) {
        stream.write_all(many.as_bytes()).ok()?;
        let mut left = 100 * length;
        while left > 0 {
            let most = left.min(answers.len());
            left -= stream.read(&mut answers[..most]).ok().filter(|count| *count > 0)?;
        }
    }
    Some(())
}

/// Ends the load, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The shape of the shipped example, beside an nginx that serves files: it never has a request in service when it is asked,
/// so that its load shows in its processor time alone.
#[test]
fn nginx_before_files_is_seen_by_its_processor_time() {
    let folder = agent::static_trees();
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let output = Agent::output(&static_file(&folder, nobody), "--restore");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("nginx does not run"),
        "before its first start: {output:?}"
    );
    let server = agent::static_nginx(folder);
    let file = static_file(&server.folder, server.address);

    let output = Agent::output(&file, "--check");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for part in
        ["probe        answered in", "requests/s, ", "of what 2 processes can use: 1 of", "utilization  0."]
    {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Ends(&done);
        for _ in 0..4 {
            scope.spawn(|| ask_on(server.address, &done));
        }
        let mut agent = Agent::start(&file, &["--dry-run", "--json"]);
        let figures = |log: &str| -> Option<serde_json::Value> {
            let mut lines =
                log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            lines.find(|figures| figures["utilization"].as_f64().is_some_and(|value| value > 0.1))
        };
        let seen = agent.process.wait_for("a load that is seen", figures);
        assert_eq!(seen["blind"].as_bool(), Some(false), "{seen}");
        drop(ends);
        assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
    });

    fs::remove_dir_all(server.folder.path().join("trees/light")).unwrap();
    let output = Agent::output(&file, "--check");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("/trees/light; `plimsoll adapt`"), "{said}");
}

/// Full quality is left behind whatever ends the agent; after a kill, by `--restore`.
#[test]
fn at_the_end_full_quality_is_restored() {
    let server = agent::apache(page());
    let file = link_file(&server, "costs = { request = \"10ms\" }");
    let place = server.folder.path();
    let degrade = || link(place, "light");
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        degrade();
        let mut agent = Agent::start(&file, &[]);
        assert_eq!(agent.said("everybody is degraded at the start"), 1, "{}", agent.process.log());
        assert_eq!(agent.end(signal).code(), Some(0));
        assert_eq!((linked(place).as_str(), agent.said("restored")), ("full", 1));
    }
    degrade();
    let mut agent = Agent::start(&file, &[]);
    agent.end(Signal::SIGKILL);
    assert_eq!(linked(place), "light");
    assert_eq!(Agent::output(&file, "--restore").status.code(), Some(0));
    assert_eq!(linked(place), "full");

    // Without load full quality comes back by itself.
    degrade();
    let mut agent = Agent::start(&file, &[]);
    wait_until(&agent, "full quality", || linked(place) == "full");
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
    let before = std::fs::read_to_string(&file).unwrap();
    degrade();
    std::fs::write(&file, before + "[control]\non_exit = \"keep\"\n").unwrap();
    assert_eq!(Agent::start(&file, &[]).end(Signal::SIGTERM).code(), Some(0));
    assert_eq!(linked(place), "light", "kept, as the file says");
}

/// A dry run says what the agent would do, with figures for programs, and touches nothing, not even at its end.
#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let server = agent::apache(page());
    let place = server.folder.path();
    link(place, "light");
    let file = link_file(&server, "costs = { request = \"10ms\" }");
    let mut agent = Agent::start(&file, &["--dry-run", "--json"]);
    assert_eq!(agent.said("a dry run, nothing is changed"), 1, "{}", agent.process.log());
    // A line of figures after the change that it would make.
    let figures = |log: &str| {
        let after = log.split("would be: full quality for everybody: ").nth(1)?;
        after.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
    };
    let figures = agent.process.wait_for("the change that it would make", figures);
    assert_eq!(
        (figures["fraction"].as_f64(), figures["changes"].as_u64()),
        (Some(0.0), Some(0)),
        "{figures}"
    );
    assert_eq!(figures["overloaded"].as_bool(), Some(false), "{figures}");
    assert_eq!(linked(place), "light", "{}", agent.process.log());
    assert_eq!(agent.end(Signal::SIGTERM).code(), Some(0));
    assert_eq!(linked(place), "light", "{}", agent.process.log());
}

/// All errors at the start are said at once, and nothing is begun.
#[test]
fn errors_at_the_start_are_said_with_what_to_do() {
    let server = agent::nginx(page());
    let file = nginx_file(&server);
    assert_eq!(Agent::output(&file, "--check").status.code(), Some(0));
    let right = std::fs::read_to_string(&file).unwrap();
    let says = |text: String, parts: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let output = Agent::output(&file, "--check");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in parts {
            assert!(said.contains(part), "no {part:?} in\n{said}");
        }
    };
    let not_included = right.replace("split.conf", "other.conf");
    says(not_included, &["other.conf", "include", "$plimsoll_tree"]);
    says(right.replace("nginx_status", "page"), &["is no `stub_status` page"]);
    let nobody = right.replace(&server.address.to_string(), "127.0.0.1:9");
    says(nobody.replace("nginx.pid", "no.pid"), &["the probe http://127.0.0.1:9", "no.pid", "refused"]);
    std::fs::write(server.folder.path().join("split.conf"), "split_clients nonsense;\n").unwrap();
    says(right, &["was not written by", "nginx refuses its configuration"]);
}
