//! A lane: one thread's side of the engine's door. It reads set points, reserves slots, and counts.
//!
//! Nothing here moves a set point: knobs are read, the gate is entered and left, counters are added to. The fast path
//! (room at the gate, nobody waits) takes no lock and allocates nothing. `Lane` is `Send` and not `Sync`: its counters
//! have a single writer by type.
//!
//! What is promised is read from the generation that the lane holds; it looks whether a reload brought a new one before
//! it classifies and at each arrival, whenever it starts somebody else's request, and when a permit is not of its own
//! generation. Numbers are for life, so a target and a permit of before a reload are good after it.

use crate::actuator::service_level::FRACTION_ONE;
use crate::admission::token_bucket::TokenBucket;
use crate::engine::state::{PublishedPlant, PublishedState};
use crate::promises::{Choice, Mode};
use crate::random::Random;
use crate::request::Reason;
use crate::request::work::{CostFeatures, Work};
use crate::request::{
    Arrival, Outcome, Permit, RequestView, Service, Stage, Target, Token, Verdict, Verdicts,
};
use crate::scheduling::gate::{Entry, GateChange, MOST_IN_SERVICE};
use crate::scheduling::queue::{Standing, Waiting};
use crate::sync::published::Reader;
use crate::telemetry::counters::{BINS, ClassCounters, LaneCounters, RECENT, SIZE_BINS, load_bin};
use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

/// One thread's side of the engine. Made by [`Engine::new`](crate::Engine::new).
pub struct Lane {
    pub(crate) shared: Reader<PublishedState>,
    /// Its place among the lanes.
    pub(crate) number: usize,
    pub(crate) counters: Arc<LaneCounters>,
    pub(crate) random: Random,
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

impl Lane {
    /// Where a request belongs; `None` if no site has its host ([`Reason::NoSite`]). Pure.
    pub fn classify(&self, request: &impl RequestView) -> Option<Target> {
        if self.shared.is_current() {
            self.shared.rules.classify(request)
        } else {
            // Reader anew by the arrival that follows.
            self.shared.renewed().rules.classify(request)
        }
    }

    /// Decides on a request: serve, wait, or reject. `token` comes back in the verdict if it waits.
    ///
    /// `target` must come from this engine's [`classify`](Lane::classify), however many reloads ago.
    pub fn arrive(&mut self, now: Instant, target: Target, token: Token, verdicts: &mut Verdicts) -> Arrival {
        self.look();
        let counters = &self.counters.classes[usize::from(target.class)];
        self.note(counters, &target);
        counters.arrivals.add(1);

        let standing = standing(&self.shared, now, &target);
        let asks = Asks { class: target.class, client: target.client, standing };
        let mut decided = level(&self.shared, asks, &mut self.random);
        // The level says how good; of a class with a deadline, the unfinished work says whether.
        if decided == 0 && self.shared.classes[usize::from(target.class)].terms.deadline.is_some() {
            decided = 1;
        }
        if standing != Standing::Guaranteed {
            counters.decided[usize::from(decided)].add(1);
        }
        if decided == 0 && self.shared.mode == Mode::Control {
            return self.reject(&target, Reason::Overload);
        }
        let mut permit = permit(&self.shared, now, asks, decided);
        if self.shared.plants[permit.plant()].has_deadlines
            && let Err(refused) = self.admit(&target, standing, &mut permit)
        {
            return refused;
        }
        let plant = &self.shared.plants[permit.plant()];
        let mut limit = limit(&self.shared, permit.plant());
        if let Some(quota) = &self.shared.classes[usize::from(target.class)].quota {
            counters.timing.arrive(quota.arrive(now));
            // Who is held waits before all else.
            limit = if quota.hold_ns() > 0 && !target.exempt { 0 } else { limit };
        }
        let change = match plant.gate.enter(now, limit) {
            Some(change) => change,
            None => {
                let class = &self.shared.classes[usize::from(target.class)];
                let (rank, work) = (class.rank(standing), permit.work);
                let latest = work.map_or(Instant::FAR, |work| work.latest_start(now, &class.terms));
                let Target { class, client, .. } = target;
                let waiting = Waiting { token, class, client, standing, rank, arrived: now, work, latest };
                match plant.gate.enter_or_wait(now, limit, plant.queue.max_waiting, waiting) {
                    Entry::Entered(change) => change,
                    Entry::Waits { ticket, displaced } => {
                        permit.stage = Stage::Waiting { ticket };
                        if let Some(displaced) = displaced {
                            self.drop_waiting(&displaced, permit.plant(), Reason::QueueFull, verdicts);
                        }
                        // A departure between our look and our place in the queue may have left room.
                        self.dispatch(now, permit.plant(), verdicts);
                        return Arrival::Wait(permit);
                    }
                    Entry::Overflow => {
                        forget(plant, permit.work);
                        return self.reject(&target, Reason::QueueFull);
                    }
                }
            }
        };
        start(&self.shared, &self.counters, &mut permit, Start { now, decided, change });
        if target.exempt { Arrival::Exempt(permit) } else { Arrival::Serve(permit) }
    }

