//! `plimsoll adapt SITE OUT`: lighter copies of a site.

pub(crate) mod policy;
mod text;
pub(crate) mod watch;

use crate::args::AdaptArguments;
use crate::output::failure::Failure;
use crate::output::json;
use crate::service::signals::{Interrupt, Signals};
use plimsoll_content::{Job, Level};
use plimsoll_sim::workload::Input;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use watch::SiteWatcher;

/// Makes them.
pub(crate) fn adapt(arguments: &AdaptArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen(Signals::block()?)?;
    let (policy, file) = policy::policy(&arguments.policy)?;
    let AdaptArguments { site, out, mut levels, snapshots, sparse, .. } = arguments.clone();
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
    let job = Job { site, out, levels, policy, views, snapshots, sparse };
    let bar = SiteWatcher::new("adapt", &interrupt);
    let adapted = plimsoll_content::adapt(&job, &bar).map_err(failed);
    drop(bar);
    match arguments.json {
        true => json::print(&text::AdaptationReport::of(arguments, &adapted?)),
        false => crate::output::text::print(text::text(arguments, &adapted?).trim_end()),
    }
}

/// Requests by path, of an access log.
pub(crate) fn views(log: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let read = plimsoll_sim::views(&Input::File(log.to_owned()));
    let (views, notes) =
        read.map_err(|error| Failure::Input(format!("cannot read {}: {error}", log.display())))?;
    if let Some((line, text, wrong)) = notes.first_skipped {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
        eprintln!(
            "{}: {} lines were skipped; the first is line {line}: {wrong}: {shown}",
            log.display(),
            notes.skipped
        );
    }
    Ok(views)
}

/// What a user can mend is the user's input.
pub(crate) fn failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::Input(format!("error: {error}")),
        io::ErrorKind::Interrupted => Failure::Failed("stopped; nothing was changed".to_owned()),
        _ => Failure::Failed(format!("error: {error}; nothing was changed")),
    }
}
