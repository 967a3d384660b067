//! The demo's step in virtual time, from the same files, judged by the same figures.

use super::figures::{Course, Figures};
use super::plant::PERIOD;
use super::side::{Period, Seen, Which};
use super::step::Step;
use crate::output::failure::Failure;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::Outcome;
use plimsoll_load::LevelChanges;
use plimsoll_sim::workload::{Arrivals, Phase};
use plimsoll_sim::{Row, Run, Setup};
use std::time::Duration;

/// The figures of one side.
pub(crate) fn simulated(which: Which, step: &Step) -> Result<Figures, Failure> {
    let mut promises = step.server.configuration()?.promises;
    if which == Which::Without {
        promises.control.mode = Mode::Off;
    }
    let mut workload = step.server.workload(&promises)?;
    let length = PERIOD * u32::try_from(step.seconds).unwrap_or(u32::MAX);
    // The clients go on after the last period until the last has its answer, as the live ones do.
    let patience =
        workload.streams.iter().filter_map(|stream| stream.patience).max().unwrap_or(Duration::ZERO);
    workload.duration = Some(length + patience);
    for stream in &mut workload.streams {
        if let Arrivals::Process { rate, .. } = &mut stream.arrivals {
            let begin = Phase { from: Duration::ZERO, rate: step.load * step.server.capacity(), to: None };
            *rate = vec![begin, Phase { from: length, rate: 0.0, to: None }];
        }
    }
    let setup = Setup { promises: &promises, workload: &workload, seed: step.seed };
    let run = setup.run().map_err(|error| Failure::Failed(format!("the demo is not simulated: {error}")))?;
    let clients = workload.streams.iter().map(|stream| stream.clients.count).sum();
    Ok(Figures::of(course(&run, step.seconds as usize, clients), step.server.capacity()))
}

fn course(run: &Run, periods: usize, clients: u32) -> Course {
    let (during, after) = run.rows.split_at(periods.min(run.rows.len()));
    let mut rest = Seen::default();
    after.iter().for_each(|row| rest.merge(&seen(row)));
    Course {
        periods: during.iter().map(|row| period(row, clients)).collect(),
        arrivals: during.iter().map(|row| row.classes[0].arrivals).collect(),
        rest,
        machine: None,
    }
}

fn period(row: &Row, clients: u32) -> Period {
    let utilization = row.plants[0].utilization;
    let changed = u32::try_from(row.classes[0].changes).unwrap_or(u32::MAX);
    Period {
        utilization,
        service: utilization,
        seen: seen(row),
        changes: LevelChanges { seen: clients, changed },
        estimate: row.plants[0].measured.is_finite().then_some(row.plants[0].measured),
    }
}

/// What the clients saw end.
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
