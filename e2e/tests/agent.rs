//! `plimsoll agent` beside an unmodified Apache prefork and an unmodified nginx (CA 4.1, 4.2). The same load on the same
//! server without the agent must fail.

use nix::sys::signal::Signal;
use plimsoll_e2e::beside::{self, Agent, Beside, KILOBYTES, Measured};
use plimsoll_e2e::overload::{PATIENCE, failures};
use plimsoll_e2e::page::WORKERS;
use plimsoll_load::{OpenLoop, Paths, Step, Tally, Target, on_a_steady_machine};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const CALM: Duration = Duration::from_secs(8);
/// The queue has been filled and emptied by then.
const SETTLED: Duration = Duration::from_secs(25);

const S: fn(u64) -> Duration = Duration::from_secs;

/// Open-loop load from 400 clients at addresses of their own; what `look` saw every 20 ms, whenever it changed.
fn load<T: PartialEq>(
    server: &Beside,
    path: &str,
    steps: &[Step],
    mut look: impl FnMut() -> T,
) -> (Tally, Vec<(f64, T)>) {
    let target = Target { host: "e2e.test".into(), timeout: PATIENCE, ..Target::new(server.address) };
    let load = OpenLoop {
        paths: Paths::one(path),
        clients: 400,
        first_address: Ipv4Addr::new(127, 16, 0, 1),
        seed: 1,
        ..OpenLoop::new(target, steps.to_vec())
    };
    let handle = load.start(None).unwrap_or_else(|error| panic!("the load does not start: {error}"));
    let mut seen: Vec<(f64, T)> = Vec::new();
    while !handle.is_finished() {
        let now = look();
        if seen.last().is_none_or(|(_, last)| *last != now) {
            seen.push((handle.started().elapsed().as_secs_f64(), now));
        }
        thread::sleep(Duration::from_millis(20));
    }
    (handle.join(), seen)
}

/// Failures in the seconds from `from` on.
fn failures_from(tally: &Tally, from: Duration) -> u64 {
    let late = tally.slots.iter().skip(from.as_secs() as usize);
    late.map(|slot| slot.errors + slot.refusals).sum()
}

/// Of the pages that were answered in these seconds, the share at full quality, by their bytes.
fn full_share(tally: &Tally, seconds: std::ops::Range<usize>, (full, light): (usize, usize)) -> f64 {
    let slots = &tally.slots[seconds];
    let answers: u64 = slots.iter().map(|slot| slot.answers).sum();
    let bytes: u64 = slots.iter().map(|slot| slot.bytes).sum();
    (bytes as f64 / answers as f64 / 1024.0 - light as f64) / (full - light) as f64
}

fn tell(what: &str, tally: &Tally, agent: Option<&Agent>) {
    eprintln!(
        "{what}: {} requests, {} failed {:?} {:?}, p50 {:?}, p99 {:?}\n{}",
        tally.requests,
        failures(tally),
        tally.errors,
        tally.by_status,
        tally.latency.quantile(0.5),
        tally.latency.quantile(0.99),
        agent.map(|agent| agent.process.log()).unwrap_or_default()
    );
}

fn page(name: &str) -> &Path {
    Path::new(match name {
        "tree" => env!("CARGO_BIN_EXE_tree-page"),
        _ => env!("CARGO_BIN_EXE_page-scgi"),
    })
}

fn link_file(server: &Beside, costs: &str) -> PathBuf {
    let more = format!(
        "{costs}\n[load]\nlog = \"access.log\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n"
    );
    server.agent_file("/robots.txt", &more)
}

