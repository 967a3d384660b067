//! The kinds of promises: what a party with one of them sends, what it was promised, and how well that was kept.

use crate::SIZES;
use crate::waits::{Answer, Flow, PAGE, mean};
use plimsoll_core::promises::{Delay, Guarantee, Level, Site};
use std::time::Duration;

/// Requests per second of a party; the server's capacity is 200. It is less than the party's share of an overloaded server,
/// so that no promise is broken by what nobody promised: a share.
const RATE: f64 = 30.0;
/// A site with lighter levels sends more than its share of an overloaded server carries at full quality.
const RATE_WITH_LEVELS: f64 = 100.0;
/// A contract is this much larger than what comes.
const MARGIN: f64 = 4.0 / 3.0;
/// A contract with a bandwidth is for so many times the requests that it would be without: its bytes bind.
const OF_SMALLER_PAGES: f64 = 1.5;
/// What is promised where a request takes 10 ms, and the two workers are held at 0.85: 36 ms on average, and one of twenty
/// above 108 ms.
const MEAN: Duration = Duration::from_millis(30);
const NINETEEN_OF_TWENTY: Duration = Duration::from_millis(80);
const DEADLINE: Duration = Duration::from_millis(150);
/// A promise that is late in one of 20 cases.
const PERCENTILE: f64 = 95.0;
/// The ratio of the response times of the two classes that were promised one.
pub(crate) const RATIO: f64 = 1.5;
/// Until when an answer is of use to somebody to whom no time was promised.
const USEFUL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    Rate,
    Bandwidth,
    Priority,
    Mean,
    Percentile,
    Ratio,
    Deadline,
    Levels,
    BestEffort,
}

/// What is asked of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Before a server that queues what it is given beyond its workers. A contract needs the room above the load line, so a burst
/// beyond the line is turned away, and what waits in the server cannot be degraded any more to make room.
pub(crate) const LEVELS_BEFORE_A_QUEUE: Bound = Bound { least: 0.99, most: 1.01 };

impl Bound {
    pub(crate) fn holds(self, figure: f64) -> bool {
        (self.least..=self.most).contains(&figure)
    }

    /// How far a figure is from the middle, where 1 is the bound itself.
    pub(crate) fn strain(self, figure: f64) -> f64 {
        let middle = 0.5 * (self.least + self.most);
        (figure - middle).abs() / (self.most - middle)
    }
}

impl Promise {
    pub(crate) const ALL: [Promise; 9] = [
        Promise::Rate,
        Promise::Bandwidth,
        Promise::Priority,
        Promise::Mean,
        Promise::Percentile,
        Promise::Ratio,
        Promise::Deadline,
        Promise::Levels,
        Promise::BestEffort,
    ];

    /// What a request takes of a worker.
    pub(crate) const SERVICE: Duration = Duration::from_millis(10);

