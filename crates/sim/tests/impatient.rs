//! A promised delay is kept to those who wait for it, though others of their class hang up.
//!
//! Clients that hang up are those that would have waited long, so the answers that are left are the quick ones. What a
//! patient client waits is the truth: its arrivals are Poisson's and see what all arrivals see.

use plimsoll_core::promises::{Class, Condition, Delay, Mode, Plant, Promises, Site};
use plimsoll_core::request::Outcome;
use plimsoll_core::telemetry::status::ResponseStatus;
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Gateway, Order};
use plimsoll_sim::workload::{Arrivals, Discipline, Law, Page, Process, Stream, Version, Workload};
use plimsoll_sim::{Event, Setup, Watch};
use std::collections::BTreeMap;
use std::time::Duration;

const SEEDS: [u64; 4] = [6_201, 6_202, 6_203, 6_204];
const SECONDS: f64 = 600.0;
/// The loops begin with nothing known (s).
const FROM: f64 = 60.0;
const WORKERS: u32 = 6;
const SERVICE: Duration = Duration::from_millis(30);
const PATIENT: &str = "/gold/patient";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A class with a delay, of whose clients so many per second are patient and others hang up after these times.
struct Scene {
    delay: Delay,
    patient: f64,
    impatient: Vec<(f64, Duration)>,
    /// Requests per second that nothing was promised to.
    others: f64,
    mode: Mode,
    seed: u64,
}

/// How long the patient ones took, and what status says of the class at the end.
struct Heard {
    patient: Vec<f64>,
    /// The share of the class's requests whose clients hung up.
    left: f64,
    said: ResponseStatus,
}

#[derive(Default)]
struct Clocks {
    open: BTreeMap<u64, (f64, bool)>,
    patient: Vec<f64>,
    gold: (u32, u32),
}

impl Watch for Clocks {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let at = now.as_secs_f64();
        let (token, completed) = match event {
            Event::Arrived { token, request, decision, .. } if request.path.starts_with("/gold") => {
                if !matches!(decision, Decision::Reject(..)) {
                    self.open.insert(token.0, (at, request.path == PATIENT));
                }
                return;
            }
            Event::Arrived { .. } | Event::Ordered(Order::Start(..)) => return,
            Event::Ordered(Order::Drop(token, _)) => (token, false),
            Event::Ended { token, outcome } => (token, *outcome == Outcome::Completed),
        };
        let Some((arrived, is_patient)) = self.open.remove(&token.0) else { return };
        if arrived >= FROM {
            self.gold.0 += 1;
            self.gold.1 += u32::from(!completed);
            if is_patient {
                self.patient.push(if completed { at - arrived } else { f64::INFINITY });
            }
        }
    }
}

impl Scene {
    fn run(&self) -> Heard {
        let mut plant = Plant::new("origin", WORKERS);
        plant.set_point = 1.0;
        let condition = Condition { paths: vec!["/gold/*".to_owned()], ..Condition::default() };
        let gold = Class { delay: Some(self.delay), priority: 1, ..Class::new("gold", condition) };
        let site = Site { classes: vec![gold], ..Site::new("site", &["full"]) };
        let mut promises = Promises::of(plant, site);
        promises.control.mode = self.mode;
        let stream = |path: &str, rate: f64, patience: Option<Duration>| Stream {
            patience,
            ..Stream::new(path, Arrivals::steady(Process::Poisson, rate), vec![Page::new(path, 1000.0)], 5000)
        };
        let mut streams = vec![stream(PATIENT, self.patient, None), stream("/other", self.others, None)];
        let own = self.impatient.iter().map(|(rate, patience)| stream("/gold/page", *rate, Some(*patience)));
        streams.extend(own);
        let server = plimsoll_sim::workload::Plant {
            law: Law::Exponential,
            ..plimsoll_sim::workload::Plant::new(Discipline::Workers(WORKERS), 100_000, SERVICE)
        };
        let workload = Workload {
            streams,
            plants: vec![server],
            versions: vec![vec![Version::FULL]],
            duration: Some(Duration::from_secs_f64(SECONDS)),
            ..Workload::default()
        };
        let mut clocks = Clocks::default();
        let mut gateway = Gateway::new(&promises, self.seed).expect("the promises are valid");
        let setup = Setup { promises: &promises, workload: &workload, seed: self.seed };
        let run = setup.run_with(&mut gateway, &mut clocks).expect("it runs");
        let status = run.status.expect("the engine ran");
        let said = status.classes.iter().find_map(|class| class.response.filter(|_| class.class == "gold"));
        let (all, left) = clocks.gold;
        let said = said.expect("a delay was promised");
        Heard { patient: clocks.patient, left: f64::from(left) / f64::from(all), said }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The share that took more than 160 ms.
fn late(times: &[f64]) -> f64 {
    times.iter().filter(|took| **took > 0.16).count() as f64 / times.len() as f64
}

/// The class asks for 0.48 of the capacity, and others for all of it. Four fifths of its clients are impatient.
fn gold(delay: Delay, seed: u64) -> Scene {
    let impatient = vec![(25.0, ms(60)), (25.0, ms(110)), (25.0, ms(200))];
    Scene { delay, patient: 20.0, impatient, others: 200.0, mode: Mode::Control, seed }
}

/// Without regard to those that hung up, the patient took 80 ms with the first seed.
#[test]
fn a_mean_is_kept_to_the_patient() {
    let delay = Delay { target: ms(75), percentile: None };
    for seed in SEEDS {
        let heard = gold(delay, seed).run();
        let (took, left) = (1e3 * mean(&heard.patient), heard.left);
        println!(
            "seed {seed}: patient {took:.1} ms, said {:.1} ms, hung up {left:.3}",
            1e3 * heard.said.response
        );
        assert!((68.0..=75.0).contains(&took) && left > 0.15, "seed {seed}: {took} ms, {left}");
        assert!(!heard.said.missed, "seed {seed}: {:?}", heard.said);
    }
    let twin = mean(&Scene { mode: Mode::Off, ..gold(delay, 1) }.run().patient);
    assert!(twin > 0.1, "the twin without control must fail: {twin} s");
}

/// Without regard to those that hung up, 5.5 % of the patient were late with the first seed.
#[test]
fn a_percentile_is_kept_to_the_patient() {
    let delay = Delay { target: ms(160), percentile: Some(95.0) };
    for seed in SEEDS {
        let heard = gold(delay, seed).run();
        let late = late(&heard.patient);
        println!("seed {seed}: late {late:.4}, said {:.4}, hung up {:.3}", heard.said.late, heard.left);
        assert!((0.025..=0.05).contains(&late) && heard.left > 0.12, "seed {seed}: {late}, {}", heard.left);
    }
    let twin = late(&Scene { mode: Mode::Off, ..gold(delay, 1) }.run().patient);
    assert!(twin > 0.1, "the twin without control must fail: {twin}");
}
