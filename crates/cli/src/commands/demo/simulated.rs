//! The demo in virtual time, from the same files and judged in the same way.

use super::figures::Course;
use super::plant::{PERIOD, Server};
use super::side::{DemoPeriod, Moment, Seen, Which};
use super::step::Step;
use crate::output::failure::Failure;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::Outcome;
use plimsoll_load::LevelChanges;
use plimsoll_sim::workload::{Arrivals, Phase};
use plimsoll_sim::{Row, Run, Setup};
use std::time::Duration;

pub(crate) fn simulated(which: Which, step: &Step) -> Result<Course, Failure> {
    let phases = [(step.seconds, step.load)];
    let (run, clients) = run(which, step.server, step.seed, &phases)?;
    let (during, after) = run.rows.split_at((step.seconds as usize).min(run.rows.len()));
    let mut rest = Seen::default();
    after.iter().for_each(|row| rest.merge(&seen(row)));
    Ok(Course {
        periods: during.iter().map(|row| period(row, clients)).collect(),
        arrivals: during.iter().map(|row| row.classes[0].arrivals).collect(),
        rest,
        machine: None,
    })
}

/// Both sides under loads (lengths in seconds, and multiples of the capacity), second by second.
pub(crate) fn moments(server: Server, seed: u64, phases: &[(u64, f64)]) -> Result<Vec<[Moment; 2]>, Failure> {
    let seconds: u64 = phases.iter().map(|(seconds, _)| seconds).sum();
    let side = |which| -> Result<Vec<Moment>, Failure> {
        let (run, clients) = run(which, server, seed, phases)?;
        let rows = run.rows.iter().take(seconds as usize);
        Ok(rows.map(|row| Moment::of(&period(row, clients))).collect())
    };
    let (with, without) = (side(Which::WithGateway)?, side(Which::Without)?);
    Ok(with.into_iter().zip(without).map(|(with, without)| [with, without]).collect())
}

/// Runs one side; also returns the number of its clients.
fn run(which: Which, server: Server, seed: u64, phases: &[(u64, f64)]) -> Result<(Run, u32), Failure> {
    let mut promises = server.configuration()?.promises;
    if which == Which::Without {
        promises.control.mode = Mode::Off;
    }
    let mut workload = server.workload(&promises)?;
    let mut from = Duration::ZERO;
    let mut loads = Vec::new();
    for (seconds, load) in phases {
        loads.push(Phase { from, rate: load * server.capacity(), to: None });
        from += PERIOD * u32::try_from(*seconds).unwrap_or(u32::MAX);
    }
    loads.push(Phase { from, rate: 0.0, to: None });
    // After the last period the run goes on until every client has its answer or has left, as the live demo does.
    let patience =
        workload.streams.iter().filter_map(|stream| stream.patience).max().unwrap_or(Duration::ZERO);
    workload.duration = Some(from + patience);
    for stream in &mut workload.streams {
        if let Arrivals::Process { rate, .. } = &mut stream.arrivals {
            rate.clone_from(&loads);
        }
    }
    let setup = Setup { promises: &promises, workload: &workload, seed };
    let run = setup.run().map_err(|error| Failure::Failed(format!("the demo is not simulated: {error}")))?;
    Ok((run, workload.streams.iter().map(|stream| stream.clients.count).sum()))
}

fn period(row: &Row, clients: u32) -> DemoPeriod {
    let utilization = row.plants[0].utilization;
    let changed = u32::try_from(row.classes[0].changes).unwrap_or(u32::MAX);
    DemoPeriod {
        utilization,
        service: utilization,
        seen: seen(row),
        changes: LevelChanges { seen: clients, changed },
        estimate: row.plants[0].measured.is_finite().then_some(row.plants[0].measured),
    }
}

fn seen(row: &Row) -> Seen {
    let class = &row.classes[0];
    Seen {
        pages: [class.completed[1], class.completed[2]],
        rejected: class.rejected,
        errors: class.ended(Outcome::Failed) + class.ended(Outcome::Abandoned),
        local: 0,
        bytes: class.bytes,
        latency: class.response.clone(),
    }
}
