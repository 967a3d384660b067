//! `plimsoll check FILE`: everything that is wrong with a configuration, or the plan that it makes.

use crate::args::{CheckArguments, source};
use crate::output::failure::Failure;
use crate::output::{json, plan};

/// Checks the file alone. Names, folders and ports are left to `run`, which may be on another machine.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let configuration = source::read(&arguments.file)?;
    json::print_or(arguments.json, &plan::facts(&configuration), || {
        format!("{} is right.\n\n{}", arguments.file.display(), plan::text(&configuration))
    })
}
