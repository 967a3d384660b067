//! Every promise beside a site that sends three times what its contract is for, in requests or in bytes, on an overloaded
//! server.
//!
//! The site keeps what its contract is for, and what it sends beyond that breaks no promise of another site. A deadline is
//! judged over the requests that are admitted: what a site sends beyond a contract that shares the excess is served before
//! sites without a contract, so some of theirs are refused.

use crate::promise::{Bound, Promise};
use crate::waits::{Flow, PAGE};
use crate::{BURSTS, OVERLOAD, SEEDS, SIZES, each, of_flow, server, site};
use plimsoll_core::promises::Guarantee;

/// What the contract is for, and what comes (1/s).
const CONTRACT: f64 = 30.0;
const OFFERED: f64 = 3.0 * CONTRACT;
const SECONDS: f64 = 60.0;
const FROM: f64 = 20.0;
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
    /// The figure nearest to the bound.
    pub(crate) figure: f64,
    pub(crate) bound: Bound,
    /// The least that the exceeded contract got.
    pub(crate) of_contract: f64,
}

/// For each promise but a ratio, which needs a longer run and is judged in all pairs.
pub(crate) fn figures() -> Vec<Beside> {
    let promises: Vec<Promise> = Promise::ALL.into_iter().filter(|one| *one != Promise::Ratio).collect();
    let both = promises
        .iter()
        .flat_map(|promise| [Exceeds::Requests, Exceeds::Bytes].map(|exceeds| (*promise, exceeds)));
    let all = each(&both.collect::<Vec<_>>(), |(promise, exceeds)| nearest(*promise, *exceeds));
    for Beside { promise, exceeds, figure, bound, of_contract } in &all {
        let name = promise.name();
        assert!(bound.holds(*figure), "{name} beside a contract exceeded in {exceeds:?}: {figure}");
        assert!(*of_contract >= OF_CONTRACT, "the contract in {exceeds:?} beside {name}: {of_contract}");
    }
    all
}

/// Both orders of declaration, Poisson arrivals and bursts.
fn nearest(promise: Promise, exceeds: Exceeds) -> Beside {
    let mut nearest =
        Beside { promise, exceeds, figure: f64::NAN, bound: promise.bound(), of_contract: f64::MAX };
    for (first, bursts) in [(false, false), (false, true), (true, false), (true, true)] {
        let runs = SEEDS.map(|seed| run((promise, exceeds), first, bursts, seed));
        let mean = |n: usize| runs.iter().map(|run| run[n]).sum::<f64>() / runs.len() as f64;
        let [figure, of_contract] = [0, 1].map(mean);
        let strain = |figure| nearest.bound.strain(figure);
        if nearest.figure.is_nan() || strain(figure) > strain(nearest.figure) {
            nearest.figure = figure;
        }
        nearest.of_contract = nearest.of_contract.min(of_contract);
    }
    nearest
}

/// The promise's figure and what the contract got; `first`: the contract is declared first.
fn run((promise, exceeds): (Promise, Exceeds), first: bool, bursts: bool, seed: u64) -> [f64; 2] {
    let mut flows = promise.flows("a");
    let (own, contract) = (usize::from(first), usize::from(!first));
    flows.iter_mut().for_each(|flow| flow.site = own);
    let of_promise = flows.len();
    let flow = Flow::new("exceeded", OFFERED).at_site(contract);
    flows.push(if exceeds == Exceeds::Bytes { Flow { bytes_law: SIZES, ..flow } } else { flow });
    flows.push(Flow::new("default", OVERLOAD).at_site(2));
    if bursts {
        flows.iter_mut().for_each(|flow| flow.process = BURSTS);
    }
    let mut sites = [site("first"), site("second")];
    Promise::shape_site(&[promise], &mut sites[own]);
    sites[contract].guarantee = Some(exceeds.contract());
    let levels = sites[own].levels.len() as u8;
    let mut scene = server(flows, SECONDS, seed);
    let [one, other] = sites;
    scene.site = one;
    scene.more_sites = vec![other, site("rest")];
    let heard = scene.run();
    let mut answers: Vec<_> = (0..of_promise).map(|flow| of_flow(&heard, flow, FROM)).collect();
    if promise == Promise::Deadline {
        answers.iter_mut().for_each(|answers| answers.retain(|one| one.completed || one.response() > 0.0));
    }
    let (figure, _) = promise.kept(&answers, levels);
    let contract = of_flow(&heard, of_promise, FROM);
    let served = contract.iter().filter(|one| one.completed && one.level == 1 && one.response() <= 1.0);
    [figure, served.count() as f64 / (SECONDS - FROM) / CONTRACT]
}
