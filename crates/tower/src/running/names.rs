//! What a request is given of its level, by the engine's number: the level's name, and the prefix of its paths.

use plimsoll_core::promises::Promises;
use plimsoll_core::request::has_dot_segment;
use plimsoll_core::{Names, Reload};
use std::sync::Arc;

/// The prefixes of levels, by the levels' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes(pub(crate) Vec<(String, String)>);

impl Prefixes {
    /// Rejects a prefix of a level that no site has, and a prefix that would not make a valid path.
    pub(crate) fn check(self, promises: &Promises) -> Result<Self, Vec<String>> {
        let has = |name: &String| {
            promises.sites.iter().any(|site| site.levels.iter().any(|level| level.name == *name))
        };
        let mut wrong = Vec::new();
        for (level, prefix) in &self.0 {
            if !has(level) {
                wrong
                    .push(format!("no site has a level `{level}`, to which the prefix `{prefix}` was given"));
            }
            let is_path = prefix.starts_with('/') && prefix.parse::<http::uri::PathAndQuery>().is_ok();
            if !is_path || prefix.ends_with('/') || prefix.contains('?') {
                wrong.push(format!(
                    "the prefix `{prefix}` of the level `{level}` is not a path: write `/light`, with a slash before and none after"
                ));
            } else if prefix.contains('#') || has_dot_segment(prefix.as_bytes()) {
                wrong.push(format!(
                    "the prefix `{prefix}` of the level `{level}` has a `#` or a dot segment: it would make another path"
                ));
            }
        }
        if wrong.is_empty() { Ok(self) } else { Err(wrong) }
    }

    fn of(&self, level: &str) -> Option<Arc<str>> {
        self.0.iter().rev().find(|(name, _)| name == level).map(|(_, prefix)| prefix.as_str().into())
    }
}

/// The names by number, and the prefixes of levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixedNames {
    pub(crate) plain: Names,
    /// Prefixes by site and then by level, the lowest quality first.
    prefixes: Vec<Vec<Option<Arc<str>>>>,
}

impl PrefixedNames {
    /// The names that follow these after a reload: with the names of the new promises.
    pub(crate) fn next(&self, promises: &Promises, given: &Prefixes, reload: &Reload) -> Self {
        let mut prefixes = self.prefixes.clone();
        for (site, number) in promises.sites.iter().zip(reload.site_numbers().map(usize::from)) {
            prefixes.resize(prefixes.len().max(number + 1), Vec::new());
            prefixes[number] = site.levels.iter().map(|level| given.of(&level.name)).collect();
        }
        PrefixedNames { plain: self.plain.next(reload), prefixes }
    }

    pub(crate) fn prefix(&self, site: u16, level: u8) -> Option<&Arc<str>> {
        self.prefixes.get(usize::from(site))?.get(usize::from(level.checked_sub(1)?))?.as_ref()
    }
}
