//! The agent beside a server as a front: the agent's own code (`plimsoll_core::agent`) decides, and chooses only which of two
//! trees serves a client.
//!
//! Every request goes to the server at once, at the highest level or at the lowest, which stand for the two trees. The agent
//! sees what the server's log or status page would show, sampled as often as `plimsoll agent` samples. Probes go through the
//! server's own queue and are counted in no result.

use super::full_quality::FullQuality;
use super::slots::Slots;
use super::{Arriving, Decision, Front, Order, ServerProbe, Start};
use crate::request::Request;
use crate::workload::Workload;
use plimsoll_core::agent::{
    AgentLoop, AgentLoopSettings, AgentPolicy, Counters, LoadSense, Probe, SAMPLES, Sample,
};
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};

/// What of the agent's file matters in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSettings {
    /// How the agent decides.
    pub settings: AgentLoopSettings,
    /// How the counters become a utilization.
    pub sense: LoadSense,
    /// What the server's counters show.
    pub shown: ShownCounters,
}

/// What a server shows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownCounters {
    /// An access log: requests when they are completed, and their bytes.
    Log,
    /// Apache's `server-status`: the same, and its busy workers.
    BusyWorkers,
    /// nginx's `stub_status`: requests as they arrive, and the number that are waiting or in service.
    Requests,
}

/// The service time of a probe as a part of that of a page, because a probe asks for something cheap.
const PROBE_PART: f64 = 0.01;
/// The upper bound of the clients' hashes, which have 56 bits: with this fraction F, all clients get one tree.
const ALL_CLIENTS: f64 = (1_u64 << 56) as f64;

/// The agent beside one server.
pub(super) struct AgentFront {
    full: FullQuality,
    agent_loop: AgentLoop,
    own: AgentSettings,
    workers: u32,
    probe_takes: Duration,
    /// The number of the next sample, and the time between two samples.
    sample: u64,
    between: Duration,
    /// The fraction F of the clients that get the higher tree.
    fraction: f64,
    /// Whether each slot's request is at the server, and how many are.
    served: Slots<bool>,
    inside: u32,
    counted: Counters,
    probe: Probe,
    /// When the open probe was sent, and when the next one is due.
    probe_from: Option<Instant>,
    probe_due: Instant,
}

impl AgentFront {
    /// An agent beside the one plant of these promises.
    ///
    /// # Errors
    /// Promises that contradict each other; more plants than one, or fewer.
    pub(super) fn new(
        own: &AgentSettings,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Self, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let [plant] = workload.plants.as_slice() else {
            return Err(vec![format!(
                "an agent stands beside one server, and there are {}",
                workload.plants.len()
            )]);
        };
        let mean = if plant.service.is_zero() { Duration::from_millis(10) } else { plant.service };
        Ok(AgentFront {
            full,
            agent_loop: AgentLoop::new(own.settings.clone(), 1.0),
            own: own.clone(),
            workers: plant.discipline.servers(),
            probe_takes: mean.mul_f64(PROBE_PART),
            sample: 1,
            between: own.settings.period / SAMPLES,
            fraction: 1.0,
            served: Slots::new(),
            inside: 0,
            counted: Counters::default(),
            probe: Probe::default(),
            probe_from: None,
            probe_due: Instant::ZERO,
        })
    }

    fn counts_arrivals(&self) -> bool {
        self.own.shown == ShownCounters::Requests
    }

    /// The counters since the last sample.
    fn counters(&mut self) -> Counters {
        let inside = self.inside;
        let counted = std::mem::take(&mut self.counted);
        match self.own.shown {
            ShownCounters::Log => counted,
            ShownCounters::BusyWorkers => Counters {
                in_service: Some(inside.min(self.workers)),
                workers: Some(self.workers),
                ..counted
            },
            ShownCounters::Requests => Counters { bytes: 0, in_service: Some(inside), ..counted },
        }
    }

    fn look(&mut self, now: Instant) {
        let counters = self.counters();
        let seconds = self.between.as_secs_f64();
        let waiting_since = self.probe_from.map(|from| now.since(from));
        let utilization = self.own.sense.utilization(&counters, seconds);
        let sample = Sample {
            seconds,
            load: utilization.map(|utilization| (counters.requests, utilization)),
            least: self.own.sense.least_utilization(&counters, seconds),
            waiting: Some(self.own.sense.waiting(&counters)),
            probe: Probe { waiting: waiting_since, ..self.probe },
            applied: self.fraction,
        };
        if let Some(change) = self.agent_loop.sample(now, &sample) {
            self.fraction = match self.own.settings.policy {
                AgentPolicy::Relay => change.fraction.round(),
                AgentPolicy::Fraction { .. } => change.fraction,
            };
        }
    }

    fn leave(&mut self, token: Token, bytes: Option<u64>) {
        if !self.served.take(token) {
            return;
        }
        self.inside -= 1;
        if let Some(bytes) = bytes {
            self.counted.requests += u64::from(!self.counts_arrivals());
            self.counted.bytes += bytes;
        }
    }
}

impl Front for AgentFront {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.full.classifier.classify(request)
    }

    fn arrive(&mut self, _now: Instant, arrival: Arriving<'_>, _orders: &mut Vec<Order>) -> Decision {
        let Arriving { target, token, .. } = arrival;
        let start = self.full.start(&target);
        *self.served.at(token) = true;
        self.inside += 1;
        self.counted.requests += u64::from(self.counts_arrivals());
        if target.exempt || (target.client as f64) < self.fraction * ALL_CLIENTS {
            return Decision::Start(start);
        }
        Decision::Start(Start { level: 1, reason: Reason::Degraded, ..start })
    }

    fn release(&mut self, _now: Instant, token: Token, service: Service, _orders: &mut Vec<Order>) {
        self.leave(token, Some(service.response_bytes));
    }

    fn depart(&mut self, _now: Instant, token: Token, _outcome: Outcome, _orders: &mut Vec<Order>) {
        self.leave(token, None);
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, _orders: &mut Vec<Order>) -> Instant {
        let at = |sample: u64| Instant::from_nanos(sample * self.between.as_nanos() as u64);
        let mut due = at(self.sample);
        if now >= due {
            due = at(self.sample + 1);
            self.sample += 1;
            self.look(now);
        }
        due
    }

    fn probe(&mut self, now: Instant) -> Option<ServerProbe> {
        if self.probe_from.is_some() || now < self.probe_due {
            return None;
        }
        self.probe_from = Some(now);
        self.probe_due = now + self.own.settings.every;
        Some(ServerProbe { plant: 0, service: self.probe_takes })
    }

    fn probed(&mut self, now: Instant, answered: bool) {
        let took = self.probe_from.take().map(|from| now.since(from)).filter(|_| answered);
        self.probe = self.probe.next(took);
    }

    /// The service level m of a site that has only the two trees: 1 + F.
    fn service_level(&self, _class: u16) -> Option<f64> {
        Some(1.0 + self.fraction)
    }
}
