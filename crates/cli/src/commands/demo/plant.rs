//! The demo's server and its visitors, whose every property is known, so that the gateway can be judged.
//!
//! The sizes follow from noise. With Poisson arrivals the utilization of a period varies by chance: at three times the capacity
//! C of full pages its standard deviation is `sqrt(0.53 / C)` for a period of one second, so 2000 pages per second give 0.016,
//! and the mean of five periods stays within 0.02 of a perfect set point. 256 workers are Apache's default. Many workers and
//! long service times make the server cheap to run, because its workers sleep instead of working. They also make a delay of
//! this machine small beside the service time: the gateway cannot tell a millisecond of delay on the way from service, and s
//! workers at R requests a second show it as `R / s` milliseconds' worth of utilization, 0.02 here (with 128 workers of half
//! the service time it would be 0.05).

use crate::args::source;
use crate::output::failure::Failure;
use crate::service::resolve;
use plimsoll_config::{Backend, Configuration, parse_workload};
use plimsoll_core::promises::{Plant, Promises};
use plimsoll_gateway::Gateway;
use plimsoll_gateway::settings::UpstreamSettings;
use plimsoll_load::{Cost, OpenLoop, Origin, OriginHandle, OriginSettings, PathClass, Step, Target};
use plimsoll_sim::workload::{Discipline, Workload};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// One worker's time for a full page.
pub(crate) const FULL: Duration = Duration::from_millis(128);
/// r: the cost of a light page over that of a full page.
pub(crate) const LIGHT_COST: f64 = 0.15;
pub(crate) const FULL_BYTES: usize = 16 << 10;
pub(crate) const LIGHT_BYTES: usize = 2 << 10;
/// U*, the set point. The demo's configuration names none, so this is the default.
pub(crate) const SET_POINT: f64 = Plant::LOAD_LINE;
/// T, the control period.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// Requests that may wait beyond the workers, as with Apache's ListenBacklog; further connections are refused.
const LISTEN_QUEUE: usize = 511;
/// A connection without a request is closed after this time. Otherwise every visitor would keep as many connections as
/// its busiest second took, and this machine would run out of sockets.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// A visitor uses no connection that was idle for longer, since the other end might be closing it.
const IDLE: Duration = Duration::from_millis(2500);
/// Visitors of a step, each at an address of its own.
pub(crate) const CLIENTS: u32 = 4000;
/// How long a visitor waits for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server with this many workers, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Server {
    workers: u32,
}

impl Server {
    /// A server that can carry this many full pages per second, rounded to a whole worker.
    pub(crate) fn of_capacity(pages_per_second: u32) -> Server {
        Server { workers: (f64::from(pages_per_second) * FULL.as_secs_f64()).round().max(1.0) as u32 }
    }

    /// Full pages per second that keep every worker busy.
    pub(crate) fn capacity(self) -> f64 {
        f64::from(self.workers) / FULL.as_secs_f64()
    }

    pub(crate) fn start(self) -> Result<OriginHandle, Failure> {
        let light = FULL.mul_f64(LIGHT_COST);
        let cost = Cost::through((FULL_BYTES, FULL), (LIGHT_BYTES, light)).map_err(Failure::Failed)?;
        let classes = vec![PathClass::new("/", FULL_BYTES), PathClass::new("/light/", LIGHT_BYTES)];
        let settings = OriginSettings {
            workers: self.workers,
            queue: LISTEN_QUEUE,
            cost,
            classes,
            keep_alive: KEEP_ALIVE,
            ..OriginSettings::default()
        };
        Origin::start(settings)
            .map_err(|error| Failure::Failed(format!("the demo's server does not start: {error}")))
    }

    /// The configuration of examples/demo.toml, with this many workers; the gateway measures the costs.
    pub(crate) fn configuration(self) -> Result<Configuration, Failure> {
        let file = include_str!("../../../../../examples/demo.toml");
        let mut configuration = source::understand(file, "examples/demo.toml")?;
        for plant in &mut configuration.promises.plants {
            (plant.workers, plant.max_connections) = (self.workers, self.workers);
        }
        Ok(configuration)
    }

