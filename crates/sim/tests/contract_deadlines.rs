//! A site with a contract and a deadline, beside another contract and a site that was promised nothing, on one server.
//!
//! Inside the contract every request is served in time, whatever others do. Beyond it a site that does not share the excess
//! is refused even on an idle server, and a site that shares it takes what is left. Everybody admitted is in time. Two sites
//! that want more than there is divide the server as their contracts are, whatever their deadlines and priorities.

use crate::waits::{Answer, Flow, Heard, Scene};
use plimsoll_core::promises::{Guarantee, Mode, Site};
use plimsoll_sim::workload::Process;
use std::time::Duration;

const SEEDS: [u64; 3] = [9_411, 9_412, 9_413];
/// Three workers that take 12 ms a request: 250 requests a second.
const SERVICE: Duration = Duration::from_millis(12);
const DEADLINE: Duration = Duration::from_millis(170);
/// Requests per second in the contract of each of the two sites.
const CONTRACT: f64 = 70.0;
const BURSTS: Process =
    Process::Modulated { ratio: 2.5, burst: Duration::from_secs(1), calm: Duration::from_secs(2) };
/// The loops begin with nothing known (s).
const FROM: f64 = 20.0;
const SECONDS: f64 = 140.0;

/// What is different between the runs.
#[derive(Clone, Copy, Debug)]
struct Around {
    /// Requests per second of the site with the deadline, of the other contract, and of the site without a promise.
    rates: [f64; 3],
    shares: bool,
    /// Whether the site with the deadline is declared first.
    first: bool,
    bursts: bool,
    mode: Mode,
    seed: u64,
}

fn site(name: &str, contract: Option<f64>) -> Site {
    let of = |rate| Guarantee { rate, bandwidth_bytes_per_second: None, burst: Guarantee::BURST };
    Site { hosts: vec![format!("{name}.example")], guarantee: contract.map(of), ..Site::new(name, &["full"]) }
}

impl Around {
    /// The runs of one load: both orders of declaration, Poisson's arrivals and bursts.
    fn all(rates: [f64; 3], shares: bool) -> impl Iterator<Item = Around> {
        SEEDS.into_iter().flat_map(move |seed| {
            (0..4_u8).map(move |bits| Around {
                rates,
                shares,
                first: bits & 1 > 0,
                bursts: bits & 2 > 0,
                mode: Mode::Control,
                seed,
            })
        })
    }

    /// The number of the flow of a party: the site with the deadline, the other contract, the rest.
    fn flow(&self, party: usize) -> usize {
        if self.first { party } else { 2 - party }
    }

    fn run(&self) -> Heard {
        let shop = Site { share_excess: self.shares, ..site("shop", Some(CONTRACT)) };
        let parties = [shop, site("other", Some(CONTRACT)), site("rest", None)];
        let mut flows: Vec<Flow> = ["shop", "other", "rest"]
            .iter()
            .zip(self.rates)
            .map(|(name, rate)| Flow::new(name, rate))
            .collect();
        flows[0].class.deadline = Some(DEADLINE);
        let mut sites = parties.to_vec();
        if !self.first {
            sites.reverse();
            flows.reverse();
        }
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.site = number;
            flow.process = if self.bursts { BURSTS } else { Process::Poisson };
        }
        let mut scene = Scene::new(3, SERVICE, flows, SECONDS, self.seed);
        scene.plant.set_point = 0.85;
        scene.site = sites.remove(0);
        scene.more_sites = sites;
        scene.mode = self.mode;
        scene.run()
    }

    fn of<'a>(&self, heard: &'a Heard, party: usize) -> Vec<&'a Answer> {
        let flow = self.flow(party);
        heard.answers.iter().filter(|answer| answer.class == flow && answer.arrived >= FROM).collect()
    }

    /// m of the site with the deadline, as status has it at the end.
    fn service_level(&self, heard: &Heard) -> f64 {
        let status = heard.status.as_ref().expect("the engine ran");
        status.classes.iter().find(|class| class.class == "shop").expect("it is there").service_level
    }
}

