//! Shares out both resources of a plant, the time of its workers and the bandwidth of its link (UC eq. 9), among groups that
//! differ in the one that they use more.
//!
//! Each resource, *work* and *link*, is shared out by itself, by the rules of `max_min`, with the contracts' claims on that
//! resource. A group has the lower of the two m that follow. The part of one resource that a group cannot use because of the
//! other is shared out again, in rounds: among the claims on work the group counts with its work at the m that the link leaves
//! it, and the other way round. From round to round m by work rises and m by link falls, so that they meet.
//!
//! The result is fair in the sense of "No justified complaints: on fair sharing of multiple resources" (Dolev, Feitelson,
//! Halpern, Kupferman and Linial, ITCS 2012): a group that does not get all that it wants has a bottleneck, a resource that is
//! full and of which its site has its part by weight at least. Neither sum exceeds T (unless the load that no m moves does), no
//! group is below M while both sums fit, and a site within its plan for both resources keeps full quality.
//!
//! Dominant resource fairness (Ghodsi et al., NSDI 2011) would raise all sites by the resource that each uses more, and stop
//! those that use a resource once it is full. But nearly every site uses a little of both, so downloads that need a hundredth
//! of the workers would be held to the same part of an idle link as other sites have of the workers.
//!
//! A site that does not share the excess is held to its U*, `max(a R + b W, b' W)`, in each resource. Only its contract's claim
//! on a resource is kept for it; the rest is excess.

use super::max_min::{Claim, GroupShare, Wants, at_level, entitle, share_out};
use crate::control::Demand;
use crate::control::utilization::demand::Resource;
use crate::control::utilization::offered::PlantDemand;
use crate::control::utilization::view::{PlantView, SiteView};
use alloc::vec::Vec;
use libm::fabs;

/// The most rounds. After these, at most a hundredth is left to be shared out again if two sites limit each other with demands
/// that differ by a tenth in the two resources.
const ROUNDS: usize = 12;
/// Shares that move by less than this stand still.
const STANDS: f64 = 1e-6;

/// The claims of sites and the demands of groups on each resource, in the order of [`Resource::BOTH`].
#[derive(Debug)]
pub(crate) struct TwoResources {
    claims: [Vec<Claim>; 2],
    groups: [Vec<Demand>; 2],
    /// By group: the load that the U* of its site allows, if the site does not share the excess; else infinite.
    most: [Vec<f64>; 2],
    drain: f64,
}

impl TwoResources {
    /// The claims and demands of a plant's sites, with the part `drain` of the backlog.
    pub(crate) fn new(plant: &PlantView, demand: &PlantDemand, drain: f64) -> Self {
        let claims = Resource::BOTH.map(|resource| {
            let own = demand.of(resource);
            let claim = |(number, site): (usize, &SiteView)| {
                Claim::new(site, own.claimed[number], own.fixed[number].offered(drain))
            };
            plant.sites.iter().enumerate().map(claim).collect()
        });
        TwoResources::of(claims, &demand.groups, &demand.claimed, drain)
    }

    /// The demands of sites with these claims. `allowed` is by site the U* to which a site is held that does not share the
    /// excess.
    pub(super) fn of(mut claims: [Vec<Claim>; 2], groups: &[Demand], allowed: &[f64], drain: f64) -> Self {
        let groups =
            Resource::BOTH.map(|resource| groups.iter().map(|own| own.of(resource)).collect::<Vec<_>>());
        let mut most = groups.each_ref().map(|own| alloc::vec![f64::INFINITY; own.len()]);
        for (number, allowed) in allowed.iter().enumerate() {
            let [work, link] = claims.each_mut().map(|own| &mut own[number]);
            if work.shares {
                continue;
            }
            let (first, budgets) = (work.groups.start, [work.fixed, link.fixed].map(|fixed| allowed - fixed));
            let own = groups.each_ref().map(|own| &own[work.groups.clone()]);
            levels_within(own, budgets, drain, |group, m| {
                for (most, own) in most.iter_mut().zip(own) {
                    most[first + group] = enough(own[group].offered(m, drain));
                }
            });
            // Beyond its contract's part of a resource, the site takes its allowed load from the excess.
            (work.shares, link.shares) = (true, true);
        }
        TwoResources { claims, groups, most, drain }
    }

