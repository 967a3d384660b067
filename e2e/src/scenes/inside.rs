//! Scenes on a real Apache, prefork, whose own processes decide (UC 6 and 7), and the paper's overload of it.
//!
//! In virtual time the same engine decides before a plant with the server's listen queue: its gate is as wide as the module's,
//! so that nothing waits before the server, and requests wait in that queue. Two things differ. A process decides on a request
//! when it takes it from the listen queue, the simulation when it arrives; and in the simulation a rejection holds no worker.

use super::{Figure, Scene};
use crate::configuration::two_levels;
use crate::flows::{End, Flow, Flown, drive};
use crate::model::{SLOW_PAGES, ServerModel};
use crate::{Apache, Control, Plimsoll};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// Apache's listen queue by default. A connection that finds it full is tried again by the client's kernel after a second, and
/// then ever later, so that a short one fails requests that a server with control would have served.
const LISTEN_QUEUE: u32 = 511;
/// Pages of [`SLOW_PAGES`] behind that queue.
pub const PREFORK: ServerModel = ServerModel { queue: LISTEN_QUEUE, ..SLOW_PAGES };
/// As many requests as the gate of a module has room for, or more than any server of these tests takes.
const WIDE: u32 = 4096;
/// When the overload begins (s), when its figures are judged, and when it ends.
const STEP: f64 = 4.0;
const JUDGED: Range<f64> = 12.0..43.0;
const END: f64 = 44.0;

/// UC 7.1 and Fig. 6 on a prefork server: so many times its capacity, after some calm seconds at half of it.
pub fn overload_of(multiple: f64) -> Scene {
    let capacity = PREFORK.capacity();
    Scene {
        name: "an overload of prefork (UC Fig. 6)",
        configuration: two_levels(),
        without: None,
        model: PREFORK,
        nginx: false,
        slow: None,
        flows: vec![Flow::new(
            "e2e.test",
            "/page",
            &[(STEP, 0.5 * capacity), (END - STEP, multiple * capacity)],
        )],
        patience: Some(Duration::from_secs(4)),
        figures: vec![
            Figure::new("failed", 0.0..=0.0, |flown| flown[0].all().part(End::Lost)),
            Figure::new("rejected", 0.0..=1.0, |flown| flown[0].during(JUDGED).part(End::Rejected)),
            Figure::new("full pages", 0.0..=1.0, |flown| flown[0].during(JUDGED).full()),
            Figure::new("U by the pages served", 0.0..=1.0, |flown| {
                flown[0].during(JUDGED).rate(PREFORK.light_cost()) / PREFORK.capacity()
            }),
            Figure::new("p99 (s)", 0.0..=4.0, |flown| flown[0].during(JUDGED).quantile(0.99)),
        ],
    }
}

impl Scene {
    /// The scene before Apache's own listen queue.
    pub fn on_prefork(self) -> Scene {
        Scene { model: ServerModel { queue: LISTEN_QUEUE, ..self.model }, ..self }
    }

    /// The scene with a gate as wide as that of a server that decides itself, and `/server-status` exempt at each site.
    pub fn for_module(&self) -> Scene {
        let exempt = "exempt = [{ path = \"/server-status\" }]\n";
        let line = |line: &str| match line {
            line if line.starts_with("max_connections") => format!("max_connections = {WIDE}\n"),
            "[[site]]" => format!("[[site]]\n{exempt}"),
            line => format!("{line}\n"),
        };
        Scene { configuration: self.configuration.lines().map(line).collect(), ..self.clone() }
    }

    /// Runs it in real time on a prefork server that decides itself: the controller and the server, still there, and what became
    /// of its flows.
    pub fn inside(&self, page: &Path, patience: Duration) -> (Control, Apache, Vec<Flown>) {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let control = Control::start(&self.for_module().file(anywhere, false));
        let apache = Apache::deciding(page, self.model, &control);
        let flown = drive(apache.direct, &self.flows, patience, || ());
        (control, apache, flown)
    }

    /// Runs it in real time on the same server as it is, without control.
    pub fn bare(&self, page: &Path, patience: Duration) -> Vec<Flown> {
        let apache = Apache::holding(page, self.model);
        drive(apache.direct, &self.flows, patience, || ())
    }

    /// Runs it in real time on the same server behind the gateway.
    pub fn behind_gateway(&self, page: &Path, patience: Duration) -> Vec<Flown> {
        let apache = Apache::holding(page, self.model);
        let gateway = Plimsoll::run(&self.file(apache.upstream, false));
        let flown = drive(gateway.address, &self.flows, patience, || ());
        gateway.wait_for_metric("plimsoll_in_flight", 0.0);
        flown
    }
}
