//! The workload file of `plimsoll simulate`: arrivals, clients, and the truth about the servers.
//!
//! Input: the text of a workload, and the promises of a configuration, which provide the workers, costs and bandwidth that the
//! workload leaves out. Output: the plain structs of `plimsoll_sim::workload`. If neither file gives a level's cost, it is
//! assumed and the assumption reported ([`ParsedWorkload::assumptions`]). A request's time is never assumed, because every
//! figure of a run depends on it: if it is absent, that is an error or, for logs whose lines may have their own times, left to
//! the reader of the lines ([`ParsedWorkload::untimed`]). A rate may be a multiple of the capacity (`load`): the rate of the
//! stream's own pages at full quality at which the first plant is full.

mod arrivals;
mod bursts;
pub(crate) mod keys;
mod laws;
mod plants;
mod requests;
mod resolve;
mod truth;
mod values;
mod versions;

use crate::diagnostic::Diagnostics;
use plimsoll_core::promises::Promises;
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Arrivals, Input, Replay, Stream, Workload};
use std::path::Path;

/// The workload that a file describes, and the assumptions that were added.
#[derive(Clone, Debug, Default)]
pub struct ParsedWorkload {
    /// The workload for the simulator.
    pub workload: Workload,
    /// The assumptions where neither file gives a value, one sentence each.
    pub assumptions: Vec<String>,
    /// The plants whose service time is not given. The workload can be run only if each line of the logs has its own service
    /// time; a run that meets a line without one must end with [`UntimedPlant::help`].
    pub untimed: Vec<UntimedPlant>,
}

/// A plant whose service time is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntimedPlant {
    /// The plant as an index into [`Promises::plants`].
    pub plant: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, and where.
    pub help: String,
}

/// Reads a workload for these promises. `name` is the file's name as the user gave it: diagnostics show it, and relative paths
/// of logs and counts are taken from its folder.
///
/// # Errors
/// All errors of the file at once.
pub fn parse_workload(source: &str, name: &str, promises: &Promises) -> Result<ParsedWorkload, Diagnostics> {
    parse_workload_as(source, name, promises, Reading::default())
}

/// How a workload file is read if other inputs add to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// An access log in place of the file's streams, which may then be absent.
    pub log: Option<(&'a Path, Replay)>,
    /// Whether the file was written for another configuration, with which this one is compared: then it may name other sites,
    /// levels and hosts. Servers must have the same names all the same.
    pub compared: bool,
    /// For each plant whose number of workers both files leave open, and whose number in the promises is known from elsewhere,
    /// how it is known.
    pub known_workers: &'a [Option<String>],
}

/// Reads a workload for these promises in the given way; otherwise like [`parse_workload`].
///
/// # Errors
/// All errors of the file at once.
pub fn parse_workload_as(
    source: &str,
    name: &str,
    promises: &Promises,
    reading: Reading<'_>,
) -> Result<ParsedWorkload, Diagnostics> {
    crate::syntax::read_file(source, name, |file: &keys::WorkloadKeys, findings| {
        Some(resolve::resolve(file, resolve::WorkloadInputs { file_name: name, promises, reading }, findings))
    })
}

/// The workload of an access log without a workload file: servers and levels are as promised. `known` says how a number of
/// workers is known that the configuration leaves open and that stands in the promises.
pub fn replay(log: &Path, replay: Replay, promises: &Promises, known: &[Option<String>]) -> ParsedWorkload {
    let plants = plants::as_promised(promises);
    let (versions, mut assumptions) = versions::as_promised(promises);
    assumptions.extend(plants::guessed_workers(promises, known, |_| true));
    assumptions.push(format!(
        "a server lets up to {} connections wait besides, requests take no more or less than their time by chance, and clients \
         wait for their answers without end; a workload (`--workload`) may say otherwise: `listen_queue`, `service_law`, `patience`",
        plants::LISTEN_QUEUE
    ));
    let truth = truth::TrueServers { promises, plants: &plants };
    let untimed = truth.untimed_by_logs().into_iter().map(|plant| truth.untimed(plant)).collect();
    let streams = vec![log_stream(log, replay)];
    let plants = plants.into_iter().map(|known| known.plant).collect();
    let default_host = truth::default_host(promises);
    let workload = Workload { streams, plants, versions, default_host, duration: None };
    ParsedWorkload { workload, assumptions, untimed }
}

impl ParsedWorkload {
    /// For each server without a given service time, sets the rate of full pages that it can serve (1/s). `share` says what
    /// part of the capacity each request is assumed to cost.
    pub fn assume_capacity(&mut self, requests_per_second: f64, promises: &Promises, share: &str) {
        for untimed in std::mem::take(&mut self.untimed) {
            let Some(plant) = self.workload.plants.get_mut(untimed.plant) else { continue };
            let workers = plant.discipline.servers();
            plant.service = Duration::from_secs_f64(f64::from(workers) / requests_per_second);
            self.assumptions.push(format!(
                "`{}` takes {requests_per_second} requests a second at full quality with {workers} workers, and {share}",
                promises.plants.get(untimed.plant).map_or("", |plant| plant.name.as_str())
            ));
        }
    }
}

/// A stream of the requests of an access log.
fn log_stream(log: &Path, replay: Replay) -> Stream {
    let arrivals = Arrivals::log(Input::File(log.to_owned()), replay);
    // A log brings its own pages and clients.
    Stream::new(log.display().to_string(), arrivals, Vec::new(), 1)
}