    /// Sets the groups' shares of both resources, and m_site, as [`share_out`] does. If `kept` is given and contracts fit, each
    /// site gets at least the load of its groups at these m, even beyond T.
    pub(super) fn share_out(
        &self,
        (capacity, left_to_contracts): (f64, f64),
        kept: &[f64],
        shares: &mut [GroupShare],
    ) {
        let claims = [0, 1].map(|resource| self.kept_contracts(resource, capacity.max(left_to_contracts)));
        let mut loads = self.most.clone();
        for _ in 0..ROUNDS {
            let before = loads.clone();
            for (resource, claims) in claims.iter().enumerate() {
                self.fill((resource, claims), (capacity, left_to_contracts), kept, &mut loads);
            }
            let mut all = before.iter().zip(&loads).flat_map(|(before, after)| before.iter().zip(after));
            let stand = all.all(|(before, after)| before == after || fabs(before - after) < STANDS);
            let [work, link] = &loads;
            for (group, share) in shares.iter_mut().enumerate() {
                // Work was shared out by the link's shares of the round before.
                (share.load, share.link) = (work[group], link[group].min(before[1][group]));
            }
            if stand {
                break;
            }
        }
        let [works, links] = &self.claims;
        for (work, link) in works.iter().zip(links) {
            let own = self.groups.each_ref().map(|own| &own[work.groups.clone()]);
            let budgets = [work, link].map(|claim| claim.promised - claim.fixed);
            levels_within(own, budgets, self.drain, |group, m| {
                shares[work.groups.start + group].site_level = m
            });
        }
    }

    /// The claims on one resource with contracts that fit it: if all contracts together would take more, each has the same part
    /// of its claim. (If they were cut by each round's demands, as in `max_min`, a site would have the more the more it wants,
    /// and the rounds would not come to rest.)
    fn kept_contracts(&self, resource: usize, capacity: f64) -> Vec<Claim> {
        let (mut claims, groups) = (self.claims[resource].clone(), &self.groups[resource]);
        let rejecting = |claim: &Claim| at_level(groups, claim, 0.0, |_| 0.0);
        // The part of a contract that its site does not use takes nothing from another contract.
        let whole = |claim: &Claim| at_level(groups, claim, self.drain, |own| f64::from(own.top));
        let budget = |claim: &Claim| (claim.promised - claim.fixed).min(whole(claim)).max(rejecting(claim));
        let least: f64 = claims.iter().map(rejecting).sum();
        let all: f64 = claims.iter().map(budget).sum();
        let left = capacity - claims.iter().map(|claim| claim.fixed).sum::<f64>();
        if all > left {
            let part = ((left - least) / (all - least).max(1e-12)).clamp(0.0, 1.0);
            for claim in &mut claims {
                let least = rejecting(claim);
                claim.promised = claim.fixed + least + part * (budget(claim) - least);
            }
        }
        claims
    }

    /// Shares out one resource among the groups' demands at the m that the other resource leaves them.
    fn fill(
        &self,
        (resource, claims): (usize, &[Claim]),
        (capacity, left_to_contracts): (f64, f64),
        kept: &[f64],
        loads: &mut [Vec<f64>; 2],
    ) {
        let own = &self.groups[resource];
        let wanted: Vec<Demand> =
            (0..own.len()).map(|group| self.wanted(resource, group, &loads[1 - resource][group])).collect();
        let least = least_loads(claims, own, self.drain, kept);
        let mut shares = alloc::vec![GroupShare::default(); own.len()];
        let wants = Wants { claims, groups: &wanted, divided: None, left_to_contracts };
        share_out(wants, capacity, self.drain, &least, &mut shares);
        for (group, share) in shares.iter().enumerate() {
            let wanted = &wanted[group];
            // A demand without any load on the resource fits, whatever rounding leaves.
            let fits = wanted.offered(f64::from(wanted.top), self.drain) <= 0.0
                || wanted.solve(share.load, self.drain) >= f64::from(wanted.top);
            let load = if fits { f64::INFINITY } else { share.load };
            loads[resource][group] = load.min(self.most[resource][group]);
        }
    }

    /// The demand of a group for a resource if `other` is its share of the other resource.
    fn wanted(&self, resource: usize, group: usize, other: &f64) -> Demand {
        let own = &self.groups[resource][group];
        let most = own.solve(self.most[resource][group], self.drain);
        own.at_most(self.groups[1 - resource][group].solve(*other, self.drain).min(most))
    }

