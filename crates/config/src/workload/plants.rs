//! The true servers: what the workload says of each, on top of what the configuration promises.
//!
//! Costs belong to the number of workers in the same file: the configuration's costs are in time of all its workers together,
//! so one worker's time is the cost times that number, and it does not change if the workload gives the server other workers.
//! If the configuration leaves the number of workers to be found, the workload must give it, unless it is known from elsewhere.

use super::keys::{FaultKeys, PlantKeys, WorkloadKeys};
use super::laws;
use super::resolve::{check_begins_before_end, unknown_name};
use super::values::End;
use crate::diagnostic::{Findings, exclusive, places, refuse};
use crate::syntax::Located;
use plimsoll_core::promises::{self, Promises, Sense};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Discipline, Fault, FaultKind, Page, Plant};

/// Apache's default for `ListenBacklog`.
pub(super) const LISTEN_QUEUE: u64 = 511;

/// A true server.
pub(super) struct TrueServer {
    pub(super) plant: Plant,
    /// Whether a key that is, or may be, about this server was refused, so that its service time may only seem to be missing.
    doubtful: bool,
}

impl TrueServer {
    /// Whether the service time is given, or may have been.
    pub(super) fn timed(&self) -> bool {
        self.doubtful || self.plant.service > Duration::ZERO || self.plant.service_per_byte > 0.0
    }

    /// One worker's mean time for a page at full quality (s).
    pub(super) fn service_of(&self, page: &Page) -> Option<f64> {
        let by_bytes = self.plant.service.as_secs_f64() + self.plant.service_per_byte * page.bytes;
        page.service.map(|own| own.as_secs_f64()).or_else(|| self.timed().then_some(by_bytes))
    }
}

/// One server for each plant of the promises, as the configuration describes it.
pub(super) fn as_promised(promises: &Promises) -> Vec<TrueServer> {
    promises.plants.iter().map(promised).collect()
}

fn promised(promise: &promises::Plant) -> TrueServer {
    let mut plant = Plant {
        link: promise.bandwidth_bytes_per_second,
        reports: promise.sense == Sense::Reported,
        ..Plant::new(Discipline::Workers(promise.workers), LISTEN_QUEUE as usize, Duration::ZERO)
    };
    if let Some(costs) = promise.costs {
        apply_costs(&mut plant, costs, promise.workers);
    }
    TrueServer { plant, doubtful: false }
}

/// Sets one worker's time from costs that are in time of `workers` workers together.
fn apply_costs(plant: &mut Plant, costs: promises::Costs, workers: u32) {
    let workers = f64::from(workers);
    plant.service = Duration::from_secs_f64(costs.per_request_seconds * workers);
    plant.service_per_byte = costs.per_byte_seconds * workers;
    plant.rejection = Duration::from_secs_f64(costs.per_rejection_seconds * workers);
}

/// The true servers, one for each of the promises' plants. `known` says how each plant's number of workers is known.
pub(super) fn resolve(
    file: &WorkloadKeys,
    (promises, known): (&Promises, &[Option<String>]),
    findings: &mut Findings,
) -> Vec<TrueServer> {
    let names: Vec<&str> = promises.plants.iter().map(|plant| plant.name.as_str()).collect();
    let mut plants = as_promised(promises);
    let mut is_known = file.plant.sound;
    for (name, keys) in &file.plant.value.0 {
        match names.iter().position(|known| *known == name.value) {
            Some(index) => {
                let configured = &promises.plants[index];
                apply_keys(&mut plants[index].plant, configured, keys, findings);
                let faults = keys.value.fault.value.0.iter();
                plants[index].plant.faults =
                    faults.filter_map(|fault| self::fault(fault, &file.duration, findings)).collect();
                plants[index].doubtful |= !keys.sound;
            }
            None => {
                unknown_name(name, "upstream or folder", &names, findings);
                is_known = false;
                plants.iter_mut().for_each(|known| known.doubtful = true);
            }
        }
    }
    if is_known {
        check_workers_given(file, (promises, known), findings);
    }
    plants
}

/// The assumption about the workers of these plants if no workload file gives a number: the number that is known from
/// elsewhere, as `known` says by plant, or else the number with which a gateway begins.
pub(super) fn guessed_workers(
    promises: &Promises,
    known: &[Option<String>],
    is_meant: impl Fn(&str) -> bool,
) -> Vec<String> {
    let plants = promises.plants.iter().zip(known.iter().chain(std::iter::repeat(&None)));
    let guessed = plants.filter(|(promise, _)| promise.find_workers.is_some() && is_meant(&promise.name));
    let sentence = |(promise, known): (&promises::Plant, &Option<String>)| {
        let from = match known {
            Some(known) => known,
            None => {
                "THAT IS A GUESS, with which a gateway begins: the configuration leaves the number to be found"
            }
        };
        format!(
            "`{}` works on {} requests at once: {from}; `workers` in the configuration, or in a workload under `[plant.{}]`, \
             states it",
            promise.name, promise.workers, promise.name
        )
    };
    guessed.map(sentence).collect()
}

/// Whether the file says how many workers the plant of this name has.
pub(super) fn states_workers(file: &WorkloadKeys, name: &str) -> bool {
    let mut sections =
        file.plant.value.0.iter().filter(|(of, _)| of.value == name).map(|(_, keys)| &keys.value);
    sections.any(|keys| keys.workers.is_some() || keys.cores.is_some())
}

