//! Scenes: a configuration, a server and flows of requests, with the figures that are promised.
//!
//! A scene runs in virtual time (`plimsoll simulate` with the same configuration) and in real time (the gateway before a server
//! of the same model). The tests judge every figure in virtual time, where a seed decides, by bounds on both sides, and show
//! that it fails with control off. In real time they judge only what no busy machine can change; `make live` prints both
//! figures side by side.

mod inside;
mod list;
mod papers_server;
mod simulated;
mod simulated_inside;

pub use inside::{PREFORK, Promise, before_module, overload_of};
pub use list::{all, bandwidth, contracts, excess, overload, priorities};
pub use papers_server::{listen_queue, medians, papers_server, payoff, served};

use crate::flows::{Flow, Flown, drive};
use crate::{Nginx, Plimsoll, ServerModel};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What it shows.
    pub name: &'static str,
    /// The gateway's file: `{upstream}` stands for the server's address, `{mode}` for what the controller does.
    pub configuration: String,
    /// The line of the configuration that the twin lacks; without one the twin's controller is off.
    pub without: Option<&'static str>,
    /// The server as it truly is.
    pub model: ServerModel,
    /// A real nginx with an application of that model; else the origin of known capacity in this process.
    pub nginx: bool,
    /// The server takes twice as long in these seconds.
    pub slow: Option<(f64, f64)>,
    /// What arrives.
    pub flows: Vec<Flow>,
    /// How long a client waits; for ever where it is not said.
    pub patience: Option<Duration>,
    /// What is promised.
    pub figures: Vec<Figure>,
}

/// A figure of a scene.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is.
    pub what: &'static str,
    /// How it is taken from what became of the flows.
    pub of: fn(&[Flown]) -> f64,
    /// Where it must be.
    pub bounds: RangeInclusive<f64>,
    /// Where it must be in the twin, which must fail.
    pub twin: Option<RangeInclusive<f64>>,
    /// What its mean over many runs is at least, the error of that mean included: a run alone is too short to tell.
    pub mean: Option<f64>,
}

impl Figure {
    /// A figure that says nothing of the twin.
    pub fn new(what: &'static str, bounds: RangeInclusive<f64>, of: fn(&[Flown]) -> f64) -> Figure {
        Figure { what, of, bounds, twin: None, mean: None }
    }

    /// The same, and what it is at least as a mean over many runs.
    pub fn mean(self, least: f64) -> Figure {
        Figure { mean: Some(least), ..self }
    }

    /// The same, and where it is in the twin.
    pub fn twin(self, bounds: RangeInclusive<f64>) -> Figure {
        Figure { twin: Some(bounds), ..self }
    }
}

impl Scene {
    /// The configuration before a server at `upstream`; of the twin that must fail, if asked for.
    pub fn file(&self, upstream: SocketAddr, twin: bool) -> String {
        let text = self.configuration.replace("{upstream}", &upstream.to_string());
        match self.without {
            Some(key) if twin => {
                let kept = text.lines().filter(|line| !line.contains(key)).map(|line| line.to_owned() + "\n");
                kept.collect::<String>().replace("{mode}", "control")
            }
            _ => text.replace("{mode}", if twin { "off" } else { "control" }),
        }
    }

    /// The scene with all its times multiplied by `part`.
    pub fn shorter(mut self, part: f64) -> Scene {
        for (length, _) in self.flows.iter_mut().flat_map(|flow| &mut flow.steps) {
            *length = length.mul_f64(part);
        }
        self.slow = self.slow.map(|(from, until)| (from * part, until * part));
        self
    }

    /// How long its flows last.
    pub fn lasts(&self) -> Duration {
        self.flows.iter().map(Flow::lasts).max().unwrap_or_default()
    }

    /// Runs it in real time: the gateway, still there, and what became of its flows. `page` is the program of the model's
    /// pages.
    pub fn live(&self, page: &Path, twin: bool, patience: Duration) -> (Plimsoll, Vec<Flown>) {
        let others: Vec<_> =
            self.flows.iter().filter_map(|flow| flow.bytes.map(|bytes| (flow.path, bytes))).collect();
        let nginx = self.nginx.then(|| Nginx::pages(page, self.model));
        let origin = (!self.nginx).then(|| self.model.origin(&others));
        let upstream =
            nginx.as_ref().map(|nginx| nginx.address).or(origin.as_ref().map(|origin| origin.address()));
        let Some(upstream) = upstream else { panic!("a scene has a server") };
        let gateway = Plimsoll::run(&self.file(upstream, twin));
        let began = Instant::now();
        let at = |second: f64| sleep(Duration::from_secs_f64(second).saturating_sub(began.elapsed()));
        let slow_down = |slow: bool| {
            if let Some(nginx) = &nginx {
                nginx.slow_down(slow);
            }
            if let Some(origin) = &origin {
                origin.set_speed(if slow { 0.5 } else { 1.0 });
            }
        };
        let flown = drive(gateway.address, &self.flows, patience, || {
            if let Some((from, until)) = self.slow {
                at(from);
                slow_down(true);
                at(until);
                slow_down(false);
            }
        });
        gateway.wait_for_metric("plimsoll_in_flight", 0.0);
        (gateway, flown)
    }
}
