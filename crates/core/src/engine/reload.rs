//! New promises for a running engine: validated whole, then swapped at once, keeping what was learned.
//!
//! Plants, sites and classes that stay, by name, keep their number, their counters, rates, costs, trim and heavy
//! clients; m stays at the same place between levels of the same name. A level that stays with its plant keeps its cost.
//! What is no longer promised keeps its number and its counters until the process ends, so that its last requests are
//! accounted for; what comes back finds them again. Requests under way are not touched: see `lane.rs`.
//!
//! Two steps, because a shell has tables of its own that must know a number before the first request has it:
//! [`Engine::prepare`] gives the numbers, [`Engine::apply`] brings them into force. An engine is made the same way,
//! from nothing.

use crate::actuator::capacity::Capacity;
use crate::admission::token_bucket::TokenBucket;
use crate::admission::unfinished_work::{Terms, UnfinishedWork};
use crate::control::cost::class::ClassCosts;
use crate::control::deadline::terms;
use crate::control::response::{Promise, Promised};
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::Search;
use crate::engine::state::{ClassWords, PublishedClass, PublishedPlant, PublishedState};
use crate::engine::{ClassRow, Engine, SHORTEST_LOOK};
use crate::model::{LinearModel, Tracker};
use crate::promises::diff::{Changes, changes};
use crate::promises::registry::{RegisteredClass, Registry};
use crate::promises::{Admission, Delay, Level, MAX_LEVELS, Plant, Promises, Site};
use crate::request::classify::Classifier;
use crate::scheduling::gate::{Gate, MOST_IN_SERVICE};
use crate::scheduling::quota::{Quota, TurnRule};
use crate::scheduling::rank::Rank;
use crate::telemetry::heavy_hitters::HeavyHitters;
use crate::telemetry::monitor::PlantMonitor;
use crate::time::{Duration, Instant};
use alloc::{string::String, sync::Arc, vec::Vec};

/// Promises that can be kept, with the numbers that they will have. Good for the engine that prepared it, until the
/// next one is applied.
#[derive(Clone, Debug)]
pub struct Reload {
    registry: Registry,
    changes: Changes,
}

impl Reload {
    /// The number of each plant, in the order of the promises: as in [`Permit::plant`](crate::request::Permit::plant).
    pub fn plant_numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.registry.plants.iter().copied()
    }

    /// The number of each site, in the order of the promises: as in [`Target::site`](crate::request::Target::site).
    pub fn site_numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.registry.sites.iter().map(|site| site.site)
    }

    /// What it changes.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }
}

impl Engine {
    /// Validates new promises against this engine. Nothing changes.
    ///
    /// # Errors
    /// What in `promises` cannot be, one sentence each.
    pub fn prepare(&self, promises: &Promises) -> Result<Reload, Vec<String>> {
        promises.validate()?;
        let registry = self.registry.next(promises)?;
        let changes = changes(&self.registry, &registry);
        Ok(Reload { registry, changes })
    }

    /// Brings promises into force, for all lanes at once: each holds them from its next call on.
    pub fn apply(&mut self, reload: Reload) -> Changes {
        let Reload { registry, changes } = reload;
        let was = core::mem::replace(&mut self.registry, registry);
        self.publish_counters();
        self.follow_classes();
        self.follow_plants(&was);
        self.rows = self.next_rows();
        self.deadlines.promise(&self.registry);
        self.publish();
        self.follow_responses();
        self.follow_time();
        changes
    }

    /// [`prepare`](Engine::prepare) and [`apply`](Engine::apply).
    ///
    /// # Errors
    /// What in `promises` cannot be; then nothing changed.
    pub fn reload(&mut self, promises: &Promises) -> Result<Changes, Vec<String>> {
        Ok(self.apply(self.prepare(promises)?))
    }

    /// The classes' monitors, their applied m and their crowds.
    fn follow_classes(&mut self) {
        let lanes = self.counters.clone();
        for RegisteredClass { class, site, .. } in self.registry.classes() {
            let plants = plants_of(site);
            if class == self.monitors.len() {
                self.monitors.push(site.levels.len());
                self.costs.push(ClassCosts::new(self.known_line(site), site.levels.len()));
                self.applied.push(site.levels.len() as f64);
                self.crowds.push(HeavyHitters::new(lanes.len()));
                continue;
            }
            let row = &self.rows[class];
            if row.levels == level_names(site) && row.plants == plants {
                continue;
            }
            let cost = |(level, plant): (&Level, &usize)| {
                let old = row.levels.iter().position(|name| *name == level.name);
                let old = old.filter(|old| row.plants[*old] == *plant);
                old.map_or_else(Default::default, |old| self.costs[class].by_level[old + 1].clone())
            };
            let costs: Vec<_> = site.levels.iter().zip(&plants).map(cost).collect();
            let moved_away = row.plants.last() != plants.last();
            let line = moved_away.then(|| self.known_line(site));
            self.monitors.relevel(class, costs.len(), &lanes);
            let own = &mut self.costs[class];
            own.relevel(&costs);
            own.line = line.unwrap_or_else(|| own.line.clone());
            self.applied[class] = moved(&row.levels, site, self.applied[class]);
        }
    }

