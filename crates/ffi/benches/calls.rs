//! `cargo bench -p plimsoll-ffi`: processor time of the three calls, in one to eight processes at once. Each figure is the
//! least of its rounds, since what other programs do makes a round only longer. What a decision costs without C, of a lane
//! whose words many processes share too, is in `crates/core/benches/decision.rs`.

use plimsoll_core::request::Outcome;
use plimsoll_ffi::{Controller, Fields, Server};
use rustix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Stdio};

const ROUNDS: u64 = 15;
const EACH: u64 = 100_000;
const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                             [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 64 }\n\n\
                             [[site]]\nname = \"site\"\n\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n\
                             [[site.level]]\nname = \"full\"\n";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--process") {
        println!("{}", three_calls(Path::new(&arguments[at + 1])));
        return;
    }
    println!("the three calls, ns of processor time a request");
    for processes in [1, 2, 4, 8] {
        println!("{processes} process(es): {:.0}", in_processes(processes));
    }
}

/// Nanoseconds of `work`, which does [`EACH`] things.
fn least(mut work: impl FnMut()) -> f64 {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        1e9 * time.tv_sec as f64 + time.tv_nsec as f64
    };
    let rounds = (0..ROUNDS).map(|_| {
        let start = spent();
        work();
        (spent() - start) / EACH as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// The dearest of so many processes that call at the same time.
fn in_processes(count: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let configuration = plimsoll_config::parse(CONFIGURATION, "bench").expect("a valid configuration");
    let (mut controller, _) =
        Controller::start(&state, (CONFIGURATION, &configuration), 1, 16).expect("a controller");
    controller.tick();
    let own = std::env::current_exe().expect("this program");
    let process =
        || Command::new(&own).arg("--process").arg(&state).stdout(Stdio::piped()).spawn().expect("a process");
    let started: Vec<_> = (0..count).map(|_| process()).collect();
    let figures = started.into_iter().map(|process| {
        let said = process.wait_with_output().expect("its figure").stdout;
        String::from_utf8_lossy(&said).trim().parse().unwrap_or(f64::NAN)
    });
    figures.fold(0.0, f64::max)
}

fn three_calls(state: &Path) -> f64 {
    let server = Server::attach(state).expect("a lane");
    let fields = Fields {
        method: "GET",
        host: "www.example.org",
        path: b"/index.html",
        query: "",
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        header: &|_| None,
    };
    least(|| {
        for _ in 0..EACH {
            let Ok(served) = server.adapt(&fields, 256) else { continue };
            let _ = server.log_size(served.request, 1024);
            let _ = server.done(served.request, Outcome::Completed);
        }
    })
}
