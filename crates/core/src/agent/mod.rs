//! Room: the control loop beside an unmodified server (CA 4), whose requests do not pass through the agent.
//!
//! *In*: samples of the server's counters, and probes. *Out*: a [`Change`] of F, the fraction of clients at full quality.
//!
//! ```text
//! probe ----> overload.rs: is the queue nearly full? ------+
//! counters -> utilization.rs: U = a R + b W, or by gaps    +--> relay.rs: F is 0 or 1, with hysteresis
//!               |-> blindness.rs: do they show the load?
//!               \-> offered_load.rs: what would the offered |    or fraction.rs: PI on F
//!                   load take at full quality? ------------+
//! ```

mod blindness;
mod fraction;
mod offered_load;
mod overload;
mod relay;
mod utilization;

pub use blindness::sees_nothing;
pub use overload::Probe;
pub use utilization::{Counters, LoadSense, ProcessorTime};

use crate::time::{Duration, Instant};
use blindness::Blindness;
use fraction::FractionLaw;
use offered_load::OfferedLoad;
use overload::Overload;
use relay::Relay;

/// The settings of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentLoopSettings {
    /// The means by which the agent sheds load.
    pub policy: AgentPolicy,
    /// The rule by which an answer to a probe means overload.
    pub threshold: Threshold,
    /// Time from one probe to the next.
    pub every: Duration,
    /// T, the control period; samples come [`SAMPLES`] times as often.
    pub period: Duration,
    /// U*, the utilization at which the policy [`Fraction`](AgentPolicy::Fraction) holds the server.
    pub load_line: f64,
    /// The relay returns to full quality if the utilization would then be at most this.
    pub back_line: f64,
}

/// Samples in a period.
pub const SAMPLES: u32 = crate::model::Tracker::SAMPLES_PER_PERIOD;

/// The means by which the agent sheds load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentPolicy {
    /// All clients get the same tree of files, which a link chooses.
    Relay,
    /// The fraction of clients at full quality, which the server reads.
    Fraction {
        /// Smaller changes of F are not made, except the last change to 0 or 1.
        step: f64,
        /// Two changes are at least this far apart, except at overload or when F must fall by much.
        apart: Duration,
    },
}

/// The rule by which an answer to a probe is too late (CA 4.1, "adaptation trigger").
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// The response time that was promised.
    Promised(Duration),
    /// 0.9 Q S, at most a second, on top of the fastest answer: the listen queue is nearly full. Q is given; S is 1 /
    /// throughput, measured at the present mix.
    Queue(u32),
}

/// The observations since the last sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The length of the sample (s).
    pub seconds: f64,
    /// Requests that the server completed, and the utilization that they caused; `None` if its counters cannot be read.
    pub load: Option<(u64, f64)>,
    /// The least utilization that these requests make ([`LoadSense::least_utilization`]).
    pub least: f64,
    /// Requests that wait for a worker, if the counters show them.
    pub waiting: Option<u32>,
    /// The state of the probes.
    pub probe: Probe,
    /// F as the server applied it.
    pub applied: f64,
}

/// A change to make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// F from now on: the part of clients at full quality, from 0 to 1.
    pub fraction: f64,
    /// The reason for the change.
    pub why: Why,
}

/// The reason for a change of F.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// Two successive probes were late or failed; a probe that stays open counts before its answer.
    Overload {
        /// The time that a late open probe has waited so far; else the last response time, or `None` if that probe failed.
        response: Option<Duration>,
        /// The largest response time that is not too late.
        threshold: Duration,
    },
    /// A request that comes now would be answered too late, because of the requests that wait.
    Queue {
        /// The number of waiting requests.
        waiting: u32,
        /// The wait of the last of them.
        wait: Duration,
        /// The largest response time that is not too late.
        threshold: Duration,
    },
    /// The utilization that full quality for all clients would make.
    Load {
        /// U at F = 1.
        at_full: f64,
        /// The largest U that is allowed.
        line: f64,
    },
}

