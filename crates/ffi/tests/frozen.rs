//! A controller that is gone: levels stand still, and the next one goes on with the processes and the levels that are there.

use plimsoll_core::request::Outcome;
use plimsoll_ffi::{Controller, Fields, Frozen, Server, Taken};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\
     [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 4 }\n[control]\nperiod = \"100ms\"\n\
     [[site]]\nname = \"site\"\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n[[site.level]]\nname = \"full\"\n";
const CLIENTS: u8 = 200;
/// The level of every client at first, which a new controller would go back to.
const FULL: u8 = 2;
/// Twice what the workers take.
const IN_SERVICE: usize = 8;

fn controller(state: &Path) -> (Controller, Taken) {
    let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid configuration");
    Controller::start(state, (CONFIGURATION, &configuration), 7, 16).expect("a controller")
}

/// The level of a client's request, its number, and whether no controller is awake.
fn ask(server: &Server, client: u8) -> (u8, u64, bool) {
    let (client, path) = (Ipv4Addr::new(127, 0, 0, client).into(), b"/page".as_slice());
    let fields = Fields { method: "GET", host: "site.test", path, query: "", client, header: &|_| None };
    let served = server.adapt(&fields, 100).expect("a decision");
    (served.level, served.request, served.frozen.is_some())
}

/// The level of each client's request, which ends at once.
fn levels(server: &Server) -> Vec<u8> {
    let one = |client| {
        let (level, request, _) = ask(server, client);
        if level > 0 {
            server.done(request, Outcome::Completed).expect("it ends");
        }
        level
    };
    (0..CLIENTS).map(one).collect()
}

/// Requests come and end until some client has less than the full level. The levels of all are returned.
fn overloaded(controller: &mut Controller, server: &Server) -> Vec<u8> {
    let (start, mut held) = (Instant::now(), VecDeque::new());
    loop {
        assert!(start.elapsed() < Duration::from_secs(60), "no client is degraded");
        for client in 0..CLIENTS {
            let (level, request, _) = ask(server, client);
            held.extend((level > 0).then_some(request));
            if held.len() > IN_SERVICE {
                server.done(held.pop_front().expect("one is held"), Outcome::Completed).expect("it ends");
            }
            sleep(Duration::from_millis(5));
            controller.tick();
        }
        let seen = levels(server);
        if seen.iter().any(|level| *level < FULL) {
            held.drain(..).for_each(|request| server.done(request, Outcome::Completed).expect("it ends"));
            return seen;
        }
    }
}

#[test]
fn levels_stand_still_without_a_controller_and_the_next_one_goes_on_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let (mut first, taken) = controller(&state);
    assert_eq!(taken, Taken::Made);
    first.tick();
    let server = Server::attach(&state).expect("the state");
    let before = overloaded(&mut first, &server);
    drop(first);
    assert_eq!(levels(&server), before, "nobody is there to change them");
    let start = Instant::now();
    while !ask(&server, 0).2 {
        assert!(start.elapsed() < Duration::from_secs(60), "it is not said that no controller is awake");
        sleep(Duration::from_millis(20));
    }
    assert_eq!(levels(&server), before, "they stand still");
    let (mut next, taken) = controller(&state);
    assert_eq!((taken, levels(&server)), (Taken::Over, before), "the next one has the levels that are there");
    next.tick();
    assert!(!ask(&server, 0).2 && server.is_own(), "a controller is awake, and the process has its lane");
}

/// With a changed configuration, or after somebody has removed the file, a new controller makes the state anew: to start one
/// more helps nobody then.
#[test]
fn a_process_tells_a_state_that_was_made_anew_from_a_controller_that_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let (mut first, _) = controller(&state);
    first.tick();
    let server = Server::attach(&state).expect("the state");
    assert_eq!(server.frozen(), None);
    assert!(first.is_in_place());
    std::fs::remove_file(&state).expect("the state");
    assert!(!first.is_in_place(), "nobody can attach");
    drop(first);
    let wait_for = |frozen| {
        let start = Instant::now();
        while server.frozen() != Some(frozen) {
            assert!(start.elapsed() < Duration::from_secs(60), "it is never told: {frozen:?}");
            sleep(Duration::from_millis(20));
        }
    };
    wait_for(Frozen::Silent);
    let (mut next, taken) = controller(&state);
    next.tick();
    assert!(taken == Taken::Made && next.is_in_place());
    wait_for(Frozen::Replaced);
    assert_eq!(Server::attach(&state).expect("the new state").frozen(), None);
}
