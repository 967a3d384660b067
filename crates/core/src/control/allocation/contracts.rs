//! The load that contracts may spend if together they would take more than the plant carries.
//!
//! A contract promises a rate, and a bandwidth, at the costs by which its `U* = a R + b W` was planned (UC 5.1). While the
//! contracts of a plant fit under its line by the costs known now, each site may spend its U* by those costs, and these U* are
//! the *plan*. Pages may become dearer, a plant slower, or a promise may never have fitted. Then the line T, less the load that
//! no level moves, is shared out among the sites by weighted max-min fairness with the planned U* as weights: there is an x so
//! that each site spends `min(what its contract would take at full quality, x planned U*)`.
//!
//! A site within its planned U* keeps full quality, since x is at least 1 as long as the planned U* fit. A site that takes more
//! than was planned is held to the load that the others leave. If the pages of all sites have become dearer, all sites are held
//! to the same part of the plan.
//!
//! All requests of a site that is *held* count as outside its contract: the site's m decides on all of them, so lighter pages
//! for all come before any rejection. If only a part of the requests lost full quality, that part would be rejected while the
//! others keep full quality.
//!
//! At a plant with two resources (UC eq. 9) whose groups differ in the resource that they use more, contracts fit if the sums
//! on both resources do, as in the capacity plan, and each resource is shared out by the plan for that resource.
//!
//! U* and rates are estimates, so contracts may take two thirds of the room between the load line and the whole capacity before
//! any site is held. The law's feedback lowers the line for contracts by no more than that room: if a load that no level moves
//! is beyond the line, as that of a site with deadlines may be, U is above the line whatever contracts take.
//!
//! If a plant shares the gateway's machine, the work of rejections makes services longer. That work counts apart, so it is no
//! reason to hold a site. A flood begins with many rejections at once, which may make services longer by more than that work
//! for a period or two; sites are held there only once contracts have been too much for some periods.

use super::max_min::{Need, fill};
use crate::control::utilization::costs::RequestCosts;
use crate::control::utilization::demand::{LoadParts, Resource};
use crate::control::utilization::offered::PlantDemand;
use crate::control::utilization::sense;
use crate::control::utilization::view::{PlantView, SiteView};
use crate::control::{LawTarget, LoadTarget};
use crate::promises::Guarantee;
use crate::telemetry::measurement::Measurement;
use alloc::{borrow::Cow, string::String, vec::Vec};

/// The part of the room above the load line that contracts may take before sites are held.
const TAKEN_ROOM: f64 = 2.0 / 3.0;
/// The weight of a site whose costs are not known.
const LEAST_WEIGHT: f64 = 1e-9;
/// A site whose part falls short of its need by less than this part is not held.
const ROUNDING: f64 = 1e-6;

/// For how many periods contracts must take too much before sites are held at a plant on the gateway's own machine.
const SURE_ON_SAME_HOST: u32 = 4;

/// The plan of one contract, from which another engine goes on.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct KnownContract {
    /// The site's name in the configuration.
    pub site: String,
    /// R_max of the guarantee that was planned.
    pub rate: f64,
    /// W_max of that guarantee.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// The contract's U* when the contracts last fitted, and, at a plant with two resources, its load on the workers and that
    /// on the link. 0 if the contracts never fitted.
    pub planned: [f64; 3],
    /// The last claims of the guarantee, in the same order: the plan of a changed guarantee is larger by the factor by which it
    /// claims more.
    pub claimed: [f64; 3],
}

impl KnownContract {
    /// The largest load that is accepted in a plan.
    const MOST: f64 = 1e3;

    /// Whether its loads are possible.
    pub(crate) fn is_possible(&self) -> bool {
        self.planned.iter().chain(&self.claimed).all(|load| (0.0..=Self::MOST).contains(load))
    }

