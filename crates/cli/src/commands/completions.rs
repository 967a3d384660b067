//! `plimsoll completions SHELL`: what a shell needs to complete this command line.

use crate::args;
use crate::output::failure::Failure;
use crate::output::text;

/// Prints it.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(), "plimsoll", &mut script);
    text::print(String::from_utf8_lossy(&script).trim_end())
}
