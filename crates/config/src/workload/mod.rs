//! The workload file of `plimsoll simulate`: arrivals, clients, and the truth about the servers.
//!
//! Comes in: the text of a workload, and the promises of a configuration, from which workers, costs and bandwidth are
//! taken that the workload leaves out. Goes out: the plain structs of `plimsoll_sim::workload`. A level's cost that
//! neither file gives is assumed and the assumption reported ([`ParsedWorkload::assumptions`]). A request's time is never
//! assumed, because every figure of a run hangs on it: its absence is an error, or, for logs whose lines may bring their
//! own times, a question left to the reader of the lines ([`ParsedWorkload::untimed`]). A rate may be a multiple of the
//! capacity (`load`): what the stream's own pages take at full quality of the plant that is full first.

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

/// What a workload file means, and what had to be added to it.
#[derive(Clone, Debug, Default)]
pub struct ParsedWorkload {
    /// For the simulator.
    pub workload: Workload,
    /// What was assumed because neither file says it, a sentence each.
    pub assumptions: Vec<String>,
    /// The plants whose service time is not given. They are sound only if each line of the logs brings its
    /// own service time; a run where one does not must end with [`UntimedPlant::help`].
    pub untimed: Vec<UntimedPlant>,
}

/// A plant whose service time is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntimedPlant {
    /// Which: an index into [`Promises::plants`].
    pub plant: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, and where.
    pub help: String,
}

/// Reads a workload for these promises. `name` is the file's name as the user gave it: it stands in diagnostics, and
/// relative paths of logs and counts are taken from its folder.
///
/// # Errors
/// All that is wrong with the file, at once.
pub fn parse_workload(source: &str, name: &str, promises: &Promises) -> Result<ParsedWorkload, Diagnostics> {
    parse_workload_as(source, name, promises, Reading::default())
}

/// How a workload file is read where it is not all that there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// An access log in place of the file's streams, which may then be absent.
    pub log: Option<(&'a Path, Replay)>,
    /// The file was written for another configuration, with which this one is compared: that this one has other sites,
    /// levels and hosts is no error then. Servers must have the same names all the same.
    pub compared: bool,
    /// By plant: how a number of workers is known that both files leave to be found, and that stands in the promises.
    pub known_workers: &'a [Option<String>],
}

/// Reads a workload for these promises in the given way. Else as [`parse_workload`].
///
/// # Errors
/// All that is wrong with the file, at once.
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

/// An access log without any workload file: servers and levels are as the promises say. `known` says by plant how a number of
/// workers is known that the configuration leaves to be found, and that stands in the promises.
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
    /// Sets the rate of full pages that each server without a given service time can take (1/s). `share` says what part of
    /// it each request is assumed to cost.
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

/// An access log as a stream.
fn log_stream(log: &Path, replay: Replay) -> Stream {
    let arrivals = Arrivals::log(Input::File(log.to_owned()), replay);
    // A log brings its own pages and clients.
    Stream::new(log.display().to_string(), arrivals, Vec::new(), 1)
}
