//! What a process reports of the shared state: the controller, the counts of all processes, and the classes.

use crate::Counts;
use crate::mapping::Mapping;
use crate::owner;
use plimsoll_core::processes::ClassSums;
use plimsoll_core::promises::Promises;
use std::ffi::CString;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// The names of a class, as C reads them.
pub(crate) struct ClassName {
    pub(crate) site: CString,
    pub(crate) class: CString,
    /// M, the number of levels.
    pub(crate) levels: u32,
}

impl Counts {
    /// The counts of all processes since the state was made; without whether the controller is awake.
    pub(crate) fn read(mapping: &Mapping) -> Self {
        let changing = &mapping.header().changing;
        let controller = changing.controller.load(Acquire);
        let mut counts = Counts {
            controller: if owner::lives(controller) { owner::number(controller) } else { 0 },
            lanes: mapping.layout().lanes as u32,
            generation: changing.generation.load(Acquire),
            deaths: changing.deaths.load(Relaxed),
            returned: changing.returned.load(Relaxed),
            ..Counts::default()
        };
        for lane in mapping.lanes() {
            let (arrived, ended) = lane.counters.totals();
            counts.arrived += arrived;
            counts.ended += ended;
            counts.attached += u32::from(lane.owner() != 0);
        }
        let plants = mapping.words().plants.iter();
        counts.in_service = plants.map(|plant| u64::from(plant.in_service().0)).sum();
        counts
    }
}

/// The names of all classes, by number.
pub(crate) fn class_names(promises: &Promises) -> Vec<ClassName> {
    let name = |text: &str| CString::new(text).unwrap_or_default();
    let of_site = |site: &plimsoll_core::promises::Site| {
        let levels = site.levels.len() as u32;
        let names =
            site.class_names().map(|class| ClassName { site: name(&site.name), class: name(class), levels });
        names.collect::<Vec<_>>()
    };
    promises.sites.iter().flat_map(of_site).collect()
}

/// The figures of a class over all lanes.
pub(crate) fn class_sums(mapping: &Mapping, class: usize) -> ClassSums {
    let lanes = mapping.lanes().map(|lane| &lane.counters.classes[class]);
    mapping.words().classes[class].sums(lanes)
}
