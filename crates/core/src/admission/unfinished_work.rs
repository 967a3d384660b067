//! Unfinished work: what a plant has taken on and not yet done, by which `deadline.rs` admits requests.
//!
//! Waiting work is summed by *slot*, one for each rank (priority and relative deadline) and, where sites take turns, of each
//! site (`other_sites_work.rs`), and one for each class with a delay. Work in service is one sum ([`ResidualWork`]). The wait
//! that follows from them is in `expected_wait.rs`. Within a priority the earlier deadline goes first. So of the work with a
//! longer deadline only the part that is older than the difference of the two deadlines is ahead of a request
//! (`waiting_by_age.rs`). The rest is passed, and must still be in time behind the request. What a shorter deadline goes on to
//! bring is in `RankWork::is_passed_by`.
//!
//! A class with a delay has a quota of the workers, which it is given before all ranks but higher priorities
//! (`scheduling/queue.rs`): its requests are ahead of a request as far as the quota has room, and its load counts up to it.
//!
//! A request in service that takes longer than a whole deadline holds its worker for as long as requests with that deadline can
//! wait (`held_workers.rs`). For them there is one worker less, and its residual work is not in the sum: a download of ten
//! seconds delays a page by no more than the worker that it holds. If the wait is shorter when its worker and its whole
//! residual time are counted, they are.
//!
//! Every sum has a sum of variances beside it, because actual service times, not expected ones, keep a promise. The work
//! of a request is reserved once, moves into service once, and is finished once. Its permit keeps the amounts that were
//! added, so that the sums return to zero whatever was learned meanwhile.
//!
//! A permit also keeps the number of its slot. So a slot whose rank is no longer promised stays while requests of it wait or
//! are in service, and is then used again for another rank.

use crate::admission::aces::budget::Budget;
use crate::admission::expected_wait::{Wait, at_least};
use crate::admission::headroom::Headroom;
use crate::admission::held_workers::{FreeWorkers, HeldByDeadline, Holding};
use crate::admission::lateness::{AcceptedLateness, Lateness};
use crate::admission::other_sites_work::{Ahead, SiteSlots, by_site};
use crate::admission::rank_work::RankWork;
use crate::admission::residual_work::ResidualWork;
use crate::admission::rule::AdmissionRule;
use crate::admission::slot_key::{NeededSlot, SlotKey};
use crate::admission::waiting_by_age::IN_NO_PART;
use crate::promises::Control;
use crate::request::work::{Cost, CostFeatures, Work};
use crate::scheduling::quota::Quota;
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU32, Ordering};

/// The unfinished work of a plant, and the rule that admits by it.
#[derive(Clone, Default)]
pub(crate) struct UnfinishedWork {
    /// By slot number.
    slots: Vec<SlotOf>,
    /// The slots of each site that takes turns.
    by_site: Arc<[SiteSlots]>,
    /// Behind a pointer, so that a `PublishedPlant` stays small.
    held: Arc<HeldByDeadline>,
    residual: Arc<ResidualWork>,
    /// The recent mean number of workers that no request uses, in thousandths.
    unused: Arc<AtomicU32>,
    pub(super) rule: AdmissionRule,
}

/// A slot, and which requests it is of.
#[derive(Clone)]
pub(crate) struct SlotOf {
    pub(crate) key: SlotKey,
    pub(crate) quota: Option<Arc<Quota>>,
    pub(super) pace_ns: u64,
    /// The index of its deadline among those for which workers are held; none without a deadline.
    held: Option<usize>,
    /// Whether another slot of the same priority has a shorter deadline.
    is_overtaken: bool,
    pub(crate) slot: Arc<RankWork>,
}

/// The workers of a plant at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    /// s, the number of workers.
    pub(crate) all: u32,
    /// Whether a worker is free and no request waits.
    pub(crate) idle: bool,
    /// The residual work of the requests that the workers serve (us), and its variance.
    pub(crate) left: (f64, f64),
    /// The work of the requests in service beyond them, which wait in the server (us), and its variance.
    pub(crate) queued: (f64, f64),
    /// The moment, if it is known, and whether no request was in service or waiting.
    pub(crate) at: Option<Instant>,
    pub(crate) empty: bool,
    /// Whether their number is known: configured, or found.
    pub(crate) known: bool,
}

