//! What a line of the access log has of a request, whatever its client sends.

use crate::support::*;
use plimsoll_gateway::settings::{AccessLogSettings, LogTarget};
use plimsoll_gateway::{Gateway, Settings};

/// Tens of thousands of lines may wait for a disk.
#[test]
fn long_texts_are_cut() {
    let origin = Origin::serving(b"page");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.log");
    let target = Some(LogTarget::File(file.clone()));
    let access_log = AccessLogSettings { target, ..AccessLogSettings::default() };
    let gateway = Gateway::start(Settings { access_log, ..settings(&[origin.address]) }, &promises(3))
        .expect("a gateway");
    let (path, agent, referer) = ("p".repeat(5000), "a".repeat(20_000), "r".repeat(2048));
    let head =
        format!("GET /{path} HTTP/1.1\r\nHost: t\r\nUser-Agent: {agent}\r\nReferer: {referer}\r\n\r\n");
    assert_eq!(client(&gateway).ask(head).0, 200);
    settled(&gateway);
    assert!(gateway.drain(PATIENCE));
    let log = std::fs::read_to_string(&file).expect("a log");
    let line: serde_json::Value = serde_json::from_str(&log).expect("one line");
    assert_eq!(line["path"], format!("/{}…", &path[..2047]));
    assert_eq!(line["user_agent"], format!("{}…", &agent[..2048]));
    assert_eq!(line["referer"], referer, "short enough");
}
