//! Shares a plant's load among sites: contracts first, by priority inside each site, then the excess by weight.
//!
//! The plant's law gives the load T that the plant may carry in the next period: the set point, corrected by the law's
//! feedback. T is shared out anew in each period, according to the arrivals:
//!
//! 1. *Fixed*: requests inside a contract, and exempt ones, are served at full quality whatever is decided here.
//! 2. *Contracts* (UC 5.1): a site may spend `U*_i = a R_max + b W_max`; the fixed load counts against it. The highest m at
//!    which the rest of the site's load fits into this is its m_site.
//! 3. *Priorities* (UC 5.2): inside a site, group j of equal priority may spend `U*_j = U* - sum of higher groups, at the level
//!    that they are given - sum of rejecting all lower ones`.
//! 4. *Excess* (UC 5.3): the rest of T goes to the sites that want more, by weighted max-min fairness over all that a site
//!    gets: there is a level x so that each site spends `max(what its contract carries, min(all that it wants, weight x))`. A
//!    site without a contract has U* = 0 and its load is all excess. A site spends its total by priority again. So m is never
//!    below m_site. This is UC's max(m_site, m_best_effort) with one m_best_effort for each site: a site whose contract already
//!    carries more than weight x gets just that. When the others want less, x rises, and the site has a part of the excess too.
//!    (One m_best_effort for all sites would give most to the site that requests most.)
//!
//! No site has an integrator: m_site and m follow from rates and costs in each period, and the one bias of the plant moves T.
//! So no integrator can wind up while another one acts, and none must track another as in the paper. A negative bias takes from
//! the excess first. When no excess is left, it takes from the load that contracts spend beyond the fixed load, from all by the
//! same factor, but leaves contracts a least load (`contracts.rs`): the measured load may be one that no level moves, as that
//! of a site with deadlines.
//!
//! If a plant has two resources (UC eq. 9) and all groups use the same one more, that one is shared out. If groups differ in
//! the resource that they use more, `two_resources` shares out both.

use super::two_resources::{TwoResources, least_loads};
use crate::control::Demand;
use crate::control::utilization::view::SiteView;
use alloc::vec::Vec;
use core::ops::Range;

/// The load that a site may spend, in units of the plant's capacity.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// U*_i; 0 for a site without a contract.
    pub(crate) promised: f64,
    /// The load that is served in any case.
    pub(crate) fixed: f64,
    pub(crate) weight: f64,
    /// Whether the site may take from the excess.
    pub(crate) shares: bool,
    /// The site's groups, highest priority first.
    pub(crate) groups: Range<usize>,
}

impl Claim {
    /// The claim of a site with this contract and this fixed load.
    pub(crate) fn new(site: &SiteView, promised: f64, fixed: f64) -> Self {
        let (weight, shares) = (site.weight, site.shares_excess);
        Claim { promised, fixed, weight, shares, groups: site.groups.clone() }
    }
}

/// The claims of sites, and the demands of their groups.
#[derive(Clone, Copy)]
pub(crate) struct Wants<'a> {
    pub(crate) claims: &'a [Claim],
    pub(crate) groups: &'a [Demand],
    /// The claims and demands by resource, if both are shared out.
    pub(crate) divided: Option<&'a TwoResources>,
    /// The load that contracts may take however low T is.
    pub(crate) left_to_contracts: f64,
}

