//! The allocator: turns the target of a law into the service level of each class, the one place where that is done.
//!
//! `max_min` shares a load out among sites (contracts first, by priority inside each site, what is left by weight), and
//! `level` finds the m that brings each part's load. Where one site of one priority and no contract has a plant to itself
//! there is nothing to share: the target is the plant's, and its m is that of every class.

pub(crate) mod level;
pub(crate) mod max_min;

use crate::control::utilization::offered::PlantDemand;
use crate::control::utilization::view::{ClassView, PlantView, SiteView};
use crate::control::{LawTarget, LoadTarget};
use alloc::vec::Vec;
use level::next_level;
use max_min::{Claim, GroupShare, share_out};

/// m of all classes of one plant, in one period.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    /// m of the plant as a whole.
    pub(crate) level: f64,
    /// The plant's capacity is not known yet, so no class is degraded: all have `level`, which is M.
    held: bool,
    /// m by group, where the plant is shared.
    groups: Vec<f64>,
    /// The same groups' shares.
    shares: Vec<GroupShare>,
}

impl Allocation {
    /// Everything at the highest level.
    pub(crate) fn top(plant: &PlantView) -> Self {
        Allocation {
            level: plant.top,
            held: false,
            groups: plant.groups.iter().map(|top| *top as f64).collect(),
            shares: alloc::vec![GroupShare::default(); plant.groups.len()],
        }
    }

    /// The allocation that brings the target in the next period; the highest level unless `capacity_known`.
    pub(crate) fn allocate(
        &mut self,
        plant: &PlantView,
        target: &LawTarget,
        demand: &PlantDemand,
        capacity_known: bool,
    ) -> &Self {
        self.level = match target {
            LawTarget::Level(m) => *m,
            LawTarget::Load(load) => next_level(load, self.level, &demand.whole),
        };
        if let (LawTarget::Load(load), true) = (target, plant.is_shared) {
            self.share(plant, load, demand);
        }
        self.held = !capacity_known;
        if self.held {
            self.level = plant.top;
        }
        self
    }

    fn share(&mut self, plant: &PlantView, target: &LoadTarget, demand: &PlantDemand) {
        let claim = |(number, site): (usize, &SiteView)| {
            Claim::new(site, demand.claimed[number], demand.fixed[number].offered(target.drain))
        };
        let claims: Vec<Claim> = plant.sites.iter().enumerate().map(claim).collect();
        let capacity = target.load - demand.foreign.offered(target.drain);
        share_out(&claims, &demand.groups, capacity, target.drain, &mut self.shares);
        for claim in &claims {
            for group in claim.groups.clone() {
                let (own, m) = (&demand.groups[group], &mut self.groups[group]);
                let load = self.shares[group].load;
                let part = LoadTarget {
                    load,
                    room: 1.0 - (target.load - load).max(0.0),
                    backlog: target.backlog && own.backlog(*m) > 0.0,
                    calm: target.calm && claim.shares,
                    ..*target
                };
                *m = next_level(&part, *m, own);
            }
        }
    }

    /// m of a class, before it is clamped to the class's levels.
    pub(crate) fn level_of(&self, plant: &PlantView, class: &ClassView) -> f64 {
        if plant.is_shared && !self.held { self.groups[class.group] } else { self.level }
    }

    /// m of a class's group, whether or not the plant's capacity is known; `None` where nothing is shared.
    pub(crate) fn group_level(&self, plant: &PlantView, class: &ClassView) -> Option<f64> {
        plant.is_shared.then(|| self.groups[class.group])
    }

    /// Sets the m of a class from which the allocation goes on.
    pub(crate) fn set_group_level(&mut self, plant: &PlantView, class: &ClassView, m: f64) {
        self.groups[class.group] = m.min(plant.groups[class.group] as f64);
    }

    /// m_site of a class whose site has a contract: the m that the contract alone carries.
    pub(crate) fn site_level(&self, plant: &PlantView, class: &ClassView) -> Option<f64> {
        let has_contract = plant.is_shared && plant.sites[class.site].guarantee.is_some();
        has_contract.then(|| self.shares[class.group].site_level)
    }

    /// Whether every class has its highest level.
    pub(crate) fn is_at_top(&self, plant: &PlantView) -> bool {
        let mut groups = self.groups.iter().zip(&plant.groups);
        let all_at_top = !plant.is_shared || groups.all(|(level, top)| *level >= *top as f64);
        all_at_top && self.level >= plant.top
    }
}
