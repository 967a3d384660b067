//! One step from nothing to the load, unattended: with the gateway, then without it.

use super::figures::{Conditions, Course, Figures, Machine, Sides, Spread, report};
use super::machine::{self, sleep_until};
use super::plant::{CLIENTS, Crowd, PERIOD, SET_POINT, Server};
use super::side::{Ended, Side, Which};
use super::simulated::simulated;
use crate::output::failure::Failure;
use crate::output::text;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Above this at the 99th percentile, requests did not come when they should have.
const LATE: Duration = Duration::from_millis(20);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) server: Server,
    pub(crate) seed: u64,
    /// As a multiple of the capacity.
    pub(crate) load: f64,
    pub(crate) seconds: u64,
    pub(crate) json: bool,
}

/// Runs it and prints its figures.
pub(crate) fn step(step: Step) -> Result<(), Failure> {
    let capacity = step.server.capacity();
    // Those who wait after one blind period, and an idle connection of everybody else, twice.
    let wanted = (step.load * capacity).max(f64::from(CLIENTS)) as usize;
    let crowd = Crowd { clients: CLIENTS, seed: step.seed, max_sockets: machine::client_sockets(wanted)? };
    let sides = Sides {
        controlled: measured(Which::WithGateway, step, crowd)?,
        simulated: simulated(Which::WithGateway, &step)?,
        uncontrolled: measured(Which::Without, step, crowd)?,
        simulated_uncontrolled: simulated(Which::Without, &step)?,
    };
    let Step { seed, load, seconds, json, .. } = step;
    let conditions = Conditions { capacity, clients: CLIENTS, seed, seconds, load, cores: machine::cores() };
    let machine = sides.controlled.machine.as_ref();
    if machine.is_some_and(|machine| machine.client_lateness.quantile(0.99) > LATE) {
        eprintln!(
            "note: this machine was busy and sent requests late; a smaller `--capacity` gives truer figures"
        );
    }
    if json {
        text::print(report(&conditions, &sides))
    } else {
        text::print(summary(&conditions, &sides).trim_end())
    }
}

/// One side's figures.
fn measured(which: Which, step: Step, crowd: Crowd) -> Result<Figures, Failure> {
    let steps = vec![(Duration::from_secs(step.seconds), step.load * step.server.capacity())];
    let mut side = Side::start(which, step.server, steps, crowd)?;
    let mut periods = Vec::new();
    for second in 1..=step.seconds {
        sleep_until(side.started() + PERIOD * second as u32);
        periods.push(side.period());
        progress(which, second, step.seconds);
    }
    let Ended { tally, rest, origin_lateness, cpu_share } = side.end();
    let arrivals = tally.slots.iter().map(|slot| slot.arrivals).collect();
    let machine = Machine { client_lateness: tally.lateness, origin_lateness, cpu_share };
    Ok(Figures::of(Course { periods, arrivals, rest, machine: Some(machine) }, step.server.capacity()))
}

/// How far it is, where somebody looks.
fn progress(which: Which, second: u64, seconds: u64) {
    let mut stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return;
    }
    let side = if which == Which::WithGateway { "with the gateway" } else { "without it" };
    let done = (second * 30 / seconds) as usize;
    let bar = format!("[{:30}]", "#".repeat(done));
    let text =
        if second == seconds { String::new() } else { format!("{side:20} {bar} {second}/{seconds} s") };
    // It is decoration: a terminal that is gone does not matter.
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}

fn summary(conditions: &Conditions, sides: &Sides) -> String {
    let Conditions { capacity, clients, load, seconds, seed, cores } = conditions;
    let Sides { controlled, simulated, uncontrolled, simulated_uncontrolled } = sides;
    let all = [controlled, simulated, uncontrolled, simulated_uncontrolled];
    let row = |name: &str, of: &dyn Fn(&Figures) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend(all.map(of));
        cells
    };
    let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
    let part = |figures: &Figures, count: u64| {
        let all = figures.total.ended() + figures.total.local;
        format!("{:.1} %", count as f64 / all.max(1) as f64 * 100.0)
    };
    let header = ["", "with the gateway", "simulated", "without it", "simulated"];
    let rows = [
        header.map(str::to_owned).to_vec(),
        row("utilization", &|figures| {
            let Spread { mean, p5, p95 } = figures.utilization;
            format!("{mean:.3} ({p5:.2} to {p95:.2})")
        }),
        row("of it late timers", &|figures| format!("{:.3}", figures.lateness)),
        row("settled", &|figures| {
            figures.settling_seconds().map_or("never".to_owned(), |seconds| format!("after {seconds} s"))
        }),
        row("full pages", &|figures| part(figures, figures.total.pages[1])),
        row("light pages", &|figures| part(figures, figures.total.pages[0])),
        row("rejected", &|figures| part(figures, figures.total.rejected)),
        row("failed", &|figures| part(figures, figures.total.errors + figures.total.local)),
        row("response time p50", &|figures| ms(figures.steady_latency.quantile(0.5))),
        row("response time p99", &|figures| ms(figures.steady_latency.quantile(0.99))),
    ];
    let busy = controlled.machine.as_ref().map_or(0.0, |machine| machine.cpu_share * 100.0);
    format!(
        "{load} times the {capacity:.0} full pages per second that the server can carry, for {seconds} s, from {clients} clients\n\
         (load line {SET_POINT}, seed {seed}, {cores} cores, of which the demo used {busy:.0} %; simulated: the same files\n\
         in virtual time, `plimsoll simulate examples/demo.toml --workload examples/workloads/demo.toml`)\n\n{}",
        text::rows(&rows, &[1, 2, 3, 4])
    )
}
