//! `plimsoll schema`: the JSON schema of a file that Plimsoll reads.

use crate::args::FileFormat;
use crate::output::failure::Failure;
use crate::output::text;

/// Prints it.
pub(crate) fn schema(of: FileFormat) -> Result<(), Failure> {
    let format = match of {
        FileFormat::Configuration => plimsoll_config::FileFormat::Configuration,
        FileFormat::Workload => plimsoll_config::FileFormat::Workload,
        FileFormat::Agent => plimsoll_config::FileFormat::Agent,
        FileFormat::Adaptation => plimsoll_config::FileFormat::Adaptation,
    };
    text::print(format.schema().trim_end())
}
