//! Room: what was promised, as plain data.
//!
//! *In*: what the configuration says, or what a program that embeds the engine writes by hand. *Out*: [`Promises`], from
//! which an engine is built. Nothing here decides, and conditions are text: `request/` compiles them.
//!
//! - `plant`, `site`, `class`, `request_type`: the servers, what they serve to whom, and what requests are alike in cost
//! - `control`: how the loops run
//! - `halves`: what a gateway keeps before a server whose own processes decide, and what those keep
//! - `validate`: what in the promises is impossible
//! - `registry`: the numbers of plants, sites and classes for the life of the process
//! - `diff`: what a reload changed
//! - [`plan`]: which promises can be kept

mod class;
mod control;
pub(crate) mod diff;
mod halves;
pub mod plan;
mod plant;
pub(crate) mod registry;
mod request_type;
mod site;
mod validate;

pub use class::{Class, Condition, Delay, LAST_PRIORITY, Network, Prefer};
pub use control::{Admission, Control, DelayParts, Mode, Share, UtilizationLaw};
pub use plant::{Costs, Plant, QueueBounds, Sense, Tunnels, WorkerBounds};
pub use request_type::{DEFAULT_TYPES, RequestType};
pub use site::{Choice, Guarantee, Identity, Level, Site};
pub use validate::LEAST_REKEY_PERIODS;

use crate::time::Duration;
use alloc::vec::Vec;

/// The most levels that a site may have: a level fits the top byte of a service level, and counters have a fixed layout.
pub const MAX_LEVELS: usize = 8;

/// Everything that was promised, and the machines that must keep it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Promises {
    /// The servers that the loops control: one per upstream, or per folder that the gateway serves itself.
    pub plants: Vec<Plant>,
    /// The virtual servers. A request belongs to the first one whose host matches.
    pub sites: Vec<Site>,
    /// How the loops run.
    pub control: Control,
}

impl Promises {
    /// Promises of one site on one plant, with the default loops.
    pub fn of(plant: Plant, site: Site) -> Self {
        Promises { plants: alloc::vec![plant], sites: alloc::vec![site], control: Control::default() }
    }

    /// For each plant, whether some class that it serves, at any level, has a deadline.
    pub(crate) fn keeping_deadlines(&self) -> Vec<bool> {
        let mut keeping = alloc::vec![false; self.plants.len()];
        for site in self.sites.iter().filter(|site| site.has_deadlines()) {
            site.plants().for_each(|plant| keeping[plant] = true);
        }
        keeping
    }

    /// Whether some class that this plant serves, at any level, has a deadline.
    pub fn has_deadlines(&self, plant: usize) -> bool {
        self.shortest_deadline(plant).is_some()
    }

    /// The shortest deadline of the classes that this plant serves, at any level.
    pub(crate) fn shortest_deadline(&self, plant: usize) -> Option<Duration> {
        let sites = self.sites.iter().filter(|site| site.plants().any(|own| own == plant));
        sites.filter_map(Site::shortest_deadline).min()
    }
}