    fn is_of(&self, guarantee: &Guarantee) -> bool {
        let Guarantee { rate, bandwidth_bytes_per_second, .. } = *guarantee;
        (self.rate, self.bandwidth_bytes_per_second) == (rate, bandwidth_bytes_per_second)
    }

    /// The plan of a changed guarantee, which has these claims.
    fn scaled_to(&self, claims: [f64; 3]) -> [f64; 3] {
        core::array::from_fn(|number| match self.claimed[number] {
            claimed if claimed > 0.0 => (self.planned[number] * claims[number] / claimed).min(Self::MOST),
            // The claim of the former guarantee was not known.
            _ => self.planned[number],
        })
    }
}

/// The contracts at one plant.
#[derive(Debug, Default)]
pub(crate) struct ContractShares {
    /// By site of the view.
    sites: Vec<ContractShare>,
    /// By resource, and by site, for a plant with two resources.
    by_resource: [Vec<ContractShare>; 2],
    /// Plans that were kept for a guarantee which has changed since. They are scaled once the new guarantee's claim is known.
    to_scale: Vec<KnownContract>,
    /// For how many periods the contracts have taken too much.
    exceeded: u32,
    /// Whether `held` of some site is to be published.
    pub(crate) changed: bool,
}

/// The contract of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ContractShare {
    /// U* when the contracts last fitted; 0 if they never did.
    planned: f64,
    /// The load of the contract's requests at full quality; of a site without a contract, the load that no m moves.
    wanted: f64,
    /// Whether the site is held, in either resource.
    held: bool,
}

/// The measured requests of a period, and their costs.
type KnownOfPeriod<'a, 'b> = (&'a Measurement<'b>, &'a RequestCosts<'b>);

impl ContractShares {
    pub(crate) fn new(plant: &PlantView) -> Self {
        let has_contract = plant.sites.iter().any(|site| site.guarantee.is_some());
        let of = |is_there: bool| alloc::vec![ContractShare::default(); if is_there { plant.sites.len() } else { 0 }];
        let has_two = has_contract && plant.promised.bandwidth_bytes_per_second.is_some();
        let by_resource = [of(has_two), of(has_two)];
        let (sites, to_scale) = (of(has_contract), Vec::new());
        ContractShares { sites, by_resource, to_scale, exceeded: 0, changed: has_contract }
    }

    /// The contracts for a new view; `demand` is that of the last period.
    pub(crate) fn kept(&self, (before, demand): (&PlantView, &PlantDemand), plant: &PlantView) -> Self {
        let mut next = ContractShares::new(plant);
        next.restore(plant, self.known(before, demand));
        for (own, site) in next.sites.iter_mut().zip(&plant.sites) {
            let known = self.sites.iter().zip(&before.sites).find(|(_, old)| old.name == site.name);
            own.held = site.guarantee.is_some() && known.is_some_and(|(known, _)| known.held);
        }
        next
    }

    /// The plan of each contract; `demand` is that of the last period.
    pub(crate) fn known(&self, plant: &PlantView, demand: &PlantDemand) -> Vec<KnownContract> {
        let of = |(index, site): (usize, &SiteView)| {
            let to_scale = self.to_scale.iter().find(|known| known.site == site.name).cloned();
            let [work, link] = &self.by_resource;
            let planned = [&self.sites, work, link].map(|own| own.get(index).map_or(0.0, |own| own.planned));
            let Guarantee { rate, bandwidth_bytes_per_second, .. } = site.guarantee?;
            let (site, claimed) = (site.name.clone(), demand.claims(index));
            to_scale.or((planned[0] > 0.0).then_some(KnownContract {
                site,
                rate,
                bandwidth_bytes_per_second,
                planned,
                claimed,
            }))
        };
        plant.sites.iter().enumerate().filter_map(of).collect()
    }

