//! Prefixes with too many different segments below them to distinguish all: names of users, titles of articles, or the guesses
//! of a scanner.
//!
//! The prefix with the most different segments becomes crowded, then the next, until half of the table would be free. Below a
//! crowded prefix only its most frequent segments are distinguished. So a table of bounded size keeps the frequent shapes,
//! whatever else is requested.

use super::found_types::LearnedShape;
use crate::request::shape::{CrowdedPrefixes, DEPTH, ROOT, any_below};
use crate::request::shape_table::{MOST_APART, MOST_CROWDED, SHAPES};
use alloc::{collections::BTreeMap, vec::Vec};

/// The crowded prefixes, and the prefixes one segment longer that stay apart.
#[derive(Debug, Default)]
pub(super) struct Crowded {
    pub(super) prefixes: Vec<u32>,
    pub(super) apart: Vec<u32>,
}

/// The number of segments that stay apart below a crowded prefix, the most frequent ones, and the least part of the prefix's
/// requests that each of them has.
const STAY: usize = MOST_APART / MOST_CROWDED;
const FREQUENT: f64 = 1.0 / 64.0;
/// A prefix with fewer segments is not crowded.
const CROWD: usize = 8;

impl Crowded {
    /// Adds prefixes until half of the table would be free.
    pub(super) fn grow(&mut self, shapes: &[LearnedShape]) {
        // By prefix: its segments and their requests.
        let mut below: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        let known = || shapes.iter().filter(|shape| shape.key != 0);
        for shape in known() {
            let mut parent = ROOT;
            for token in shape.text.tokens[..DEPTH].iter().take_while(|token| **token != 0) {
                *below.entry(parent).or_default().entry(*token).or_default() += shape.requests();
                parent = *token;
            }
        }
        below.retain(|prefix, segments| segments.len() >= CROWD && !self.prefixes.contains(prefix));
        let mut prefixes: Vec<_> = below.into_iter().collect();
        prefixes.sort_by_key(|(_, segments)| core::cmp::Reverse(segments.len()));
        let mut left = known().count();
        for (prefix, segments) in prefixes.into_iter().take(MOST_CROWDED - self.prefixes.len()) {
            if left <= SHAPES / 2 {
                break;
            }
            left = left.saturating_sub(segments.len());
            let all: f64 = segments.values().sum();
            let is_frequent =
                |(token, part): &(u32, f64)| *part >= FREQUENT * all.max(1.0) && *token != any_below(prefix);
            let mut frequent: Vec<(u32, f64)> = segments.into_iter().filter(is_frequent).collect();
            frequent.sort_by(|a, b| b.1.total_cmp(&a.1));
            self.apart.extend(frequent.iter().take(STAY).map(|(token, _)| *token));
            self.prefixes.push(prefix);
        }
    }

    /// Forgets the crowded prefixes that the rule of no type contains, so that a segment that has become frequent is
    /// distinguished.
    pub(super) fn shrink(&mut self, is_needed: impl Fn(u32) -> bool) {
        self.prefixes.retain(|prefix| is_needed(*prefix));
        if self.prefixes.is_empty() {
            self.apart.clear();
        }
    }
}

/// Takes out the shapes that have other tokens now; returns their slots, and the shapes with these tokens.
pub(super) fn thinned(
    shapes: &mut [LearnedShape],
    prefixes: &impl CrowdedPrefixes,
) -> Vec<(usize, LearnedShape)> {
    let mut changed = Vec::new();
    for (slot, shape) in shapes.iter_mut().enumerate().filter(|(_, shape)| shape.key != 0) {
        let tokens = shape.text.parts().tokens(prefixes);
        if tokens != shape.text.tokens {
            let mut own = core::mem::take(shape);
            own.text.follow(tokens);
            changed.push((slot, own));
        }
    }
    changed
}
