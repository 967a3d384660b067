//! The next generation of the published state.

use super::classes::{level_before, plants_of};
use super::{ranks, response_promise};
use crate::actuator::capacity::Capacity;
use crate::actuator::retry_after::LONGEST;
use crate::admission::contract_token_bucket::TokenBucket;
use crate::admission::slot_key::{NeededSlot, SlotKey};
use crate::admission::unfinished_work::UnfinishedWork;
use crate::control::deadline::terms;
use crate::control::workers::FoundRefusals;
use crate::engine::Engine;
use crate::engine::published_state::{ClassWords, PublishedClass, PublishedPlant, PublishedState};
use crate::promises::registry::RegisteredClass;
use crate::promises::{MAX_LEVELS, Plant, Site};
use crate::request::classify::Classifier;
use crate::scheduling::gate::Gate;
use crate::scheduling::quota::{Quota, TurnRule};
use crate::scheduling::rank::Rank;
use crate::sync::shared::Shared;
use crate::telemetry::place_load::PlaceLoads;
use crate::telemetry::snapshot::in_service;
use crate::time::Duration;
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Engine {
    /// Publishes the next generation to all lanes.
    pub(super) fn publish(&mut self) {
        let before = self.published();
        let promises = &self.registry.promises;
        let plant = |(number, plant): (usize, &Plant), classes: &[PublishedClass]| {
            let known = before.plants.get(number);
            let gate = known.map_or_else(|| self.new_gate(number), |known| known.gate.clone());
            let mut unfinished = known.map_or_else(UnfinishedWork::default, |known| known.unfinished.clone());
            unfinished.follow(&promises.control, self.slots_at(number, classes));
            PublishedPlant {
                gate,
                streams: known.map_or_else(Arc::default, |known| known.streams.clone()),
                stream_share: plant.stream_share,
                tunnels: known.map_or_else(Arc::default, |known| known.tunnels.clone()),
                tunnel_terms: plant.tunnels,
                capacity: capacity(plant, known, &self.loops.refusals[number].output()),
                queue: plant.queue,
                returns: known.map_or_else(Arc::default, |known| known.returns.clone()),
                place_loads: self.place_loads(number, known),
                shortest_deadline: promises.shortest_deadline(number),
                unfinished,
            }
        };
        // A class that is no longer promised stays as it is.
        let mut classes = before.classes.clone();
        // The numbers of new classes follow one another, so each new class is the next in the list.
        let mut contract: Option<(usize, Arc<TokenBucket>)> = None;
        for member in self.registry.classes() {
            let site_number = member.site_number;
            if contract.as_ref().is_none_or(|(known, _)| *known != site_number) {
                contract = self.contract(site_number, before).map(|contract| (site_number, contract));
            }
            let contract = contract.as_ref().map(|(_, contract)| contract.clone());
            let fresh = self.published_class(&member, before, contract);
            match classes.get_mut(member.class) {
                Some(known) => *known = fresh,
                None => classes.push(fresh),
            }
        }
        let plants = promises.plants.iter().enumerate().map(|own| plant(own, &classes)).collect();
        let next = PublishedState {
            generation: before.generation.wrapping_add(1),
            rules: Classifier::of(&self.registry, self.seed, |site| self.loops.deadlines.shapes(site)),
            mode: promises.control.mode,
            promised_return: promises.control.retry_after,
            turn: AtomicU64::new(before.turn.load(Relaxed)),
            classes,
            plants,
            lanes: self.sensors.counters.clone(),
        };
        let quotas: Vec<_> = next.classes.iter().map(|class| class.quota.clone()).collect();
        next.plants.iter().for_each(|plant| plant.gate.promise(&quotas));
        self.published.publish(Arc::new(next));
        self.lane.follow();
    }

    /// A gate for a new plant.
    fn new_gate(&self, plant: usize) -> Gate {
        let words = self.words.map_or_else(Shared::default, |words| (&words.plants[plant].gate).into());
        let gate = Gate::new(words, 0);
        if self.timers.running {
            gate.start_clock(self.timers.last_sample);
        }
        gate
    }

    /// The words in which a gateway's load at a plant is reported; a known plant keeps its own.
    fn place_loads(&self, plant: usize, known: Option<&PublishedPlant>) -> PlaceLoads {
        let reported =
            || self.words.map_or_else(Shared::default, |words| (&words.plants[plant].reported_load).into());
        known.map_or_else(
            || PlaceLoads { reported: reported(), ..PlaceLoads::default() },
            |known| known.place_loads.clone(),
        )
    }

    /// The token buckets of a site's contract; an unchanged contract keeps its buckets.
    fn contract(&self, site: usize, before: &PublishedState) -> Option<Arc<TokenBucket>> {
        let guarantee = self.registry.promises.sites[site].guarantee?;
        // A new class had no contract before.
        let own = self.registry.sites[site].classes.iter();
        let mut known = own.filter_map(|class| before.classes.get(usize::from(*class))?.contract.as_ref());
        let known = known.find(|contract| *contract.guarantee() == guarantee);
        let words = || self.words.map_or_else(Shared::default, |words| (&words.sites[site].contract).into());
        Some(known.map_or_else(|| Arc::new(TokenBucket::new(words(), &guarantee)), Arc::clone))
    }

    /// A class as it is promised now.
    fn published_class(
        &self,
        member: &RegisteredClass<'_>,
        before: &PublishedState,
        contract: Option<Arc<TokenBucket>>,
    ) -> PublishedClass {
        let RegisteredClass { class, site, site_number, index, exempt, .. } = *member;
        let number = self.registry.sites[site_number].site;
        let known = before.classes.get(class).and_then(|class| class.quota.as_ref());
        let in_service = in_service(&self.sensors.counters, class);
        let plants = plants_of(site);
        let mut plant_of_level = [plants[0] as u16; MAX_LEVELS + 1];
        for (own, plant) in plant_of_level[1..].iter_mut().zip(plants) {
            *own = plant as u16;
        }
        let applied = &self.loops.applied[class];
        PublishedClass {
            words: self.class_words(class, site),
            top_level: site.levels.len() as u8,
            choice: site.choice,
            base: applied.parts()[0].base as u8,
            plant_of_level,
            contract,
            next_promised: Duration::from_secs_f64(site.next_promised().min(LONGEST)),
            ranks: ranks(site, index),
            quota: quota((number, site), index, exempt, (known, in_service)),
            terms: terms(site, index, exempt),
            estimates: self.loops.deadlines.estimates(number),
        }
    }

    /// The words of a class. A level that stays at its plant keeps what its requests usually cost: in another unit, they would
    /// seem to do more or less work than before.
    fn class_words(&self, class: usize, site: &Site) -> ClassWords {
        let (words, heavy) = (ClassWords::new(&self.loops.applied[class]), self.sensors.heavy.class(class));
        words.set_heavy(heavy.heavy(), heavy.note_shift());
        if let Some((known, names)) = self.published().classes.get(class).zip(self.class_names.get(class)) {
            for (index, (level, plant)) in site.levels.iter().zip(site.plants()).enumerate() {
                if let Some(old) = level_before(names, level, plant) {
                    words.follow_level(index + 1, (&known.words, old));
                }
            }
        }
        words
    }

    /// The slots of all requests that a plant with deadlines may be asked to serve: by rank, and of each class with a delay.
    fn slots_at<'a>(
        &'a self,
        plant: usize,
        classes: &'a [PublishedClass],
    ) -> impl Iterator<Item = NeededSlot> + 'a {
        let keeps = self.registry.promises.has_deadlines(plant);
        let members = self
            .registry
            .classes()
            .filter(move |member| keeps && member.site.plants().any(|own| own == plant));
        let own = members.flat_map(|member| {
            let (number, own) = (member.class as u16, &classes[member.class]);
            let site = self.registry.sites[member.site_number].site;
            let pace_ns = own.contract.as_ref().map_or(0, |contract| contract.pace_ns());
            let needed = move |rank, quota_of, quota| NeededSlot {
                key: SlotKey::new(rank, site, quota_of),
                quota,
                pace_ns,
            };
            let by_rank = ranks(member.site, member.index).map(|rank| needed(rank, None, None));
            let quota_of = own.quota_of(number);
            let quota = own.quota.clone().filter(|_| quota_of.is_some());
            by_rank.into_iter().chain(quota.map(|quota| needed(own.ranks[0], quota_of, Some(quota))))
        });
        let exempt = NeededSlot { key: SlotKey::new(Rank::EXEMPT, 0, None), quota: None, pace_ns: 0 };
        own.chain(keeps.then_some(exempt))
    }
}