impl Wants<'_> {
    /// Sets the groups' shares, as [`share_out`] does. If `kept` is given and contracts fit, each site gets at least the load
    /// of its groups at these m, even beyond T.
    pub(super) fn share_out(self, capacity: f64, drain: f64, kept: &[f64], shares: &mut [GroupShare]) {
        match self.divided {
            Some(divided) => divided.share_out((capacity, self.left_to_contracts), kept, shares),
            None => {
                let least = least_loads(self.claims, self.groups, drain, kept);
                share_out(self, capacity, drain, &least, shares);
            }
        }
    }

    /// The m of a group with this share.
    pub(super) fn level(self, group: usize, share: &GroupShare, drain: f64) -> f64 {
        match self.divided {
            Some(divided) => divided.level(group, share),
            None => self.groups[group].solve(share.load, drain),
        }
    }

    /// Whether a group is beyond its share at the lowest level.
    pub(super) fn is_beyond(self, group: usize, share: &GroupShare, drain: f64) -> bool {
        match self.divided {
            Some(divided) => {
                divided.of_group(group, share).iter().any(|(own, load)| own.offered(1.0, drain) > *load)
            }
            None => self.groups[group].offered(1.0, drain) > share.load,
        }
    }

    /// Sets each group's entitlement, as [`entitle`] does; with two resources it depends on these shares.
    pub(super) fn entitle(self, capacity: f64, shares: &[GroupShare], entitled: &mut [GroupShare]) {
        match self.divided {
            Some(divided) => divided.entitle(capacity, shares, entitled),
            None => entitle(self, capacity, entitled),
        }
    }
}

/// The share of a group: the classes of one site and one priority, which have one m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GroupShare {
    /// The load that the group may bring; that of the workers, if both resources are shared out.
    pub(crate) load: f64,
    /// The group's load on the link, if both resources are shared out.
    pub(crate) link: f64,
    /// m_site: the m that the site's own contract carries.
    pub(crate) site_level: f64,
}

/// Sets the groups' shares. `capacity` is T. `drain`, as in [`Demand::offered`], is the part of its backlog that each group
/// must carry. If `least` is given and contracts fit, each site gets at least this load, even beyond T.
pub(crate) fn share_out(
    wants: Wants<'_>,
    capacity: f64,
    drain: f64,
    least: &[f64],
    shares: &mut [GroupShare],
) {
    let Wants { claims, groups, left_to_contracts, .. } = wants;
    let rejecting: Vec<f64> = claims.iter().map(|claim| at_level(groups, claim, 0.0, |_| 0.0)).collect();
    let own = |(claim, rejecting): (&Claim, &f64)| {
        // A backlog is drained within its site's budget, so it takes nothing from other sites.
        let spent = own_levels(claim, groups, drain, |group, m| shares[group].site_level = m);
        spent.min((claim.promised - claim.fixed).max(*rejecting))
    };
    let mut spent: Vec<f64> = claims.iter().zip(&rejecting).map(own).collect();
    let fixed: f64 = claims.iter().map(|claim| claim.fixed).sum();
    let contracts: f64 = spent.iter().sum();
    let left = capacity.max(left_to_contracts) - fixed;
    if contracts > left {
        let least: f64 = rejecting.iter().sum();
        let fits = ((left - least) / (contracts - least).max(1e-12)).clamp(0.0, 1.0);
        for (spent, rejecting) in spent.iter_mut().zip(&rejecting) {
            *spent = rejecting + fits * (*spent - rejecting);
        }
    } else {
        let needs = claims.iter().zip(&spent).enumerate().map(|(site, (claim, spent))| {
            let full = at_level(groups, claim, drain, |demand| f64::from(demand.top));
            Need {
                least: claim.fixed + least.get(site).map_or(*spent, |least| least.max(*spent)),
                most: claim.fixed + if claim.shares { full.max(*spent) } else { *spent },
                weight: claim.weight,
            }
        });
        let needs: Vec<Need> = needs.collect();
        let level = fill(&needs, capacity);
        for ((spent, need), claim) in spent.iter_mut().zip(&needs).zip(claims) {
            *spent = need.at(level) - claim.fixed;
        }
    }
    for (claim, spent) in claims.iter().zip(spent) {
        // A site that gets exactly its demand must not fall short by rounding.
        let budget = spent * (1.0 + 1e-9) + 1e-12;
        spend(claim, groups, budget, drain, |group, load, _| shares[group].load = load);
    }
}

