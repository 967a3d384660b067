//! Deadlines inside a server (UC 6 and AC): what a budget would give to processes that decide when they take a request from the
//! listen queue, beside levels and priorities alone. Times count from the arrival in that queue.

use crate::waits::{Answer, Flow, Scene};
use plimsoll_core::promises::{Admission, Level, Site};
use plimsoll_sim::front::{Inside, QueueLook, ServerProcesses};
use std::time::Duration;

const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(100);
const LIGHT: f64 = 0.25;
/// Those of high and low.
const DEADLINES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(1000)];
/// Bounds were chosen on those from 1 to 10.
const SEEDS: [u64; 4] = [11, 12, 13, 14];
const STEP: f64 = 60.0;
const SECONDS: f64 = 240.0;

/// What keeps deadlines: levels with priorities, levels where both classes have one priority, or a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Priorities,
    Levels,
    Budget,
}

/// High and low: late of those that were served, refused, and full pages; in ten seconds after the step, and from twelve
/// seconds after it on.
fn run(seed: u64, times: f64, rule: Rule, looks: QueueLook) -> [[[f64; 3]; 2]; 2] {
    let budget = rule == Rule::Budget;
    let capacity = f64::from(WORKERS) / SERVICE.as_secs_f64();
    let flow = |name, priority| {
        Flow::new(name, 0.25 * capacity).then(STEP, 0.5 * times * capacity).priority(priority)
    };
    let low = flow("low", if rule == Rule::Levels { 1 } else { 2 });
    let mut scene = Scene::new(WORKERS, SERVICE, vec![flow("high", 1), low], SECONDS, seed);
    scene.plant.set_point = 0.85;
    let mut site = Site::new("site", &["light", "full"]);
    site.levels[0] = Level { cost_ratio: Some(LIGHT), ..site.levels[0].clone() };
    scene.site = site;
    if budget {
        for (flow, deadline) in scene.flows.iter_mut().zip(DEADLINES) {
            flow.class.deadline = Some(deadline);
        }
    }
    let mut promises = scene.promises();
    if budget {
        promises.control.admission = Admission::Budget;
    }
    let mut server = Inside::new(&promises, seed, ServerProcesses { looks, ..ServerProcesses::new(WORKERS) })
        .expect("the promises are valid");
    let heard = scene.run_with(&mut server);
    [STEP..STEP + 10.0, STEP + 12.0..SECONDS - 2.0].map(|span| {
        [0, 1].map(|class| {
            let own: Vec<&Answer> = heard
                .answers
                .iter()
                .filter(|answer| answer.class == class && span.contains(&answer.arrived))
                .collect();
            let part = |of: &dyn Fn(&Answer) -> bool, all: f64| {
                own.iter().filter(|answer| of(answer)).count() as f64 / all
            };
            let all = own.len() as f64;
            let served = own.iter().filter(|answer| answer.completed).count() as f64;
            let is_late =
                |answer: &Answer| answer.completed && answer.response() > DEADLINES[class].as_secs_f64();
            [
                part(&is_late, served.max(1.0)),
                part(&|answer| !answer.completed, all),
                part(&|answer| answer.level == 2, all),
            ]
        })
    })
}

/// Where both classes have one priority, levels serve everybody, in time. Levels and priorities keep nearly all deadlines,
/// too: hardly more of the high ones are late than services alone are longer, which is 0.0025 for a full page. A budget
/// refuses more of the low ones while there is room, and leaves as many late. The twin is told nothing of the queue.
#[test]
fn a_budget_leaves_as_many_late_as_levels_do_and_refuses_more() {
    for times in [0.9, 1.5, 2.5] {
        let mean = |rule: Rule, looks: QueueLook| {
            let runs = SEEDS.map(|seed| run(seed, times, rule, looks));
            let figures = runs.iter().flatten().flatten().copied();
            let mut sums = [[0.0; 3]; 4];
            for (place, own) in figures.enumerate() {
                sums[place % 4] = [0, 1, 2].map(|n| sums[place % 4][n] + own[n] / SEEDS.len() as f64);
            }
            sums
        };
        let rules = [Rule::Priorities, Rule::Levels, Rule::Budget];
        let [today, levels, budget] = rules.map(|rule| mean(rule, QueueLook::Length));
        let twin = mean(Rule::Priorities, QueueLook::Nothing);
        println!(
            "{times}: after the step high, low; later high, low: {today:.4?}\nof one priority: {levels:.4?}\nbudget: {budget:.4?}\ntwin: {twin:.4?}"
        );
        for class in [0, 1] {
            let [after, later] = [today[class][0], today[2 + class][0]];
            assert!(after < 0.05 && later < 0.01, "{times} {class}: {today:?}");
            assert!(budget[2 + class][0] > later - 0.003, "{times} {class}: {today:?} {budget:?}");
        }
        // Late of those served, and refused.
        let [high, low] = [levels[2], levels[3]];
        assert!(high[0] < 0.01 && low[0] < 0.01 && high[1].max(low[1]) < 0.001, "{times}: {levels:?}");
        assert!(budget[3][1] > 0.03, "a budget refuses more of the low ones: {budget:?}");
        assert!(times < 1.0 || twin[0][0].max(twin[2][0]) > 0.05, "{times}: {twin:?}");
    }
}
