//! The number of workers from the server itself: a real Apache reports it, ceases to answer, or has no such page.

use crate::page;
use plimsoll_e2e::{Apache, Plimsoll, SLOW_PAGES, get};

/// The number with which the search begins.
const GUESS: f64 = 16.0;

/// A file that says where the server is and where it reports its workers, and nothing else of it.
fn configuration(apache: &Apache, page: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
         [upstream.server]\naddress = \"{}\"\n\n\
         [upstream.server.capacity]\nworkers_from = \"http://{}{page}\"\n",
        apache.upstream, apache.direct
    )
}

fn start() -> Apache {
    Apache::pages(page(), SLOW_PAGES)
}

#[test]
fn the_workers_that_apache_reports_stay_in_force_when_it_is_gone() {
    let apache = start();
    let mut gateway = Plimsoll::run(&configuration(&apache, "/server-status?auto"));
    gateway.wait_for_metric("plimsoll_workers", f64::from(SLOW_PAGES.workers));
    assert_eq!(gateway.metric("plimsoll_in_service_limit"), f64::from(SLOW_PAGES.workers));
    assert_eq!(gateway.metric("plimsoll_workers_found"), 1.0);
    let status = gateway.ask_admin("/status").text();
    assert!(status.contains("\"limit_reason\": \"reported\""), "{status}");
    assert_eq!(get(gateway.address, "/page").status, 200);
    drop(apache);
    gateway.process.wait_for("a line that it is gone", |log| log.contains("stays in force").then_some(()));
    assert_eq!(gateway.metric("plimsoll_in_service_limit"), f64::from(SLOW_PAGES.workers));
}

#[test]
fn a_page_without_workers_leaves_the_search_as_it_is() {
    let apache = start();
    let mut gateway = Plimsoll::run(&configuration(&apache, "/nothing"));
    gateway.process.wait_for("a line that says why", |log| {
        log.contains("it is answered with 404; let this host read it; the workers are looked for")
            .then_some(())
    });
    assert_eq!(get(gateway.address, "/page").status, 200);
    assert_eq!(gateway.metric("plimsoll_workers_found"), 0.0);
    assert_eq!(gateway.metric("plimsoll_in_service_limit"), GUESS);
}
