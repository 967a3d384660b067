//! The state of a site's types, as it is kept for the next engine: the costs of their requests, and the types that were
//! found.
//!
//! Costs describe the server and hold as long as it does. Without kept costs, a restart under overload would admit requests by
//! the expected costs of types until each type has been served: requests of ten times the cost would be admitted as if they
//! were like the others. The sums by which types are found are not kept: they hold a few thousand requests and grow again, and
//! no type is merged before its own sums are known anew.

use super::learned_type::LearnedType;
use super::types::SiteTypes;
use crate::model::{ServiceHistogram, SizeLaw, TIME_BINS};
use crate::promises::DEFAULT_TYPES;
use crate::request::shape::Tokens;
use crate::request::shape_table::{MOST_APART, MOST_CROWDED, MOST_FOUND, TypeRule};
use alloc::{string::String, vec::Vec};

/// The state of a site's types.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownTypes {
    /// The costs of requests, by type and level.
    pub costs: Vec<KnownTypeCost>,
    /// The types that were found, parents before their children.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub found: Vec<KnownRule>,
    /// Prefixes below which not all segments are distinguished, by their tokens.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub crowded: Vec<u32>,
    /// The prefixes below the crowded ones that are distinguished.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub apart: Vec<u32>,
}

/// The cost of a type's requests at a level, in microseconds; for announced costs in millionths of the announcement.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownTypeCost {
    /// The type's name; a found type has a placeholder with its index.
    pub name: String,
    /// The name of the level at which these requests were served.
    pub level: String,
    /// Whether this is the cost of requests that announce one.
    pub announced: bool,
    /// The number of requests that were served.
    pub requests: u64,
    /// The mean service time (us).
    pub mean: f64,
    /// The variance of one request about the mean (us^2).
    pub variance: f64,
    /// The number of requests behind the mean.
    pub weight: f64,
    /// The time that each whole 64 KB of a request's body adds (us).
    pub block: f64,
    /// The numbers of requests by service time: the bins that hold some, with their counts.
    pub times: Vec<(u16, f32)>,
}

/// A type that was found: the requests of another type that have a feature.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownRule {
    /// The type's name among those of the site.
    pub name: String,
    /// The feature as text.
    pub value: String,
    /// The rule's number among the found types of the site.
    pub number: u8,
    /// The number of the type that it divides.
    pub parent: u8,
    /// The kind of the feature: a prefix of the path, an extension, a key of the query, or the method.
    pub kind: u8,
    /// The hash of the feature's value.
    pub token: u32,
}

impl KnownTypes {
    /// Whether all its numbers are possible.
    fn is_possible(&self) -> bool {
        let costs = self.costs.iter().all(KnownTypeCost::is_possible);
        let first = DEFAULT_TYPES.len() as u8;
        let is_before =
            |index: usize, number: u8| self.found[..index].iter().any(|known| known.number == number);
        let rules = self.found.iter().enumerate().all(|(index, rule)| {
            (first..first + MOST_FOUND as u8).contains(&rule.number)
                && !is_before(index, rule.number)
                && (rule.parent < first || is_before(index, rule.parent))
                && usize::from(rule.kind) < Tokens::default().len()
        });
        costs && rules && self.crowded.len() <= MOST_CROWDED && self.apart.len() <= MOST_APART
    }
}

impl KnownTypeCost {
    fn is_possible(&self) -> bool {
        let numbers = [self.mean, self.variance, self.weight, self.block];
        let can_be = |value: f64| value.is_finite() && value >= 0.0;
        let counts = |(bin, count): &(u16, f32)| usize::from(*bin) < TIME_BINS && can_be((*count).into());
        numbers.into_iter().all(can_be) && self.weight > 0.0 && self.times.iter().all(counts)
    }
}

impl KnownRule {
    /// The rule by which requests are looked up.
    pub(super) fn rule(&self) -> TypeRule {
        let KnownRule { number, parent, kind, token, .. } = *self;
        TypeRule { number, parent, kind, token }
    }
}

impl SiteTypes {
    /// The state that is to be kept.
    pub(super) fn known(&self) -> KnownTypes {
        let cost = |(row, learned): (usize, &LearnedType)| {
            let (name, level, announced) = self.row_names(row);
            let (mean, variance, weight) = learned.time.parts();
            KnownTypeCost {
                name: name.into(),
                level: level.into(),
                announced,
                requests: learned.requests,
                mean,
                variance,
                weight,
                block: learned.size.slope(),
                times: learned.times.counts().collect(),
            }
        };
        let costs = self.rows.iter().enumerate().filter(|(_, learned)| learned.time.is_known()).map(cost);
        let mut known = KnownTypes { costs: costs.collect(), ..KnownTypes::default() };
        if let Some(found) = &self.found {
            known.found.clone_from(&found.rules);
            (known.crowded, known.apart) = (found.crowded.prefixes.clone(), found.crowded.apart.clone());
        }
        known
    }

    /// Goes on from a kept state; the costs of other types and levels are left out. Returns false if the state is impossible.
    pub(super) fn restore(&mut self, known: &KnownTypes) -> bool {
        if !known.is_possible() {
            return false;
        }
        if let Some(found) = &mut self.found {
            found.restore(known.found.clone(), (&known.crowded, &known.apart));
        }
        for row in 0..self.rows.len() {
            let own = self.row_names(row);
            let same =
                |cost: &&KnownTypeCost| (cost.name.as_str(), cost.level.as_str(), cost.announced) == own;
            let Some(cost) = known.costs.iter().find(same) else { continue };
            let time = self.rows[row].time.restored(cost.mean, cost.variance, cost.weight);
            let times = ServiceHistogram::of(&cost.times);
            let (size, requests) = (SizeLaw::of(cost.block), cost.requests);
            self.rows[row] = LearnedType { times, size, requests, ..LearnedType::new(time) };
            self.came_of_late(row);
            self.publish(row);
        }
        true
    }
}