    /// Reserves the work of an arrival, if it will be done in time. Where nothing is controlled it is only noted.
    #[inline(never)]
    fn admit(&self, target: &Target, standing: Standing, permit: &mut Permit) -> Result<(), Arrival> {
        let shared: &PublishedState = &self.shared;
        let class = &shared.classes[usize::from(target.class)];
        let plant = &shared.plants[permit.plant()];
        let (Some(estimates), true) = (&class.estimates, shared.mode != Mode::Off) else { return Ok(()) };
        let Target { request_type, announced_us, blocks, .. } = *target;
        let features = CostFeatures { request_type, announced_us, blocks };
        let workers = plant.workers(Some(permit.arrived));
        let cost = estimates.cost(features, permit.level);
        if announced_us > 0 || blocks > 0 {
            estimates.saw(cost, &class.terms);
        }
        let work = plant.unfinished.reserve(permit.arrived, class.rank(standing), features, cost);
        permit.work = Some(work);
        let refused = match plant.unfinished.admits(
            &work,
            estimates.room(&class.terms, workers.all),
            workers,
            &class.terms,
        ) {
            Err(refused) if !target.exempt => refused,
            _ => return Ok(()),
        };
        if refused.is_none() && estimates.is_invited(features, permit.level) {
            return Ok(());
        }
        estimates.refuse(features, permit.level, refused.is_none());
        if shared.mode == Mode::Observe {
            permit.reason = Reason::Deadline;
            return Ok(());
        }
        forget(plant, permit.work);
        let retry_after = refused.unwrap_or(shared.retry_after);
        Err(self.reject_for(target, Reason::Deadline, retry_after))
    }

    /// Body bytes delivered to the client, told as they are delivered: W never waits for a long response's end.
    pub fn sent(&mut self, permit: &Permit, bytes: u64) {
        self.meet(permit);
        self.counters.classes[usize::from(permit.class)].bytes.add(bytes);
        if permit.metered
            && let Some(contract) = &self.shared.classes[usize::from(permit.class)].contract
        {
            contract.sent(bytes);
        }
    }

    /// The plant is free of this request: its last byte was read, it failed, or it switched protocols. Starts those
    /// who wait. A second call does nothing.
    pub fn release(&mut self, now: Instant, permit: &mut Permit, service: Service, verdicts: &mut Verdicts) {
        if permit.stage != Stage::InService {
            return;
        }
        self.meet(permit);
        permit.stage = Stage::Released;
        let plant = &self.shared.plants[permit.plant()];
        let change = plant.gate.leave(now);
        account(&self.shared, &self.counters, permit.plant(), change);

        let service_ns = now.nanos_since(permit.started);
        let class = &self.counters.classes[usize::from(permit.class)];
        class.released.add(1);
        let response_ns = now.nanos_since(permit.arrived);
        class.response_ns.add(response_ns);
        class.response_times.add(response_ns);
        if permit.counted {
            self.leave_quota(now, permit, service_ns);
        }
        let counters = &self.counters.plants[permit.plant()];
        counters.releases.add(1);
        counters.service_ns.add(service_ns);
        if plant.capacity.found {
            counters.by_load.departures[load_bin(change.before)].add(1);
        }
        if permit.work.is_some() {
            self.finish(now, permit, service, change.before);
        }
        // A level or a plant may have changed its meaning in between.
        if service.representative && permit.generation == self.shared.generation() {
            let work_ns =
                work_ns(service_ns, permit.in_service_at_start, change.before, plant.capacity.workers());
            let bin = SIZE_BINS.iter().position(|bound| service.response_bytes < *bound).unwrap_or(BINS - 1);
            let services = &class.services[usize::from(permit.level)][bin];
            services.requests.add(1);
            services.work_ns.add(work_ns);
            services.bytes.add(service.response_bytes);
        }
        if change.waits {
            self.dispatch(now, permit.plant(), verdicts);
        }
    }

