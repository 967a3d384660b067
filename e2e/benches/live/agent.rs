//! The agent before real servers: when it switches and how many requests fail (in virtual time: `crates/sim/tests/agent.rs`).

use super::{PAGE, row};
use plimsoll_e2e::ServerModel;
use plimsoll_e2e::agent::{self, Agent, CA_PAGES, NGINX_PAGES, fraction, linked};
use plimsoll_e2e::flows::{Flow, Recorded};
use plimsoll_load::Tally;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Calm, a crowd, and calm again (s).
const CALM: f64 = 8.0;
const CROWD: f64 = 45.0;
const AFTER: f64 = 14.0;

/// A load at so many times the capacity; what `look` saw, whenever it changed, with its second.
fn load<T: PartialEq>(
    server: SocketAddr,
    model: ServerModel,
    times: f64,
    mut look: impl FnMut() -> T,
) -> (Tally, Vec<(f64, T)>) {
    let steps =
        [(CALM, 0.5), (CROWD, times), (AFTER, 0.2)].map(|(length, part)| (length, part * model.capacity()));
    let flow = Flow::new("e2e.test", "/page", &steps);
    let running = Recorded::start(flow.load(server, 1, Duration::from_secs(4)));
    let mut seen: Vec<(f64, T)> = Vec::new();
    while !running.load.is_finished() {
        let now = look();
        if seen.last().is_none_or(|(_, last)| *last != now) {
            seen.push((running.load.started().elapsed().as_secs_f64(), now));
        }
        sleep(Duration::from_millis(20));
    }
    (running.join().0, seen)
}

fn show_run<T>(tally: &Tally, seen: &[(f64, T)], switches: &str) {
    row("changes", (seen.len() - 1) as f64, "-", switches);
    row("first change (s)", seen.get(1).map_or(f64::NAN, |(at, _)| *at), "-", "8 to 18");
    let last = seen.last().map_or(f64::NAN, |(at, _)| at - CALM - CROWD);
    row("back, after the crowd's end (s)", last, "-", "1 to 26");
    let failed =
        |from: usize| -> u64 { tally.slots.iter().skip(from).map(|slot| slot.errors + slot.refusals).sum() };
    row("failed", failed(0) as f64 / tally.requests as f64, "-", "0 to 0.04");
    row("failed after 25 s", failed(25) as f64, "-", "0 to 4");
}

pub(super) fn show() {
    println!("the agent, a link beside Apache (CA 4.1)");
    let server = agent::apache(Path::new(PAGE));
    let place = server.folder.path();
    let more = format!(
        "{}\n[load]\nlog = \"access.log\"\n[trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n",
        CA_PAGES.costs()
    );
    let file = Agent::file(&server.folder, server.direct, ("/robots.txt", CA_PAGES.queue), &more);
    let agent = Agent::start(&file, &[]);
    let (tally, seen) = load(server.direct, CA_PAGES, 2.2, || linked(place));
    drop(agent);
    show_run(&tally, &seen, "2");

    println!("the agent, a fraction beside nginx (CA 4.2)");
    let server = agent::nginx(Path::new(PAGE));
    let status = format!("http://{}/nginx_status", server.address);
    let more = format!(
        "workers = {}\nresponse_time = \"500ms\"\n[load]\nstub_status = \"{status}\"\n\
         [trees]\nfull = \"/full\"\ndegraded = \"/light\"\n\
         [nginx]\nfile = \"split.conf\"\npid = \"nginx.pid\"\nconfiguration = \"nginx.conf\"\n",
        NGINX_PAGES.workers
    );
    let file = Agent::file(&server.folder, server.address, ("/probe", NGINX_PAGES.queue), &more);
    let agent = Agent::start(&file, &[]);
    let (tally, seen) =
        load(server.address, NGINX_PAGES, 2.5, || fraction(server.folder.path(), "split.conf"));
    drop(agent);
    show_run(&tally, &seen, "0 to 14");
}
