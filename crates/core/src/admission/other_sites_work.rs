//! What other sites with a contract take before a request, where sites take turns (`scheduling/site_shares.rs`).
//!
//! A site with waiting requests has its share of the starts, whatever waits at other sites. So until a request of site i
//! starts, another site j starts `R_j / R_i` requests for each request of site i that starts with or before it. The work of
//! site j that waits, and that it goes on to bring, counts up to that number.

use crate::admission::expected_wait::SamePriority;
use crate::admission::unfinished_work::SlotOf;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

/// The numbers of the slots of one site and kind.
#[derive(Clone, Debug)]
pub(super) struct SiteSlots {
    kind: u16,
    site: u16,
    /// The time in which its contract promises one request (ns).
    pace_ns: u64,
    slots: Vec<u16>,
}

/// The work ahead of a request.
#[derive(Default)]
pub(super) struct Ahead {
    /// The sum of the work, and its variance.
    pub(super) work_us: f64,
    pub(super) variance: f64,
    /// The sum of the work times the life of its requests in service.
    pub(super) lives: f64,
    pub(super) same: SamePriority,
}

/// What one site has at a plant.
#[derive(Default)]
struct SiteWork {
    waiting: f64,
    variance: f64,
    lives: f64,
    /// The part of the plant that it took recently, and the variance of the work that it brings in a unit of time (us).
    load: f64,
    noise_us: f64,
    /// The mean work of its requests (us).
    mean_us: f64,
}

/// The slots of each site that takes turns. A class with a delay has a quota instead. `promised`: by slot, whether the present
/// promises need it.
pub(super) fn by_site(slots: &[SlotOf], promised: &[bool]) -> Vec<SiteSlots> {
    let mut all: Vec<SiteSlots> = Vec::new();
    for ((number, own), promised) in slots.iter().enumerate().zip(promised) {
        let (Some(site), None) = (own.key.site, own.key.quota_of) else { continue };
        let (kind, number) = (own.key.rank.kind(), number as u16);
        match all.iter_mut().find(|known| (known.kind, known.site) == (kind, site)) {
            Some(known) => {
                known.slots.push(number);
                known.pace_ns = if *promised { own.pace_ns } else { known.pace_ns };
            }
            None => all.push(SiteSlots { kind, site, pace_ns: own.pace_ns, slots: alloc::vec![number] }),
        }
    }
    all
}

impl SiteSlots {
    fn work(&self, slots: &[SlotOf]) -> SiteWork {
        let (mut sum, mut rate) = (SiteWork::default(), 0.0);
        for own in self.slots.iter().map(|number| &slots[usize::from(*number)].slot) {
            let (waiting, variance) = own.waiting.get();
            let (load, mean) =
                (f64::from(own.load.load(Relaxed)) * 1e-6, f64::from(own.mean_us.load(Relaxed)));
            sum.waiting += waiting as f64;
            sum.variance += variance as f64;
            sum.lives += waiting as f64 * f64::from(own.life_us.load(Relaxed));
            sum.load += load;
            sum.noise_us += f64::from(own.load_noise_us.load(Relaxed));
            rate += load / mean.max(1.0);
        }
        sum.mean_us = if rate > 0.0 { sum.load / rate } else { 0.0 };
        sum
    }
}

impl Ahead {
    /// Adds what other sites of the kind take before a request. `own_site`: its site's work that starts with or before it.
    pub(super) fn add_turns(
        &mut self,
        sites: &[SiteSlots],
        (slots, own): (&[SlotOf], &SlotOf),
        (own_site, own_us): (f64, u32),
        workers: f64,
    ) {
        let mean = match own.slot.mean_us.load(Relaxed) {
            0 => f64::from(own_us),
            known => f64::from(known),
        };
        let turns_ns = (own_site / mean.max(1.0)).max(1.0) * own.pace_ns as f64;
        let is_beside =
            |site: &&SiteSlots| Some(site.site) != own.key.site && site.kind == own.key.rank.kind();
        for site in sites.iter().filter(is_beside) {
            let its = site.work(slots);
            let mean_us = if its.mean_us > 0.0 { its.mean_us } else { mean };
            let most = (turns_ns / site.pace_ns.max(1) as f64).max(1.0) * mean_us;
            let before = its.waiting.min(most);
            let part = before / its.waiting.max(1.0);
            self.work_us += before;
            self.variance += part * its.variance;
            self.lives += part * its.lives;
            let brings = (most - before) / workers;
            self.same.add(its.load, its.noise_us, brings / its.load.max(1e-6));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::admission::slot_key::{NeededSlot, SlotKey};
    use crate::admission::unfinished_work::UnfinishedWork;
    use crate::promises::Control;
    use crate::scheduling::rank::Rank;
    use crate::time::Duration;

    /// A rank that is no longer promised keeps its slot while a request of it is in service, with the pace of the former
    /// contract.
    #[test]
    fn after_a_reload_the_pace_of_a_site_is_that_of_its_contract_as_it_is_now() {
        let promise = |millis: u64, pace_ns: u64| {
            let rank = Rank::guaranteed(1, Some(Duration::from_millis(millis)));
            [NeededSlot { key: SlotKey::new(rank, 0, None), quota: None, pace_ns }].into_iter()
        };
        let mut work = UnfinishedWork::default();
        let pace = |work: &UnfinishedWork| {
            let promised: Vec<bool> = work.slots().iter().map(|own| own.slot.is_empty()).collect();
            by_site(work.slots(), &promised).iter().map(|site| site.pace_ns).collect::<Vec<_>>()
        };
        work.follow(&Control::default(), promise(100, 1_000));
        work.follow(&Control::default(), promise(100, 2_000));
        assert_eq!(pace(&work), [2_000], "the same slot");
        work.slots()[0].slot.in_service.fetch_add(1, Relaxed);
        work.follow(&Control::default(), promise(200, 3_000));
        assert_eq!(
            (work.slots().len(), pace(&work)),
            (2, alloc::vec![3_000]),
            "the slot of before is in use"
        );
        work.follow(&Control::default(), promise(200, 4_000));
        assert_eq!(pace(&work), [4_000]);
    }
}
