//! The offered load of one plant: R times the cost at each level, unclipped, and the work that waits.
//!
//! It is a function of one m for the whole plant, and where the plant is shared also of one m for each group of classes.

use super::costs::RequestCosts;
use super::demand::{Demand, LoadParts};
use super::view::{ClassView, PlantView};
use crate::control::allocation::max_min::{Claim, own_levels};
use crate::promises::plan::utilization;
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// The demand at one plant in one period. Its lists are filled anew in each period, in place.
#[derive(Debug)]
pub(crate) struct PlantDemand {
    /// The load as a function of one m. What no m moves stands still in it.
    pub(crate) whole: Demand,
    /// By group, where the plant is shared.
    pub(crate) groups: Vec<Demand>,
    /// By site: what is served at full quality whatever the law says.
    pub(crate) fixed: Vec<LoadParts>,
    /// By site: U* of the contract by the costs known now.
    pub(crate) promised: Vec<Option<f64>>,
    /// The same as last known; 0 without a contract.
    pub(crate) claimed: Vec<f64>,
    /// What other loops send here.
    pub(crate) foreign: LoadParts,
}

impl PlantDemand {
    pub(crate) fn new(plant: &PlantView) -> Self {
        let sites = plant.sites.len();
        let group = |top: &usize| Demand { top: *top as u8, ..Demand::default() };
        PlantDemand {
            whole: Demand::default(),
            groups: plant.groups.iter().map(group).collect(),
            fixed: alloc::vec![LoadParts::default(); sites],
            promised: alloc::vec![None; sites],
            claimed: alloc::vec![0.0; sites],
            foreign: LoadParts::default(),
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
            for (place, class) in busy {
                self.add(class, measured, |level| load(plant, place, level, measured, costs));
            }
            for (place, site) in plant.sites.iter().enumerate() {
                let rate = |class: usize| measured.classes[class].rate;
                let promised = (site.guarantee.as_ref())
                    .and_then(|contract| Some(utilization(contract, &costs.known(plant, site, rate)?)));
                self.promised[place] = promised;
                self.claimed[place] = promised.unwrap_or(self.claimed[place]);
            }
            self.whole = self.together(plant);
        } else {
            let tops = plant.owned().filter(|class| !class.exempt).map(|class| class.top);
            let top = tops.max().unwrap_or(0);
            self.whole = Demand { top: top as u8, ..Demand::default() };
            for (place, class) in busy {
                for (level, whole) in self.whole.levels[..=top].iter_mut().enumerate() {
                    let given = if class.exempt { class.top } else { level.min(class.top) };
                    whole.add(1.0, load(plant, place, given, measured, costs));
                }
            }
        }
        self
    }

    fn clear(&mut self) {
        self.foreign = LoadParts::default();
        self.fixed.fill(LoadParts::default());
        for group in &mut self.groups {
            group.levels[..=usize::from(group.top)].fill(LoadParts::default());
        }
    }

    /// Adds what a class brings: `at` a level. The part that is inside a contract or exempt stands at full quality.
    fn add(&mut self, class: &ClassView, measured: &Measurement<'_>, at: impl Fn(usize) -> LoadParts) {
        if !class.owns_actuator {
            return self.foreign.add(1.0, at(class.top));
        }
        let window = &measured.classes[class.class].window;
        let fixed = if class.exempt { 1.0 } else { window.guaranteed_share() };
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

    /// The load of all groups as a function of one m. A site that is held to its contract stands still in it.
    fn together(&self, plant: &PlantView) -> Demand {
        let top = self.groups.iter().map(|group| group.top).max().unwrap_or(0);
        let mut still = self.foreign;
        let mut whole = Demand { top, ..Demand::default() };
        let loads = &mut whole.levels[..=usize::from(top)];
        for (place, site) in plant.sites.iter().enumerate() {
            still.add(1.0, self.fixed[place]);
            if site.shares_excess {
                for group in &self.groups[site.groups.clone()] {
                    for (level, load) in loads.iter_mut().enumerate() {
                        load.add(1.0, group.levels[level.min(usize::from(group.top))]);
                    }
                }
            } else {
                let claim = Claim::new(site, self.claimed[place], self.fixed[place].offered(0.0));
                own_levels(&claim, &self.groups, 0.0, |group, m| {
                    let own = &self.groups[group];
                    let arriving = own.offered(m, 0.0);
                    still.add(1.0, LoadParts { arriving, link: 0.0, waiting: own.backlog(m) });
                });
            }
        }
        loads.iter_mut().for_each(|load| load.add(1.0, still));
        whole
    }
}

/// Most classes are quiet most of the time: they ask for nothing at any level.
fn is_quiet(class: &ClassView, measured: &Measurement<'_>) -> bool {
    let own = &measured.classes[class.class];
    let quiet = if class.owns_actuator { own.rate == 0.0 } else { !own.active };
    quiet && measured.waiting[class.class] == 0
}

/// What the class at this place of the view brings at a level.
fn load(
    plant: &PlantView,
    place: usize,
    level: usize,
    measured: &Measurement<'_>,
    costs: &RequestCosts<'_>,
) -> LoadParts {
    let class = &plant.classes[place];
    let rate = measured.classes[class.class].rate;
    let (arriving, link) = if !class.owns_actuator {
        sent_here(class, place, measured, costs)
    } else if level == 0 {
        (rate * costs.rejection, 0.0)
    } else {
        let bytes = if class.here[level] { costs.bytes(class, level) } else { 0.0 };
        (rate * costs.priced(place, level), rate * bytes)
    };
    let waiting = match measured.waiting[class.class] {
        0 => 0.0,
        waiting => f64::from(waiting) / measured.nominal_seconds * costs.priced(place, class.level_at(level)),
    };
    let link = plant.promised.bandwidth_bytes_per_second.map_or(0.0, |limit| link / limit);
    LoadParts { arriving, link, waiting }
}

/// Work and bytes per second of a class that another loop sends here: as much as came, whatever m is here.
fn sent_here(
    class: &ClassView,
    place: usize,
    measured: &Measurement<'_>,
    costs: &RequestCosts<'_>,
) -> (f64, f64) {
    let at = |level| {
        let rate = starts(class, measured, level);
        (rate * costs.priced(place, level), rate * costs.bytes(class, level))
    };
    class.levels_here().map(at).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// Starts per second of a class at a level in the period.
pub(crate) fn starts(class: &ClassView, measured: &Measurement<'_>, level: usize) -> f64 {
    measured.classes[class.class].window.counts.served[level] as f64 / measured.seconds
}
