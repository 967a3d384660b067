//! `plimsoll check FILE`: everything that is wrong with a configuration, or the plan that it makes.

use crate::args::{CheckArguments, source};
use crate::output::failure::Failure;
use crate::output::{json, plan};
use crate::service::{certificates, log, own_listeners};

/// Checks the file, the certificates that it names, and that no upstream is this gateway on this machine. Other names, folders
/// and ports are left to `run`, which may be on another machine.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let configuration = source::read(&arguments.file)?;
    own_listeners::refuse(&configuration)?;
    let certificates = certificates::check(&configuration)?;
    for warning in certificates::warnings(&certificates, &configuration.promises) {
        log::tell(format_args!("warning: {warning}"));
    }
    json::print_or(arguments.json, &plan::facts(&configuration), || {
        format!("{} is right.\n\n{}", arguments.file.display(), plan::text(&configuration))
    })
}
