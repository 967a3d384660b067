//! Who was degraded or turned away most: the heaviest paths, in bounded memory.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi 2005): a fixed number of counters; a path without one takes the smallest
//! over, with its count, which is then the bound of its error. What has more than a [`COUNTERS`]th of everything is
//! certain to be there.

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
    /// At most so many of both may belong to other paths.
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
pub(crate) struct Top {
    counters: Vec<Heavy>,
    /// From a path's hash to its counter. Two paths of one hash are one: with 64 bits nobody will see that.
    places: BTreeMap<u64, usize>,
    hashes: Vec<u64>,
    last: (u64, usize),
}

impl Top {
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
            let weights = self.counters.iter().enumerate().map(|(place, heavy)| (heavy.weight(), place));
            let (weight, place) = weights.min().unwrap_or_default();
            self.places.remove(&self.hashes[place]);
            self.counters[place] = Heavy { error: weight, ..Heavy::default() };
            self.hashes[place] = hash;
            place
        };
        path.clone_into(&mut self.counters[place].path);
        self.places.insert(hash, place);
        place
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

/// FNV-1a, which is quick for short text, with a final mix of its bits.
fn hash(text: &str) -> u64 {
    let mixed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_are_found_among_many() {
        let mut top = Top::default();
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
        let mut top = Top::default();
        for _ in 0..3 {
            top.note("/a", Fate::Rejected);
            top.note("/b", Fate::Degraded);
        }
        top.note("/b", Fate::Rejected);
        let b = Heavy { path: "/b".into(), degraded: 3, rejected: 1, error: 0 };
        assert_eq!(top.sorted()[0], b);
    }
}
