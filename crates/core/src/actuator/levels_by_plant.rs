//! The service levels of a class: one for each plant that serves some of its levels.
//!
//! The levels of one plant are neighbours. A class is a cascade of parts, from the highest levels down: each part has
//! an m of its own, between the level below the part and its highest level. A client is first asked in the highest part. If it
//! has none of the part's levels it is passed down to the next part, and below the lowest part it is rejected. Most classes
//! have one part.
//!
//! One hash decides for all parts, so the same clients lose: a part keeps the clients whose hash is below its *cut*, and the
//! next part divides those above the cut anew. What is published of a part is therefore its m with the fraction counted
//! among all clients.

use alloc::vec::Vec;

/// The service levels of one class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LevelsByPlant {
    /// From the highest levels down; at least one.
    parts: Vec<LevelPart>,
}

/// The levels that one plant serves, and their m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LevelPart {
    pub(crate) plant: usize,
    /// The level below its lowest one.
    pub(crate) base: usize,
    /// The highest level that the plant serves.
    pub(crate) top: usize,
    /// In `[base, top]`, as a fraction of the clients that come to this part.
    pub(crate) m: f64,
    /// The part of its requests that it passes down, as allocated.
    passes: f64,
}

impl LevelPart {
    /// The part of its clients that have one of its levels.
    fn keeps(&self) -> f64 {
        (self.m - self.base as f64).clamp(0.0, 1.0)
    }
}

/// The parts of a class, from the highest levels down, by the plants of its levels 1..=M: the plant, the level below, and the
/// highest level.
pub(crate) fn parts(plants: &[usize]) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
    let mut top = plants.len();
    core::iter::from_fn(move || {
        let plant = *plants[..top].last()?;
        let base = plants[..top].iter().rposition(|own| *own != plant).map_or(0, |below| below + 1);
        Some((plant, base, core::mem::replace(&mut top, base)))
    })
}

impl LevelsByPlant {
    /// A class whose levels 1..=M these plants serve, with the m that `m` gives to each plant, as far as it serves it.
    pub(crate) fn new(plants: &[usize], m: impl Fn(usize) -> f64) -> Self {
        let part = |(plant, base, top): (usize, usize, usize)| {
            let m = m(plant).clamp(base as f64, top as f64);
            LevelPart { plant, base, top, m, passes: 1.0 - (m - base as f64).clamp(0.0, 1.0) }
        };
        LevelsByPlant { parts: parts(plants).map(part).collect() }
    }

    pub(crate) fn parts(&self) -> &[LevelPart] {
        &self.parts
    }

    /// m at a plant, if it serves a level.
    pub(crate) fn at(&self, plant: usize) -> Option<f64> {
        self.parts.iter().find(|part| part.plant == plant).map(|part| part.m)
    }

    /// Sets m at a plant, and which part of the requests it passes down; returns whether m has changed.
    pub(crate) fn set(&mut self, plant: usize, m: f64, passes: f64) -> bool {
        let Some(part) = self.parts.iter_mut().find(|part| part.plant == plant) else { return false };
        part.passes = passes;
        let is_other = part.m != m;
        part.m = m;
        is_other
    }

    /// Restores m at a plant. How it was allocated is not known.
    pub(crate) fn restore(&mut self, plant: usize, m: f64) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.plant == plant) {
            part.m = m.clamp(part.base as f64, part.top as f64);
            part.passes = 1.0 - part.keeps();
        }
    }

    /// Raises m of the lowest part to at least this much.
    pub(crate) fn keep_above(&mut self, least: f64) {
        if let Some(lowest) = self.parts.last_mut() {
            lowest.m = lowest.m.max(least);
        }
    }

    /// The part of the requests that comes to the part of this index.
    pub(crate) fn comes_to(&self, index: usize) -> f64 {
        self.parts[..index].iter().map(|part| part.passes).product()
    }

    /// The mean level of the clients, which is m where there is one part.
    pub(crate) fn mean(&self) -> f64 {
        let mut mean = 0.0;
        for part in self.parts.iter().rev() {
            // Below the part's lowest level are those that it passes down, with the mean level found so far.
            let above = part.m.max((part.base + 1) as f64);
            mean = part.keeps() * above + (1.0 - part.keeps()) * mean;
        }
        mean
    }

    /// m of each part, with the fraction counted among all clients.
    pub(crate) fn published(&self) -> impl Iterator<Item = f64> + '_ {
        let mut cut = 0.0;
        self.parts.iter().map(move |part| {
            let whole = libm::floor(part.m).min((part.top - 1) as f64);
            let fraction = cut + (1.0 - cut) * (part.m - whole);
            cut += (1.0 - cut) * part.keeps();
            whole + fraction.min(1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actuator::service_level::{FRACTION_ONE, ServiceLevel};

    /// Levels 1 at plant 1, 2 and 3 at plant 0.
    fn cascade(upper: f64, lower: f64) -> LevelsByPlant {
        LevelsByPlant::new(&[1, 0, 0], |plant| [upper, lower][plant])
    }

    #[test]
    fn neighbouring_levels_of_a_plant_are_a_part() {
        assert_eq!(parts(&[1, 0, 0]).collect::<Vec<_>>(), [(0, 1, 3), (1, 0, 1)]);
        assert_eq!(parts(&[4, 4]).collect::<Vec<_>>(), [(4, 0, 2)]);
        assert_eq!(parts(&[2, 1, 0]).collect::<Vec<_>>(), [(0, 2, 3), (1, 1, 2), (2, 0, 1)]);
    }

    #[test]
    fn one_part_is_published_as_it_is() {
        for m in [0.0, 0.3, 1.0, 1.7, 2.0] {
            let one = LevelsByPlant::new(&[0, 0], |_| m);
            assert_eq!((one.published().collect::<Vec<_>>(), one.mean()), (alloc::vec![m], m));
        }
    }

    #[test]
    fn clients_above_the_cut_of_one_part_are_divided_by_the_next() {
        let found = cascade(1.25, 0.5);
        let words: Vec<_> = found.published().map(ServiceLevel::new).collect();
        let level = |part: f64| {
            let hash = (part * FRACTION_ONE as f64) as u64;
            let upper = words[0].level_of_client(hash);
            if upper > 1 { upper } else { words[1].level_of_client(hash) }
        };
        assert_eq!([0.0, 0.24, 0.26, 0.62, 0.63, 0.99].map(level), [2, 2, 1, 1, 0, 0]);
        assert!((found.mean() - (0.25 * 2.0 + 0.375)).abs() < 1e-12, "{}", found.mean());
        assert!((cascade(2.5, 0.5).mean() - 2.5).abs() < 1e-12);
        assert_eq!(cascade(3.0, 1.0).mean(), 3.0);
    }

    #[test]
    fn what_a_part_passes_comes_to_the_next() {
        let mut found = cascade(3.0, 1.0);
        assert_eq!(found.comes_to(1), 0.0);
        assert!(found.set(0, 1.4, 0.7) && !found.set(0, 1.4, 0.6) && !found.set(7, 1.0, 0.0));
        assert_eq!(
            (found.comes_to(0), found.comes_to(1), found.at(0), found.at(7)),
            (1.0, 0.6, Some(1.4), None)
        );
    }
}
