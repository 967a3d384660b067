//! The offered load of one plant: R times the cost at each level, not clipped at 1, and the work of waiting requests.
//!
//! The load is a function of one m for the whole plant, and if the plant is shared, also of one m for each group of classes.

use super::costs::{AssumedCosts, RequestCosts};
use super::demand::{Demand, LoadParts, Resource};
use super::view::{ClassView, PlantView, SiteView};
use crate::control::allocation::max_min::{Claim, own_levels};
use crate::control::allocation::two_resources::levels_within;
use crate::promises::plan::{utilization, utilization_by_resource};
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// The demand at one plant in one period.
#[derive(Clone, Debug)]
pub(crate) struct PlantDemand {
    /// The load as a function of one m for all classes; load that no m moves is a constant in it.
    pub(crate) whole: Demand,
    /// By group, where the plant is shared.
    pub(crate) groups: Vec<Demand>,
    /// By site: the load of requests inside a contract and of exempt ones, which are served at full quality.
    pub(crate) fixed: Vec<LoadParts>,
    /// By site: U* of the contract by the costs known now; `None` while nothing determines it.
    pub(crate) promised: Vec<Option<f64>>,
    /// By site: U* of the contract, also by assumed costs, or its last value while no cost is known; 0 without a contract.
    pub(crate) claimed: Vec<f64>,
    /// By site: the contract's claim of each resource, if the plant has two.
    claimed_by_resource: Vec<LoadParts>,
    /// Whether groups, fixed loads or contracts differ in the resource that they use more, so that each resource is shared out
    /// by itself. Otherwise one resource is full first whatever is served, and all loads count with their part of that
    /// resource.
    pub(crate) is_divided: bool,
}

impl PlantDemand {
    pub(crate) fn new(plant: &PlantView) -> Self {
        let sites = plant.sites.len();
        let is_undecided = plant.promised.waits_unseen;
        let group = |top: &usize| Demand { top: *top as u8, is_undecided, ..Demand::default() };
        PlantDemand {
            whole: Demand { is_undecided, ..Demand::default() },
            groups: plant.groups.iter().map(group).collect(),
            fixed: alloc::vec![LoadParts::default(); sites],
            promised: alloc::vec![None; sites],
            claimed: alloc::vec![0.0; sites],
            claimed_by_resource: match plant.promised.bandwidth_bytes_per_second {
                Some(_) => alloc::vec![LoadParts::default(); sites],
                None => Vec::new(),
            },
            is_divided: false,
        }
    }

    /// The demand by the rates and costs known now.
    pub(crate) fn estimate(
        &mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        costs: &RequestCosts<'_>,
    ) -> &Self {
        let classes = plant.classes.iter().enumerate();
        let busy = classes.filter(|(_, class)| !is_quiet(class, measured));
        if plant.is_shared {
            self.clear();
            for (index, class) in busy {
                self.add(class, measured, |level| load(plant, index, level, measured, costs));
            }
            for (index, site) in plant.sites.iter().enumerate() {
                let rate = |class: usize| measured.classes[class].rate;
                let Some(contract) = &site.guarantee else { continue };
                let Some(assumed) = costs.assumed(plant, site, rate) else {
                    self.promised[index] = None;
                    continue;
                };
                let load = utilization(&plant.promised, contract, &assumed.known);
                self.promised[index] = assumed.determined.then_some(load);
                self.claimed[index] = load.max(self.lightest(index, site).min(load * assumed.most));
                if !self.claimed_by_resource.is_empty() {
                    self.claim_by_resource(plant, index, &assumed);
                }
            }
            if !self.claimed_by_resource.is_empty() {
                self.is_divided = self.differs();
            }
            self.whole = self.as_function_of_one_m(plant);
        } else {
            let tops = plant.classes.iter().filter(|class| !class.exempt).map(|class| class.top);
            let top = tops.max().unwrap_or(0);
            self.whole =
                Demand { top: top as u8, is_undecided: self.whole.is_undecided, ..Demand::default() };
            for (index, class) in busy {
                for (level, whole) in self.whole.levels[..=top].iter_mut().enumerate() {
                    let given = if class.exempt { class.top } else { level.min(class.top) };
                    whole.add(1.0, load(plant, index, given, measured, costs));
                }
            }
        }
        self
    }

