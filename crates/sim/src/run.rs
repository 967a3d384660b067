//! One run: arrivals from a seeded Poisson process, the engine's door, the plant, and a record of each period.

use crate::plant::{Overflow, Plant, ServiceTime};
use plimsoll_core::door::{
    Arrival, Outcome, Permit, Readings, RequestView, Service, Token, Verdict, Verdicts,
};
use plimsoll_core::promises::Promises;
use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr};

/// What happens to an engine and a plant.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The promises; plant 0 is simulated.
    pub promises: Promises,
    /// From when on, which arrival rate [1/s]. In order of time.
    pub load: Vec<(Duration, f64)>,
    /// How long.
    pub duration: Duration,
    /// The plant's true number of workers; what the gateway was told is in the promises.
    pub workers: u32,
    /// Mean service time on one worker at levels 1..=M.
    pub service: Vec<Duration>,
    /// Body bytes of a response at levels 1..=M.
    pub bytes: Vec<u64>,
    /// How service times vary.
    pub service_time: ServiceTime,
    /// The plant's own listen queue.
    pub listen_queue: usize,
    /// What goes wrong with the plant, for requests that start in the given time.
    pub faults: Vec<Fault>,
    /// The plant reports its own utilization (as ORCA's `endpoint-load-metrics` would).
    pub reports: bool,
    /// How many clients share the load.
    pub clients: u32,
    /// How unevenly: 1 is evenly; at 2 the first quarter of them sends half of the requests.
    pub skew: f64,
    /// Of everything random.
    pub seed: u64,
}

/// What goes wrong, from when until when.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// First moment.
    pub from: Duration,
    /// Last moment.
    pub until: Duration,
    /// What.
    pub kind: FaultKind,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Service takes this many times as long.
    Slower(f64),
    /// Service takes this long, whatever the level.
    Takes(Duration),
    /// Service fails after this time.
    Fails(Duration),
}

/// What happened in one control period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Period {
    /// The plant's own utilization.
    pub utilization: f64,
    /// m at its end.
    pub service_level: f64,
    /// Requests that arrived.
    pub arrivals: u64,
    /// Requests completed, by level (index 0 is not used).
    pub completed: Vec<u64>,
    /// Requests turned away by the engine.
    pub rejected: u64,
    /// Requests that the plant failed.
    pub failures: u64,
    /// Requests lost at the plant's listen queue.
    pub errors: u64,
    /// Body bytes delivered.
    pub bytes: u64,
    /// Sum and largest of response times (s).
    pub response_seconds: (f64, f64),
    /// Requests of clients that were served another level than at their last request.
    pub changes: u64,
}

/// A run: its periods in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// One per control period.
    pub periods: Vec<Period>,
    /// Requests in flight at the end, as the engine counts.
    pub in_flight: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Served(u64),
    Tick,
}

struct Request {
    permit: Permit,
    client: u32,
    arrived: Instant,
    fails: bool,
}

struct Client(u32);

impl RequestView for Client {
    fn method(&self) -> &str {
        "GET"
    }
    fn host(&self) -> &str {
        ""
    }
    fn path(&self) -> &str {
        "/"
    }
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }
    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | self.0))
    }
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    /// What in the promises cannot be.
    pub fn run(&self) -> Result<Run, Vec<String>> {
        let (engine, mut lanes) = Engine::new(&self.promises, 1, self.seed)?;
        let Some(lane) = lanes.pop() else { unreachable!("asked for one lane") };
        let mut simulation = Simulation {
            scenario: self,
            engine,
            lane,
            plant: Plant::new(self.workers as usize, self.listen_queue, self.service_time),
            random: Random::new(self.seed ^ 0x0073_696d),
            events: BinaryHeap::new(),
            scheduled: 0,
            requests: BTreeMap::new(),
            next_token: 0,
            verdicts: Verdicts::new(),
            period: Period::default(),
            busy: Duration::ZERO,
            period_end: Instant::ZERO + self.promises.control.period,
            periods: Vec::new(),
            last_level: vec![0; self.clients as usize],
        };
        simulation.play();
        let in_flight = simulation.engine.status().classes.iter().map(|class| class.counts.in_flight()).sum();
        Ok(Run { periods: simulation.periods, in_flight })
    }
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    engine: Engine,
    lane: Lane,
    plant: Plant,
    random: Random,
    /// Earliest first; of equal instants, first scheduled first.
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    requests: BTreeMap<u64, Request>,
    next_token: u64,
    verdicts: Verdicts,
    period: Period,
    busy: Duration,
    period_end: Instant,
    periods: Vec<Period>,
    last_level: Vec<u8>,
}

