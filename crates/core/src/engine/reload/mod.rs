//! New promises for a running engine: validated as a whole, then brought into force at once, keeping what was learned.
//!
//! *In*: promises. *Out*: a [`Reload`] with their numbers; once it is applied, the [`Changes`] and the next published state.
//!
//! Plants, sites and classes are known by name. Those that stay keep their numbers, counters, rates, costs, bias and heavy
//! clients. m stays between the same two levels, by name, and a level that stays at its plant keeps its cost. A class, site or
//! plant that is no longer promised keeps its number and its counters until the process ends, so that its last requests are
//! accounted for; if it is promised again, it has both again. Requests under way are not touched. A table's entry for a rank,
//! deadline or contract is given up, or used again, once no request of it waits or is served (`growth.rs` tests it).
//!
//! - `classes`: what was learned of classes
//! - `loops`: the loops
//! - `names`: the names by number
//! - `publish`: the next generation of the published state
//!
//! There are two steps, because a shell has tables of its own, which must know a number before the first request has it:
//! [`Engine::prepare`] gives the numbers, [`Engine::apply`] brings the promises into force. A new engine is made by a reload of
//! an empty one.

mod classes;
#[cfg(all(test, not(loom)))]
mod growth;
mod loops;
mod names;
mod publish;

pub(super) use names::ClassNames;
pub use names::Names;

use super::Engine;
use crate::control::deadline::terms;
use crate::control::{Due, Loop};
use crate::engine::timers::{SHORTEST_LOOK, Timer};
use crate::promises::diff::{Changes, changes};
use crate::promises::registry::Registry;
use crate::promises::{Delay, Promises, Site};
use crate::scheduling::rank::Rank;
use alloc::{string::String, vec::Vec};

/// Valid promises with the numbers that they will have. It may be applied to the engine that prepared it, as long as no
/// other reload was applied since.
#[derive(Clone, Debug)]
pub struct Reload {
    registry: Registry,
    changes: Changes,
}

impl Reload {
    /// The number of each plant, in the order of the promises: as in [`Permit::plant`](crate::request::Permit::plant).
    pub fn plant_numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.registry.plants.iter().copied()
    }

    /// The number of each site, in the order of the promises: as in [`Target::site`](crate::request::Target::site).
    pub fn site_numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.registry.sites.iter().map(|site| site.site)
    }

    /// What differs between the promises in force and the new ones.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }
}

impl Engine {
    /// Validates new promises against this engine. Nothing changes.
    ///
    /// # Errors
    /// What in `promises` cannot be, one sentence each.
    pub fn prepare(&self, promises: &Promises) -> Result<Reload, Vec<String>> {
        promises.validate()?;
        let registry = self.registry.next(promises)?;
        let changes = changes(&self.registry, &registry);
        Ok(Reload { registry, changes })
    }

    /// Brings promises into force for all lanes: each reads them from its next call on. The order is: counters for new numbers,
    /// the sensors and costs of classes, the loops, the published state, the names of classes, by which the levels from before
    /// are known until then, and last what reads the published state: the promised costs, the loops of delays and ratios, and
    /// the timers.
    pub fn apply(&mut self, reload: Reload) -> Changes {
        let Reload { registry, changes } = reload;
        let was = core::mem::replace(&mut self.registry, registry);
        self.grow_counters();
        self.reload_classes();
        self.reload_loops(&was);
        self.loops.deadlines.reload(&self.registry);
        self.loops.budgets.reload(&self.registry);
        self.publish();
        self.class_names = self.next_class_names();
        self.take_promised_costs(None, false);
        self.reload_departures();
        (0..self.registry.promises.plants.len()).for_each(|plant| self.bound_server_queue(plant));
        self.reload_timers();
        changes
    }

    /// [`prepare`](Engine::prepare) and [`apply`](Engine::apply).
    ///
    /// # Errors
    /// What in `promises` cannot be; then nothing changed.
    pub fn reload(&mut self, promises: &Promises) -> Result<Changes, Vec<String>> {
        Ok(self.apply(self.prepare(promises)?))
    }

    /// The times at which the engine runs, and how often waiting requests are looked at.
    fn reload_timers(&mut self) {
        let Promises { plants, control, .. } = &self.registry.promises;
        (self.reloaded, self.idle.may_be_idle) = (true, false);
        self.timers.reload(control.period);
        let look_every = &mut self.timers.look_every;
        *look_every = plants.iter().map(|p| (p.queue.longest_wait() / 2).max(SHORTEST_LOOK)).collect();
        for member in self.registry.classes() {
            let Some(deadline) = terms(member.site, member.index, member.exempt).deadline else { continue };
            for plant in member.site.plants() {
                look_every[plant] = look_every[plant].min((deadline / 2).max(SHORTEST_LOOK));
            }
        }
        self.timers.shortest_look = look_every.iter().copied().min().unwrap_or(crate::time::Duration::MAX);
        let searches = self.loops.searches.iter().flatten().map(Loop::due);
        self.loops.samples_only_rates =
            searches.chain([self.loops.deadlines.due()]).all(|due| due != Due::Sample);
        self.set_departures_due();
        self.timers.set(Timer::Budget, self.loops.budgets.due().instant());
        self.sensors.waiting.resize(self.sensors.classes.len(), 0);
    }
}

/// The ranks of a class: of its ordinary requests, and of those inside a contract.
fn ranks(site: &Site, index: usize) -> [Rank; 2] {
    let priority = site.priority_of(index);
    let deadline = site.deadline_of(index);
    let others = if site.guarantee.is_some() { Rank::contracted } else { Rank::ordinary };
    [others(priority, deadline), Rank::guaranteed(priority, deadline)]
}

/// What a class was promised of its response times: delta, or D_ref.
pub(crate) fn response_promise(site: &Site, index: usize) -> (Option<Delay>, Option<f64>) {
    let own = site.classes.get(index).map(|class| (class.delay, class.ratio));
    own.unwrap_or((site.default_delay, site.default_ratio))
}