    /// The load of a site whose requests outside the contract all have the lowest level, or are rejected where there is only
    /// one. While nothing determines the site's costs, its claim is at least this much, as far as the costs may be so high:
    /// otherwise the load inside the contract would seem to use the claim up, and the lighter pages that show the costs would
    /// never be served.
    fn lightest(&self, index: usize, site: &SiteView) -> f64 {
        self.fixed[index].offered(0.0) + self.groups[site.groups.clone()].iter().map(lowest).sum::<f64>()
    }

    /// Passes each group of a site that does not share the excess, with the m at which the site takes no more of either
    /// resource than it claims.
    #[cold]
    #[inline(never)]
    fn levels_by_resource(&self, site: &SiteView, index: usize, mut set: impl FnMut(usize, f64)) {
        let left = |resource: Resource| self.claimed[index] - self.fixed[index].of(resource).offered(0.0);
        let groups = &self.groups[site.groups.clone()];
        let own = |resource: Resource| groups.iter().map(|group| group.of(resource)).collect::<Vec<Demand>>();
        let [work, link] = Resource::BOTH.map(own);
        let first = site.groups.start;
        levels_within([&work, &link], Resource::BOTH.map(left), 0.0, |group, m| set(first + group, m));
    }

    /// Sets the claim of a site's contract on each resource.
    #[cold]
    #[inline(never)]
    fn claim_by_resource(&mut self, plant: &PlantView, index: usize, assumed: &AssumedCosts) {
        let site = &plant.sites[index];
        let Some(contract) = &site.guarantee else { return };
        let loads = utilization_by_resource(&plant.promised, contract, &assumed.known);
        let claim = |resource: Resource, load: f64| {
            let fixed = self.fixed[index].of(resource).offered(0.0);
            let groups = self.groups[site.groups.clone()].iter().map(|group| lowest(&group.of(resource)));
            let lightest = fixed + groups.sum::<f64>();
            load.max(lightest.min(load * assumed.most))
        };
        let [arriving, link] = [0, 1].map(|number| claim(Resource::BOTH[number], loads[number]));
        self.claimed_by_resource[index] = LoadParts { arriving, link, waiting: 0.0 };
    }

    /// Whether some load takes more of the workers and another more of the link.
    #[cold]
    #[inline(never)]
    fn differs(&self) -> bool {
        let groups = self.groups.iter().flat_map(sized_levels);
        let mut loads = groups.chain(&self.fixed).chain(&self.claimed_by_resource);
        let all_work = loads.clone().all(|load| load.link <= load.arriving);
        !all_work && !loads.all(|load| load.arriving + load.waiting <= load.link)
    }

    /// The claim of a site's contract, and its claims of the workers and of the link; these are 0 at a plant without a link.
    pub(crate) fn claims(&self, index: usize) -> [f64; 3] {
        let both = self.claimed_by_resource.get(index).copied().unwrap_or_default();
        [self.claimed[index], both.arriving, both.link]
    }

    /// Whether contracts take more of the link than of the workers. If the demand is not divided, all other loads then do too.
    pub(crate) fn is_of_link(&self) -> bool {
        self.claimed_by_resource.iter().any(|claimed| claimed.link > claimed.arriving)
    }

    /// The demand for one resource, as if the plant had no other: the groups' demands, the fixed loads and the claims.
    pub(crate) fn of(&self, resource: Resource) -> Self {
        let claimed = self.claimed_by_resource.iter().map(|claimed| claimed.of(resource).arriving);
        PlantDemand {
            whole: Demand::default(),
            groups: self.groups.iter().map(|group| group.of(resource)).collect(),
            fixed: self.fixed.iter().map(|fixed| fixed.of(resource)).collect(),
            promised: Vec::new(),
            claimed: claimed.collect(),
            claimed_by_resource: Vec::new(),
            is_divided: false,
        }
    }

