//! A scene in virtual time: what became of each request, from the trace of `plimsoll simulate`.

use super::Scene;
use crate::flows::{CLIENTS, End, Fate, Flow, Flown};
use crate::{Folder, Plimsoll};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How much longer than its flows a simulation lasts, so that the last requests end (s).
const END: f64 = 30.0;

impl Scene {
    /// Runs it in virtual time; the twin that must fail, if asked for.
    pub fn simulated(&self, seed: u64, twin: bool) -> Vec<Flown> {
        let folder = Folder::new();
        let text = |path: std::path::PathBuf| path.display().to_string();
        let configuration = self.file(([127, 0, 0, 1], 9).into(), twin);
        let file = text(folder.write("plimsoll.toml", configuration));
        let workload = text(folder.write("workload.toml", self.workload()));
        let (trace, seed) = (text(folder.path().join("trace.jsonl")), seed.to_string());
        let arguments = ["simulate", &file, "--workload", &workload, "--seed", &seed, "--trace", &trace];
        let output = Plimsoll::output(&arguments);
        assert!(output.status.success(), "it is refused:\n{}", String::from_utf8_lossy(&output.stderr));
        let trace = std::fs::read_to_string(trace).unwrap_or_else(|error| panic!("no trace: {error}"));
        read(&trace, &self.flows, self.configuration.contains("[[site.level]]"))
    }

    /// What arrives, and the server as it truly is.
    pub(super) fn workload(&self) -> String {
        let patience = self.patience.map(|patience| format!("patience = \"{}ms\"\n", patience.as_millis()));
        let patience = patience.unwrap_or_default();
        let mut text = format!("duration = \"{}s\"\n\n", self.lasts().as_secs_f64() + END);
        for (number, flow) in self.flows.iter().enumerate() {
            let Flow { host, path, bytes, steps, .. } = flow;
            let mut from = Duration::ZERO;
            let mut phases = String::new();
            for (length, rate) in steps.iter().chain([&(Duration::ZERO, 0.0)]) {
                phases += &format!("{{ from = \"{}ms\", rate = \"{rate}/s\" }}, ", from.as_millis());
                from += *length;
            }
            let bytes = bytes.unwrap_or(self.model.bytes());
            text += &format!(
                "[[stream]]\nname = \"flow-{number}\"\nrate = [{phases}]\nclients = {CLIENTS}\nfirst_client = \"10.{number}.0.0\"\n\
                 {patience}[[stream.page]]\nhost = \"{host}\"\npath = \"{path}\"\nbytes = \"{bytes} B\"\n\n"
            );
        }
        text += &self.model.plant();
        if let Some((from, until)) = self.slow {
            text +=
                &format!("[[plant.server.fault]]\nfrom = \"{from}s\"\nuntil = \"{until}s\"\nslower = 2.0\n");
        }
        let sites = self.configuration.split("[[site]]\nname = \"").skip(1);
        for site in sites.filter(|site| site.contains("[[site.level]]")) {
            let name = site.split('"').next().unwrap_or_default();
            text += &format!("\n[site.{name}.level.light]\nbytes = 0.125\n");
        }
        text
    }
}

/// Reads a trace: one line for each decision. A request's number comes again once it has ended.
fn read(trace: &str, flows: &[Flow], has_levels: bool) -> Vec<Flown> {
    let mut open: BTreeMap<u64, (usize, f64, bool)> = BTreeMap::new();
    let mut flown = vec![Flown::default(); flows.len()];
    let mut end = |(flow, due, _): (usize, f64, bool), now: f64, end: End| {
        flown[flow].fates.push(Fate { due, latency: now - due, end });
    };
    for line in trace.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        let (Some(number), Some(now)) = (event["request"].as_u64(), event["seconds"].as_f64()) else {
            panic!("no event: {line}");
        };
        if let Some(path) = event["path"].as_str() {
            let is_of = |flow: &Flow| event["host"] == flow.host && path == flow.path;
            let flow = flows.iter().position(is_of).unwrap_or_else(|| panic!("of no flow: {line}"));
            open.insert(number, (flow, now, true));
        }
        let Some(request) = open.get_mut(&number) else { panic!("it has ended before: {line}") };
        if let Some(level) = event["level"].as_u64() {
            request.2 = !has_levels || level >= 2;
        }
        let request = *request;
        match event["event"].as_str().unwrap_or_default() {
            "start" | "wait" => continue,
            "completed" => end(request, now, End::Page { full: request.2 }),
            "reject" => end(request, now, End::Rejected),
            _ => end(request, now, End::Lost),
        }
        open.remove(&number);
    }
    open.into_values().for_each(|request| end(request, f64::MAX, End::Lost));
    flown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_tells_what_became_of_each() {
        let trace = r#"{"seconds": 1.0, "request": 1, "event": "start", "level": 2, "path": "/a", "host": "h"}
{"seconds": 1.1, "request": 2, "event": "wait", "path": "/a", "host": "h"}
{"seconds": 1.2, "request": 3, "event": "reject", "reason": "deadline", "path": "/b", "host": "h"}
{"seconds": 1.3, "request": 1, "event": "completed"}
{"seconds": 1.3, "request": 2, "event": "start", "level": 1}
{"seconds": 1.4, "request": 1, "event": "wait", "path": "/a", "host": "h"}
{"seconds": 1.5, "request": 1, "event": "reject", "reason": "late"}
{"seconds": 1.9, "request": 2, "event": "completed"}"#;
        let flows = ["/a", "/b"].map(|path| Flow::new("h", path, &[]));
        let flown = read(trace, &flows, true);
        let a = flown[0].during(0.0..2.0);
        assert_eq!((a.requests(), flown[0].during(1.05..1.2).requests()), (3, 1));
        assert_eq!((a.count(End::Page { full: true }), a.count(End::Page { full: false })), (1, 1));
        assert_eq!((a.within(0.5), flown[1].all().count(End::Rejected)), (1, 1));
    }
}
