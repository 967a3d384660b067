//! The state that a controller keeps: what the next controller says of it, what becomes of it when somebody removes or replaces
//! it, and what processes are told for which it has no lane.

use crate::control_admin::calling;
use crate::module::{FULL, apache, configuration, example, slow, wait_until};
use nix::sys::signal::Signal;
use plimsoll_e2e::{Control, Folder, Plimsoll, free_port, get, get_from};
use serde_json::{Value, json};
use std::fs;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

fn end(one: &mut Child) {
    one.kill().expect("it is killed");
    one.wait().expect("its end");
}

#[test]
fn a_controller_that_goes_on_tells_nothing_that_was_before_it() {
    let admin = format!("127.0.0.1:{}", free_port());
    let mut control = Control::start_with(&configuration(), &["--admin", &admin]);
    let folder = Folder::new();
    let mut one = calling(&control, &folder);
    wait_until("its requests are counted", || control.metric("plimsoll_arrivals_total") > Some(1000.0));
    end(&mut one);
    wait_until("its death is told", || {
        control.metric("plimsoll_controller_dead_processes_total") == Some(1.0)
    });
    let apache = apache(&control, 4, &slow());
    let overload = |control: &Control| {
        wait_until("an overload begins", || {
            thread::scope(|scope| {
                for client in 1..=24 {
                    let address = Ipv4Addr::new(127, 0, 1, client);
                    scope.spawn(move || get_from(address, apache.direct, "/page.html"));
                }
            });
            control.process.log().contains("overload: ")
        });
    };
    overload(&control);
    control.process.signal(Signal::SIGKILL);
    control.process.wait();
    control.again();
    control.wait_for_line("taken over");
    // Some periods of a second without any request, and longer than an incident needs to be over.
    thread::sleep(Duration::from_secs(13));
    let log = control.process.log();
    for absent in ["overload", "calm again", "died", "without giving a lane back", "refused"] {
        assert!(!log.contains(absent), "`{absent}` in:\n{log}");
    }
    let incidents: Value =
        serde_json::from_slice(&control.ask("GET /incidents").body).expect("incidents are JSON");
    assert_eq!(incidents["incidents"], json!([]));
    let events = control.ask("GET /events").text();
    assert!(!events.contains("rejected"), "{events}");
    // An overload that is not over when the controller stops is told, as by a gateway.
    overload(&control);
    control.process.signal(Signal::SIGTERM);
    assert_eq!(control.process.wait().code(), Some(0));
    let log = control.process.log();
    assert!(log.contains("stopped after "), "{log}");
}

/// It ends, so that a supervisor starts the next one, which makes the state anew.
#[test]
fn a_controller_whose_state_was_removed_says_so_and_ends() {
    let mut control = Control::start(&configuration());
    fs::remove_file(control.state()).expect("the state is there");
    assert_eq!(control.process.wait().code(), Some(1));
    let log = control.process.log();
    assert!(log.contains("ERROR") || log.contains("error"), "{log}");
    assert!(log.contains("was removed or replaced"), "{log}");
    control.again();
    control.wait_for_line("was made");
    // Another file in its place is no state of its own either.
    let other = control.state().with_file_name("other");
    fs::write(&other, "").expect("it is written");
    fs::rename(&other, control.state()).expect("it takes its place");
    assert_eq!(control.process.wait().code(), Some(1));
}