    /// The loops.
    fn follow_plants(&mut self, was: &Registry) {
        let known =
            self.registry.promises.plants.iter().filter_map(|p| p.costs).map(|c| c.per_rejection_seconds);
        self.gateway.promised = known.reduce(f64::max);
        let m = |class: usize, m: f64| {
            let site = self.registry.classes().find(|member| member.class == class).map(|member| member.site);
            site.map_or(m, |site| moved(&self.rows[class].levels, site, m))
        };
        for (number, one) in self.loops.iter_mut().enumerate() {
            one.reload(&was.promises, &self.registry, number, m);
        }
        self.follow_searches();
        for number in self.loops.len()..self.registry.promises.plants.len() {
            self.loops.push(UtilizationLoop::new(&self.registry, number));
            self.plant_monitors.push(PlantMonitor::default());
        }
    }

    /// Where the number of workers is looked for; what was found stays, within bounds that stay.
    fn follow_searches(&mut self) {
        let plants = &self.registry.promises.plants;
        self.searches.resize_with(plants.len(), || None);
        for (search, plant) in self.searches.iter_mut().zip(plants) {
            let Some(bounds) = plant.find_workers else {
                *search = None;
                continue;
            };
            if search.as_ref().is_none_or(|known| known.finder.bounds() != bounds) {
                let start = search.as_ref().map_or(plant.workers, |known| known.finder.limit());
                *search = Some(Search::new(bounds, start));
            } else if let Some(known) = search {
                known.finder.doubt();
            }
        }
        self.guards = plants.iter().map(|plant| plant.response_time_limit.unwrap_or(Duration::MAX)).collect();
        for member in self.registry.classes() {
            let guard = &mut self.guards[member.site.plant];
            if let (Some(delay), _) = response_promise(member.site, member.place) {
                *guard = (*guard).min(delay.target / 2);
            }
        }
    }

