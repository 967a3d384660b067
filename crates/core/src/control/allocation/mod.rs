//! The allocator: turns the target of a law into the service level of each class.
//!
//! *In*: a law's target, and a plant's demand by site and group. *Out*: an [`Allocation`], m of the plant and by group.
//!
//! `contracts` limits each contract's load if they do not all fit, `max_min` shares a load out among sites (contracts first, by
//! priority inside each site, the rest by weight), `two_resources` does so if sites differ in the resource that they use more,
//! and `next_level` finds the m at which each group offers its load. If one site of one priority without a contract has a plant
//! to itself, no load is shared out: every class has the m of the plant.
//!
//! Once the capacity has not been known for some periods (the workers are not found yet), no request is rejected, and pages are
//! lighter if much work waits.

mod carried;
pub(crate) mod contracts;
pub(crate) mod max_min;
pub(crate) mod next_level;
pub(crate) mod two_resources;

use crate::control::utilization::offered::PlantDemand;
use crate::control::utilization::view::{ClassView, PlantView, SiteView};
use crate::control::{Demand, LawTarget, LoadTarget};
use alloc::vec::Vec;
use carried::CarriedGroups;
use max_min::{Claim, GroupShare, Wants};
use next_level::{is_lowest, next_level};
use two_resources::TwoResources;

/// m of all classes of one plant, in one period.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    /// m of the plant as a whole.
    pub(crate) level: f64,
    /// For how many periods the plant's capacity has not been known, up to [`STAYS_FOR`]. From then on `level` is M: no request
    /// is rejected, and none is degraded unless much work waits.
    unknown: u32,
    /// For how many more periods pages are lighter while the capacity is not known, and no request is rejected once it is
    /// known.
    lighter: u32,
    /// Whether some requests are to be rejected, or would be if the capacity was known.
    pub(crate) rejects: bool,
    /// Whether some requests were to be rejected in the period before.
    pub(crate) did_reject: bool,
    /// m of the plant as it would be if the capacity was known.
    wanted: f64,
    /// m by group, if the plant is shared.
    groups: Vec<f64>,
    /// The shares by group.
    shares: Vec<GroupShare>,
    carried: CarriedGroups,
}

/// Periods for which levels stay after their reason has ended. After a known capacity they stay because another number of
/// workers is tried within fewer periods, and full pages for all would be an overload meanwhile. After much work has waited,
/// pages stay lighter.
const STAYS_FOR: u32 = 4;
/// While the capacity is unknown, pages get lighter if more work than this waits, at full quality and in periods of the assumed
/// capacity. It is little, since far too many workers are assumed until their number is found.
const MUCH_WAITS: f64 = 0.25;

impl Allocation {
    /// The allocation with every class at its highest level.
    pub(crate) fn top(plant: &PlantView) -> Self {
        Allocation {
            level: plant.top,
            unknown: STAYS_FOR,
            lighter: 0,
            rejects: false,
            did_reject: false,
            wanted: plant.top,
            groups: plant.groups.iter().map(|top| *top as f64).collect(),
            shares: alloc::vec![GroupShare::default(); plant.groups.len()],
            carried: CarriedGroups::new(plant.groups.len()),
        }
    }

    /// Whether some requests are to be rejected, and were in the period before too.
    pub(crate) fn lasts(&self) -> bool {
        self.rejects && self.did_reject
    }

    /// The allocation that meets the target in the next period. Unless `capacity_known`, the allocation stays as it was, and
    /// rejects no request once the capacity has not been known for some periods.
    pub(crate) fn allocate(
        &mut self,
        plant: &PlantView,
        target: &LawTarget,
        demand: &PlantDemand,
        capacity_known: bool,
    ) -> &Self {
        self.unknown = if capacity_known { 0 } else { (self.unknown + 1).min(STAYS_FOR) };
        if (1..STAYS_FOR).contains(&self.unknown) {
            return self;
        }
        self.level = match target {
            LawTarget::Level(m) => *m,
            LawTarget::Load(load) => next_level(load, self.level, &demand.whole),
        };
        if let (LawTarget::Load(load), true) = (target, plant.is_shared) {
            self.share(plant, load, demand);
        }
        let much_waits = self.is_unknown() && plant.top > 1.0 && demand.whole.backlog(plant.top) > MUCH_WAITS;
        self.lighter = if much_waits { STAYS_FOR } else { self.lighter.saturating_sub(1) };
        if self.lighter > 0 && !plant.is_shared {
            // The cost of light pages was measured while they waited behind full ones in the server, so it is overestimated.
            self.level = self.level.max(1.0);
        }
        let groups = self.groups.iter().filter(|_| plant.is_shared);
        (self.did_reject, self.wanted) = (self.rejects, self.level);
        self.rejects = groups.chain([&self.level]).any(|m| *m < 1.0);
        if self.is_unknown() {
            self.level = plant.top;
        }
        self
    }