fn in_time(answer: &Answer) -> bool {
    answer.completed && answer.response() <= DEADLINE.as_secs_f64()
}

fn share(answers: &[&Answer], holds: impl Fn(&Answer) -> bool) -> f64 {
    answers.iter().filter(|answer| holds(answer)).count() as f64 / answers.len() as f64
}

/// Requests per second that are answered.
fn served(answers: &[&Answer]) -> f64 {
    answers.iter().filter(|answer| answer.completed).count() as f64 / (SECONDS - FROM)
}

/// The share of admitted requests that were late: answered too late, or dropped after waiting.
fn late(answers: &[&Answer]) -> f64 {
    let admitted: Vec<&Answer> =
        answers.iter().copied().filter(|answer| answer.completed || answer.response() > 0.0).collect();
    1.0 - share(&admitted, in_time)
}

#[test]
fn inside_the_contract_all_are_in_time_whatever_others_bring() {
    for around in Around::all([45.0, 45.0, 600.0], false) {
        let heard = around.run();
        let (shop, other) = (around.of(&heard, 0), around.of(&heard, 1));
        let (own, beside) = (share(&shop, in_time), share(&other, |answer| answer.completed));
        println!("{around:?}: in time {own:.4}, the other contract {beside:.4}");
        assert!(own >= 0.99 && beside >= 0.99, "{around:?}: {own}, {beside}");
    }
    let twin = Around { mode: Mode::Off, ..Around::all([45.0, 45.0, 600.0], false).next().expect("one") };
    assert!(share(&twin.of(&twin.run(), 0), in_time) < 0.5, "the twin without control must fail");
}

/// The server has room for all of it: 0.8 of its capacity comes.
#[test]
fn who_does_not_share_is_held_to_its_contract_beside_a_deadline() {
    for around in Around::all([150.0, 40.0, 10.0], false) {
        let heard = around.run();
        let (shop, other) = (around.of(&heard, 0), around.of(&heard, 1));
        let (rate, late, beside) = (served(&shop), late(&shop), share(&other, |answer| answer.completed));
        println!("{around:?}: {rate:.1}/s of {CONTRACT}, late {late:.4}, the other contract {beside:.4}");
        // The level follows a burst one period late.
        let near = if around.bursts { 0.85..=1.1 } else { 0.95..=1.05 };
        assert!(near.contains(&(rate / CONTRACT)), "{around:?}: {rate}/s");
        assert!(late <= 0.01 && beside >= 0.99, "{around:?}: {late}, {beside}");
    }
    let twin = Around { shares: true, ..Around::all([150.0, 40.0, 10.0], false).next().expect("one") };
    let rate = served(&twin.of(&twin.run(), 0));
    assert!(rate > 1.9 * CONTRACT, "a site that shares takes what is idle: {rate}/s");
}

/// The site asks for more than the whole server, and so does the one without a promise.
#[test]
fn who_shares_takes_what_is_left_and_no_contract_loses() {
    for around in Around::all([300.0, 45.0, 300.0], true) {
        let heard = around.run();
        let (shop, other) = (around.of(&heard, 0), around.of(&heard, 1));
        let (rate, late, beside) = (served(&shop), late(&shop), share(&other, |answer| answer.completed));
        println!("{around:?}: {rate:.1}/s of {CONTRACT}, late {late:.4}, the other contract {beside:.4}");
        assert!((2.5..=3.1).contains(&(rate / CONTRACT)), "{around:?}: {rate}/s");
        assert!((0.0005..=0.007).contains(&late) && beside >= 0.999, "{around:?}: {late}, {beside}");
    }
    let twin = || Around::all([300.0, 45.0, 300.0], true).next().expect("one");
    let off = Around { mode: Mode::Off, ..twin() };
    let late = late(&off.of(&off.run(), 0));
    assert!(late > 0.9, "the twin without control: {late}");
    let alone = Around { shares: false, ..twin() };
    let rate = served(&alone.of(&alone.run(), 0));
    assert!(rate < 1.1 * CONTRACT, "a site that does not share: {rate}/s");
}