/// The agent's present figures, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// R, the smoothed rate of completed requests (1/s).
    pub request_rate: f64,
    /// U, the smoothed utilization of the server (1 is all of it).
    pub utilization: f64,
    /// U at full quality for all clients, if that is known.
    pub at_full: Option<f64>,
    /// The response time of the last probe, if it was answered.
    pub response: Option<Duration>,
    /// The largest response time that is not too late.
    pub threshold: Duration,
    /// Whether the server is in overload.
    pub overloaded: bool,
    /// Whether requests come while no sense shows any load from them; F does not rise meanwhile.
    pub blind: bool,
}

/// The inputs of a law.
#[derive(Clone, Copy, Debug)]
struct LawInput {
    /// Whether the server is in overload, by its probes or its queue.
    overloaded: bool,
    why: Why,
    applied: f64,
    /// Whether the load of the last period is known.
    load_known: bool,
}

enum AgentLaw {
    Relay(Relay),
    Fraction(FractionLaw),
}

/// The agent's control loop: it takes counters and probes, and decides on F.
pub struct AgentLoop {
    settings: AgentLoopSettings,
    overload: Overload,
    load: OfferedLoad,
    law: AgentLaw,
    samples: u32,
    /// The number of samples since the counters could last be read.
    unread: u32,
    blindness: Blindness,
}

impl AgentLoop {
    /// Starts with the F that the server has.
    pub fn new(settings: AgentLoopSettings, applied: f64) -> Self {
        let law = match settings.policy {
            AgentPolicy::Relay => AgentLaw::Relay(Relay::new(applied)),
            AgentPolicy::Fraction { step, apart } => {
                AgentLaw::Fraction(FractionLaw::new(applied, step, apart))
            }
        };
        let overload = Overload::new(settings.threshold, settings.every);
        let (load, blindness) = (OfferedLoad::default(), Blindness::default());
        AgentLoop { settings, overload, load, law, samples: 0, unread: 0, blindness }
    }

    /// Takes a sample; returns the change to make, if any.
    pub fn sample(&mut self, now: Instant, sample: &Sample) -> Option<Change> {
        let overloaded = self.overload.look(&sample.probe, sample.waiting, self.load.cost(sample.applied));
        // If the agent is blind, a sample teaches no more about costs than while requests queue.
        self.load.take(sample, self.overload.is_queueing() || self.blindness.is_blind());
        self.blindness.take(sample);
        self.unread = if sample.load.is_some() { 0 } else { self.unread.saturating_add(1) };
        self.samples += 1;
        let period_ends = self.samples.is_multiple_of(SAMPLES);
        if period_ends {
            self.load.end_period();
            self.blindness.end_period();
        }
        let seen = LawInput {
            overloaded,
            why: self.overload.why(),
            applied: sample.applied,
            // A status page may answer a little before or after a sample, so less than a period without counters is no gap.
            load_known: self.unread < SAMPLES && !self.blindness.is_blind(),
        };
        match &mut self.law {
            AgentLaw::Relay(relay) => relay.step(now, &seen, &self.load, self.settings.back_line),
            AgentLaw::Fraction(law) => {
                law.step((now, period_ends), &seen, &self.load, self.settings.load_line)
            }
        }
    }

