//! The true server of a plant: workers or cores behind a listen queue, then perhaps a network link.
//!
//! ```text
//!  offer --> listen queue --> in service --> link --> Done
//!            (finite, first    (workers, or    (shared
//!  charge --> come) ---------> shared cores)    evenly)
//! ```
//!
//! It models the papers' servers: a pool of processes (UC 6.1), the single server with exponential service of PR 3 and QM 2.2,
//! the k servers of QM 2.3, and the two-resource server of UC 7.2. There, service takes a + b x of a worker, and the link takes
//! x over its rate, so that in the long run U = max(a R + b W, b' W) (UC, equation 9) is the utilization of the busier of the
//! two.
//!
//! Invariants: every accepted job has exactly one [`Done`]; no server is idle while a job waits; no job ends before its work is
//! done, nor more than a nanosecond later; nothing is drawn here, because all work is given by the caller.
//!
//! The server keeps its own busy time. A claim about a control loop is judged by that time, never by the loop's sensor.

mod operational;
mod schedule;
mod sharing;
mod workers;

#[cfg(test)]
mod tests;

use crate::fault::gone;
use crate::workload::{self, Discipline, Fault, FaultKind};
use operational::OperationalTime;
use plimsoll_core::time::{Duration, Instant};
use schedule::{Job, JobKind};
use sharing::Sharing;
use std::collections::{BTreeSet, VecDeque};
use workers::Workers;

/// The listen queue is full: the request is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// What a request takes of a server that is otherwise idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Time of one worker.
    pub service: Duration,
    /// Body bytes, for the link.
    pub bytes: u64,
}

/// A request's service has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number given to [`Server::offer`].
    pub job: u64,
    /// Whether the request failed ([`FaultKind::Fails`]).
    pub failed: bool,
}

/// Accumulated busy time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Busy time of all workers or cores together.
    pub servers: Duration,
    /// Busy time of the link.
    pub link: Duration,
}

/// A server with its queue, its workers or cores, and its link.
#[derive(Debug)]
pub struct Server {
    stage: JobStage,
    /// Requests in service; charges are not counted.
    requests: usize,
    waiting: VecDeque<(u64, Work)>,
    listen_queue: usize,
    /// Charges for which no worker was free: their work and their number. Equal ones in a row are one entry.
    charges: VecDeque<(Duration, u64)>,
    link: Option<Link>,
    /// Jobs whose clients have left and that have no [`Done`] yet.
    left: BTreeSet<u64>,
    /// The failure time T_f.
    failure: Duration,
    time: OperationalTime,
    /// Faults that act when a service starts: they change its time or outcome, or take workers away.
    faults: Vec<Fault>,
}

#[derive(Debug)]
enum JobStage {
    Workers { workers: usize, pool: Workers },
    Sharing { most: usize, cores: Sharing },
}

/// The network link. If a response has it alone, each byte takes a fixed time.
#[derive(Debug)]
struct Link {
    ns_per_byte: f64,
    responses: Sharing,
}

impl Server {
    /// A server without jobs.
    pub fn new(truth: &workload::Plant) -> Self {
        let stage = match truth.discipline {
            Discipline::Workers(workers) => {
                JobStage::Workers { workers: workers as usize, pool: Workers::default() }
            }
            Discipline::Sharing { cores, most } => {
                JobStage::Sharing { most: most as usize, cores: Sharing::new(cores as usize) }
            }
        };
        let at_start = |fault: &&Fault| !matches!(fault.kind, FaultKind::Slower(_));
        Server {
            stage,
            requests: 0,
            waiting: VecDeque::new(),
            listen_queue: truth.listen_queue,
            charges: VecDeque::new(),
            link: truth.link.map(|rate| Link { ns_per_byte: 1e9 / rate, responses: Sharing::new(1) }),
            left: BTreeSet::new(),
            failure: truth.failure,
            time: OperationalTime::new(&truth.faults),
            faults: truth.faults.iter().filter(at_start).copied().collect(),
        }
    }

    /// Takes a request. `job` names it until its [`Done`].
    ///
    /// # Errors
    /// The listen queue is full: the request is lost.
    pub fn offer(&mut self, now: Instant, job: u64, work: Work) -> Result<(), Overflow> {
        if self.has_room(now) {
            self.start(now, job, work);
        } else if self.waiting.len() < self.listen_queue {
            self.waiting.push_back((job, work));
        } else {
            return Err(Overflow);
        }
        Ok(())
    }

    /// The client of an unfinished request has left, and the server does not know. A request in service is finished, and the
    /// link carries its response. A waiting request keeps its place, and takes T_f instead of its service when its turn comes
    /// (UC 7.5), which is no time at all if T_f is zero. Its [`Done`] comes all the same.
    pub fn abandon(&mut self, job: u64) {
        self.left.insert(job);
    }

