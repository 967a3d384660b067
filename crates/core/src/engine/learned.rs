//! What an engine has learned, as plain data: taken from one engine and given to the next, which then does not begin blind.
//!
//! Plants, sites, classes and levels are known by their names. What a name stands for may have changed meanwhile: what was
//! learned of a class holds for the levels that it had, at the plants that served them, and of a plant's workers within the
//! bounds that are promised. What does not fit is left out, and said.
//!
//! Costs, workers and the law's bias describe the servers and hold as long as these do. Service levels describe the crowd, and
//! hold for moments: they are restored only if the engine takes the place of another at once. Then the first request is
//! served at the level at which the last one was; without them a crowd of three times the capacity would be let in at full
//! quality for a period, and its queue would stand for many more.
//!
//! Not here: rates, which show within a quarter of a period; what classes with promised times have found, whose windows fill
//! within seconds; the rate forecast, which is kept as text ([`Engine::rate_forecasts`]).

use super::Engine;
use crate::control::KnownWorkers;
use crate::control::utilization::learned::{ClassLoopState, LoopState};
use crate::model::{CostEstimate, KnownCost, KnownLine, LinearModel};
use crate::promises::Costs;
use crate::promises::registry::RegisteredClass;
use alloc::{format, string::String, vec::Vec};

/// Everything that is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedState {
    /// By class.
    pub classes: Vec<LearnedClass>,
    /// By plant.
    pub plants: Vec<LearnedPlant>,
}

/// What was learned of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedClass {
    /// The site's name.
    pub site: String,
    /// The class's name.
    pub class: String,
    /// Its levels 1..=M.
    pub levels: Vec<LearnedLevel>,
    /// Work as a linear function of size, over all levels.
    pub line: KnownLine,
    /// The costs that were promised then: a, b and c.
    pub promised: Option<[f64; 3]>,
    /// m as applied, and as allocated.
    pub service_level: [f64; 2],
    /// The natural logarithm of the part of its requests behind a fraction of its clients.
    pub calibration: f64,
}

/// What was learned of a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedLevel {
    /// Its name.
    pub name: String,
    /// The name of the plant that serves it.
    pub plant: String,
    /// What its requests cost.
    pub cost: KnownCost,
}

/// What was learned of a plant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearnedPlant {
    /// Its name.
    pub name: String,
    /// m of the plant as a whole.
    pub service_level: f64,
    /// The correction of the set point.
    pub bias: f64,
    /// What the search for its workers found.
    pub workers: Option<KnownWorkers>,
}

impl Engine {
    /// What was learned so far.
    pub fn learned(&self) -> LearnedState {
        let states: Vec<ClassLoopState> =
            self.loops.utilization.iter().flat_map(|plant| plant.class_states(&self.loops.applied)).collect();
        let plants = self.registry.promises.plants.iter().enumerate().map(|(number, plant)| {
            let LoopState { level, bias } = self.loops.utilization[number].state();
            let workers = self.loops.searches[number].as_ref().map(|search| search.known());
            LearnedPlant { name: plant.name.clone(), service_level: level, bias, workers }
        });
        let classes = self.registry.classes().map(|member| {
            let state = states.iter().find(|state| state.class == member.class);
            self.learned_class(&member, state)
        });
        LearnedState { classes: classes.collect(), plants: plants.collect() }
    }

    fn learned_class(&self, member: &RegisteredClass<'_>, state: Option<&ClassLoopState>) -> LearnedClass {
        let costs = &self.loops.costs[member.class];
        let level = |(number, name): (usize, &String)| LearnedLevel {
            name: name.clone(),
            plant: self.plant_name(member.class, number),
            cost: costs.by_level[number + 1].known(),
        };
        LearnedClass {
            site: member.site.name.clone(),
            class: member.name.into(),
            levels: self.rows[member.class].levels.iter().enumerate().map(level).collect(),
            line: costs.line.as_known(),
            promised: costs.promised.map(as_numbers),
            service_level: state.map_or([0.0; 2], |state| [state.set, state.allocated]),
            calibration: state.map_or(0.0, |state| state.calibration),
        }
    }

    fn plant_name(&self, class: usize, level: usize) -> String {
        self.registry.promises.plants[self.rows[class].plants[level]].name.clone()
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
                Some(Ok(())) => states.extend(found.map(|(class, ..)| state_of(*class, own))),
                Some(Err(why)) => left_out.push(format!("class {} of site {} {why}", own.class, own.site)),
                None => left_out.push(format!("class {} of site {} is not promised", own.class, own.site)),
            }
        }
        for own in &learned.plants {
            let number = self.registry.promises.plants.iter().position(|plant| plant.name == own.name);
            match number {
                Some(number) => left_out.extend(self.restore_plant(number, own, &states, at_once)),
                None => left_out.push(format!("there is no upstream or folder {}", own.name)),
            }
        }
        self.take_promised_costs(None, false);
        left_out
    }

    /// Takes the costs of a class; refuses those of other levels, and numbers that cannot be.
    fn restore_class(&mut self, class: usize, own: &LearnedClass) -> Result<(), &'static str> {
        let levels = &self.rows[class].levels;
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
            (costs.line, costs.line_learned) = (LinearModel::from_known(own.line), true);
        }
        Ok(())
    }

    /// Takes what a plant's loops have found. Returns what was left out.
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
        self.loops.utilization[number].restore(state, at_once.then_some(states));
        let mine = self.loops.utilization[number].class_states(&self.loops.applied);
        for state in states.iter().filter(|state| at_once && mine.iter().any(|own| own.class == state.class))
        {
            let words = &self.lane.published.classes[state.class];
            let m = state.set.clamp(self.least_level(state.class), f64::from(words.top_level));
            words.words.service_level.set(m);
            self.loops.applied[state.class] = m;
        }
        let (search, workers) = (self.loops.searches[number].as_mut()?, own.workers.as_ref()?);
        if !search.restore(workers) {
            return Some(format!("the workers of {} lie outside what is promised", own.name));
        }
        let (workers, limit, is_known) = search.capacity();
        self.lane.published.plants[number].capacity.set(workers, limit, is_known);
        None
    }

    fn least_level(&self, class: usize) -> f64 {
        let member = self.registry.classes().find(|member| member.class == class);
        member.map_or(0.0, |member| f64::from(member.site.least_level(member.index)))
    }
}

fn state_of(class: usize, own: &LearnedClass) -> ClassLoopState {
    let [set, allocated] = own.service_level.map(|m| if m.is_finite() { m.max(0.0) } else { 0.0 });
    let calibration = if own.calibration.is_finite() { own.calibration } else { 0.0 };
    ClassLoopState { class, allocated, calibration, set }
}

fn as_numbers(costs: Costs) -> [f64; 3] {
    [costs.per_request_seconds, costs.per_byte_seconds, costs.per_rejection_seconds]
}
