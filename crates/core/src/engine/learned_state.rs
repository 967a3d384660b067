//! What an engine has learned, as plain data: taken from one engine and given to the next, which then does not begin blind.
//!
//! Plants, sites, classes and levels are known by their names. What a name stands for may have changed meanwhile: what was
//! learned of a class holds for the levels that it had, at the plants that served them; what was learned of a plant's workers
//! holds within the promised bounds. What does not fit is left out, and reported.
//!
//! Costs, workers and the law's bias describe the servers and hold as long as these do. Service levels describe the present
//! load, and hold for moments: they are restored only if the engine takes the place of another without a pause. Then the first
//! request is served at the level at which the last one was; without them a load of three times the capacity would be admitted
//! at full quality for a period, and its queue would stand for many more periods.
//!
//! Request types with their costs, and what contracts claimed while all of them fitted, hold as long as costs do.
//!
//! Rates are not kept here, since they show within a quarter of a period. The state of the loops of promised delays and ratios
//! is not kept, since their windows fill within seconds: in virtual time the first two seconds after a restart in an overload
//! are the same with it and without it. The rate forecast is kept as text ([`Engine::rate_forecasts`]).

use super::Engine;
use crate::control::utilization::loop_state::{ClassLoopState, LoopState};
use crate::control::{KnownContract, KnownTypes, KnownWorkers};
use crate::model::{CostEstimate, KnownCost, LinearModel};
use crate::promises::registry::{RegisteredClass, SiteNumbers};
use crate::promises::{Costs, Site};
use alloc::{format, string::String, vec::Vec};

/// All that an engine has learned and leaves to the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedState {
    /// The learned state of each class.
    pub classes: Vec<LearnedClass>,
    /// The learned state of each plant.
    pub plants: Vec<LearnedPlant>,
    /// The request types of each site where deadlines are promised.
    pub sites: Vec<LearnedSite>,
}

/// The learned request types of a site.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedSite {
    /// The site's name in the configuration.
    pub site: String,
    /// The types, found ones too, with their costs.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub types: KnownTypes,
}

/// The learned state of a class.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedClass {
    /// The name of the site to which the class belongs.
    pub site: String,
    /// The class's name in the configuration, or `default`.
    pub class: String,
    /// m as applied and as allocated, at the site's own plant.
    pub service_level: [f64; 2],
    /// The natural logarithm of the part of its requests at the higher level, divided by the fraction of its clients there.
    pub calibration: f64,
    /// The cost of its requests at each level 1..=M.
    pub levels: Vec<LearnedLevel>,
    /// Work as a linear function of size, over all levels.
    pub line: LinearModel,
    /// The costs that were promised then: a, b and c.
    #[cfg_attr(feature = "serde", serde(rename = "promised_costs"))]
    pub promised: Option<[f64; 3]>,
    /// The service levels at the other plants that serve some of its levels.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub lower: Vec<LearnedPart>,
}

/// The learned service level of a class at one more plant.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedPart {
    /// The name of the plant that serves these levels.
    pub plant: String,
    /// m as applied, and as allocated.
    pub service_level: [f64; 2],
    /// The calibration, as in [`LearnedClass`].
    pub calibration: f64,
}

/// The learned cost of a level.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedLevel {
    /// The level's name in the configuration.
    pub name: String,
    /// The name of the plant that serves it.
    pub plant: String,
    /// The cost of a request.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub cost: KnownCost,
}

/// The learned state of a plant.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedPlant {
    /// The plant's name in the configuration.
    pub name: String,
    /// m of the plant as a whole.
    pub service_level: f64,
    /// The correction of the set point.
    pub bias: f64,
    /// The result of the search for its workers.
    pub workers: Option<KnownWorkers>,
    /// The plans of the contracts.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub contracts: Vec<KnownContract>,
}