    /// Takes work that no client waits for: the cost c of a rejection, before every job that waits.
    ///
    /// UC rejects inside the server: a process takes the request from the listen queue, looks at it and closes (6.3, 7.5). So
    /// one worker does all of the work, the first that is free: at once, or when the next service ends, before any request in
    /// the listen queue, which a rejected request has passed already. Service in progress is not interrupted, because processes
    /// have the same priority. If cores are shared, the gateway is one more process, let in at once, beyond `most`. The listen
    /// queue neither counts nor refuses the work, and there is no [`Done`].
    ///
    /// Rejections alone can thus fill the server (900 per second in UC) and starve all other requests: the receive livelock
    /// that UC 7.5 warns of.
    pub fn charge(&mut self, now: Instant, work: Duration) {
        if let JobStage::Workers { workers, pool } = &self.stage
            && pool.len() >= *workers
        {
            match self.charges.back_mut() {
                Some((same, count)) if *same == work => *count += 1,
                _ => self.charges.push_back((work, 1)),
            }
        } else {
            self.enter(now, work, Job { kind: JobKind::Charge, id: 0, bytes: 0 });
        }
    }

    /// When [`step`](Server::step) is to be called next; [`Instant::FAR`] while nothing is due. Ask again after each other
    /// call: if servers or the link are shared, an arrival moves the time.
    pub fn due(&self) -> Instant {
        match &self.link {
            Some(link) => link.responses.due().min(self.stage.due()),
            None => self.stage.due(),
        }
    }

    /// Does the first thing that is due now. `None`: nothing that shows outside (a response went from worker to link, a charge
    /// ended, or nothing was due).
    pub fn step(&mut self, now: Instant) -> Option<Done> {
        if let Some(link) = &mut self.link
            && link.responses.due() <= now.min(self.stage.due())
        {
            let job = link.responses.leave(now, &self.time)?;
            return Some(self.done(job));
        }
        if self.stage.due() > now {
            return None;
        }
        let job = match &mut self.stage {
            JobStage::Workers { pool, .. } => pool.leave(now),
            JobStage::Sharing { cores, .. } => cores.leave(now, &self.time),
        }?;
        self.requests -= usize::from(job.kind != JobKind::Charge);
        self.fill(now);
        match (&mut self.link, job.kind) {
            (_, JobKind::Charge) => None,
            (Some(link), JobKind::Request) if job.bytes > 0 => {
                let work_ns = job.bytes as f64 * link.ns_per_byte;
                link.responses.enter(now, &self.time, work_ns, job);
                None
            }
            _ => Some(self.done(job)),
        }
    }

    /// The accumulated busy time up to `now`.
    pub fn busy(&mut self, now: Instant) -> Busy {
        Busy {
            servers: match &mut self.stage {
                JobStage::Workers { pool, .. } => pool.busy(now),
                JobStage::Sharing { cores, .. } => cores.busy(now),
            },
            link: self.link.as_mut().map_or(Duration::ZERO, |link| link.responses.busy(now)),
        }
    }

    fn has_room(&self, now: Instant) -> bool {
        match &self.stage {
            // A charge takes a worker, like a request.
            JobStage::Workers { workers, pool } => {
                pool.len() < *workers && (self.faults.is_empty() || pool.len() < self.there(*workers, now))
            }
            JobStage::Sharing { most, .. } => self.requests < *most,
        }
    }

    /// How many of the workers are present now.
    fn there(&self, workers: usize, now: Instant) -> usize {
        let part = gone(&self.faults, now.since(Instant::ZERO)).map_or(0.0, |(part, _)| part);
        (workers as f64 * (1.0 - part)).round() as usize
    }

    /// Lets waiting jobs into service.
    fn fill(&mut self, now: Instant) {
        while self.has_room(now) {
            if let Some((work, count)) = self.charges.front_mut() {
                let work = *work;
                *count -= 1;
                if *count == 0 {
                    self.charges.pop_front();
                }
                self.enter(now, work, Job { kind: JobKind::Charge, id: 0, bytes: 0 });
            } else if let Some((job, work)) = self.waiting.pop_front() {
                self.start(now, job, work);
            } else {
                return;
            }
        }
    }

    /// Begins the service of a request, or what takes its place after a fault or an abandonment.
    fn start(&mut self, now: Instant, id: u64, Work { mut service, bytes }: Work) {
        let mut job = Job { kind: JobKind::Request, id, bytes };
        if !self.left.is_empty() && self.left.contains(&id) {
            (service, job.bytes) = (self.failure, 0);
        } else if !self.faults.is_empty() {
            let at = now.since(Instant::ZERO);
            for fault in self.faults.iter().filter(|fault| (fault.from..fault.until).contains(&at)) {
                match fault.kind {
                    FaultKind::Takes(time) => service = time,
                    FaultKind::Fails(after) => (service, job.kind) = (after, JobKind::Failing),
                    FaultKind::Slower(_) | FaultKind::Gone { .. } => {}
                }
            }
        }
        self.requests += 1;
        self.enter(now, service, job);
    }

    fn enter(&mut self, now: Instant, work: Duration, job: Job) {
        // Whole nanoseconds are exact up to 104 days.
        let work_ns = work.as_secs() as f64 * 1e9 + f64::from(work.subsec_nanos());
        match &mut self.stage {
            JobStage::Workers { pool, .. } => pool.enter(now, &self.time, work_ns, job),
            JobStage::Sharing { cores, .. } => cores.enter(now, &self.time, work_ns, job),
        }
    }

    fn done(&mut self, job: Job) -> Done {
        if !self.left.is_empty() {
            self.left.remove(&job.id);
        }
        Done { job: job.id, failed: job.kind == JobKind::Failing }
    }
}

impl JobStage {
    fn due(&self) -> Instant {
        match self {
            JobStage::Workers { pool, .. } => pool.due(),
            JobStage::Sharing { cores, .. } => cores.due(),
        }
    }
}
