//! The operator's listener of `plimsoll control`: what it shows of a server whose own processes decide, how its end and its
//! standstill are noticed, and that it has nothing which nobody counts there.

use crate::module::{apache, configuration, example, wait_until};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use plimsoll_e2e::{Browser, Control, Folder, Plimsoll, free_port, get, program};
use serde_json::{Value, json};
use std::fs::File;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A port of its own, at which it is again after its end.
fn showing(configuration: &str) -> Control {
    Control::start_with(configuration, &["--admin", &format!("127.0.0.1:{}", free_port())])
}

fn status(control: &Control) -> Value {
    let answer = control.ask("GET /status");
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_slice(&answer.body).expect("the status is JSON")
}

/// A process that calls and calls until it is killed.
pub(crate) fn calling(control: &Control, folder: &Folder) -> Child {
    let mut command = Command::new(example(folder.path(), &[]));
    command.arg(control.state()).arg("1000000000").stdout(Stdio::null()).spawn().expect("it runs")
}

#[test]
fn a_controller_shows_its_processes_their_requests_and_their_deaths() {
    let (control, folder) = (showing(&configuration()), Folder::new());
    assert_eq!(control.metric("plimsoll_controller_attached_processes"), Some(0.0));
    let mut one = calling(&control, &folder);
    wait_until("it is attached", || control.metric("plimsoll_controller_attached_processes") == Some(1.0));
    wait_until("its requests are counted", || control.metric("plimsoll_arrivals_total") > Some(1000.0));
    let seen = status(&control);
    assert_eq!(seen["controller"]["lanes"], json!(64));
    assert_eq!(seen["classes"][0]["levels"][1]["name"], json!("full"));
    let plant = &seen["upstreams"][0];
    assert_eq!((&plant["name"], &plant["workers"]), (&json!("server"), &json!(4)));
    // What nobody counts is not zero.
    for (of, keys) in [
        (&seen, &["buffers", "http2", "connections", "connections_turned_away", "kernel_shed"][..]),
        (plant, &["limit", "waiting", "tunnels", "servers", "all_servers_out", "retries", "places"]),
    ] {
        keys.iter().for_each(|key| assert_eq!(of.get(key), Some(&Value::Null), "{key}"));
    }
    for absent in
        ["plimsoll_connections", "plimsoll_waiting", "plimsoll_responses_total", "plimsoll_reloads_total"]
    {
        assert_eq!(control.metric(absent), None, "{absent}");
    }
    let top = Plimsoll::output(&["top", &control.admin().to_string(), "--once"]);
    let top = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(top.contains("1 attached, of at most 64 processes"), "{top}");
    assert!(top.contains("the controller started"), "{top}");

    one.kill().expect("it is killed");
    one.wait().expect("its end");
    wait_until("its death is seen", || {
        control.metric("plimsoll_controller_dead_processes_total") == Some(1.0)
    });
    wait_until("nothing is left of it", || {
        control.metric("plimsoll_controller_attached_processes") == Some(0.0)
            && control.metric("plimsoll_in_service") == Some(0.0)
            && control.metric("plimsoll_in_flight") == Some(0.0)
    });
    let returned = control.metric("plimsoll_controller_returned_requests_total");
    assert!(returned <= Some(1.0), "it has one request at a time: {returned:?}");
    assert_eq!(status(&control)["controller"]["deaths"], json!(1));
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics_of_a_controller() {
    let (control, folder) = (showing(&configuration()), Folder::new());
    let file = folder.write("metrics", control.ask("GET /metrics").text());
    let output = Command::new(program("promtool"))
        .args(["check", "metrics"])
        .stdin(File::open(file).expect("it was written"))
        .output()
        .expect("promtool runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn a_dead_controller_does_not_answer_and_the_next_one_goes_on_counting() {
    let (mut control, folder) = (showing(&configuration()), Folder::new());
    let mut one = calling(&control, &folder);
    wait_until("its requests are counted", || control.metric("plimsoll_arrivals_total") > Some(1000.0));
    assert_eq!(control.ask("GET /healthz").status, 200);
    let (admin, before) = (control.admin(), control.metric("plimsoll_arrivals_total"));
    control.process.signal(Signal::SIGKILL);
    control.process.wait();
    assert!(TcpStream::connect(admin).is_err(), "nothing answers");
    control.again();
    control.wait_for_line("taken over");
    assert_eq!(control.admin(), admin);
    assert_eq!(control.ask("GET /healthz").status, 200);
    assert!(control.metric("plimsoll_arrivals_total") >= before, "a counter goes on");
    assert_eq!(control.metric("plimsoll_controller_attached_processes"), Some(1.0));
    one.kill().expect("it is killed");
    one.wait().expect("its end");
}

/// The thread that ticks is stopped by itself, as if it hung; the one that answers goes on.
#[test]
fn a_probe_is_told_that_the_loops_stand_still_and_that_they_run_again() {
    let control = showing(&configuration());
    assert_eq!(control.ask("GET /healthz").text(), "ok\n");
    let ticks = Pid::from_raw(control.process.pid().cast_signed());
    ptrace::seize(ticks, ptrace::Options::empty()).expect("a child may be traced");
    ptrace::interrupt(ticks).expect("it is stopped");
    waitpid(ticks, Some(WaitPidFlag::__WALL)).expect("it has stopped");
    let last = control.metric("plimsoll_last_control_step_timestamp_seconds").expect("it is known");
    wait_until("the probe says so", || control.ask("GET /healthz").status == 503);
    let said = control.ask("GET /healthz").text();
    assert!(
        said.contains("The control loop has not run for") && said.contains("levels are frozen"),
        "{said}"
    );
    assert_eq!(control.metric("plimsoll_last_control_step_timestamp_seconds"), Some(last));
    ptrace::detach(ticks, None).expect("it goes on");
    wait_until("the loops run", || control.ask("GET /healthz").status == 200);
    wait_until("their time goes on", || {
        control.metric("plimsoll_last_control_step_timestamp_seconds") > Some(last)
    });
}

#[test]
fn a_controller_says_what_it_cannot_do_and_keeps_incidents() {
    let control = showing(&configuration());
    let reload = control.ask("POST /reload");
    assert_eq!(reload.status, 422, "{}", reload.text());
    assert!(reload.text().contains("read at the start only"), "{}", reload.text());
    assert_eq!(control.ask("GET /what-if").status, 404);
    assert_eq!(control.ask("GET /nothing").status, 404);
    let incidents = control.ask("GET /incidents");
    let incidents: Value = serde_json::from_slice(&incidents.body).expect("JSON");
    assert_eq!(incidents["incidents"], json!([]));
    let events = control.ask("GET /events").text();
    assert!(events.contains("\"the controller started\""), "{events}");
}

/// Beyond loopback it asks for a token, and by names of its own.
#[test]
fn the_names_and_the_tokens_of_the_file_hold() {
    let folder = Folder::new();
    let token = folder.write("admin.token", "t".repeat(40));
    plimsoll_e2e::open_to_all(folder.path());
    let own = format!("admin_names = \"ops.test\"\nadmin_token_file = \"{}\"\nseed", token.display());
    let configuration = configuration().replace("seed", &own);
    let control = Control::start_with(&configuration, &["--admin", "0.0.0.0:0"]);
    let port = control.admin().port();
    let ask = |host: &str, fields: &str| {
        let line = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n");
        plimsoll_e2e::exchange(([127, 0, 0, 1], port).into(), line).status
    };
    let shown = format!("Authorization: Bearer {}\r\n", "t".repeat(40));
    assert_eq!([ask("localhost", ""), ask("localhost", &shown), ask("ops.test", &shown)], [401, 200, 200]);
    assert_eq!(ask("other.test", &shown), 421);
    let top = |more: &[&str]| {
        Plimsoll::output(&[&["top", &format!("127.0.0.1:{port}"), "--once"], more].concat()).status.code()
    };
    assert_eq!([top(&[]), top(&["--token-file", &token.display().to_string()])], [Some(1), Some(0)]);
}

#[test]
fn the_dashboard_of_a_controller_shows_its_processes_and_no_what_if() {
    let (control, folder) = (showing(&configuration()), Folder::new());
    let mut one = calling(&control, &folder);
    let mut browser = Browser::start(control.admin());
    let viewed = browser.view(&format!("http://{}/", control.admin()));
    assert!(viewed.errors.is_empty() && viewed.failed.is_empty(), "{viewed:?}");
    browser.wait_for("document.querySelector('#link').dataset.live === 'true'");
    browser.wait_for(
        "/A controller inside a server: 1 attached/.test(document.querySelector('#about').textContent)",
    );
    browser.wait_for("/processes attached, at most1, 64/.test(document.querySelector('#terms').textContent)");
    assert_eq!(browser.evaluate("document.querySelector('#what-if-part').hidden"), json!(true));
    assert_eq!(browser.evaluate("/null|NaN|undefined/.test(document.body.innerText)"), json!(false));
    browser.wait_for("/% full/.test(document.querySelector('#traffic').textContent)");
    one.kill().expect("it is killed");
    one.wait().expect("its end");
    browser.wait_for("/: 0 attached/.test(document.querySelector('#about').textContent)");
}

/// The gateway says in its own figures what it tells, and the controller what was told.
#[test]
fn what_a_gateway_tells_of_its_places_is_in_the_figures_of_both() {
    let both = configuration()
        .replace("[upstream.server.capacity]", "decides_itself = true\n[upstream.server.capacity]");
    let control = showing(&both);
    let apache = apache(&control, 4, "");
    let before = both.replace("listen =", "admin = \"127.0.0.1:0\"\nlisten =");
    let before = before.replace("127.0.0.1:1\"", &format!("{}\"", apache.direct));
    let gateway = Plimsoll::run(&before);
    assert_eq!(status(&control)["upstreams"][0]["places"], Value::Null, "nothing was told");
    assert_eq!(control.metric("plimsoll_places_taken_ratio"), None);
    assert_eq!(get(gateway.address, "/page.html").status, 200);
    wait_until("it was told", || control.metric("plimsoll_places_taken_ratio").is_some());
    let told = status(&control)["upstreams"][0]["places"].clone();
    assert!(told["taken"].as_f64().is_some_and(|part| part < 0.5), "{told}");
    assert!(told["reported_seconds_ago"].as_f64().is_some_and(|ago| ago < 10.0), "{told}");
    assert!(told["set_point_reduction"].is_f64(), "{told}");
    let own: Value = serde_json::from_slice(&gateway.ask_admin("/status").body).expect("JSON");
    let own = &own["upstreams"][0]["places"];
    assert!(own["taken"].is_f64() && own["reported_seconds_ago"].is_null(), "{own}");
    assert!(gateway.metric("plimsoll_places_taken_ratio") < 0.5);
    // It is forgotten after ten periods.
    thread::sleep(Duration::from_secs(10));
    wait_until("it is forgotten", || status(&control)["upstreams"][0]["places"].is_null());
}
