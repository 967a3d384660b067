//! Every promise beside a site that sends three times what its contract is for, in requests or in bytes, on an overloaded
//! server.
//!
//! The site keeps what its contract is for, and what it sends beyond that breaks no promise of another site. A deadline is
//! judged over the requests that are admitted: what a site sends beyond a contract that shares the excess is served before
//! sites without a contract, so some of theirs are refused.

use crate::promise::{Bound, Promise};
use crate::waits::{Flow, PAGE, Scene};
use crate::{
    BURSTS, OVERLOAD, SEEDS, SIZES, each, is_admitted, is_infeasible, of_flow, server, site, strict,
};
use plimsoll_core::promises::Guarantee;

/// What the contract is for, and what comes (1/s).
const CONTRACT: f64 = 30.0;
const OFFERED: f64 = 3.0 * CONTRACT;
/// Answers at full quality within a second, over the contract.
const OF_CONTRACT: f64 = 0.99;

/// What is exceeded. A contract for bytes is for as many requests as come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Exceeds {
    Requests,
    Bytes,
}

impl Exceeds {
    fn contract(self) -> Guarantee {
        match self {
            Exceeds::Requests => {
                Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(CONTRACT, 1.0) }
            }
            Exceeds::Bytes => Guarantee::new(OFFERED, PAGE * CONTRACT),
        }
    }
}

/// How a promise was kept beside the exceeded contract.
pub(crate) struct Beside {
    pub(crate) promise: Promise,
    pub(crate) exceeds: Exceeds,
    /// The figure nearest to the bound, of the runs that are feasible.
    pub(crate) figure: Option<f64>,
    /// How many of the four are not.
    pub(crate) infeasible: usize,
    pub(crate) bound: Bound,
    /// The least that the exceeded contract got.
    pub(crate) of_contract: f64,
}

/// For each promise.
pub(crate) fn figures() -> Vec<Beside> {
    let both = Promise::ALL
        .iter()
        .flat_map(|promise| [Exceeds::Requests, Exceeds::Bytes].map(|exceeds| (*promise, exceeds)));
    let all = each(&both.collect::<Vec<_>>(), |(promise, exceeds)| nearest(*promise, *exceeds));
    for Beside { promise, exceeds, figure, bound, of_contract, .. } in &all {
        let name = promise.name();
        let holds = figure.is_none_or(|figure| bound.holds(figure));
        assert!(holds, "{name} beside a contract exceeded in {exceeds:?}: {figure:?}");
        assert!(*of_contract >= OF_CONTRACT, "the contract in {exceeds:?} beside {name}: {of_contract}");
    }
    all
}

/// Both orders of declaration, Poisson arrivals and bursts.
fn nearest(promise: Promise, exceeds: Exceeds) -> Beside {
    let bound = promise.bound();
    let mut nearest = Beside { promise, exceeds, figure: None, infeasible: 0, bound, of_contract: f64::MAX };
    let seeds = if promise == Promise::Ratio { &SEEDS[..1] } else { &SEEDS };
    for (first, bursts) in [(false, false), (false, true), (true, false), (true, true)] {
        let around = Around { promise, exceeds, first, bursts };
        let runs: Vec<Run> = seeds.iter().map(|seed| around.run(*seed)).collect();
        let mean = |of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (figure, of_contract) = (mean(|run| run.figure), mean(|run| run.of_contract));
        nearest.of_contract = nearest.of_contract.min(of_contract);
        // Only a ratio may be out of reach of what comes.
        if promise == Promise::Ratio && runs.iter().any(|run| run.infeasible) {
            nearest.infeasible += 1;
            assert!(strict::is_out_of_reach(around.scene(seeds[0]), figure), "{around:?}: {figure}");
        } else if nearest.figure.is_none_or(|known| bound.strain(figure) > bound.strain(known)) {
            nearest.figure = Some(figure);
        }
    }
    nearest
}

/// What is around a promise.
#[derive(Clone, Copy, Debug)]
struct Around {
    promise: Promise,
    exceeds: Exceeds,
    /// The contract is declared first.
    first: bool,
    bursts: bool,
}

/// The promise's figure, whether status calls it infeasible, and what the contract got.
struct Run {
    figure: f64,
    infeasible: bool,
    of_contract: f64,
}

impl Around {
    /// The flows of the promise come first, then the one of the contract.
    fn scene(self, seed: u64) -> Scene {
        let Around { promise, exceeds, first, bursts } = self;
        let mut flows = promise.flows("a");
        let (own, contract) = (usize::from(first), usize::from(!first));
        flows.iter_mut().for_each(|flow| flow.site = own);
        let flow = Flow::new("exceeded", OFFERED).at_site(contract);
        flows.push(if exceeds == Exceeds::Bytes { Flow { bytes_law: SIZES, ..flow } } else { flow });
        flows.push(Flow::new("default", OVERLOAD).at_site(2));
        if bursts {
            flows.iter_mut().for_each(|flow| flow.process = BURSTS);
        }
        let mut sites = [site("first"), site("second")];
        Promise::shape_site(&[promise], &mut sites[own]);
        sites[contract].guarantee = Some(exceeds.contract());
        let mut scene = server(flows, promise.seconds(), seed);
        let [one, other] = sites;
        scene.site = one;
        scene.more_sites = vec![other, site("rest")];
        scene
    }

    fn run(self, seed: u64) -> Run {
        let promise = self.promise;
        let (scene, from) = (self.scene(seed), promise.from());
        let levels = if self.first { &scene.more_sites[0] } else { &scene.site }.levels.len() as u8;
        let heard = scene.run();
        let of_promise = scene.flows.len() - 2;
        let mut answers: Vec<_> = (0..of_promise).map(|flow| of_flow(&heard, flow, from)).collect();
        if promise == Promise::Deadline {
            answers.iter_mut().for_each(|answers| answers.retain(is_admitted));
        }
        let (figure, _) = promise.kept(&answers, levels);
        let infeasible = scene.flows[..of_promise].iter().any(|flow| is_infeasible(&heard, flow));
        let contract = of_flow(&heard, of_promise, from);
        let served = contract.iter().filter(|one| one.completed && one.level == 1 && one.response() <= 1.0);
        let of_contract = served.count() as f64 / (promise.seconds() - from) / CONTRACT;
        Run { figure, infeasible, of_contract }
    }
}