/// The paper's minimal agent, with hysteresis: no errors up to nearly the rate that its ratio predicts for these a and
/// b, one switch each way, back within ten seconds of the load's end.
#[test]
fn apache_with_a_link_is_degraded_once_and_restored_within_ten_seconds() {
    on_a_steady_machine(|| {
        let server = beside::apache(page("tree"));
        let measured = Measured::of(&server);
        eprintln!("{measured:?}, {}", measured.costs());
        assert!(measured.light > 2.0 * measured.full, "CA's ratio is 2.67: {measured:?}");
        let mut agent = Agent::start(&link_file(&server, &measured.costs()));
        let rate = 0.95 * measured.light;
        let (crowd, calm) = (S(45), S(14));
        let end = (CALM + crowd).as_secs_f64();
        let steps = [(CALM, 0.5 * measured.full), (crowd, rate), (calm, 0.2 * measured.full)];
        let (tally, trees) = load(&server, "/page", &steps, || server.linked());
        tell("apache, link", &tally, Some(&agent));
        eprintln!("{trees:?}; {:.2} times the capacity", rate / measured.full);
        let names: Vec<&str> = trees.iter().map(|(_, tree)| tree.as_str()).collect();
        assert_eq!(names, ["full", "light", "full"], "{trees:?}");
        assert!((8.0..18.0).contains(&trees[1].0), "{trees:?}");
        assert!((end + 1.0..end + 10.0).contains(&trees[2].0), "{trees:?}");
        assert_eq!(failures_from(&tally, SETTLED), 0, "{:?}", tally.slots);
        assert!(failures(&tally) * 50 < tally.requests, "{} of {}", failures(&tally), tally.requests);
        assert_eq!(agent.stop().code(), Some(0));

        let (alone, _) = load(&server, "/page", &[(S(15), rate)], || ());
        tell("apache, alone", &alone, None);
        assert!(failures(&alone) * 4 > alone.requests, "the twin without the agent failed too few");
    });
}

/// PI on the fraction that is degraded, by gaps in Apache's own status page; Apache reads the map by itself.
#[test]
fn apache_with_a_map_degrades_as_many_as_it_takes() {
    on_a_steady_machine(|| {
        let server = beside::apache(page("tree"));
        let status = format!("http://{}/server-status?auto", server.address);
        let more = format!(
            "[load]\nserver_status = \"{status}\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n\
         [apache]\nmap = \"trees.map\"\n"
        );
        let measured = Measured::of(&server);
        let mut agent = Agent::start(&server.agent_file("/robots.txt", &more));
        let steps = [(CALM, 0.5 * measured.full), (S(60), 1.7 * measured.full)];
        let (tally, fractions) = load(&server, "/mapped", &steps, || server.fraction("trees.map"));
        tell("apache, map", &tally, Some(&agent));
        assert_eq!(failures_from(&tally, SETTLED), 0, "{:?}", tally.slots);
        assert!(failures(&tally) * 50 < tally.requests, "{} of {}", failures(&tally), tally.requests);
        // 0.85 = 1.7 (0.374 + 0.626 F) at F = 0.2; the pages of status make it less.
        let full = full_share(&tally, 38..68, KILOBYTES);
        assert!((0.03..0.35).contains(&full), "{full}: {fractions:?}");
        assert_eq!(agent.stop().code(), Some(0));
        assert_eq!(server.fraction("trees.map"), 1.0, "restored at the end");
    });
}

fn nginx_file(server: &Beside) -> PathBuf {
    let status = format!("http://{}/nginx_status", server.address);
    let more = format!(
        "workers = {WORKERS}\nresponse_time = \"500ms\"\n[load]\nstub_status = \"{status}\"\n[trees]\nfull = \"/full\"\ndegraded = \"/light\"\n\
         [nginx]\nfile = \"split.conf\"\npid = \"nginx.pid\"\nconfiguration = \"nginx.conf\"\nseed = 11\n"
    );
    server.agent_file("/probe", &more)
}

