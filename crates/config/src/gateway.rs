//! What a file says of the gateway: the gateway's own settings, filled, and what only becomes settings when it starts.
//!
//! The settings and their defaults are types of the gateway ([`plimsoll_gateway::settings`]). What is here besides them
//! needs more than the file: upstreams are named, and looked up at the start and at each reload.

pub(crate) mod addresses;
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
