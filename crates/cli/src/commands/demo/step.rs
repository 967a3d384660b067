//! One step from no load to the given load, unattended: with the gateway, then without it.

use super::facts;
use super::figures::{Course, Figures};
use super::machine;
use super::page;
use super::plant::{CLIENTS, Crowd, PERIOD, SET_POINT, Server};
use super::side::{Moment, Side, Which};
use super::simulated::simulated;
use crate::output::failure::Failure;
use crate::output::new_file::NewFile;
use crate::output::progress::ProgressLine;
use crate::output::{json, text};
use crate::service::log;
use std::thread;
use std::time::{Duration, Instant};

/// If the 99th percentile of the client's lateness is above this, requests did not come when they were due.
const LATE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) server: Server,
    pub(crate) seed: u64,
    /// The load as a multiple of the capacity.
    pub(crate) load: f64,
    pub(crate) seconds: u64,
    pub(crate) json: bool,
}

pub(crate) fn step(step: Step, report: Option<NewFile>) -> Result<(), Failure> {
    let capacity = step.server.capacity();
    // In the first period, before the loop acts, this many requests may wait; a visitor without one keeps an idle connection.
    let wanted = (step.load * capacity).max(f64::from(CLIENTS)) as usize;
    let crowd = Crowd { clients: CLIENTS, seed: step.seed, max_sockets: machine::client_sockets(wanted)? };
    let with = measured(Which::WithGateway, step, crowd)?;
    let simulated_with = simulated(Which::WithGateway, &step)?;
    let without = measured(Which::Without, step, crowd)?;
    let simulated_without = simulated(Which::Without, &step)?;
    let moments = with.periods.iter().zip(&without.periods);
    let moments: Vec<[Moment; 2]> = moments.map(|(with, without)| [with, without].map(Moment::of)).collect();
    let all = [with, simulated_with, without, simulated_without].map(|course| Figures::of(course, capacity));
    let machine = all[0].machine.as_ref();
    if machine.is_some_and(|machine| machine.client_lateness.quantile(0.99) > LATE) {
        log::tell(
            "note: this machine was busy and sent requests late; a smaller `--capacity` gives truer figures",
        );
    }
    let busy = machine.map_or(0.0, |machine| machine.cpu_share * 100.0);
    let sides = all.each_ref().map(facts::side);
    let table = facts::table(&sides);
    json::print_or(step.json, &facts::step(&step, &sides), || {
        format!("{}\n{}", headline(&step, busy), text::table(&table))
    })?;
    report.map_or(Ok(()), |file| file.fill(&page::page(&moments, table).to_html()))
}

fn measured(which: Which, step: Step, crowd: Crowd) -> Result<Course, Failure> {
    let steps = vec![(Duration::from_secs(step.seconds), step.load * step.server.capacity())];
    let mut side = Side::start(which, step.server, steps, crowd)?;
    let mut periods = Vec::new();
    let line = ProgressLine::new(Duration::ZERO);
    let name = if which == Which::WithGateway { "with the gateway" } else { "without it" };
    for second in 1..=step.seconds {
        thread::sleep((side.started() + PERIOD * second as u32).saturating_duration_since(Instant::now()));
        periods.push(side.period());
        let done = second as f64 / step.seconds as f64;
        line.show(Some(done), || format!("{name}: {second}/{} s", step.seconds));
    }
    Ok(side.end(periods))
}

fn headline(step: &Step, busy: f64) -> String {
    let Step { load, seconds, seed, .. } = step;
    let (capacity, cores) = (step.server.capacity(), machine::cores());
    format!(
        "{load} times the {capacity:.0} full pages per second that the server can carry, for {seconds} s, from {CLIENTS} \
         clients\n(load line {SET_POINT}, seed {seed}, {cores} cores, of which the demo used {busy:.0} %; simulated: the \
         same files\nin virtual time, `plimsoll simulate examples/demo.toml --workload examples/workloads/demo.toml`)\n"
    )
}
