//! What was learned of classes is kept for new promises.

use crate::actuator::levels_by_plant::{LevelsByPlant, parts};
use crate::control::cost::class::ClassCosts;
use crate::control::utilization::costs::promised_line;
use crate::engine::Engine;
use crate::engine::reload::ClassNames;
use crate::model::LinearModel;
use crate::promises::registry::RegisteredClass;
use crate::promises::{Level, Site};
use alloc::{string::String, sync::Arc, vec::Vec};

impl Engine {
    /// The names of each class under the promises in force.
    pub(super) fn next_class_names(&self) -> Vec<ClassNames> {
        let mut all = self.class_names.clone();
        all.iter_mut().for_each(|names| names.removed = true);
        all.resize_with(self.registry.class_count(), ClassNames::default);
        for member in self.registry.classes() {
            all[member.class] = ClassNames {
                site: member.site.name.clone(),
                class: member.name.into(),
                plant: member.site.plant,
                levels: level_names(member.site),
                plants: plants_of(member.site),
                removed: false,
            };
        }
        all
    }

    /// Makes counters for new numbers; the lanes get them with the published state.
    pub(super) fn grow_counters(&mut self) {
        let (classes, plants) = (self.registry.class_count(), self.registry.promises.plants.len());
        self.sensors.counters =
            self.sensors.counters.iter().map(|lane| Arc::new(lane.grown(classes, plants))).collect();
    }

    /// Fits the classes' monitors, costs, applied m and heavy clients to the new promises.
    pub(super) fn reload_classes(&mut self) {
        let lanes = self.sensors.counters.clone();
        let least = self.registry.least_levels();
        for RegisteredClass { class, site, .. } in self.registry.classes() {
            let plants = plants_of(site);
            if class == self.sensors.classes.len() {
                self.sensors.classes.push(site.levels.len());
                self.loops.costs.push(ClassCosts::new(LinearModel::default(), site.levels.len()));
                self.loops.applied.push(LevelsByPlant::new(&plants, |_| site.levels.len() as f64));
                self.sensors.heavy.push(lanes.len());
                continue;
            }
            self.loops.applied[class].keep_above(least[class].into());
            let names = &self.class_names[class];
            if names.levels == level_names(site) && names.plants == plants {
                continue;
            }
            let cost = |(level, plant): (&Level, &usize)| {
                let old = level_before(names, level, *plant);
                old.map_or_else(Default::default, |old| self.loops.costs[class].by_level[old].clone())
            };
            let costs: Vec<_> = site.levels.iter().zip(&plants).map(cost).collect();
            self.sensors.classes.relevel(class, costs.len(), &lanes);
            self.loops.costs[class].relevel(&costs);
            if names.plants.last() != plants.last() {
                self.loops.costs[class].set_line(LinearModel::default());
            }
            // A plant that served no level before begins where the clients were on average.
            let was = &self.loops.applied[class];
            let m = |plant: usize| moved((names, site), plant, was.at(plant).unwrap_or_else(|| was.mean()));
            let now = LevelsByPlant::new(&plants, m);
            self.loops.applied[class] = now;
        }
    }

    /// Takes the promised costs of one plant, or of all, where nothing was learned yet or the promised costs have changed; with
    /// `anew` also where something was learned.
    pub(in crate::engine) fn take_promised_costs(&mut self, plant: Option<usize>, anew: bool) {
        let own = |site: &Site| plant.is_none_or(|plant| site.plant == plant);
        for member in self.registry.classes().filter(|member| own(member.site)) {
            let costs = &mut self.loops.costs[member.class];
            let promised = member.site.costs.or(self.registry.promises.plants[member.site.plant].costs);
            let is_new = promised.is_some() && promised != costs.promised;
            if anew || is_new || !costs.line_learned {
                let [workers, _] = self.lane.published.plants[member.site.plant].capacity.whole();
                costs.set_line(promised_line(promised, workers));
            }
            costs.promised = promised;
        }
    }
}

pub(super) fn level_names(site: &Site) -> Vec<String> {
    site.levels.iter().map(|level| level.name.clone()).collect()
}

/// The plant of each level 1..=M.
pub(super) fn plants_of(site: &Site) -> Vec<usize> {
    site.plants().collect()
}

/// The number that a level of a class had, if it stays at its plant.
pub(super) fn level_before(names: &ClassNames, level: &Level, plant: usize) -> Option<usize> {
    let old = names.levels.iter().position(|name| *name == level.name);
    old.filter(|old| names.plants[*old] == plant).map(|old| old + 1)
}

/// m at a plant among the new levels: it stays between the same two levels, by name, and full quality stays full quality. The
/// level below the plant's lowest one may have another name now: as many clients as before keep the plant's lowest level.
pub(super) fn moved((names, site): (&ClassNames, &Site), plant: usize, m: f64) -> f64 {
    let (old, top) = (&names.levels, site.levels.len() as f64);
    if m >= old.len() as f64 {
        return top;
    }
    let base = |plants: &[usize]| parts(plants).find(|part| part.0 == plant).map(|(_, base, _)| base);
    let bases = base(&names.plants).zip(base(&plants_of(site)));
    let new_level = |level: usize| -> f64 {
        if let Some((_, now)) = bases.filter(|(was, _)| *was == level) {
            return now as f64;
        }
        let name = level.checked_sub(1).and_then(|index| old.get(index));
        match name.map(|name| site.levels.iter().position(|level| level.name == *name)) {
            Some(Some(now)) => (now + 1) as f64,
            Some(None) => top.min(level as f64),
            None => 0.0,
        }
    };
    let whole = m as usize;
    (new_level(whole) + (m - whole as f64) * (new_level(whole + 1) - new_level(whole))).clamp(0.0, top)
}
