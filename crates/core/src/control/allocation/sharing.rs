//! A plant that several sites, contracts or priorities share: its classes by site and priority, and their levels.
//!
//! Where one site of one priority and no contract has a plant to itself there is nothing to share, and the law's m is
//! the class's.

use super::max_min::{Claim, Group, own_levels, share_out};
use crate::control::utilization::class_view::Governed;
use crate::control::{Aim, Demand};
use crate::promises::plan::{Known, utilization};
use crate::promises::{Guarantee, Promises};
use alloc::vec::Vec;

/// What a class brings at a level, or several do: work that arrives, the link's share, work that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) arriving: f64,
    pub(crate) link: f64,
    pub(crate) waiting: f64,
}

impl Load {
    /// Adds a part of another.
    pub(crate) fn add(&mut self, part: f64, other: Load) {
        self.arriving += part * other.arriving;
        self.link += part * other.link;
        self.waiting += part * other.waiting;
    }

    fn offered(self, drain: f64) -> f64 {
        (self.arriving + drain * self.waiting).max(self.link)
    }
}

/// A site on the plant.
struct Member {
    guarantee: Option<Guarantee>,
    claim: Claim,
    /// What is served at full quality whatever the loop says.
    fixed: Load,
}

/// Who shares a plant.
pub(crate) struct Sharing {
    members: Vec<Member>,
    groups: Vec<Group>,
    /// m by group.
    levels: Vec<f64>,
    /// Of each governed class its member and its group.
    places: Vec<(usize, usize)>,
    /// What other loops send here.
    foreign: Load,
}

impl Sharing {
    /// `None` where there is nothing to share.
    pub(crate) fn new(promises: &Promises, classes: &[Governed]) -> Option<Self> {
        let mut groups: Vec<(usize, u8)> =
            classes.iter().filter(|c| c.ours).map(|class| (class.site, class.priority)).collect();
        groups.sort_unstable();
        groups.dedup();
        let mut sites: Vec<usize> = groups.iter().map(|(site, _)| *site).collect();
        sites.dedup();
        let has_contract = sites.iter().any(|site| promises.sites[*site].guarantee.is_some());
        if groups.len() < 2 && !has_contract {
            return None;
        }
        let member = |site: &usize| {
            let first = groups.partition_point(|(other, _)| other < site);
            let last = groups.partition_point(|(other, _)| other <= site);
            let own = &promises.sites[*site];
            Member {
                guarantee: own.guarantee,
                claim: Claim {
                    promised: 0.0,
                    fixed: 0.0,
                    weight: own.weight,
                    shares: own.share_excess,
                    groups: first..last,
                },
                fixed: Load::default(),
            }
        };
        let place = |class: &Governed| {
            let member = sites.binary_search(&class.site).unwrap_or(0);
            (member, groups.binary_search(&(class.site, class.priority)).unwrap_or(0))
        };
        let top = |site: usize| promises.sites[site].levels.len();
        Some(Sharing {
            members: sites.iter().map(member).collect(),
            levels: groups.iter().map(|(site, _)| top(*site) as f64).collect(),
            places: classes.iter().map(place).collect(),
            groups: groups.iter().map(|(site, _)| group(top(*site))).collect(),
            foreign: Load::default(),
        })
    }

    /// A new period begins.
    pub(crate) fn clear(&mut self) {
        self.foreign = Load::default();
        self.members.iter_mut().for_each(|member| member.fixed = Load::default());
        for one in &mut self.groups {
            *one = group(usize::from(one.demand.top));
        }
    }

    /// Takes what a class brings: `at` a level. A part of it, `fixed`, is served at full quality whatever happens.
    pub(crate) fn take(&mut self, number: usize, class: &Governed, fixed: f64, at: impl Fn(usize) -> Load) {
        let (member, group) = self.places[number];
        if !class.ours {
            return self.foreign.add(1.0, at(class.top));
        }
        if fixed > 0.0 {
            self.members[member].fixed.add(fixed, at(class.top));
        }
        if fixed < 1.0 {
            let demand = &mut self.groups[group].demand;
            for level in 0..=class.top {
                let load = at(level);
                demand.arriving[level] += (1.0 - fixed) * load.arriving;
                demand.link[level] += (1.0 - fixed) * load.link;
                demand.waiting[level] += (1.0 - fixed) * load.waiting;
            }
        }
    }

