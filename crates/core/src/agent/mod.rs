//! What decides beside an unmodified server (CA 4): the relay loop, and PI on the fraction that is degraded.
//!
//! Here nobody sits in the path of requests. What is known are the server's own counters and the answers to probes; what
//! can be moved is which of two content trees it serves. So the senses are other than the engine's, and the law is not:
//!
//! ```text
//! probe ----> overload.rs: is the queue nearly full? ---+
//! counters -> sense.rs: U = a R + b W, or by gaps       +--> relay.rs: one tree for everybody, with hysteresis
//!               \-> load.rs: what would full quality    |    or fraction.rs: PI, a fraction of the clients
//!                   take, of what is offered? ----------+                         |
//!                                                            F, and why <---------+
//! ```
//!
//! F in [0, 1] is the fraction of clients at full quality; CA's G is 1 - F. A relay knows 0 and 1 only.
//!
//! Two facts of an unmodified server shape all this. In overload its counters see what it completes, not what is
//! offered: who was dropped from the listen queue is in no log (CA 4.2.1). So in overload everybody is degraded, and only
//! then is the load known. And without overload its response time says nothing of the load (CA 4.2): so the way back is
//! by load alone.
//!
//! Pure, like all of the core: time is an argument. [`Machine::sample`] is called a few times a period.

mod fraction;
mod load;
mod overload;
mod relay;
mod sense;

pub use overload::Probe;
pub use sense::{Counters, LoadSense};

use crate::time::{Duration, Instant};
use fraction::FractionLaw;
use load::OfferedLoad;
use overload::Overload;
use relay::Relay;

/// How the agent decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What it can move.
    pub policy: Policy,
    /// When a probe tells of overload.
    pub threshold: Threshold,
    /// Time from one probe to the next.
    pub every: Duration,
    /// T; a sample comes [`SAMPLES`] times as often.
    pub period: Duration,
    /// U*, which a fraction is held at.
    pub load_line: f64,
    /// The relay's way back: full quality for all must take no more than this.
    pub back_line: f64,
}

/// Samples in a period.
pub const SAMPLES: u32 = crate::model::Tracker::SAMPLES_PER_PERIOD;

/// What can be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// One tree for everybody: a link.
    Relay,
    /// A fraction of the clients, by what the server reads.
    Fraction {
        /// A smaller change is not made, but for the last one to an end.
        step: f64,
        /// Two changes are at least this far apart, unless the server is in danger.
        apart: Duration,
    },
}

/// When the answer to a probe comes too late (CA 4.1, "adaptation trigger").
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// The response time that was promised.
    Promised(Duration),
    /// 0.9 Q S, at most a second: the listen queue is nearly full. Q is given; S is 1 / throughput, as measured at the
    /// present mix.
    Queue(u32),
}

/// What was seen since the last sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How long it was (s).
    pub seconds: f64,
    /// Requests that the server completed, and the utilization that they made; none if its counters cannot be read.
    pub load: Option<(u64, f64)>,
    /// Requests that wait for a worker, if its counters show them.
    pub waiting: Option<u32>,
    /// The probe's state.
    pub probe: Probe,
    /// F as the server applied it.
    pub applied: f64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// F from now on.
    pub fraction: f64,
    /// Why.
    pub why: Why,
}

/// Why F changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// Probes were answered too late, twice running, or not at all.
    Overload {
        /// The latest answer's time, or that of the question still open; none: it failed.
        response: Option<Duration>,
        /// Later than this is too late.
        threshold: Duration,
    },
    /// So many requests wait that who comes now would be answered too late.
    Queue {
        /// How many.
        waiting: u32,
        /// How long the last of them will wait.
        wait: Duration,
        /// Later than this is too late.
        threshold: Duration,
    },
    /// Full quality for everybody would take so much of the server.
    Load {
        /// U at F = 1.
        at_full: f64,
        /// What may be.
        line: f64,
    },
}

/// What the agent knows, for those who watch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// R, followed through noise (1/s).
    pub request_rate: f64,
    /// U, followed through noise.
    pub utilization: f64,
    /// U if everybody were served at full quality, if that is known.
    pub at_full: Option<f64>,
    /// The answer to the last probe, if one came.
    pub response: Option<Duration>,
    /// When it would be too late.
    pub threshold: Duration,
    /// Whether the server is in overload.
    pub overloaded: bool,
}

/// What the laws see.
#[derive(Clone, Copy, Debug)]
struct LawInput {
    /// In overload, as probes tell, or the queue.
    overloaded: bool,
    why: Why,
    applied: f64,
    /// The load is known, of the last period at least.
    load_known: bool,
}

enum AgentLaw {
    Relay(Relay),
    Fraction(FractionLaw),
}

/// The agent's decisions.
pub struct Machine {
    settings: Settings,
    overload: Overload,
    load: OfferedLoad,
    law: AgentLaw,
    samples: u32,
    /// Samples since the counters could last be read.
    blind: u32,
}

impl Machine {
    /// Starts with this F applied: what the server was left with.
    pub fn new(settings: Settings, applied: f64) -> Self {
        let law = match settings.policy {
            Policy::Relay => AgentLaw::Relay(Relay::new(applied)),
            Policy::Fraction { step, apart } => AgentLaw::Fraction(FractionLaw::new(applied, step, apart)),
        };
        let overload = Overload::new(settings.threshold, settings.every);
        Machine { settings, overload, load: OfferedLoad::default(), law, samples: 0, blind: 0 }
    }

    /// Takes a sample; says what is to be changed, if anything.
    pub fn sample(&mut self, now: Instant, sample: &Sample) -> Option<Change> {
        let overloaded = self.overload.look(&sample.probe, sample.waiting, self.load.cost(sample.applied));
        self.load.look(sample, self.overload.is_queueing());
        self.blind = if sample.load.is_some() { 0 } else { self.blind.saturating_add(1) };
        self.samples += 1;
        let period_ends = self.samples.is_multiple_of(SAMPLES);
        if period_ends {
            self.load.end_period();
        }
        let seen = LawInput {
            overloaded,
            why: self.overload.why(),
            applied: sample.applied,
            // A status page may answer now a little before a sample, now a little after.
            load_known: self.blind < SAMPLES,
        };
        match &mut self.law {
            AgentLaw::Relay(relay) => relay.step(now, &seen, &self.load, self.settings.back_line),
            AgentLaw::Fraction(law) => {
                law.step((now, period_ends), &seen, &self.load, self.settings.load_line)
            }
        }
    }

    /// What it knows.
    pub fn figures(&self) -> Figures {
        Figures {
            request_rate: self.load.rate(),
            utilization: self.load.utilization(),
            at_full: self.load.at(1.0),
            response: self.overload.response(),
            threshold: self.overload.threshold(),
            overloaded: self.overload.is_over(),
        }
    }
}