    /// The ranks of all requests that a plant may be asked to serve.
    fn ranks_at(&self, plant: usize) -> impl Iterator<Item = Rank> + '_ {
        let keeps = self.registry.promises.has_deadlines(plant);
        let members = self
            .registry
            .classes()
            .filter(move |member| keeps && member.site.plants().any(|own| own == plant));
        let own = members.flat_map(|member| ranks(member.site, member.place));
        own.chain(keeps.then_some(Rank::EXEMPT))
    }

    /// The loops of promised response times.
    fn follow_responses(&mut self) {
        let shared: &PublishedState = &self.lane.shared;
        let others = || self.registry.classes().filter(|other| !other.exempt);
        let promised = self.registry.classes().filter_map(|member| {
            let quota = shared.classes[member.class].quota.clone()?;
            let rank = ranks(member.site, member.place)[0];
            let promise = match response_promise(member.site, member.place) {
                (Some(delay), _) => Promise::Delay(delay),
                (None, ratio) => Promise::Ratio { delta: ratio?, strict: member.site.strict_ratios },
            };
            let plant = member.site.plant;
            let ranks_below = |other: &RegisteredClass<'_>| {
                other.site.plant == plant && ranks(other.site, other.place)[0].band > rank.band
            };
            let below = others().filter(ranks_below).map(|other| other.class).collect();
            Some(Promised {
                class: member.class,
                site: member.site_number,
                plant,
                rank,
                promise,
                quota,
                below,
            })
        });
        let promised = promised.collect();
        self.responses.promise(promised, self.registry.promises.control.delay_law);
        self.responses_due = if self.responses.is_empty() { Instant::FAR } else { self.last_run };
    }

    /// How often the engine looks at what.
    fn follow_time(&mut self) {
        let Promises { plants, control, .. } = &self.registry.promises;
        (self.reloaded, self.may_rest) = (true, false);
        self.periods_due = if control.admission == Admission::Budget { self.last_run } else { Instant::FAR };
        self.due = self.due.min(self.last_run + control.period);
        self.sample_every = control.period / Tracker::SAMPLES_PER_PERIOD;
        self.look_every = plants.iter().map(|p| (p.queue.max_wait / 2).max(SHORTEST_LOOK)).collect();
        for member in self.registry.classes() {
            let Some(deadline) = terms(member.site, member.place, member.exempt).deadline else { continue };
            for plant in member.site.plants() {
                let look = &mut self.look_every[plant];
                *look = (*look).min((deadline / 2).max(SHORTEST_LOOK));
            }
        }
        self.shortest_look = self.look_every.iter().copied().min().unwrap_or(Duration::MAX);
        let has_deadlines = (0..plants.len()).any(|plant| self.registry.promises.has_deadlines(plant));
        self.samples_only_rates =
            self.searches.iter().all(Option::is_none) && self.deadlines.is_empty() && !has_deadlines;
        self.waiting.resize(self.monitors.len(), 0);
    }

    /// a and b of a site, where they were promised.
    fn known_line(&self, site: &Site) -> LinearModel {
        let plant = &self.registry.promises.plants[site.plant];
        let workers = f64::from(plant.workers);
        site.costs.or(plant.costs).map_or_else(LinearModel::default, |c| {
            LinearModel::known(c.per_request_seconds * workers, c.per_byte_seconds * workers)
        })
    }

    fn next_rows(&self) -> Vec<ClassRow> {
        let mut rows = self.rows.clone();
        rows.iter_mut().for_each(|row| row.removed = true);
        rows.resize_with(self.registry.class_count(), ClassRow::default);
        for member in self.registry.classes() {
            rows[member.class] = ClassRow {
                site: member.site.name.clone(),
                class: member.name.into(),
                plant: member.site.plant,
                levels: level_names(member.site),
                plants: plants_of(member.site),
                removed: false,
            };
        }
        rows
    }

    /// Longer lists of counters, for the engine itself.
    fn publish_counters(&mut self) {
        let (classes, plants) = (self.registry.class_count(), self.registry.promises.plants.len());
        self.counters = self.counters.iter().map(|lane| Arc::new(lane.grown(classes, plants))).collect();
    }

    /// The next generation for all lanes.
    fn publish(&mut self) {
        let before = self.shared();
        let promises = &self.registry.promises;
        let plant = |(number, plant): (usize, &Plant)| {
            let gate = match before.plants.get(number) {
                Some(known) => known.gate.clone(),
                None => Arc::new(Gate::new(0)),
            };
            if number >= before.plants.len() && self.running {
                gate.start_clock(self.last_sample);
            }
            let known = before.plants.get(number);
            let mut unfinished = known.map_or_else(UnfinishedWork::default, |known| known.unfinished.clone());
            unfinished.follow(&promises.control, self.ranks_at(number));
            PublishedPlant {
                gate,
                capacity: capacity(plant, known),
                queue: plant.queue,
                has_deadlines: promises.has_deadlines(number),
                unfinished,
            }
        };
        let mut classes: Vec<PublishedClass> = before.classes.iter().map(PublishedClass::kept).collect();
        // New numbers come in their order.
        let mut contract: Option<(usize, Arc<TokenBucket>)> = None;
        for RegisteredClass { class, site, site_number, place, exempt, .. } in self.registry.classes() {
            if contract.as_ref().is_none_or(|(known, _)| *known != site_number) {
                contract = self.contract(site_number, before).map(|contract| (site_number, contract));
            }
            let contract = contract.as_ref().map(|(_, contract)| contract.clone());
            let quota = quota(site, place, exempt, before.classes.get(class));
            let number = self.registry.sites[site_number].site;
            let fresh = PublishedClass {
                contract,
                quota,
                ranks: ranks(site, place),
                terms: terms(site, place, exempt),
                estimates: self.deadlines.estimates(number),
                ..self.published_class(class, site)
            };
            match classes.get_mut(class) {
                Some(known) => *known = fresh,
                None => classes.push(fresh),
            }
        }
        let shared = PublishedState {
            generation: before.generation.wrapping_add(1),
            rules: Classifier::of(&self.registry, self.seed),
            mode: promises.control.mode,
            retry_after: promises.control.retry_after,
            classes,
            plants: promises.plants.iter().enumerate().map(plant).collect(),
            lanes: self.counters.clone(),
        };
        let quotas: Vec<_> = shared.classes.iter().map(|class| class.quota.clone()).collect();
        shared.plants.iter().for_each(|plant| plant.gate.promise(&quotas));
        self.published.publish(Arc::new(shared));
        self.lane.follow();
    }

    /// The token buckets of a site's contract: as it stands, if the contract does.
    fn contract(&self, site: usize, before: &PublishedState) -> Option<Arc<TokenBucket>> {
        let guarantee = self.registry.promises.sites[site].guarantee?;
        let class = self.registry.sites[site].classes.first()?;
        let known = before.classes.get(usize::from(*class)).and_then(|class| class.contract.as_ref());
        let known = known.filter(|contract| *contract.guarantee() == guarantee);
        Some(known.map_or_else(|| Arc::new(TokenBucket::new(&guarantee)), Arc::clone))
    }

    fn published_class(&self, class: usize, site: &Site) -> PublishedClass {
        let mut plant_of_level = [site.plant as u16; MAX_LEVELS + 1];
        for (level, plant) in plants_of(site).into_iter().enumerate() {
            plant_of_level[level + 1] = plant as u16;
        }
        let words = ClassWords::new(self.applied[class]);
        words.set_heavy(self.crowds[class].heavy(), self.crowds[class].note_shift());
        PublishedClass {
            words,
            top_level: site.levels.len() as u8,
            choice: site.choice,
            plant_of_level,
            contract: None,
            ranks: [Rank::EXEMPT; 2],
            quota: None,
            terms: Terms { deadline: None, prefers_delay: false },
            estimates: None,
        }
    }
}

