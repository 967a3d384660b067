//! What the server's packets show (CA 4.2): requests and bytes, and the time that its workers were busy.

use super::Complaint;
use plimsoll_config::Agent;
use plimsoll_core::agent::{Counters, LoadSense, ProcessorTime};
use plimsoll_wire::Capture;
use std::time::Instant;

/// The number of given-up requests in a period, on top of one in a hundred, above which they are reported.
const GIVEN_UP: u64 = 10;

pub(crate) struct WireSense {
    capture: Capture,
    workers: u32,
    last: Instant,
    /// Packets lost up to the last look.
    lost: u64,
    /// Bytes dropped since the start, because the capture had no room to keep them until their turn.
    dropped: u64,
    /// `complaint` says that too little of the load is seen, `failure` that nothing is seen any more.
    pub(super) complaint: Complaint,
    pub(super) failure: Complaint,
}

impl WireSense {
    pub(super) fn open(interface: &str, agent: &Agent) -> Result<WireSense, String> {
        let address = &agent.probe.address;
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| format!("the probe's address {address} has no port"))?;
        let workers = match agent.sense {
            LoadSense::Gap { workers } => workers.unwrap_or(1).max(1),
            LoadSense::Linear { .. } => 1,
        };
        let capture = Capture::start(interface, port, workers)?;
        let [complaint, failure] = <[Complaint; 2]>::default();
        Ok(WireSense { capture, workers, last: Instant::now(), lost: 0, dropped: 0, complaint, failure })
    }

    /// The requests and bytes seen since the last look, and the seconds between.
    pub(super) fn look(&mut self, now: Instant) -> Option<(Counters, f64)> {
        let seconds = now.saturating_duration_since(self.last).as_secs_f64();
        let Some((seen, in_service)) = self.capture.look().filter(|_| seconds > 0.0) else {
            self.failure
                .make(self.capture.failure().map(|why| format!("no packets are captured any more: {why}")));
            return None;
        };
        self.last = now;
        let lost = std::mem::replace(&mut self.lost, self.capture.lost());
        let more = self.lost.saturating_sub(lost);
        let too_little = "what is seen of the load is too little";
        self.complaint.make(
            (more > 0).then(|| format!("{more} packets came faster than they could be read: {too_little}")),
        );
        self.dropped += seen.dropped;
        self.complaint.make((seen.dropped > 0).then(|| {
            format!("{} bytes of packets waited for others and had no more room: {too_little}", seen.dropped)
        }));
        // Some requests are given up whenever a client leaves or the network fails, so a few are no reason to complain.
        let given_up = seen.given_up;
        self.complaint.make(
            (given_up > seen.requests / 100 + GIVEN_UP)
                .then(|| format!("the packets do not show how {given_up} requests ended: {too_little}")),
        );
        let counters = Counters {
            requests: seen.requests,
            bytes: seen.bytes,
            response: Some(seen.response),
            // If no more requests are in service than there are workers, the busy time of the workers says more than their
            // number.
            in_service: Some(in_service).filter(|in_service| *in_service > self.workers),
            workers: Some(self.workers),
            processor: Some(ProcessorTime {
                used_seconds: seen.busy.as_secs_f64(),
                seconds,
                processors: self.workers.into(),
            }),
        };
        Some((counters, seconds))
    }

    /// Bytes dropped since the start, because too many bytes waited.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}