/// The quota of a promise; an unchanged promise keeps its quota. `known` is the quota from before, and how many requests of
/// the class are in service.
fn quota(
    (number, site): (u16, &Site),
    index: usize,
    exempt: bool,
    (known, in_service): (Option<&Arc<Quota>>, u32),
) -> Option<Arc<Quota>> {
    let (delay, ratio) = response_promise(site, index);
    let turn =
        if delay.is_some() { TurnRule::Quota } else { ratio.map(|_| TurnRule::Weight { site: number })? };
    let fresh = Quota::new(turn, delay.map(|delay| delay.target));
    let target_ns = fresh.target_ns;
    (!exempt).then(|| match known {
        Some(known) if known.turn == turn && known.target_ns == target_ns => known.clone(),
        Some(changed) => Arc::new(fresh.counting(changed)),
        None => Arc::new(fresh.beside(in_service)),
    })
}

/// The workers of a plant, and the most requests that it is given at once; numbers that were found are kept, within the
/// bounds, and so is the number beyond which it refuses.
fn capacity(plant: &Plant, before: Option<&PublishedPlant>, refusals: &FoundRefusals) -> Arc<Capacity> {
    let (workers, most) = (plant.workers, plant.max_connections);
    let known = before.map(|plant| &plant.capacity);
    let with_share = |new: Capacity| {
        _ = new.set_available(known.map_or(1.0, |known| known.available()));
        new
    };
    let Some(bounds) = plant.find_workers else {
        let ceiling = refusals.ceiling.unwrap_or(u32::MAX);
        let configured = with_share(Capacity::new(workers.min(ceiling), most.min(ceiling), false));
        configured.set_refuses(refusals.refuses, refusals.tried_from);
        return Arc::new(configured);
    };
    let known = known.filter(|capacity| capacity.is_searched);
    let fit = |n: u32| n.clamp(bounds.least, bounds.most).min(most);
    if let Some(known) = known.filter(|known| fit(known.whole()[1]) == known.whole()[1]) {
        return known.clone();
    }
    let [workers, limit] = known.map_or([workers; 2], |known| known.whole());
    Arc::new(with_share(Capacity::new(fit(workers), fit(limit), true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{Delay, Promises};
    use crate::request::{Arrival, Outcome, Service, Target, Token, Verdicts};
    use crate::telemetry::Readings;
    use crate::time::{Duration, Instant};

    #[test]
    fn a_plant_that_refuses_is_given_no_more_after_a_reload() {
        let found = |refuses, ceiling| {
            capacity(&Plant::new("app", 16), None, &FoundRefusals { refuses, ceiling, tried_from: None })
        };
        let (never, nine) = (found(false, None), found(true, Some(9)));
        assert_eq!((never.limit(), never.refuses()), (16, false));
        assert_eq!((nine.workers(), nine.limit(), nine.refuses()), (9, 9, true));
    }

    /// A lane reads a reload at its next call only, which may be the end of a request from before it.
    #[test]
    fn a_new_target_keeps_the_count_of_requests_in_service() {
        counts_what_is_in_service(&[Some(200), Some(150)]);
    }

    #[test]
    fn a_first_promise_and_one_made_again_count_the_requests_in_service() {
        counts_what_is_in_service(&[None, Some(150)]);
        counts_what_is_in_service(&[None, Some(150), Some(200)]);
        counts_what_is_in_service(&[Some(200), None, Some(150)]);
    }

    #[test]
    fn what_requests_usually_cost_stays_with_their_level() {
        let promises = |levels: &[&str]| Promises::of(Plant::new("app", 8), Site::new("shop", levels));
        let (mut engine, _) = Engine::new(&promises(&["light", "full"]), 1, 42).expect("valid promises");
        let usual = |engine: &Engine| [1, 2, 3].map(|level| engine.published().classes[0].words.usual(level));
        let unknown = ClassWords::USUAL as u32;
        engine.published().classes[0].words.set_usual(1, 3000.0);
        engine.published().classes[0].words.set_usual(2, 40_000.0);
        engine.reload(&promises(&["light", "full"])).expect("valid promises");
        assert_eq!(usual(&engine), [3000, 40_000, unknown]);
        engine.reload(&promises(&["text", "light", "full"])).expect("valid promises");
        assert_eq!(usual(&engine), [unknown, 3000, 40_000]);
        engine.reload(&promises(&["text", "full"])).expect("valid promises");
        assert_eq!(usual(&engine), [unknown, 40_000, unknown]);
    }

    /// Brings these delays (ms) into force one after the other while eight requests are in service, which end then.
    fn counts_what_is_in_service(targets: &[Option<u64>]) {
        let promises = |target: Option<u64>| Promises {
            plants: alloc::vec![Plant::new("app", 8)],
            sites: alloc::vec![Site {
                default_delay: target.map(|ms| Delay { target: Duration::from_millis(ms), percentile: None }),
                ..Site::new("shop", &["full"])
            }],
            ..Promises::default()
        };
        let (mut engine, mut lanes) = Engine::new(&promises(targets[0]), 8, 42).expect("valid promises");
        let shop = engine.registry.classes().find(|member| !member.exempt).expect("the default class");
        let class = shop.class as u16;
        let target = Target { class, client: 7, ..Target::default() };
        let mut verdicts = Verdicts::new();
        let now = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut held = Vec::new();
        for lane in &mut lanes {
            let Arrival::Serve(permit) = lane.arrive(now(1), target, Token(0), &mut verdicts) else {
                panic!("a worker is free")
            };
            held.push(permit);
        }
        let in_service = |engine: &Engine| {
            engine.published().classes[usize::from(class)].quota.as_ref().expect("a delay").in_service()
        };
        let tick = |engine: &mut Engine, ms: u64| {
            engine.tick(now(ms), &Readings::default(), &mut Verdicts::new());
            in_service(engine)
        };
        for target in &targets[1..] {
            engine.reload(&promises(*target)).expect("valid promises");
        }
        assert_eq!(in_service(&engine), 8, "{targets:?}");
        assert_eq!(tick(&mut engine, 10), 8, "{targets:?}");
        for (lane, mut permit) in lanes.iter_mut().zip(held) {
            lane.release(now(100), &mut permit, Service::default(), &mut verdicts);
            lane.depart(now(100), permit, Outcome::Completed, &mut verdicts);
        }
        assert_eq!(tick(&mut engine, 20_000), 0, "{targets:?}");
    }
}