    /// The smoothed figures after the last observation, for logs and status.
    pub fn figures(&self) -> Figures {
        Figures {
            request_rate: self.load.rate(),
            utilization: self.load.utilization(),
            at_full: self.load.at(1.0),
            response: self.overload.response(),
            threshold: self.overload.threshold(),
            overloaded: self.overload.is_over(),
            blind: self.blindness.is_blind(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample at which F rises beside a degraded server that answers its probes and whose counters show this load.
    fn back_after(policy: AgentPolicy, load: Option<(u64, f64)>) -> Option<u32> {
        let every = Duration::from_millis(500);
        let (threshold, period) = (Threshold::Promised(every), Duration::from_secs(1));
        let settings =
            AgentLoopSettings { policy, threshold, every, period, load_line: 0.85, back_line: 0.75 };
        let mut agent_loop = AgentLoop::new(settings, 0.0);
        let mut probe = Probe::default();
        (0..4 * 120).find(|number| {
            // For the first half of a minute the load is high and known.
            let load = if *number < 4 * 30 { Some((50, 0.8)) } else { load };
            probe = probe.next(Some(Duration::from_millis(5)));
            let sample = Sample { seconds: 0.25, load, least: 0.0, waiting: None, probe, applied: 0.0 };
            let now = Instant::from_secs_f64(0.25 * f64::from(*number));
            agent_loop.sample(now, &sample).is_some_and(|change| change.fraction > 0.0)
        })
    }

    #[test]
    fn counters_that_cannot_be_read_are_no_reason_to_give_full_quality() {
        let fraction = AgentPolicy::Fraction { step: 0.05, apart: Duration::from_secs(5) };
        for policy in [AgentPolicy::Relay, fraction] {
            assert_eq!(back_after(policy, None), None, "blind");
            assert!(
                back_after(policy, Some((0, 0.0))).is_some_and(|number| number > 120),
                "the load has gone"
            );
        }
    }

    /// An nginx serves files: 38,000 requests a second, none in service at any sample, and its processes use this part of their
    /// processor. Clients are degraded at the beginning. Returns the number of blind samples, and whether F has risen.
    fn beside_static_files(policy: AgentPolicy, processor: Option<f64>) -> (u32, bool) {
        let every = Duration::from_millis(500);
        let (threshold, period) = (Threshold::Promised(every), Duration::from_secs(1));
        let settings =
            AgentLoopSettings { policy, threshold, every, period, load_line: 0.85, back_line: 0.75 };
        let mut agent_loop = AgentLoop::new(settings, 0.0);
        let (mut probe, mut blind, mut back) = (Probe::default(), 0, false);
        let sense = LoadSense::Gap { workers: Some(8) };
        let time = |part: f64| ProcessorTime { used_seconds: part * 0.25, seconds: 0.25, processors: 1.0 };
        for number in 0..4 * 300 {
            let counters = Counters {
                requests: 9_500,
                in_service: Some(0),
                processor: processor.map(time),
                ..Counters::default()
            };
            // Probes are late for the first three seconds.
            let took = if number < 12 { 900 } else { 5 };
            probe = probe.next(Some(Duration::from_millis(took)));
            let sample = Sample {
                seconds: 0.25,
                load: sense.utilization(&counters, 0.25).map(|utilization| (counters.requests, utilization)),
                least: sense.least_utilization(&counters, 0.25),
                waiting: Some(0),
                probe,
                applied: 0.0,
            };
            let change = agent_loop.sample(Instant::from_secs_f64(0.25 * f64::from(number)), &sample);
            back |= change.is_some_and(|change| change.fraction > 0.0);
            blind += u32::from(agent_loop.figures().blind);
        }
        (blind, back)
    }

    #[test]
    fn where_no_sense_shows_the_load_nothing_goes_back_to_full_quality() {
        let fraction = AgentPolicy::Fraction { step: 0.05, apart: Duration::from_secs(5) };
        for policy in [AgentPolicy::Relay, fraction] {
            let (blind, back) = beside_static_files(policy, None);
            assert!(blind > 4 * 290 && !back, "{policy:?}: blind for {blind} samples, back: {back}");
            let (blind, back) = beside_static_files(policy, Some(0.8));
            assert!(blind == 0, "{policy:?} sees by the processor");
            assert!(!back || policy != AgentPolicy::Relay, "four times 0.8 does not fit");
            let (blind, back) = beside_static_files(policy, Some(0.1));
            assert!(blind == 0 && back, "{policy:?}: a tenth of it leaves room");
        }
    }
}