/// Sets the entitlement of each group: the load that the group may take however much its site wants, if the other sites want
/// what they want now and no site has a contract.
pub(crate) fn entitle(wants: Wants<'_>, capacity: f64, shares: &mut [GroupShare]) {
    let Wants { claims, groups, .. } = wants;
    let need = |claim: &Claim| Need {
        least: claim.fixed + at_level(groups, claim, 0.0, |_| 0.0),
        most: claim.fixed + at_level(groups, claim, 0.0, |demand| f64::from(demand.top)),
        weight: claim.weight,
    };
    let needs: Vec<Need> = claims.iter().map(need).collect();
    let breakpoints = breakpoints(&needs);
    for (site, claim) in claims.iter().enumerate() {
        // The breakpoint beyond which the site itself wants no more is left out: its entitlement is that of endless demand.
        let others =
            breakpoints.iter().filter(|breakpoint| breakpoint.site != site || breakpoint.change > 0.0);
        let level = water_level(others, &needs, capacity).unwrap_or(f64::INFINITY);
        spend(claim, groups, claim.weight * level - claim.fixed, 0.0, |group, load, _| {
            shares[group].load = load
        });
    }
}

pub(super) fn at_level(groups: &[Demand], claim: &Claim, drain: f64, m: impl Fn(&Demand) -> f64) -> f64 {
    groups[claim.groups.clone()].iter().map(|demand| demand.offered(m(demand), drain)).sum()
}

/// Passes each group of a site with the m_site at which the site fits into its contract; returns the load that is spent at
/// these m.
pub(crate) fn own_levels(
    claim: &Claim,
    groups: &[Demand],
    drain: f64,
    mut set: impl FnMut(usize, f64),
) -> f64 {
    let own = (claim.promised - claim.fixed).max(0.0);
    spend(claim, groups, own, drain, |group, _, m| set(group, m))
}

/// Spends a budget by priority; passes each group, the load that it may spend and the m at which it fits; returns the load that
/// was spent.
fn spend(
    claim: &Claim,
    groups: &[Demand],
    budget: f64,
    drain: f64,
    mut set: impl FnMut(usize, f64, f64),
) -> f64 {
    // Lower groups count with their arrivals only: their backlog is served after all requests of higher groups.
    let own = &groups[claim.groups.clone()];
    let mut rejecting_lower: f64 = own.iter().map(|demand| demand.offered(0.0, 0.0)).sum();
    let mut spent = 0.0;
    for (number, demand) in claim.groups.clone().zip(own) {
        rejecting_lower -= demand.offered(0.0, 0.0);
        let load = budget - spent - rejecting_lower;
        let m = demand.solve(load, drain);
        spent += demand.offered(m, drain);
        set(number, load, m);
    }
    spent
}

/// The least load that a site gets and the most that it wants.
pub(super) struct Need {
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) weight: f64,
}

impl Need {
    pub(super) fn at(&self, level: f64) -> f64 {
        (self.weight * level).min(self.most).max(self.least)
    }
}

/// The total is piecewise linear in the water level of weighted max-min fairness: the share of a site begins to grow at one
/// level, and stops at another.
#[derive(Clone, Copy)]
struct Breakpoint {
    level: f64,
    /// The increase of the total's growth from this level on.
    change: f64,
    site: usize,
}

/// The breakpoints of all sites, in order.
fn breakpoints(needs: &[Need]) -> Vec<Breakpoint> {
    let of_site = |(site, need): (usize, &Need)| {
        [(need.least, need.weight), (need.most, -need.weight)].map(|(load, change)| Breakpoint {
            level: load / need.weight,
            change,
            site,
        })
    };
    let mut breakpoints: Vec<Breakpoint> = needs.iter().enumerate().flat_map(of_site).collect();
    breakpoints.sort_unstable_by(|a, b| a.level.total_cmp(&b.level));
    breakpoints
}

/// The water level at which all sites together get `total`; `None` if the total stops growing before.
fn water_level<'a>(
    breakpoints: impl Iterator<Item = &'a Breakpoint>,
    needs: &[Need],
    total: f64,
) -> Option<f64> {
    let mut given: f64 = needs.iter().map(|need| need.least).sum();
    let (mut level, mut slope) = (0.0, 0.0);
    for breakpoint in breakpoints {
        let more = slope * (breakpoint.level - level);
        if given + more >= total && slope > 0.0 {
            break;
        }
        given += more;
        level = breakpoint.level;
        slope += breakpoint.change;
    }
    (slope > 0.0).then(|| level + ((total - given) / slope).max(0.0))
}

