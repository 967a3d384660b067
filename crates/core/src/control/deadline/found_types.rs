//! The types of requests at a site without configured types, found by the features of requests and the times that they took.
//!
//! Each type is the part of another type that has one feature: a prefix of the path, an extension, a key of the query, a method
//! (`request/shape`). So types are a tree, whose roots are the default types. When enough requests were released, one of these
//! changes is made:
//!
//! - a type whose requests cost like the rest of its parent's is merged into it;
//! - else the feature that explains most of the variance within some type, significantly, becomes a type ([`best_split`]). If
//!   there are [`MOST_FOUND`] types, the type that explains least is removed if the new type explains more than twice as much;
//!   the new type is then made at a later look.
//!
//! Sums are kept by shape, so the cost of a new type is known from the requests before it, and so is that of the rest of its
//! parent. The sums forget: they are halved when they hold more than [`MEMORY`] requests and a minute has passed.

use super::crowded_prefixes::{Crowded, thinned};
use super::found_conditions::{Features, feature};
use super::known_types::KnownRule;
use crate::model::{Alike, CostDifference, Moments, best_split};
use crate::promises::DEFAULT_TYPES;
use crate::request::shape::{DEPTH, Tokens, any_below};
use crate::request::shape_table::{MOST_FOUND, SHAPES, ShapeTable, ShapeText, type_of};
use crate::telemetry::status::FoundType;
use alloc::{string::String, sync::Arc, vec::Vec};

/// The placeholders for the names of types that may be found. An operator cannot give such a name, and no such name is shown.
pub(super) fn room() -> impl Iterator<Item = String> {
    (0..MOST_FOUND).map(|n| alloc::format!("{ROOM}{n}"))
}

pub(super) fn is_room(name: &str) -> bool {
    name.starts_with(ROOM)
}

const ROOM: &str = "found ";

/// The types that were found at one site, and the sums by which they are found.
pub(super) struct FoundTypes {
    pub(super) table: Arc<ShapeTable>,
    levels: usize,
    /// By slot of the table.
    shapes: Vec<LearnedShape>,
    /// The rules in the order in which they are tried: parents before their children.
    pub(super) rules: Vec<KnownRule>,
    pub(super) crowded: Crowded,
    /// The requests that the sums hold, and those since the last look at the types.
    total: f64,
    fresh: f64,
    /// The time (s) since the sums were halved.
    age: f64,
}

/// A shape and the times of its requests.
#[derive(Clone, Debug, Default)]
pub(super) struct LearnedShape {
    /// Zero: the slot is free.
    pub(super) key: u64,
    pub(super) text: ShapeText,
    /// By level.
    pub(super) moments: Vec<Moments>,
}

/// A type that has other requests from now on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Regrouped {
    pub(super) number: usize,
    /// The type of which its requests were a part, and the ratio of its cost to the cost of these.
    pub(super) parent: usize,
    pub(super) ratio: f64,
    /// By level: the times of its requests; empty if it is no type any more.
    pub(super) moments: Vec<Moments>,
}

/// The number of requests beyond which the sums are halved.
const MEMORY: f64 = 8192.0;
/// The least time between two halvings of the sums (s).
const LEAST_AGE: f64 = 60.0;
/// Types are looked at once this number of new requests was released, and at least this part of the number that the sums hold.
const ENOUGH: f64 = 16.0;
const PART: f64 = 1.0 / 16.0;
/// A new type takes the place of another type if it explains more than this multiple of the variance.
const MORE: f64 = 2.0;
/// The number of slots in use from which room is made for new shapes.
const FULL: usize = SHAPES * 3 / 4;

impl FoundTypes {
    pub(super) fn new(levels: usize) -> Self {
        FoundTypes {
            table: Arc::new(ShapeTable::new(levels)),
            levels,
            shapes: alloc::vec![LearnedShape::default(); SHAPES],
            rules: Vec::new(),
            crowded: Crowded::default(),
            total: 0.0,
            fresh: 0.0,
            age: 0.0,
        }
    }

