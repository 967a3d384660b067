//! The groups of a shared plant whose requests are not rejected although their share of the load line is too small for them.
//!
//! The load line leaves room for chance, so a plant rejects no request while it carries the arriving load at the lowest level
//! (`utilization/laws/carried_load.rs`). If the plant is shared, that holds for each group alone: a group's entitlement is its
//! share of the whole capacity instead of its share of the line. A group that needs more than that is held to its share of the
//! line, whether or not others could still be served at lighter levels: the room above the line is not for such a group.

use super::max_min::{Claim, GroupShare, Wants};
use crate::control::LoadTarget;
use crate::control::utilization::laws::carried_load::{CarryTest, SustainedLoad};
use alloc::vec::Vec;

/// The groups of one plant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CarriedGroups {
    sustained: Vec<SustainedLoad>,
    /// The entitlement of each group, out of the whole capacity.
    entitled: Vec<GroupShare>,
    carried: Vec<bool>,
}

impl CarriedGroups {
    pub(crate) fn new(groups: usize) -> Self {
        CarriedGroups {
            sustained: alloc::vec![SustainedLoad::default(); groups],
            entitled: alloc::vec![GroupShare::default(); groups],
            carried: alloc::vec![false; groups],
        }
    }

    /// Shares out the target, as [`Wants::share_out`] does; only carried groups have more, as far as they need it at their
    /// lowest level. Returns by group whether it is carried.
    pub(crate) fn share_out(
        &mut self,
        wants: Wants<'_>,
        target: &LoadTarget,
        shares: &mut [GroupShare],
    ) -> &[bool] {
        wants.share_out(target.load, target.drain, &[], shares);
        self.carried.fill(false);
        if let Some(carries) = &target.carries {
            let is_beyond = |index: &usize| wants.is_beyond(*index, &shares[*index], target.drain);
            let beyond: Vec<usize> = (0..wants.groups.len()).filter(is_beyond).collect();
            if !beyond.is_empty() {
                wants.entitle(carries.capacity, shares, &mut self.entitled);
            }
            self.judge(wants, target, carries, &beyond);
            if beyond.iter().any(|index| self.carried[*index]) {
                let kept = self.kept(wants, target, shares);
                let before = shares.to_vec();
                wants.share_out(target.load, target.drain, &kept, shares);
                self.keep(wants, &before, shares);
            }
        }
        &self.carried
    }

    /// Follows the load of all groups, and finds which of those beyond their share of the line are carried.
    fn judge(&mut self, wants: Wants<'_>, target: &LoadTarget, carries: &CarryTest, beyond: &[usize]) {
        let steps = !beyond.is_empty() && carries.stepped;
        if carries.begins {
            self.sustained.fill(SustainedLoad::default());
        }
        let is_followed = !target.unconfirmed && !carries.begins;
        let followed = self.sustained.iter_mut().zip(wants.groups).zip(&self.entitled);
        for ((sustained, group), entitled) in followed.filter(|_| is_followed) {
            sustained.follow(group.offered(1.0, 0.0), entitled.load, steps);
        }
        for index in beyond {
            let (group, part) = (&wants.groups[*index], self.entitled[*index].load / carries.capacity);
            let (arriving, backlog) = (group.offered(1.0, 0.0), group.backlog(1.0));
            let part = part.clamp(0.0, 1.0);
            self.carried[*index] = carries.carries(part, &mut self.sustained[*index], arriving, backlog);
        }
    }

    /// By group: the m that it keeps so that no carried group is rejected, while other groups of their sites keep their shares.
    /// All other sites share the rest of the line, down to their lowest level and not below it.
    fn kept(&self, wants: Wants<'_>, target: &LoadTarget, shares: &[GroupShare]) -> Vec<f64> {
        let of_site = |claim: &Claim| {
            let most = if self.carried[claim.groups.clone()].contains(&true) { f64::INFINITY } else { 1.0 };
            let kept = move |index: usize| {
                let level = || wants.level(index, &shares[index], target.drain).min(most);
                if self.carried[index] { 1.0 } else { level() }
            };
            claim.groups.clone().map(kept)
        };
        wants.claims.iter().flat_map(of_site).collect()
    }

    /// Limits the other groups of a site with a carried group to their shares before: otherwise the highest priority would
    /// spend the carried group's load first.
    fn keep(&self, wants: Wants<'_>, before: &[GroupShare], shares: &mut [GroupShare]) {
        let needy = wants.claims.iter().filter(|claim| self.carried[claim.groups.clone()].contains(&true));
        for index in needy.flat_map(|claim| claim.groups.clone()).filter(|index| !self.carried[*index]) {
            let (share, before) = (&mut shares[index], &before[index]);
            (share.load, share.link) = (share.load.min(before.load), share.link.min(before.link));
        }
    }

    /// Forgets the followed loads, because no request arrives.
    pub(crate) fn idle(&mut self) {
        self.sustained.fill(SustainedLoad::default());
    }
}

#[cfg(test)]
mod tests {
    use super::super::two_resources::TwoResources;
    use super::*;
    use crate::control::Demand;
    use core::ops::Range;

    /// A site without a contract.
    fn claim(groups: Range<usize>) -> Claim {
        Claim { promised: 0.0, fixed: 0.0, weight: 1.0, shares: true, groups }
    }