/// The water level of weighted max-min fairness at which all sites together get `total`, or each has its most.
pub(super) fn fill(needs: &[Need], total: f64) -> f64 {
    let breakpoints = breakpoints(needs);
    let last = breakpoints.last().map_or(0.0, |breakpoint| breakpoint.level);
    water_level(breakpoints.iter(), needs, total).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load of `full` at full quality, a fifth of it at light, `reject` if all are rejected.
    fn group(full: f64, reject: f64) -> Demand {
        Demand::arriving(&[reject, (0.2 * full).max(1.5 * reject), full.max(2.0 * reject)])
    }

    fn claim(promised: f64, groups: Range<usize>) -> Claim {
        Claim { promised, fixed: 0.0, weight: 1.0, shares: true, groups }
    }

    fn shared(claims: &[Claim], groups: &[Demand], capacity: f64, drain: f64) -> Vec<GroupShare> {
        let mut shares = alloc::vec![GroupShare::default(); groups.len()];
        share_out(
            Wants { claims, groups, divided: None, left_to_contracts: 0.0 },
            capacity,
            drain,
            &[],
            &mut shares,
        );
        shares
    }

    fn taken(groups: &[Demand], shares: &[GroupShare]) -> Vec<f64> {
        let taken =
            |(demand, share): (&Demand, &GroupShare)| demand.offered(demand.solve(share.load, 0.0), 0.0);
        groups.iter().zip(shares).map(taken).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn a_contract_is_kept_before_best_effort_gets_anything() {
        let claims = [claim(0.5, 0..1), claim(0.0, 1..2)];
        let groups = [group(0.4, 0.0), group(3.0, 0.0)];
        let taken = taken(&groups, &shared(&claims, &groups, 0.85, 0.0));
        assert!(close(taken[0], 0.4) && close(taken[1], 0.45), "{taken:?}");
    }

    #[test]
    fn a_site_beyond_its_contract_is_held_to_it_and_takes_what_others_leave() {
        let mut groups = [group(2.0, 0.0), group(2.0, 0.0)];
        let share =
            |claims: &[Claim; 2], groups: &[Demand; 2]| taken(groups, &shared(claims, groups, 0.9, 0.0));
        // The contract carries more than half of the plant: best effort has the rest.
        let claims = [claim(0.6, 0..1), claim(0.0, 1..2)];
        let got = share(&claims, &groups);
        assert!(close(got[0], 0.6) && close(got[1], 0.3), "{got:?}");
        // The contract carries less than half of the plant: each site has half.
        let claims = [claim(0.3, 0..1), claim(0.0, 1..2)];
        let got = share(&claims, &groups);
        assert!(close(got[0], 0.45) && close(got[1], 0.45), "{got:?}");
        // A site that does not share is held to its contract on an idle plant too.
        let policed = [Claim { shares: false, ..claims[0].clone() }, claims[1].clone()];
        let got = share(&policed, &groups);
        assert!(close(got[0], 0.3) && close(got[1], 0.6), "{got:?}");
        // The fixed load counts against the contract.
        let fixed = [Claim { fixed: 0.25, ..policed[0].clone() }, claims[1].clone()];
        let got = share(&fixed, &groups);
        assert!(close(got[0], 0.05) && close(got[1], 0.6), "{got:?}");
        // The other site wants little, so the first has the rest.
        groups[1] = group(0.1, 0.0);
        let got = share(&claims, &groups);
        assert!(close(got[0], 0.8) && close(got[1], 0.1), "{got:?}");
    }

    #[test]
    fn a_backlog_of_best_effort_takes_nothing_from_a_contract() {
        let claims = [claim(0.4, 0..1), claim(0.0, 1..2)];
        let mut groups = [group(1.0, 0.0), group(1.0, 0.0)];
        (groups[1].levels[1].waiting, groups[1].levels[2].waiting) = (1.5, 4.0);
        let shares = shared(&claims, &groups, 0.8, 1.0);
        assert!(close(taken(&groups, &shares)[0], 0.4), "{groups:?}");
        assert_eq!(groups[1].solve(shares[1].load, 1.0), 0.0);
    }

    #[test]
    fn priorities_higher_first_and_the_cost_of_rejecting_lower_ones_counts() {
        let claims = [claim(0.0, 0..3)];
        let groups = [group(0.5, 0.0), group(1.0, 0.01), group(1.0, 0.05)];
        let shares = shared(&claims, &groups, 0.7, 0.0);
        let taken = taken(&groups, &shares);
        assert!(close(taken[0], 0.5) && close(taken[1], 0.15) && close(taken[2], 0.05), "{taken:?}");
        let levels = [0, 1, 2].map(|group| groups[group].solve(shares[group].load, 0.0));
        assert!(levels[0] == 2.0 && levels[1] < 1.0 && levels[2] == 0.0, "{levels:?}");
    }

    #[test]
    fn when_the_plant_carries_less_than_promised_all_give_the_same_share() {
        let claims = [claim(0.4, 0..1), claim(0.4, 1..2), claim(0.0, 2..3)];
        let groups = [group(1.0, 0.0), group(0.2, 0.0), group(1.0, 0.0)];
        let taken = taken(&groups, &shared(&claims, &groups, 0.3, 0.0));
        assert!(close(taken[0], 0.2) && close(taken[1], 0.1) && close(taken[2], 0.0), "{taken:?}");
    }

    #[test]
    fn what_is_left_is_shared_by_weight_and_need() {
        let given = |needs: &[(f64, f64, f64)], total| {
            let needs: Vec<Need> = needs
                .iter()
                .map(|(least, most, weight)| Need { least: *least, most: *most, weight: *weight })
                .collect();
            let level = fill(&needs, total);
            needs.iter().map(|need| need.at(level)).collect::<Vec<_>>()
        };
        let equal =
            |a: Vec<f64>, b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b));
        assert!(equal(given(&[(0.0, 0.1, 1.0), (0.0, 5.0, 1.0), (0.0, 5.0, 2.0)], 1.0), &[0.1, 0.3, 0.6]));
        assert!(equal(given(&[(0.0, 0.1, 1.0), (0.0, 0.2, 9.0), (0.0, 0.0, 1.0)], 1.0), &[0.1, 0.2, 0.0]));
        assert!(equal(given(&[(0.5, 5.0, 1.0), (0.0, 5.0, 1.0)], 0.8), &[0.5, 0.3]));
        assert!(equal(given(&[(0.5, 5.0, 1.0), (0.0, 5.0, 1.0)], 1.2), &[0.6, 0.6]));
        assert!(equal(given(&[], 1.0), &[]));
    }

    /// For any demand: no load beyond the capacity, m at least m_site, and no capacity left while a site wants more.
    #[test]
    fn properties_of_every_sharing() {
        let mut random = crate::random::Random::new(11);
        let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        for _ in 0..2000 {
            let mut groups: Vec<Demand> = Vec::new();
            let mut claims = Vec::new();
            for site in 0..4 {
                let first = groups.len();
                for _ in 0..=(site % 3) {
                    groups.push(group(uniform(), 0.01 * uniform()));
                }
                let promised = if uniform() < 0.5 { 0.3 * uniform() } else { 0.0 };
                let weight = 0.5 + uniform();
                claims.push(Claim { weight, ..claim(promised, first..groups.len()) });
            }
            let capacity = 0.3 + uniform();
            let shares = shared(&claims, &groups, capacity, 0.0);
            let (least, full): (f64, f64) = (groups.iter())
                .map(|g| (g.levels[0].arriving, g.levels[2].arriving))
                .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
            let total: f64 = taken(&groups, &shares).iter().sum();
            assert!(
                close(total, capacity.max(least).min(full)),
                "{total} of {capacity}: {claims:?} {groups:?}"
            );
            let promised: f64 = claims.iter().map(|claim| claim.promised).sum();
            if promised + least < capacity {
                let mut all = groups.iter().zip(&shares);
                let holds = all.all(|(g, share)| g.solve(share.load, 0.0) >= share.site_level - 1e-9);
                assert!(holds, "{claims:?} {groups:?}");
            }
        }
    }
}