    /// Accounts the end of service where deadlines are promised; `in_service` were so until then.
    #[inline(never)]
    fn finish(&self, now: Instant, permit: &Permit, service: Service, in_service: u32) {
        let Some(work) = &permit.work else { return };
        let plant = &self.shared.plants[permit.plant()];
        let service_ns = now.nanos_since(permit.started);
        let took_ns = work_ns(service_ns, permit.in_service_at_start, in_service, plant.capacity.workers());
        plant.unfinished.finish(permit.started, work, took_ns / 1000);
        let class = &self.shared.classes[usize::from(permit.class)];
        if class.terms.deadline.is_some_and(|deadline| now.since(permit.arrived) > deadline) {
            self.counters.classes[usize::from(permit.class)].timing.late.add(1);
        }
        let teaches = service.representative && permit.generation == self.shared.generation();
        let Some(estimates) = class.estimates.as_ref().filter(|_| teaches) else { return };
        let cost_ns = service.cost.map_or(took_ns, |cost| cost.as_nanos() as u64);
        estimates.note(work.features, permit.level, cost_ns);
    }

    /// Accounts the end of service of a class that was promised a delay or a ratio.
    #[inline(never)]
    fn leave_quota(&self, now: Instant, permit: &Permit, service_ns: u64) {
        let Some(quota) = &self.shared.classes[usize::from(permit.class)].quota else { return };
        quota.leave();
        let late = now.nanos_since(permit.arrived) > quota.target_ns;
        self.counters.classes[usize::from(permit.class)].timing.release(service_ns, late);
    }

    /// The request's end, exactly once; releases the plant if it is still held, and leaves the queue if it waits. A
    /// waiting permit whose verdict is already on its way is spent: departing it does nothing.
    pub fn depart(&mut self, now: Instant, mut permit: Permit, outcome: Outcome, verdicts: &mut Verdicts) {
        self.meet(&permit);
        let class = usize::from(permit.class);
        if let Stage::Waiting { ticket } = permit.stage {
            let plant = &self.shared.plants[permit.plant()];
            if plant.gate.cancel(ticket) {
                forget(plant, permit.work);
                self.counters.classes[class].reasons[Reason::ClientLeft as usize].add(1);
                self.counters.classes[class].unserved.add(1);
            }
            return;
        }
        if permit.stage == Stage::InService {
            self.release(now, &mut permit, Service::default(), verdicts);
        }
        self.counters.classes[class].outcomes[outcome as usize].add(1);
    }

    /// Looks whether a reload brought a new generation.
    #[inline]
    pub(crate) fn look(&mut self) {
        if !self.shared.is_current() {
            self.hold(self.shared.renewed());
        }
    }

    /// A permit may be of a generation that this lane has not seen yet.
    #[inline]
    fn meet(&mut self, permit: &Permit) {
        if permit.generation != self.shared.generation() {
            self.look();
        }
    }

    #[cold]
    fn hold(&mut self, shared: Reader<PublishedState>) {
        self.counters = shared.lanes[self.number].clone();
        self.shared = shared;
    }

    /// Notes the client, to find those that are too heavy.
    fn note(&self, counters: &ClassCounters, target: &Target) {
        let arrivals = counters.arrivals.get();
        let shift = self.shared.classes[usize::from(target.class)].words.note_shift.load(Ordering::Relaxed);
        if arrivals & ((1 << shift) - 1) == 0 {
            let place = (arrivals >> shift) as usize % RECENT;
            counters.recent[place].store(target.client, Ordering::Relaxed);
        }
    }

    fn reject(&self, target: &Target, reason: Reason) -> Arrival {
        self.reject_for(target, reason, self.shared.retry_after)
    }