    /// Goes on from known plans of these sites; the plans of former guarantees are scaled to the claims of the present ones.
    pub(crate) fn restore(&mut self, plant: &PlantView, known: Vec<KnownContract>) {
        for known in known {
            match plant.sites.iter().position(|site| site.name == known.site) {
                Some(index) if plant.sites[index].guarantee.is_some_and(|own| known.is_of(&own)) => {
                    self.set_plan(index, known.planned);
                }
                Some(index) if has_contract(plant, index) => self.to_scale.push(known),
                _ => {}
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn scale(&mut self, plant: &PlantView, demand: &PlantDemand) {
        for known in core::mem::take(&mut self.to_scale) {
            let index = plant.sites.iter().position(|site| site.name == known.site);
            match index.map(|index| (index, demand.claims(index))) {
                Some((index, claims)) if claims[0] > 0.0 => self.set_plan(index, known.scaled_to(claims)),
                _ => self.to_scale.push(known),
            }
        }
    }

    fn set_plan(&mut self, index: usize, planned: [f64; 3]) {
        let [work, link] = &mut self.by_resource;
        for (own, planned) in [&mut self.sites, work, link].into_iter().zip(planned) {
            own.get_mut(index).into_iter().for_each(|own| own.planned = planned);
        }
    }

    /// For each site with a contract the number of one of its classes, and whether the site is held.
    pub(crate) fn held<'a>(&'a self, plant: &'a PlantView) -> impl Iterator<Item = (usize, bool)> + 'a {
        let own = self.sites.iter().zip(&plant.sites).filter(|(_, site)| site.guarantee.is_some());
        own.map(|(own, site)| (plant.classes[site.classes.start].class, own.held))
    }

    /// The demand with contracts that fit into the load that the plant may carry: unchanged if they fit, and else with sites
    /// that are held to their parts. If the costs are not `known`, the demand is unchanged.
    pub(crate) fn fit<'a>(
        &mut self,
        plant: &PlantView,
        target: &LawTarget,
        demand: &'a PlantDemand,
        known: Option<KnownOfPeriod<'_, '_>>,
    ) -> Cow<'a, PlantDemand> {
        let has_contract = !self.sites.is_empty();
        let (LawTarget::Load(LoadTarget { load, .. }), Some(known), true) = (*target, known, has_contract)
        else {
            return Cow::Borrowed(demand);
        };
        if !self.to_scale.is_empty() {
            self.scale(plant, demand);
        }
        let own_work = sense::own_work(plant, known.0, known.1.rejection);
        if demand.is_divided {
            return self.fit_both(plant, (load, own_work), demand, known);
        }
        // Rejections make services longer, but not the load of the link larger.
        let own_part = if demand.is_of_link() { 1.0 } else { own_work };
        let exceeds = taken(&mut self.sites, plant, demand, own_part) > most(plant, load);
        if self.is_sure(plant, exceeds) {
            self.share(plant, line(plant, load), demand, known)
        } else {
            plan(&mut self.sites, plant, demand);
            if !self.by_resource[0].is_empty() {
                self.plan_both(plant, demand);
            }
            self.release();
            Cow::Borrowed(demand)
        }
    }

    /// Whether contracts have taken too much for long enough.
    fn is_sure(&mut self, plant: &PlantView, exceeds: bool) -> bool {
        self.exceeded = if exceeds { self.exceeded.saturating_add(1) } else { 0 };
        self.exceeded >= if plant.promised.same_host { SURE_ON_SAME_HOST } else { 1 }
    }

    /// Releases the sites that are held.
    fn release(&mut self) {
        for own in &mut self.sites {
            self.changed |= core::mem::take(&mut own.held);
        }
    }

    /// The contracts do not fit: each may spend its part.
    #[cold]
    #[inline(never)]
    fn share<'a>(
        &mut self,
        plant: &PlantView,
        line: f64,
        demand: &'a PlantDemand,
        known: KnownOfPeriod<'_, '_>,
    ) -> Cow<'a, PlantDemand> {
        let needs = needs(&self.sites, plant, demand, |index| demand.inside(plant, index, known));
        let (x, mut fitted) = (fill(&needs, line), Cow::Borrowed(demand));
        for (index, need) in needs.iter().enumerate().filter(|(index, _)| has_contract(plant, *index)) {
            let part = need.at(x);
            if self.set_held(index, falls_short(part, need)) {
                fitted.to_mut().hold(plant, (index, part), known);
            }
        }
        fitted
    }

    /// Notes the claims of each contract on both resources, so that the plan is known once sites differ in the resource that
    /// they use more.
    #[cold]
    #[inline(never)]
    fn plan_both(&mut self, plant: &PlantView, demand: &PlantDemand) {
        for (sites, resource) in self.by_resource.iter_mut().zip(Resource::BOTH) {
            plan(sites, plant, &demand.of(resource));
        }
    }

    /// Notes whether a site is held, which is published if it changed; returns `held`.
    fn set_held(&mut self, index: usize, held: bool) -> bool {
        self.changed |= core::mem::replace(&mut self.sites[index].held, held) != held;
        held
    }

    /// Sites differ in the resource that they use more: contracts fit if both sums do, and each may spend its
    /// part of a resource that is too small.
    #[cold]
    #[inline(never)]
    fn fit_both<'a>(
        &mut self,
        plant: &PlantView,
        (load, own_work): (f64, f64),
        demand: &'a PlantDemand,
        known: KnownOfPeriod<'_, '_>,
    ) -> Cow<'a, PlantDemand> {
        let both = Resource::BOTH.map(|resource| demand.of(resource));
        let mut exceeds = [false; 2];
        for (number, own) in both.iter().enumerate() {
            let own_part = [own_work, 1.0][number];
            exceeds[number] = taken(&mut self.by_resource[number], plant, own, own_part) > most(plant, load);
            if !exceeds[number] {
                plan(&mut self.by_resource[number], plant, own);
            }
        }
        if !self.is_sure(plant, exceeds != [false; 2]) {
            plan(&mut self.sites, plant, demand);
            self.release();
            return Cow::Borrowed(demand);
        }
        let parts = [0, 1].map(|number| {
            let inside = |index| demand.inside(plant, index, known).of(Resource::BOTH[number]);
            let needs = needs(&self.by_resource[number], plant, &both[number], inside);
            let x = if exceeds[number] { fill(&needs, line(plant, load)) } else { f64::INFINITY };
            needs.into_iter().map(|need| (need.at(x), falls_short(need.at(x), &need))).collect::<Vec<_>>()
        });
        let mut fitted = Cow::Borrowed(demand);
        for index in (0..plant.sites.len()).filter(|index| has_contract(plant, *index)) {
            let [work, link] = [0, 1].map(|number| parts[number][index]);
            if self.set_held(index, work.1 || link.1) {
                let claim = |number: usize, (part, short): (f64, bool)| {
                    if short { part } else { both[number].claimed[index] }
                };
                fitted.to_mut().hold_by_resource(plant, (index, [claim(0, work), claim(1, link)]), known);
            }
        }
        fitted
    }
}

