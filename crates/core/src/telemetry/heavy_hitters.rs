//! The clients of a class that carry more than a tenth of its load.
//!
//! All requests behind one address have one hash, so for a heavy address the fraction F would be a switch. Such clients are
//! served by chance instead, request by request. They are found in a sample: each lane notes every 2^k-th arrival, spread over
//! the whole period, and `tick` adds the notes to decaying counts of about [`MEMORY`] samples. A client counts as heavy when
//! its share exceeds a tenth by two standard errors, so that none of twenty equal clients does; it stays heavy down to a share
//! of 0.07.
//!
//! Exact counts would cost a table write per request for a question that 300 samples answer.

use crate::telemetry::counters::{LaneCounters, RECENT};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::Ordering;
use libm::sqrt;

/// The most clients that can each carry more than a tenth.
pub(crate) const MOST_HEAVY: usize = 9;

const ENTER: f64 = 0.1;
const STAY: f64 = 0.07;
/// Notes of a busy lane in one period: a few periods fill the memory, and a hundred sites have as many lists of notes to sort.
const ENOUGH: u64 = 32;
/// Samples that are remembered.
const MEMORY: f64 = 300.0;
/// The fewest samples that distinguish heavy clients from others.
const FEWEST: f64 = 30.0;
/// Arrivals in one lane from which on its notes are read; fewer are left for a later period, since they are no evidence. The
/// notes hold many more.
const BATCH: u64 = FEWEST as u64 + 2;
/// The same while the memory is full, when new notes show little more than the last ones. It is less than twice [`ENOUGH`],
/// beyond which fewer arrivals would be noted, and the memory would reach twice as far back.
const LATER_BATCH: u64 = ENOUGH + 24;

/// What is known of a class's clients.
pub(crate) struct HeavyHitters {
    /// Clients, in order, and their counts.
    samples: Vec<(u64, f64)>,
    total: f64,
    /// Arrivals of each lane when its notes were last read.
    arrivals: Vec<u64>,
    heavy: Vec<u64>,
    note_shift: u32,
}

/// Buffers, the same for all classes, so that they stay in the processor's caches.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The notes of a period.
    fresh: Vec<u64>,
    /// The samples merged with the notes.
    merged: Vec<(u64, f64)>,
    /// The heavy clients found, and their shares.
    heavy: Vec<(f64, u64)>,
}

impl HeavyHitters {
    pub(crate) fn new(lanes: usize) -> Self {
        HeavyHitters {
            samples: Vec::new(),
            total: 0.0,
            arrivals: alloc::vec![0; lanes],
            heavy: Vec::new(),
            note_shift: 0,
        }
    }

    /// The heavy clients' hashes, heaviest first.
    pub(crate) fn heavy(&self) -> &[u64] {
        &self.heavy
    }

    /// k for the next period.
    pub(crate) fn note_shift(&self) -> u32 {
        self.note_shift
    }

    /// Takes the notes of a period, or of several in which little came; returns false if still too little has come.
    pub(crate) fn observe(
        &mut self,
        lanes: &[Arc<LaneCounters>],
        class: usize,
        scratch: &mut Scratch,
    ) -> bool {
        let came = |(lane, before): (&Arc<LaneCounters>, &u64)| {
            lane.classes[class].arrivals.get().wrapping_sub(*before)
        };
        let is_full = self.total >= MEMORY - LATER_BATCH as f64;
        let batch = if is_full { LATER_BATCH } else { BATCH };
        if lanes.iter().zip(&self.arrivals).all(|lane| came(lane) < batch) {
            return false;
        }
        let shift = self.note_shift;
        let mut most = 0;
        scratch.fresh.clear();
        for (lane, before) in lanes.iter().zip(&mut self.arrivals) {
            let counters = &lane.classes[class];
            let arrivals = counters.arrivals.get();
            // A lane notes the arrivals whose number is a multiple of 2^k.
            let (first, end) = (before.div_ceil(1 << shift), arrivals.div_ceil(1 << shift));
            let first = first.max(end.saturating_sub(RECENT as u64));
            let note = |number: u64| counters.recent[number as usize % RECENT].load(Ordering::Relaxed);
            scratch.fresh.extend((first..end).map(note));
            most = most.max(arrivals.wrapping_sub(*before));
            *before = arrivals;
        }
        self.note_shift = (most / ENOUGH + 1).next_power_of_two().trailing_zeros();
        self.remember(scratch);
        self.judge(scratch);
        true
    }