    fn clear(&mut self) {
        self.fixed.fill(LoadParts::default());
        for group in &mut self.groups {
            group.levels[..=usize::from(group.top)].fill(LoadParts::default());
        }
    }

    /// Adds the load of a class, which is `at(level)`. The part inside a contract, or exempt, counts at full quality.
    fn add(&mut self, class: &ClassView, measured: &Measurement<'_>, at: impl Fn(usize) -> LoadParts) {
        let fixed = if class.exempt { 1.0 } else { share_inside(class, measured) };
        if fixed > 0.0 {
            self.fixed[class.site].add(fixed, at(class.top));
        }
        if fixed < 1.0 {
            let group = &mut self.groups[class.group];
            for (level, load) in group.levels[..=class.top].iter_mut().enumerate() {
                load.add(1.0 - fixed, at(level));
            }
        }
    }

    /// The load of a site's requests inside its contract, at full quality.
    pub(crate) fn inside(
        &self,
        plant: &PlantView,
        index: usize,
        (measured, costs): (&Measurement<'_>, &RequestCosts<'_>),
    ) -> LoadParts {
        let mut inside = LoadParts::default();
        for class in plant.sites[index].classes.clone() {
            let own = &plant.classes[class];
            inside.add(share_inside(own, measured), load(plant, class, own.top, measured, costs));
        }
        inside
    }

    /// Holds a site to a claim of each resource.
    pub(crate) fn hold_by_resource(
        &mut self,
        plant: &PlantView,
        (index, [work, link]): (usize, [f64; 2]),
        known: (&Measurement<'_>, &RequestCosts<'_>),
    ) {
        self.claimed_by_resource[index] = LoadParts { arriving: work, link, waiting: 0.0 };
        self.hold(plant, (index, work.max(link)), known);
    }

    /// Holds a site to a claim: the load of the requests inside its contract moves from the fixed load to the groups, so that
    /// the site's m decides on them too.
    pub(crate) fn hold(
        &mut self,
        plant: &PlantView,
        (index, claim): (usize, f64),
        known: (&Measurement<'_>, &RequestCosts<'_>),
    ) {
        self.claimed[index] = claim;
        let inside = self.inside(plant, index, known);
        self.fixed[index].add(-1.0, inside);
        let (measured, costs) = known;
        for class in plant.sites[index].classes.clone() {
            let own = &plant.classes[class];
            let (share, group) = (share_inside(own, measured), &mut self.groups[own.group]);
            for (level, sum) in group.levels[..=own.top].iter_mut().enumerate().filter(|_| share > 0.0) {
                sum.add(share, load(plant, class, level, measured, costs));
            }
        }
    }

    /// The load of all groups as a function of one m. The load of a site that is held to its contract is a constant in it.
    fn as_function_of_one_m(&self, plant: &PlantView) -> Demand {
        let top = self.groups.iter().map(|group| group.top).max().unwrap_or(0);
        let mut constant = LoadParts::default();
        let mut whole = Demand { top, is_undecided: self.whole.is_undecided, ..Demand::default() };
        let loads = &mut whole.levels[..=usize::from(top)];
        for (index, site) in plant.sites.iter().enumerate() {
            constant.add(1.0, self.fixed[index]);
            if site.shares_excess {
                for group in &self.groups[site.groups.clone()] {
                    for (level, load) in loads.iter_mut().enumerate() {
                        load.add(1.0, group.levels[level.min(usize::from(group.top))]);
                    }
                }
            } else {
                let count = |group: usize, m: f64| {
                    let own = &self.groups[group];
                    constant.add(1.0, LoadParts { waiting: own.backlog(m), ..own.parts(m) });
                };
                if self.is_divided {
                    self.levels_by_resource(site, index, count);
                } else {
                    let claim = Claim::new(site, self.claimed[index], self.fixed[index].offered(0.0));
                    own_levels(&claim, &self.groups, 0.0, count);
                }
            }
        }
        loads.iter_mut().for_each(|load| load.add(1.0, constant));
        whole
    }
}

