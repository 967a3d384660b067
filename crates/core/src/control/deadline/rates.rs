//! The part of a plant that higher ranks take.

use crate::admission::unfinished_work::{HigherRanks, UnfinishedWork};
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
}

/// The gains of the short and the long mean.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.1;
/// The short mean counts once it is this many deviations above the long one.
const RISEN: f64 = 2.5;

impl PlantRates {
    /// Takes the work started in the last `seconds`, and publishes to each rank the part that higher ranks take. The short mean
    /// replaces the long one where it exceeds it by more than chance, so that a rising load shows at once; its larger
    /// uncertainty is published with it.
    pub(crate) fn follow(&mut self, unfinished: &UnfinishedWork, seconds: f64, workers: u32) {
        let slots = unfinished.slots();
        self.slots.resize(slots.len(), SlotRates::default());
        for ((_, slot), own) in slots.iter().zip(&mut self.slots) {
            let (work, squares) = slot.started();
            for (index, now) in [work, squares].into_iter().enumerate() {
                let rate = now.wrapping_sub(own.last[index]) as f64 / seconds;
                own.fast[index] += FAST * (rate - own.fast[index]);
                own.slow[index] += SLOW * (rate - own.slow[index]);
                own.last[index] = now;
            }
        }
        let s = f64::from(workers.max(1));
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