#[test]
fn processes_of_a_state_that_was_made_anew_say_what_helps() {
    let mut control = Control::start(&configuration());
    let apache = apache(&control, 4, "");
    assert_eq!(get(apache.direct, "/page.html").body.len(), FULL);
    control.process.signal(Signal::SIGTERM);
    control.process.wait();
    control.again_with(&configuration().replace("workers = 4", "workers = 5"));
    control.wait_for_line("was made");
    wait_until("they say so", || {
        get(apache.direct, "/page.html");
        apache.process.log().contains("the state was made anew")
    });
    let log = apache.process.log();
    assert!(log.contains("start the server's processes anew (apachectl graceful)"), "{log}");
    let told = get(apache.direct, "/server-status?auto").text();
    assert!(told.contains("\nPlimsollFrozen: 2\n"), "{told}");
    let shown = get(apache.direct, "/server-status").text();
    assert!(shown.contains("The state was made anew"), "{shown}");
    apache.process.signal(Signal::SIGUSR1);
    wait_until("after a graceful restart they have the new one", || {
        get(apache.direct, "/server-status?auto").text().contains("\nPlimsollFrozen: 0\n")
    });
}

#[test]
fn a_controller_tells_of_processes_for_which_it_has_no_lane() {
    let control = Control::start_with(&configuration(), &["--lanes", "2"]);
    let folder = Folder::new();
    let mut two = [calling(&control, &folder), calling(&control, &folder)];
    wait_until("both are attached", || {
        let output = Command::new(example(folder.path(), &[])).arg(control.state()).arg("1").output();
        let errors = String::from_utf8_lossy(&output.expect("it runs").stderr).into_owned();
        errors.contains("all lanes")
    });
    control.wait_for_line("refused: all 2 lanes belong to living processes");
    let log = control.process.log();
    assert!(log.contains("WARN") && log.contains("`--lanes`"), "{log}");
    two.iter_mut().for_each(end);
}

/// As Python's `http.server` and Node end by SIGTERM: nothing of them failed.
#[test]
fn the_end_of_a_process_that_held_nothing_is_no_alarm() {
    let control = Control::start(&configuration());
    let apache = apache(&control, 1, "");
    assert_eq!(get(apache.direct, "/page.html").status, 200);
    let held = || fs::read_to_string(format!("/proc/{0}/task/{0}/children", apache.process.pid()));
    let child: i32 =
        held().expect("its children").split_whitespace().next().expect("one").parse().expect("a number");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), Signal::SIGKILL).expect("it is killed");
    control.wait_for_line("1 process ended without giving a lane back, and held no request");
    let log = control.process.log();
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn a_folder_that_is_missing_is_told_with_what_makes_it() {
    let folder = Folder::new();
    let file = folder.write("site.toml", configuration());
    let state = folder.path().join("missing/state");
    let output =
        Plimsoll::output(&["control", &file.display().to_string(), "--state", &state.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the folder of the state is missing") && said.contains("install -d -o www-data"),
        "{said}"
    );
}

/// A changed configuration, as any other number of lanes or another version, has the state made anew.
#[test]
fn what_was_learned_and_the_seed_outlive_a_state_that_is_made_anew() {
    let admin = format!("127.0.0.1:{}", free_port());
    let drawn = configuration().replace("seed = 7\n", "");
    let mut control = Control::start_with(&drawn, &["--admin", &admin]);
    let folder = Folder::new();
    let mut one = calling(&control, &folder);
    let learned = |control: &Control| -> Value {
        let file = control.state().with_added_extension("learned");
        fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    };
    let weight = |known: &Value| known["classes"][0]["levels"][1]["requests"].as_f64();
    wait_until("a cost is learned", || weight(&learned(&control)) > Some(0.0));
    end(&mut one);
    control.process.signal(Signal::SIGTERM);
    control.process.wait();
    let before = learned(&control);
    control.again_with(&drawn.replace("exempt = [", "exempt = [{ path = \"/more\" }, "));
    control.wait_for_line("was made");
    let cost = |known: &Value| known["classes"][0]["levels"][1]["seconds"].clone();
    let status: Value = serde_json::from_slice(&control.ask("GET /status").body).expect("it is JSON");
    control.process.signal(Signal::SIGTERM);
    control.process.wait();
    let after = learned(&control);
    assert!(before["seed"].is_u64() && cost(&before).is_f64(), "{before}");
    assert_eq!((&after["seed"], cost(&after)), (&before["seed"], cost(&before)), "{status}");
}
