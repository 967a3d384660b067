//! What requests are told of their level: its name, and the prefix of its paths, by the engine's numbers.

use plimsoll_core::Reload;
use plimsoll_core::promises::Promises;
use std::sync::Arc;

/// The prefixes of levels, by the levels' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes(pub(crate) Vec<(String, String)>);

impl Prefixes {
    /// Refuses prefixes of levels that no site has, and those that would make no path.
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
            }
        }
        if wrong.is_empty() { Ok(self) } else { Err(wrong) }
    }

    fn of(&self, level: &str) -> Option<Arc<str>> {
        self.0.iter().rev().find(|(name, _)| name == level).map(|(_, prefix)| prefix.as_str().into())
    }
}

/// The names of levels and classes by number. Names of what is no longer promised stay, since numbers are for life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// By site: lowest quality first.
    levels: Vec<Vec<LevelName>>,
    classes: Vec<String>,
}

#[derive(Clone, Debug)]
struct LevelName {
    name: String,
    prefix: Option<Arc<str>>,
}

impl Names {
    /// The names after these, with those of new promises.
    pub(crate) fn next(&self, promises: &Promises, prefixes: &Prefixes, reload: &Reload) -> Self {
        let mut next = self.clone();
        for (site, number) in promises.sites.iter().zip(reload.site_numbers()) {
            let name = |name: &String| LevelName { name: name.clone(), prefix: prefixes.of(name) };
            let levels = site.levels.iter().map(|level| name(&level.name)).collect();
            set(&mut next.levels, number.into(), levels);
        }
        for (number, name) in reload.class_names() {
            set(&mut next.classes, number.into(), name.to_owned());
        }
        next
    }

    pub(crate) fn class(&self, class: u16) -> Option<&str> {
        self.classes.get(usize::from(class)).map(String::as_str)
    }

    pub(crate) fn level(&self, site: u16, level: u8) -> Option<&str> {
        self.level_name(site, level).map(|level| level.name.as_str())
    }

    pub(crate) fn prefix(&self, site: u16, level: u8) -> Option<&Arc<str>> {
        self.level_name(site, level)?.prefix.as_ref()
    }

    fn level_name(&self, site: u16, level: u8) -> Option<&LevelName> {
        self.levels.get(usize::from(site))?.get(usize::from(level.checked_sub(1)?))
    }
}

fn set<T: Clone + Default>(list: &mut Vec<T>, at: usize, value: T) {
    list.resize(list.len().max(at + 1), T::default());
    list[at] = value;
}
