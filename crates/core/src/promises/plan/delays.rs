//! Whether promised delays can be kept at the contracted rates.
//!
//! Inside its contract a site is served at full quality, so `S = s U*_i / R_i` is one worker's time for one of its requests,
//! and no response is faster than S. Before its service a request waits for all contracts of the plant: `W_0` until a worker is
//! free, whichever contract it serves, and then for the contracts that are served first.
//!
//! **A class that waits less lets others wait longer.** While no worker idles, the waits of a set of contracts before all
//! others obey `sum rho_i W_i >= sigma W_0 / (1 - sigma)`, sigma being the sum of their rho (Kleinrock's conservation law);
//! strict priority makes them equal. Contracts whose promises leave no more time to wait than that of a class are planned to
//! wait before it as long as they were promised, and no less. Sort these contracts by strictness. For every prefix A of that
//! order, another contract of load rho waits at least `(sigma W_0 / (1 - sigma) - sum over A of rho_i W_i) / rho`, sigma being
//! the load of A plus rho. Promises that leave more time give way, and so do contracts without a promised delay; only a request
//! in service does not.
//!
//! `W_0 = D_q (1 - rho)` is of all contracts together, `D_q` being Erlang's and Allen-Cunneen's with `c_a^2 = c_s^2 = 1`
//! ([`queue_delay`]).
//!
//! Any class may use all that its site was promised, so each is planned at the site's whole rate, and only the strictest class
//! of another site counts. A percentile of the response time is taken of wait and service together, both exponential: eight
//! half-loaded workers of 40 ms have nine in ten answers within 93 ms, where the mean of service and the percentile of the wait
//! are 40 ms together.
//!
//! Without a contract the rate is open, and quality may be lowered until the delay is kept; without costs or a number of
//! workers S is unknown. Then a promise is *unverified*, and the loop reports when it is missed. A promise without a rate is
//! refused only if no lower level exists, and one request alone, behind the contracts' requests in service, takes longer than
//! was promised: no rate is low enough. All other requests of a contract give way, since a quota comes before them.
//!
//! Among sites without a contract a quota yields to classes of a higher priority. Nothing bounds how many requests those
//! classes bring, so the plan says that they may break such a promise.

use super::{Feasibility, Known, work};
use crate::model::{erlang_c, queue_delay, response_percentile};
use crate::promises::{Delay, Plant, Promises, Site};
use alloc::{string::String, vec::Vec};

/// (c_a^2 + c_s^2) / 2 for Poisson arrivals and exponential service.
const VARIABILITY: f64 = 1.0;

/// A promised delay beside the least that the plant can keep.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayRow {
    /// The name of the site.
    pub site: String,
    /// The name of the class to which the delay is promised.
    pub class: String,
    /// The delay, and the percentile that it is for.
    pub delay: Delay,
    /// R, the site's contracted rate (1/s); `None` without a contract.
    pub rate: Option<f64>,
    /// S (s); `None` while the costs or the number of workers are not known.
    pub service_seconds: Option<f64>,
    /// The delay that can be kept (s), infinite where the workers cannot carry the rate. Without a rate it is given
    /// only where one request alone takes longer than was promised; `None` while it is not known.
    pub least_seconds: Option<f64>,
    /// The highest rate at which the promise could be kept (1/s), 0 if there is none; given only for promises that
    /// cannot be kept.
    pub fitting_rate: Option<f64>,
    /// Whether classes of a higher priority, whose requests no contract bounds, go before it: the promise is kept only while
    /// they leave room.
    pub yields: bool,
}

impl DelayRow {
    /// Whether the delay can be kept.
    pub fn verdict(&self) -> Feasibility {
        match self.least_seconds {
            None => Feasibility::Unverified,
            Some(least) if least > self.delay.target.as_secs_f64() => Feasibility::Exceeds,
            Some(_) => Feasibility::Fits,
        }
    }
}

/// A promised delay with all that is needed to plan it.
#[derive(Clone, Copy)]
struct Planned {
    site: usize,
    delay: Delay,
    rate: f64,
    service_seconds: f64,
}

impl Planned {
    /// How long a request may wait (s).
    fn room(&self) -> f64 {
        self.delay.target.as_secs_f64() - self.service_seconds
    }

    fn work(&self) -> f64 {
        self.rate * self.service_seconds
    }

    /// The response time (s) of the promised kind, mean or percentile, with the mean wait `wait` and the chance `waits` to
    /// wait.
    fn response(&self, wait: f64, waits: f64) -> f64 {
        match self.delay.percentile {
            None => self.service_seconds + wait,
            Some(p) => response_percentile(wait, waits, self.service_seconds, p / 100.0),
        }
    }

