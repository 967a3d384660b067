//! Descriptions of Plimsoll's own files and options: `plimsoll schema`, `completions` and `manual`.

use crate::args::{self, FileFormat};
use crate::output::failure::Failure;
use crate::output::text;
use std::path::Path;

/// Prints the JSON schema of a file that Plimsoll reads.
pub(crate) fn schema(of: FileFormat) -> Result<(), Failure> {
    let format = match of {
        FileFormat::Configuration => plimsoll_config::FileFormat::Configuration,
        FileFormat::Workload => plimsoll_config::FileFormat::Workload,
        FileFormat::Agent => plimsoll_config::FileFormat::Agent,
        FileFormat::Adaptation => plimsoll_config::FileFormat::Adaptation,
    };
    text::print(format.schema().trim_end())
}

/// Prints what a shell needs to complete this command line.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::definition(), "plimsoll", &mut script);
    text::print(String::from_utf8_lossy(&script).trim_end())
}

/// Writes the manual pages: one of the program, one of each command.
pub(crate) fn manual(folder: &Path) -> Result<(), Failure> {
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(args::definition(), folder));
    written.map_err(|error| {
        let folder = folder.display();
        Failure::Failed(format!(
            "cannot write to {folder}: {error}\nName a folder, which is made if it is not there."
        ))
    })
}
