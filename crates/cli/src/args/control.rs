//! The options of `control`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const AFTER: &str = "\
The processes of a server that is linked with libplimsoll, such as Apache with mod_plimsoll, attach to the shared \
state: each decides on its own requests, and this one runs the loops over what all of them count. docs/module.md \
says how to begin.

If this process ends, the others go on with the levels that they have, and say so; started again with the same FILE \
it goes on where it was. With another FILE it makes a new state: have the server start its processes anew then \
(`apachectl graceful`). Run it as the user of those processes, since they read and write the state.

With `--admin` it shows what it does, as a gateway: dashboard, `/metrics`, `/status`, `/live`, `/events`, `/incidents` and \
`/healthz`, which answers 503 if the loops stand still. `admin_names` and `admin_token_file` of FILE hold there. The \
address is no key of FILE, since a gateway before the server may have the same FILE and an `admin` of its own.

Example:
  plimsoll control site.toml --state /run/plimsoll/site --admin 127.0.0.1:9091
  plimsoll top 127.0.0.1:9091

Exit codes: 0 stopped as told, 1 failed (an address is in use, say, or the state was removed while it \
ran), 2 FILE or the state is wrong.";

/// Run the loops for a server whose own processes decide (libplimsoll, mod_plimsoll)
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = AFTER)]
pub(crate) struct ControlArguments {
    /// The configuration; what it says of listeners and connections is for the gateway only
    pub(crate) file: PathBuf,
    /// The file of the shared state, in a folder in memory
    #[arg(long, default_value = "/run/plimsoll/state")]
    pub(crate) state: PathBuf,
    /// The most processes that may attach
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) lanes: u16,
    /// Where the dashboard, metrics and status are served, such as 127.0.0.1:9091; nowhere by default
    #[arg(long, value_name = "ADDRESS", value_parser = plimsoll_config::listening_address)]
    pub(crate) admin: Option<SocketAddr>,
}
