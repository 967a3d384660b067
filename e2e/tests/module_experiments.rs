//! The paper's experiments UC 7 on a real Apache, prefork, whose own processes decide: in real time what no busy machine can
//! change. Figures are shown by `make live`.

use crate::page;
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::scenes::{self, Promise, Scene};
use plimsoll_e2e::{Accounts, Apache, Control, Response, exchange};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// How long a client waits in real time: a stall of the machine makes no client leave.
const PATIENCE: Duration = Duration::from_secs(30);

/// A scene in a part of its time: each request is answered with a page or turned away, and accounted for once.
fn assert_accounted(scene: &Scene, seconds: f64) {
    let scene = scene.clone().on_prefork().shorter(seconds / scene.lasts().as_secs_f64());
    let (_control, apache, flown) = scene.inside(page(), PATIENCE);
    for (number, flow) in flown.iter().enumerate() {
        assert_eq!(flow.all().count(End::Lost), 0, "{}: flow {number}", scene.name);
    }
    let sent: usize = flown.iter().map(|flow| flow.all().requests()).sum();
    let rejected: usize = flown.iter().map(|flow| flow.all().count(End::Rejected)).sum();
    let told = Accounts::at_rest(apache.direct);
    assert!(sent > 50, "{sent}");
    assert_eq!((told.arrived - told.asked, told.rejected), (sent as u64, rejected as u64), "{}", scene.name);
}

#[test]
fn an_overload_is_answered_and_accounted_for_once() {
    assert_accounted(&scenes::overload_of(3.0), 8.0);
}

#[test]
fn isolation_priorities_excess_and_bandwidth_are_answered_and_accounted_for_once() {
    for scene in [scenes::contracts(), scenes::priorities(), scenes::excess(), scenes::bandwidth()] {
        assert_accounted(&scene, 5.0);
    }
}

/// PR 4 and QM 3 before UC 6: each request is counted once by the gateway, and once by the server unless the gateway turned
/// it away.
#[test]
fn a_promise_of_the_gateway_before_the_module_is_answered_and_accounted_for_once() {
    for (promise, wider) in [(Promise::Ratio, 1), (Promise::Delay, 2)] {
        let scene = scenes::before_module(promise, wider).shorter(0.15);
        let (gateway, _control, apache, flown) = scene.before_inside(page(), PATIENCE);
        let count = |end: End| flown.iter().map(|flow| flow.all().count(end)).sum::<usize>() as u64;
        let sent = flown.iter().map(|flow| flow.all().requests()).sum::<usize>() as u64;
        assert_eq!(count(End::Lost), 0, "{promise:?}");
        assert_eq!(gateway.metric("plimsoll_arrivals_total"), sent as f64, "{promise:?}");
        let told = Accounts::at_rest(apache.direct);
        let by_gateway = count(End::Rejected) - told.rejected;
        assert_eq!(told.arrived - told.asked, sent - by_gateway, "{promise:?}");
        assert!(count(End::Page { full: false }) > 0, "the server's levels reach the client: {sent} sent");
    }
}

/// UC 7.6 by construction: requests that keep a distance of twice what the contract allows are always inside it, whatever the
/// machine does, and get the full page whatever others bring.
#[test]
fn a_site_inside_its_contract_has_full_quality_while_others_overload_the_server() {
    let scene = scenes::contracts().on_prefork();
    let contracted = 0.25 * scene.model.capacity();
    let control = Control::start(&scene.for_module().file(([127, 0, 0, 1], 9).into(), false));
    let apache = Apache::deciding(page(), scene.model, scene.model.workers, &control);
    let others = [Flow::new("others.test", "/page", &[(8.0, 4.0 * scene.model.capacity())])];
    let (is_over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                let answer = ask(apache.direct, "v1.test");
                let reported = answer.header("x-plimsoll").unwrap_or_default();
                assert_eq!((answer.status, reported), (200, "level=2; reason=guaranteed"));
                asked.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_secs_f64(2.0 / contracted));
            }
        });
        let flown = drive(apache.direct, &others, PATIENCE, || ());
        is_over.store(true, Relaxed);
        assert_eq!(flown[0].all().count(End::Lost), 0);
        assert!(flown[0].all().full() < 1.0, "the server is overloaded");
    });
    assert!(asked.load(Relaxed) > 1);
}

/// A host that no site of the file has is answered as by the gateway.
#[test]
fn a_host_that_no_site_has_is_misdirected() {
    let scene = scenes::priorities();
    let file = scene.for_module().file(([127, 0, 0, 1], 9).into(), false);
    let control = Control::start(&file.replace("name = \"shop\"", "name = \"shop\"\nhost = \"shop.test\""));
    let apache = Apache::deciding(page(), scene.model, scene.model.workers, &control);
    let answer = ask(apache.direct, "elsewhere.test");
    assert_eq!((answer.status, answer.header("x-plimsoll")), (421, Some("level=0; reason=no-site")));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(ask(apache.direct, "shop.test").status, 200);
}

fn ask(server: SocketAddr, host: &str) -> Response {
    exchange(server, format!("GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
}
