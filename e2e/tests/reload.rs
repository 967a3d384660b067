//! Promises that change under load, through the binary: by SIGHUP and by `POST /reload`. No request is lost, each is accounted
//! for once, and a host is served by the promises that it has now. How soon a contract holds after that is judged in
//! `crates/core/tests/reload_contracts.rs`.

use plimsoll_e2e::Plimsoll;
use plimsoll_e2e::configuration::{contract, site};
use plimsoll_e2e::flows::{End, Flow, Flown, drive};
use plimsoll_e2e::scenes::excess;
use std::thread;
use std::time::{Duration, Instant};

/// What V1 is promised before and after, and V2 once it is a site, as parts of the server.
const NARROW: f64 = 0.2;
const WIDE: f64 = 0.45;
const NEW: f64 = 0.3;
/// When the promises change (s): a wider contract, then one more site.
const WIDER: f64 = 4.0;
const ONE_MORE: f64 = 7.0;
const END: f64 = 12.0;
/// How long a request that came before a change may still be served by the old promises, and how long the loop needs (s).
const SOON: f64 = 3.0;

/// The part of the requests due in these seconds that were not served at full quality.
fn degraded(flow: &Flown, from: f64, until: f64) -> f64 {
    1.0 - flow.during(from..until).full()
}

#[test]
fn promises_change_under_load_and_no_request_is_lost() {
    let scene = excess();
    let (model, capacity) = (scene.model, scene.model.capacity());
    let origin = model.origin(&[]);
    let gateway_part = scene.file(origin.address(), false);
    let head = gateway_part.split("\n[[site]]").next().unwrap_or_default().to_owned();
    let others = site("others", "");
    let v1 = |part| contract("v1", part, model).replace("guarantee", "share_excess = false\nguarantee");
    let mut gateway = Plimsoll::run(&(head.clone() + &v1(NARROW) + &others));
    // V1 takes no more than its contract carries, and offers nearly what it will be promised; V2's requests are best effort
    // until V2 is a site.
    let flow = |host, part: f64| Flow::new(host, "/page", &[(END, part * capacity)]);
    let flows = [flow("v1.test", 0.9 * WIDE), flow("v2.test", 0.85 * NEW), flow("others.test", 1.5)];
    let start = Instant::now();
    let wait_until = |second| thread::sleep(Duration::from_secs_f64(second).saturating_sub(start.elapsed()));
    let flown = drive(gateway.address, &flows, Duration::from_secs(20), || {
        // A file with an error changes nothing.
        gateway.rewrite("[gateway]\nlisten = \"nowhere\"\n");
        let answer = gateway.post_reload();
        assert!(answer.status == 422 && answer.text().contains("nowhere"), "{answer:?}");
        wait_until(WIDER);
        gateway.rewrite(&(head.clone() + &v1(WIDE) + &others));
        gateway.hang_up(1);
        wait_until(ONE_MORE);
        gateway.rewrite(&(head.clone() + &v1(WIDE) + &contract("v2", NEW, model) + &others));
        let answer = gateway.post_reload();
        assert!(answer.status == 200 && answer.text().contains("\"v2\""), "{answer:?}");
    });
    for (flow, name) in flown.iter().zip(["v1", "v2", "others"]) {
        assert_eq!(flow.all().count(End::Lost), 0, "every request of {name} was answered");
    }
    // V1 was held to a contract of half of its load, and V2 had none: more of both was degraded then. How much is a figure of
    // this machine.
    let narrow = (degraded(&flown[0], 1.0, WIDER), degraded(&flown[0], WIDER + SOON, END));
    let nobody = (degraded(&flown[1], 2.0, ONE_MORE), degraded(&flown[1], ONE_MORE + SOON, END));
    eprintln!("degraded before and after: V1 {narrow:?}, V2 {nobody:?}");
    for (before, after) in [narrow, nobody] {
        assert!(after < before, "{before:.3} degraded before, {after:.3} after");
    }
    let page = gateway.ask_admin("/metrics").text();
    for line in
        ["plimsoll_reloads_total{result=\"applied\"} 2", "plimsoll_reloads_total{result=\"refused\"} 1"]
    {
        assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
    }
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let requests: usize = flown.iter().map(|flow| flow.all().requests()).sum();
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), requests as f64);
}
