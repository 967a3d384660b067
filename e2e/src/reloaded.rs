//! Promises that change under load, through the binary: by SIGHUP and by `POST /reload`.

use crate::configuration::{contract, site};
use crate::flows::{Flow, Flown, drive};
use crate::scenes::excess;
use crate::{Plimsoll, Response};
use std::thread;
use std::time::{Duration, Instant};

/// What V1 is promised before and after, and V2 once it is a site, as parts of the server.
const NARROW: f64 = 0.2;
const WIDE: f64 = 0.45;
const NEW: f64 = 0.3;
/// When the promises change (s): a wider contract, then one more site.
const WIDER: f64 = 4.0;
const ONE_MORE: f64 = 7.0;
const END: f64 = 12.0;
/// How long a request that came before a change may still be served by the old promises, and how long the loop needs (s).
const SOON: f64 = 3.0;
/// The flows, by their sites at the end.
pub const SITES: [&str; 3] = ["v1", "v2", "others"];

/// A run in which promises changed.
#[derive(Debug)]
pub struct Reloaded {
    /// Still there.
    pub gateway: Plimsoll,
    /// The answers to a reload of a file with an error, and of a good one.
    pub answers: [Response; 2],
    /// What became of the flows, in the order of [`SITES`].
    pub flown: Vec<Flown>,
}

impl Reloaded {
    /// V1 is promised more after four seconds, and V2, whose requests were best effort, something after seven. V1 takes no more
    /// than its second contract carries, and offers nearly that from the beginning.
    pub fn run() -> Reloaded {
        let scene = excess();
        let (model, capacity) = (scene.model, scene.model.capacity());
        let origin = model.origin(&[]);
        let gateway_part = scene.file(origin.address(), false);
        let head = gateway_part.split("\n[[site]]").next().unwrap_or_default().to_owned();
        let others = site("others", "");
        let v1 = |part| contract("v1", part, model).replace("guarantee", "share_excess = false\nguarantee");
        let mut gateway = Plimsoll::run(&(head.clone() + &v1(NARROW) + &others));
        let flow = |host, part: f64| Flow::new(host, "/page", &[(END, part * capacity)]);
        let flows = [flow("v1.test", 0.9 * WIDE), flow("v2.test", 0.85 * NEW), flow("others.test", 1.5)];
        let mut answers = Vec::new();
        let start = Instant::now();
        let wait_until =
            |second| thread::sleep(Duration::from_secs_f64(second).saturating_sub(start.elapsed()));
        let flown = drive(gateway.address, &flows, Duration::from_secs(20), || {
            gateway.rewrite("[gateway]\nlisten = \"nowhere\"\n");
            answers.push(gateway.post_reload());
            wait_until(WIDER);
            gateway.rewrite(&(head.clone() + &v1(WIDE) + &others));
            gateway.hang_up(1);
            wait_until(ONE_MORE);
            gateway.rewrite(&(head.clone() + &v1(WIDE) + &contract("v2", NEW, model) + &others));
            answers.push(gateway.post_reload());
        });
        let answers = answers.try_into().unwrap_or_else(|answers| panic!("two answers, not {answers:?}"));
        Reloaded { gateway, answers, flown }
    }

    /// The parts of V1's and V2's requests that were not served at full quality before and after their change: V1 was held to a
    /// contract of half of its load, and V2 had none.
    pub fn degraded(&self) -> [(f64, f64); 2] {
        let part = |flow: usize, from, until| 1.0 - self.flown[flow].during(from..until).full();
        [
            (part(0, 1.0, WIDER), part(0, WIDER + SOON, END)),
            (part(1, 2.0, ONE_MORE), part(1, ONE_MORE + SOON, END)),
        ]
    }
}
