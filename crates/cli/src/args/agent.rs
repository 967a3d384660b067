//! The options of `agent`.

use clap::Args;
use std::path::PathBuf;

const AFTER: &str = "\
The agent stays outside the path of requests. It probes the server and reads its counters; under load it \
lets the server take a lighter content tree: by a link for everybody, or, where the server can choose by \
client, for as many clients as it takes. When the load has gone everybody gets full quality again.

At the start it looks at everything: the trees, the link or file that it will exchange, the probe, the \
counters, and whether nginx reads what it writes. On SIGTERM, SIGINT (Ctrl-C) or a failure of its own it \
restores full quality, unless FILE says `on_exit = \"keep\"`. docs/agent.md says what to write into nginx \
and Apache.

Example:
  plimsoll agent examples/agent.toml --dry-run
  plimsoll agent /etc/plimsoll/agent.toml

Exit codes: 0 stopped as told, 1 failed, 2 FILE or something that it names is wrong.";

/// Stand beside an unmodified nginx or Apache, and choose the version that it serves
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(after_help = AFTER)]
pub(crate) struct AgentArguments {
    /// The agent's file; docs/agent-keys.md has its keys
    pub(crate) file: PathBuf,
    /// Look at everything, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// Decide and say so, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Full quality for everybody, and end; makes the link or file if there is none yet (systemd: `ExecStopPost=`, for
    /// after a kill)
    #[arg(long, conflicts_with_all = ["check", "dry_run"])]
    pub(crate) restore: bool,
    /// Print the figures of each period as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}