/// Refuses a file that lacks a plant's number of workers if the configuration leaves it to be found and it is not known from
/// elsewhere.
fn check_workers_given(
    file: &WorkloadKeys,
    (promises, known): (&Promises, &[Option<String>]),
    findings: &mut Findings,
) {
    for (number, promise) in promises.plants.iter().enumerate() {
        let name = &promise.name;
        let is_known = known.get(number).is_some_and(Option::is_some);
        if promise.find_workers.is_none() || is_known || states_workers(file, name) {
            continue;
        }
        let section = file.plant.value.0.iter().find(|(of, _)| of.value == *name);
        refuse!(findings, MissingKey at section.map_or(&(0..0), |(_, keys)| &keys.span),
            format!("how many workers `{name}` truly has is not stated: the configuration leaves it to be found"),
            help: format!("write `workers = 8`, or `cores`, under `[plant.{name}]`"));
    }
}

/// Applies a section of the file to its server.
fn apply_keys(
    plant: &mut Plant,
    configured: &promises::Plant,
    section: &Located<PlantKeys>,
    findings: &mut Findings,
) {
    let keys = &section.value;
    discipline(plant, configured, keys, findings);
    plant.listen_queue = keys.listen_queue.value.0 as usize;
    service(plant, keys, findings);
    plant.law = laws::law(&keys.service_law, findings);
    if let Some(link) = &keys.link {
        plant.link = Some(link.value.0);
    }
    if let Some(rejection) = &keys.rejection {
        plant.rejection = Duration::from_secs_f64(rejection.value.0);
    }
    plant.failure = Duration::from_secs_f64(keys.failure.value.0);
    if let Some(reports) = &keys.reports {
        plant.reports = reports.value;
    }
}

fn discipline(plant: &mut Plant, configured: &promises::Plant, keys: &PlantKeys, findings: &mut Findings) {
    exclusive(
        &places!(keys => workers, cores),
        "a server has workers of its own, or cores that all share",
        findings,
    );
    if let (Some(connections), None) = (&keys.connections, &keys.cores) {
        refuse!(findings, Conflict at &connections.span,
            "`connections` belongs to `cores`: a worker has one request each",
            help: "add `cores`, or leave it out");
    }
    if let Some(workers) = &keys.workers {
        plant.discipline = Discipline::Workers(workers.value.0 as u32);
    }
    if let Some(cores) = &keys.cores {
        let most = keys.connections.as_ref().map_or(configured.max_connections, |most| most.value.0 as u32);
        let cores_number = cores.value.0 as u32;
        if let Some(connections) = keys.connections.as_ref().filter(|_| most < cores_number) {
            refuse!(findings, Unreachable at &connections.span,
                format!("with {most} requests in service at most {most} of {cores_number} cores are ever busy"),
                help: format!("write at least {cores_number}"),
                beside &cores.span => "`cores` is given");
        }
        plant.discipline = Discipline::Sharing { cores: cores_number, most: most.max(cores_number) };
    }
}

fn service(plant: &mut Plant, keys: &PlantKeys, findings: &mut Findings) {
    let own = places!(keys => service, service_per_kib);
    if let Some(costs) = &keys.costs {
        let help = "keep `costs`, in time of all workers, or the others, in time of one";
        for (name, span) in own.iter().filter_map(|(name, span)| span.map(|span| (name, span))) {
            refuse!(findings, Conflict at span,
                format!("`costs` and `{name}` say the same"), help: help,
                beside &costs.span => "`costs` is given");
        }
        if let Some(given) = costs.value.0.costs() {
            apply_costs(plant, given, plant.discipline.servers());
        }
    } else if own.iter().any(|(_, span)| span.is_some()) {
        plant.service = keys.service.as_ref().map_or(Duration::ZERO, |service| service.value);
        plant.service_per_byte =
            keys.service_per_kib.as_ref().map_or(0.0, |service| service.value.0 / 1024.0);
    }
}

fn fault(section: &Located<FaultKeys>, duration: &Located<End>, findings: &mut Findings) -> Option<Fault> {
    let keys = &section.value;
    let kind = fault_kind(section, findings);
    let (from, until) = (keys.from.as_ref()?, keys.until.as_ref()?);
    if until.value.0 <= from.value.0 {
        refuse!(findings, OutOfRange at &until.span,
            "this ends before it begins", help: "write a time after `from`",
            beside &from.span => "`from` is given");
    }
    check_begins_before_end(from.value.0, &from.span, duration, findings);
    Some(Fault { from: from.value.0, until: until.value.0, kind: kind? })
}

fn fault_kind(section: &Located<FaultKeys>, findings: &mut Findings) -> Option<FaultKind> {
    let keys = &section.value;
    let given = places!(keys => slower, pause, takes, fails);
    exclusive(&given, "one thing goes wrong at a time: add a section for each", findings);
    if given.iter().all(|(_, span)| span.is_none()) && section.sound {
        refuse!(findings, MissingKey at &section.span,
            "this does not say what goes wrong",
            help: "write one of `slower = 2.0`, `pause = true`, `takes = \"8s\"` and `fails = \"1ms\"`");
    }
    if let Some(pause) = keys.pause.as_ref().filter(|pause| !pause.value) {
        refuse!(findings, BadValue at &pause.span,
            "a fault that is none", help: "write `pause = true`, or leave the section out");
    }
    let slower = keys.slower.as_ref().map(|factor| FaultKind::Slower(factor.value.0));
    let pause = keys.pause.as_ref().map(|_| FaultKind::Slower(f64::INFINITY));
    let takes = keys.takes.as_ref().map(|time| FaultKind::Takes(time.value));
    let fails = keys.fails.as_ref().map(|time| FaultKind::Fails(time.value));
    slower.or(pause).or(takes).or(fails)
}
