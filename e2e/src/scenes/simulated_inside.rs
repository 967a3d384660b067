//! A scene in virtual time on a server whose own processes decide, as the module does: a request waits in the listen queue
//! until a process takes it.

use super::Scene;
use crate::flows::{End, Fate, Flow, Flown};
use plimsoll_core::request::{Outcome, Token};
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Inside, Order, ServerProcesses};
use plimsoll_sim::{Event, Setup, Watch};
use std::collections::BTreeMap;
use std::time::Duration;

/// What errors name, since there is no file.
const HERE: &str = "scene";

impl Scene {
    /// Runs it in virtual time, decided inside the server; a process is held for so long beyond what it counts, for each
    /// request. A client that has waited for its patience is lost, though the server does not know before it answers.
    pub fn simulated_inside(&self, seed: u64, held: Duration) -> Vec<Flown> {
        let file = self.for_module().file(([127, 0, 0, 1], 9).into(), false);
        let configuration = plimsoll_config::parse_inside(&file, HERE);
        let promises = configuration.unwrap_or_else(|wrong| panic!("{wrong:?}")).promises;
        let staying = Scene { patience: None, ..self.clone() }.workload();
        let workload = plimsoll_config::parse_workload(&staying, HERE, &promises);
        let workload = workload.unwrap_or_else(|wrong| panic!("{wrong:?}")).workload;
        let processes = ServerProcesses {
            listen_queue: self.model.queue as usize,
            held,
            patience: self.patience,
            ..ServerProcesses::new(self.model.workers)
        };
        let mut server = Inside::new(&promises, seed, processes).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let mut fates = Fates::new(&self.flows, self.patience, self.configuration.contains("[[site.level]]"));
        let setup = Setup { promises: &promises, workload: &workload, seed };
        setup.run_with(&mut server, &mut fates).unwrap_or_else(|error| panic!("{error}"));
        fates.flown
    }
}

/// A request under way.
#[derive(Clone, Copy)]
struct UnderWay {
    flow: usize,
    due: f64,
    full: bool,
}

/// Watches what becomes of each request.
struct Fates<'a> {
    flows: &'a [Flow],
    patience: f64,
    has_levels: bool,
    open: BTreeMap<u64, UnderWay>,
    flown: Vec<Flown>,
}

impl<'a> Fates<'a> {
    fn new(flows: &'a [Flow], patience: Option<Duration>, has_levels: bool) -> Self {
        let patience = patience.map_or(f64::INFINITY, |patience| patience.as_secs_f64());
        Fates {
            flows,
            patience,
            has_levels,
            open: BTreeMap::new(),
            flown: vec![Flown::default(); flows.len()],
        }
    }

    fn begin(&mut self, token: Token, level: u8) {
        if let Some(request) = self.open.get_mut(&token.0) {
            request.full = !self.has_levels || level >= 2;
        }
    }

    fn end(&mut self, token: Token, now: Instant, end: impl FnOnce(UnderWay) -> End) {
        let Some(request) = self.open.remove(&token.0) else { return };
        let latency = now.as_secs_f64() - request.due;
        let end = if latency > self.patience { End::Lost } else { end(request) };
        self.flown[request.flow].fates.push(Fate { due: request.due, latency, end });
    }
}

impl Watch for Fates<'_> {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        match *event {
            Event::Arrived { token, request, decision, .. } => {
                let is_of = |flow: &Flow| request.host == flow.host && request.path == flow.path;
                let flow =
                    self.flows.iter().position(is_of).unwrap_or_else(|| panic!("of no flow: {request:?}"));
                self.open.insert(token.0, UnderWay { flow, due: now.as_secs_f64(), full: true });
                match decision {
                    Decision::Start(start) => self.begin(token, start.level),
                    Decision::Wait => {}
                    Decision::Reject(_) => self.end(token, now, |_| End::Rejected),
                }
            }
            Event::Ordered(Order::Start(token, start)) => self.begin(token, start.level),
            Event::Ordered(Order::Drop(token, _)) => self.end(token, now, |_| End::Rejected),
            Event::Ended { token, outcome: Outcome::Completed } => {
                self.end(token, now, |request| End::Page { full: request.full });
            }
            Event::Ended { token, .. } => self.end(token, now, |_| End::Lost),
        }
    }
}
