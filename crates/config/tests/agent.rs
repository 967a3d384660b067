//! The agent's file: the example means what its comments say, and what is wrong is said with what to write instead.
//!
//! After a change of the texts: `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test agent`.

use plimsoll_config::{Agent, Chooser, Code, CountersAt, OnExit, parse_agent};
use plimsoll_core::agent::{AgentPolicy, LoadSense, Threshold};
use plimsoll_core::time::Duration;
use std::path::{Path, PathBuf};

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(source: &str) -> Agent {
    parse_agent(source, "etc/agent.toml").unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// What a file is refused as.
fn refused(source: &str) -> Vec<Code> {
    let wrong = parse_agent(source, "agent.toml").expect_err("it is wrong");
    wrong.all.iter().map(|found| found.code).collect()
}

const LINK: &str = "[server]\nprobe = \"http://127.0.0.1:8080/x\"\ncosts = { request = \"1.6ms\", byte = \"63ns\" }\n\
                    [load]\nlog = \"access.log\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n";

#[test]
fn the_example_is_an_agent_beside_nginx() {
    let source = std::fs::read_to_string(here("../../examples/agent.toml")).unwrap();
    let agent = read(&source);
    assert_eq!((agent.probe.address.as_str(), agent.probe.target.as_str()), ("127.0.0.1:80", "/robots.txt"));
    assert!(matches!(&agent.counters, CountersAt::StubStatus(page) if page.target == "/nginx_status"));
    assert_eq!(agent.sense, LoadSense::Gap { workers: Some(8) });
    assert_eq!((agent.full.as_str(), agent.degraded.as_str()), ("/srv/trees/full", "/srv/trees/light"));
    assert_eq!(agent.pid, Some("/run/nginx.pid".into()), "its processes are those of nginx");
    let Chooser::Nginx(nginx) = agent.chooser else { panic!("{:?}", agent.chooser) };
    assert_eq!((nginx.file.as_path(), nginx.seed), (Path::new("/etc/nginx/plimsoll.conf"), None));
    assert_eq!((nginx.variable.as_str(), nginx.client.as_str()), ("plimsoll_tree", "$remote_addr"));
    assert_eq!(agent.settings.policy, AgentPolicy::Fraction { step: 0.05, apart: Duration::from_secs(5) });
    assert_eq!(agent.settings.threshold, Threshold::Queue(511));
    assert_eq!((agent.settings.load_line, agent.settings.back_line), (0.85, 0.75));
    assert_eq!(agent.on_exit, OnExit::Restore);
}

#[test]
fn a_link_goes_between_folders_named_from_the_files_own() {
    let agent = read(LINK);
    assert_eq!((agent.full.as_str(), agent.degraded.as_str()), ("etc/full", "etc/light"));
    assert_eq!(agent.chooser, Chooser::Link("etc/www".into()));
    assert_eq!(agent.counters, CountersAt::Log("etc/access.log".into()));
    let LoadSense::Linear { per_request_seconds, per_byte_seconds, bandwidth } = agent.sense else {
        panic!()
    };
    assert!((per_request_seconds - 1.6e-3).abs() < 1e-12 && (per_byte_seconds - 63e-9).abs() < 1e-18);
    assert_eq!((bandwidth, agent.settings.policy), (None, AgentPolicy::Relay));
    let with_pid = read(&LINK.replace("costs", "pid = \"apache2.pid\"\ncosts"));
    assert_eq!((agent.pid, with_pid.pid), (None, Some("etc/apache2.pid".into())));
    let promised = read(&LINK.replace("costs", "response_time = \"300ms\"\ncosts"));
    assert_eq!(promised.settings.threshold, Threshold::Promised(Duration::from_millis(300)));
}

#[test]
fn a_prefix_is_no_folder() {
    let source = LINK.replace("[link]\npath = \"www\"", "[apache]\nmap = \"/etc/apache2/m\"");
    let agent = read(&source.replace("\"light\"", "\"/light\""));
    assert_eq!((agent.full.as_str(), agent.degraded.as_str()), ("full", "/light"));
    assert_eq!(agent.chooser, Chooser::Apache("/etc/apache2/m".into()));
}

#[test]
fn what_contradicts_itself_or_cannot_be_known_is_refused() {
    let with = |from: &str, to: &str| refused(&LINK.replace(from, to));
    assert_eq!(with("costs =", "workers = 3 #"), [Code::MissingKey], "a log and no costs");
    assert_eq!(with("log =", "stub_status = \"http://a/s\"\nlog ="), [Code::Conflict], "two senses");
    assert_eq!(with("log = \"access.log\"", ""), [Code::MissingKey], "no sense");
    assert_eq!(with("log = \"access.log\"", "stub_status = \"http://a/s\""), [Code::Conflict], "no bytes");
    let on_wire = LINK.replace("log = \"access.log\"", "wire = \"lo\"");
    assert_eq!(read(&on_wire).counters, CountersAt::Wire("lo".to_owned()));
    assert_eq!(refused(&on_wire.replace("http:", "https:")), [Code::Conflict], "packets of TLS");
    let without_costs = on_wire.replace("costs = { request = \"1.6ms\", byte = \"63ns\" }\n", "");
    assert_eq!(refused(&without_costs), [Code::MissingKey], "how many workers, packets do not say");
    let by_gaps = read(&without_costs.replace("[load]", "workers = 4\n[load]"));
    assert_eq!(by_gaps.sense, LoadSense::Gap { workers: Some(4) });
    assert_eq!(with("\"light\"", "\"full\""), [Code::Duplicate], "one tree");
    assert_eq!(with("[link]", "[apache]\nmap = \"m\"\n[link]"), [Code::Conflict], "two choosers");
    assert_eq!(with("[link]\npath = \"www\"", ""), [Code::MissingKey], "no chooser");
    assert_eq!(with("costs", "back_line = 0.9\ncosts"), [Code::Conflict], "back above the line");
    assert_eq!(with("costs", "every = \"1ms\"\ncosts"), [Code::OutOfRange]);
    assert_eq!(with("\"light\"", "\"li ght\""), [Code::BadValue]);
}

#[test]
fn each_error_has_its_place_and_what_to_write() {
    let source = std::fs::read_to_string(here("tests/agent/wrong.toml")).unwrap();
    let shown = format!("{}\n", parse_agent(&source, "wrong.toml").expect_err("it is wrong"));
    let golden = here("tests/agent/wrong.txt");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&golden, &shown).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&golden).unwrap_or_default(), shown);
}
