//! The part of a plant that higher ranks take.

use crate::admission::unfinished_work::{HigherRanks, Slot, UnfinishedWork};
use alloc::vec::Vec;
use libm::sqrt;

/// How fast each rank brings work to a plant.
#[derive(Default)]
pub(crate) struct PlantRates {
    slots: Vec<SlotRates>,
}

/// The rates of one rank.
#[derive(Clone, Default)]
struct SlotRates {
    /// Started work (us) and the sum of its squares (us^2) at the last step.
    last: [u64; 2],
    /// How fast both grow (1/s), as a short and a long mean.
    fast: [f64; 2],
    slow: [f64; 2],
    /// The refused work (us) at the last step, and the part of the work that is refused.
    last_refused: u64,
    refused: f64,
}

/// The gains of the short and the long mean.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.1;
/// The short mean counts once it is this many deviations above the long one.
const RISEN: f64 = 2.5;
/// The gain of the mean of refusals.
const REFUSED: f64 = 0.2;

impl PlantRates {
    /// Takes the work started in the last `seconds`, and publishes to each rank the part that higher ranks take. The short mean
    /// replaces the long one where it exceeds it by more than chance, so that a rising load shows at once; its larger
    /// uncertainty is published with it.
    pub(crate) fn follow(&mut self, unfinished: &UnfinishedWork, seconds: f64, workers: u32) {
        let slots = unfinished.slots();
        self.slots.resize(slots.len(), SlotRates::default());
        for ((_, slot), own) in slots.iter().zip(&mut self.slots) {
            let (work, squares) = slot.started();
            own.follow_refusals(slot, work);
            for (index, now) in [work, squares].into_iter().enumerate() {
                let rate = now.wrapping_sub(own.last[index]) as f64 / seconds;
                own.fast[index] += FAST * (rate - own.fast[index]);
                own.slow[index] += SLOW * (rate - own.slow[index]);
                own.last[index] = now;
            }
            slot.set_life(own.slow[1] / own.slow[0].max(1.0) / 2.0);
        }
        let s = f64::from(workers.max(1));
        let load: f64 = self.slots.iter().map(|own| own.fast[0].max(own.slow[0]) * 1e-6).sum();
        unfinished.set_unused_workers((s - load).max(0.0));
        for (rank, slot) in slots {
            let higher = || slots.iter().zip(&self.slots).filter(|((other, _), _)| other < rank);
            let sum = |of: fn(&SlotRates) -> f64| higher().map(|(_, own)| of(own)).sum::<f64>() * 1e-6;
            let (fast, slow) = (sum(|own| own.fast[0]) / s, sum(|own| own.slow[0]) / s);
            // With compound Poisson arrivals the variance of the work in a time w is w times the rate of squares, and s
            // workers share it.
            let noise_us = sum(|own| own.slow[1]).max(sum(|own| own.fast[1])) / (s * s);
            let unsure = |gain: f64| sqrt(noise_us * 1e-6 / seconds * gain / (2.0 - gain));
            let has_risen = fast - slow > RISEN * unsure(FAST);
            let (part, unsure) = if has_risen { (fast, unsure(FAST)) } else { (slow, unsure(SLOW)) };
            slot.set_higher_ranks(&HigherRanks { part: part.min(1.0), noise_us, unsure });
        }
    }
}

impl SlotRates {
    /// Learns which part of the rank's work is refused.
    fn follow_refusals(&mut self, slot: &Slot, started: u64) {
        let all = slot.headroom.refused_us();
        let refused = all.wrapping_sub(self.last_refused) as f64;
        let admitted = started.wrapping_sub(self.last[0]) as f64;
        self.last_refused = all;
        if refused + admitted > 0.0 {
            self.refused += REFUSED * (refused / (refused + admitted) - self.refused);
        }
        slot.headroom.follow(self.refused);
    }
}
