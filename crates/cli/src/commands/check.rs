//! `plimsoll check FILE`: prints everything that is wrong with a configuration, or its plan.

use crate::args::{CheckArguments, source};
use crate::output::failure::Failure;
use crate::output::{json, plan};
use crate::service::{certificates, kept_files, log, own_listeners, resolve};

/// Checks the file, the certificates, tokens and keys that it names, and that no upstream is this gateway on this machine.
/// Other names and missing folders give only warnings, and ports are not tried, because `run` may be on another machine.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let configuration = source::read(&arguments.file)?;
    own_listeners::refuse(&configuration)?;
    kept_files::refuse(&configuration, &arguments.file, None)?;
    let certificates = certificates::check(&configuration)?;
    resolve::admin_tokens(&configuration)?;
    resolve::signed(&configuration)?;
    let mut warnings = certificates::warnings(&certificates, &configuration.promises);
    warnings.extend(resolve::missing_here(&configuration));
    for warning in &warnings {
        log::tell(format_args!("warning: {warning}"));
    }
    json::print_or(arguments.json, &plan::facts(&configuration), || {
        format!("{} is right.\n\n{}", arguments.file.display(), plan::text(&configuration))
    })?;
    let count = warnings.len() + plan::warnings(&configuration).len();
    if arguments.strict && count > 0 {
        let what = if count == 1 { "a warning".to_owned() } else { format!("{count} warnings") };
        return Err(Failure::Failed(format!(
            "{} has {what}, which `--strict` does not let pass",
            arguments.file.display()
        )));
    }
    Ok(())
}
