//! The demo's server and its visitors: what is known about them exactly, so that the gateway can be judged.
//!
//! Sizes follow from noise. With Poisson arrivals a period's utilization varies by itself: at three times the capacity
//! C of full pages its standard deviation is `sqrt(0.53 / C)` for a period of one second, so 2000 pages per second
//! give 0.016, and the mean of five periods stays within 0.02 of a perfect set point. Many workers with long service
//! times make such a server cheap to play: the work is waited for, not done. Clients are many, so that no client's
//! level matters.

use crate::failure::Failure;
use crate::{resolve, source};
use plimsoll_gateway::Gateway;
use plimsoll_load::{Cost, OpenLoop, Origin, OriginHandle, OriginSettings, PathClass, Paths, Step, Target};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// s.
pub(crate) const WORKERS: u32 = 128;
/// One worker's time for a full page.
pub(crate) const FULL: Duration = Duration::from_millis(64);
/// r: what a light page costs of a full one.
pub(crate) const LIGHT_COST: f64 = 0.15;
/// Body of a full page.
pub(crate) const FULL_BYTES: usize = 16 << 10;
/// Body of a light page.
pub(crate) const LIGHT_BYTES: usize = 2 << 10;
/// U*.
pub(crate) const SET_POINT: f64 = 0.85;
/// T.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// Simulated visitors, each at an address of its own.
pub(crate) const CLIENTS: u32 = 4000;
/// Requests that wait beyond the workers, as Apache's ListenBacklog has it; more are turned away by a closed door.
const LISTEN_QUEUE: usize = 511;
/// How long a visitor waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// Full pages per second that keep every worker busy.
pub(crate) fn capacity() -> f64 {
    f64::from(WORKERS) / FULL.as_secs_f64()
}

/// A server of its own.
pub(crate) fn origin() -> Result<OriginHandle, Failure> {
    let light = FULL.mul_f64(LIGHT_COST);
    let cost = Cost::through((FULL_BYTES, FULL), (LIGHT_BYTES, light)).map_err(Failure::Failed)?;
    let classes =
        vec![PathClass::new("full", "/", FULL_BYTES), PathClass::new("light", "/light/", LIGHT_BYTES)];
    let settings =
        OriginSettings { workers: WORKERS, queue: LISTEN_QUEUE, cost, classes, ..OriginSettings::default() };
    Origin::start(settings)
        .map_err(|error| Failure::Failed(format!("the demo's server does not start: {error}")))
}

/// A gateway in front of it: from a configuration, as everybody's.
pub(crate) fn gateway(origin: SocketAddr) -> Result<Gateway, Failure> {
    let configuration = source::understand(&configuration(origin), "demo.toml")?;
    let settings = resolve::settings(&configuration)?;
    Gateway::start(settings, &configuration.promises)
        .map_err(|error| Failure::Failed(format!("the demo's gateway does not start: {error}")))
}

/// What an operator would write for this server. Its costs are not in it: the gateway finds them out.
pub(crate) fn configuration(origin: SocketAddr) -> String {
    format!(
        r#"[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"

[report]
when = "always"

[upstream.shop]
address = "{origin}"

[upstream.shop.capacity]
workers = {WORKERS}
load_line = {SET_POINT}

[[site]]
name = "shop"

[[site.level]]
name = "light"
prefix = "/light"

[[site.level]]
name = "full"
"#
    )
}

/// Visitors: an open loop, whatever becomes of them.
pub(crate) fn visitors(server: SocketAddr, steps: Vec<Step>, crowd: Crowd) -> OpenLoop {
    let target = Target {
        host: "shop.example".to_owned(),
        level_header: Some("x-plimsoll".to_owned()),
        timeout: PATIENCE,
        ..Target::new(server)
    };
    OpenLoop {
        paths: Paths::one("/page.html"),
        clients: CLIENTS,
        first_address: Ipv4Addr::new(127, 16, 0, 1),
        seed: crowd.seed,
        max_sockets: crowd.max_sockets,
        slot: PERIOD,
        ..OpenLoop::new(target, steps)
    }
}

/// What may differ between two crowds of visitors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// Determines arrivals and clients.
    pub(crate) seed: u64,
    /// The most sockets that they may open.
    pub(crate) max_sockets: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_right_and_means_this_server() {
        let configuration =
            source::understand(&configuration("127.0.0.1:81".parse().unwrap()), "demo.toml").unwrap();
        let plant = &configuration.promises.plants[0];
        assert_eq!((plant.workers, plant.max_connections, plant.set_point), (WORKERS, WORKERS, SET_POINT));
        assert_eq!(plant.costs, None);
        assert_eq!(configuration.promises.control.period, PERIOD);
    }

    #[test]
    fn a_light_page_costs_its_share_of_2000_full_ones_a_second() {
        assert_eq!(capacity(), 2000.0);
        let cost = Cost::through((FULL_BYTES, FULL), (LIGHT_BYTES, FULL.mul_f64(LIGHT_COST))).unwrap();
        let ratio = cost.of(LIGHT_BYTES).as_secs_f64() / cost.of(FULL_BYTES).as_secs_f64();
        assert!((ratio - LIGHT_COST).abs() < 1e-6, "{ratio}");
    }
}
