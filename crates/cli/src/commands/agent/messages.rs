//! The agent's messages: each change with its reason, in the log; with `--json` the figures of each period, on stdout.

use crate::output::facts::{Facts, hidden};
use crate::output::json;
use plimsoll_core::agent::{Change, Counters, Figures, Why};
use std::time::Duration;

/// A sentence about a change; `done` says that it was made.
pub(super) fn change(change: &Change, figures: &Figures, done: bool) -> String {
    let would = if done { "" } else { "would be: " };
    format!(
        "{would}{}: {} ({:.1} requests/s)",
        clients(change.fraction),
        why(change.why),
        figures.request_rate
    )
}

/// How many clients get full quality.
pub(super) fn clients(fraction: f64) -> String {
    match fraction {
        0.0 => "everybody is degraded".to_owned(),
        1.0 => "full quality for everybody".to_owned(),
        fraction => format!("full quality for {:.1} % of the clients", 100.0 * fraction),
    }
}

fn why(why: Why) -> String {
    match why {
        Why::Overload { response: Some(response), threshold } => {
            format!("the server takes {} to answer, more than {}", time(response), time(threshold))
        }
        Why::Queue { waiting, wait, threshold } => {
            let (wait, threshold) = (time(wait), time(threshold));
            format!("{waiting} requests wait, the last for {wait}, more than {threshold}")
        }
        Why::Overload { response: None, .. } => "the server does not answer, or with an error".to_owned(),
        Why::Load { at_full, line } => {
            format!("for everybody it would take {at_full:.2} of the server, whose line is {line:.2}")
        }
    }
}

/// The warning that no sense shows the load at this request rate, and what to do.
pub(super) fn blind(rate: f64) -> String {
    format!(
        "blind: {rate:.0} requests/s come, and nothing shows that they take the server anything, so nothing goes back to \
         full quality meanwhile; under [server], name the server's `pid`, or write what requests cost, `costs`, as \
         `plimsoll profile` finds it"
    )
}

pub(super) fn time(time: Duration) -> String {
    match time {
        time if time < Duration::from_secs(1) => format!("{:.0} ms", time.as_secs_f64() * 1e3),
        time => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// What the server's counters showed, the agent's own probes included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServerTotals {
    /// Requests and bytes since the start.
    requests: u64,
    bytes: u64,
    /// Bytes of packets dropped since the start, because too many waited; `None` if no packets are read.
    pub(super) dropped: Option<u64>,
    /// Since the last figures: the number of requests whose response times were seen, and the sum of the times.
    seen: u64,
    response: Duration,
}

impl ServerTotals {
    /// Adds the counters of one sample.
    pub(super) fn add(&mut self, counters: &Counters) {
        self.requests += counters.requests;
        self.bytes += counters.bytes;
        if let Some(response) = counters.response {
            self.seen += counters.requests;
            self.response += response;
        }
    }

    /// The mean response time since the last call, if any was seen.
    fn take_response(&mut self) -> Option<Duration> {
        let (seen, sum) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.response));
        (seen > 0).then(|| sum.div_f64(seen as f64))
    }
}

/// The figures at `seconds` from the start, as one line of JSON; `own` is the applied fraction and the number of changes.
pub(super) fn json(
    seconds: f64,
    figures: &Figures,
    (applied, changes): (f64, u64),
    totals: &mut ServerTotals,
) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    json::line(&Facts(vec![
        hidden("seconds", (seconds * 1e3).round() / 1e3),
        hidden("requests", totals.requests),
        hidden("bytes", totals.bytes),
        hidden("dropped_bytes", totals.dropped),
        hidden("server_response_ms", totals.take_response().map(ms)),
        hidden("request_rate", figures.request_rate),
        hidden("utilization", figures.utilization),
        hidden("utilization_at_full", figures.at_full),
        hidden("response_ms", figures.response.map(ms)),
        hidden("threshold_ms", ms(figures.threshold)),
        hidden("overloaded", figures.overloaded),
        hidden("blind", figures.blind),
        hidden("fraction", applied),
        hidden("changes", changes),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_has_its_reason() {
        let figures = Figures { request_rate: 120.0, ..Figures::default() };
        let overload = Why::Overload {
            response: Some(Duration::from_millis(1200)),
            threshold: Duration::from_millis(360),
        };
        assert_eq!(
            change(&Change { fraction: 0.0, why: overload }, &figures, true),
            "everybody is degraded: the server takes 1.2 s to answer, more than 360 ms (120.0 requests/s)"
        );
        let (wait, threshold) = (Duration::from_millis(600), Duration::from_millis(500));
        assert_eq!(
            change(
                &Change { fraction: 0.0, why: Why::Queue { waiting: 24, wait, threshold } },
                &figures,
                true
            ),
            "everybody is degraded: 24 requests wait, the last for 600 ms, more than 500 ms (120.0 requests/s)"
        );
        let load = Why::Load { at_full: 1.7, line: 0.85 };
        assert_eq!(
            change(&Change { fraction: 0.2, why: load }, &figures, false),
            "would be: full quality for 20.0 % of the clients: for everybody it would take 1.70 of the server, whose line is \
             0.85 (120.0 requests/s)"
        );
    }

    #[test]
    fn response_times_are_those_of_a_period_and_counts_those_since_the_start() {
        let mut totals = ServerTotals::default();
        let mut line = |counters: &[Counters]| {
            counters.iter().for_each(|counters| totals.add(counters));
            let line = json(1.0, &Figures::default(), (1.0, 0), &mut totals);
            serde_json::from_str::<serde_json::Value>(&line).unwrap()
        };
        let seen = |requests, response| Counters {
            requests,
            bytes: 100 * requests,
            response: Some(Duration::from_millis(response)),
            ..Counters::default()
        };
        let figures = line(&[seen(3, 30), seen(0, 0), seen(1, 50)]);
        assert_eq!((&figures["requests"], &figures["bytes"]), (&4.into(), &400.into()), "{figures}");
        assert_eq!(figures["server_response_ms"], 20.0, "{figures}");
        // No request came at all; then some came without visible response times.
        let unseen = Counters { requests: 5, bytes: 500, ..Counters::default() };
        let none = [line(&[seen(0, 0)]), line(&[unseen])];
        assert!(none.iter().all(|figures| figures["server_response_ms"].is_null()), "{none:?}");
        assert_eq!((&none[1]["requests"], &none[1]["bytes"]), (&9.into(), &900.into()), "{none:?}");
        assert!(
            none.iter().all(|figures| figures["dropped_bytes"].is_null()),
            "no packets are read: {none:?}"
        );
        totals.dropped = Some(7);
        let figures = json(2.0, &Figures::default(), (1.0, 0), &mut totals);
        assert!(figures.contains("\"dropped_bytes\":7,"), "{figures}");
    }
}