impl Engine {
    /// The learned state, to be kept for the next engine.
    pub fn learned(&self) -> LearnedState {
        let loops = self.loops.utilization.iter().enumerate();
        let states: Vec<ClassLoopState> =
            loops.flat_map(|(plant, own)| own.class_states(plant, &self.loops.applied)).collect();
        let plants = self.registry.promises.plants.iter().enumerate().map(|(number, plant)| {
            let LoopState { level, bias } = self.loops.utilization[number].state();
            let workers = self.loops.searches[number].as_ref().map(|search| search.known());
            let (name, contracts) = (plant.name.clone(), self.loops.utilization[number].known_contracts());
            LearnedPlant { name, service_level: level, bias, workers, contracts }
        });
        let classes = self.registry.classes().map(|member| {
            let own: Vec<_> = states.iter().filter(|state| state.class == member.class).collect();
            self.learned_class(&member, &own)
        });
        let promised = self.registry.promises.sites.iter().zip(&self.registry.sites);
        let site = |(site, numbers): (&Site, &SiteNumbers)| {
            let types = self.loops.deadlines.known(numbers.site)?;
            Some(LearnedSite { site: site.name.clone(), types })
        };
        let sites = promised.filter_map(site).collect();
        LearnedState { classes: classes.collect(), plants: plants.collect(), sites }
    }

    fn learned_class(&self, member: &RegisteredClass<'_>, states: &[&ClassLoopState]) -> LearnedClass {
        let state = states.iter().find(|state| state.plant == member.site.plant);
        let part = |state: &&&ClassLoopState| LearnedPart {
            plant: self.registry.promises.plants[state.plant].name.clone(),
            service_level: [state.set, state.allocated],
            calibration: state.calibration,
        };
        let costs = &self.loops.costs[member.class];
        let level = |(number, name): (usize, &String)| LearnedLevel {
            name: name.clone(),
            plant: self.plant_name(member.class, number),
            cost: costs.by_level[number + 1].known(),
        };
        LearnedClass {
            site: member.site.name.clone(),
            class: member.name.into(),
            levels: self.class_names[member.class].levels.iter().enumerate().map(level).collect(),
            line: costs.line,
            promised: costs.promised.map(as_numbers),
            service_level: state.map_or([0.0; 2], |state| [state.set, state.allocated]),
            calibration: state.map_or(0.0, |state| state.calibration),
            lower: states.iter().filter(|state| state.plant != member.site.plant).map(|s| part(&s)).collect(),
        }
    }

    fn plant_name(&self, class: usize, level: usize) -> String {
        self.registry.promises.plants[self.class_names[class].plants[level]].name.clone()
    }

    /// Goes on from what another engine has learned. `at_once`: this engine takes the place of that one without a pause, so
    /// that its service levels hold too. To be called before the first [`tick`](Engine::tick). Returns what was left out, a
    /// sentence each.
    pub fn restore(&mut self, learned: &LearnedState, at_once: bool) -> Vec<String> {
        let mut left_out = Vec::new();
        let members: Vec<(usize, String, String)> = self
            .registry
            .classes()
            .map(|member| (member.class, member.site.name.clone(), member.name.into()))
            .collect();
        let mut states = Vec::new();
        for own in &learned.classes {
            let found = members.iter().find(|(_, site, class)| *site == own.site && *class == own.class);
            match found.map(|(class, ..)| self.restore_class(*class, own)) {
                Some(Ok(())) => {
                    states.extend(found.into_iter().flat_map(|(class, ..)| self.states_of(*class, own)))
                }
                Some(Err(why)) => left_out.push(format!("class {} of site {} {why}", own.class, own.site)),
                None => left_out.push(format!("class {} of site {} is not promised", own.class, own.site)),
            }
        }
        left_out.extend(self.restore_types(&learned.sites));
        for own in &learned.plants {
            let number = self.registry.promises.plants.iter().position(|plant| plant.name == own.name);
            match number {
                Some(number) => {
                    left_out.extend(self.restore_plant(number, own, &states, at_once));
                    if !self.loops.utilization[number].restore_contracts(&own.contracts) {
                        left_out.push(format!("the contracts of {} cannot be", own.name));
                    }
                }
                None => left_out.push(format!("there is no upstream or folder {}", own.name)),
            }
        }
        self.take_promised_costs(None, false);
        left_out
    }

