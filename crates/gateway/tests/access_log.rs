//! What a line of the access log has of a request, whatever its client sends.

use crate::support::*;
use plimsoll_core::promises::{Condition, Promises};
use plimsoll_gateway::settings::{AccessLogSettings, LogTarget};
use plimsoll_gateway::{Gateway, Settings};
use std::path::Path;
use std::time::Duration;

fn logging(settings: Settings, promises: &Promises, file: &Path) -> Gateway {
    let target = Some(LogTarget::File(file.to_owned()));
    let access_log = AccessLogSettings { target, ..AccessLogSettings::default() };
    Gateway::start(Settings { access_log, ..settings }, promises).expect("a gateway")
}

/// The lines of a gateway whose requests have all ended, or end now.
fn lines(gateway: Gateway, file: &Path) -> Vec<serde_json::Value> {
    gateway.drain(PATIENCE);
    let log = std::fs::read_to_string(file).expect("a log");
    log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Tens of thousands of lines may wait for a disk.
#[test]
fn long_texts_are_cut() {
    let origin = Origin::serving(b"page");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let gateway = logging(settings(&[origin.address]), &promises(3), &file);
    let (path, agent, referer) = ("p".repeat(5000), "a".repeat(20_000), "r".repeat(2048));
    let head =
        format!("GET /{path} HTTP/1.1\r\nHost: t\r\nUser-Agent: {agent}\r\nReferer: {referer}\r\n\r\n");
    assert_eq!(client(&gateway).ask(head).0, 200);
    settled(&gateway);
    let [line] = &lines(gateway, &file)[..] else { panic!("one line") };
    assert_eq!(line["path"], format!("/{}…", &path[..2047]));
    assert_eq!(line["user_agent"], format!("{}…", &agent[..2048]));
    assert_eq!(line["referer"], referer, "short enough");
}

/// What the engine counts under a reason has it in its line, beside the sentence of its answer.
#[test]
fn a_request_that_leaves_the_queue_unserved_has_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    for (reason, status) in [("queue-full", 503), ("wait-timeout", 504)] {
        // The upstream begins to answer and never ends, so that the only place stays taken.
        let origin = Origin::once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
        let (mut settings, mut promises) = (settings(&[origin.address]), promises(1));
        if status == 503 {
            settings.limits.buffer_memory = 1;
        } else {
            // The engine does not bound the wait of such a request.
            settings.timeouts.first_byte = Duration::from_millis(600);
            promises.sites[0].exempt = vec![Condition::default()];
        }
        let file = folder.path().join(reason);
        let gateway = logging(settings, &promises, &file);
        let mut first = client(&gateway);
        first.send("GET /first HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
        first.head().expect("its answer begins");
        assert_eq!(client(&gateway).get("/second").0, status);
        drop(first);
        let lines = lines(gateway, &file);
        let second = lines.iter().find(|line| line["path"] == "/second").expect("its line");
        assert_eq!((&second["status"], &second["reason"]), (&status.into(), &reason.into()), "{second}");
        assert!(second["error"].is_string(), "{second}");
    }
}
