//! `plimsoll check FILE`: everything that is wrong with a configuration, or the plan that it makes.

use crate::args::{CheckArguments, source};
use crate::output::failure::Failure;
use crate::output::plan::{self, Plan};
use crate::output::{json, text};

/// Checks the file alone. Names, folders and ports are left to `run`, which may be on another machine.
pub(crate) fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let configuration = source::read(&arguments.file)?;
    if arguments.json {
        json::print(&Plan::of(&configuration))
    } else {
        let name = arguments.file.display();
        text::print(format_args!("{name} is right.\n\n{}", plan::text(&configuration).trim_end()))
    }
}