    /// Sets what each site was promised, of the costs known of it; returns U*.
    pub(crate) fn promise(&mut self, number: usize, known: impl FnOnce() -> Option<Known>) -> Option<f64> {
        let member = &mut self.members[self.places[number].0];
        let promised = utilization(member.guarantee.as_ref()?, &known()?);
        member.claim.promised = promised;
        Some(promised)
    }

    /// The offered load of all together as a function of one m, for the law: what it is not to move stands still.
    pub(crate) fn demand(&mut self) -> Demand {
        let top = self.groups.iter().map(|group| group.demand.top).max().unwrap_or(0);
        let mut still = self.foreign;
        let mut demand = Demand { top, ..Demand::default() };
        for member in &mut self.members {
            still.add(1.0, member.fixed);
            if !member.claim.shares {
                member.claim.fixed = member.fixed.offered(0.0);
                own_levels(&member.claim, &mut self.groups, 0.0);
            }
            for group in &self.groups[member.claim.groups.clone()] {
                let own = &group.demand;
                if !member.claim.shares {
                    // Reader to its contract, whatever the plant could carry.
                    let m = group.site_level;
                    still
                        .add(1.0, Load { arriving: own.offered(m, 0.0), link: 0.0, waiting: own.backlog(m) });
                    continue;
                }
                for level in 0..=usize::from(top) {
                    let at = level.min(usize::from(own.top));
                    demand.arriving[level] += own.arriving[at];
                    demand.link[level] += own.link[at];
                    demand.waiting[level] += own.waiting[at];
                }
            }
        }
        for level in 0..=usize::from(top) {
            demand.arriving[level] += still.arriving;
            demand.link[level] += still.link;
            demand.waiting[level] += still.waiting;
        }
        demand
    }

    /// Shares out what the law aims at.
    pub(crate) fn share_out(&mut self, aim: &Aim) {
        for member in &mut self.members {
            member.claim.fixed = member.fixed.offered(aim.drain);
        }
        let claims: Vec<Claim> = self.members.iter().map(|member| member.claim.clone()).collect();
        let capacity = aim.target - self.foreign.offered(aim.drain);
        share_out(&claims, &mut self.groups, capacity, aim.drain);
        for claim in &claims {
            for number in claim.groups.clone() {
                let Group { demand, target, .. } = &self.groups[number];
                let own = Aim {
                    target: *target,
                    room: 1.0 - (aim.target - target).max(0.0),
                    backlog: aim.backlog && demand.backlog(self.levels[number]) > 0.0,
                    calm: aim.calm && claim.shares,
                    ..*aim
                };
                self.levels[number] = own.level(self.levels[number], demand);
            }
        }
    }

    /// Everybody is served at the highest level.
    pub(crate) fn is_at_top(&self) -> bool {
        let mut all = self.levels.iter().zip(&self.groups);
        all.all(|(level, group)| *level >= f64::from(group.demand.top))
    }

    /// m of a class.
    pub(crate) fn level(&self, number: usize) -> f64 {
        self.levels[self.places[number].1]
    }

    /// Goes on from this m of a class.
    pub(crate) fn set_level(&mut self, number: usize, m: f64) {
        let group = self.places[number].1;
        self.levels[group] = m.min(f64::from(self.groups[group].demand.top));
    }

    /// m_site of a class, if its site has a contract.
    pub(crate) fn site_level(&self, number: usize) -> Option<f64> {
        let (member, group) = self.places[number];
        self.members[member].guarantee.map(|_| self.groups[group].site_level)
    }
}

fn group(top: usize) -> Group {
    let demand = Demand { top: top as u8, ..Demand::default() };
    Group { demand, ..Group::default() }
}
