//! ORCA: the utilization that an upstream reports in `endpoint-load-metrics`.
//!
//! The header has two forms in text: `TEXT cpu_utilization=0.3, application_utilization=0.5` and
//! `JSON {"cpu_utilization":0.3}`. The application's own figure counts if it is given, otherwise that of the CPU, as in
//! gRPC's weighted round robin. The binary form needs protocol buffers and is ignored.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Reports since the last tick: threads add them, the ticker takes them.
#[derive(Debug, Default)]
pub(crate) struct LoadReports {
    /// Sum of utilizations in millionths.
    sum: AtomicU64,
    count: AtomicU64,
}

impl LoadReports {
    pub(crate) fn add(&self, value: &[u8]) {
        if let Some(utilization) = parse(value) {
            self.sum.fetch_add((utilization.clamp(0.0, 1.0) * 1e6) as u64, Relaxed);
            self.count.fetch_add(1, Relaxed);
        }
    }

    /// The mean of the reports since the last call; `None` without any.
    pub(crate) fn take(&self) -> Option<f64> {
        let (count, sum) = (self.count.swap(0, Relaxed), self.sum.swap(0, Relaxed));
        (count > 0).then(|| sum as f64 / count as f64 / 1e6)
    }
}

fn parse(value: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (form, rest) = text.split_once(' ').unwrap_or((text, ""));
    let body = match form {
        "TEXT" => rest,
        "JSON" => rest.trim().trim_start_matches('{').trim_end_matches('}'),
        _ => return None,
    };
    let (mut cpu, mut application) = (None, None);
    for pair in body.split(',') {
        let Some((name, number)) = pair.split_once(['=', ':']) else { continue };
        let number = number.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match name.trim().trim_matches('"') {
            "cpu_utilization" | "cpuUtilization" => cpu = number,
            "application_utilization" | "applicationUtilization" => application = number,
            _ => {}
        }
    }
    application.filter(|number| *number > 0.0).or(cpu)
}

/// The cost of a request in seconds: a number alone, or the sum of ORCA's `request_cost` in one of its text forms.
pub(crate) fn cost(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let seconds = number(text).or_else(|| {
        let (form, rest) = text.split_once(' ')?;
        let body = rest.trim();
        let pairs = match form {
            "TEXT" => body,
            // {"request_cost": {"cpu": 0.2}}
            "JSON" => {
                let (_, inner) = body.split_once("\"request_cost\"")?;
                inner.trim_start_matches([' ', ':']).strip_prefix('{')?.split_once('}')?.0
            }
            _ => return None,
        };
        let costs = pairs.split(',').filter_map(|pair| {
            let (name, value) = pair.split_once(['=', ':'])?;
            let own = form == "JSON" || name.trim().starts_with("request_cost.");
            number(value).filter(|_| own)
        });
        costs.reduce(|sum, cost| sum + cost)
    });
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (text, expected) in [
            ("TEXT cpu_utilization=0.3", Some(0.3)),
            ("TEXT cpu_utilization=0.3, application_utilization=0.5", Some(0.5)),
            ("TEXT application_utilization=0,cpu_utilization=0.3", Some(0.3)),
            ("JSON {\"cpu_utilization\": 0.25, \"mem_utilization\":0.9}", Some(0.25)),
            ("JSON {\"cpuUtilization\":0.25}", Some(0.25)),
            ("TEXT cpu_utilization=NaN", None),
            ("TEXT cpu_utilization=-1", None),
            ("TEXT", None),
            ("BIN abc", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn costs() {
        for (text, expected) in [
            ("0.25", Some(0.25)),
            (" 1e-3 ", Some(0.001)),
            ("TEXT cpu_utilization=0.3, request_cost.db=0.5,request_cost.cpu=0.25", Some(0.75)),
            (
                "JSON {\"cpu_utilization\":0.3,\"request_cost\": {\"db\": 0.5, \"cpu\": 0.25},\"x\":1}",
                Some(0.75),
            ),
            ("TEXT cpu_utilization=0.3", None),
            ("JSON {\"request_cost\":{}}", None),
            ("-1", None),
            ("NaN", None),
            ("inf", None),
            ("soon", None),
        ] {
            assert_eq!(cost(text.as_bytes()), expected.map(Duration::from_secs_f64), "{text}");
        }
    }

    #[test]
    fn the_mean_is_taken_once() {
        let reports = LoadReports::default();
        reports.add(b"TEXT cpu_utilization=0.2");
        reports.add(b"TEXT cpu_utilization=0.4");
        reports.add(b"nonsense");
        assert!((reports.take().expect("two reports") - 0.3).abs() < 1e-6);
        assert_eq!(reports.take(), None);
    }
}
