//! What a ratio that status calls infeasible is judged by: the ratio that strict priority of its first class reaches.
//!
//! No order of service of the two classes reaches more, since the conservation law leaves the other class no more to lose. The
//! classes of a ratio exchange their turns among themselves, so strict priority is that within their turns: in the same scene
//! the second class is promised a million times the first one's response time.

use crate::promise::{Promise, RATIO};
use crate::waits::{Scene, mean};
use crate::{Kept, each, of_flow};

/// The conservation law needs no law to settle, so a shorter run tells (s).
const SECONDS: f64 = 360.0;
/// A ratio that nobody reaches.
const OUT_OF_REACH: f64 = 1e6;
/// By how much the ratio law may stay behind strict priority.
const NEARLY: f64 = 0.95;

/// Fails where a ratio is called infeasible that strict priority reaches, or where less is reached than could be.
pub(crate) fn judge(infeasible: &[Kept]) {
    let strict = each(infeasible, reached);
    let mut wrong = 0;
    for (kept, strict) in infeasible.iter().zip(strict) {
        assert!(kept.promise == Promise::Ratio, "only a ratio may be infeasible here: {kept}");
        if strict >= RATIO || kept.figure < NEARLY * strict {
            println!("{kept}; strict priority reaches {strict:.3}");
            wrong += 1;
        }
    }
    assert!(
        wrong == 0,
        "{wrong} of {} ratios are feasible, or less is reached than could be",
        infeasible.len()
    );
}

/// The ratio that strict priority reaches in the same scene, the mean over the seeds.
fn reached(kept: &Kept) -> f64 {
    let reached = |seed: &u64| {
        let (scene, parties) = kept.pair.scene(*seed);
        // Classes of two parties in one site have one ratio together: each party's second class is last.
        let last = (0..2).filter(|n| kept.pair.place(*n) == kept.pair.place(kept.party));
        let last: Vec<usize> = last.filter_map(|n| parties[n].get(1).copied()).collect();
        reached_in(scene, &last, [0, 1].map(|n| parties[kept.party][n]))
    };
    mean(&kept.pair.seeds().iter().map(reached).collect::<Vec<_>>())
}

/// The ratio of the second flow to the first where these flows are last.
fn reached_in(mut scene: Scene, last: &[usize], [first, second]: [usize; 2]) -> f64 {
    scene.seconds = SECONDS;
    for flow in last {
        scene.flows[*flow].class.ratio = Some(OUT_OF_REACH);
    }
    let heard = scene.run();
    let of = |flow| {
        let answers = of_flow(&heard, flow, Promise::Ratio.from());
        let completed = answers.iter().filter(|answer| answer.completed);
        mean(&completed.map(|answer| answer.response()).collect::<Vec<_>>())
    };
    of(second) / of(first)
}

/// Whether a ratio that status calls infeasible, and that reached this figure, is out of reach for strict priority, and comes
/// near to what that reaches. The scene's first two flows are the classes.
pub(crate) fn is_out_of_reach(scene: Scene, figure: f64) -> bool {
    let strict = reached_in(scene, &[1], [0, 1]);
    println!("infeasible: {figure:.3}; strict priority reaches {strict:.3}");
    strict < RATIO && figure >= NEARLY * strict
}
