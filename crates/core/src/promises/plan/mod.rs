//! The capacity plan: whether all contracts together can be kept (UC 5.1).
//!
//! *In*: promises, and the costs of sites as far as they are known. *Out*: a [`PlantPlan`] with a verdict for each plant.
//!
//! A contract of R requests and W bytes per second takes `U* = a R + b W` of its plant. Where the gateway shares the plant's
//! machine, a rejection costs it c too: a *reserve* of c times the promised rates is set aside, so that as many requests again
//! as are promised can be rejected without touching a contract. The sum must not exceed a *ceiling*: the operator's; else the
//! load line, at most 0.95, since at a utilization of 1 a queue has no end, and token buckets let up to a twentieth more in
//! than was promised; and where deadlines are promised at most 0.58, which is `1 / (1 + sqrt(1/2))`, the bound under which one
//! preemptive processor misses none. That bound is about the *instantaneous synthetic* utilization, the sum of C_i / D_i over
//! current requests; for `a R + b W` it is only a planning rule.
//!
//! At a plant with a second resource (UC eq. 9) a contract takes the more used of the two, `U* = max(a R + b W, b' W)`, and
//! the link's share, the sum of `b' W`, must fit under the same ceiling. The bytes of a contract without a bandwidth of its
//! own are those of its rate, once the size of its responses is known.
//!
//! Delays that were promised beside a contract are planned in `delays.rs`.
//!
//! Before a and b are known a plan is *unverified*, not refused; and so is the plan of a contract for a rate alone, if bytes
//! cost something and their number is not known. While the engine runs, the same table with learned costs warns of promises
//! that can no longer be kept.

use crate::promises::{Costs, Guarantee, Plant, Promises, Site};
use alloc::{string::String, vec::Vec};

mod delays;

pub use delays::DelayRow;

/// 1 / (1 + sqrt(1/2)): see the module's text.
pub const DEADLINE_CEILING: f64 = 0.585_786_437_626_905;

/// The most that contracts may take together under a load line that leaves no room: see the module's text.
pub const HIGHEST_CEILING: f64 = 0.95;

/// Contracts that take all of a ceiling fit, though the sum of their parts may be above it by rounding.
const ROUNDING: f64 = 1e-9;

/// The known figures of a site's requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The server's time for a request and for a byte: a, b and c.
    pub costs: Costs,
    /// Mean body bytes of a full response, for a contract without a bandwidth; 0 if not known.
    pub full_bytes: f64,
}

/// The reason for the ceiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ceiling {
    /// The load line, because nothing else was configured.
    #[default]
    LoadLine,
    /// The load line leaves no room for chance, so the ceiling is [`HIGHEST_CEILING`].
    Chance,
    /// The operator's own ceiling.
    Operator,
    /// The ceiling of deadlines, [`DEADLINE_CEILING`].
    Deadlines,
}

/// Whether the contracts fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feasibility {
    /// The contracts fit, or there are none.
    #[default]
    Fits,
    /// The costs of some contracts are not known; the others fit.
    Unverified,
    /// The contracts do not fit.
    Exceeds,
}

impl Feasibility {
    /// The text for status and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Feasibility::Fits => "fits",
            Feasibility::Unverified => "unverified",
            Feasibility::Exceeds => "exceeds",
        }
    }
}

/// The plan of one plant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlantPlan {
    /// The plant's name.
    pub plant: String,
    /// The bound on `sum`, as a part of the plant.
    pub ceiling: f64,
    /// The reason for the bound.
    pub ceiling_from: Ceiling,
    /// One row for each site with a contract at the plant.
    pub rows: Vec<ContractRow>,
    /// The part set aside for rejections.
    pub reserve: f64,
    /// U* of all contracts whose costs are known, and the reserve; or the link's share, if that is more.
    pub sum: f64,
    /// Whether the contracts fit. Each delay has a verdict in its own row.
    pub verdict: Feasibility,
    /// The delays that were promised at the plant.
    pub delays: Vec<DelayRow>,
}

/// The utilization that one site's contract takes of its plant.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractRow {
    /// The name of the site.
    pub site: String,
    /// The rate and the bandwidth that were promised.
    pub guarantee: Guarantee,
    /// U*_i; `None` while costs are not known.
    pub utilization: Option<f64>,
}

impl PlantPlan {
    /// The part of every contract that would fit: 1 if all of it does.
    pub fn fitting_part(&self) -> f64 {
        if self.sum > self.ceiling + ROUNDING { self.ceiling / self.sum } else { 1.0 }
    }
}