/// Where the requests of a class wait: those at the loop's choice, and those inside a contract.
fn ranks(site: &Site, place: usize) -> [Rank; 2] {
    let class = site.classes.get(place);
    let priority = class.map_or(site.default_priority, |class| class.priority);
    let deadline = class.and_then(|class| class.deadline).or(site.deadline);
    let others = if site.guarantee.is_some() { Rank::contracted } else { Rank::ordinary };
    [others(priority, deadline), Rank::guaranteed(deadline)]
}

/// What a class was promised of its response times: delta, or D_ref.
pub(crate) fn response_promise(site: &Site, place: usize) -> (Option<Delay>, Option<f64>) {
    let own = site.classes.get(place).map(|class| (class.delay, class.ratio));
    own.unwrap_or((site.default_delay, site.default_ratio))
}

/// The words of that promise, as they stand if it does.
fn quota(site: &Site, place: usize, exempt: bool, before: Option<&PublishedClass>) -> Option<Arc<Quota>> {
    let (delay, ratio) = response_promise(site, place);
    let turn = if delay.is_some() { TurnRule::Quota } else { ratio.map(|_| TurnRule::Weight)? };
    let fresh = Quota::new(turn, delay.map(|delay| delay.target));
    let known = before.and_then(|class| class.quota.as_ref());
    let target_ns = fresh.target_ns;
    (!exempt).then(|| match known {
        Some(known) if known.turn == turn && known.target_ns == target_ns => known.clone(),
        Some(changed) => Arc::new(fresh.counting(changed)),
        None => Arc::new(fresh),
    })
}

/// A plant's workers and the most in service: what was found stays found, within the bounds.
fn capacity(plant: &Plant, before: Option<&PublishedPlant>) -> Arc<Capacity> {
    let most = plant.max_connections.min(MOST_IN_SERVICE);
    let Some(bounds) = plant.find_workers else {
        return Arc::new(Capacity::new(plant.workers, most, false));
    };
    let known = before.map(|plant| &plant.capacity).filter(|capacity| capacity.found);
    let fit = |n: u32| n.clamp(bounds.least, bounds.most).min(most);
    if let Some(known) = known.filter(|known| fit(known.limit()) == known.limit()) {
        return known.clone();
    }
    let (workers, limit) = known.map_or((plant.workers, plant.workers), |c| (c.workers(), c.limit()));
    Arc::new(Capacity::new(fit(workers), fit(limit), true))
}

fn level_names(site: &Site) -> Vec<String> {
    site.levels.iter().map(|level| level.name.clone()).collect()
}

/// The plant of each level 1..=M.
fn plants_of(site: &Site) -> Vec<usize> {
    site.levels.iter().map(|level| level.plant.unwrap_or(site.plant)).collect()
}

/// m among the levels of now: between two that stay it keeps its place, and full stays full.
fn moved(old: &[String], site: &Site, m: f64) -> f64 {
    let top = site.levels.len() as f64;
    if m >= old.len() as f64 {
        return top;
    }
    let place = |level: usize| -> f64 {
        let name = level.checked_sub(1).and_then(|place| old.get(place));
        match name.map(|name| site.levels.iter().position(|level| level.name == *name)) {
            Some(Some(now)) => (now + 1) as f64,
            Some(None) => top.min(level as f64),
            None => 0.0,
        }
    };
    let whole = m as usize;
    (place(whole) + (m - whole as f64) * (place(whole + 1) - place(whole))).clamp(0.0, top)
}