    /// Sets each group's entitlement, as [`entitle`] does, with a demand for each resource that is limited by the group's
    /// present share of the other one. The two results become one load: the group's larger load, times the smaller of the two
    /// parts that it gets.
    pub(super) fn entitle(&self, capacity: f64, shares: &[GroupShare], entitled: &mut [GroupShare]) {
        let by_resource = [0, 1].map(|resource| {
            let other = |share: &GroupShare| if resource == 0 { share.link } else { share.load };
            let wanted =
                shares.iter().enumerate().map(|(group, share)| self.wanted(resource, group, &other(share)));
            let wanted: Vec<Demand> = wanted.collect();
            let mut found = alloc::vec![GroupShare::default(); shares.len()];
            entitle(
                Wants {
                    claims: &self.claims[resource],
                    groups: &wanted,
                    divided: None,
                    left_to_contracts: 0.0,
                },
                capacity,
                &mut found,
            );
            found
        });
        for (group, entitled) in entitled.iter_mut().enumerate() {
            let arriving = self.groups.each_ref().map(|own| own[group].offered(1.0, 0.0));
            let part = |resource: usize| match arriving[resource] {
                0.0 => f64::INFINITY,
                arriving => by_resource[resource][group].load / arriving,
            };
            let least = part(0).min(part(1));
            entitled.load =
                if least.is_finite() { arriving[0].max(arriving[1]) * least } else { f64::INFINITY };
        }
    }

    /// The m of a group with this share.
    pub(super) fn level(&self, group: usize, share: &GroupShare) -> f64 {
        let [work, link] = self.groups.each_ref().map(|own| &own[group]);
        work.solve(share.load, self.drain).min(link.solve(share.link, self.drain))
    }

    /// The demand of a group for each resource, and its share of that resource.
    pub(super) fn of_group(&self, group: usize, share: &GroupShare) -> [(&Demand, f64); 2] {
        let [work, link] = self.groups.each_ref().map(|own| &own[group]);
        [(work, share.load), (link, share.link)]
    }
}

/// A load that must not fall short by rounding.
fn enough(load: f64) -> f64 {
    load * (1.0 + 1e-9) + 1e-12
}

/// By site: the load of its groups at the m of `kept`; empty if no m are given.
pub(super) fn least_loads(claims: &[Claim], groups: &[Demand], drain: f64, kept: &[f64]) -> Vec<f64> {
    let needed = |group: usize| groups[group].offered(kept[group], drain);
    let sites = claims.iter().filter(|_| !kept.is_empty());
    sites.map(|claim| claim.groups.clone().map(needed).sum()).collect()
}

