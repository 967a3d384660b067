//! The cost of a failed request to the server, `T_f` (UC 7.5, eq. 11 and 12).
//!
//! Above its highest rate X a server fails requests, and the time spent on them is missing for those that succeed. Per second,
//! with X' answers, F failures and `T_s = 1 / X` for an answer: `X' T_s + F T_f = 1`, so
//!
//! ```text
//! T_f = (1 - X' / X) / F
//! ```
//!
//! The paper instead sets `X a + W b = U_max` and `X a + W' b + (L - X) T_f = U_max`, with L the offered rate and W, W' the
//! bandwidths. It thus keeps the cost a for all X requests although fewer succeed, so that only the lost bytes are charged to
//! the failures, and it counts as failed whatever exceeds X. Both values are given; the first is the one to plan with.
//!
//! T_f is a small difference of two large rates: if a fifth of X is lost to failures, an error of 2 % in X makes an error of 8
//! % in T_f. So X is measured once more just before, with twice the clients: as many clients as the server has workers keep the
//! workers busy except while requests and answers travel, and above X no worker waits for that. A disturbance of the machine
//! can only lower X, so the higher of the two figures counts. The error of T_f includes only X's own noise, not disturbances of
//! the open loop as a whole.

use super::fit::Fit;
use super::search::{Highest, OpenWindow, Window};

/// What an open loop above the highest rate did, and what failures cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// The index of the subject.
    pub subject: usize,
    /// The rate of requests offered (1/s).
    pub offered: f64,
    /// The rate of requests answered (1/s).
    pub answered: f64,
    /// The rate of requests that failed (1/s): refused, reset, timed out, or answered with an error.
    pub failed: f64,
    /// Body bytes per second.
    pub bytes_per_second: f64,
    /// Mean response time of the answers (s).
    pub response_seconds: Option<f64>,
    /// How late the client was at its 99th percentile (s).
    pub late_seconds: f64,
    /// The share of one processor that the client's thread took.
    pub client_cpu: Option<f64>,
    /// `T_f` (s); `None` if hardly any request failed, or if the client could not offer the rate.
    pub per_failure_seconds: Option<f64>,
    /// The error of `T_f` from the noise of X (s): half the 95 % confidence interval.
    pub per_failure_error_seconds: Option<f64>,
    /// `T_f` by the paper's eq. 12 (s).
    pub per_failure_by_bytes_seconds: Option<f64>,
}

/// If the client is later than this at its 99th percentile (s), it did not offer the rate, and failed requests itself.
pub const MOST_LATE: f64 = 0.1;

/// If fewer requests fail, as a share of those offered, the failures say nothing.
const ENOUGH: f64 = 0.01;

/// X from the less disturbed of its two measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undisturbed {
    /// Requests per second.
    pub(super) rate: f64,
    /// Half the 95 % confidence interval of the rate, as a share of the rate.
    uncertainty: f64,
}

impl Undisturbed {
    pub(super) fn of(highest: &Highest, again: &Window) -> Self {
        let [first, second] = [(highest.rate, highest.uncertainty), (again.rate, again.uncertainty())];
        let (rate, uncertainty) = if second.0 > first.0 { second } else { first };
        Undisturbed { rate, uncertainty }
    }
}

impl Overload {
    pub(super) fn of(
        (subject, highest): (usize, &Highest),
        undisturbed: Undisturbed,
        fit: &Fit,
        offered: f64,
        open: &OpenWindow,
    ) -> Self {
        let enough = open.failures > ENOUGH * offered && open.late_seconds < MOST_LATE;
        let lost_bytes = (highest.rate * highest.bytes - open.bytes_per_second).max(0.0);
        let kept = open.rate / undisturbed.rate;
        let per_failure = (1.0 - kept).max(0.0) / open.failures;
        let error = undisturbed.uncertainty * kept / open.failures;
        let by_bytes = fit.per_byte_seconds * lost_bytes / (offered - highest.rate);
        Overload {
            subject,
            offered,
            answered: open.rate,
            failed: open.failures,
            bytes_per_second: open.bytes_per_second,
            response_seconds: open.response_seconds,
            late_seconds: open.late_seconds,
            client_cpu: open.client_cpu,
            per_failure_seconds: enough.then_some(per_failure),
            per_failure_error_seconds: enough.then_some(error),
            per_failure_by_bytes_seconds: enough.then_some(by_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UC 7.5: 84 Mb/s at 160 requests/s, 36 Mb/s at 600.
    #[test]
    fn the_papers_figures_give_the_papers_cost() {
        let megabit = 1e6 / 8.0;
        let fit = Fit {
            per_request_seconds: 1.604e-3,
            per_byte_seconds: 0.007_875 / megabit,
            link_per_byte_seconds: None,
        };
        let highest = Highest {
            rate: 160.0,
            uncertainty: 0.0,
            bytes: 84.0 * megabit / 160.0,
            clients: 1,
            busy_clients: 1,
            alone: 160.0,
            climb: Vec::new(),
            sustained: None,
            response_seconds: None,
            late_seconds: 0.0,
            client_cpu: None,
            machine_cpu: None,
        };
        let answered = 160.0 * 36.0 / 84.0;
        let open = OpenWindow {
            rate: answered,
            bytes_per_second: 36.0 * megabit,
            failures: 600.0 - answered,
            ..OpenWindow::default()
        };
        let window = |rate: f64, spread: f64| Window {
            rate,
            parts: [-1.0, 0.0, 1.0].map(|off| rate * (1.0 + off * spread)).to_vec(),
            ..Window::default()
        };
        let of = |highest: &Highest, again: &Window, open: &OpenWindow| {
            Overload::of((0, highest), Undisturbed::of(highest, again), &fit, 600.0, open)
        };
        let same = window(160.0, 0.0);
        let overload = of(&highest, &same, &open);
        let ms = |seconds: Option<f64>| (seconds.unwrap() * 1e5).round() / 1e2;
        assert_eq!(ms(overload.per_failure_by_bytes_seconds), 0.86);
        // All of the lost capacity is charged to the failed requests: (48 / 84) / 531.4.
        assert_eq!(ms(overload.per_failure_seconds), 1.08);
        assert_eq!(overload.per_failure_error_seconds, Some(0.0));
        let calm = OpenWindow { failures: 1.0, ..open };
        assert_eq!(of(&highest, &same, &calm).per_failure_seconds, None);
        // If X is measured a tenth too low, the first time or the second, the higher measurement counts.
        for (first, again) in [(144.0, &same), (160.0, &window(144.0, 0.0))] {
            let disturbed = of(&Highest { rate: first, ..highest.clone() }, again, &open);
            assert_eq!(disturbed.per_failure_seconds, overload.per_failure_seconds);
        }
        // Three parts 5 % apart: X is uncertain by 4.3 x 5 % / sqrt(3), of which T_f gets 36 / 84 over the failures.
        let noisy = of(&Highest { rate: 144.0, ..highest.clone() }, &window(160.0, 0.05), &open);
        assert_eq!(ms(noisy.per_failure_error_seconds), 0.1);
    }
}
