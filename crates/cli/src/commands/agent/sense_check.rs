//! What `--check` shows: each sense, tried for a period.

use super::counters::CounterSource;
use super::counters::processor::ProcessorSense;
use super::messages;
use super::probe::Probes;
use plimsoll_config::Agent;
use plimsoll_core::agent::{Counters, LoadSense, ProcessorTime, SAMPLES, sees_nothing};
use std::thread;
use std::time::{Duration, Instant};

/// The readings of one period.
#[derive(Default)]
struct SenseReadings {
    /// Seconds since the counters were first read.
    seconds: f64,
    requests: u64,
    /// The sum of the requests' response times, if the source sees them.
    response: Option<Duration>,
    latest: Counters,
    /// The integrals over time (s) of the utilization, and of the least utilization that the requests imply.
    work: f64,
    least: f64,
    processor: Option<ProcessorTime>,
}

/// Takes the samples of a period as the agent does, and puts them in words: a line for each sense.
pub(super) fn readings(agent: &Agent, (probes, mut source): (Probes, CounterSource)) -> String {
    let mut processor = ProcessorSense::of(agent);
    let mut probed = probes.look().ended;
    let mut read = SenseReadings::default();
    let begun = Instant::now();
    source.look(begun);
    if let Some(processor) = &mut processor {
        processor.look(begun);
    }
    // There is one sample more than in a period, because a status page may answer a little before or after a sample.
    for _ in 0..=SAMPLES {
        thread::sleep(agent.settings.period / SAMPLES);
        let now = Instant::now();
        let time = processor.as_mut().and_then(|processor| processor.look(now));
        read.add_time(time);
        let ended = probes.look().ended;
        let own = ended - std::mem::replace(&mut probed, ended);
        if let Some((counters, seconds)) = source.look(now) {
            let requests = counters.requests.saturating_sub(own);
            read.take(Counters { requests, processor: time, ..counters }, seconds, agent.sense);
        }
    }
    let answered = probes.look().answered;
    let answered =
        answered.map_or("no answer".to_owned(), |took| format!("answered in {}", messages::time(took)));
    let lines = [
        ("probe", answered),
        ("counters", read.counters()),
        ("processor", read.processor_line(agent, processor.as_ref())),
        ("utilization", read.utilization()),
    ];
    lines.map(|(sense, reading)| format!("{sense:<12} {reading}")).join("\n")
}

impl SenseReadings {
    fn add_time(&mut self, time: Option<ProcessorTime>) {
        self.processor = match (self.processor, time) {
            (Some(sum), Some(time)) => Some(ProcessorTime {
                used_seconds: sum.used_seconds + time.used_seconds,
                seconds: sum.seconds + time.seconds,
                ..time
            }),
            (sum, time) => sum.or(time),
        };
    }

    fn take(&mut self, counters: Counters, seconds: f64, sense: LoadSense) {
        self.seconds += seconds;
        self.requests += counters.requests;
        self.response =
            counters.response.map(|sum| sum + self.response.unwrap_or_default()).or(self.response);
        self.latest = counters;
        self.work += sense.utilization(&counters, seconds).unwrap_or(0.0) * seconds;
        self.least += sense.least_utilization(&counters, seconds) * seconds;
    }

    fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    fn counters(&self) -> String {
        if self.seconds <= 0.0 {
            return "not read within a period: they come too late".to_owned();
        }
        let in_service = self.latest.in_service.map_or(String::new(), |busy| format!(", {busy} in service"));
        let workers = self.latest.workers.map_or(String::new(), |workers| format!(" of {workers}"));
        let response = self.response.filter(|_| self.requests > 0).map_or(String::new(), |sum| {
            format!(", each answered in {}", messages::time(sum.div_f64(self.requests as f64)))
        });
        format!("{:.1} requests/s{in_service}{workers}{response}", self.rate())
    }

    fn processor_line(&self, agent: &Agent, sense: Option<&ProcessorSense>) -> String {
        let not_needed = match agent.sense {
            LoadSense::Linear { .. } => "; it is not needed: costs are configured",
            LoadSense::Gap { .. } => "",
        };
        match (self.processor, sense.map(ProcessorSense::count)) {
            (_, None) => format!("not read: no `pid` under [server]{not_needed}"),
            (Some(time), Some(Ok(count))) => format!(
                "{:.2} of what {count} processes can use: {:.0} of the machine's processors{not_needed}",
                time.utilization(),
                time.processors
            ),
            (_, Some(Err(why))) => format!("not read: {why}{not_needed}"),
            (None, Some(Ok(_))) => format!("not read{not_needed}"),
        }
    }

    fn utilization(&self) -> String {
        if self.seconds <= 0.0 {
            return "not known".to_owned();
        }
        let utilization = self.work / self.seconds;
        match self.requests {
            0 => format!("{utilization:.2}; no request came meanwhile, so this shows little"),
            _ if sees_nothing(utilization, self.least / self.seconds) => messages::blind(self.rate()),
            _ => format!("{utilization:.2}"),
        }
    }
}
