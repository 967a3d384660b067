//! The facts of a step: each side, live and in virtual time, and the conditions of the run.

use super::figures::{Figures, Machine, Spread};
use super::machine::cores;
use super::plant::{CLIENTS, PERIOD, SET_POINT};
use super::side::Seen;
use super::step::Step;
use crate::output::facts::{Facts, Figure, Value, compare, figure, hidden, rounded};
use crate::output::units::Unit;
use plimsoll_load::Histogram;
use plimsoll_report::Table;

/// The facts of a step. The sides: with the gateway live and simulated, without it live and simulated.
pub(crate) fn step(step: &Step, sides: &[Facts; 4]) -> Facts {
    let [controlled, simulated, uncontrolled, simulated_uncontrolled] = sides.clone();
    let at = Facts(vec![
        hidden("capacity", step.server.capacity()),
        hidden("period_seconds", PERIOD.as_secs_f64()),
        hidden("clients", CLIENTS),
        hidden("seed", step.seed),
        hidden("seconds", step.seconds),
        hidden("load", step.load),
        hidden("cores", cores()),
    ]);
    let mut all = vec![hidden("set_point", SET_POINT)];
    all.extend(controlled.0);
    all.push(hidden("simulated", simulated));
    all.push(hidden("uncontrolled", uncontrolled));
    all.push(hidden("simulated_uncontrolled", simulated_uncontrolled));
    all.push(hidden("at", at));
    Facts(all)
}

pub(crate) fn table(sides: &[Facts; 4]) -> Table {
    let names = ["with the gateway", "simulated", "without it", "simulated"].map(str::to_owned);
    compare("The step", &names.into_iter().zip(sides).collect::<Vec<_>>())
}

pub(crate) fn side(side: &Figures) -> Facts {
    let four = |value| rounded(value, Unit::Plain(3));
    let Spread { mean, p5, p95 } = side.utilization;
    let spread = [hidden("mean", four(mean)), hidden("p5", four(p5)), hidden("p95", four(p95))];
    let spread = Value::from(Facts(spread.into()));
    let settled = side.settling_seconds();
    let after = settled.map_or("never".to_owned(), |seconds| format!("after {seconds} s"));
    let mut figures = vec![
        figure("utilization", "utilization", spread.said(format!("{mean:.3} ({p5:.2} to {p95:.2})"))),
        figure("", "  late timers' part", four(side.lateness)),
        figure("settling_seconds", "settled", Value::from(settled).said(after)),
        hidden("overshoot", four(side.overshoot)),
    ];
    figures.extend(seen(&side.total).0);
    figures.extend([
        times("latency_ms", "", &side.total.latency),
        times("steady_latency_ms", "response", &side.steady_latency),
        hidden("changed_per_period", four(side.changed_per_period)),
        hidden("bandwidth_ratio", four(side.bandwidth_ratio)),
        hidden("gateway_estimate", side.estimate.map(four)),
    ]);
    // Utilization of each period.
    figures.push(hidden("periods", side.periods.iter().copied().map(four).collect::<Vec<_>>()));
    figures.push(hidden("machine", side.machine.as_ref().map(|machine| kept_up(machine, side))));
    Facts(figures)
}

/// What became of requests, as parts of all that were due.
pub(crate) fn seen(total: &Seen) -> Facts {
    let all = total.ended() + total.local;
    let [light, full] = total.pages;
    let part = |count| Value::Part(count, all);
    let pages = [figure("full", "full pages", part(full)), figure("light", "light pages", part(light))];
    Facts(vec![
        figure("", "answered", part(full + light)),
        figure("responses", "  ", Facts(pages.into())),
        figure("rejected", "rejected", part(total.rejected)).trouble(),
        figure("errors", "failed", part(total.errors + total.local)).trouble(),
    ])
}

fn kept_up(machine: &Machine, side: &Figures) -> Facts {
    let four = |value| rounded(value, Unit::Plain(3));
    Facts(vec![
        hidden("cpu_share", four(machine.cpu_share)),
        times("client_late_ms", "", &machine.client_lateness),
        times("origin_late_ms", "", &machine.origin_lateness),
        hidden("utilization_by_lateness", four(side.lateness)),
        hidden("local_limit", side.total.local),
    ])
}

/// Mean and percentiles; with a label text shows the percentiles.
pub(crate) fn times(key: &'static str, label: &'static str, histogram: &Histogram) -> Figure {
    let ms = |time: std::time::Duration| {
        Value::Number((time.as_secs_f64() * 1e5).round() / 1e2, Unit::Milliseconds)
    };
    let [p50, p99] = if label.is_empty() { [""; 2] } else { [" p50", " p99"] };
    let all = [
        hidden("mean", ms(histogram.mean())),
        figure("p50", p50, ms(histogram.quantile(0.5))),
        figure("p99", p99, ms(histogram.quantile(0.99))),
    ];
    figure(key, label, Facts(all.into()))
}