    pub(crate) fn name(self) -> &'static str {
        match self {
            Promise::Rate => "rate",
            Promise::Bandwidth => "bandwidth",
            Promise::Priority => "priority",
            Promise::Mean => "mean delay",
            Promise::Percentile => "percentile",
            Promise::Ratio => "ratio",
            Promise::Deadline => "deadline",
            Promise::Levels => "levels",
            Promise::BestEffort => "best effort",
        }
    }

    /// What the figure in the table is.
    pub(crate) fn figure(self) -> &'static str {
        match self {
            Promise::Rate => {
                "a contract for 4/3 of the requests that come; the share served in full within a second"
            }
            Promise::Bandwidth => {
                "a contract for 4/3 of the bytes that come, and twice the requests; the share served in full within a second"
            }
            Promise::Priority => "the first priority; the share served in full within a second",
            Promise::Mean => "30 ms on average; the mean response time",
            Promise::Percentile => "95 % within 80 ms; the share that was",
            Promise::Ratio => "response times as 2 : 3; their ratio",
            Promise::Deadline => "within 150 ms; the share of all requests that was",
            Promise::Levels => "lighter pages before rejections; the share answered within a second",
            Promise::BestEffort => {
                "nothing; the share answered within a second, of less than its part of the server"
            }
        }
    }

    /// The bound, as the table has it.
    pub(crate) fn asked(self) -> String {
        let Bound { least, most } = self.bound();
        match self {
            Promise::Mean => format!("at most {} ms", most),
            Promise::Ratio => format!("{least:.3} to {most:.3}"),
            _ => format!("at least {} %", 100.0 * least),
        }
    }

    /// A figure, as the table has it.
    pub(crate) fn written(self, figure: f64) -> String {
        match self {
            Promise::Mean => format!("{figure:.1} ms"),
            Promise::Ratio => format!("{figure:.2}"),
            _ => format!("{:.1} %", 100.0 * figure),
        }
    }

    pub(crate) fn bound(self) -> Bound {
        let at_least = |least| Bound { least, most: 2.0 - least };
        match self {
            Promise::Rate | Promise::Bandwidth | Promise::Priority => at_least(0.99),
            Promise::Mean => Bound { least: 0.0, most: 1e3 * MEAN.as_secs_f64() },
            Promise::Percentile => at_least(PERCENTILE / 100.0),
            Promise::Ratio => Bound { least: 0.95 * RATIO, most: 1.05 * RATIO },
            // `in_time` is 99 % unless the class says otherwise.
            Promise::Deadline => at_least(0.99),
            Promise::Levels | Promise::BestEffort => at_least(0.995),
        }
    }

    /// The bound of one run, where the promise's is this: a mean and a percentile are led to what was promised, so they are a
    /// little beyond it for half of the time. Status calls them missed beyond what is allowed here.
    pub(crate) fn of_one_run(self, bound: Bound) -> Bound {
        match self {
            Promise::Mean => Bound { most: Delay::MISSED_MEAN * bound.most, ..bound },
            Promise::Percentile => Bound { least: 1.0 - Delay::MISSED_SHARE * (1.0 - bound.least), ..bound },
            _ => bound,
        }
    }

    /// How long a run is (s). It takes the ratio law twenty windows of 1,000 departures to find that a ratio is infeasible.
    pub(crate) fn seconds(self) -> f64 {
        if self == Promise::Ratio { 720.0 } else { 60.0 }
    }

    /// From when on it is judged (s): the loops begin with nothing known.
    pub(crate) fn from(self) -> f64 {
        if self == Promise::Ratio { 60.0 } else { 20.0 }
    }

    /// What the site of parties with these promises has.
    pub(crate) fn shape_site(of_site: &[Promise], site: &mut Site) {
        let rate = MARGIN * of_site.iter().map(|promise| promise.rate()).sum::<f64>();
        if of_site.contains(&Promise::Bandwidth) {
            site.guarantee = Some(Guarantee::new(OF_SMALLER_PAGES * rate, PAGE * rate));
        } else if of_site.contains(&Promise::Rate) {
            let bandwidth_bytes_per_second = None;
            site.guarantee = Some(Guarantee { rate, bandwidth_bytes_per_second, burst: Guarantee::BURST });
        }
        if of_site.contains(&Promise::Levels) {
            let level = |name: &str, cost_ratio| Level { name: name.to_owned(), plant: None, cost_ratio };
            site.levels = vec![level("light", Some(0.25)), level("full", None)];
        }
    }

    /// The rate of a party with this promise (1/s).
    pub(crate) fn rate(self) -> f64 {
        if self == Promise::Levels { RATE_WITH_LEVELS } else { RATE }
    }

    /// The flows of a party with this promise. `place` tells two parties of one site apart.
    pub(crate) fn flows(self, place: &str) -> Vec<Flow> {
        let name = format!("{place}-{}", self.name().replace(' ', "-"));
        let flow = Flow::new(&name, self.rate());
        match self {
            Promise::Rate | Promise::Levels | Promise::BestEffort => vec![flow],
            Promise::Bandwidth => vec![Flow { bytes_law: SIZES, ..flow }],
            Promise::Priority => vec![flow.priority(1)],
            Promise::Mean => vec![flow.delay(MEAN, None)],
            Promise::Percentile => vec![flow.delay(NINETEEN_OF_TWENTY, Some(PERCENTILE))],
            Promise::Ratio => {
                let part = |which, delta| Flow::new(&format!("{name}-{which}"), RATE / 2.0).ratio(delta);
                vec![part("one", 2.0), part("two", 2.0 * RATIO)]
            }
            Promise::Deadline => {
                let mut flow = flow;
                flow.class.deadline = Some(DEADLINE);
                vec![flow]
            }
        }
    }

    /// How well the promise was kept, from the answers of its flows at this many levels, and what is asked.
    pub(crate) fn kept(self, answers: &[Vec<Answer>], levels: u8) -> (f64, Bound) {
        let all: Vec<Answer> = answers.iter().flatten().copied().collect();
        let share = |holds: &dyn Fn(&Answer) -> bool| {
            all.iter().filter(|answer| answer.completed && holds(answer)).count() as f64 / all.len() as f64
        };
        let within = |limit: Duration| share(&|answer| answer.response() <= limit.as_secs_f64());
        let figure = match self {
            Promise::Rate | Promise::Bandwidth | Promise::Priority => {
                share(&|answer| answer.level == levels && answer.response() <= USEFUL.as_secs_f64())
            }
            // A mean is not kept by turning requests away.
            Promise::Mean if share(&|_| true) < 0.98 => f64::INFINITY,
            Promise::Mean => 1e3 * mean(&responses(&all)),
            Promise::Percentile => within(NINETEEN_OF_TWENTY),
            Promise::Ratio => mean(&responses(&answers[1])) / mean(&responses(&answers[0])),
            Promise::Deadline => within(DEADLINE),
            Promise::Levels | Promise::BestEffort => within(USEFUL),
        };
        (figure, self.bound())
    }
}

fn responses(answers: &[Answer]) -> Vec<f64> {
    answers.iter().filter(|answer| answer.completed).map(Answer::response).collect()
}
