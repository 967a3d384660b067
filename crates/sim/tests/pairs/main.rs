//! Every pair of promises on one server, beside best effort that brings the load.
//!
//! For each pair: declared in both orders, in one site and in two, with Poisson arrivals and with bursts, on a calm server
//! and at more than twice its capacity. `docs/pairs.md` is generated from the figures: `PLIMSOLL_BLESS=1 cargo test -p
//! plimsoll-sim --test pairs`.

mod page;
mod promise;
#[path = "../waits/mod.rs"]
mod waits;

use plimsoll_core::promises::{Mode, Site};
use plimsoll_sim::workload::Process;
use promise::{Bound, Promise};
use std::fmt;
use std::time::Duration;
use waits::{Answer, Flow, Heard, Scene};

/// Not one that a constant was chosen on.
const SEED: u64 = 7101;
/// The loops begin with nothing known (s).
const FROM: f64 = 30.0;
/// Requests per second of the site without promises: with both parties 0.6 of the capacity, or 2.3 times it.
const CALM: f64 = 60.0;
const OVERLOAD: f64 = 400.0;
const BURSTS: Process =
    Process::Modulated { ratio: 2.0, burst: Duration::from_secs(1), calm: Duration::from_secs(2) };

/// Two promises on one server, and what is around them.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// In the order of declaration.
    promises: [Promise; 2],
    two_sites: bool,
    bursts: bool,
    overloaded: bool,
    mode: Mode,
}

/// How one promise of a pair was kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    promise: Promise,
    beside: Promise,
    /// `None` where status says that the promise is infeasible.
    figure: Option<f64>,
    bound: Bound,
    pair: Pair,
}

impl Kept {
    fn holds(&self) -> bool {
        self.figure.is_none_or(|figure| self.bound.holds(figure))
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { promise, figure, bound, pair, .. } = self;
        let [first, second] = pair.promises.map(Promise::name);
        let sites = if pair.two_sites { "two sites" } else { "one site" };
        let arrivals = if pair.bursts { "bursts" } else { "Poisson" };
        let load = if pair.overloaded { "overload" } else { "calm" };
        write!(f, "{first} before {second}, {sites}, {arrivals}, {load}: ")?;
        write!(f, "{} {figure:?}, asked {} to {}", promise.name(), bound.least, bound.most)
    }
}

/// All scenes of all pairs.
fn pairs(mode: Mode) -> Vec<Pair> {
    let both = |first| Promise::ALL.into_iter().map(move |second| [first, second]);
    let promises = Promise::ALL.into_iter().flat_map(both);
    let around = promises.flat_map(|promises| (0..8_u8).map(move |bits| (promises, bits)));
    let pair = |(promises, bits): ([Promise; 2], u8)| Pair {
        promises,
        two_sites: bits & 1 > 0,
        bursts: bits & 2 > 0,
        overloaded: bits & 4 > 0,
        mode,
    };
    around.map(pair).collect()
}

fn site(name: &str) -> Site {
    Site { hosts: vec![format!("{name}.example")], ..Site::new(name, &["full"]) }
}

impl Pair {
    /// The number of the site of a party.
    fn place(&self, party: usize) -> usize {
        if self.two_sites { party } else { 0 }
    }

    /// The scene, and the numbers of the flows of each party.
    fn scene(&self) -> (Scene, [Vec<usize>; 2]) {
        let mut sites =
            if self.two_sites { vec![site("first"), site("second")] } else { vec![site("first")] };
        for (number, site) in sites.iter_mut().enumerate() {
            let own: Vec<Promise> =
                [0, 1].into_iter().filter(|n| self.place(*n) == number).map(|n| self.promises[n]).collect();
            Promise::shape_site(&own, site);
        }
        let mut flows: Vec<Flow> = Vec::new();
        let parties = [0, 1].map(|n| {
            let own = self.promises[n].flows(["a", "b"][n]);
            let numbers = (flows.len()..flows.len() + own.len()).collect();
            flows.extend(own.into_iter().map(|flow| flow.at_site(self.place(n))));
            numbers
        });
        let rest = if self.overloaded { OVERLOAD } else { CALM };
        flows.push(Flow::new("default", rest).at_site(sites.len()));
        sites.push(site("rest"));
        if self.bursts {
            flows.iter_mut().for_each(|flow| flow.process = BURSTS);
        }
        let seconds = self.promises.map(Promise::seconds).into_iter().fold(0.0, f64::max);
        let mut scene = Scene::new(2, Duration::from_millis(10), flows, seconds, SEED);
        scene.plant.set_point = 0.85;
        scene.site = sites.remove(0);
        scene.more_sites = sites;
        scene.mode = self.mode;
        (scene, parties)
    }

    fn run(&self) -> [Kept; 2] {
        let (scene, parties) = self.scene();
        let heard = scene.run();
        let sites = [&scene.site, &scene.more_sites[0]];
        [0, 1].map(|n| {
            let promise = self.promises[n];
            let answers: Vec<Vec<Answer>> = parties[n].iter().map(|flow| of_flow(&heard, *flow)).collect();
            let levels = sites[self.place(n)].levels.len() as u8;
            let (figure, bound) = promise.kept(&answers, levels);
            let infeasible = self.mode == Mode::Control
                && parties[n].iter().any(|flow| is_infeasible(&heard, &scene.flows[*flow]));
            let figure = (!infeasible).then_some(figure);
            Kept { promise, beside: self.promises[1 - n], figure, bound, pair: *self }
        })
    }
}

fn of_flow(heard: &Heard, flow: usize) -> Vec<Answer> {
    heard.answers.iter().filter(|answer| answer.class == flow && answer.arrived >= FROM).copied().collect()
}

/// Whether status says so of the flow's class, at the end.
fn is_infeasible(heard: &Heard, flow: &Flow) -> bool {
    let classes = heard.status.iter().flat_map(|status| &status.classes);
    let mut own = classes.filter(|class| class.class == flow.class.name);
    own.any(|class| class.response.is_some_and(|response| response.infeasible))
}

/// Runs the pairs, half of them in another thread.
fn run_all(mode: Mode) -> Vec<Kept> {
    let pairs = pairs(mode);
    let (one, other) = pairs.split_at(pairs.len() / 2);
    let run = |pairs: &[Pair]| -> Vec<Kept> { pairs.iter().flat_map(Pair::run).collect() };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(other));
        let mut all = run(one);
        all.extend(other.join().expect("no scene panics"));
        all
    })
}

#[test]
fn every_promise_is_kept_beside_every_other() {
    let all = run_all(Mode::Control);
    page::is_current(&all);
    let broken: Vec<&Kept> = all.iter().filter(|kept| !kept.holds()).collect();
    broken.iter().for_each(|kept| println!("{kept}"));
    assert!(broken.is_empty(), "{} of {} promises are broken", broken.len(), all.len());
    // A ratio divides a queue. There is none on a calm server, nor for the site of a contract.
    for kept in all.iter().filter(|kept| kept.figure.is_none()) {
        let queues = kept.pair.overloaded && kept.pair.two_sites;
        assert!(kept.promise == Promise::Ratio && !queues, "infeasible: {kept}");
    }
}

#[test]
fn without_control_an_overload_breaks_every_promise() {
    let overloaded =
        pairs(Mode::Off).into_iter().filter(|pair| pair.overloaded && !pair.bursts && pair.two_sites);
    for kept in overloaded.flat_map(|pair| pair.run()) {
        assert!(!kept.holds(), "{kept}");
    }
}