    fn share(&mut self, plant: &PlantView, target: &LoadTarget, demand: &PlantDemand) {
        let claim = |(number, site): (usize, &SiteView)| {
            Claim::new(site, demand.claimed[number], demand.fixed[number].offered(target.drain))
        };
        let claims: Vec<Claim> = plant.sites.iter().enumerate().map(claim).collect();
        if demand.is_divided {
            return self.share_both(plant, target, demand, &claims);
        }
        let left_to_contracts = contracts::left_to_contracts(plant);
        let wants = Wants { claims: &claims, groups: &demand.groups, divided: None, left_to_contracts };
        let carried = self.carried.share_out(wants, target, &mut self.shares);
        for claim in &claims {
            for group in claim.groups.clone() {
                let (own, m) = (&demand.groups[group], &mut self.groups[group]);
                let load = self.shares[group].load;
                let mut of_group = target.part(load, own, *m);
                (of_group.calm, of_group.carried) = (target.calm && claim.shares, carried[group]);
                *m = next_level(&of_group, *m, own);
            }
        }
    }

    /// Shares out both resources: a group has the lower of the two m.
    #[cold]
    #[inline(never)]
    fn share_both(&mut self, plant: &PlantView, target: &LoadTarget, demand: &PlantDemand, claims: &[Claim]) {
        let divided = TwoResources::new(plant, demand, target.drain);
        let left_to_contracts = contracts::left_to_contracts(plant);
        let wants = Wants { claims, groups: &demand.groups, divided: Some(&divided), left_to_contracts };
        let carried = self.carried.share_out(wants, target, &mut self.shares);
        for (claim, group) in
            claims.iter().flat_map(|claim| claim.groups.clone().map(move |group| (claim, group)))
        {
            let m = self.groups[group];
            let next = |(own, load): (&Demand, f64)| {
                let mut of_group = target.part(load, own, m);
                (of_group.calm, of_group.carried) = (target.calm && claim.shares, carried[group]);
                next_level(&of_group, m, own)
            };
            let [work, link] = divided.of_group(group, &self.shares[group]).map(next);
            self.groups[group] = work.min(link);
        }
    }

    fn is_unknown(&self) -> bool {
        self.unknown == STAYS_FOR
    }

    /// m of a class, before it is clamped to the class's levels. While the capacity is not known and much work waits, a class
    /// has its lowest level, because the server may have become slow before its workers were found; a class keeps its level if
    /// another plant serves the lower ones, and a group of a shared plant that is allocated more than m = 1 keeps that.
    pub(crate) fn level_of(&self, plant: &PlantView, class: &ClassView) -> f64 {
        let is_lighter = self.lighter > 0 && class.base == 0;
        match (self.is_unknown(), plant.is_shared) {
            (true, true) if is_lighter => self.groups[class.group].max(1.0),
            (true, false) if is_lighter => 1.0,
            (false, true) => self.groups[class.group],
            _ => self.level,
        }
    }