impl Simulation<'_> {
    fn play(&mut self) {
        let end = Instant::ZERO + self.scenario.duration;
        self.schedule(Instant::ZERO, Event::Tick);
        self.schedule_arrival(Instant::ZERO);
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now > end {
                break;
            }
            match event {
                Event::Arrival => {
                    self.arrive(now);
                    self.schedule_arrival(now);
                }
                Event::Served(token) => self.served(now, token),
                Event::Tick => self.tick(now),
            }
            self.act(now);
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    /// Poisson with a rate that is constant between steps: past a step, the memoryless wait begins anew.
    fn schedule_arrival(&mut self, mut now: Instant) {
        let steps = &self.scenario.load;
        loop {
            let current = steps.iter().rfind(|(from, _)| Instant::ZERO + *from <= now);
            let next_step = steps.iter().map(|(from, _)| Instant::ZERO + *from).find(|from| *from > now);
            let rate = current.map_or(0.0, |(_, rate)| *rate);
            let wait = if rate > 0.0 { self.random.exponential(1.0 / rate) } else { f64::MAX };
            let at = now + Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
            match next_step {
                Some(step) if at >= step => now = step,
                _ if at == Instant::FAR => return,
                _ => return self.schedule(at, Event::Arrival),
            }
        }
    }

    fn arrive(&mut self, now: Instant) {
        let place = self.random.uniform().powf(self.scenario.skew);
        let client = (place * f64::from(self.scenario.clients)) as u32;
        let Some(target) = self.lane.classify(&Client(client)) else { return };
        self.period.arrivals += 1;
        self.next_token += 1;
        let token = self.next_token;
        match self.lane.arrive(now, target, Token(token), &mut self.verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                self.requests.insert(token, Request { permit, client, arrived: now, fails: false });
                self.start(now, token);
            }
            Arrival::Wait(permit) => {
                self.requests.insert(token, Request { permit, client, arrived: now, fails: false });
            }
            Arrival::Reject { .. } => self.period.rejected += 1,
        }
    }

    /// Hands a started request to the plant.
    fn start(&mut self, now: Instant, token: u64) {
        let level = usize::from(self.requests[&token].permit.level());
        let mut mean = self.scenario.service[level - 1];
        let at = now.since(Instant::ZERO);
        for fault in self.scenario.faults.iter().filter(|fault| (fault.from..fault.until).contains(&at)) {
            match fault.kind {
                FaultKind::Slower(factor) => mean = mean.mul_f64(factor),
                FaultKind::Takes(time) => mean = time,
                FaultKind::Fails(after) => mean = after,
            }
            if let (FaultKind::Fails(_), Some(request)) = (fault.kind, self.requests.get_mut(&token)) {
                request.fails = true;
            }
        }
        match self.plant.offer(now, token, mean, &mut self.random) {
            Ok(Some(done)) => self.schedule(done, Event::Served(token)),
            Ok(None) => {}
            Err(Overflow) => {
                self.period.errors += 1;
                if let Some(request) = self.requests.remove(&token) {
                    self.lane.depart(now, request.permit, Outcome::Failed, &mut self.verdicts);
                }
            }
        }
    }

    fn served(&mut self, now: Instant, token: u64) {
        if let Some((next, done)) = self.plant.complete(now) {
            self.schedule(done, Event::Served(next));
        }
        let Some(Request { mut permit, client, arrived, fails }) = self.requests.remove(&token) else {
            return;
        };
        if fails {
            self.period.failures += 1;
            return self.lane.depart(now, permit, Outcome::Failed, &mut self.verdicts);
        }
        let level = permit.level();
        let response_bytes = self.scenario.bytes[usize::from(level) - 1];
        self.lane.sent(&permit, response_bytes);
        self.lane.release(
            now,
            &mut permit,
            Service { response_bytes, representative: true },
            &mut self.verdicts,
        );
        self.lane.depart(now, permit, Outcome::Completed, &mut self.verdicts);

        let period = &mut self.period;
        period.completed.resize(self.scenario.service.len() + 1, 0);
        period.completed[usize::from(level)] += 1;
        period.bytes += response_bytes;
        let response = now.since(arrived).as_secs_f64();
        period.response_seconds =
            (period.response_seconds.0 + response, period.response_seconds.1.max(response));
        let last = std::mem::replace(&mut self.last_level[client as usize], level);
        period.changes += u64::from(last != 0 && last != level);
    }

    fn tick(&mut self, now: Instant) {
        let length = self.scenario.promises.control.period;
        let busy = self.plant.busy(now);
        let elapsed = now.since(self.period_end).as_secs_f64() + length.as_secs_f64();
        let utilization = (busy - self.busy).as_secs_f64() / f64::from(self.scenario.workers);
        let mut readings = Readings::default();
        if self.scenario.reports && now >= self.period_end {
            readings.utilization.push((0, utilization / elapsed));
        }
        let next = self.engine.tick(now, &readings, &mut self.verdicts);
        self.schedule(next, Event::Tick);
        if now < self.period_end {
            return;
        }
        let mut period = std::mem::take(&mut self.period);
        period.utilization = utilization / length.as_secs_f64();
        period.service_level = self.engine.status().plants[0].service_level;
        period.completed.resize(self.scenario.service.len() + 1, 0);
        self.periods.push(period);
        self.busy = busy;
        self.period_end = now + length;
    }

    fn act(&mut self, now: Instant) {
        while !self.verdicts.is_empty() {
            for verdict in std::mem::take(&mut self.verdicts) {
                self.act_on(now, verdict);
            }
        }
    }

    fn act_on(&mut self, now: Instant, verdict: Verdict) {
        match verdict {
            Verdict::Start(Token(token), permit) => {
                if let Some(request) = self.requests.get_mut(&token) {
                    request.permit = permit;
                    self.start(now, token);
                } else {
                    self.lane.depart(now, permit, Outcome::Abandoned, &mut self.verdicts);
                }
            }
            Verdict::Drop { token: Token(token), .. } => {
                self.requests.remove(&token);
                self.period.rejected += 1;
            }
        }
    }
}