    /// The mean wait (s) with which the promise is just kept, to a millionth; 0 if there is none.
    fn longest_wait(&self, waits: f64) -> f64 {
        let target = self.delay.target.as_secs_f64();
        highest(target, |wait| self.response(wait, waits) <= target)
    }

    /// The least delay (s) that the plant can keep behind the contracts of `first`, the strictest first.
    fn least(&self, plant: &Contracts, first: &[Planned]) -> f64 {
        let servers = f64::from(plant.workers);
        let (free, waits) = (plant.wait_for_a_worker(), plant.chance_to_wait());
        let own = self.work() / servers;
        let (mut sigma, mut promised, mut least) = (own, 0.0, own * free / (1.0 - own));
        for other in first {
            let share = other.work() / servers;
            (sigma, promised) = (sigma + share, promised + share * other.longest_wait(waits));
            least =
                if sigma < 1.0 { least.max(sigma * free / (1.0 - sigma) - promised) } else { f64::INFINITY };
        }
        self.response(if own < 1.0 { least / own } else { f64::INFINITY }, waits)
    }

    /// The highest rate below the promised one at which it is kept, to a millionth; 0 if there is none.
    fn fitting_rate(&self, plant: &Contracts, first: &[Planned]) -> f64 {
        let target = self.delay.target.as_secs_f64();
        highest(self.rate, |rate| {
            let one = Planned { rate, ..*self };
            one.least(&plant.with(rate - self.rate, self.service_seconds), first) <= target
        })
    }
}

/// The highest number up to `most` at which something holds that ceases to hold as it grows.
fn highest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..20 {
        let middle = 0.5 * (low + high);
        *(if holds(middle) { &mut low } else { &mut high }) = middle;
    }
    low
}

/// The load of all contracts of a plant.
#[derive(Clone, Copy)]
struct Contracts {
    workers: u32,
    rate: f64,
    /// The contracts' load, in erlangs.
    work: f64,
}

impl Contracts {
    fn with(self, rate: f64, service_seconds: f64) -> Self {
        Contracts { rate: self.rate + rate, work: self.work + rate * service_seconds, ..self }
    }

    /// W_0 (s), 0 without contracts.
    fn wait_for_a_worker(&self) -> f64 {
        if self.rate <= 0.0 {
            return 0.0;
        }
        let (servers, service) = (f64::from(self.workers), self.work / self.rate);
        if self.work < servers {
            queue_delay(servers, service, self.rate, VARIABILITY) * (1.0 - self.work / servers)
        } else {
            service / servers * VARIABILITY
        }
    }

    /// The chance that a request waits.
    fn chance_to_wait(&self) -> f64 {
        erlang_c(self.workers, self.work)
    }
}

/// A class that was promised a delay.
struct PromisedDelay<'a> {
    index: usize,
    site: &'a Site,
    class: &'a str,
    delay: Delay,
    service_seconds: Option<f64>,
    yields: bool,
}

impl PromisedDelay<'_> {
    fn planned(&self) -> Option<Planned> {
        let (guarantee, service_seconds) = (self.site.guarantee?, self.service_seconds?);
        Some(Planned { site: self.index, delay: self.delay, rate: guarantee.rate, service_seconds })
    }

    /// The response time of one request alone, if no contract bounds the rate and even that time is too long. A mean includes
    /// the wait for the contracts' requests in service. A percentile does not: how service times vary is not known.
    fn alone_too_long(&self, plant: &Contracts) -> Option<f64> {
        let only = self.site.guarantee.is_none() && self.site.levels.len() == 1;
        let service = self.service_seconds.filter(|_| only)?;
        let wait = if self.delay.percentile.is_none() { plant.wait_for_a_worker() } else { 0.0 };
        let least = service + wait;
        (least > self.delay.target.as_secs_f64()).then_some(least)
    }

    fn row(&self, plant: &Contracts, others: &[Planned]) -> DelayRow {
        let planned = self.planned().map(|own| (own, ahead(&own, others)));
        let mut row = DelayRow {
            site: self.site.name.clone(),
            class: self.class.into(),
            delay: self.delay,
            rate: self.site.guarantee.map(|guarantee| guarantee.rate),
            service_seconds: self.service_seconds,
            least_seconds: planned
                .as_ref()
                .map(|(own, first)| own.least(plant, first))
                .or_else(|| self.alone_too_long(plant)),
            fitting_rate: None,
            yields: self.yields,
        };
        if row.verdict() == Feasibility::Exceeds {
            row.fitting_rate = planned.map(|(own, first)| own.fitting_rate(plant, &first));
        }
        row
    }
}