/// The same with nginx, which is told to read what is written, and only when it matters.
#[test]
fn nginx_with_a_split_degrades_as_many_as_it_takes() {
    on_a_steady_machine(|| {
        let server = beside::nginx(page("scgi"));
        let mut agent = Agent::start(&nginx_file(&server));
        let capacity = plimsoll_e2e::page::capacity();
        let steps = [(CALM, 0.5 * capacity), (S(60), 2.5 * capacity), (S(14), 0.3 * capacity)];
        let (tally, fractions) = load(&server, "/page", &steps, || server.fraction("split.conf"));
        tell("nginx, split", &tally, Some(&agent));
        // A connection that nginx closes while it is used again is lost, once in a reload perhaps.
        assert!(failures_from(&tally, SETTLED) <= 4, "{:?}", tally.slots);
        assert!(failures(&tally) * 25 < tally.requests, "{} of {}", failures(&tally), tally.requests);
        // 0.85 = 2.5 (0.15 + 0.85 F) at F = 0.22.
        let full = full_share(&tally, 38..68, (24, 4));
        assert!((0.08..0.36).contains(&full), "{full}: {fractions:?}");
        assert!(fractions.len() <= 14, "{} reloads: {fractions:?}", fractions.len() - 1);
        let (back, last) = fractions[fractions.len() - 1];
        assert!(last == 1.0 && (69.0..79.0).contains(&back), "{fractions:?}");
        assert_eq!(agent.stop().code(), Some(0));

        let (alone, _) = load(&server, "/page", &[(S(10), 2.5 * capacity)], || ());
        tell("nginx, alone", &alone, None);
        assert!(failures(&alone) * 3 > alone.requests, "the twin without the agent failed too few");
    });
}

/// However it ends, full quality is left behind; after a kill, by `--restore`.
#[test]
fn at_the_end_full_quality_is_restored() {
    let server = beside::apache(page("tree"));
    let file = link_file(&server, "costs = { request = \"10ms\" }");
    let degrade = || {
        let www = server.folder.path().join("www");
        std::fs::remove_file(&www).unwrap();
        std::os::unix::fs::symlink(server.folder.path().join("light"), &www).unwrap();
    };
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        degrade();
        let mut agent = Agent::start(&file);
        assert_eq!(agent.said("everybody is degraded at the start"), 1, "{}", agent.process.log());
        agent.process.signal(signal);
        assert_eq!(agent.process.wait().code(), Some(0));
        assert_eq!((server.linked().as_str(), agent.said("restored")), ("full", 1));
    }
    degrade();
    let mut agent = Agent::start(&file);
    agent.process.signal(Signal::SIGKILL);
    agent.process.wait();
    assert_eq!(server.linked(), "light");
    assert_eq!(Agent::output(&file, "--restore").status.code(), Some(0));
    assert_eq!(server.linked(), "full");

    // Without load it comes back by itself.
    degrade();
    let (mut agent, started) = (Agent::start(&file), Instant::now());
    while server.linked() != "full" {
        assert!(started.elapsed() < S(20), "{}", agent.process.log());
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(agent.stop().code(), Some(0));
    let told = std::fs::read_to_string(&file).unwrap();
    degrade();
    std::fs::write(&file, told + "[control]\non_exit = \"keep\"\n").unwrap();
    assert_eq!(Agent::start(&file).stop().code(), Some(0));
    assert_eq!(server.linked(), "light", "told to keep it");
}

/// A dry run says what it would do, with figures for programs, and touches nothing, not even at its end.
#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let server = beside::apache(page("tree"));
    let www = server.folder.path().join("www");
    std::fs::remove_file(&www).unwrap();
    std::os::unix::fs::symlink(server.folder.path().join("light"), &www).unwrap();
    let file = link_file(&server, "costs = { request = \"10ms\" }");
    let mut agent = Agent::start_with(&file, &["--dry-run", "--json"]);
    assert_eq!(agent.said("a dry run, nothing is changed"), 1, "{}", agent.process.log());
    // A line of figures after the change that it would make.
    let told = |log: &str| {
        let after = log.split("would be: full quality for everybody: ").nth(1)?;
        after.lines().find_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
    };
    let figures = agent.process.wait_for("the change that it would make", told);
    assert_eq!(
        (figures["fraction"].as_f64(), figures["changes"].as_u64()),
        (Some(0.0), Some(0)),
        "{figures}"
    );
    assert_eq!(figures["overloaded"].as_bool(), Some(false), "{figures}");
    assert_eq!(server.linked(), "light", "{}", agent.process.log());
    assert_eq!(agent.stop().code(), Some(0));
    assert_eq!(server.linked(), "light", "{}", agent.process.log());
}

/// Everything that is wrong at the start is said at once, and nothing is begun.
#[test]
fn what_is_wrong_at_the_start_is_said_with_what_to_do() {
    let server = beside::nginx(page("scgi"));
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