    /// Goes on with types that were found before, and with prefixes below which not all segments are distinguished.
    pub(super) fn restore(&mut self, rules: Vec<KnownRule>, (crowded, apart): (&[u32], &[u32])) {
        self.rules = rules;
        (self.crowded.prefixes, self.crowded.apart) = (crowded.to_vec(), apart.to_vec());
        self.table.set_crowded(crowded, apart);
        self.table.set_rules(self.rules.iter().map(KnownRule::rule));
    }

    /// Learns from the requests released in the last `seconds`; returns the types that changed.
    pub(super) fn step(&mut self, seconds: f64) -> Vec<Regrouped> {
        self.collect();
        self.age += seconds;
        if self.total > MEMORY && self.age >= LEAST_AGE {
            self.halve();
        }
        if self.shapes.iter().filter(|shape| shape.key != 0).count() > FULL {
            self.make_room();
        }
        if self.fresh < ENOUGH.max(PART * self.total) {
            return Vec::new();
        }
        self.fresh = 0.0;
        let changed = self.merge().or_else(|| self.split()).unwrap_or_default();
        if !changed.is_empty() {
            self.table.set_rules(self.rules.iter().map(KnownRule::rule));
        }
        changed
    }

    /// Takes the sums of all shapes, and the texts of new ones.
    fn collect(&mut self) {
        for (slot, shape) in self.shapes.iter_mut().enumerate().skip(1) {
            let key = self.table.key(slot);
            if key == 0 {
                continue;
            }
            if shape.key != key {
                let moments = alloc::vec![Moments::default(); self.levels];
                *shape = LearnedShape { key, text: self.table.text(slot), moments };
            }
            for (level, moments) in shape.moments.iter_mut().enumerate() {
                let seen = self.table.take(slot, level);
                moments.add(&seen);
                self.fresh += seen.n;
                self.total += seen.n;
            }
        }
    }

    /// Halves all sums, and frees the slots of shapes that are nearly forgotten.
    fn halve(&mut self) {
        (self.age, self.total) = (0.0, 0.5 * self.total);
        for (slot, shape) in self.shapes.iter_mut().enumerate().filter(|(_, shape)| shape.key != 0) {
            for Moments { n, sum, squares } in &mut shape.moments {
                (*n, *sum, *squares) = (0.5 * *n, 0.5 * *sum, 0.5 * *squares);
            }
            if shape.requests() < 0.5 {
                self.table.remove(slot);
                shape.key = 0;
            }
        }
        let (shapes, rules) = (&self.shapes, &self.rules);
        let holds = |found: &KnownRule, shape: &LearnedShape, prefix: u32| {
            let (kind, tokens) = (usize::from(found.kind), &shape.text.tokens);
            let up_to = &tokens[..(kind + 1).min(DEPTH)];
            kind < DEPTH && tokens[kind] == found.token && up_to.contains(&any_below(prefix))
        };
        self.crowded.shrink(|prefix| {
            rules.iter().any(|found| shapes.iter().any(|shape| shape.key != 0 && holds(found, shape, prefix)))
        });
        self.table.set_crowded(&self.crowded.prefixes, &self.crowded.apart);
    }

    /// Makes room by counting the many segments below some prefixes as one.
    fn make_room(&mut self) {
        self.crowded.grow(&self.shapes);
        self.table.set_crowded(&self.crowded.prefixes, &self.crowded.apart);
        for (slot, mut kept) in thinned(&mut self.shapes, &*self.table) {
            self.table.remove(slot);
            let handle = self.table.handle(kept.text.root, &kept.text.parts(), &kept.text.tokens);
            let slot = usize::from(handle & 0xff);
            if slot == 0 {
                continue;
            }
            kept.key = self.table.key(slot);
            let shape = &mut self.shapes[slot];
            if shape.key == kept.key {
                shape.moments.iter_mut().zip(&kept.moments).for_each(|(sum, one)| sum.add(one));
            } else {
                *shape = kept;
            }
        }
    }

    fn own_type(&self, shape: &LearnedShape) -> u16 {
        type_of(self.rules.iter().map(KnownRule::rule), &shape.text.tokens, shape.text.root)
    }