impl UnfinishedWork {
    /// Gives the requests of each promise a slot, and changes to the admission law that the promises choose.
    pub(crate) fn follow(&mut self, control: &Control, needed: impl Iterator<Item = NeededSlot>) {
        let needed: Vec<NeededSlot> = needed.collect();
        let by_rank = needed.iter().filter(|needed| needed.quota.is_none());
        let ranks: Vec<Rank> = by_rank.map(|needed| needed.key.rank).collect();
        let kept = self.give_slots(needed);
        self.by_site = by_site(&self.slots, &kept).into();
        self.hold(&kept);
        let keys: Vec<SlotKey> = self.slots.iter().map(|own| own.key).collect();
        for own in &mut self.slots {
            let is_sooner = |other: &SlotKey| {
                (other.rank.band, other.site) == (own.key.rank.band, own.key.site)
                    && other.rank < own.key.rank
            };
            own.is_overtaken = own.held.is_some() && keys.iter().any(is_sooner);
        }
        let shortest_ns = ranks.iter().map(|rank| rank.deadline_ns).min().unwrap_or(u64::MAX);
        let slots = self.slots.iter().map(|own| own.key.rank);
        self.rule.follow(control, slots, &ranks, Duration::from_nanos(shortest_ns));
    }

    /// Gives each needed key a slot of its own. Returns by slot whether one of these keys has it.
    fn give_slots(&mut self, needed: Vec<NeededSlot>) -> Vec<bool> {
        let mut promised = alloc::vec![false; self.slots.len()];
        let mut missing: Vec<NeededSlot> = Vec::new();
        for needed in needed {
            if let Some(known) = self.place_of(needed.key) {
                promised[known] = true;
                let own = &mut self.slots[known];
                (own.quota, own.pace_ns) = (needed.quota, needed.pace_ns);
            } else if !missing.iter().any(|own| own.key == needed.key) {
                missing.push(needed);
            }
        }
        let free = promised
            .iter()
            .zip(&self.slots)
            .enumerate()
            .filter(|(_, (kept, own))| !**kept && own.slot.is_empty());
        let mut free = free.map(|(number, _)| number).collect::<Vec<_>>().into_iter();
        for NeededSlot { key, quota, pace_ns } in missing {
            let Some(number) = free.next() else {
                self.slots.push(SlotOf {
                    key,
                    quota,
                    pace_ns,
                    held: None,
                    is_overtaken: false,
                    slot: Arc::default(),
                });
                promised.push(true);
                continue;
            };
            let own = &mut self.slots[number];
            (own.key, own.quota, own.pace_ns, promised[number]) = (key, quota, pace_ns, true);
            own.slot.forget();
        }
        promised
    }

    /// Holds workers for the deadlines of slots that are promised or in use.
    fn hold(&mut self, promised: &[bool]) {
        let due = |(own, promised): (&SlotOf, &bool)| {
            (own.key.rank.deadline_ns < u64::MAX && (*promised || !own.slot.is_empty()))
                .then_some(own.key.rank.deadline_ns)
        };
        let held = Arc::make_mut(&mut self.held);
        held.follow(self.slots.iter().zip(promised).filter_map(due));
        self.slots.iter_mut().for_each(|own| own.held = held.index_of(own.key.rank.deadline_ns));
    }

    fn place_of(&self, key: SlotKey) -> Option<usize> {
        self.slots.iter().position(|own| own.key == key)
    }

    /// The budget, if admission goes by it.
    pub(crate) fn budget(&self) -> Option<&Budget> {
        if let AdmissionRule::Budget(budget) = &self.rule { Some(budget) } else { None }
    }

    /// The number of workers by which the recent use was below this part of them.
    pub(super) fn used_below(&self, part: f64, workers: &Workers) -> f64 {
        f64::from(self.unused.load(Ordering::Relaxed)) * 1e-3 - (1.0 - part) * f64::from(workers.all)
    }

    pub(crate) fn set_unused_workers(&self, workers: f64) {
        self.unused.store((workers * 1e3) as u32, Ordering::Relaxed);
    }

    /// The waiting work of one band of ranks (us).
    pub(crate) fn waiting_us(&self, band: u16) -> u64 {
        let own = self.slots.iter().filter(|own| own.key.rank.band == band);
        own.map(|own| own.slot.waiting.get().0).sum()
    }

