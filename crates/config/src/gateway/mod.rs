//! The configuration: the promises, and the settings by which the gateway keeps them.
//!
//! Input: the text of a configuration. Each section's table of keys stands in the file that resolves the section. Output:
//! promises for the engine, and [`Gateway`]: the gateway's own settings ([`plimsoll_gateway::settings`], where their defaults
//! are too), and what becomes settings only at the start and at each reload, when upstreams are looked up.

mod access_log;
pub(crate) mod addresses;
mod classes;
mod control;
mod deadlines;
pub(crate) mod file;
mod headers;
pub(crate) mod health_check;
mod hosts;
pub(crate) mod http;
mod kernel;
mod levels;
mod log;
mod metrics;
pub(crate) mod plants;
mod response_times;
mod sites;
mod tls;
mod traces;
mod values;
mod workers;

use crate::agent::HttpUrl;
pub use log::{LeastLevel, LineFormat, Log};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{FilesSettings, Settings, UpstreamSettings};
use std::path::PathBuf;

/// The settings of the gateway, apart from the promises.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// The gateway's settings without `backends` and the seed.
    pub settings: Settings,
    /// The backend of each plant of the promises, in their order.
    pub backends: Vec<Backend>,
    /// The file that keeps the rate forecasts.
    pub rate_forecast: Option<PathBuf>,
    /// The seed of the client hash, if the file has one.
    pub seed: Option<u64>,
    /// Where the learned state is kept.
    pub state: StatePlace,
    /// The file of the keys by which headers and cookies are signed.
    pub signing_keys: Option<PathBuf>,
    /// The file of the admin listener's tokens.
    pub admin_tokens: Option<PathBuf>,
    /// The operator's log.
    pub log: Log,
    /// Warnings about valid but surprising keys that need only the file to be seen.
    pub warnings: Vec<String>,
}

/// Where the learned state is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StatePlace {
    /// The state is not kept.
    Nowhere,
    /// In a file of the configuration's own name.
    #[default]
    BesideFile,
    /// In the file at this path.
    At(PathBuf),
}

/// The backend of a plant, before names are looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// One server, or several that are equal.
    Upstream {
        /// `host:port` of each server, or `unix:` and a path; all are equal members of one plant.
        addresses: Vec<String>,
        /// The upstream's settings without the addresses.
        settings: Box<UpstreamSettings>,
        /// The page on which the server says how many workers it has.
        workers_from: Option<HttpUrl>,
        /// How often the names among the addresses are looked up again; `None`: only at the start and at a reload.
        look_up_every: Option<Duration>,
    },
    /// A folder that the gateway serves itself. A relative path is taken from the configuration file's own folder.
    Files(FilesSettings),
}
