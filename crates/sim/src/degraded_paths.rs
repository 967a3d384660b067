//! Paths whose requests were degraded or rejected most, in bounded memory.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi 2005): the number of counters is fixed; a path without one takes over the
//! smallest, whose count then bounds the error. A path with more than a [`COUNTERS`]th of all counts certainly has a counter.

use std::collections::BTreeMap;

/// How many paths are counted at once.
pub const COUNTERS: usize = 512;

/// A path and what happened to its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heavy {
    /// The path.
    pub path: String,
    /// Requests served at a lower level.
    pub degraded: u64,
    /// Requests turned away.
    pub rejected: u64,
    /// The most requests of both kinds that may belong to other paths.
    pub error: u64,
}

impl Heavy {
    fn weight(&self) -> u64 {
        self.degraded + self.rejected + self.error
    }
}

/// What happened to a request that got less than the full quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Degraded,
    Rejected,
}

/// Counters of the heaviest paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeavyPaths {
    counters: Vec<Heavy>,
    /// A path's hash gives the index of its counter. Two paths with the same hash share a counter, which 64 bits make unlikely.
    places: BTreeMap<u64, usize>,
    hashes: Vec<u64>,
    last: (u64, usize),
    /// No counter is smaller than `floor`; `cursor` is where the search for a counter at the floor goes on.
    floor: u64,
    cursor: usize,
}

impl HeavyPaths {
    pub(crate) fn note(&mut self, path: &str, fate: Fate) {
        let hash = hash(path);
        let place = if self.last.0 == hash && !self.counters.is_empty() {
            self.last.1
        } else {
            self.place(hash, path)
        };
        self.last = (hash, place);
        match fate {
            Fate::Degraded => self.counters[place].degraded += 1,
            Fate::Rejected => self.counters[place].rejected += 1,
        }
    }

    fn place(&mut self, hash: u64, path: &str) -> usize {
        if let Some(place) = self.places.get(&hash) {
            return *place;
        }
        let place = if self.counters.len() < COUNTERS {
            self.counters.push(Heavy::default());
            self.hashes.push(hash);
            self.counters.len() - 1
        } else {
            let place = self.smallest();
            self.places.remove(&self.hashes[place]);
            self.counters[place] = Heavy { error: self.floor, ..Heavy::default() };
            self.hashes[place] = hash;
            place
        };
        path.clone_into(&mut self.counters[place].path);
        self.places.insert(hash, place);
        place
    }

    /// The index of a smallest counter. Counters only grow, so one round finds every counter at the floor, and only then does
    /// the floor rise: a new path costs a step, not a walk over all counters.
    fn smallest(&mut self) -> usize {
        loop {
            let counters = &self.counters;
            let at_floor = |place: &usize| counters[*place].weight() <= self.floor;
            if let Some(place) = (self.cursor..counters.len()).find(at_floor) {
                self.cursor = place + 1;
                return place;
            }
            self.floor = counters.iter().map(Heavy::weight).min().unwrap_or(0);
            self.cursor = 0;
        }
    }

    /// The heaviest first.
    pub(crate) fn sorted(self) -> Vec<Heavy> {
        let mut all = self.counters;
        all.sort_by(|a, b| {
            let certain = |heavy: &Heavy| heavy.degraded + heavy.rejected;
            certain(b).cmp(&certain(a)).then_with(|| a.path.cmp(&b.path))
        });
        all
    }
}

/// Hashes eight bytes at a time: each word is multiplied by an odd number and folded. A collision gains an attacker nothing, so
/// the hash needs no key.
fn hash(text: &str) -> u64 {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ (product >> 64) as u64
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_are_found_among_many() {
        let mut top = HeavyPaths::default();
        for round in 0..20_000_u64 {
            top.note(&format!("/once/{round}"), Fate::Degraded);
            if round % 4 == 0 {
                top.note("/often", Fate::Degraded);
            }
            if round % 10 == 0 {
                top.note("/refused", Fate::Rejected);
            }
        }
        let sorted = top.sorted();
        assert_eq!(sorted.len(), COUNTERS);
        assert_eq!((sorted[0].path.as_str(), sorted[1].path.as_str()), ("/often", "/refused"));
        assert!(
            sorted[0].degraded + sorted[0].error >= 5000 && sorted[0].degraded <= 5000,
            "{:?}",
            sorted[0]
        );
        assert!(
            sorted[1].rejected + sorted[1].error >= 2000 && sorted[1].rejected <= 2000,
            "{:?}",
            sorted[1]
        );
    }

    #[test]
    fn few_paths_are_counted_exactly() {
        let mut top = HeavyPaths::default();
        for _ in 0..3 {
            top.note("/a", Fate::Rejected);
            top.note("/b", Fate::Degraded);
        }
        top.note("/b", Fate::Rejected);
        let b = Heavy { path: "/b".into(), degraded: 3, rejected: 1, error: 0 };
        assert_eq!(top.sorted()[0], b);
    }
}