/// The load of a group whose requests all have the lowest level, or are rejected where there is only one.
fn lowest(group: &Demand) -> f64 {
    group.offered(if group.top > 1 { 1.0 } else { 0.0 }, 0.0)
}

/// The levels of a group that show its load on the link. If some level loads the link, a level without a load on it shows
/// nothing: it is that of rejections, or no response of it was seen.
fn sized_levels(group: &Demand) -> impl Iterator<Item = &LoadParts> + Clone {
    let levels = &group.levels[..=usize::from(group.top)];
    let has_size = levels.iter().any(|load| load.link > 0.0);
    levels.iter().filter(move |load| load.link > 0.0 || !has_size)
}

/// The share of a class's requests that was inside the contract of the class's site.
fn share_inside(class: &ClassView, measured: &Measurement<'_>) -> f64 {
    let counts = class.depth == 0 && !class.exempt;
    if counts { measured.classes[class.class].window.guaranteed_share() } else { 0.0 }
}

/// Whether a class has no load at any level, as most classes have most of the time.
fn is_quiet(class: &ClassView, measured: &Measurement<'_>) -> bool {
    let own = &measured.classes[class.class];
    own.rate == 0.0 && measured.waiting[class.class] == 0
}

/// The load of the class with this index in the view if it is served at a level.
fn load(
    plant: &PlantView,
    index: usize,
    level: usize,
    measured: &Measurement<'_>,
    costs: &RequestCosts<'_>,
) -> LoadParts {
    let class = &plant.classes[index];
    let rate = class.rate(measured);
    let (arriving, link) = if class.exempt {
        sent_here(class, index, measured, costs)
    } else if level == 0 {
        (rate * costs.rejection, 0.0)
    } else {
        let bytes = if level > class.base { costs.bytes(class, level) } else { 0.0 };
        (rate * costs.priced(index, level), rate * bytes)
    };
    // Exempt requests wait for their own share of the places: other requests need not make room for them.
    let waiting = match measured.waiting[class.class] {
        _ if class.exempt => 0.0,
        0 => 0.0,
        _ if level == 0 && plant.promised.waits_unseen => 0.0,
        waiting => class
            .level_at(level)
            .map_or(0.0, |level| f64::from(waiting) / measured.nominal_seconds * costs.priced(index, level)),
    };
    let link = plant.promised.bandwidth_bytes_per_second.map_or(0.0, |limit| link / limit);
    LoadParts { arriving, link, waiting }
}