/// The delays that were promised on a plant.
pub(super) fn rows(
    promises: &Promises,
    (number, plant): (usize, &Plant),
    known: &impl Fn(usize) -> Option<Known>,
) -> Vec<DelayRow> {
    let sites = promises.sites.iter().enumerate().filter(|(_, site)| site.plant == number);
    let contracts = sites.clone().fold(
        Contracts { workers: plant.workers, rate: 0.0, work: 0.0 },
        |sum, (index, site)| match (site.guarantee, service_seconds(plant, site, known(index))) {
            (Some(guarantee), Some(service_seconds)) => sum.with(guarantee.rate, service_seconds),
            _ => sum,
        },
    );
    let all: Vec<PromisedDelay<'_>> = sites
        .flat_map(|(index, site)| {
            let service_seconds = service_seconds(plant, site, known(index));
            promised(site).map(move |(class, delay)| PromisedDelay {
                index,
                site,
                class,
                delay,
                service_seconds,
                yields: yields(promises, (number, index), class),
            })
        })
        .collect();
    let others: Vec<Planned> = all.iter().filter_map(PromisedDelay::planned).collect();
    all.iter().map(|promise| promise.row(&contracts, &others)).collect()
}

/// The classes of a site that have a delay, the built-in `default` last.
fn promised(site: &Site) -> impl Iterator<Item = (&str, Delay)> {
    let classes = site.classes.iter().map(|class| (class.name.as_str(), class.delay));
    let all = classes.chain([("default", site.default_delay)]);
    all.filter_map(|(name, delay)| Some((name, delay?)))
}

/// Whether classes of a higher priority go before the quota of a class at a rate that nothing bounds.
fn yields(promises: &Promises, (plant, site): (usize, usize), class: &str) -> bool {
    let open = |site: &&Site| site.guarantee.is_none() && site.plants().any(|own| own == plant);
    let own = priorities(&promises.sites[site]).find(|(name, _)| *name == class).map(|(_, own)| own);
    let mut others = promises.sites.iter().filter(open).flat_map(priorities);
    open(&&promises.sites[site]) && others.any(|(_, other)| own.is_some_and(|own| other < own))
}

/// The classes of a site and their priorities, `default` last.
fn priorities(site: &Site) -> impl Iterator<Item = (&str, u8)> {
    let classes = site.classes.iter().map(|class| (class.name.as_str(), class.priority));
    classes.chain([("default", site.default_priority)])
}

/// S of a site's requests at full quality, as contracted; without a contract, of a response of the mean size, as far as
/// that is known.
fn service_seconds(plant: &Plant, site: &Site, known: Option<Known>) -> Option<f64> {
    let known = known.filter(|_| plant.find_workers.is_none())?;
    let share = match &site.guarantee {
        Some(guarantee) => work(guarantee, &known) / guarantee.rate,
        None => known.costs.per_request_seconds + known.costs.per_byte_seconds * known.full_bytes,
    };
    (share > 0.0).then_some(share * f64::from(plant.workers))
}

/// The contracts that are served before a promise: of each other site the strictest class, if it leaves no more time to
/// wait. The strictest is first.
fn ahead(own: &Planned, others: &[Planned]) -> Vec<Planned> {
    let is_first = |other: &&Planned| other.site != own.site && other.room() <= own.room();
    let mut first: Vec<Planned> = others.iter().filter(is_first).copied().collect();
    // All classes of a site may use its whole rate, so one class that is strict enough brings all of it.
    first.sort_by(|one, other| one.site.cmp(&other.site).then(one.room().total_cmp(&other.room())));
    first.dedup_by_key(|one| one.site);
    first.sort_by(|one, other| one.room().total_cmp(&other.room()));
    first
}

#[cfg(test)]
mod tests {
    use super::super::{PlantPlan, plan, promised_costs};
    use super::*;
    use crate::promises::{Class, Condition, Costs, Guarantee, WorkerBounds};
    use crate::time::Duration;
    use alloc::vec;

    /// One worker with 10 ms a request: at a rate of R the response time is 1 / (100 - R) s.
    fn plant() -> Plant {
        let costs = Costs { per_request_seconds: 0.01, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 };
        Plant { costs: Some(costs), ..Plant::new("origin", 1) }
    }

    fn delay(milliseconds: u64, percentile: Option<f64>) -> Option<Delay> {
        Some(Delay { target: Duration::from_millis(milliseconds), percentile })
    }

