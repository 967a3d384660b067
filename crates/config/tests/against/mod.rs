//! The configuration that a workload is made for: the one that its first comment names, `plimsoll simulate FILE`.

use plimsoll_config::{is_agent, parse, parse_agent};
use plimsoll_core::promises::Promises;
use std::path::Path;

/// The promises of that configuration.
pub(crate) fn promises_for(source: &str) -> Promises {
    let words: Vec<&str> = source.split_whitespace().collect();
    let command =
        words.windows(2).find(|pair| pair[0] == "simulate").expect("a workload names its configuration");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(command[1]);
    let configuration =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if is_agent(&configuration) {
        return parse_agent(&configuration, command[1]).expect("it is right").promises();
    }
    parse(&configuration, command[1]).unwrap_or_else(|diagnostics| panic!("{diagnostics}")).promises
}
