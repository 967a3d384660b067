//! Promises that change under load, through the binary: by SIGHUP and by `POST /reload`. Nobody loses a request, what was
//! promised before holds until then, and what is promised now holds soon after.

use plimsoll_e2e::flows::{Flow, before, contract, drive, server, site};
use plimsoll_e2e::{Plimsoll, get};
use std::thread;
use std::time::{Duration, Instant};

/// V1's contract before and after, and V2's, as parts of the server.
const NARROW: f64 = 0.2;
const WIDE: f64 = 0.45;
const NEW: f64 = 0.3;
/// When it is told to (s): a wider contract, then one more site.
const WIDER: u64 = 9;
const ONE_MORE: u64 = 15;
const END: f64 = 22.0;
/// In which what was promised must hold (s): three control periods, and what was decided before is served.
const SOON: f64 = 3.0;

#[test]
fn promises_change_under_load_and_nobody_loses_a_request() {
    let origin = server();
    let others = site("others", "");
    let head = before(origin.address(), "control");
    let v1 = |part| contract("v1", part).replace("guarantee", "share_excess = false\nguarantee");
    let mut gateway = Plimsoll::run(&(head.clone() + &v1(NARROW) + &others));
    let address = gateway.address;
    // V1 takes no more than its contract carries, and offers what it will be promised, nearly; V2's requests are best effort until it is a site.
    let flows = vec![
        Flow::new("v1.test", &[(END, 0.9 * WIDE)]),
        Flow::new("v2.test", &[(END, 0.85 * NEW)]),
        Flow::new("others.test", &[(END, 1.5)]),
    ];
    let start = Instant::now();
    let wait_until = |second| thread::sleep(Duration::from_secs(second).saturating_sub(start.elapsed()));
    let flown = drive(address, flows, || {
        wait_until(3);
        // A file that is wrong: an order that changes nothing.
        gateway.rewrite("[gateway]\nlisten = \"nowhere\"\n");
        let answer = gateway.post_reload();
        assert!(answer.status == 422 && answer.text().contains("nowhere"), "{answer:?}");
        wait_until(WIDER);
        gateway.rewrite(&(head.clone() + &v1(WIDE) + &others));
        gateway.hang_up(1);
        wait_until(ONE_MORE);
        gateway.rewrite(&(head.clone() + &v1(WIDE) + &contract("v2", NEW) + &others));
        let answer = gateway.post_reload();
        assert!(answer.status == 200 && answer.text().contains("\"v2\""), "{answer:?}");
    });
    let [v1, v2, others] = &flown[..] else { panic!("three flows") };
    for (name, flow) in [("v1", v1), ("v2", v2), ("others", others)] {
        let all = flow.all();
        eprintln!("{name}: {all:?}");
        assert_eq!(all.lost, 0, "every request of {name} was answered: {all:?}");
    }
    // From a start in the middle of a crowd it takes some periods to what each was promised.
    let (wider, one_more) = (WIDER as f64, ONE_MORE as f64);
    // V1 at twice its contract: held to it, until the moment that it has a wider one.
    let (narrow, wide) = (v1.during(4.0..wider), v1.during(wider + SOON..END));
    eprintln!("v1 before {narrow:?}, {:.3} of U*\nafter {wide:?}", narrow.used() / NARROW);
    assert!(narrow.full_share() < 0.5, "its old contract held until then: {narrow:?}");
    assert!((0.7..1.25).contains(&(narrow.used() / NARROW)), "{:.3} of its old U*", narrow.used() / NARROW);
    assert!(wide.full_share() >= 0.97, "its new contract holds: {wide:?}");
    // V2 is one of the others, and then a site.
    let (nobody, somebody) = (v2.during(4.0..one_more), v2.during(one_more + SOON..END));
    eprintln!("v2 before {nobody:?}\nafter {somebody:?}");
    assert!(nobody.full_share() < 0.3, "best effort until then: {nobody:?}");
    assert!(somebody.full_share() >= 0.97, "the new site's contract holds: {somebody:?}");
    let page = get(gateway.admin, "/metrics").text();
    for line in
        ["plimsoll_reloads_total{result=\"applied\"} 2", "plimsoll_reloads_total{result=\"refused\"} 1"]
    {
        assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
    }
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert_eq!(
        gateway.metric("plimsoll_arrivals_total"),
        flown.iter().map(|flow| flow.all().requests).sum::<u64>() as f64
    );
}