/// W of a contract: as promised, or that of its rate, if the size of its responses is known.
fn bytes_per_second(guarantee: &Guarantee, known: Option<&Known>) -> Option<f64> {
    let size = known.map(|known| known.full_bytes).filter(|size| *size > 0.0);
    guarantee.bandwidth_bytes_per_second.or(size.map(|size| guarantee.rate * size))
}

/// a R + b W.
fn work(guarantee: &Guarantee, known: &Known) -> f64 {
    let bandwidth = bytes_per_second(guarantee, Some(known)).unwrap_or(0.0);
    known.costs.per_request_seconds * guarantee.rate + known.costs.per_byte_seconds * bandwidth
}

/// b' W, if it is known; 0 at a plant without a link.
fn link_part(plant: &Plant, guarantee: &Guarantee, known: Option<&Known>) -> Option<f64> {
    let Some(limit) = plant.bandwidth_bytes_per_second else { return Some(0.0) };
    Some(bytes_per_second(guarantee, known)? / limit)
}

/// U* of a contract, as far as it is known.
pub fn utilization(plant: &Plant, guarantee: &Guarantee, known: &Known) -> f64 {
    let [work, link] = utilization_by_resource(plant, guarantee, known);
    work.max(link)
}

/// What a contract takes of the workers and of the link, as far as it is known.
pub(crate) fn utilization_by_resource(plant: &Plant, guarantee: &Guarantee, known: &Known) -> [f64; 2] {
    [work(guarantee, known), link_part(plant, guarantee, Some(known)).unwrap_or(0.0)]
}

/// The costs of a site that are promised.
pub fn promised_costs(promises: &Promises, site: &Site) -> Option<Known> {
    let costs = site.costs.or(promises.plants[site.plant].costs)?;
    Some(Known { costs, full_bytes: 0.0 })
}

/// The plans of all plants; `known` gives the costs of a site by its number.
pub fn plan(promises: &Promises, known: impl Fn(usize) -> Option<Known>) -> Vec<PlantPlan> {
    let plants = promises.plants.iter().enumerate();
    plants.map(|(number, plant)| plan_of(promises, (number, plant), &known)).collect()
}

fn plan_of(
    promises: &Promises,
    (number, plant): (usize, &Plant),
    known: &impl Fn(usize) -> Option<Known>,
) -> PlantPlan {
    let (ceiling, ceiling_from) = ceiling(promises, number, plant);
    let mut rows = Vec::new();
    let (mut reserve, mut sum, mut link) = (0.0, 0.0, 0.0);
    for (index, site) in promises.sites.iter().enumerate().filter(|(_, site)| site.plant == number) {
        let Some(guarantee) = site.guarantee else { continue };
        let known = known(index);
        if let Some(known) = known.filter(|_| plant.same_host) {
            reserve += known.costs.per_rejection_seconds * guarantee.rate;
        }
        // The link's part of a promised bandwidth is known without costs.
        let on_link = link_part(plant, &guarantee, known.as_ref());
        sum += known.map_or(0.0, |known| work(&guarantee, &known));
        link += on_link.unwrap_or(0.0);
        let sized = known.filter(|known| {
            known.costs.per_byte_seconds == 0.0 || bytes_per_second(&guarantee, Some(known)).is_some()
        });
        let utilization = sized.zip(on_link).map(|(known, _)| utilization(plant, &guarantee, &known));
        rows.push(ContractRow { site: site.name.clone(), guarantee, utilization });
    }
    let sum: f64 = (sum + reserve).max(link);
    let verdict = if sum > ceiling + ROUNDING {
        Feasibility::Exceeds
    } else if rows.iter().any(|row| row.utilization.is_none()) {
        Feasibility::Unverified
    } else {
        Feasibility::Fits
    };
    let delays = delays::rows(promises, (number, plant), known);
    PlantPlan { plant: plant.name.clone(), ceiling, ceiling_from, rows, reserve, sum, verdict, delays }
}

