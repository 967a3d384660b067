//! What `agent` takes.

use super::{Command, next, no_file, only_file, unknown_option, wrong};
use crate::args::help::{self, Topic};
use crate::output::failure::Failure;
use lexopt::{Arg, Parser};
use std::path::PathBuf;

/// `plimsoll agent FILE`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AgentArguments {
    pub(crate) file: PathBuf,
    pub(crate) check: bool,
    pub(crate) dry_run: bool,
    pub(crate) restore: bool,
    pub(crate) json: bool,
}

pub(super) fn agent(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Agent;
    let (mut file, mut arguments) = (None, AgentArguments::default());
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("check") => arguments.check = true,
            Arg::Long("dry-run") => arguments.dry_run = true,
            Arg::Long("restore") => arguments.restore = true,
            Arg::Long("json") => arguments.json = true,
            Arg::Value(value) => only_file(&mut file, value, TOPIC)?,
            option => return Err(unknown_option(&option, TOPIC)),
        }
    }
    if arguments.restore && (arguments.check || arguments.dry_run) {
        return Err(wrong(
            "`--restore` changes something; `--check` and `--dry-run` do not: one of them",
            TOPIC,
        ));
    }
    arguments.file = file.ok_or_else(|| no_file(TOPIC))?;
    Ok(Command::Agent(arguments))
}
