//! One step from nothing to the load, unattended: with the gateway, then without it.

use super::figures::{Conditions, Figures, Spread, report};
use super::machine::{self, CpuMeter, sleep_until};
use super::plant::{self, CLIENTS, Crowd, PERIOD, SET_POINT};
use super::side::Side;
use crate::failure::Failure;
use crate::text;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) seed: u64,
    /// As a multiple of the capacity.
    pub(crate) load: f64,
    pub(crate) seconds: u64,
    pub(crate) json: bool,
}

/// Runs it and prints its figures.
pub(crate) fn step(step: Step) -> Result<(), Failure> {
    let max_sockets = machine::sockets_for(1)?;
    let crowd = Crowd { seed: step.seed, max_sockets };
    let (controlled, cpu_share) = measured(true, step, crowd)?;
    let (uncontrolled, _) = measured(false, step, crowd)?;
    let Step { seed, load, seconds, json } = step;
    let conditions = Conditions { seed, seconds, load, cores: machine::cores(), cpu_share };
    if json {
        text::print(report(&conditions, &controlled, &uncontrolled))
    } else {
        text::print(summary(&conditions, &controlled, &uncontrolled).trim_end())
    }
}

/// One side's figures, and the share of the machine that it took.
fn measured(controlled: bool, step: Step, crowd: Crowd) -> Result<(Figures, f64), Failure> {
    let steps = vec![(Duration::from_secs(step.seconds), step.load * plant::capacity())];
    let mut side = Side::start(controlled, steps, crowd)?;
    let cpu = CpuMeter::start();
    let mut periods = Vec::new();
    for second in 1..=step.seconds {
        sleep_until(side.started() + PERIOD * second as u32);
        periods.push(side.period());
        progress(controlled, second, step.seconds);
    }
    let cpu_share = cpu.share();
    Ok((Figures::of(&periods, side.end()), cpu_share))
}

/// How far it is, where somebody looks.
fn progress(controlled: bool, second: u64, seconds: u64) {
    let mut stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return;
    }
    let side = if controlled { "with the gateway" } else { "without the gateway" };
    let done = (second * 30 / seconds) as usize;
    let bar = format!("[{:30}]", "#".repeat(done));
    let text =
        if second == seconds { String::new() } else { format!("{side:20} {bar} {second}/{seconds} s") };
    // It is decoration: a terminal that is gone does not matter.
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}

fn summary(conditions: &Conditions, controlled: &Figures, uncontrolled: &Figures) -> String {
    let Conditions { load, seconds, seed, cores, cpu_share } = conditions;
    let row =
        |name: &str, of: &dyn Fn(&Figures) -> String| vec![name.to_owned(), of(controlled), of(uncontrolled)];
    let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    let rows = [
        vec![String::new(), "with the gateway".to_owned(), "without it".to_owned()],
        row("utilization", &|figures| {
            let Spread { mean, p5, p95 } = figures.utilization;
            format!("{mean:.3} ({p5:.2} to {p95:.2})")
        }),
        row("settled", &|figures| {
            figures.settling_seconds().map_or("never".to_owned(), |seconds| format!("after {seconds} s"))
        }),
        row("full pages", &|figures| figures.total.pages[1].to_string()),
        row("light pages", &|figures| figures.total.pages[0].to_string()),
        row("rejected", &|figures| figures.total.rejected.to_string()),
        row("failed", &|figures| figures.total.errors.to_string()),
        row("response time p50", &|figures| ms(figures.steady_latency.quantile(0.5))),
        row("response time p99", &|figures| ms(figures.steady_latency.quantile(0.99))),
    ];
    format!(
        "{load} times the {} full pages per second that the server can carry, for {seconds} s, from {CLIENTS} clients\n\
         (load line {SET_POINT}, seed {seed}, {cores} cores, of which the demo used {:.0} %)\n\n{}",
        plant::capacity(),
        cpu_share * 100.0,
        text::table(&rows, &[1, 2])
    )
}
