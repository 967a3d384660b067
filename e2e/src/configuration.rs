//! The configurations that the tests share.

use crate::page::{LIGHT_TREE, WORKERS};
use std::net::SocketAddr;

/// Listeners of its own choice, and one upstream without levels.
#[must_use]
pub fn plain(upstream: SocketAddr) -> String {
    format!(
        "[gateway]\n\
         listen = \"127.0.0.1:0\"\n\
         admin = \"127.0.0.1:0\"\n\
         threads = 2\n\
         \n\
         [upstream.server]\n\
         address = \"{upstream}\"\n\
         max_connections = {WORKERS}\n\
         capacity = {{ workers = {WORKERS} }}\n"
    )
}

/// The page of the scenarios, with its light tree, and the level told with every answer. `mode` is that of `[gateway]`.
#[must_use]
pub fn two_levels(upstream: SocketAddr, mode: &str) -> String {
    plain(upstream).replacen("threads = 2", &format!("threads = 2\nmode = \"{mode}\""), 1)
        + &format!(
            "\n[report]\n\
             when = \"always\"\n\
             \n\
             [[site]]\n\
             name = \"site\"\n\
             \n\
             [[site.level]]\n\
             name = \"light\"\n\
             prefix = \"{LIGHT_TREE}\"\n\
             \n\
             [[site.level]]\n\
             name = \"full\"\n"
        )
}