fn has_contract(plant: &PlantView, index: usize) -> bool {
    plant.sites[index].guarantee.is_some()
}

fn room(plant: &PlantView) -> f64 {
    (1.0 - plant.promised.set_point).max(0.0)
}

/// The most that contracts may take before sites are held.
fn most(plant: &PlantView, load: f64) -> f64 {
    load.max(plant.promised.set_point) + TAKEN_ROOM * room(plant)
}

/// The load that is shared out among sites once contracts take too much.
fn line(plant: &PlantView, load: f64) -> f64 {
    load.max(left_to_contracts(plant))
}

/// The load that contracts may take however low the law's feedback makes T.
pub(crate) fn left_to_contracts(plant: &PlantView) -> f64 {
    plant.promised.set_point - room(plant)
}

/// Whether a site's part is less than its need, by more than rounding.
fn falls_short(part: f64, need: &Need) -> bool {
    part < (1.0 - ROUNDING) * need.most
}

/// Notes the load of each site's contract at full quality; returns the sum over all sites, in which contracts count with the
/// part `own_work`.
#[inline(always)]
fn taken(sites: &mut [ContractShare], plant: &PlantView, demand: &PlantDemand, own_work: f64) -> f64 {
    let mut all = 0.0;
    for (index, (own, site)) in sites.iter_mut().zip(&plant.sites).enumerate() {
        let at = |m: fn(u8) -> f64| {
            let groups = &demand.groups[site.groups.clone()];
            groups.iter().map(|group| group.offered(m(group.top), 0.0)).sum::<f64>()
        };
        let fixed = demand.fixed[index].offered(0.0);
        own.wanted = if site.guarantee.is_some() {
            fixed.max((fixed + at(f64::from)).min(demand.claimed[index]))
        } else {
            fixed + at(|_| 0.0)
        };
        all += if site.guarantee.is_some() { own_work * own.wanted } else { own.wanted };
    }
    all
}

