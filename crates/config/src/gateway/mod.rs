//! The configuration: what was promised, and how the gateway keeps it.
//!
//! Comes in: the text of a configuration (`keys` has the table, `resolve` the meaning). Goes out: promises for the engine,
//! and [`Gateway`]: the gateway's own settings ([`plimsoll_gateway::settings`], where their defaults are too), filled, and
//! what only becomes settings at the start and at each reload, since upstreams are named and looked up then.

pub(crate) mod addresses;
pub(crate) mod http;
pub(crate) mod keys;
pub(crate) mod resolve;
mod values;

use crate::agent::HttpUrl;
use plimsoll_gateway::settings::{FilesSettings, Settings};
use std::path::PathBuf;

/// What a file says of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// The settings, all but their `backends`.
    pub settings: Settings,
    /// What serves, one per plant of the promises, in their order.
    pub backends: Vec<Backend>,
    /// The file that keeps what was learned of how rates go on.
    pub trends: Option<PathBuf>,
}

/// What serves a plant's requests, before names are looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// Servers that speak HTTP/1.1.
    Upstream {
        /// `host:port` of each; equal members of one plant.
        addresses: Vec<String>,
        /// The page on which the server says how many workers it has.
        workers_from: Option<HttpUrl>,
    },
    /// A folder that the gateway serves itself. A relative path is taken from the configuration file's own folder.
    Files(FilesSettings),
}