    fn reject_for(&self, target: &Target, reason: Reason, retry_after: Duration) -> Arrival {
        let counters = &self.counters.classes[usize::from(target.class)];
        counters.reasons[reason as usize].add(1);
        counters.unserved.add(1);
        Arrival::Reject { reason, retry_after }
    }

    /// Starts those who wait while there is room. The level is chosen here, at start, so that the whole backlog is
    /// priced at the present m; a level of another plant is left to those who arrive.
    pub(crate) fn dispatch(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) {
        let Lane { shared, counters, random, number, .. } = self;
        let shared: &Reader<PublishedState> = shared;
        let mut renewed: Option<Reader<PublishedState>> = None;
        shared.plants[plant].gate.dispatch(now, limit(shared, plant), |waiting, change| {
            // Who waits may be of a class that this lane has not heard of.
            let held = renewed.as_ref().unwrap_or(shared);
            if !held.is_current() {
                let newer = held.renewed();
                renewed = Some(newer);
            }
            let shared: &PublishedState = renewed.as_ref().unwrap_or(shared);
            let counters: &LaneCounters = if renewed.is_some() { &shared.lanes[*number] } else { counters };
            let Some(change) = change else {
                verdicts.push(dropped(shared, counters, &waiting, plant, Reason::Late));
                return;
            };
            let asks = Asks { class: waiting.class, client: waiting.client, standing: waiting.standing };
            let class = &shared.classes[usize::from(waiting.class)];
            let decided = class.level_at(plant, level(shared, asks, random));
            let mut permit = permit(shared, waiting.arrived, asks, decided);
            permit.plant = plant as u16;
            permit.work = waiting.work;
            start(shared, counters, &mut permit, Start { now, decided, change });
            verdicts.push(Verdict::Start(waiting.token, permit));
        });
        if let Some(renewed) = renewed {
            self.hold(renewed);
        }
    }

    /// Answers those who have waited too long; returns when the next one will have. For `tick`.
    pub(crate) fn expire(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) -> Instant {
        let PublishedPlant { gate, queue, .. } = &self.shared.plants[plant];
        gate.expire(now, queue.max_wait, |waiting| {
            let reason = if waiting.latest <= now { Reason::Late } else { Reason::WaitTimeout };
            self.drop_waiting(&waiting, plant, reason, verdicts);
        })
    }

    fn drop_waiting(&self, waiting: &Waiting, plant: usize, reason: Reason, verdicts: &mut Verdicts) {
        verdicts.push(dropped(&self.shared, &self.counters, waiting, plant, reason));
    }

