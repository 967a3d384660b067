//! `plimsoll manual FOLDER`: the manual pages.

use crate::args;
use crate::output::failure::Failure;
use std::path::Path;

/// Writes them: one of the program, one of each command.
pub(crate) fn manual(folder: &Path) -> Result<(), Failure> {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(args::definition(), folder));
    written.map_err(|error| Failure::Failed(format!("cannot write to {}: {error}", folder.display())))
}
