//! The workload file of `plimsoll simulate`: arrivals, clients, and the truth about the servers.
//!
//! Comes in: the text of a workload, and the promises of a configuration, from which workers, costs and bandwidth are
//! taken that the workload leaves out. Goes out: the plain structs of `plimsoll_sim::workload`. A level's cost that
//! neither file gives is assumed and the assumption reported ([`Understood::assumptions`]). A request's time is never
//! assumed, because every figure of a run hangs on it: its absence is an error, or, for logs whose lines may bring their
//! own times, a question left to the reader of the lines ([`Understood::untimed`]). A rate may be a multiple of the
//! capacity (`load`): what the stream's own pages take at full quality of the plant that is full first.

mod arrivals;
mod bursts;
pub(crate) mod keys;
mod laws;
mod plants;
mod requests;
mod resolve;
mod truth;
mod values;
mod versions;

use crate::diagnostic::Diagnostics;
use plimsoll_core::promises::Promises;
use plimsoll_sim::workload::{Arrivals, Clients, Content, Input, LogFormat, Replay, Stream, Workload};
use std::path::Path;

/// What a workload file means, and what had to be added to it.
#[derive(Clone, Debug, Default)]
pub struct Understood {
    /// For the simulator.
    pub workload: Workload,
    /// What was assumed because neither file says it, a sentence each.
    pub assumptions: Vec<String>,
    /// The plants whose service time is not given. They are sound only if each line of the logs brings its
    /// own service time; a run where one does not must end with [`Untimed::help`].
    pub untimed: Vec<Untimed>,
}

/// A plant whose service time is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untimed {
    /// Which: an index into [`Promises::plants`].
    pub plant: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead, and where.
    pub help: String,
}

/// Reads a workload for these promises. `name` is the file's name as the user gave it: it stands in diagnostics, and
/// relative paths of logs and counts are taken from its folder.
///
/// # Errors
/// All that is wrong with the file, at once.
pub fn parse_workload(source: &str, name: &str, promises: &Promises) -> Result<Understood, Diagnostics> {
    parse_workload_as(source, name, promises, Reading::default())
}

/// How a workload file is read where it is not all that there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// An access log in place of the file's streams, which may then be absent.
    pub log: Option<(&'a Path, Replay)>,
    /// The file was written for another configuration, with which this one is compared: that this one has other sites,
    /// levels and hosts is no error then. Servers must have the same names all the same.
    pub compared: bool,
}

/// Reads a workload for these promises in the given way. Else as [`parse_workload`].
///
/// # Errors
/// All that is wrong with the file, at once.
pub fn parse_workload_as(
    source: &str,
    name: &str,
    promises: &Promises,
    reading: Reading<'_>,
) -> Result<Understood, Diagnostics> {
    crate::syntax::understand(source, name, |file: &keys::WorkloadKeys, findings| {
        Some(resolve::resolve(file, resolve::Given { file_name: name, promises, reading }, findings))
    })
}

/// An access log without any workload file: servers and levels are as the promises say.
pub fn replay(log: &Path, replay: Replay, promises: &Promises) -> Understood {
    let plants = plants::as_promised(promises);
    let (versions, mut assumptions) = versions::as_promised(promises);
    assumptions.extend(plants::guessed_workers(promises));
    let truth = truth::Truth { promises, plants: &plants };
    let untimed = truth.untimed_by_logs().into_iter().map(|plant| truth.untimed(plant)).collect();
    let streams = vec![recorded(log, replay)];
    let plants = plants.into_iter().map(|known| known.plant).collect();
    Understood { workload: Workload { streams, plants, versions, duration: None }, assumptions, untimed }
}

/// An access log as a stream.
fn recorded(log: &Path, replay: Replay) -> Stream {
    Stream {
        name: log.display().to_string(),
        arrivals: Arrivals::Log { input: Input::File(log.to_owned()), format: LogFormat::Auto, replay },
        // A log brings its own pages and clients.
        content: Content::Pages(Vec::new()),
        clients: Clients { count: 1, skew: 1.0, first_address: 0 },
        patience: None,
        retry: None,
    }
}

/// What docs/workload.md says before the keys.
pub(crate) const INTRODUCTION: &str = "\
<!-- Generated from crates/config/src/workload/keys.rs: do not edit. Rewrite it with
     PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated -->
# Workloads

`plimsoll simulate FILE --workload W.toml` runs the configuration FILE in virtual time against a workload: what arrives,
who asks, and what the servers truly are. The gateway under test sees nothing of that truth; it learns from what it
serves, as in life. Start from one of the [examples](../examples/workloads):

| file | shows |
|---|---|
| [step.toml](../examples/workloads/step.toml) | three times the load that the server carries |
| [bursts.toml](../examples/workloads/bursts.toml) | a calm stream, a ramp, and short bursts on top |
| [slow-server.toml](../examples/workloads/slow-server.toml) | a server that slows down, stands still and fails; clients that give up and come back |
| [heavy-tails.toml](../examples/workloads/heavy-tails.toml) | self-similar arrivals, sizes with a heavy tail, a network link |
| [nasa-like.toml](../examples/workloads/nasa-like.toml) | a site's busy hours by hand, and in its comments how to replay recorded counts or a log |
| [two-sites.toml](../examples/workloads/two-sites.toml) | several sites, pages and servers |
| [deadlines.toml](../examples/workloads/deadlines.toml) | cheap and dear requests, half as many again as the server can do |
| [delays.toml](../examples/workloads/delays.toml) | classes with promised response times in a crowd; a server whose workers are to be found |
| [demo.toml](../examples/workloads/demo.toml) | the server and the visitors of `plimsoll demo` |

An editor completes keys and shows their meaning if the file begins with
`#:schema ./plimsoll-workload.schema.json`, the path of what `plimsoll schema workload` prints.

The smallest file says how much comes, for how long, and what a request takes of the server:

```toml
duration = \"60s\"

[[stream]]
load = 3.0                  # three times what the server carries

[plant.app]                 # the upstream `app` of the configuration
service = \"40ms\"            # one worker's time for a request
```

What the file does not say is taken from the configuration: a server's workers, costs and bandwidth, a level's cost.
What a request takes must be known from one of the two. A level's cost that neither knows is assumed, and the simulation
says so.

## How values are written

- A *duration* has a unit: ns, us, ms, s, min (or m), h, d. `\"250ms\"`, `\"10s\"`. A *time* counts from the beginning, `\"0s\"`.
- A *size* has a unit: B, kB, MB, GB, TB by thousands; KiB, MiB, GiB, TiB by 1024. `\"64 KiB\"`.
- A *rate of requests* says per what: /s, /min, /h, /d. `\"500/s\"`.
- The *rate* of a link has a unit: bit/s, kbit/s, Mbit/s, Gbit/s, or a size per second. `\"100 Mbit/s\"`.
- *One or a list* takes a single value or several.

";