    /// Restores the learned request types of sites. Returns what was left out.
    fn restore_types(&mut self, learned: &[LearnedSite]) -> Vec<String> {
        let mut left_out = Vec::new();
        for LearnedSite { site, types } in learned {
            let number = self.registry.promises.sites.iter().position(|own| own.name == *site);
            match number.map(|number| self.registry.sites[number].site) {
                Some(number) if self.loops.deadlines.restore(number, types) => {}
                Some(_) => left_out.push(format!("the types of site {site} cannot be")),
                None => left_out.push(format!("site {site} is not promised")),
            }
        }
        left_out
    }

    /// Restores the costs of a class. Refuses costs of other levels or plants, and numbers that cannot be.
    fn restore_class(&mut self, class: usize, own: &LearnedClass) -> Result<(), &'static str> {
        let levels = &self.class_names[class].levels;
        let fits = |(number, known): (usize, &LearnedLevel)| {
            levels[number] == known.name && self.plant_name(class, number) == known.plant
        };
        if levels.len() != own.levels.len() || !own.levels.iter().enumerate().all(fits) {
            return Err("has other levels, or other servers for them");
        }
        if !own.line.is_possible() || !own.levels.iter().all(|level| level.cost.is_possible()) {
            return Err("cannot cost what is written there");
        }
        let costs = &mut self.loops.costs[class];
        let known: Vec<CostEstimate> =
            own.levels.iter().map(|level| CostEstimate::from_known(level.cost)).collect();
        costs.relevel(&known);
        if costs.promised.map(as_numbers) == own.promised
            && own.levels.iter().any(|level| level.cost.weight > 0.0)
        {
            (costs.line, costs.line_learned) = (own.line, true);
        }
        Ok(())
    }

    /// Restores what a plant's loops have found. Returns what was left out.
    fn restore_plant(
        &mut self,
        number: usize,
        own: &LearnedPlant,
        states: &[ClassLoopState],
        at_once: bool,
    ) -> Option<String> {
        let state = LoopState { level: own.service_level, bias: own.bias };
        if ![state.level, state.bias].iter().all(|value| value.is_finite()) {
            return Some(format!("the levels of {} cannot be", own.name));
        }
        let here: Vec<_> = states.iter().filter(|state| state.plant == number).copied().collect();
        self.loops.utilization[number].restore(state, at_once.then_some(&here[..]));
        let least = self.registry.least_levels();
        for state in here.iter().filter(|_| at_once) {
            let applied = &mut self.loops.applied[state.class];
            applied.restore(number, state.set);
            applied.keep_above(least[state.class].into());
            self.lane.published.classes[state.class].words.set_levels(applied);
        }
        let (search, workers) = (self.loops.searches[number].as_mut()?, own.workers.as_ref()?);
        if !search.restore(workers) {
            return Some(format!("the workers of {} lie outside what is promised", own.name));
        }
        let (workers, limit, is_known) = search.capacity();
        self.lane.published.plants[number].capacity.set(workers, limit, is_known);
        None
    }

    /// The states of a class at each plant that serves some of its levels. Exempt requests have none.
    fn states_of(&self, class: usize, own: &LearnedClass) -> Vec<ClassLoopState> {
        let member = self.registry.classes().find(|member| member.class == class && !member.exempt);
        let Some(member) = member else { return Vec::new() };
        let mut states =
            alloc::vec![state_of((class, member.site.plant), own.service_level, own.calibration)];
        for part in &own.lower {
            let plants = &self.registry.promises.plants;
            let plant = member.site.plants().find(|plant| plants[*plant].name == part.plant);
            states.extend(plant.map(|plant| state_of((class, plant), part.service_level, part.calibration)));
        }
        states
    }
}

fn state_of((class, plant): (usize, usize), service_level: [f64; 2], calibration: f64) -> ClassLoopState {
    let [set, allocated] = service_level.map(|m| if m.is_finite() { m.max(0.0) } else { 0.0 });
    let calibration = if calibration.is_finite() { calibration } else { 0.0 };
    ClassLoopState { class, plant, allocated, calibration, set }
}

fn as_numbers(costs: Costs) -> [f64; 3] {
    [costs.per_request_seconds, costs.per_byte_seconds, costs.per_rejection_seconds]
}
