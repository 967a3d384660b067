//! Scenes on a real Apache, prefork, whose own processes decide (UC 6 and 7), and the paper's overload of it.
//!
//! In virtual time the same engine decides when a process takes a request from the listen queue (`simulated_inside.rs`). One
//! thing differs: there a rejection holds no process, and nothing holds one that it does not count.

use super::{Figure, Scene};
use crate::configuration::{GATEWAY, site, two_levels};
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
/// The part of a scene after its steps.
const STEADY: Range<f64> = 0.3..0.95;

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

/// Pages of 50 ms, light ones of 11 ms, exponential: waits are long beside services, as PR and QM need it.
const DIFFERENT: ServerModel = ServerModel {
    workers: 4,
    queue: LISTEN_QUEUE,
    fixed: Duration::from_millis(5),
    per_kib: Duration::from_micros(1_875),
    kib: 24,
    exponential: true,
};
/// Twice what it can do at full quality.
const TWICE: f64 = 2.0;
/// Twice a full page's service. The server degrades for its load line and not for a promise of the gateway, so that a mean near
/// a full page's own service would be sought by turning the others away.
const DELAY: f64 = 0.1;

/// PR 4 or QM 3 in the gateway before UC 6 in the server, with one file: the first class is promised half of the others'
/// response time, or a mean. The server has so many times as many processes as the application behind it has workers.
pub fn before_module(promise: Promise, wider: u32) -> Scene {
    let [first, others] = match promise {
        Promise::Ratio => ["ratio = 1".to_owned(), "default_ratio = 2\n".to_owned()],
        Promise::Delay => [format!("delay = \"{}ms\"", DELAY * 1e3), String::new()],
        Promise::Nothing => [String::new(), String::new()],
    };
    let workers = DIFFERENT.workers;
    let upstream = format!(
        "{GATEWAY}\n[upstream.server]\naddress = \"{{upstream}}\"\ndecides_itself = true\n\
         max_connections = {}\ncapacity = {{ workers = {workers} }}\n",
        wider * workers
    );
    let class = format!("[[site.class]]\nname = \"first\"\nmatch = {{ path = \"/first/*\" }}\n{first}\n");
    let rate = 0.5 * TWICE * DIFFERENT.capacity();
    let flow = |path| Flow::new("shop.test", path, &[(40.0, rate)]);
    Scene {
        name: promise.name(),
        configuration: upstream + &site("shop", &others) + &class,
        without: None,
        model: DIFFERENT,
        nginx: false,
        slow: None,
        flows: vec![flow("/first/page"), flow("/page")],
        patience: Some(Duration::from_secs(4)),
        figures: vec![
            Figure::new("the others of the first", 1.8..=2.2, |flown| {
                flown[1].during(10.0..39.0).mean() / flown[0].during(10.0..39.0).mean()
            }),
            Figure::new("the first's mean, of 100 ms", 0.3..=1.1, |flown| {
                flown[0].during(10.0..39.0).mean() / DELAY
            }),
            Figure::new("U by the pages served", 0.8..=0.9, |flown| {
                let rate = |flow: usize| flown[flow].during(10.0..39.0).rate(DIFFERENT.light_cost());
                (rate(0) + rate(1)) / DIFFERENT.capacity()
            }),
            Figure::new("full pages", 0.2..=0.4, |flown| {
                0.5 * (flown[0].during(10.0..39.0).full() + flown[1].during(10.0..39.0).full())
            }),
            Figure::new("turned away", 0.0..=0.03, |flown| {
                let away = |flow: usize| flown[flow].during(10.0..39.0).part(End::Rejected);
                0.5 * (away(0) + away(1))
            }),
            Figure::new("failed", 0.0..=0.0, |flown| {
                flown.iter().map(|flow| flow.all().count(End::Lost)).sum::<usize>() as f64
            }),
        ],
    }
}

/// What a gateway keeps before a server that decides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Response times in the ratio 1 : 2.
    Ratio,
    /// A mean of the first class.
    Delay,
    /// Nothing.
    Nothing,
}

