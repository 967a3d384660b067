//! `plimsoll check FILE`: everything that is wrong with a configuration, or the plan that it makes.

use crate::args::{CheckArguments, source};
use crate::output::failure::Failure;
use crate::output::{json, plan};
use crate::service::own_listeners;

/// Checks the file, and that no upstream is this gateway on this machine. Other names, folders and ports are left to `run`,
/// which may be on another machine.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let configuration = source::read(&arguments.file)?;
    own_listeners::refuse(&configuration)?;
    json::print_or(arguments.json, &plan::facts(&configuration), || {
        format!("{} is right.\n\n{}", arguments.file.display(), plan::text(&configuration))
    })
}
