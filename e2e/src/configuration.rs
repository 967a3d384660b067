//! The configurations that the tests share. `{upstream}` stands for the server's address, `{mode}` for what the controller does.

use crate::model::{LIGHT_TREE, SLOW_PAGES};
use std::net::SocketAddr;

/// Listeners of its own choice, and one upstream without levels.
pub fn plain() -> String {
    let workers = SLOW_PAGES.workers;
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\nmode = \"{{mode}}\"\n\n\
         [upstream.server]\naddress = \"{{upstream}}\"\nmax_connections = {workers}\n\
         capacity = {{ workers = {workers} }}\n"
    )
}

/// The same with a page at two levels, and the level named by every answer.
pub fn two_levels() -> String {
    plain()
        + &format!(
            "\n[report]\nwhen = \"always\"\n\n[[site]]\nname = \"site\"\n\n\
             [[site.level]]\nname = \"light\"\nprefix = \"{LIGHT_TREE}\"\n\n[[site.level]]\nname = \"full\"\n"
        )
}

/// One of these files before a server, with control on.
pub fn before(upstream: SocketAddr, file: &str) -> String {
    file.replace("{upstream}", &upstream.to_string()).replace("{mode}", "control")
}
