//! The binary's own life: which configurations it refuses, how it ends, and that an upstream's death loses no accounting.

use crate::page;
use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, plain, two_levels};
use plimsoll_e2e::flows::{Flow, Recorded};
use plimsoll_e2e::{Apache, Folder, PlayedUpstream, Plimsoll, SLOW_PAGES, answer, get};
use plimsoll_load::ErrorKind;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

#[test]
fn a_bad_configuration_ends_with_2_and_says_everything_at_once() {
    let folder = Folder::new();
    let text = "[gateway]\nlisten = \"nowhere\"\n\n[upstream.a]\nadress = \"127.0.0.1:1\"\n";
    let file = folder.write("bad.toml", text);
    for command in ["run", "check"] {
        let output = Plimsoll::output(&[command, &file.display().to_string()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        for word in ["bad.toml", "nowhere", "adress", "address"] {
            assert!(said.contains(word), "{command} does not say {word}:\n{said}");
        }
    }
}

#[test]
fn a_missing_configuration_ends_with_2_and_names_the_file() {
    let output = Plimsoll::output(&["run", "/nonexistent/plimsoll.toml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/nonexistent/plimsoll.toml"), "{said}");
}

#[test]
fn an_address_in_use_is_named() {
    let (taken, origin) = (PlayedUpstream::new(), PlayedUpstream::new());
    let folder = Folder::new();
    let text = before(origin.address(), &plain()).replacen("127.0.0.1:0", &taken.address().to_string(), 1);
    let file = folder.write("taken.toml", text);
    let output = Plimsoll::output(&["run", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&taken.address().to_string()), "{said}");
}

#[test]
fn sigterm_lets_requests_under_way_finish_and_takes_no_new_ones() {
    let origin = PlayedUpstream::new();
    let mut gateway = Plimsoll::run(&before(origin.address(), &plain()));
    let address = gateway.address;
    let client = thread::spawn(move || get(address, "/slow"));
    let (stream, head) = origin.request();
    assert!(head.starts_with("GET /slow HTTP/1.1\r\n"), "{head}");
    gateway.process.signal(Signal::SIGTERM);
    // The listener closes; only then does the upstream answer.
    while TcpStream::connect(address).is_ok() {
        thread::sleep(Duration::from_millis(10));
    }
    answer(&stream, "finished");
    let response = client.join().unwrap();
    assert_eq!((response.status, response.text().as_str()), (200, "finished"));
    assert_eq!(gateway.process.wait().code(), Some(0), "{}", gateway.process.log());
}

#[test]
fn an_idle_gateway_stops_at_once() {
    let origin = PlayedUpstream::new();
    let mut gateway = Plimsoll::run(&before(origin.address(), &plain()));
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
    assert_eq!(gateway.stop().code(), Some(0), "{}", gateway.process.log());
}

#[test]
fn a_killed_upstream_loses_no_accounting() {
    let apache = Apache::pages(page(), SLOW_PAGES);
    let gateway = Plimsoll::run(&before(apache.upstream, &two_levels()));
    let flow = Flow::new("e2e.test", "/page", &[(5.0, 1.5 * SLOW_PAGES.capacity())]);
    let running = Recorded::start(flow.load(gateway.address, 1, Duration::from_secs(20)));
    while running.load.with_tally(|tally| tally.answers()) < 80 {
        thread::sleep(Duration::from_millis(10));
    }
    // All its processes end at once, with requests in service and requests waiting.
    drop(apache);
    let (tally, _) = running.join();
    assert!(tally.status(502) > 0, "{:?} {:?}", tally.by_status, tally.errors);
    // A page that the server had begun ends early, one for each worker at most; each other client got an answer.
    let begun = tally.errors_of(ErrorKind::Truncated);
    assert!(begun <= u64::from(SLOW_PAGES.workers), "{:?}", tally.errors);
    assert_eq!(tally.server_errors() - begun, 0, "every client got an answer: {:?}", tally.errors);
    for gauge in ["plimsoll_in_flight", "plimsoll_in_service", "plimsoll_waiting"] {
        gateway.wait_for_metric(gauge, 0.0);
    }
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), tally.requests as f64);
}
