//! Texts that operators write, and texts in requests: an answer or diagnostics, never a panic.

use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::normal_path as normal;
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::Signed;
use plimsoll_sim::workload::{self, Arrivals, Discipline, Input, Replay, Stream, Workload};
use plimsoll_sim::{Error, Setup};
use std::fmt::Write;

/// What is a configuration holds together; what is none is said.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match plimsoll_config::parse(text, "fuzz.toml") {
        Ok(configuration) => assert_eq!(configuration.promises.validate(), Ok(())),
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}

/// A workload, or what is wrong with it.
pub fn workload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let promises = Promises::of(Plant::new("origin", 2), Site::new("site", &["light", "full"]));
    if let Err(diagnostics) = plimsoll_config::parse_workload(text, "fuzz.toml", &promises) {
        assert!(!diagnostics.to_string().is_empty());
    }
}

/// An agent's file, or what is wrong with it.
pub fn agent(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Most files are not the agent's, and are read by another parser.
    let _ = plimsoll_config::is_agent(text);
    if let Err(diagnostics) = plimsoll_config::parse_agent(text, "fuzz.toml") {
        assert!(!diagnostics.to_string().is_empty());
    }
}

/// A policy of adaptation, or what is wrong with it.
pub fn adaptation(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(diagnostics) = plimsoll_config::parse_adaptation(text, "fuzz.toml") {
        assert!(!diagnostics.to_string().is_empty());
    }
}

/// Any text as an access log is replayed with every request accounted for, or refused.
pub fn access_log(bytes: &[u8]) {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1 << 15)]);
    let promises = Promises::of(Plant::new("origin", 2), Site::new("site", &["light", "full"]));
    let log = Input::Text(text.as_ref().into());
    let arrivals = Arrivals::log(log, Replay { speed: 1000.0, scale: 1.5 });
    let patience = Some(Duration::from_secs(3));
    let stream = Stream { patience, ..Stream::new("log", arrivals, Vec::new(), 1) };
    let plant = workload::Plant::new(Discipline::Workers(2), 16, Duration::from_millis(10));
    let workload = Workload { streams: vec![stream], plants: vec![plant], ..Workload::default() };
    match (Setup { promises: &promises, workload: &workload, seed: 1 }).run() {
        Ok(run) => {
            let notes = run.notes.first().map_or(0, |(_, notes)| notes.requests);
            assert_eq!((run.requests, run.in_flight), (notes, 0));
        }
        Err(error) => assert!(matches!(error, Error::Stream(..)), "{error}"),
    }
}

/// Nothing that the key did not sign counts; nor does any text break the reading of keys.
pub fn signed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut signed = Signed::new(vec!["plan".to_owned()], vec!["x-plan".to_owned()]);
    signed.set_keys("a key of at least thirty-two characters").expect("a key");
    assert_eq!((signed.cookie("plan", text), signed.header("X-Plan", text)), (None, None));
    assert_eq!(signed.cookie("other", text), Some(text));
    // Another text is a key file or says why it is none.
    let _ = signed.set_keys(text);
}

/// A path has one normal form, however its slashes, parameters and letters are spelled.
pub fn normal_path(bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else { return };
    if !path.starts_with('/') {
        // A head with another path is refused, but for `*`.
        let _ = normal(path);
        return;
    }
    let found = normal(path);
    assert!(found.starts_with('/') && !found.contains("//"), "{path} becomes {found}");
    let respelled = |slash: &str| format!("/{}", path[1..].replace('/', slash));
    assert_eq!(normal(&respelled("//")), found, "with every slash twice");
    assert_eq!(normal(&respelled(";a=b/")), found, "with parameters");
    let encoded = path.bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = if byte == b'/' { write!(text, "/") } else { write!(text, "%{byte:02x}") };
        text
    });
    let mut plain = path.to_owned();
    while plain.contains("//") {
        plain = plain.replace("//", "/");
    }
    assert_eq!(normal(&encoded), plain, "with every letter encoded");
}