/// A site whose requests no level refuses has all of them at its one level, and status says so.
#[test]
fn a_deadline_that_no_level_enforces_shows_no_rejections_in_status() {
    for around in Around::all([300.0, 45.0, 300.0], true).take(2) {
        let m = around.service_level(&around.run());
        assert_eq!(m, 1.0, "{around:?}");
    }
    for around in Around::all([150.0, 40.0, 10.0], false).take(2) {
        let m = around.service_level(&around.run());
        assert!((0.1..0.9).contains(&m), "{around:?}: {m}");
    }
}

/// The part of its contract that a site has which sends a little more, beside a site with a deadline that brings this part of
/// the capacity, once the loops have had minutes to be wrong. No level moves what that site brings, so it is above the line
/// whatever the contract takes.
fn of_contract(beyond: f64, due: f64, shares: bool, mode: Mode) -> f64 {
    let mut flows = vec![
        Flow::new("shop", beyond * CONTRACT),
        Flow::new("due", due * 3.0 / SERVICE.as_secs_f64()).at_site(1),
    ];
    flows[1].class.deadline = Some(DEADLINE);
    let mut scene = Scene::new(3, SERVICE, flows, 300.0, 9_421);
    scene.plant.set_point = 0.85;
    scene.site = Site { share_excess: shares, ..site("shop", Some(CONTRACT)) };
    scene.more_sites = vec![site("due", None)];
    scene.mode = mode;
    let heard = scene.run();
    let own = heard.answers.iter().filter(|answer| answer.class == 0 && answer.arrived >= 120.0);
    own.filter(|answer| answer.completed && answer.response() <= 1.0).count() as f64 / 180.0 / CONTRACT
}

#[test]
fn a_contract_is_kept_for_minutes_beside_a_deadline_whose_load_no_level_moves() {
    for (beyond, due) in [(1.1, 0.55), (1.1, 0.9), (1.4, 0.75), (3.0, 0.9)] {
        for shares in [false, true] {
            let kept = of_contract(beyond, due, shares, Mode::Control);
            println!("{beyond} of the contract beside {due}, shares {shares}: {kept:.3}");
            assert!(kept >= 0.985, "{beyond} beside {due}, shares {shares}: {kept}");
            assert!(shares || kept <= 1.03, "{beyond} beside {due}: {kept}");
        }
    }
    let twin = of_contract(1.1, 0.9, false, Mode::Off);
    assert!(twin < 0.5, "the twin without control: {twin}");
}

/// One of two sites with contracts, with nobody else beside them.
#[derive(Clone, Copy, Debug)]
struct Party {
    contract: f64,
    /// Requests per second, all the time or all within the first 0.3 s of each two.
    rate: f64,
    in_bursts: bool,
    deadline: Duration,
    priority: u8,
}

/// What became of the requests of a site.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// Requests per second that were in time.
    in_time: f64,
    /// The part of those admitted that was late, and of all that was refused.
    late: f64,
    refused: f64,
}

const TURN_SEEDS: [u64; 3] = [77_011, 77_012, 77_013];
const TURNS_SECONDS: f64 = 120.0;

impl Party {
    fn new(contract: f64, rate: f64, deadline_ms: u64) -> Self {
        let deadline = Duration::from_millis(deadline_ms);
        Party { contract, rate, in_bursts: false, deadline, priority: 100 }
    }

    fn flow(&self, name: &str) -> Flow {
        let mut flow = Flow::new(name, self.rate).priority(self.priority);
        if self.in_bursts {
            for start in (0..TURNS_SECONDS as u32).step_by(2).map(f64::from) {
                flow = flow.then(start + 1.0, self.rate / 0.15).then(start + 1.3, 0.0);
            }
            flow.rate[0].rate = 0.0;
        }
        flow.class.deadline = Some(self.deadline);
        flow
    }
}

