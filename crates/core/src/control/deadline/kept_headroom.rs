//! The room that each priority keeps for its costliest requests, whatever site they are of. Sites with a contract take turns,
//! so each such site keeps its own room.
//!
//! Requests of one priority wait in the order of their deadlines, so that cheap requests of one site fill the queue before a
//! costly request of another. A costly request with a later deadline has more time by that difference, and needs less room.

use super::types::{DeadlinePromise, SiteTypes};
use crate::admission::headroom::Needs;
use alloc::vec::Vec;

/// The needs of the requests of one priority with one deadline at a plant.
struct PriorityNeeds {
    /// A plant, the site if it has a contract, and the priority.
    of: (usize, Option<u16>, u8),
    deadline_us: f64,
    needs: Needs,
}

/// Keeps room at each site for the costliest requests of its priorities at all sites of its plants.
pub(super) fn keep_headroom(types: &[SiteTypes]) {
    let mut members: Vec<PriorityNeeds> = Vec::new();
    for site in types {
        for (promise, needs) in site.costliest_by_promise() {
            for plant in &site.promised.plants {
                let of = (*plant, site.turns(), promise.priority);
                let deadline_us = promise.deadline_us();
                let is_same = |own: &&mut PriorityNeeds| own.of == of && own.deadline_us == deadline_us;
                match members.iter_mut().find(is_same) {
                    Some(known) => known.needs = known.needs.max(needs),
                    None => members.push(PriorityNeeds { of, deadline_us, needs }),
                }
            }
        }
    }
    for site in types {
        site.keep_room(|promise: &DeadlinePromise| {
            let is_beside = |own: &&PriorityNeeds| {
                let (plant, turns, priority) = own.of;
                site.promised.plants.contains(&plant) && (turns, priority) == (site.turns(), promise.priority)
            };
            let beside = members.iter().filter(is_beside);
            let needs = beside.map(|own| own.needs.less((own.deadline_us - promise.deadline_us()).max(0.0)));
            needs.fold(Needs::default(), Needs::max)
        });
    }
}
