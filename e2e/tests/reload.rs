//! Promises that change under load, through the binary: by SIGHUP and by `POST /reload`. No request is lost, each is accounted
//! for once, and a host is served by the promises that it has now. How soon a contract holds after that is judged in virtual
//! time, in `crates/core/tests/engine/reload_contracts.rs`; `make live reload` shows it.

use plimsoll_e2e::flows::End;
use plimsoll_e2e::reloaded::{Reloaded, SITES};

#[test]
fn promises_change_under_load_and_no_request_is_lost() {
    let Reloaded { gateway, answers: [wrong, good], flown } = Reloaded::run();
    // A file with an error changes nothing.
    assert!(wrong.status == 422 && wrong.text().contains("nowhere"), "{wrong:?}");
    assert!(good.status == 200 && good.text().contains("\"v2\""), "{good:?}");
    for (flow, name) in flown.iter().zip(SITES) {
        assert_eq!(flow.all().count(End::Lost), 0, "every request of {name} was answered");
    }
    let page = gateway.ask_admin("/metrics").text();
    for line in
        ["plimsoll_reloads_total{result=\"applied\"} 2", "plimsoll_reloads_total{result=\"refused\"} 1"]
    {
        assert!(page.lines().any(|found| found == line), "no {line} in\n{page}");
    }
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let requests: Vec<f64> = flown.iter().map(|flow| flow.all().requests() as f64).collect();
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), requests.iter().sum::<f64>());
    // V2's requests were the others' until it was a site.
    let [v1, v2, others] =
        SITES.map(|site| gateway.metric_of("plimsoll_arrivals_total", &format!("site=\"{site}\"")));
    assert_eq!((v1, v2 + others), (requests[0], requests[1] + requests[2]), "by site");
    assert!(v2 > 0.0 && v2 < requests[1], "{v2} of {} requests came to the new site", requests[1]);
}