    fn site(name: &str, rate: f64, default_delay: Option<Delay>) -> Site {
        let guarantee = Some(Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(rate, 1.0) });
        Site { guarantee, default_delay, ..Site::new(name, &["full"]) }
    }

    fn planned(plant: Plant, sites: Vec<Site>) -> PlantPlan {
        let promises = Promises { sites, ..Promises::of(plant, Site::new("unused", &["full"])) };
        plan(&promises, |number| promised_costs(&promises, &promises.sites[number])).remove(0)
    }

    fn only(plant: Plant, site: Site) -> DelayRow {
        planned(plant, vec![site]).delays.remove(0)
    }

    fn near(found: Option<f64>, wanted: f64) {
        assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-3 * wanted), "{found:?}, not {wanted}");
    }

    #[test]
    fn one_worker_keeps_the_delay_of_the_textbook() {
        let row = only(plant(), site("shop", 50.0, delay(21, None)));
        assert_eq!(
            (row.class.as_str(), row.verdict(), row.fitting_rate),
            ("default", Feasibility::Fits, None)
        );
        near(row.least_seconds, 0.02);
        // 1 / (100 - R) = 15 ms.
        let row = only(plant(), site("shop", 50.0, delay(15, None)));
        assert_eq!(row.verdict(), Feasibility::Exceeds);
        near(row.fitting_rate, 100.0 / 3.0);
        // The response time of M/M/1 is exponential.
        let row = only(plant(), site("shop", 50.0, delay(60, Some(95.0))));
        near(row.least_seconds, 0.02 * libm::log(20.0));
        assert_eq!(row.verdict(), Feasibility::Fits);
        assert_eq!(only(plant(), site("shop", 50.0, delay(59, Some(95.0)))).verdict(), Feasibility::Exceeds);
    }

    #[test]
    fn below_the_service_time_and_beyond_the_workers_nothing_is_kept() {
        let row = only(plant(), site("shop", 1.0, delay(9, None)));
        assert_eq!((row.verdict(), row.fitting_rate), (Feasibility::Exceeds, Some(0.0)));
        let row = only(plant(), site("shop", 100.0, delay(1000, Some(95.0))));
        assert_eq!((row.verdict(), row.least_seconds), (Feasibility::Exceeds, Some(f64::INFINITY)));
        assert!(row.fitting_rate.is_some_and(|rate| rate > 90.0 && rate < 100.0), "{row:?}");
    }

    #[test]
    fn many_workers_wait_less_than_one_as_fast_as_all() {
        // Erlang's C of 8 workers at 4 erlangs is 0.059, so requests wait 0.059 S / 4.
        let mut many = Plant { workers: 8, max_connections: 8, ..plant() };
        many.costs = plant().costs.map(|costs| Costs { per_request_seconds: 0.005, ..costs });
        near(
            only(many.clone(), site("shop", 100.0, delay(41, None))).least_seconds,
            0.04 * (1.0 + 0.059 / 4.0),
        );
        // Service alone takes 92 ms at its 90th percentile.
        near(only(many, site("shop", 100.0, delay(100, Some(90.0)))).least_seconds, 0.0929);
    }

    #[test]
    fn delays_that_each_fit_alone_are_refused_together_unless_one_gives_way() {
        let pair = |one, other| planned(plant(), vec![site("a", 45.0, one), site("b", 45.0, other)]).delays;
        // 18 ms alone, and 26.4 where the other is in service; 45 of its requests and 45 that wait 20 ms make it 170.
        let rows = pair(delay(30, None), delay(40, None));
        assert_eq!(
            rows.iter().map(DelayRow::verdict).collect::<Vec<_>>(),
            [Feasibility::Fits, Feasibility::Exceeds]
        );
        near(rows[0].least_seconds, 0.01 + 0.009 / 0.55);
        near(rows[1].least_seconds, 0.17);
        near(rows[1].fitting_rate, 25.231);
        let rows = pair(delay(30, None), delay(110, None));
        assert_eq!(
            rows[1].verdict(),
            Feasibility::Exceeds,
            "0.45 * 20 + 0.45 * 100 is less than 0.9 * 90: {rows:?}"
        );
        let rows = pair(delay(30, None), delay(171, None));
        assert!(rows.iter().all(|row| row.verdict() == Feasibility::Fits), "{rows:?}");
        // Both wait as in order of arrival.
        let rows = pair(delay(101, None), delay(101, None));
        assert!(rows.iter().all(|row| row.verdict() == Feasibility::Fits), "{rows:?}");
        let rows = pair(delay(30, None), delay(30, None));
        assert!(rows.iter().all(|row| row.verdict() == Feasibility::Exceeds), "{rows:?}");
        // A class without a delay gives way too.
        assert_eq!(pair(delay(30, None), None).len(), 1);
        assert_eq!(pair(delay(30, None), None)[0].verdict(), Feasibility::Fits);
    }

    #[test]
    fn each_class_may_bring_all_that_its_site_was_promised() {
        let class = |name, delay| Class { delay, ..Class::new(name, Condition::default()) };
        let classes =
            vec![class("gold", delay(15, None)), class("plain", None), class("slow", delay(30, None))];
        let rows = planned(plant(), vec![Site { classes, ..site("shop", 50.0, None) }]).delays;
        let verdicts: Vec<_> = rows.iter().map(|row| (row.class.as_str(), row.verdict())).collect();
        assert_eq!(verdicts, [("gold", Feasibility::Exceeds), ("slow", Feasibility::Fits)]);
        near(rows[1].least_seconds, 0.02);
    }

    #[test]
    fn what_is_not_known_is_unverified() {
        let best_effort = |delay| Site { guarantee: None, ..site("shop", 1.0, delay) };
        let row = only(plant(), best_effort(delay(15, None)));
        assert_eq!((row.verdict(), row.rate), (Feasibility::Unverified, None));
        near(row.service_seconds, 0.01);
        // The delay is shorter than one request alone: no rate is low enough, but a lower level may be quick enough.
        let row = only(plant(), best_effort(delay(5, None)));
        assert_eq!((row.verdict(), row.rate, row.fitting_rate), (Feasibility::Exceeds, None, None));
        near(row.least_seconds, 0.01);
        let two =
            Site { levels: Site::new("shop", &["light", "full"]).levels, ..best_effort(delay(5, None)) };
        assert_eq!(only(plant(), two).verdict(), Feasibility::Unverified);
        let row = only(Plant { costs: None, ..plant() }, site("shop", 50.0, delay(5, None)));
        assert_eq!((row.verdict(), row.service_seconds), (Feasibility::Unverified, None));
        let found = Some(WorkerBounds { least: 1, most: 64 });
        let row = only(Plant { find_workers: found, ..plant() }, site("shop", 50.0, delay(5, None)));
        assert_eq!(row.verdict(), Feasibility::Unverified);
    }

    /// The quota of a delay comes before the contract, but not before a request that is in service: 45/s of 10 ms keep the only
    /// worker busy for 0.45 of the time, so a request waits 4.5 ms for it.
    #[test]
    fn a_delay_without_a_rate_waits_for_contracts_in_service() {
        let beside = |ms, percentile| {
            let shop = Site { guarantee: None, ..site("shop", 1.0, delay(ms, percentile)) };
            planned(plant(), vec![site("firm", 45.0, None), shop]).delays.remove(0)
        };
        assert_eq!(beside(15, None).verdict(), Feasibility::Unverified);
        let row = beside(14, None);
        assert_eq!((row.verdict(), row.rate, row.fitting_rate), (Feasibility::Exceeds, None, None));
        near(row.least_seconds, 0.0145);
        assert_eq!(beside(14, Some(90.0)).verdict(), Feasibility::Unverified);
    }

    #[test]
    fn a_delay_yields_to_a_higher_priority_whose_rate_nothing_bounds() {
        let class = |name, priority| Class { priority, ..Class::new(name, Condition::default()) };
        let row = |others: Vec<Site>, contract: Option<Guarantee>| {
            let gold = Class { delay: delay(50, None), ..class("gold", 2) };
            let shop = Site { classes: vec![gold], guarantee: contract, ..Site::new("shop", &["full"]) };
            planned(plant(), others.into_iter().chain([shop]).collect()).delays.remove(0)
        };
        let other =
            |priority| Site { classes: vec![class("first", priority)], ..Site::new("blog", &["full"]) };
        assert!(row(vec![other(1)], None).yields);
        assert!(!row(vec![other(2)], None).yields, "among equals the delay comes first");
        assert!(!row(vec![], None).yields, "`default` is the last");
        let default_first = Site { default_priority: 1, ..other(9) };
        assert!(row(vec![default_first], None).yields);
        let firm = Guarantee::new(10.0, 1e6);
        assert!(!row(vec![Site { guarantee: Some(firm), ..other(1) }], None).yields, "its quota comes first");
        assert!(!row(vec![other(1)], Some(firm)).yields);
    }
}
