//! Every pair of promises where more is uneven than in the table of all pairs: see `case.rs`.
//!
//! Each case overloads the server as the table does. A pair is run in one order of declaration in one site with Poisson
//! arrivals, and in the other order in two sites with bursts; and each promise beside best effort on a calm server. A promise
//! is kept with each seed, or fails.

use crate::case::Case;
use crate::promise::Promise;
use crate::{Kept, Pair, each};
use plimsoll_core::promises::Mode;

/// None of those that a constant was chosen on.
const SEEDS: [u64; 2] = [7121, 7122];
/// How busy an overloaded server is at least: no promise is kept by leaving it idle. Between bursts less than its line comes.
const BUSY: f64 = 0.75;

/// How a promise was kept in a case: the figure nearest to the bound, of all pairs and seeds.
pub(crate) struct InCase {
    pub(crate) case: Case,
    pub(crate) promise: Promise,
    pub(crate) figure: Option<f64>,
}

/// The pairs of a case with a promise that is judged.
fn pairs(case: Case, mode: Mode) -> Vec<Pair> {
    let scene = |promises, two_sites, bursts, overloaded| Pair {
        promises,
        two_sites,
        bursts,
        overloaded,
        connections: 1,
        mode,
        case,
    };
    let mut pairs = Vec::new();
    for (place, first) in Promise::ALL.into_iter().enumerate() {
        for second in &Promise::ALL[place..] {
            let is_long = first == Promise::Ratio || *second == Promise::Ratio;
            if !is_long || *second == Promise::BestEffort {
                pairs.push(scene([first, *second], false, false, true));
                pairs.push(scene([*second, first], true, true, true));
            }
            // One long request holds half of a calm server, and its length is chance.
            if !is_long && *second == Promise::BestEffort && case != Case::HeavyTails {
                pairs.push(scene([first, *second], true, false, false));
            }
        }
    }
    pairs.retain(|pair| {
        let [one, other] = pair.promises;
        // A run with a ratio is twelve times as long.
        let judged = [case.judges(one, other), case.judges(other, one)];
        judged[0] && one == Promise::Ratio
            || judged[1] && other == Promise::Ratio
            || !pair.promises.contains(&Promise::Ratio) && (judged[0] || judged[1])
    });
    pairs
}

/// How the promises of a pair were kept: with each seed, or over all where a single request may take seconds.
fn kept(pair: &Pair) -> Vec<Kept> {
    let seeds = if pair.promises.contains(&Promise::Ratio) { &SEEDS[..1] } else { &SEEDS };
    let runs: Vec<[Kept; 2]> = seeds.iter().map(|seed| pair.run_with(*seed)).collect();
    if pair.case == Case::HeavyTails { Pair::mean(&runs).to_vec() } else { runs.concat() }
}

/// Each promise in each case.
pub(crate) fn figures() -> Vec<InCase> {
    let pairs: Vec<Pair> = Case::HARDER.into_iter().flat_map(|case| pairs(case, Mode::Control)).collect();
    let all: Vec<Kept> = each(&pairs, kept).into_iter().flatten().collect();
    let judged: Vec<&Kept> =
        all.iter().filter(|kept| kept.pair.case.judges(kept.promise, kept.beside)).collect();
    let broken: Vec<_> = judged.iter().filter(|kept| !kept.is_kept_by_one()).collect();
    broken.iter().for_each(|kept| println!("{kept}"));
    assert!(broken.is_empty(), "{} of {} promises are broken in harder cases", broken.len(), judged.len());
    for kept in judged.iter().filter(|kept| kept.pair.overloaded) {
        assert!(kept.used >= BUSY, "{kept}: {:.3} of the server used", kept.used);
    }
    let every = Case::HARDER.iter().flat_map(|case| Promise::ALL.map(|promise| (*case, promise)));
    every
        .map(|(case, promise)| {
            let own = judged.iter().filter(|kept| kept.pair.case == case && kept.promise == promise);
            let nearest = own.max_by(|a, b| a.strain().total_cmp(&b.strain()));
            InCase { case, promise, figure: nearest.map(|kept| kept.figure) }
        })
        .collect()
}

#[test]
fn without_control_harder_cases_break_every_promise() {
    let is_one = |pair: &Pair| pair.overloaded && pair.two_sites && pair.promises[0] == pair.promises[1];
    let pairs: Vec<Pair> =
        Case::HARDER.into_iter().flat_map(|case| pairs(case, Mode::Off)).filter(is_one).collect();
    assert!(pairs.len() > 4 * Case::HARDER.len());
    for kept in each(&pairs, |pair| pair.run_with(SEEDS[0])).into_iter().flatten() {
        assert!(!kept.is_kept_by_one(), "{kept}");
    }
}