    /// m of a class as it would be if the plant's capacity was known.
    pub(crate) fn wanted(&self, plant: &PlantView, class: &ClassView) -> f64 {
        if plant.is_shared { self.groups[class.group] } else { self.wanted }
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

    /// Goes on from an m of the plant as a whole.
    pub(crate) fn restore(&mut self, level: f64) {
        (self.level, self.wanted) = (level, level);
    }

    /// Whether no class with arriving requests has more than its lowest level.
    pub(crate) fn is_at_lowest(&self, plant: &PlantView, demand: &PlantDemand) -> bool {
        let none_has_more =
            |(m, own): (&f64, &Demand)| is_lowest(*m) || own.offered(*m, 0.0) <= own.offered(1.0, 0.0);
        let mut groups = self.groups.iter().zip(&demand.groups);
        if plant.is_shared { groups.all(none_has_more) } else { is_lowest(self.level) }
    }

    /// Whether every class has the least m that it may be given.
    pub(crate) fn is_at_least(&self, plant: &PlantView) -> bool {
        let mut moved = plant.classes.iter().filter(|class| !class.exempt);
        moved.all(|class| self.level_of(plant, class) <= class.least)
    }

    /// Goes on after periods in which no request arrived.
    pub(crate) fn idle(&mut self) {
        self.carried.idle();
        self.lighter = 0;
    }

    /// Whether every class has its highest level.
    pub(crate) fn is_at_top(&self, plant: &PlantView) -> bool {
        let mut groups = self.groups.iter().zip(&plant.groups);
        let all_at_top = !plant.is_shared || groups.all(|(level, top)| *level >= *top as f64);
        all_at_top && self.level >= plant.top
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Demand;
    use crate::control::utilization::view::by_hand::{class, plant};

    const TARGET: LoadTarget = LoadTarget::plain(0.8);

    /// Groups of one level that offer these loads, without any other load.
    fn demand(plant: &PlantView, loads: &[f64]) -> PlantDemand {
        let mut demand = PlantDemand::new(plant);
        for (group, load) in demand.groups.iter_mut().zip(loads) {
            group.levels[1].arriving = *load;
        }
        demand.whole = Demand::arriving(&[0.0, loads.iter().sum()]);
        demand
    }

    #[test]
    fn one_site_alone_has_the_plants_m() {
        let own = plant(alloc::vec![class(0, 1)]);
        let demand = demand(&own, &[1.6]);
        let mut allocation = Allocation::top(&own);
        assert!(allocation.is_at_top(&own));
        let found = allocation.allocate(&own, &LawTarget::Load(TARGET), &demand, true);
        assert_eq!((found.level, found.level_of(&own, &own.classes[0])), (0.5, 0.5));
        assert_eq!((found.group_level(&own, &own.classes[0]), found.is_at_top(&own)), (None, false));
        assert_eq!(allocation.allocate(&own, &LawTarget::Level(0.3), &demand, true).level, 0.3);
    }

    #[test]
    fn sites_share_a_plant_and_one_with_a_contract_has_its_own_m() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.sites[0].guarantee = Some(crate::promises::Guarantee {
            rate: 10.0,
            bandwidth_bytes_per_second: None,
            burst: crate::time::Duration::from_secs(2),
        });
        let mut demand = demand(&own, &[0.5, 1.0]);
        demand.claimed[0] = 0.25;
        let mut allocation = Allocation::top(&own);
        let found = allocation.allocate(&own, &LawTarget::Load(TARGET), &demand, true);
        let [first, second] = [0, 1].map(|index| found.level_of(&own, &own.classes[index]));
        // Each site gets half of the load, 0.4.
        assert!((first - 0.8).abs() < 1e-6 && (second - 0.4).abs() < 1e-6, "{found:?}");
        assert!((found.site_level(&own, &own.classes[0]).expect("a contract") - 0.5).abs() < 1e-6);
        assert_eq!(found.site_level(&own, &own.classes[1]), None);
    }

    /// Sites with opposite bottlenecks: the m of each after a peak, and after loads that fit both resources.
    #[test]
    fn a_load_that_fits_both_resources_turns_nobody_away_after_a_peak_either() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.promised.bandwidth_bytes_per_second = Some(1e6);
        let mut allocation = Allocation::top(&own);
        let mut levels = |load: f64| {
            let mut demand = demand(&own, &[load, 0.02]);
            demand.groups[0].levels[1].link = 0.02;
            demand.groups[1].levels[1].link = load;
            let mut whole = Demand::arriving(&[0.0, load + 0.02]);
            whole.levels[1].link = load + 0.02;
            (demand.whole, demand.is_divided) = (whole, true);
            let found = allocation.allocate(&own, &LawTarget::Load(TARGET), &demand, true);
            [0, 1].map(|index| found.level_of(&own, &own.classes[index]))
        };
        let peak = levels(1.58);
        assert!(peak.iter().all(|m| (m - 0.5).abs() < 1e-3), "{peak:?}");
        assert_eq!(levels(0.6), [1.0; 2]);
        assert_eq!(levels(0.78), [1.0; 2]);
    }

    #[test]
    fn levels_stay_for_three_periods_in_which_the_capacity_is_not_known() {
        let own = plant(alloc::vec![class(0, 1)]);
        let demand = demand(&own, &[1.6]);
        let mut allocation = Allocation::top(&own);
        let mut level = |known| {
            allocation
                .allocate(&own, &LawTarget::Load(TARGET), &demand, known)
                .level_of(&own, &own.classes[0])
        };
        assert_eq!([true, false, false, false, false].map(&mut level), [0.5, 0.5, 0.5, 0.5, 1.0]);
        assert_eq!([false, true, false].map(&mut level), [1.0, 0.5, 0.5]);
    }

    #[test]
    fn no_class_is_degraded_while_the_capacity_is_not_known() {
        let own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        let demand = demand(&own, &[1.0, 1.0]);
        let mut allocation = Allocation::top(&own);
        let held = allocation.allocate(&own, &LawTarget::Load(TARGET), &demand, false);
        assert!(own.classes.iter().all(|class| held.level_of(&own, class) == 1.0), "{held:?}");
        let group = held.group_level(&own, &own.classes[0]).expect("shared");
        assert!((group - 0.4).abs() < 1e-6, "the allocation goes on meanwhile: {group}");
    }

    #[test]
    fn pages_are_lighter_while_much_waits_and_the_capacity_is_not_known_and_for_some_periods_more() {
        let own = plant(alloc::vec![class(0, 2)]);
        let mut demand = PlantDemand::new(&own);
        let mut allocation = Allocation::top(&own);
        let mut m = |(waiting, known): (f64, bool)| {
            demand.whole = Demand::arriving(&[0.0, 1.0, 3.0]);
            demand.whole.levels[2].waiting = waiting;
            allocation
                .allocate(&own, &LawTarget::Load(TARGET), &demand, known)
                .level_of(&own, &own.classes[0])
        };
        let waits = [(0.2, false), (0.3, false), (0.0, false), (0.0, false), (0.0, false), (0.0, false)];
        assert_eq!(waits.map(&mut m), [2.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
        // No request is rejected in the first periods after the capacity was found.
        let found = [(0.3, false), (0.0, true), (0.0, true), (0.0, true), (0.0, true)];
        assert_eq!(found.map(&mut m), [1.0, 1.0, 1.0, 1.0, 0.8]);
    }
}
