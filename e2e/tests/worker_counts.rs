//! The number of workers from the server itself: a real Apache tells it, ceases to answer, or has no such page.

use plimsoll_e2e::page::WORKERS;
use plimsoll_e2e::{Apache, Plimsoll, get};
use std::path::Path;

/// With what the search begins.
const GUESS: f64 = 16.0;

/// Says of the server where it is and where it counts its workers.
fn configuration(apache: &Apache, page: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
         [upstream.server]\naddress = \"{}\"\n\n\
         [upstream.server.capacity]\nworkers_from = \"http://{}{page}\"\n",
        apache.upstream, apache.direct
    )
}

fn start() -> Apache {
    Apache::start(Path::new(env!("CARGO_BIN_EXE_page-cgi")))
}

#[test]
fn apache_says_how_many_workers_it_has_and_is_believed_when_it_is_gone() {
    let apache = start();
    let mut gateway = Plimsoll::run(&configuration(&apache, "/server-status?auto"));
    gateway.wait_for_metric("plimsoll_workers", WORKERS as f64);
    assert_eq!(gateway.metric("plimsoll_in_service_limit"), WORKERS as f64);
    assert_eq!(gateway.metric("plimsoll_workers_found"), 1.0);
    assert_eq!(get(gateway.address, "/page").status, 200);
    drop(apache);
    gateway.process.wait_for("a line that it is gone", |log| log.contains("stays in force").then_some(()));
    assert_eq!(gateway.metric("plimsoll_in_service_limit"), WORKERS as f64);
}

#[test]
fn a_page_that_does_not_say_it_leaves_the_search_as_it_is() {
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
