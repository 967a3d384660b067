//! `plimsoll simulate` of the file that a live run had, to stand beside it: what became of each request, from its trace.

use crate::{Folder, Plimsoll};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// What became of the requests of a run in virtual time.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// In no order.
    requests: Vec<Request>,
}

#[derive(Clone, Debug)]
struct Request {
    path: String,
    arrived: f64,
    /// When its response was complete; `None`: turned away, or not by the end.
    answered: Option<f64>,
    turned_away: bool,
}

impl Simulated {
    /// Runs a configuration against a workload.
    ///
    /// # Panics
    /// If it is refused, or its trace is not what it is said to be.
    #[must_use]
    pub fn run(configuration: &str, workload: &str, seed: u64) -> Simulated {
        let folder = Folder::new();
        let text = |path: std::path::PathBuf| path.display().to_string();
        let file = text(folder.write("plimsoll.toml", configuration));
        let workload = text(folder.write("workload.toml", workload));
        let trace = text(folder.path().join("trace.jsonl"));
        let seed = seed.to_string();
        let arguments = ["simulate", &file, "--workload", &workload, "--seed", &seed, "--trace", &trace];
        let output = Plimsoll::output(&arguments);
        assert!(output.status.success(), "it is refused:\n{}", String::from_utf8_lossy(&output.stderr));
        let trace = std::fs::read_to_string(trace).unwrap_or_else(|error| panic!("no trace: {error}"));
        Simulated { requests: read(&trace) }
    }

    /// How many of a path arrived in these seconds.
    #[must_use]
    pub fn asked(&self, path: &str, seconds: Range<f64>) -> u64 {
        self.of(path, seconds).count() as u64
    }

    /// Of those, how many were answered within `limit`.
    #[must_use]
    pub fn answered_within(&self, path: &str, seconds: Range<f64>, limit: Duration) -> u64 {
        let in_time = |request: &&Request| {
            request.answered.is_some_and(|answered| answered - request.arrived <= limit.as_secs_f64())
        };
        self.of(path, seconds).filter(in_time).count() as u64
    }

    /// Of those, how many were turned away.
    #[must_use]
    pub fn turned_away(&self, path: &str, seconds: Range<f64>) -> u64 {
        self.of(path, seconds).filter(|request| request.turned_away).count() as u64
    }

    fn of(&self, path: &str, seconds: Range<f64>) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |request| request.path == path && seconds.contains(&request.arrived))
    }
}

/// One line for each decision. Numbers of requests come again once they have ended.
fn read(trace: &str) -> Vec<Request> {
    let mut open: BTreeMap<u64, Request> = BTreeMap::new();
    let mut ended = Vec::new();
    for line in trace.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let (Some(number), Some(now), Some(what)) =
            (event["request"].as_u64(), event["seconds"].as_f64(), event["event"].as_str())
        else {
            panic!("no event: {line}");
        };
        if let Some(path) = event["path"].as_str() {
            let request = Request { path: path.to_owned(), arrived: now, answered: None, turned_away: false };
            ended.extend(open.insert(number, request));
        }
        match what {
            "start" | "wait" => {}
            _ => {
                let Some(mut request) = open.remove(&number) else { panic!("it has ended before: {line}") };
                request.turned_away = what == "reject";
                request.answered = (what == "completed").then_some(now);
                ended.push(request);
            }
        }
    }
    ended.extend(open.into_values());
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_tells_what_became_of_each() {
        let trace = r#"{"seconds": 1.0, "request": 1, "event": "start", "path": "/a"}
{"seconds": 1.1, "request": 2, "event": "wait", "path": "/a"}
{"seconds": 1.2, "request": 3, "event": "reject", "reason": "deadline", "path": "/b"}
{"seconds": 1.3, "request": 1, "event": "completed"}
{"seconds": 1.3, "request": 2, "event": "start"}
{"seconds": 1.4, "request": 1, "event": "wait", "path": "/a"}
{"seconds": 1.5, "request": 1, "event": "reject", "reason": "late"}
{"seconds": 1.9, "request": 2, "event": "completed"}"#;
        let simulated = Simulated { requests: read(trace) };
        let limit = Duration::from_millis(500);
        assert_eq!(simulated.asked("/a", 0.0..2.0), 3);
        assert_eq!(simulated.asked("/a", 1.05..1.2), 1);
        assert_eq!(simulated.answered_within("/a", 0.0..2.0, limit), 1);
        assert_eq!(["/a", "/b"].map(|path| simulated.turned_away(path, 0.0..2.0)), [1, 1]);
    }
}
