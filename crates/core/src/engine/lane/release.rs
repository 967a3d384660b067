//! The end of a request: its delivered bytes, its release of the plant, and its departure. `leave.rs` has the requests whose
//! client left.

use super::Lane;
use super::start::account_busy_time;
use crate::request::{Outcome, Permit, Reason, Service, Stage, Verdicts};
use crate::telemetry::counters::{
    BINS, ClassCounters, DurationCounters, PlantCounters, SIZE_BINS, ServiceCounters, load_bin,
};
use crate::time::{Duration, Instant};

impl Lane {
    /// Counts body bytes as they are delivered to the client. So the bandwidth W includes responses that are still under
    /// way.
    pub fn sent(&mut self, permit: &Permit, bytes: u64) {
        self.follow_permit(permit);
        self.counters.classes[usize::from(permit.class)].bytes.add(bytes);
        let class = &self.published.classes[usize::from(permit.class)];
        if permit.has_contract
            && let Some(contract) = &class.contract
        {
            contract.sent(class.words.asked_bytes(permit.level, bytes));
        }
    }

    /// Counts a response to a request of a class by its status, as its head is sent.
    pub fn responded(&self, class: u16, status: u16) {
        if let Some(responses) = self.counters.classes.get(usize::from(class)).map(|class| &class.responses)
            && let Some(counter) = responses.get(usize::from(status / 100).wrapping_sub(1))
        {
            counter.add(1);
        }
    }

    /// Notes that the plant refused a request that was started, because it has too much to do: it took no connection, or said
    /// that it is overloaded (503). The request is released and departs as one that failed.
    ///
    /// From the refusals by the number in service the engine learns how many requests the plant takes at once.
    #[cold]
    pub fn refused(&mut self, permit: &Permit) {
        if permit.stage == Stage::InService {
            self.follow_permit(permit);
            let (plant, n) = (permit.plant(), permit.in_service_at_start);
            self.counters.plants[plant].by_load.refuse(n);
            self.published.plants[plant].capacity.refused(n);
        }
    }

    /// Ends the service of a request at its plant: its last byte was read, it failed, or it switched protocols. Waiting
    /// requests may start then. A second call does nothing.
    pub fn release(&mut self, at: Instant, permit: &mut Permit, service: Service, verdicts: &mut Verdicts) {
        if permit.stage != Stage::InService {
            return;
        }
        self.follow_permit(permit);
        permit.stage = Stage::Released;
        self.end_stream(permit);
        let plant = permit.plant();
        let (own, counters) = (&self.published.plants[plant], &self.counters.plants[plant]);
        let change = own.gate.leave(at);
        if permit.reason == Reason::Exempt {
            own.gate.leave_exempt();
        }
        account_busy_time(own, counters, change);
        let class = &self.counters.classes[usize::from(permit.class)];
        // The time for which the client let the plant wait is no service time of the plant: all figures end earlier by that
        // time.
        let served_until = Instant::from_nanos(at.nanos_since(Instant::from_nanos(permit.excused_ns)));
        self.count_release(served_until, permit, (class, counters));
        if own.capacity.is_searched || own.capacity.refuses() {
            self.count_work(served_until, permit, service, change.before);
        }
        if permit.has_quota {
            self.leave_quota(served_until, permit, service);
        }
        if permit.work.is_some() {
            self.finish_work(served_until, permit, service, change.before);
        }
        if permit.has_contract && service.representative {
            self.learn_size(permit, service);
        }
        if self.may_teach(permit, service) {
            let work_ns = self.work_ns(served_until, permit, change.before);
            count_service(&class.services[usize::from(permit.level)], service.response_bytes, work_ns);
        }
        if change.waits {
            self.dispatch(at, plant, verdicts);
        }
    }

    /// Ends the request, exactly once. A request in service releases its plant, a waiting one leaves the queue. A
    /// waiting permit whose verdict is already on its way is spent: departing it does nothing.
    pub fn depart(&mut self, now: Instant, mut permit: Permit, outcome: Outcome, verdicts: &mut Verdicts) {
        self.follow_permit(&permit);
        match permit.stage {
            Stage::Waiting { ticket } => {
                return self.leave_queue(now, &mut permit, (ticket, Reason::ClientLeft));
            }
            Stage::InService => {
                self.release(now, &mut permit, Service::default(), verdicts);
                if outcome == Outcome::Abandoned && !permit.abandoned {
                    self.count_leave(now, &permit);
                }
            }
            Stage::Released => {}
        }
        if permit.tunnel {
            self.published.plants[permit.plant()].tunnels.leave();
        }
        let class = &self.counters.classes[usize::from(permit.class)];
        class.outcomes[outcome as usize].add(1);
        if permit.has_quota && outcome == Outcome::Failed {
            class.timing.failed.add(1);
        }
    }

    /// Counts a request that has gone on for longer than its deadline.
    pub(super) fn count_late(&self, now: Instant, permit: &Permit) {
        if self.is_late(now, permit) {
            self.counters.classes[usize::from(permit.class)].past_deadline.add(1);
        }
    }

    fn is_late(&self, now: Instant, permit: &Permit) -> bool {
        let terms = &self.published.classes[usize::from(permit.class)].terms;
        terms.deadline.is_some_and(|deadline| now.since(permit.arrived) > deadline)
    }

    /// Counts the end of service.
    fn count_release(&self, now: Instant, permit: &Permit, (class, plant): (&ClassCounters, &PlantCounters)) {
        let response_ns = now.nanos_since(permit.arrived);
        if response_ns >= DurationCounters::LEAST_NS {
            count_times(class, response_ns, now.nanos_since(permit.started));
        }
        class.released.add(1);
        class.response_ns.add(response_ns);
        plant.releases.add(1);
        plant.service_ns.add(now.nanos_since(permit.started));
    }

