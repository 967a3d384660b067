//! `plimsoll schema`: the JSON schema of a file that Plimsoll reads.

use crate::args::FileFormat;
use crate::output::failure::Failure;
use crate::output::text;

/// Prints it.
pub(crate) fn schema(of: FileFormat) -> Result<(), Failure> {
    let schema = match of {
        FileFormat::Configuration => plimsoll_config::json_schema(),
        FileFormat::Workload => plimsoll_config::workload_schema(),
        FileFormat::Agent => plimsoll_config::agent_schema(),
        FileFormat::Adaptation => plimsoll_config::adaptation_schema(),
    };
    text::print(schema.trim_end())
}
