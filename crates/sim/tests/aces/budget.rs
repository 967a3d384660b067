//! The engine that decides by the paper's budget, beside the paper's own door, on the same arrivals. Both have the same
//! formula; the engine learns what types cost, and has one queue in the order of deadlines where the paper has two.

use crate::heard::{BUDGET, ENGINE, HIGH, LOW, within};
use crate::priorities::{mean, shares};
use crate::stress::{ACES, means, over_sac};

#[test]
fn throughput_is_that_of_the_papers_own_door_and_nobody_is_late() {
    for (load, late) in [(0.5, 0.0..=0.0), (1.0, 0.001..=0.015), (1.5, 0.005..=0.03), (2.5, 0.01..=0.03)] {
        let [paper, budget] = [ACES, BUDGET].map(|front| means(front, load));
        within("work over that of the paper's door", budget.work.mean / paper.work.mean, 0.99..=1.01);
        within(
            "refused beyond that of the paper's door",
            budget.refused.mean - paper.refused.mean,
            -0.01..=0.01,
        );
        budget.check("missed", budget.missed, 0.0..=0.001);
        // Its second queue is where they come late.
        within("missed at the paper's door", paper.missed.mean, late);
    }
}

#[test]
fn at_the_capacity_it_loses_the_papers_four_points() {
    let [paper, budget, work] = [ACES, BUDGET, ENGINE].map(|front| {
        let over = over_sac(front, 1.0);
        println!("{front} over sac at the capacity: {over}");
        over.mean
    });
    within("the paper's door", paper, 0.94..=0.97);
    within("the engine by budget", budget, 0.94..=0.97);
    within("the engine by unfinished work", work, 0.985..=1.01);
}

#[test]
fn the_highest_has_what_it_asks_and_the_low_what_is_predicted_to_remain() {
    for (total, least, low_missed) in
        [(0.8, 0.99, 0.0..=0.01), (1.6, 0.98, 0.02..=0.15), (2.5, 0.75, 0.0..=0.02)]
    {
        let [paper, budget] = [ACES, BUDGET].map(|front| {
            let runs = shares(front, total);
            let of_asked = mean(&runs, |run| run.got[HIGH].work / run.asked[HIGH]).mean;
            let low = mean(&runs, |run| run.got[LOW].work).mean;
            let missed = [HIGH, LOW].map(|class| mean(&runs, |run| run.got[class].missed).mean);
            println!("{front} at {total}: high {of_asked:.4} of its work, low {low:.4}; missed {missed:.4?}");
            (of_asked, low, missed)
        });
        within("high, of what it asks", budget.0, least..=1.0);
        within("high beside the paper's door", budget.0 - paper.0, -0.01..=0.01);
        within("low beside the paper's door", budget.1 - paper.1, -0.03..=0.02);
        within("missed of the high", budget.2[0], 0.0..=0.001);
        within("missed of the low", budget.2[1], low_missed);
        within("missed of the low beyond the paper's", budget.2[1] - paper.2[1], -0.15..=0.005);
    }
}