/// Passes the index of each group of one site, highest priority first, with the m at which the groups take no more than these
/// budgets of both resources.
pub(crate) fn levels_within(
    groups: [&[Demand]; 2],
    budgets: [f64; 2],
    drain: f64,
    mut set: impl FnMut(usize, f64),
) {
    // Lower groups count with their rejections only, as with one resource.
    let rejecting = groups.map(|own| own.iter().map(|demand| demand.offered(0.0, 0.0)).sum::<f64>());
    let mut left = [0, 1].map(|resource| budgets[resource].max(0.0) - rejecting[resource]);
    for group in 0..groups[0].len() {
        let own = groups.map(|own| &own[group]);
        for (left, demand) in left.iter_mut().zip(own) {
            *left += demand.offered(0.0, 0.0);
        }
        let m = own[0].solve(left[0], drain).min(own[1].solve(left[1], drain));
        for (left, demand) in left.iter_mut().zip(own) {
            *left -= demand.offered(m, drain);
        }
        set(group, m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::utilization::demand::LoadParts;
    use core::ops::Range;

    /// A group of one level with these loads on the two resources.
    fn group(arriving: f64, link: f64) -> Demand {
        let mut demand = Demand::arriving(&[0.0, arriving]);
        demand.levels[1].link = link;
        demand
    }

    /// Sites with these groups and these parts of each resource by contract.
    fn claims(sites: &[(Range<usize>, [f64; 2])]) -> [Vec<Claim>; 2] {
        [0, 1].map(|resource| {
            let claim = |(groups, promised): &(Range<usize>, [f64; 2])| {
                let (promised, groups) = (promised[resource], groups.clone());
                Claim { promised, fixed: 0.0, weight: 1.0, shares: true, groups }
            };
            sites.iter().map(claim).collect()
        })
    }

    fn shared(own: &TwoResources, capacity: f64) -> (Vec<GroupShare>, Vec<f64>) {
        let mut shares = alloc::vec![GroupShare::default(); own.groups[0].len()];
        own.share_out((capacity, 0.0), &[], &mut shares);
        let levels = shares.iter().enumerate().map(|(group, share)| own.level(group, share)).collect();
        (shares, levels)
    }

    /// The m of sites of one group each, without a contract, at a line of 0.85.
    fn levels(groups: &[Demand]) -> Vec<f64> {
        let sites: Vec<(Range<usize>, [f64; 2])> = (0..groups.len()).map(|n| (n..n + 1, [0.0; 2])).collect();
        shared(&TwoResources::of(claims(&sites), groups, &alloc::vec![0.0; groups.len()], 0.0), 0.85).1
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn what_fits_both_resources_is_served_and_each_is_filled_where_it_does_not() {
        for load in [0.7, 0.8, 0.82] {
            assert_eq!(levels(&[group(load, 0.02), group(0.02, load)]), [1.0; 2], "{load}");
        }
        // The workers are full, and the downloads hardly use them.
        let found = levels(&[group(2.0, 0.02), group(0.02, 0.7)]);
        assert!(close(found[0], 0.415) && found[1] == 1.0, "{found:?}");
        let found = levels(&[group(2.0, 0.04), group(0.04, 2.0)]);
        assert!(found.iter().all(|m| close(*m, 0.85 / 2.04)), "{found:?}");
    }

    #[test]
    fn a_contract_that_nobody_uses_takes_nothing_from_another() {
        let sites = [(0..1, [0.85, 0.05]), (1..2, [0.2, 0.2]), (2..3, [0.0, 0.0])];
        let groups = [group(1.0, 0.02), group(0.0, 0.0), group(1.0, 0.02)];
        let own = TwoResources::of(claims(&sites), &groups, &[0.0; 3], 0.0);
        let (_, found) = shared(&own, 0.85);
        assert!(close(found[0], 0.85) && found[1] == 1.0 && close(found[2], 0.0), "{found:?}");
    }

    #[test]
    fn what_a_site_cannot_use_of_one_resource_because_of_the_other_is_shared_out_again() {
        // The workers leave the first site m = 0.2125, and so 0.17 of the link; the third site has the rest of the link.
        let found = levels(&[group(2.0, 0.8), group(2.0, 0.0), group(0.0, 0.8)]);
        assert!(close(found[0], 0.2125) && close(found[1], 0.2125), "{found:?}");
        assert!(close(found[2], 0.68 / 0.8), "{found:?}");
    }

    #[test]
    fn a_lower_priority_has_the_resource_that_the_higher_one_does_not_use() {
        let groups = [group(0.5, 0.02), group(0.02, 0.5)];
        let own = TwoResources::of(claims(&[(0..2, [0.0; 2])]), &groups, &[0.0], 0.0);
        assert_eq!(shared(&own, 0.85).1, [1.0; 2]);
        let found = shared(&own, 0.4).1;
        assert!(close(found[0], 0.8) && close(found[1], 0.0), "priorities from the top: {found:?}");
    }

    #[test]
    fn a_contract_keeps_its_part_of_each_resource_and_one_that_does_not_share_its_larger_part() {
        let groups = [group(0.5, 0.5), group(0.02, 0.5)];
        let mut claims = claims(&[(0..1, [0.5, 0.02]), (1..2, [0.02, 0.5])]);
        claims.iter_mut().flatten().for_each(|claim| claim.shares = false);
        let own = TwoResources::of(claims.clone(), &groups, &[0.5, 0.5], 0.0);
        // The first site's pages are larger than its contract is for: it has the part of the link that the second leaves.
        let (shares, found) = shared(&own, 0.85);
        assert!(close(found[0], 0.7) && found[1] == 1.0, "{found:?}");
        assert!(close(shares[0].site_level, 0.04) && close(shares[1].site_level, 1.0), "{shares:?}");
        // Alone, the site has its allowed part of each resource.
        let alone = [group(0.5, 1.0), group(0.0, 0.0)];
        let found = shared(&TwoResources::of(claims, &alone, &[0.5, 0.5], 0.0), 0.85).1;
        assert!(close(found[0], 0.5), "{found:?}");
    }

    #[test]
    fn a_group_may_count_on_the_resource_of_which_it_has_the_smaller_part() {
        let groups = [group(0.5, 0.1), group(0.6, 0.1), group(0.0, 0.9)];
        let sites: Vec<(Range<usize>, [f64; 2])> = (0..3).map(|n| (n..n + 1, [0.0; 2])).collect();
        let own = TwoResources::of(claims(&sites), &groups, &[0.0; 3], 0.0);
        let shares = shared(&own, 0.85).0;
        let mut entitled = [GroupShare::default(); 3];
        own.entitle(1.0, &shares, &mut entitled);
        let found = entitled.map(|share| share.load);
        assert!(close(found[0], 0.5) && close(found[1], 0.5) && found[2] > 0.8, "{found:?}");
    }

    /// For any demand: no load is beyond the capacity of either resource; all requests are served if they fit; contracts that
    /// fit are kept; priorities are filled from the top; and a site below M has a full bottleneck, and its part of it.
    #[test]
    fn properties_of_every_sharing_of_two_resources() {
        let mut random = crate::random::Random::new(12);
        let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let mut fitted = 0;
        for _ in 0..2000 {
            let (mut groups, mut sites, mut weights) = (Vec::new(), Vec::new(), Vec::new());
            let (has_contracts, size) = (uniform() < 0.5, 0.5 * uniform());
            for site in 0..4 {
                let first = groups.len();
                for _ in 0..=(site % 3) {
                    // Most groups use one resource much more than the other.
                    let (work, skew) = (0.01 + size * uniform(), 20.0_f64.powf(2.0 * uniform() - 1.0));
                    let mut demand = Demand::arriving(&[0.01 * work * uniform(), 0.2 * work, work]);
                    (demand.levels[1].link, demand.levels[2].link) = (0.1 * work * skew, 0.5 * work * skew);
                    groups.push(demand);
                }
                let promised =
                    [uniform(), uniform()].map(|part| if has_contracts { 0.2 * part } else { 0.0 });
                sites.push((first..groups.len(), promised));
                weights.push(0.5 + uniform());
            }
            let mut claims = claims(&sites);
            for own in &mut claims {
                own.iter_mut().zip(&weights).for_each(|(claim, weight)| claim.weight = *weight);
            }
            let (own, capacity) = (TwoResources::of(claims, &groups, &[1.0; 4], 0.0), 0.3 + uniform());
            let (shares, levels) = shared(&own, capacity);
            let said = || alloc::format!("{levels:?} of {capacity}: {sites:?} {weights:?} {groups:?}");
            let sum = |range: Range<usize>, m: &dyn Fn(usize) -> f64| {
                let mut sum = LoadParts::default();
                range.for_each(|group| sum.add(1.0, groups[group].parts(m(group))));
                [sum.arriving, sum.link]
            };
            let all = sum(0..groups.len(), &|group| levels[group]);
            let full = sum(0..groups.len(), &|_| 2.0);
            let none = sum(0..groups.len(), &|_| 0.0);
            let holds = |resource: usize| all[resource] <= capacity.max(none[resource]) + 1e-6;
            assert!(holds(0) && holds(1), "{all:?}, {}", said());
            if full[0].max(full[1]) <= capacity {
                fitted += 1;
                assert!(levels.iter().all(|m| *m == 2.0), "{}", said());
            }
            let promised = [0, 1]
                .map(|resource| sites.iter().map(|site| site.1[resource]).sum::<f64>() + none[resource]);
            if promised[0].max(promised[1]) < capacity {
                let mut all = levels.iter().zip(&shares);
                assert!(all.all(|(m, share)| *m >= share.site_level - 1e-6), "{shares:?}, {}", said());
            }
            for ((range, _), weight) in sites.iter().zip(&weights) {
                let mut pairs = levels[range.clone()].windows(2);
                assert!(pairs.all(|pair| pair[1] < 1e-3 || pair[0] > 2.0 - 1e-3), "{}", said());
                let taken = sum(range.clone(), &|group| levels[group]);
                let has_part = |resource: usize| {
                    let part = capacity * weight / weights.iter().sum::<f64>();
                    all[resource] > capacity - 0.01 && (has_contracts || taken[resource] > part - 0.01)
                };
                let is_served = levels[range.clone()].iter().all(|m| *m > 2.0 - 1e-3);
                assert!(is_served || has_part(0) || has_part(1), "{taken:?}, {}", said());
            }
        }
        assert!(fitted > 100, "{fitted}");
    }
}