    /// All work that was ever refused because it would have been late, for its wait or for its own time (us).
    pub(crate) fn refused_us(&self) -> u64 {
        self.slots.iter().map(|own| own.slot.headroom.refused_us()).fold(0, u64::wrapping_add)
    }

    /// The slots, by number.
    pub(crate) fn slots(&self) -> &[SlotOf] {
        &self.slots
    }

    /// The lengths of the tables that follow promises.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lengths(&self) -> [(&'static str, usize); 3] {
        [("slots", self.slots.len()), ("held", self.held.all().len()), ("rule", self.rule.length())]
    }

    /// Whether nothing is counted any more.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_empty(&self) -> bool {
        let is_used = self.held.all().iter().any(|held| held.is_used());
        !is_used && self.residual.about() == (0.0, 0.0) && self.slots.iter().all(|own| own.slot.is_empty())
    }

    /// The held workers, by deadline.
    pub(crate) fn held(&self) -> &HeldByDeadline {
        &self.held
    }

    /// The work of the requests in service.
    pub(crate) fn residual(&self) -> &ResidualWork {
        &self.residual
    }

    /// Reserves a request's work.
    pub(crate) fn reserve(
        &self,
        now: Instant,
        key: SlotKey,
        (features, cost, stretch): (CostFeatures, Cost, u16),
    ) -> Work {
        let slot = self.place_of(key).or_else(|| self.place_of(key.without_quota())).unwrap_or(0);
        let tag = self.rule.reserve(slot, now, cost.mean_us.into());
        let own = &self.slots[slot];
        let add = || own.slot.by_age.add(now, own.key.rank.deadline_ns, cost.mean_us.into());
        let ring_part = if own.is_overtaken { add() } else { IN_NO_PART };
        let reserved = Work {
            slot: slot as u16,
            tag,
            deadlines_before: 0,
            ring_part,
            queued_us: 0,
            stretch,
            features,
            cost,
        };
        own.slot.waiting.add(reserved.summand());
        reserved
    }

    /// Gives back the work of a request that will not start.
    #[inline(never)]
    pub(crate) fn unreserve(&self, work: &Work) {
        self.slot(work).no_longer_waits(work);
        self.rule.unreserve(work.slot.into(), work.tag, work.cost.mean_us.into());
    }

    /// Gives back the work of a request for which other work is reserved instead.
    pub(crate) fn take_back(&self, work: &Work) {
        self.rule.refuse_too_long(work.slot.into(), work.cost.mean_us.into());
        self.unreserve(work);
    }

    /// The headroom of the rank of a request whose work is reserved.
    pub(super) fn headroom(&self, work: &Work) -> &Headroom {
        &self.slot(work).headroom
    }

    /// The lateness of the rank of a request whose work is reserved.
    pub(super) fn lateness(&self, work: &Work) -> &Lateness {
        &self.slot(work).lateness
    }

    /// Whether one request of the rank at a time is invited, and this one, whose work is reserved, is the only one. `waits`: it
    /// would wait for too long, not take too long even alone. Only admission by unfinished work invites.
    pub(super) fn is_invited(&self, work: &Work, waits: bool) -> bool {
        let own = self.slot(work);
        own.lateness.invites(waits)
            && !own.is_served()
            && own.waiting.get().0 <= work.summand().0
            && matches!(self.rule, AdmissionRule::Work)
    }

    /// Counts an admitted request as late.
    pub(crate) fn was_late(&self, work: &Work) {
        self.slot(work).lateness.add(work.cost.mean_us.into());
    }

    fn slot(&self, work: &Work) -> &RankWork {
        &self.slots[usize::from(work.slot)].slot
    }

    /// Moves the work of a request into service.
    #[inline(never)]
    pub(crate) fn start(&self, now: Instant, work: &mut Work) {
        let slot = self.slot(work);
        slot.no_longer_waits(work);
        slot.start(work);
        self.residual.start(now, work);
        self.held.start(now, work);
    }

    /// Ends the work of a request that started at `started` and took `took_us` of a worker.
    #[inline(never)]
    pub(crate) fn finish(&self, started: Instant, work: &Work, took_us: u64) {
        self.slot(work).in_service.fetch_sub(1, Ordering::Relaxed);
        self.residual.finish(started, work);
        let due = self.slots[usize::from(work.slot)].key.rank.deadline_ns < u64::MAX;
        self.held.finish(started, work, (took_us, due));
        self.rule.finish(work.slot.into(), work.tag, (work.cost.mean_us.into(), took_us));
    }

    /// For how long (us) a request that starts now waits in the server, if more are in service than there are workers.
    pub(crate) fn queued_us(&self, work: &Work, workers: &Workers) -> u32 {
        let holding = self.slots[usize::from(work.slot)].holding(&self.held, workers.at);
        (holding.queued(workers).0 / f64::from(workers.all.max(1))) as u32
    }

    /// The wait of a request whose work is reserved (us), its own work not counted.
    pub(super) fn wait(&self, work: &Work, workers: &Workers) -> Wait {
        let own = &self.slots[usize::from(work.slot)];
        let (rank, all) = (own.key.rank, f64::from(workers.all.max(1)));
        let holding = own.holding(&self.held, workers.at);
        // Work that waits in the server is before all ranks. Its requests have the life of those in service.
        let (work_us, variance) = holding.queued(workers);
        let lives = work_us * workers.left.0 / all;
        let mut ahead = Ahead { work_us, variance, lives, ..Ahead::default() };
        let (mut own_site, mut slack_of_passed) = (0.0, f64::INFINITY);
        for other in &self.slots {
            let (waiting, its_variance) = other.slot.waiting.get();
            let before = match &other.quota {
                Some(quota) if !core::ptr::eq(own, other) && !other.key.rank.yields_to(&rank) => {
                    other.slot.within(quota, waiting as f64)
                }
                _ if other.takes_turns_with(own) || other.key.rank.band > rank.band => continue,
                _ if other.key.rank.band < rank.band => waiting as f64,
                _ => {
                    own.slot.is_passed_by(other, rank, &mut ahead.same);
                    slack_of_passed = slack_of_passed.min(other.slack_behind(rank, workers));
                    other.older(waiting as f64, workers.at, rank)
                }
            };
            ahead.work_us += before;
            ahead.lives += before * f64::from(other.slot.life_us.load(Ordering::Relaxed));
            ahead.variance += its_variance as f64 * before / waiting.max(1) as f64;
            own_site += if own.is_of_site(other) { before } else { 0.0 };
        }
        if rank.takes_turns() {
            ahead.add_turns(&self.by_site, (&self.slots, own), (own_site, work.cost.mean_us), all);
        }
        let Ahead { work_us: ahead, variance, lives, same } = ahead;
        let (own_us, own_variance) = work.mean_and_variance();
        let life = lives / ahead.max(1.0);
        let ahead = (ahead - own_us as f64).max(0.0);
        let FreeWorkers { free, workers: s, serving_variance } = holding.until_free(workers, ahead, life);
        let varies = (variance - own_variance as f64).max(0.0);
        let variance = (varies + free.serving * serving_variance) / (s * s) + free.spread * free.spread;
        let third = 2.0 * varies * varies / ahead.max(1.0) / (s * s * s);
        // What ranks take is published as a part of all workers.
        let (slot, of_free) = (&own.slot, all / s);
        let taken = |word: &AtomicU32| f64::from(word.load(Ordering::Relaxed)) * of_free;
        let (left, unsure) = (1.0 - taken(&slot.taken) * 1e-6, taken(&slot.unsure) * 1e-6);
        let noise_us = taken(&slot.noise_us) * of_free;
        let (same, held) = (same.of_free(of_free), at_least(s as u32, ahead * holding.per_work));
        Wait { ahead: free.after, variance, third, left, noise_us, unsure, same, held, slack_of_passed }
    }

    /// Whether a request with reserved work would find an idle worker if no request of a lower rank were there, and less
    /// than `part` of the workers would be used.
    pub(super) fn would_idle(&self, work: &Work, part: f64, workers: &Workers) -> bool {
        let own = &self.slots[usize::from(work.slot)];
        let unused = f64::from(own.slot.unused.load(Ordering::Relaxed)) * 1e-6;
        if unused <= 1.0 - part {
            return false;
        }
        let before = || self.slots.iter().filter(|other| other.is_before(own) || other.is_beside(own));
        let in_service: u32 = before().map(|other| other.slot.in_service.load(Ordering::Relaxed)).sum();
        let waiting: u64 = before().map(|other| other.slot.waiting.get().0).sum();
        in_service < workers.all && waiting <= work.summand().0
    }

    /// The chance of being late with which a request of this rank is admitted now.
    pub(crate) fn accepted_lateness(&self, key: SlotKey, promised: AcceptedLateness) -> AcceptedLateness {
        match self.place_of(key) {
            Some(slot) if matches!(self.rule, AdmissionRule::Work) => {
                self.slots[slot].slot.lateness.accepted(promised)
            }
            _ => promised,
        }
    }

    /// The expected wait of a request of this rank now.
    pub(crate) fn wait_of(&self, key: SlotKey, workers: Workers) -> Duration {
        let Some(slot) = self.place_of(key) else { return Duration::ZERO };
        if workers.idle {
            return Duration::ZERO;
        }
        let nothing = Work {
            slot: slot as u16,
            tag: 0,
            deadlines_before: 0,
            ring_part: IN_NO_PART,
            queued_us: 0,
            stretch: Work::ONCE,
            features: CostFeatures::default(),
            cost: Cost::default(),
        };
        Duration::from_micros(self.wait(&nothing, &workers).expected() as u64)
    }

    /// All work that waits or is in service, in seconds of one worker.
    pub(crate) fn unfinished_seconds(&self) -> f64 {
        let waiting: u64 = self.slots.iter().map(|own| own.slot.waiting.get().0).sum();
        (waiting as f64 + self.residual.about().0) * 1e-6
    }
}

