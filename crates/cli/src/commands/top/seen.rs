//! The parts of `/status` and `/events` that `top` shows. Other parts may change.

use plimsoll_gateway::admin::{JournalDocument, PromiseRow};
use serde::Deserialize;
use std::collections::BTreeMap;

/// One answer of the gateway: its status and its events.
#[derive(Clone, Debug)]
pub(super) struct SeenGateway {
    pub(super) status: SeenStatus,
    pub(super) journal: JournalDocument,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenStatus {
    pub(super) version: String,
    pub(super) unix_seconds: f64,
    pub(super) mode: String,
    pub(super) promises: Vec<PromiseRow>,
    /// The processes of a controller's server.
    pub(super) controller: Option<SeenController>,
    pub(super) upstreams: Vec<SeenPlant>,
    pub(super) classes: Vec<SeenClass>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenPlant {
    pub(super) name: String,
    pub(super) utilization: SeenUtilization,
    pub(super) service_level: f64,
    pub(super) in_service: u32,
    /// Requests that wait in the gateway; `None` if they wait in the server's listen queue.
    pub(super) waiting: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenController {
    pub(super) lanes: usize,
    pub(super) attached: usize,
    pub(super) deaths: u64,
    pub(super) returned_requests: u64,
    pub(super) listen_queue: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenUtilization {
    pub(super) set_point: f64,
    pub(super) measured: f64,
    pub(super) offered: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenClass {
    pub(super) site: String,
    pub(super) class: String,
    pub(super) levels: Vec<SeenLevel>,
    pub(super) arrivals: u64,
    pub(super) recent: SeenRecent,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenLevel {
    pub(super) name: String,
}

/// The last ten seconds of a class.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SeenRecent {
    pub(super) seconds: f64,
    pub(super) arrivals: u64,
    /// By level, from 1.
    pub(super) served: Vec<u64>,
    pub(super) rejected: u64,
    /// Requests that failed at the server; they may have started before these ten seconds.
    pub(super) failed: u64,
    pub(super) reasons: BTreeMap<String, u64>,
    pub(super) response_p50_seconds: Option<f64>,
    pub(super) response_p99_seconds: Option<f64>,
}

impl SeenRecent {
    /// Requests that were started or rejected.
    pub(super) fn decided(&self) -> u64 {
        self.served.iter().sum::<u64>() + self.rejected
    }
}