    /// The sums of a type, by level.
    fn moments(&self, number: u16) -> Vec<Moments> {
        let mut all = alloc::vec![Moments::default(); self.levels];
        let own = self.shapes.iter().filter(|shape| shape.key != 0 && self.own_type(shape) == number);
        for shape in own {
            all.iter_mut().zip(&shape.moments).for_each(|(sum, one)| sum.add(one));
        }
        all
    }

    /// The types that can be merged, by their index among the rules, and how each differs from the rest of its parent's
    /// requests. A type within which others were found can be merged only if it and all the inner types are prefixes: the inner
    /// ones are longer, and match without it.
    fn mergeable(&self) -> impl Iterator<Item = (usize, CostDifference)> {
        let is_prefix = |rule: &KnownRule| usize::from(rule.kind) < DEPTH;
        let needs = move |rule: &KnownRule, other: &KnownRule| {
            other.parent == rule.number && !(is_prefix(rule) && is_prefix(other))
        };
        let is_free = move |rule: &KnownRule| self.rules.iter().all(|other| !needs(rule, other));
        let free = self.rules.iter().enumerate().filter(move |(_, found)| is_free(found));
        free.map(|(index, rule)| {
            let (own, rest) = (self.moments(rule.number.into()), self.moments(rule.parent.into()));
            (index, CostDifference::between(&own, &rest))
        })
    }

    /// Merges a type whose requests cost like the rest of its parent's.
    fn merge(&mut self) -> Option<Vec<Regrouped>> {
        let (index, _) = self.mergeable().find(|(_, difference)| difference.is_gone())?;
        Some(self.remove(index))
    }

    fn remove(&mut self, index: usize) -> Vec<Regrouped> {
        let KnownRule { number, parent, .. } = self.rules.remove(index);
        let orphans = self.rules.iter_mut().filter(|found| found.parent == number);
        orphans.for_each(|found| found.parent = parent);
        let (number, parent) = (usize::from(number), usize::from(parent));
        let moments = self.moments(parent as u16);
        alloc::vec![
            Regrouped { number, parent, ratio: 1.0, moments: Vec::new() },
            Regrouped { number: parent, parent, ratio: 1.0, moments }
        ]
    }

    /// Makes a type of the feature that explains most of the variance, or removes a type that explains less.
    fn split(&mut self) -> Option<Vec<Regrouped>> {
        let roots = 0..DEFAULT_TYPES.len() as u16;
        let numbers = roots.chain(self.rules.iter().map(|found| found.number.into()));
        let splits = numbers.filter_map(|number| {
            let own = self.shapes.iter().filter(|shape| shape.key != 0 && self.own_type(shape) == number);
            let alike: Vec<Alike<'_>> =
                own.map(|shape| Alike { tokens: &shape.text.tokens, moments: &shape.moments }).collect();
            best_split(&alike, self.levels).map(|(token, difference)| (number, token, difference))
        });
        let (parent, (kind, token), difference) =
            splits.max_by(|(.., a), (.., b)| a.explained.total_cmp(&b.explained))?;
        let Some(number) = self.free_number() else {
            let weakest = self.mergeable().min_by(|(_, a), (_, b)| a.explained.total_cmp(&b.explained));
            let (index, weakest) = weakest?;
            return (difference.explained > MORE * weakest.explained).then(|| self.remove(index));
        };
        let value = self.value(kind, token);
        let name = self.unused_name(&value);
        self.rules.push(KnownRule { name, value, number, parent: parent as u8, kind, token });
        let (own, rest) = (self.moments(number.into()), self.moments(parent));
        let ratio = libm::exp2(difference.eighths / 8.0);
        let (number, parent) = (usize::from(number), usize::from(parent));
        Some(alloc::vec![
            Regrouped { number, parent, ratio, moments: own },
            Regrouped { number: parent, parent, ratio: 1.0, moments: rest }
        ])
    }

    /// A number that no type has.
    fn free_number(&self) -> Option<u8> {
        let first = DEFAULT_TYPES.len() as u8;
        (first..first + MOST_FOUND as u8).find(|number| self.rules.iter().all(|own| own.number != *number))
    }