    /// Accounts a plant's busy time up to `now`. For `tick`.
    pub(crate) fn touch(&mut self, now: Instant, plant: usize) {
        account(&self.shared, &self.counters, plant, self.shared.plants[plant].gate.touch(now));
    }
}

/// Who asks for a level.
#[derive(Clone, Copy)]
struct Asks {
    class: u16,
    client: u64,
    standing: Standing,
}

/// A start whose gate change was won.
struct Start {
    now: Instant,
    decided: u8,
    change: GateChange,
}

/// The most in service at once: the promised connections; without control no bound of ours.
fn limit(shared: &PublishedState, plant: usize) -> u32 {
    if shared.mode == Mode::Control { shared.plants[plant].capacity.limit() } else { MOST_IN_SERVICE }
}

/// What an arrival is. One that is inside its site's contract is served at the highest level: the loop is not asked.
#[inline]
fn standing(shared: &PublishedState, now: Instant, target: &Target) -> Standing {
    match &shared.classes[usize::from(target.class)].contract {
        _ if target.exempt => Standing::Exempt,
        None => Standing::Ordinary,
        Some(contract) => metered(contract, shared.mode, now),
    }
}

/// Apart, so that the way of the others stays short.
#[inline(never)]
fn metered(contract: &TokenBucket, mode: Mode, now: Instant) -> Standing {
    if mode != Mode::Off && contract.arrive(now) { Standing::Guaranteed } else { Standing::Ordinary }
}

/// The level that the knob gives this client now, 0..=M.
fn level(shared: &PublishedState, asks: Asks, random: &mut Random) -> u8 {
    let class = &shared.classes[usize::from(asks.class)];
    if asks.standing != Standing::Ordinary || shared.mode == Mode::Off {
        return class.top_level;
    }
    let by_chance = class.choice == Choice::Random || class.words.is_heavy(asks.client);
    let place = if by_chance { random.bits() & (FRACTION_ONE - 1) } else { asks.client };
    class.words.level.get().level_of(place).min(class.top_level)
}

fn permit(shared: &PublishedState, arrived: Instant, asks: Asks, decided: u8) -> Permit {
    let class = &shared.classes[usize::from(asks.class)];
    let level = if shared.mode == Mode::Control { decided } else { class.top_level };
    Permit {
        class: asks.class,
        plant: class.plant_of_level[usize::from(level)],
        level,
        reason: reason(decided, class.top_level, asks.standing),
        stage: Stage::InService,
        metered: class.contract.is_some() && asks.standing != Standing::Exempt,
        counted: class.quota.is_some() && asks.standing != Standing::Exempt,
        work: None,
        generation: shared.generation,
        in_service_at_start: 0,
        arrived,
        started: arrived,
    }
}

/// Answers one that waited and is in the queue no more.
fn dropped(
    shared: &PublishedState,
    counters: &LaneCounters,
    waiting: &Waiting,
    plant: usize,
    reason: Reason,
) -> Verdict {
    let plant = &shared.plants[plant];
    forget(plant, waiting.work);
    let counters = &counters.classes[usize::from(waiting.class)];
    counters.reasons[reason as usize].add(1);
    counters.unserved.add(1);
    let retry_after = match reason {
        Reason::Late => plant.unfinished.wait_of(waiting.rank, plant.workers(None)),
        _ => shared.retry_after,
    };
    Verdict::Drop { token: waiting.token, reason, retry_after }
}

/// What was reserved for one that is not started.
fn forget(plant: &PublishedPlant, work: Option<Work>) {
    if let Some(work) = work {
        plant.unfinished.forget(&work);
    }
}

/// Books a start.
fn start(shared: &PublishedState, counters: &LaneCounters, permit: &mut Permit, start: Start) {
    permit.stage = Stage::InService;
    permit.started = start.now;
    permit.in_service_at_start = start.change.after;
    account(shared, counters, permit.plant(), start.change);
    if let Some(work) = &permit.work {
        shared.plants[permit.plant()].unfinished.start(start.now, work);
    }
    if permit.counted
        && let Some(quota) = &shared.classes[usize::from(permit.class)].quota
    {
        quota.enter();
    }
    let class = &counters.classes[usize::from(permit.class)];
    class.served[usize::from(start.decided)].add(1);
    class.reasons[permit.reason as usize].add(1);
    class.started.add(1);
    let queue_delay_ns = start.now.nanos_since(permit.arrived);
    class.queue_delay_ns.add(queue_delay_ns);
    class.queue_delays.add(queue_delay_ns);
}

fn account(shared: &PublishedState, counters: &LaneCounters, plant: usize, change: GateChange) {
    let capacity = &shared.plants[plant].capacity;
    let busy_servers = u64::from(change.before.min(capacity.workers()));
    let counters = &counters.plants[plant];
    counters.busy_ns.add(busy_servers * change.elapsed_ns);
    if capacity.found && change.before > 0 {
        counters.by_load.time_ns[load_bin(change.before)].add(change.elapsed_ns);
    }
}

fn reason(decided: u8, top_level: u8, standing: Standing) -> Reason {
    match decided {
        _ if standing == Standing::Exempt => Reason::Exempt,
        _ if standing == Standing::Guaranteed => Reason::Guaranteed,
        0 => Reason::Overload,
        level if level < top_level => Reason::Degraded,
        _ => Reason::Full,
    }
}

/// A request's share of the plant's busy time: its service time while it has a worker of its own, less where n > s
/// shared s workers. The share at start and at release are averaged.
fn work_ns(service_ns: u64, at_start: u32, at_release: u32, workers: u32) -> u64 {
    if at_start.max(at_release) <= workers {
        return service_ns;
    }
    let share = |n: u32| f64::from(workers) / f64::from(n.max(workers));
    (service_ns as f64 * 0.5 * (share(at_start) + share(at_release))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_the_share_of_a_worker() {
        assert_eq!(work_ns(1000, 3, 8, 8), 1000);
        assert_eq!(work_ns(1000, 16, 16, 8), 500);
        assert_eq!(work_ns(1000, 1, 3, 1), 666);
    }
}
