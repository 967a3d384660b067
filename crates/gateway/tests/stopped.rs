//! What a gateway says of requests that it waited for in vain before it ended.

use crate::support::*;
use plimsoll_gateway::Gateway;
use plimsoll_gateway::settings::{AccessLogSettings, LogTarget};
use std::time::Duration;

#[test]
fn every_request_that_the_end_cuts_has_its_line_and_none_is_said_to_have_left() {
    let origin = Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/half ") {
                let _ = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
            }
            peer.rest();
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let target = Some(LogTarget::File(file.clone()));
    let access_log = AccessLogSettings { target, ..AccessLogSettings::default() };
    let own = plimsoll_gateway::Settings { access_log, ..settings(&[origin.address]) };
    let gateway = Gateway::start(own, &promises(3)).expect("a gateway");
    let ask = |line: &str| {
        let mut client = client(&gateway);
        client.send(format!("{line} HTTP/1.1\r\nHost: t\r\n\r\n")).expect("sent");
        client
    };
    let mut half = ask("GET /half");
    assert_eq!(status(&half.head().expect("a head")), 200);
    half.exactly(4);
    let (silent, left) = (ask("GET /silent"), ask("GET /left"));
    eventually("all are served", || gateway.status().plants[0].in_service == 3);
    let waiting = ask("GET /waiting");
    eventually("one waits", || gateway.status().plants[0].waiting == 1);
    let mut body = client(&gateway);
    body.send("POST /body HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nbo").expect("sent");
    drop(left);
    // The one thread has seen that by the time it answers what comes later.
    assert_eq!(client(&gateway).ask("BAD\r\n\r\n").0, 400);
    assert!(!gateway.drain(Duration::from_millis(500)), "none of them ends");
    let log = std::fs::read_to_string(&file).expect("a log");
    let line = |path: &str| {
        let own: Vec<&str> = log.lines().filter(|line| line.contains(path)).collect();
        assert_eq!(own.len(), 1, "{path}: {log}");
        own[0].to_owned()
    };
    let stopped = "\"error\":\"the gateway stopped before the answer was whole\"";
    for (path, status) in [("/half", 200), ("/silent", 503), ("/waiting", 503), ("/body", 503)] {
        let line = line(path);
        assert!(line.contains(&format!("\"status\":{status},")) && line.contains(stopped), "{line}");
    }
    assert!(line("/half").contains("\"bytes\":4,"), "{log}");
    let left = line("/left");
    assert!(left.contains("\"status\":499,") && !left.contains(stopped), "{left}");
    drop((half, silent, waiting, body));
}
