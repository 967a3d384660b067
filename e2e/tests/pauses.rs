//! Processes that stand still for a moment, by SIGSTOP and SIGCONT: the upstream, the gateway, and both. No request is lost,
//! and each is accounted for once. How many are turned away is a figure of the machine's minute; in virtual time
//! `crates/sim/tests/pauses.rs` judges it.

use nix::sys::signal::Signal;
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::{Plimsoll, SLOW_PAGES, scenes};
use std::thread::sleep;
use std::time::Duration;

/// A stall of the machine makes no client leave.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSES: [f64; 4] = [0.2, 0.5, 1.0, 3.0];
/// Before the first pause and after each (s).
const BETWEEN: f64 = 1.0;

/// What passes every request on, in a process of its own that can be stopped.
fn relay(origin: std::net::SocketAddr) -> Plimsoll {
    Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nmode = \"off\"\n\n\
         [upstream.origin]\naddress = \"{origin}\"\n\n[[site]]\nname = \"all\"\n"
    ))
}

#[test]
fn a_process_that_stands_still_loses_no_request() {
    let origin = SLOW_PAGES.origin(&[]);
    let upstream = relay(origin.address());
    let gateway = Plimsoll::run(&scenes::overload().file(upstream.address, false));
    let stopped = [vec![&upstream], vec![&gateway], vec![&upstream, &gateway]];
    let seconds = BETWEEN + 3.0 * PAUSES.iter().map(|pause| pause + BETWEEN).sum::<f64>();
    // Light pages for all are 0.3 of what the origin can do.
    let flow = Flow::new("e2e.test", "/page", &[(seconds, 2.0 * SLOW_PAGES.capacity())]);
    let flown = drive(gateway.address, &[flow], PATIENCE, || {
        sleep(Duration::from_secs_f64(BETWEEN));
        for processes in &stopped {
            for pause in PAUSES {
                processes.iter().for_each(|one| one.process.signal(Signal::SIGSTOP));
                sleep(Duration::from_secs_f64(pause));
                processes.iter().for_each(|one| one.process.signal(Signal::SIGCONT));
                sleep(Duration::from_secs_f64(BETWEEN));
            }
        }
    });
    let all = flown[0].all();
    println!("{} of {} turned away", all.count(End::Rejected), all.requests());
    assert_eq!(all.count(End::Lost), 0, "answered with a page, or turned away by the gateway");
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), all.requests() as f64);
    for gauge in ["plimsoll_in_service", "plimsoll_waiting"] {
        gateway.wait_for_metric(gauge, 0.0);
    }
}