    /// The text of a feature.
    fn value(&self, kind: u8, token: u32) -> String {
        let kind = usize::from(kind);
        let has = |shape: &&LearnedShape| shape.key != 0 && shape.text.tokens[kind] == token;
        self.shapes.iter().find(has).map_or_else(String::new, |shape| feature(&shape.text, kind))
    }

    /// A name that no type has, made of the letters of a feature.
    fn unused_name(&self, value: &str) -> String {
        let words = value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
        let name = if name.is_empty() { String::from("numbered") } else { name };
        let is_used = |name: &String| {
            DEFAULT_TYPES.iter().any(|(known, _)| known == name)
                || self.rules.iter().any(|found| found.name == *name)
        };
        let numbered = (2..).map(|n| alloc::format!("{name}-{n}"));
        core::iter::once(name.clone()).chain(numbered).find(|name| !is_used(name)).unwrap_or(name)
    }

    /// The name of a type that was found.
    pub(super) fn name(&self, number: usize) -> Option<&str> {
        let own = self.rules.iter().find(|found| usize::from(found.number) == number)?;
        Some(&own.name)
    }

    /// The types as a configuration states them: in the order in which their conditions are tried, so the types that were found
    /// within a type come before it.
    pub(super) fn as_configured(&self) -> Vec<FoundType> {
        let mut types = Vec::new();
        for (root, (name, _)) in DEFAULT_TYPES.iter().enumerate() {
            self.add_within(root as u8, name, &Features::default(), &mut types);
        }
        types
    }

    /// Adds the types that were found within a type, whose requests have these features.
    fn add_within(&self, parent: u8, within: &str, features: &Features, types: &mut Vec<FoundType>) {
        for rule in self.rules.iter().filter(|found| found.parent == parent) {
            let own = features.and(rule.kind, &rule.value, self.goes_on(rule));
            self.add_within(rule.number, &rule.name, &own, types);
            types.push(FoundType {
                name: rule.name.clone(),
                within: within.into(),
                condition: own.condition(),
            });
        }
    }

    /// Whether requests have more segments after a prefix.
    fn goes_on(&self, rule: &KnownRule) -> bool {
        let kind = usize::from(rule.kind);
        let deeper =
            |tokens: &Tokens| kind + 1 < DEPTH && tokens[kind] == rule.token && tokens[kind + 1] != 0;
        self.shapes.iter().any(|shape| shape.key != 0 && deeper(&shape.text.tokens))
    }
}

