//! `plimsoll adapt SITE OUT`: lighter copies of a site. Input: the site's folder and how it is adapted. Output: a tree for each
//! level, and a report of what was made.

mod facts;
pub(crate) mod policy;
mod snapshot;
pub(crate) mod watch;

use crate::args::{AdaptArguments, source};
use crate::output::failure::Failure;
use crate::output::units::printable;
use crate::output::{json, text};
use crate::service::log::tell;
use crate::service::signals::{Interrupt, Signals};
use facts::AdaptReport;
use plimsoll_content::{Job, Level};
use plimsoll_sim::workload::Input;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use watch::SiteWatcher;

/// Makes the trees.
pub(crate) fn adapt(arguments: &AdaptArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen(Signals::block()?)?;
    let job = job(arguments)?;
    let watcher = SiteWatcher::new("adapt", &interrupt);
    let adapted = plimsoll_content::adapt(&job, &watcher, &snapshot::fetch).map_err(failed);
    drop(watcher);
    let adapted = adapted?;
    let report = AdaptReport::of(&adapted);
    match arguments.json {
        true => json::print(&report),
        false => text::print(report.text(&adapted, &job.out).trim_end()),
    }
}

/// The job, from the options, then from the policy's file, then from the defaults.
fn job(arguments: &AdaptArguments) -> Result<Job, Failure> {
    let (policy, file) = policy::policy(&arguments.policy)?;
    let AdaptArguments { site, out, mut levels, snapshots, sparse, force, .. } = arguments.clone();
    if levels.is_empty() {
        levels = file.levels.iter().filter_map(|name| Level::named(name)).collect();
    }
    if levels.is_empty() {
        levels = Level::ALL.to_vec();
    }
    levels.sort_unstable();
    levels.dedup();
    let sparse = sparse || file.sparse.unwrap_or_default();
    let snapshots = file.snapshots.into_iter().chain(snapshots).collect();
    let views = arguments.log.as_deref().map(views).transpose()?;
    Ok(Job { site, out, levels, policy, views, snapshots, sparse, force })
}

/// The number of requests for each path in an access log.
pub(crate) fn views(log: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let read = plimsoll_sim::views(&Input::File(log.to_owned()));
    let (views, notes) = read.map_err(|error| source::unreadable(&error))?;
    if let Some((line, text, wrong)) = notes.first_skipped {
        let shown = printable(&text);
        tell(format_args!(
            "{}: {} lines were skipped; the first is line {line}: {wrong}: {shown}",
            log.display(),
            notes.skipped
        ));
    }
    Ok(views)
}

/// The failure for an error of the content crate. An error that the user can mend counts as wrong input.
pub(crate) fn failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::Input(format!("error: {error}")),
        io::ErrorKind::Interrupted => Failure::Failed("stopped; nothing was changed".to_owned()),
        _ => Failure::Failed(format!("error: {error}; nothing was changed")),
    }
}
