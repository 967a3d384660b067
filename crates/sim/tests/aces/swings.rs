//! The sensitivity tests (AC, fig. 5, 7, 9 and 14, 15) before the server that the paper prints, without its disk, network and
//! cache: sustained and occasional overload, sustained and occasional light load. A unit of time is 100 periods, as in the
//! paper for a single class. For two classes the paper's unit is 1,000 periods: an ignored test has that, and the suite a
//! tenth of it.

use crate::heard::{ENGINE, Fate, HIGH, Heard, LOW, front, promises, tell, within};
use crate::plant::{BOUND, poisson, printed_pages, printed_service, stream, workload};
use plimsoll_sim::workload::{Content, Workload};

/// Each phase's length in units, and its load. The sustained ones last 10 units, the occasional ones 2.
const PHASES: [(f64, f64); 7] =
    [(2.0, LIGHT), (2.0, 1.0), (2.0, LIGHT), (10.0, 1.0), (2.0, LIGHT), (2.0, 1.0), (10.0, LIGHT)];
const LIGHT: f64 = 0.3;
/// So long after a step what was admitted before it has been answered (s).
const SOON: f64 = 2.0;
const SCHEMES: [&str; 4] = ["sac:1ms", "cac", "aces:1ms", ENGINE];

/// What became of a class in a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    asked: f64,
    work: f64,
    admitted: f64,
    answered: f64,
    late: f64,
    responses: f64,
}

impl Tally {
    fn add(&mut self, one: &Heard) {
        self.asked += one.cost;
        if one.fate == Fate::Refused {
            return;
        }
        self.admitted += 1.0;
        if one.fate == Fate::Answered {
            (self.answered, self.work) = (self.answered + 1.0, self.work + one.cost);
            self.responses += one.response();
        }
        self.late += f64::from(u8::from(one.fate == Fate::Dropped || one.response() > BOUND));
    }

    fn mean(&self) -> f64 {
        self.responses / f64::max(self.answered, 1.0)
    }

    fn missed(&self) -> f64 {
        self.late / f64::max(self.admitted, 1.0)
    }
}

/// By phase, the classes.
struct Swings {
    front: &'static str,
    phases: Vec<[Tally; 2]>,
    /// The same without those that came in a phase's first seconds.
    settled: Vec<[Tally; 2]>,
    seconds: Vec<f64>,
    /// By unit of time from the start, the classes: what Fig. 14 and 15 are drawn from.
    units: Vec<[Tally; 2]>,
}