impl LearnedShape {
    pub(super) fn requests(&self) -> f64 {
        self.moments.iter().map(|moments| moments.n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::request::shape::ShapeParts;

    /// The type of dynamic requests.
    const ROOT: u16 = 1;

    /// Releases `count` requests one by one, in samples of fifty; `request` gives the path of each, and the mean of its
    /// exponential time (us).
    fn serve(
        found: &mut FoundTypes,
        count: usize,
        mut request: impl FnMut(usize) -> (String, f64),
        random: &mut Random,
    ) {
        for n in 0..count {
            let (path, mean) = request(n);
            let parts = ShapeParts { method: "GET", path: &path, query_key: "" };
            let handle = found.table.handle(ROOT, &parts, &parts.tokens(&*found.table));
            found.table.note(handle, 1, random.exponential(mean) as u64);
            if n % 50 == 49 {
                found.step(0.25);
            }
        }
    }

    fn names(found: &FoundTypes) -> Vec<&str> {
        found.rules.iter().map(|found| found.name.as_str()).collect()
    }

    fn word(n: usize) -> String {
        (0..4).map(|index| char::from(b'a' + (n / 26_usize.pow(index) % 26) as u8)).collect()
    }

    #[test]
    fn a_tree_grows_and_is_listed_from_its_leaves() {
        let (mut found, mut random) = (FoundTypes::new(1), Random::new(11));
        let paths =
            [("/api/list", 10e3), ("/api/item/7", 10e3), ("/api/item/7/report", 300e3), ("/static", 1e3)];
        serve(&mut found, 4000, |n| (paths[n % 4].0.into(), paths[n % 4].1), &mut random);
        let types = found.as_configured();
        let paths =
            |name: &str| types.iter().find(|own| own.name == name).map(|own| own.condition.paths.clone());
        assert_eq!(paths("api-item-report"), Some(alloc::vec!["/api/item/*/report".into()]), "{types:?}");
        assert_eq!(types.len(), 2, "{types:?}");
        let costs = |name: &str| {
            let number = found.rules.iter().find(|own| own.name == name).map(|own| own.number);
            found.moments(number.map_or(ROOT, u16::from))[0].time().expect("some came").0
        };
        assert!((200e3..400e3).contains(&costs("api-item-report")));
    }

    #[test]
    fn a_new_type_and_the_rest_know_their_costs_from_before() {
        let (mut found, mut random) = (FoundTypes::new(1), Random::new(5));
        let mut changed = Vec::new();
        for n in 0..2000 {
            let (path, mean) = if n % 10 == 0 { ("/dear", 400e3) } else { ("/cheap", 40e3) };
            let parts = ShapeParts { method: "GET", path, query_key: "" };
            let handle = found.table.handle(ROOT, &parts, &parts.tokens(&*found.table));
            found.table.note(handle, 1, random.exponential(mean) as u64);
            if n % 50 == 49 && changed.is_empty() {
                changed = found.step(0.25);
            }
        }
        let [own, rest] = changed.as_slice() else { panic!("{changed:?}") };
        assert_eq!((own.number, own.parent, rest.number), (4, 1, 1));
        let mean = |group: &Regrouped| group.moments[0].time().expect("some came").0;
        assert!((250e3..600e3).contains(&mean(own)) && (32e3..50e3).contains(&mean(rest)), "{changed:?}");
        assert!((5.0..20.0).contains(&own.ratio), "{}", own.ratio);
    }

    #[test]
    fn a_type_is_merged_when_it_costs_like_the_rest() {
        let (mut found, mut random) = (FoundTypes::new(1), Random::new(6));
        let dear_until = |end: usize| {
            move |n: usize| match n % 10 {
                0 if n < end => ("/dear".into(), 400e3),
                0 => ("/dear".into(), 40e3),
                _ => ("/cheap".into(), 40e3),
            }
        };
        serve(&mut found, 3000, dear_until(3000), &mut random);
        assert_eq!(names(&found), ["dear"]);
        serve(&mut found, 100_000, dear_until(0), &mut random);
        assert!(found.rules.is_empty(), "{:?}", found.rules);
    }

    #[test]
    fn of_many_types_those_stay_that_explain_most() {
        let (mut found, mut random) = (FoundTypes::new(1), Random::new(7));
        let cost = |path: usize| 1e3 * libm::exp2(path as f64);
        serve(&mut found, 40_000, |n| (alloc::format!("/{}", word(n % 14)), cost(n % 14)), &mut random);
        assert_eq!(found.rules.len(), MOST_FOUND);
        let mut spread = Moments::default();
        for number in (0..4).chain(found.rules.iter().map(|found| u16::from(found.number))) {
            found.moments(number).iter().for_each(|own| spread.add(own));
        }
        assert_eq!(spread.n, found.total, "every request is of one type");
    }

    /// A site with thousands of titles, and a scanner that guesses paths, beside costly requests.
    #[test]
    fn the_table_stays_bounded_and_types_are_found_in_a_crowd() {
        let (mut found, mut random) = (FoundTypes::new(1), Random::new(8));
        let request = |n: usize| match n % 8 {
            0 | 1 => (alloc::format!("/blog/{}", word(n)), 10e3),
            2 | 3 => (alloc::format!("/{}", word(n)), 10e3),
            4 => (alloc::format!("/user/{}/report", word(n)), 200e3),
            5 => (alloc::format!("/user/{}", word(n)), 10e3),
            _ => ("/list".into(), 10e3),
        };
        serve(&mut found, 60_000, request, &mut random);
        let known = found.shapes.iter().filter(|shape| shape.key != 0).count();
        assert!(known < SHAPES, "{known}");
        assert_eq!(names(&found), ["user-report"], "{:?}", found.as_configured());
        let own = found.moments(found.rules[0].number.into());
        assert!(own[0].n > 100.0, "{own:?}");
    }
}
