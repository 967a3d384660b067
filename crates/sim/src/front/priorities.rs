//! The order of the classes before a plant, for comparators that serve by priority.

use plimsoll_core::promises::{Promises, Site};

/// The priorities of a site's classes. `default` and `exempt` are numbered after the site's own classes; the priority of
/// `exempt` is never used.
pub(super) fn priorities_of(site: &Site) -> impl Iterator<Item = u8> {
    site.classes.iter().map(|class| class.priority).chain([site.default_priority; 2])
}

/// For each class, the rank of its priority among those of its plant; 0 is the highest.
pub(super) fn places(promises: &Promises) -> Vec<usize> {
    let mut places = Vec::new();
    for site in &promises.sites {
        let priorities = priorities_at(promises, site.plant);
        places.extend(
            priorities_of(site).map(|priority| priorities.iter().filter(|other| **other < priority).count()),
        );
    }
    places
}

/// The priorities of all classes at a plant, the highest first.
pub(super) fn priorities_at(promises: &Promises, plant: usize) -> Vec<u8> {
    let sites = promises.sites.iter().filter(|site| site.plant == plant);
    let mut all: Vec<u8> = sites.flat_map(priorities_of).collect();
    all.sort_unstable();
    all.dedup();
    all
}
