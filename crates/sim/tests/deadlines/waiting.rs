//! Waiting times by priority (AC 4.3). With W_0 = sum over all lambda_i E[S_i^2] / 2, what is left of the one in service, and
//! rho_q of the classes that are equal or higher,
//!
//! ```text
//! W_p = W_0 / ((1 - sum over q >= p of rho_q) (1 - sum over q > p of rho_q))
//! ```
//!
//! with > meaning higher: Cobham's formula, AC's (12). Its (11) counts requests where it means their work, and its (10)
//! makes the number of all tasks a number of those in the queue; (12) does not follow from them as printed, but is right.

use crate::scene::{Flow, Kind, Scene, mean, ms};
use plimsoll_sim::workload::Law;

const SERVICE: f64 = 0.005;
const LOAD: f64 = 0.25;
const SECONDS: f64 = 600.0;

#[test]
fn waits_by_priority_are_those_of_the_formula() {
    let pages = || vec![Kind::new("/page", 1.0, ms(5), Law::Exponential)];
    let names = ["first", "second", "third"];
    let flows = (1..=3).map(|priority| {
        let flow = Flow::new(names[usize::from(priority) - 1], LOAD / SERVICE, pages()).priority(priority);
        flow.within(Some(ms(5000)))
    });
    let heard = Scene::new(1, flows.collect(), SECONDS, 11).run();
    let residual = 3.0 * LOAD * SERVICE;
    for (class, name) in names.into_iter().enumerate() {
        let served = || heard.of(class, 10.0).filter(|answer| answer.reason.is_none());
        let found = mean(served().map(|answer| answer.started - answer.arrived));
        let [equal, higher] = [class + 1, class].map(|count| 1.0 - LOAD * count as f64);
        let told = residual / (equal * higher);
        println!("{name}: waits {:.2} ms, the formula {:.2} ms", 1e3 * found, 1e3 * told);
        assert!((0.95..1.05).contains(&(found / told)), "{class}: {found} for {told}");
        // Nobody is refused, or the rates would be others.
        assert_eq!(served().count(), heard.of(class, 10.0).count());
    }
}