    /// The server and its visitors, as the simulator takes them: examples/workloads/demo.toml, with this many workers.
    pub(crate) fn workload(self, promises: &Promises) -> Result<Workload, Failure> {
        let file = include_str!("../../../../../examples/workloads/demo.toml");
        let understood = parse_workload(file, "examples/workloads/demo.toml", promises);
        let mut workload = understood.map_err(|all| Failure::Failed(all.to_string()))?.workload;
        for plant in &mut workload.plants {
            plant.discipline = Discipline::Workers(self.workers);
        }
        Ok(workload)
    }

    /// Starts a gateway in front of the server, from a configuration as any other gateway's.
    pub(crate) fn start_gateway(self, address: SocketAddr) -> Result<Gateway, Failure> {
        let mut configuration = self.configuration()?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        configuration.gateway.settings.listen = vec![any.into()];
        configuration.gateway.settings.admin = Some(any);
        let server = Box::new(UpstreamSettings::new(Vec::new()));
        configuration.gateway.backends = vec![Backend::Upstream {
            addresses: vec![address.to_string()],
            settings: server,
            workers_from: None,
            look_up_every: None,
        }];
        let settings = resolve::settings(&configuration)?;
        Gateway::start(settings, &configuration.promises)
            .map_err(|error| Failure::Failed(format!("the demo's gateway does not start: {error}")))
    }
}

/// Visitors in an open loop: they come at their own rate, whether or not their requests are answered.
pub(crate) fn visitors(server: SocketAddr, steps: Vec<Step>, crowd: Crowd) -> OpenLoop {
    let target = Target {
        host: "shop.example".to_owned(),
        level_header: Some("x-plimsoll".to_owned()),
        timeout: PATIENCE,
        ..Target::new(server)
    };
    OpenLoop {
        path: "/page.html".to_owned(),
        clients: crowd.clients,
        first_address: Ipv4Addr::new(127, 16, 0, 1),
        seed: crowd.seed,
        max_sockets: crowd.max_sockets,
        idle_limit: IDLE,
        slot: PERIOD,
        ..OpenLoop::new(target, steps)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// The number of visitors, each at an address of its own.
    pub(crate) clients: u32,
    pub(crate) seed: u64,
    pub(crate) max_sockets: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sim::workload::{Arrivals, Content, Version};

    #[test]
    fn the_files_mean_this_server_and_these_visitors() {
        let server = Server::of_capacity(2000);
        let Configuration { promises, gateway } = server.configuration().unwrap();
        let plant = &promises.plants[0];
        assert_eq!((plant.workers, plant.max_connections, plant.set_point), (256, 256, SET_POINT));
        assert_eq!((plant.costs, promises.control.period), (None, PERIOD));
        assert_eq!(gateway.settings.timeouts.keep_alive, KEEP_ALIVE);
        assert_eq!(gateway.backends.len(), 1);

        let workload = server.workload(&promises).unwrap();
        let (plant, stream) = (&workload.plants[0], &workload.streams[0]);
        assert_eq!(plant.discipline, Discipline::Workers(256));
        assert_eq!((plant.service, plant.service_per_byte, plant.listen_queue), (FULL, 0.0, LISTEN_QUEUE));
        let light = Version { cost: Some(LIGHT_COST), bytes: LIGHT_BYTES as f64 / FULL_BYTES as f64 };
        assert_eq!(workload.versions, [[light, Version::FULL]]);
        assert_eq!((stream.patience, stream.clients.count), (Some(PATIENCE), CLIENTS));
        let Content::Pages(pages) = &stream.content else { panic!("{:?}", stream.content) };
        assert_eq!((pages.len(), pages[0].bytes), (1, FULL_BYTES as f64));
        let Arrivals::Process { rate, .. } = &stream.arrivals else { panic!("{:?}", stream.arrivals) };
        assert_eq!(rate[0].rate, 3.0 * server.capacity());
    }

    #[test]
    fn a_light_page_costs_its_share_of_2000_full_ones_a_second() {
        assert_eq!(Server::of_capacity(2000), Server { workers: 256 });
        assert_eq!(Server { workers: 256 }.capacity(), 2000.0);
        let cost = Cost::through((FULL_BYTES, FULL), (LIGHT_BYTES, FULL.mul_f64(LIGHT_COST))).unwrap();
        let ratio = cost.of(LIGHT_BYTES).as_secs_f64() / cost.of(FULL_BYTES).as_secs_f64();
        assert!((ratio - LIGHT_COST).abs() < 1e-6, "{ratio}");
    }
}