/// The contracts fit: their claims become the plan, if the contracts would fit even when all are used in full.
fn plan(sites: &mut [ContractShare], plant: &PlantView, demand: &PlantDemand) {
    let fits = demand.claimed.iter().sum::<f64>() <= plant.promised.set_point;
    for ((own, claimed), site) in sites.iter_mut().zip(&demand.claimed).zip(&plant.sites) {
        if fits && *claimed > 0.0 && site.guarantee.is_some() {
            own.planned = *claimed;
        }
    }
}

/// The need of each site, weighted by its plan. `inside` is the load inside a contract, on which m decides too if the site is
/// held.
fn needs(
    sites: &[ContractShare],
    plant: &PlantView,
    demand: &PlantDemand,
    inside: impl Fn(usize) -> LoadParts,
) -> Vec<Need> {
    let need = |(index, own): (usize, &ContractShare)| {
        let fixed = demand.fixed[index].offered(0.0) - inside(index).offered(0.0);
        let least = if has_contract(plant, index) { fixed.clamp(0.0, own.wanted) } else { own.wanted };
        let weight = if own.planned > 0.0 { own.planned } else { demand.claimed[index] };
        Need { least, most: own.wanted, weight: weight.max(LEAST_WEIGHT) }
    };
    sites.iter().enumerate().map(need).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::cost::class::ClassCosts;
    use crate::control::utilization::costs::CostModel;
    use crate::control::utilization::view::by_hand::{arrivals, class, learned, measured, plant};
    use crate::model::{LinearModel, Served};
    use crate::request::Reason;
    use crate::telemetry::measurement::ClassMeasurement;

    const LINE: f64 = 0.85;

    /// Two sites with contracts for 40/s each and a third without, on a plant of four workers.
    struct World {
        plant: PlantView,
        contracts: ContractShares,
        model: CostModel,
        /// The demand of the last period.
        demand: PlantDemand,
    }

    impl World {
        fn new() -> Self {
            let mut plant = plant(alloc::vec![class(0, 2), class(1, 2), class(2, 2)]);
            for (site, name) in plant.sites[..2].iter_mut().zip(["first", "second"]) {
                site.name = name.into();
                site.guarantee =
                    Some(Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(40.0, 1.0) });
            }
            let (contracts, model) = (ContractShares::new(&plant), CostModel::new(&plant));
            let demand = PlantDemand::new(&plant);
            World { plant, contracts, model, demand }
        }

        /// A period in which both sites have the rate of their contracts, inside these unless they are held; a page takes
        /// `seconds` of a worker. Returns of each site what it may spend, its fixed load, and whether it is held.
        fn period(&mut self, seconds: [f64; 2]) -> [(f64, f64, bool); 2] {
            let held: Vec<bool> = self.contracts.held(&self.plant).map(|(_, held)| held).collect();
            let of = |held: bool| {
                let mut own: ClassMeasurement = arrivals(40.0, 2);
                own.window.decided[2] = if held { 40 } else { 0 };
                own
            };
            let classes = [of(held[0]), of(held[1]), arrivals(0.0, 2)];
            let learned: [ClassCosts; 3] =
                [seconds[0], seconds[1], 0.01].map(|full| learned(&[0.2 * full, full]));
            let period = measured(&classes, &[0; 3]);
            let costs = self.model.learn(&self.plant, &period, &learned);
            let mut demand = PlantDemand::new(&self.plant);
            demand.estimate(&self.plant, &period, &costs);
            let target = LawTarget::Load(LoadTarget::plain(LINE));
            let fitted = self.contracts.fit(&self.plant, &target, &demand, Some((&period, &costs)));
            let held: Vec<bool> = self.contracts.held(&self.plant).map(|(_, held)| held).collect();
            let of = |site: usize| (fitted.claimed[site], fitted.fixed[site].offered(0.0), held[site]);
            let each = [0, 1].map(of);
            self.demand = demand;
            each
        }

        fn known(&self) -> Vec<KnownContract> {
            self.contracts.known(&self.plant, &self.demand)
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn a_site_that_became_dear_is_held_to_what_the_others_leave_and_until_all_fits() {
        let mut world = World::new();
        let [cheap, twice] = world.period([0.02, 0.04]);
        assert!(close(cheap.0, 0.2) && close(twice.0, 0.4) && !cheap.2 && !twice.2, "{cheap:?} {twice:?}");
        // The contracts take 0.2 and 1.0: the second site has the load that the first leaves.
        for _ in 0..2 {
            let [cheap, dear] = world.period([0.02, 0.1]);
            assert!(close(cheap.1, 0.2) && !cheap.2, "full quality as before: {cheap:?}");
            assert!(close(dear.0, LINE - 0.2) && close(dear.1, 0.0) && dear.2, "{dear:?}");
        }
        // 0.2 and 0.8 are too much, and 0.2 and 0.7 are within the room that is left to chance.
        assert!(world.period([0.02, 0.08])[1].2);
        let [_, fits] = world.period([0.02, 0.07]);
        assert!(close(fits.0, 0.7) && !fits.2, "{fits:?}");
    }

    /// The first site takes 0.5 of the workers and little of the link, and the second 0.5 of the link and little of the
    /// workers.
    #[test]
    fn contracts_with_opposite_bottlenecks_fit_and_one_that_became_dear_is_held_in_its_resource() {
        let mut period = behind_a_link([500.0, 12_500.0]);
        let (is_divided, [work, link], held) = period(0.05, [500.0, 12_500.0]);
        assert!(is_divided && held == [false; 2], "{held:?} {work:?} {link:?}");
        assert!(close(work[0], 0.5) && close(work[1], 0.02), "{work:?}");
        assert!(close(link[0], 0.02) && close(link[1], 0.5), "{link:?}");
        // The first site becomes 2.2 times as dear: it has the part of the workers that the second leaves, and the link is as
        // it was.
        let (_, [work, link], held) = period(0.11, [500.0, 12_500.0]);
        assert_eq!(held, [true, false], "{work:?} {link:?}");
        assert!(
            close(work[0], LINE - 0.02) && close(link[0], 0.02) && close(link[1], 0.5),
            "{work:?} {link:?}"
        );
        assert_eq!(period(0.05, [500.0, 12_500.0]).2, [false; 2]);
    }

    /// The plan of a time when both sites used the link more still holds when one of them becomes dear in work.
    #[test]
    fn the_plan_is_kept_when_sites_come_to_differ_in_their_bottleneck() {
        let bytes = [5_000.0, 10_000.0];
        let mut period = behind_a_link(bytes);
        let (is_divided, _, held) = period(0.01, bytes);
        assert!(!is_divided && held == [false; 2], "{held:?}");
        let (is_divided, [work, _], held) = period(0.1, bytes);
        assert!(is_divided && held == [true, false], "{held:?} {work:?}");
        assert!(close(work[0], LINE - 0.02), "{work:?}");
    }

    /// Whether sites differ in the resource that they use more, the claims on both resources by site, and whether each site is
    /// held.
    type Fitted = (bool, [Vec<f64>; 2], Vec<bool>);

    /// A function that runs one period of two sites of 40/s, which do not share the excess and are promised these bytes for
    /// each request. It takes the seconds of a request of the first site, and the bytes of a request of each.
    fn behind_a_link(promised: [f64; 2]) -> impl FnMut(f64, [f64; 2]) -> Fitted {
        let mut world = World::new();
        world.plant.promised.bandwidth_bytes_per_second = Some(1e6);
        for (site, bytes) in world.plant.sites[..2].iter_mut().zip(promised) {
            site.shares_excess = false;
            site.guarantee = Some(Guarantee::new(40.0, 40.0 * bytes));
        }
        world.contracts = ContractShares::new(&world.plant);
        move |seconds: f64, bytes: [f64; 2]| {
            let held: Vec<bool> = world.contracts.held(&world.plant).map(|(_, held)| held).collect();
            let of = |held: bool| {
                let mut own: ClassMeasurement = arrivals(40.0, 2);
                own.window.decided[2] = if held { 40 } else { 0 };
                own
            };
            let classes = [of(held[0]), of(held[1]), arrivals(0.0, 2)];
            let costs = [(seconds, bytes[0]), (0.002, bytes[1]), (0.01, 1e3)];
            let learned = costs.map(|(seconds, bytes)| {
                let mut costs = ClassCosts::new(LinearModel::default(), 2);
                for (known, part) in costs.by_level[1..].iter_mut().zip([20.0, 100.0]) {
                    let (work_seconds, bytes) = (part * seconds, part * bytes);
                    known.learn(Served { requests: 100.0, work_seconds, bytes });
                }
                costs
            });
            let period = measured(&classes, &[0; 3]);
            let costs = world.model.learn(&world.plant, &period, &learned);
            let mut demand = PlantDemand::new(&world.plant);
            demand.estimate(&world.plant, &period, &costs);
            let target = LawTarget::Load(LoadTarget::plain(LINE));
            let fitted = world.contracts.fit(&world.plant, &target, &demand, Some((&period, &costs)));
            let claimed = [Resource::Work, Resource::Link].map(|resource| fitted.of(resource).claimed);
            let held: Vec<bool> = world.contracts.held(&world.plant).map(|(_, held)| held).collect();
            (demand.is_divided, claimed, held)
        }
    }

    #[test]
    fn where_all_became_dearer_all_are_held_to_the_same_part_of_the_plan() {
        let mut world = World::new();
        world.period([0.02, 0.04]);
        let [first, second] = world.period([0.04, 0.08]);
        assert!(first.2 && second.2, "{first:?} {second:?}");
        assert!(close(first.0, LINE / 3.0) && close(second.0, 2.0 * LINE / 3.0), "{first:?} {second:?}");
        // Claims that did not fit are not the plan.
        let [first, second] = world.period([0.02, 0.08]);
        assert!(!first.2 && close(second.0, LINE - 0.2), "{first:?} {second:?}");
    }

    #[test]
    fn a_contract_that_stays_keeps_its_plan_over_a_reload() {
        let mut world = World::new();
        world.period([0.02, 0.04]);
        world.period([0.02, 0.1]);
        let mut after = World::new();
        after.contracts = world.contracts.kept((&world.plant, &world.demand), &after.plant);
        assert!(after.contracts.changed, "held sites are published again");
        assert!(after.contracts.held(&after.plant).map(|(_, held)| held).eq([false, true]));
        let [cheap, dear] = after.period([0.04, 0.1]);
        assert!(cheap.2 && close(cheap.0, LINE / 3.0) && dear.2, "{cheap:?} {dear:?}");
    }

    /// The twin has no plan, and holds the site whose pages are as they were.
    #[test]
    fn after_a_restart_a_site_that_became_dear_is_held_by_the_plan_as_before() {
        let mut world = World::new();
        world.period([0.02, 0.04]);
        world.period([0.02, 0.1]);
        let (mut after, mut twin) = (World::new(), World::new());
        after.contracts.restore(&after.plant, world.known());
        let [cheap, dear] = after.period([0.02, 0.1]);
        assert!(close(cheap.1, 0.2) && !cheap.2 && close(dear.0, LINE - 0.2) && dear.2, "{cheap:?} {dear:?}");
        assert!(twin.period([0.02, 0.1])[0].2);
    }

    /// The second site is promised half as much again, so it claims 1.5 instead of 1.0, and its plan of 0.4 becomes 0.6.
    #[test]
    fn the_plan_of_another_guarantee_is_scaled_to_what_it_claims() {
        let mut world = World::new();
        world.period([0.02, 0.04]);
        world.period([0.02, 0.1]);
        let mut after = World::new();
        if let Some(guarantee) = &mut after.plant.sites[1].guarantee {
            guarantee.rate *= 1.5;
        }
        after.contracts = world.contracts.kept((&world.plant, &world.demand), &after.plant);
        assert_eq!(after.known()[1], world.known()[1], "until its claim is known");
        let [cheap, dear] = after.period([0.02, 0.1]);
        assert!(close(cheap.1, 0.2) && !cheap.2 && close(dear.0, LINE - 0.2) && dear.2, "{cheap:?} {dear:?}");
        assert!(close(after.known()[1].planned[0], 0.6), "{:?}", after.known());
        // The first site is gone, and the second has no contract: no plan is left.
        let mut other = World::new();
        (other.plant.sites[0].name, other.plant.sites[1].guarantee) = ("third".into(), None);
        other.contracts.restore(&other.plant, world.known());
        assert!(other.known().is_empty());
    }

    /// Contracts take all of the link, and rejections make up more than four fifths of the busy time: contracts are too much
    /// for the link all the same.
    #[test]
    fn what_rejections_hide_in_services_is_no_part_of_what_a_link_carries() {
        let mut world = World::new();
        (world.plant.promised.same_host, world.plant.promised.bandwidth_bytes_per_second) = (true, Some(1e6));
        for site in &mut world.plant.sites[..2] {
            site.guarantee = Some(Guarantee::new(500.0, 500_000.0));
        }
        (world.contracts, world.model) = (ContractShares::new(&world.plant), CostModel::new(&world.plant));
        world.model.rejection = 0.001;
        let mut rejected = arrivals(1000.0, 2);
        rejected.window.counts.reasons[Reason::Overload as usize] = 1000;
        let classes = [arrivals(500.0, 2), arrivals(500.0, 2), rejected];
        let learned: [ClassCosts; 3] = [0.0004, 0.0004, 0.000_001].map(|full| learned(&[0.2 * full, full]));
        let mut period = measured(&classes, &[0; 3]);
        (period.workers, period.counted.busy_ns) = (1, 900_000_000);
        assert!(sense::own_work(&world.plant, &period, 0.001) < 0.2);
        let costs = world.model.learn(&world.plant, &period, &learned);
        let mut demand = PlantDemand::new(&world.plant);
        demand.estimate(&world.plant, &period, &costs);
        assert!(demand.is_of_link() && !demand.is_divided, "{demand:?}");
        let target = LawTarget::Load(LoadTarget::plain(LINE));
        for _ in 0..SURE_ON_SAME_HOST {
            world.contracts.fit(&world.plant, &target, &demand, Some((&period, &costs)));
        }
        assert!(world.contracts.held(&world.plant).all(|(_, held)| held));
    }
}
