//! The configurations that the tests share. `{upstream}` stands for the server's address, `{mode}` for what the controller
//! does.

use crate::model::{LIGHT_TREE, SLOW_PAGES, ServerModel};
use std::net::SocketAddr;

/// Listeners at ports of the gateway's own choice.
pub(crate) const GATEWAY: &str =
    "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n";
/// Every answer names its level.
const REPORT: &str = "\n[report]\nwhen = \"always\"\n";

/// One upstream without levels.
pub fn plain() -> String {
    upstream(SLOW_PAGES.workers, "")
}

/// The same with a page at two levels, and the level named by every answer.
pub fn two_levels() -> String {
    plain() + REPORT + &site("site", "")
}

/// A gateway that knows what the pages of this model cost; every answer names its level.
pub(crate) fn priced(model: ServerModel) -> String {
    upstream(model.workers, &format!(", {}", model.costs())) + REPORT
}

/// One upstream of so many workers, and what else is known of its capacity.
fn upstream(workers: u32, known: &str) -> String {
    format!(
        "{GATEWAY}mode = \"{{mode}}\"\n\n[upstream.server]\naddress = \"{{upstream}}\"\n\
         max_connections = {workers}\ncapacity = {{ workers = {workers}{known} }}\n"
    )
}

/// A site of two levels. `more` says its host, if it has one, and its other keys.
pub fn site(name: &str, more: &str) -> String {
    format!(
        "\n[[site]]\nname = \"{name}\"\n{more}\n\
         [[site.level]]\nname = \"light\"\nprefix = \"{LIGHT_TREE}\"\n\n[[site.level]]\nname = \"full\"\n"
    )
}

/// A site with a contract for a part of the server.
pub fn contract(name: &str, part: f64, model: ServerModel) -> String {
    let rate = part * model.capacity();
    site(name, &format!("host = \"{name}.test\"\nguarantee = {{ rate = \"{rate}/s\" }}\n"))
}

/// One of these files before a server, with control on.
pub fn before(upstream: SocketAddr, file: &str) -> String {
    file.replace("{upstream}", &upstream.to_string()).replace("{mode}", "control")
}
