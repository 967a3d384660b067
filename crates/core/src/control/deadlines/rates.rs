//! What higher ranks take of a plant.

use crate::backlog::Backlog;
use alloc::vec::Vec;

/// How fast each rank brings work to a plant.
#[derive(Default)]
pub(super) struct PlantRates {
    slots: Vec<SlotRates>,
}

/// Of one rank.
#[derive(Clone, Default)]
struct SlotRates {
    /// Started work (us) and its squares (us^2) at the last look.
    last: [u64; 2],
    /// How fast both grow (1/s), by the last looks and by the last ten or so.
    fast: [f64; 2],
    slow: [f64; 2],
}

/// What one look counts for against all before.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.1;

impl PlantRates {
    /// Looks at what was started in the last `seconds`, and says to each rank what the higher ones take. Of two means the
    /// larger counts: a load that rises is seen at once, and chance does not make it look small.
    pub(super) fn follow(&mut self, backlog: &Backlog, seconds: f64, workers: u32) {
        let slots = backlog.slots();
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
            let sum = |of: fn(&SlotRates) -> f64| higher().map(|(_, own)| of(own)).sum::<f64>();
            let work = sum(|own| own.fast[0]).max(sum(|own| own.slow[0]));
            let squares = sum(|own| own.fast[1]).max(sum(|own| own.slow[1]));
            // Of compound Poisson arrivals the variance in w is w times the rate of squares; and s workers do it.
            slot.set_taken((work * 1e-6 / s).min(1.0), squares * 1e-6 / (s * s));
        }
    }
}