impl SlotOf {
    /// Whether its requests come before those of another slot, as far as its quota has room if it has one.
    pub(crate) fn is_before(&self, other: &SlotOf) -> bool {
        let (own, its) = (&self.key, &other.key);
        own.rank.is_above(&its.rank, own.site == its.site)
            || (self.quota.is_some() && !own.rank.yields_to(&its.rank))
    }

    /// Whether neither comes before the other: they are of one priority, or of sites that take turns.
    pub(crate) fn is_beside(&self, other: &SlotOf) -> bool {
        self.takes_turns_with(other) || self.key.rank.band == other.key.rank.band
    }

    /// Whether both are of one site and one kind.
    fn is_of_site(&self, other: &SlotOf) -> bool {
        (self.key.site, self.key.rank.kind()) == (other.key.site, other.key.rank.kind())
    }

    /// Whether it is of another site, which takes turns with that of the other slot.
    fn takes_turns_with(&self, other: &SlotOf) -> bool {
        self.key.site != other.key.site && self.key.rank.kind() == other.key.rank.kind()
    }

    /// The workers that are held longer than its requests can wait.
    fn holding(&self, held: &HeldByDeadline, now: Option<Instant>) -> Holding {
        self.held.map_or(Holding::default(), |index| held.all()[index].holding(now))
    }

    /// The least slack of the requests of this slot that one of another rank of the same priority would pass.
    fn slack_behind(&self, rank: Rank, workers: &Workers) -> f64 {
        let (deadline_ns, all) = (self.key.rank.deadline_ns, workers.all.max(1));
        let passed_ns = deadline_ns.saturating_sub(rank.deadline_ns);
        let now = workers.at.filter(|_| self.is_overtaken && passed_ns > 0);
        now.map_or(f64::INFINITY, |now| self.slot.by_age.least_slack(now, deadline_ns, passed_ns, all))
    }

    /// The part of this waiting work of the same priority that goes before a request of another rank that comes now.
    fn older(&self, waiting_us: f64, now: Option<Instant>, than: Rank) -> f64 {
        let more_ns = self.key.rank.deadline_ns.saturating_sub(than.deadline_ns);
        if more_ns == 0 {
            return waiting_us;
        }
        let Some(now) = now.filter(|_| self.is_overtaken) else {
            return waiting_us * (than.deadline_ns as f64 / self.key.rank.deadline_ns as f64);
        };
        (waiting_us - self.slot.by_age.lately(now, self.key.rank.deadline_ns, more_ns)).max(0.0)
    }
}