impl Promise {
    fn name(self) -> &'static str {
        match self {
            Promise::Ratio => "a ratio of 1 : 2 before the module, at twice the capacity (PR 4)",
            Promise::Delay => "a mean of 100 ms before the module, at twice the capacity (QM 3)",
            Promise::Nothing => "no promise before the module, at twice the capacity",
        }
    }
}

impl Scene {
    /// Runs it in real time with the gateway before a prefork server that decides itself, both with the same file; all of them,
    /// still there, and what became of its flows.
    pub fn before_inside(&self, page: &Path, patience: Duration) -> (Plimsoll, Control, Apache, Vec<Flown>) {
        let file = |upstream| self.with_status().file(upstream, false);
        // Nothing but the gateway reads the address.
        let control = Control::start(&file(SocketAddr::from(([127, 0, 0, 1], 9))));
        let apache = Apache::deciding(page, self.model, self.places(), &control);
        let gateway = Plimsoll::run(&file(apache.upstream));
        let flown = drive(gateway.address, &self.flows, patience, || ());
        gateway.wait_for_metric("plimsoll_in_flight", 0.0);
        (gateway, control, apache, flown)
    }

    /// The scene before Apache's own listen queue.
    pub fn on_prefork(self) -> Scene {
        Scene { model: ServerModel { queue: LISTEN_QUEUE, ..self.model }, ..self }
    }

    /// The places that the file gives the server.
    fn places(&self) -> u32 {
        let line = self.configuration.lines().find_map(|line| line.strip_prefix("max_connections = "));
        line.and_then(|number| number.parse().ok()).unwrap_or(self.model.workers)
    }

    /// The scene with `/server-status` exempt at each site.
    fn with_status(&self) -> Scene {
        let exempt = "[[site]]\nexempt = [{ path = \"/server-status\" }]\n";
        Scene { configuration: self.configuration.replace("[[site]]\n", exempt), ..self.clone() }
    }

    /// The same, with a gate as wide as that of a server that decides itself.
    pub fn for_module(&self) -> Scene {
        let mut scene = self.with_status();
        let line = |line: &str| match line {
            line if line.starts_with("max_connections") => format!("max_connections = {WIDE}\n"),
            line => format!("{line}\n"),
        };
        scene.configuration = scene.configuration.lines().map(line).collect();
        scene
    }

    /// Runs it in real time on a prefork server that decides itself: the controller and the server, still there, and what
    /// became of its flows.
    pub fn inside(&self, page: &Path, patience: Duration) -> (Control, Apache, Vec<Flown>) {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let control = Control::start(&self.for_module().file(anywhere, false));
        let apache = Apache::deciding(page, self.model, self.model.workers, &control);
        let flown = drive(apache.direct, &self.flows, patience, || ());
        (control, apache, flown)
    }

    /// Runs it in real time on the same server as it is, without control.
    pub fn bare(&self, page: &Path, patience: Duration) -> (Apache, Vec<Flown>) {
        let apache = Apache::holding(page, self.model);
        let flown = drive(apache.direct, &self.flows, patience, || ());
        (apache, flown)
    }

    /// The server's utilization by its own clock in that part of the scene in which its figures are steady.
    pub fn utilization(&self, apache: &Apache) -> f64 {
        let whole = self.lasts().as_secs_f64();
        apache.utilization(self.model.workers, STEADY.start * whole..STEADY.end * whole)
    }

    /// Runs it in real time on the same server behind the gateway.
    pub fn behind_gateway(&self, page: &Path, patience: Duration) -> (Apache, Vec<Flown>) {
        let apache = Apache::holding(page, self.model);
        let gateway = Plimsoll::run(&self.file(apache.upstream, false));
        let flown = drive(gateway.address, &self.flows, patience, || ());
        gateway.wait_for_metric("plimsoll_in_flight", 0.0);
        (apache, flown)
    }
}