    /// Counts the work of a service, if the plant's workers are searched for or the plant refuses requests. `in_service`
    /// requests were in service until its end. A failed request counts as no work: otherwise a plant would seem to do more, the
    /// more it refuses.
    fn count_work(&self, now: Instant, permit: &Permit, service: Service, in_service: u32) {
        let capacity = &self.published.plants[permit.plant()].capacity;
        let counters = &self.counters.plants[permit.plant()].by_load;
        if capacity.was_lowered_since(permit.started) {
            counters.overtaken.add(1);
        }
        if !service.representative {
            return;
        }
        let words = &self.published.classes[usize::from(permit.class)].words;
        let loads = [permit.in_service_at_start, in_service];
        let service_ns = now.nanos_since(permit.started);
        counters.depart(loads, service_ns, words.usual(permit.level));
        if capacity.refuses() {
            counters.answered[load_bin(loads[0])].add(1);
        }
    }

    /// Counts the end of service in a class that was promised a delay or a ratio.
    #[inline(never)]
    fn leave_quota(&self, now: Instant, permit: &Permit, service: Service) {
        let Some(quota) = &self.published.classes[usize::from(permit.class)].quota else { return };
        quota.leave();
        let timing = &self.counters.classes[usize::from(permit.class)].timing;
        timing.release(now.nanos_since(permit.started), quota.target_ns, quota.clip_ns());
        if service.representative && !permit.abandoned {
            let response_ns = now.nanos_since(permit.arrived);
            timing.answer(response_ns, quota.target_ns);
        }
    }

    /// Teaches the contract of a request's site the size of its response, if that has full quality. For a lighter response the
    /// size at full quality is known only as a mean, which one huge response shifts for seconds.
    #[inline(never)]
    fn learn_size(&self, permit: &Permit, service: Service) {
        let class = &self.published.classes[usize::from(permit.class)];
        if let Some(contract) = &class.contract
            && permit.level == class.top_level
        {
            contract.learn(service.response_bytes);
        }
    }

    /// Ends the reserved work of a request, where deadlines are promised, and teaches the estimates how long it took.
    #[inline(never)]
    fn finish_work(&self, now: Instant, permit: &Permit, service: Service, in_service: u32) {
        let Some(work) = &permit.work else { return };
        let took_ns = self.work_ns(now, permit, in_service);
        self.published.plants[permit.plant()].unfinished.finish(permit.started, work, took_ns / 1000);
        if !permit.abandoned {
            self.count_late(now, permit);
        }
        let class = &self.published.classes[usize::from(permit.class)];
        // A request whose client left counts as late all the same.
        if self.is_late(now, permit) {
            self.published.plants[permit.plant()].unfinished.was_late(work);
        }
        if let Some(deadline) = class.terms.deadline.filter(|_| !permit.has_quota) {
            let service_ns = now.nanos_since(permit.started).min(deadline.as_nanos() as u64);
            let counters = &self.counters.classes[usize::from(permit.class)];
            let at_level = &counters.clipped_services[usize::from(permit.level)];
            at_level.requests.add(1);
            at_level.service_ns.add(service_ns);
        }
        let Some(estimates) = class.estimates.as_ref().filter(|_| self.may_teach(permit, service)) else {
            return;
        };
        let waited_ns = 1000 * u64::from(work.queued_us);
        let own_ns = now.nanos_since(permit.started).saturating_sub(waited_ns);
        let reported = |cost: Duration| estimates.of_reported(cost.as_nanos() as u64, took_ns);
        let times = service.cost.map(reported).map_or((took_ns, own_ns), |cost_ns| (cost_ns, cost_ns));
        estimates.note(work.features, permit.level, times);
    }

    /// Whether the models learn from this service. They do not after a reload, since a level or a plant may mean something
    /// else then.
    fn may_teach(&self, permit: &Permit, service: Service) -> bool {
        service.representative && permit.generation == self.published.generation()
    }

    fn work_ns(&self, now: Instant, permit: &Permit, in_service: u32) -> u64 {
        let workers = self.published.plants[permit.plant()].capacity.workers();
        work_ns(now.nanos_since(permit.started), permit.in_service_at_start, in_service, workers)
    }
}

/// Counts the response time, service time and wait of a released request, if its response time counts.
#[inline(never)]
fn count_times(class: &ClassCounters, response_ns: u64, service_ns: u64) {
    class.response_times.add(response_ns);
    class.service_times.add(service_ns);
    class.waited_ns.add(response_ns.saturating_sub(service_ns));
}

/// Counts a service that the cost models learn from, by the size of its response.
fn count_service(bins: &[ServiceCounters; BINS], response_bytes: u64, work_ns: u64) {
    let bin = SIZE_BINS.iter().position(|bound| response_bytes < *bound).unwrap_or(BINS - 1);
    bins[bin].requests.add(1);
    bins[bin].work_ns.add(work_ns);
    bins[bin].bytes.add(response_bytes);
}

/// A request's part of the plant's busy time: all of its service time while each request has a worker, and s / n of it
/// where n > s requests share s workers. The parts at its start and at its release are averaged.
fn work_ns(service_ns: u64, at_start: u32, at_release: u32, workers: u32) -> u64 {
    if at_start.max(at_release) <= workers {
        return service_ns;
    }
    let part = |n: u32| f64::from(workers) / f64::from(n.max(workers));
    (service_ns as f64 * 0.5 * (part(at_start) + part(at_release))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_the_part_of_a_worker() {
        assert_eq!(work_ns(1000, 3, 8, 8), 1000);
        assert_eq!(work_ns(1000, 16, 16, 8), 500);
        assert_eq!(work_ns(1000, 1, 3, 1), 666);
    }
}