    fn remember(&mut self, Scratch { fresh, merged, .. }: &mut Scratch) {
        let came = fresh.len() as f64;
        let keep = (MEMORY / (self.total + came)).min(1.0);
        // Both lists are in order, so one walk merges them.
        fresh.sort_unstable();
        let mut fresh = fresh.iter().copied().peekable();
        merged.clear();
        for (client, count) in &self.samples {
            while let Some(other) = fresh.next_if(|other| other < client) {
                add(merged, other);
            }
            let kept = count * keep;
            if kept > 0.5 {
                merged.push((*client, kept));
            }
        }
        fresh.for_each(|client| add(merged, client));
        self.samples.clone_from(merged);
        self.total = self.total * keep + came;
    }

    fn judge(&mut self, Scratch { heavy, .. }: &mut Scratch) {
        if self.total < FEWEST {
            return;
        }
        let enter = ENTER * self.total + 2.0 * sqrt(ENTER * (1.0 - ENTER) * self.total);
        let stay = STAY * self.total;
        heavy.clear();
        for (client, count) in &self.samples {
            if *count > stay && (*count > enter || self.heavy.contains(client)) {
                heavy.push((*count, *client));
            }
        }
        heavy.sort_by(|a, b| b.0.total_cmp(&a.0));
        heavy.truncate(MOST_HEAVY);
        self.heavy.clear();
        self.heavy.extend(heavy.iter().map(|(_, client)| *client));
    }
}

/// Adds one sample of a client that comes last in the order.
fn add(samples: &mut Vec<(u64, f64)>, client: u64) {
    match samples.last_mut() {
        Some((last, count)) if *last == client => *count += 1.0,
        _ => samples.push((client, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Periods of `rate` arrivals; `shares` are the first clients' parts, the rest is spread over ten thousand.
    fn found(rate: u64, periods: u32, shares: &[f64]) -> usize {
        let lane = Arc::new(LaneCounters::default().grown(1, 1));
        let lanes = [lane.clone()];
        let mut crowd = HeavyHitters::new(1);
        let mut random = Random::new(3);
        for _ in 0..periods {
            for _ in 0..rate {
                let counters = &lane.classes[0];
                let arrivals = counters.arrivals.get();
                let mut at = random.uniform();
                let mut client = 1000 + random.below(10_000);
                for (number, share) in shares.iter().enumerate() {
                    if (0.0..*share).contains(&at) {
                        client = number as u64;
                    }
                    at -= share;
                }
                if arrivals & ((1 << crowd.note_shift()) - 1) == 0 {
                    let index = (arrivals >> crowd.note_shift()) as usize % RECENT;
                    counters.recent[index].store(client, Ordering::Relaxed);
                }
                counters.arrivals.add(1);
            }
            crowd.observe(&lanes, 0, &mut Scratch::default());
        }
        crowd.heavy().len()
    }

    #[test]
    fn finds_the_heavy_at_any_rate_and_nobody_else() {
        for (rate, periods) in [(3, 60), (20, 20), (500, 5), (20_000, 5)] {
            assert_eq!(found(rate, periods, &[1.0]), 1, "one client only, {rate} a period");
            assert_eq!(found(rate, periods, &[0.4, 0.3]), 2, "{rate} a period");
            assert_eq!(found(rate, periods, &[]), 0, "ten thousand clients, {rate} a period");
        }
        for rate in [20, 500, 20_000] {
            assert_eq!(found(rate, 30, &[0.05; 20]), 0, "twenty equal clients, {rate} a period");
        }
    }
}