    /// A site that can be degraded and another that cannot, on a plant whose line is 0.85, after `periods` periods with the
    /// load `second` of the second site: the shares of both, and whether the second site is carried.
    fn shared(second: f64, periods: usize) -> ([f64; 2], bool) {
        let claims = [claim(0..1), claim(1..2)];
        let groups = [Demand::arriving(&[0.0, 0.15, 1.0]), Demand::arriving(&[0.0, second])];
        let target = LoadTarget { carries: Some(CarryTest::all(0.5)), ..LoadTarget::plain(0.85) };
        let mut shares = [GroupShare::default(); 2];
        let mut sharing = CarriedGroups::new(2);
        let wants = Wants { claims: &claims, groups: &groups, divided: None, left_to_contracts: 0.0 };
        let mut carried = false;
        for _ in 0..periods {
            carried = sharing.share_out(wants, &target, &mut shares)[1];
        }
        (shares.map(|share| share.load), carried)
    }

    #[test]
    fn a_site_within_its_share_of_the_capacity_has_what_it_needs_and_the_other_the_rest_of_the_line() {
        let ([first, second], carried) = shared(0.46, 50);
        assert!(carried && (first - 0.39).abs() < 1e-6 && (second - 0.46).abs() < 1e-6, "{first} {second}");
        // A site within its share of the line need not be carried.
        assert!(!shared(0.4, 50).1);
    }

    /// A site that uses the workers and another that uses the link: the plant carries both although both sums are beyond the
    /// line.
    #[test]
    fn what_both_resources_carry_is_not_rejected() {
        let groups = [[0.88, 0.02], [0.02, 0.88]].map(|[work, link]| {
            let mut demand = Demand::arriving(&[0.0, work]);
            demand.levels[1].link = link;
            demand
        });
        let claims = [claim(0..1), claim(1..2)];
        let divided = TwoResources::of([claims.to_vec(), claims.to_vec()], &groups, &[0.0; 2], 0.0);
        let wants =
            Wants { claims: &claims, groups: &groups, divided: Some(&divided), left_to_contracts: 0.0 };
        let after = |capacity: f64| {
            let mut carries = CarryTest::all(0.0);
            carries.capacity = capacity;
            let target = LoadTarget { carries: Some(carries), ..LoadTarget::plain(0.85) };
            let (mut sharing, mut shares) = (CarriedGroups::new(2), [GroupShare::default(); 2]);
            (0..50).for_each(|_| _ = sharing.share_out(wants, &target, &mut shares));
            let carried = sharing.share_out(wants, &target, &mut shares).to_vec();
            (carried, [0, 1].map(|group| divided.level(group, &shares[group])))
        };
        assert_eq!(after(1.0), (alloc::vec![true; 2], [1.0; 2]));
        let (carried, levels) = after(0.87);
        assert!(
            carried == [false; 2] && levels.iter().all(|m| (0.9..0.99).contains(m)),
            "{carried:?} {levels:?}"
        );
    }

    /// No site has lighter pages, and the server carries both sites.
    #[test]
    fn what_is_carried_is_not_taken_from_a_site_that_has_nothing_lighter_to_give() {
        for large in [0.8, 0.82, 0.85, 0.88, 0.91] {
            let claims = [claim(0..1), claim(1..2)];
            let groups = [Demand::arriving(&[0.0, 0.05]), Demand::arriving(&[0.0, large])];
            let target = LoadTarget { carries: Some(CarryTest::all(0.5)), ..LoadTarget::plain(0.85) };
            let mut shares = [GroupShare::default(); 2];
            let mut sharing = CarriedGroups::new(2);
            for _ in 0..50 {
                sharing.share_out(
                    Wants { claims: &claims, groups: &groups, divided: None, left_to_contracts: 0.0 },
                    &target,
                    &mut shares,
                );
                let levels = [0, 1].map(|index| groups[index].solve(shares[index].load, 0.0));
                assert_eq!(levels, [1.0; 2], "{large}: {shares:?}");
            }
        }
    }

    #[test]
    fn a_site_that_lasts_beyond_its_share_is_held_to_that_of_the_line() {
        assert!(shared(0.6, 1).1, "one period may be chance");
        let ([first, second], carried) = shared(0.6, 50);
        assert!(!carried && (first - 0.425).abs() < 1e-6 && (second - 0.425).abs() < 1e-6);
    }

    #[test]
    fn what_a_lower_priority_is_carried_with_is_not_spent_by_the_higher_one() {
        let claims = [claim(0..2)];
        let groups = [Demand::arriving(&[0.0, 0.15, 0.84]), Demand::arriving(&[0.0, 0.1])];
        let target = LoadTarget { carries: Some(CarryTest::all(0.5)), ..LoadTarget::plain(0.7) };
        let mut shares = [GroupShare::default(); 2];
        let wants = Wants { claims: &claims, groups: &groups, divided: None, left_to_contracts: 0.0 };
        let carried = CarriedGroups::new(2).share_out(wants, &target, &mut shares).to_vec();
        assert_eq!(carried, [false, true]);
        assert!((shares[0].load - 0.7).abs() < 1e-6, "{shares:?}");
    }
}
