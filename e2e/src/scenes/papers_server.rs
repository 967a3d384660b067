//! UC 7.2 to 7.4 on the paper's server: its page times, its listen queues, and what lighter pages bring.
//!
//! Eight workers stand for its one processor: eight pages of eight times the time. A page holds its worker without using this
//! machine's processors.

use super::Scene;
use crate::configuration::{priced, site};
use crate::flows::{Flow, Flown};
use crate::model::ServerModel;
use std::time::Duration;

/// Eq. 9: 1.604 ms for a request and 0.063 ms for a KB, of the whole server.
const PAPERS: ServerModel = ServerModel {
    workers: 8,
    queue: 511,
    fixed: Duration::from_micros(8 * 1_604),
    per_kib: Duration::from_micros(8 * 63),
    kib: 64,
    exponential: false,
};

/// The paper's server with pages of so many KiB and a listen queue of this length.
pub fn papers_server(kib: usize, queue: u32) -> ServerModel {
    ServerModel { kib, queue, ..PAPERS }
}

/// What [`listen_queue`] offers, of the capacity, and for how long each (s).
const OFFERED: [(f64, f64); 3] = [(2.0, 0.5), (2.0, 0.9), (8.0, 2.0)];

/// Fig. 8 and 9: ever more requests for pages of one size, before a listen queue of this length. Clients have much patience, so
/// that it is the queue that ends waits.
pub fn listen_queue(kib: usize, queue: u32) -> Scene {
    let model = papers_server(kib, queue);
    let steps = OFFERED.map(|(seconds, part)| (seconds, part * model.capacity()));
    scene(model, site("site", ""), &steps, Duration::from_secs(12))
}

/// The medians of what was answered of each rate of [`listen_queue`], from half a second after its step on; after the last step
/// from the sixth second on, by when the queue is full.
pub fn medians(flown: &[Flown]) -> [f64; OFFERED.len()] {
    [0.5..2.0, 2.5..4.0, 9.5..11.5].map(|seconds| flown[0].during(seconds).quantile(0.5))
}

/// Fig. 10: a third more requests than this server could serve if all pages were light, where there are light pages, or full,
/// where there are none.
pub fn payoff(model: ServerModel, has_levels: bool) -> Scene {
    let cost = if has_levels { model.light_cost() } else { 1.0 };
    let site = if has_levels { site("site", "") } else { "\n[[site]]\nname = \"site\"\n".to_owned() };
    scene(model, site, &[(12.0, 1.3 * model.capacity() / cost)], Duration::from_secs(4))
}

/// Pages per second in the steady part of [`payoff`].
pub fn served(flown: &[Flown]) -> f64 {
    flown[0].during(6.0..12.0).rate(1.0)
}

fn scene(model: ServerModel, site: String, steps: &[(f64, f64)], patience: Duration) -> Scene {
    Scene {
        name: "the paper's server (UC 7.2 to 7.4)",
        configuration: priced(model) + &site,
        without: None,
        model,
        nginx: false,
        slow: None,
        flows: vec![Flow::new("e2e.test", "/page", steps)],
        patience: Some(patience),
        figures: vec![],
    }
}