fn ceiling(promises: &Promises, number: usize, plant: &Plant) -> (f64, Ceiling) {
    let has_deadlines = || promises.sites.iter().any(|site| site.plant == number && site.has_deadlines());
    match plant.ceiling {
        Some(ceiling) => (ceiling, Ceiling::Operator),
        None if plant.set_point > DEADLINE_CEILING && has_deadlines() => {
            (DEADLINE_CEILING, Ceiling::Deadlines)
        }
        None if plant.set_point > HIGHEST_CEILING => (HIGHEST_CEILING, Ceiling::Chance),
        None => (plant.set_point, Ceiling::LoadLine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use alloc::vec;

    /// UC 7.2's server: 1.604 ms a request and 0.063 ms a KB, 1.1 ms a rejection.
    const COSTS: Costs =
        Costs { per_request_seconds: 1.604e-3, per_byte_seconds: 0.063e-6, per_rejection_seconds: 1.1e-3 };

    const V2: Guarantee =
        Guarantee { rate: 100.0, bandwidth_bytes_per_second: Some(27.0 * 125e3), burst: Guarantee::BURST };

    fn site(name: &str, rate: f64, megabits: f64) -> Site {
        let guarantee = Some(Guarantee::new(rate, megabits * 125e3));
        Site { guarantee, ..Site::new(name, &["light", "full"]) }
    }

    /// UC 7.8: V1 with 100/s and 13 Mb/s, V2 with 100/s and 27 Mb/s.
    fn promises() -> Promises {
        let plant = Plant { costs: Some(COSTS), ..Plant::new("origin", 1) };
        let sites = vec![site("v1", 100.0, 13.0), site("v2", 100.0, 27.0)];
        Promises { sites, ..Promises::of(plant, Site::new("unused", &["full"])) }
    }

    fn planned(promises: &Promises) -> PlantPlan {
        plan(promises, |number| promised_costs(promises, &promises.sites[number])).remove(0)
    }

    #[test]
    fn the_paper_s_contracts_fit() {
        let plan = planned(&promises());
        let wanted = [0.1604 + 0.007_875 * 13.0, 0.1604 + 0.007_875 * 27.0];
        for (row, wanted) in plan.rows.iter().zip(wanted) {
            assert!((row.utilization.unwrap() - wanted).abs() < 1e-6, "{row:?}");
        }
        assert!((plan.sum - 0.6358).abs() < 1e-6 && plan.verdict == Feasibility::Fits, "{plan:?}");
    }

    #[test]
    fn deadlines_lower_the_ceiling_and_say_what_would_fit() {
        let mut promises = promises();
        promises.sites[0].deadline = Some(Duration::from_millis(500));
        let plan = planned(&promises);
        assert_eq!((plan.verdict, plan.ceiling_from), (Feasibility::Exceeds, Ceiling::Deadlines));
        assert!((plan.sum * plan.fitting_part() - DEADLINE_CEILING).abs() < 1e-12);
        // An operator's ceiling holds, whether it is stricter or not.
        for ceiling in [0.4, 0.9] {
            promises.plants[0].ceiling = Some(ceiling);
            let plan = planned(&promises);
            assert_eq!((plan.ceiling, plan.ceiling_from), (ceiling, Ceiling::Operator));
        }
    }

    /// 200/s of 5 ms are all of one worker, and its queue would have no end.
    #[test]
    fn contracts_never_take_all_of_a_plant() {
        let costs = Costs { per_request_seconds: 5e-3, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 };
        let plant = Plant { costs: Some(costs), set_point: 1.0, ..Plant::new("app", 1) };
        let planned_with = |rate, ceiling| {
            let site = Site { guarantee: Some(Guarantee::new(rate, 1e9)), ..Site::new("shop", &["full"]) };
            planned(&Promises::of(Plant { ceiling, ..plant.clone() }, site))
        };
        let all = planned_with(200.0, None);
        assert_eq!(
            (all.verdict, all.ceiling, all.ceiling_from),
            (Feasibility::Exceeds, 0.95, Ceiling::Chance)
        );
        assert_eq!(planned_with(189.0, None).verdict, Feasibility::Fits);
        assert_eq!(planned_with(197.0, Some(0.99)).verdict, Feasibility::Fits, "the operator's word");
    }

    /// 0.1 + 0.2 + 0.3 + 0.25 is above 0.85 in binary.
    #[test]
    fn contracts_that_take_exactly_the_ceiling_fit() {
        let costs = Costs { per_request_seconds: 0.01, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 };
        let plant = Plant { costs: Some(costs), ..Plant::new("app", 1) };
        let sites = [10.0, 20.0, 30.0, 25.0].map(|rate| site("shop", rate, 1.0)).into();
        let promises = Promises { sites, ..Promises::of(plant, Site::new("unused", &["full"])) };
        let plan = planned(&promises);
        assert!(plan.sum > plan.ceiling && plan.sum - plan.ceiling < 1e-12, "{plan:?}");
        assert_eq!((plan.verdict, plan.fitting_part()), (Feasibility::Fits, 1.0));
    }

    #[test]
    fn rejections_on_the_same_host_have_a_reserve() {
        let mut promises = promises();
        promises.plants[0].same_host = true;
        let plan = planned(&promises);
        assert!((plan.reserve - 0.22).abs() < 1e-9, "{plan:?}");
        assert_eq!(plan.verdict, Feasibility::Exceeds);
    }

    #[test]
    fn a_rate_alone_is_unverified_where_bytes_cost_until_their_number_is_known() {
        let mut promises = promises();
        promises.sites.truncate(1);
        promises.sites[0].guarantee = Some(Guarantee { bandwidth_bytes_per_second: None, ..V2 });
        let plan = planned(&promises);
        assert_eq!((plan.verdict, plan.rows[0].utilization), (Feasibility::Unverified, None));
        let known = Known { costs: COSTS, full_bytes: 32_000.0 };
        let plan = super::plan(&promises, |_| Some(known)).remove(0);
        assert!((plan.sum - (0.1604 + 3.2e6 * 0.063e-6)).abs() < 1e-9, "{plan:?}");
        assert_eq!(plan.verdict, Feasibility::Fits);
        promises.plants[0].costs = Some(Costs { per_byte_seconds: 0.0, ..COSTS });
        assert_eq!(planned(&promises).verdict, Feasibility::Fits);
    }

    #[test]
    fn without_costs_a_plan_is_unverified_and_the_link_may_refuse_it_all_the_same() {
        let mut promises = promises();
        promises.plants[0].costs = None;
        let plan = planned(&promises);
        assert_eq!((plan.verdict, plan.fitting_part()), (Feasibility::Unverified, 1.0));
        promises.plants[0].bandwidth_bytes_per_second = Some(5e6);
        assert_eq!(planned(&promises).verdict, Feasibility::Exceeds);
        // Nor does a rate without a bandwidth fit or not, while nothing says how large its responses are.
        promises.plants[0].bandwidth_bytes_per_second = Some(5e7);
        promises.plants[0].costs = Some(COSTS);
        assert_eq!(planned(&promises).verdict, Feasibility::Fits);
        promises.sites[1].guarantee = Some(Guarantee { bandwidth_bytes_per_second: None, ..V2 });
        let plan = planned(&promises);
        assert_eq!((plan.verdict, plan.rows[1].utilization), (Feasibility::Unverified, None));
        promises.sites[1].guarantee = Some(V2);
        promises.plants[0].costs = None;
        // A site's own costs replace its plant's.
        promises.plants[0].bandwidth_bytes_per_second = None;
        promises.sites[0].costs = Some(COSTS);
        promises.sites[1].costs = Some(Costs { per_request_seconds: 8e-3, ..COSTS });
        assert_eq!(planned(&promises).verdict, Feasibility::Exceeds);
    }

    #[test]
    fn at_a_link_a_contract_takes_the_more_used_of_two_resources() {
        let mut promises = promises();
        promises.plants[0].bandwidth_bytes_per_second = Some(100.0 * 125e3);
        promises.sites[1].guarantee = Some(Guarantee { bandwidth_bytes_per_second: None, ..V2 });
        // V1: 0.263 of the server, 0.13 of the link. V2's responses have 64,000 bytes: 0.564 and 0.512.
        let known = |costs| move |_: usize| Some(Known { costs, full_bytes: 64e3 });
        let by_work = super::plan(&promises, known(COSTS)).remove(0);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-3;
        assert!(close(by_work.sum, 0.263 + 0.564), "{by_work:?}");
        // At a tenth of the costs the link is what they take.
        let tenth = Costs { per_request_seconds: 1.604e-4, per_byte_seconds: 0.063e-7, ..COSTS };
        let by_link = super::plan(&promises, known(tenth)).remove(0);
        let rows: Vec<f64> = by_link.rows.iter().map(|row| row.utilization.unwrap()).collect();
        assert!(close(rows[0], 0.13) && close(rows[1], 0.512) && close(by_link.sum, 0.642), "{by_link:?}");
        promises.plants[0].bandwidth_bytes_per_second = Some(60.0 * 125e3);
        assert_eq!(super::plan(&promises, known(tenth)).remove(0).verdict, Feasibility::Exceeds);
    }
}