/// Work and bytes per second of the exempt requests that started here, whose level no loop moves.
fn sent_here(
    class: &ClassView,
    index: usize,
    measured: &Measurement<'_>,
    costs: &RequestCosts<'_>,
) -> (f64, f64) {
    let at = |level| {
        let rate = starts(class, measured, level);
        (rate * costs.priced(index, level), rate * costs.bytes(class, level))
    };
    class.levels_here().map(at).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// Starts per second of a class at a level in the period.
pub(crate) fn starts(class: &ClassView, measured: &Measurement<'_>, level: usize) -> f64 {
    measured.classes[class.class].window.counts.served[level] as f64 / measured.seconds
}

#[cfg(test)]
mod tests {
    use super::super::costs::CostModel;
    use super::super::view::by_hand::{arrivals, class, learned, measured, plant};
    use super::*;
    use crate::actuator::levels_by_plant::LevelsByPlant;
    use crate::control::cost::class::ClassCosts;
    use crate::promises::Guarantee;
    use crate::telemetry::measurement::ClassMeasurement;
    use crate::time::Duration;

    /// The demand in a period with these arrivals and these requests waiting.
    fn demand(
        own: &PlantView,
        model: &mut CostModel,
        classes: &[ClassMeasurement; 2],
        waiting: [u32; 2],
        learned: &[ClassCosts; 2],
    ) -> PlantDemand {
        let period = measured(classes, &waiting);
        let costs = model.learn(own, &period, learned);
        let mut demand = PlantDemand::new(own);
        demand.estimate(own, &period, &costs);
        demand
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn rates_times_costs_at_each_level_and_what_waits() {
        let mut exempt = class(1, 2);
        (exempt.exempt, exempt.site, exempt.group) = (true, 0, 0);
        let mut own = plant(alloc::vec![class(0, 2), exempt]);
        own.is_shared = false;
        let classes = [arrivals(100.0, 2), arrivals(10.0, 2)];
        let learned = [learned(&[0.01, 0.04]), learned(&[0.01, 0.04])];
        let mut model = CostModel::new(&own);
        model.rejection = 0.0001;
        let whole = demand(&own, &mut model, &classes, [20, 0], &learned).whole;
        // The exempt class has its highest level, at a cost of 0.01, whatever m is.
        let [rejecting, light, full] = [0, 1, 2].map(|level| whole.levels[level].arriving);
        assert!(
            close(rejecting, 0.01 + 0.1) && close(light, 0.25 + 0.1) && close(full, 1.0 + 0.1),
            "{whole:?}"
        );
        assert!(close(whole.levels[1].waiting, 0.05) && close(whole.levels[2].waiting, 0.2), "{whole:?}");
    }

    #[test]
    fn at_a_shared_plant_a_contract_is_fixed_and_each_group_has_its_own_demand() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.sites[0].guarantee =
            Some(Guarantee { rate: 50.0, bandwidth_bytes_per_second: None, burst: Duration::from_secs(2) });
        let mut classes = [arrivals(100.0, 1), arrivals(20.0, 1)];
        // A quarter of the arrivals was inside the contract.
        classes[0].window.decided[1] = 75;
        let learned = [learned(&[0.02]), learned(&[0.02])];
        let found = demand(&own, &mut CostModel::new(&own), &classes, [0; 2], &learned);
        assert!(close(found.fixed[0].arriving, 0.125) && close(found.groups[0].levels[1].arriving, 0.375));
        assert!(close(found.groups[1].levels[1].arriving, 0.1) && found.fixed[1] == LoadParts::default());
        assert!(close(found.whole.levels[0].arriving, 0.125) && close(found.whole.levels[1].arriving, 0.6));
        assert!(found.promised[1].is_none() && close(found.claimed[0], 50.0 * 0.005), "{found:?}");
    }

    #[test]
    fn a_site_held_to_its_contract_counts_with_its_part_of_the_link() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.promised.bandwidth_bytes_per_second = Some(1e5);
        // Pages of 1,000 bytes, 5 ms of the plant each: 40/s of them take 0.2 of the plant and 0.4 of the link.
        own.sites[0].guarantee = Some(Guarantee::new(40.0, 4e4));
        own.sites[0].shares_excess = false;
        let classes = [arrivals(40.0, 1), arrivals(30.0, 1)];
        let learned = [learned(&[0.02]), learned(&[0.02])];
        let found = demand(&own, &mut CostModel::new(&own), &classes, [0; 2], &learned);
        assert!(close(found.claimed[0], 0.4), "that of the more used resource: {found:?}");
        let [work, link] = Resource::BOTH.map(|resource| found.of(resource).claimed[0]);
        assert!(
            close(work, 0.2) && close(link, 0.4) && !found.is_divided,
            "all sites use more of the link: {found:?}"
        );
        let all = found.whole.levels[1];
        assert!(close(all.link, 0.7) && close(all.arriving, 0.35), "{all:?}");
        assert!(close(found.whole.levels[0].link, 0.4), "the held load does not depend on m: {found:?}");
    }

    #[test]
    fn sites_that_differ_in_the_resource_that_they_use_more_are_divided() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        own.promised.bandwidth_bytes_per_second = Some(1e5);
        // With pages of 1,000 bytes, the first site takes 0.3 of the link and 0.15 of the workers, the second 0.1 of the link
        // and 0.5 of the workers.
        let classes = [arrivals(30.0, 1), arrivals(10.0, 1)];
        let learned = [learned(&[0.02]), learned(&[0.2])];
        let model = &mut CostModel::new(&own);
        let found = demand(&own, model, &classes, [0; 2], &learned);
        assert!(found.is_divided, "{found:?}");
        let [work, link] = Resource::BOTH.map(|resource| found.of(resource).groups[1].offered(1.0, 0.0));
        assert!(close(work, 0.5) && close(link, 0.1), "{found:?}");
        // A site that is held to its contract counts with at most the contract's load on either resource.
        own.sites[1].guarantee =
            Some(Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(5.0, 1.0) });
        own.sites[1].shares_excess = false;
        let found = demand(&own, model, &classes, [0; 2], &learned);
        let all = found.whole.levels[1];
        assert!(close(all.arriving, 0.15 + 0.25) && close(all.link, 0.3 + 0.05), "{found:?}");
        // Without a link no demand is divided.
        own.promised.bandwidth_bytes_per_second = None;
        assert!(!demand(&own, model, &classes, [0; 2], &learned).is_divided);
    }

    #[test]
    fn while_its_costs_are_not_known_a_site_is_degraded_rather_than_rejected() {
        let mut own = plant(alloc::vec![class(0, 2), class(1, 2)]);
        // The contract is for pages of half the size that was seen: such a page costs between 0.5 and 1 of a seen page.
        own.sites[0].guarantee = Some(Guarantee::new(100.0, 5e4));
        // 60/s arrive, of which 50/s are inside the contract: at the least cost, 2.5 ms, these use up the claim.
        let mut classes = [arrivals(60.0, 2), arrivals(20.0, 2)];
        classes[0].window.decided[2] = 10;
        let learned = [learned(&[0.0, 0.02]), learned(&[0.0, 0.02])];
        let mut model = CostModel::new(&own);
        let found = demand(&own, &mut model, &classes, [0; 2], &learned);
        let light = found.groups[0].levels[1].arriving;
        assert!(close(found.fixed[0].arriving, 0.25) && light > 0.0 && found.promised[0].is_none());
        assert!(close(found.claimed[0], 0.25 + light), "{found:?}");
        // The claim is no more than pages of that size may cost.
        classes[0] = arrivals(2000.0, 2);
        let found = demand(&own, &mut model, &classes, [0; 2], &learned);
        assert!(close(found.claimed[0], 0.5), "{found:?}");
    }

    #[test]
    fn what_the_plant_above_passes_down_comes_here() {
        let mut sent = class(1, 1);
        sent.depth = 1;
        let own = plant(alloc::vec![class(0, 1), sent]);
        let classes = [arrivals(0.0, 1), arrivals(40.0, 2)];
        let levels_by_plant = [0.0, 0.25].map(|passes| {
            let mut cascade = LevelsByPlant::new(&[0, 1], |_| 2.0);
            cascade.set(1, 2.0 - passes, passes);
            cascade
        });
        let learned = [learned(&[0.02]), learned(&[0.02, 0.04])];
        let period = Measurement { levels_by_plant: &levels_by_plant, ..measured(&classes, &[0; 2]) };
        let mut model = CostModel::new(&own);
        let costs = model.learn(&own, &period, &learned);
        let mut found = PlantDemand::new(&own);
        found.estimate(&own, &period, &costs);
        assert!(close(found.groups[1].levels[1].arriving, 10.0 * 0.005), "{found:?}");
    }
}