/// A stream's folder, and its load at that of a phase.
type Flow = (&'static str, fn(f64) -> f64);

fn swings(name: &'static str, unit: f64, streams: &[Flow]) -> Swings {
    let mut ends = Vec::new();
    for (units, _) in PHASES {
        ends.push(ends.last().unwrap_or(&0.0) + units * unit);
    }
    let starts: Vec<f64> = std::iter::once(0.0).chain(ends.iter().copied()).take(PHASES.len()).collect();
    let of = |(folder, load): &Flow| {
        let rates =
            starts.iter().zip(PHASES).map(|(start, (_, phase))| (*start, load(phase) / printed_service()));
        stream(folder, poisson(&rates.collect::<Vec<_>>()), Content::Pages(printed_pages(folder)))
    };
    let long: Workload = workload(streams.iter().map(of).collect(), ends.last().map(|end| end + 5.0));
    let mut phases = vec![[Tally::default(); 2]; PHASES.len()];
    let (mut settled, mut units) = (phases.clone(), Vec::new());
    tell(&mut *front(name, &long, 11), &promises(), &long, 11, |one| {
        let phase = ends.iter().take_while(|end| one.arrived >= **end).count();
        let Some(whole) = phases.get_mut(phase) else { return };
        whole[one.class].add(&one);
        let own = (one.arrived / unit) as usize;
        units.resize(units.len().max(own + 1), [Tally::default(); 2]);
        units[own][one.class].add(&one);
        if one.arrived >= starts[phase] + SOON {
            settled[phase][one.class].add(&one);
        }
    });
    let seconds = PHASES.map(|(units, _)| units * unit).to_vec();
    Swings { front: name, phases, settled, seconds, units }
}

/// Every scheme before the same requests, each in a thread of its own.
fn all_swings(unit: f64, streams: &[Flow]) -> Vec<Swings> {
    let found = std::thread::scope(|scope| {
        let run = |name| scope.spawn(move || swings(name, unit, streams));
        SCHEMES.map(run).map(|running| running.join().expect("it runs"))
    });
    found.iter().for_each(|found| found.print(streams.len()));
    found.into()
}

impl Swings {
    fn work(&self, phase: usize, class: usize) -> f64 {
        self.phases[phase][class].work / self.seconds[phase]
    }

    /// The longest mean of a unit of a phase: what Fig. 15 shows at most.
    fn longest(&self, phase: usize, class: usize) -> f64 {
        let before: f64 = PHASES[..phase].iter().map(|(units, _)| units).sum();
        let own = &self.units[before as usize..(before + PHASES[phase].0) as usize];
        own.iter().map(|unit| unit[class].mean()).fold(0.0, f64::max)
    }

    fn print(&self, classes: usize) {
        for (phase, both) in self.phases.iter().enumerate() {
            let own = if classes == 1 { LOW..LOW + 1 } else { HIGH..LOW + 1 };
            for class in own {
                let tally = both[class];
                println!(
                    "{:9} {} units at {}, {}: asked {:.3}, work {:.3}, mean {:.3} s, at most {:.3} s in a unit, missed {:.4}, {:.4} of {} after {SOON} s",
                    self.front,
                    PHASES[phase].0,
                    PHASES[phase].1,
                    if class == HIGH { "high" } else { "low" },
                    tally.asked / self.seconds[phase],
                    self.work(phase, class),
                    tally.mean(),
                    self.longest(phase, class),
                    tally.missed(),
                    self.settled[phase][class].missed(),
                    self.settled[phase][class].admitted
                );
            }
        }
    }
}

/// Fig. 5, 7 and 9: from light load to twice the capacity and back.
fn single(unit: f64) {
    for found in all_swings(unit, &[("", |phase| if phase == LIGHT { 0.5 } else { 2.0 })]) {
        let name = found.front;
        for (phase, (_, load)) in PHASES.iter().enumerate() {
            let tally = found.phases[phase][LOW];
            let what = |what: &str| format!("{name}, phase {phase}: {what}");
            if *load == LIGHT {
                within(&what("work"), found.work(phase, LOW), 0.44..=0.58);
                // SAC answers what overload left waiting.
                within(&what("missed"), tally.missed(), 0.0..=if name == "sac:1ms" { 0.2 } else { 0.001 });
                continue;
            }
            // What SAC leaves waiting is answered in the next phase, and counts where it came.
            within(&what("work"), found.work(phase, LOW), 0.985..=if name == "sac:1ms" { 1.1 } else { 1.04 });
            let (missed, mean) = match name {
                "sac:1ms" => (0.85..=1.0, 1.3..=1.7),
                "cac" => (0.0..=0.0, 0.22..=0.28),
                "aces:1ms" => (0.001..=0.005, 0.22..=0.28),
                _ => (0.0..=0.0005, 0.4..=0.8),
            };
            within(&what("missed"), tally.missed(), missed);
            within(&what("mean"), tally.mean(), mean);
        }
    }
}

const HIGH_AND_LOW: [Flow; 2] = [("/high", |phase| phase), ("/low", |_| 0.6)];

/// Fig. 14 and 15: the high's load swings up to the capacity, the low's is 0.6 all the time.
fn two(unit: f64) {
    for found in all_swings(unit, &HIGH_AND_LOW) {
        for phase in 0..PHASES.len() {
            match found.front {
                "sac:1ms" => found.serves_by_priority_what_it_admitted_without(phase),
                "cac" => found.knows_no_priority(phase),
                _ => found.keeps_the_highs_throughput(phase),
            }
        }
    }
}

impl Swings {
    fn what(&self, phase: usize) -> impl Fn(&str) -> String {
        let name = self.front;
        move |what| format!("{name}, phase {phase}: {what}")
    }

    /// The part of what a class asks for that it gets.
    fn part(&self, phase: usize, class: usize) -> f64 {
        let tally = self.phases[phase][class];
        tally.work / tally.asked
    }

    /// SAC: each has its part, and the low is what waits.
    fn serves_by_priority_what_it_admitted_without(&self, phase: usize) {
        let (what, [high, low]) = (self.what(phase), self.phases[phase]);
        within(&what("mean of the high"), self.longest(phase, HIGH), 0.0..=0.05);
        within(&what("missed of the high"), high.missed(), 0.0..=0.001);
        if PHASES[phase].1 > LIGHT {
            within(&what("the high's part"), self.part(phase, HIGH), 0.58..=0.7);
            within(&what("the low's part"), self.part(phase, LOW), 0.58..=0.7);
            within(&what("mean of the low"), low.mean(), 3.0..=5.0);
            within(&what("missed of the low"), low.missed(), 0.9..=1.0);
        } else {
            within(&what("the low's part"), self.part(phase, LOW), 0.99..=1.0);
        }
    }

    /// CAC: each has its part and the same delay, and nobody is late.
    fn knows_no_priority(&self, phase: usize) {
        let (what, [high, low]) = (self.what(phase), self.phases[phase]);
        let (part, longest) =
            if PHASES[phase].1 > LIGHT { (0.58..=0.68, 0.15..=0.23) } else { (0.96..=1.0, 0.02..=0.06) };
        for class in [HIGH, LOW] {
            within(&what("part"), self.part(phase, class), part.clone());
            within(&what("longest mean of a unit"), self.longest(phase, class), longest.clone());
        }
        within(&what("the high's delay over the low's"), high.mean() / low.mean(), 0.9..=1.1);
        within(&what("missed"), high.late + low.late, 0.0..=0.0);
    }

    /// ACES and the engine. Fig. 15: a fifth of the bound at most.
    fn keeps_the_highs_throughput(&self, phase: usize) {
        let (what, [high, low]) = (self.what(phase), self.phases[phase]);
        let (is_engine, light) = (self.front == ENGINE, self.phases[0][HIGH].mean());
        let most = if is_engine { 0.8 } else { 0.2 };
        within(&what("longest mean of the high in a unit"), self.longest(phase, HIGH), 0.0..=most);
        within(&what("missed of the high"), high.missed(), 0.0..=if is_engine { 0.0 } else { 0.02 });
        if PHASES[phase].1 == LIGHT {
            within(&what("the high's part"), self.part(phase, HIGH), 0.999..=1.0);
            within(&what("longest mean of the low in a unit"), self.longest(phase, LOW), 0.0..=most);
            within(&what("the low's work"), self.work(phase, LOW), 0.55..=0.65);
            return;
        }
        // "The delay of high priority tasks follow the trends of incoming high priority workload".
        within(&what("the high's delay over that in light load"), high.mean() / light, 3.0..=70.0);
        let part = if is_engine { 0.97..=1.0 } else { 0.93..=0.99 };
        within(&what("the high's part"), self.part(phase, HIGH), part);
        within(&what("the low's work"), self.work(phase, LOW), 0.0..=0.05);
        // Those of the low that a step found waiting wait until it ends. By the paper's unit they are so few of all that the
        // mean is below the bound, as in fig. 15.
        let by_the_papers_unit = self.seconds[phase] >= 2000.0;
        let most = if by_the_papers_unit { BOUND } else { 2.5 };
        within(&what("longest mean of the low in a unit"), self.longest(phase, LOW), 0.0..=most);
        if !is_engine {
            within(&what("missed of the low"), low.missed(), 0.15..=0.4);
            return;
        }
        // The engine is late for what it admitted before it knew of the step, less than comes in half a second; in phases as
        // long as the paper's also with what the high takes by chance.
        let in_half_a_second = 0.5 * 0.6 / printed_service();
        let settled = self.settled[phase][LOW];
        let by_chance = if by_the_papers_unit { 0.02 * settled.admitted } else { 0.0 };
        within(&what("late of the low"), low.late, 0.0..=in_half_a_second + by_chance);
        within(
            &what("late of the low after the step"),
            settled.late,
            0.0..=in_half_a_second / 3.0 + by_chance,
        );
    }
}

#[test]
fn a_single_class_swings_up_to_twice_the_capacity() {
    single(100.0);
}

#[test]
fn two_classes_swing() {
    two(100.0);
}

/// Twenty-three million requests a scheme.
#[test]
#[ignore = "two minutes: the paper's own unit, `cargo test -p plimsoll-sim --test aces -- --ignored --nocapture`"]
fn two_classes_swing_by_the_papers_unit() {
    two(1000.0);
}