/// At a server of 200/s: four workers, 20 ms a request.
fn take_turns(parties: [Party; 2], mode: Mode, seed: u64) -> [Outcome; 2] {
    let names = ["shop", "other"];
    let site = |number: usize| site(names[number], Some(parties[number].contract));
    let flows = vec![parties[0].flow(names[0]), parties[1].flow(names[1]).at_site(1)];
    let mut scene = Scene::new(4, Duration::from_millis(20), flows, TURNS_SECONDS, seed);
    scene.site = site(0);
    scene.more_sites = vec![site(1)];
    scene.mode = mode;
    let heard = scene.run();
    [0, 1].map(|number| {
        let limit = parties[number].deadline.as_secs_f64();
        let of: Vec<&Answer> =
            heard.answers.iter().filter(|answer| answer.class == number && answer.arrived >= FROM).collect();
        let admitted = of.iter().filter(|answer| answer.completed || answer.response() > 0.0).count() as f64;
        let in_time =
            of.iter().filter(|answer| answer.completed && answer.response() <= limit).count() as f64;
        Outcome {
            in_time: in_time / (TURNS_SECONDS - FROM),
            late: 1.0 - in_time / admitted,
            refused: 1.0 - admitted / of.len() as f64,
        }
    })
}

/// The mean of all seeds.
fn mean_of_turns(parties: [Party; 2], mode: Mode) -> [Outcome; 2] {
    let runs = TURN_SEEDS.map(|seed| take_turns(parties, mode, seed));
    [0, 1].map(|number| {
        let mean = |of: fn(&Outcome) -> f64| {
            runs.iter().map(|run| of(&run[number])).sum::<f64>() / runs.len() as f64
        };
        let outcome = Outcome {
            in_time: mean(|own| own.in_time),
            late: mean(|own| own.late),
            refused: mean(|own| own.refused),
        };
        println!("{:?}: {outcome:?}", parties[number]);
        outcome
    })
}

/// Contracts of 50 and 65/s that both ask for three times as much divide the server as the contracts are.
fn assert_divided(parties: [Party; 2]) {
    let [shop, other] = mean_of_turns(parties, Mode::Control);
    assert!((82.0..=92.0).contains(&shop.in_time) && shop.late <= 0.01, "{shop:?}");
    assert!((107.0..=118.0).contains(&other.in_time) && other.late <= 0.01, "{other:?}");
    let off = mean_of_turns(parties, Mode::Off);
    assert!(off.iter().all(|own| own.late > 0.5), "the twin without control: {off:?}");
}

#[test]
fn contracts_with_other_deadlines_have_their_parts_of_the_server_in_time() {
    assert_divided([Party::new(50.0, 150.0, 300), Party::new(65.0, 195.0, 1000)]);
}

#[test]
fn a_priority_of_one_site_takes_nothing_from_the_contract_of_another() {
    let shop = Party { priority: 1, ..Party::new(50.0, 150.0, 300) };
    assert_divided([shop, Party { priority: 255, ..Party::new(65.0, 195.0, 300) }]);
}

#[test]
fn a_burst_of_one_contract_refuses_nothing_of_another() {
    let other = Party { in_bursts: true, ..Party::new(65.0, 60.0, 200) };
    let parties = [Party::new(50.0, 45.0, 200), other];
    let [shop, other] = mean_of_turns(parties, Mode::Control);
    assert!((43.0..=47.0).contains(&shop.in_time), "{shop:?}");
    assert!(shop.refused <= 0.002 && shop.late <= 0.005, "{shop:?}");
    assert!((0.2..=0.7).contains(&other.refused) && other.late <= 0.01, "the burst is too long: {other:?}");
    let [off, _] = mean_of_turns(parties, Mode::Off);
    assert!(off.late > 0.1, "the twin without control: {off:?}");
}
