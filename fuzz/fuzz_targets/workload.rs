//! Any text: a workload or diagnostics, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let configuration = include_str!("../../examples/one-site.toml");
    let Ok(configuration) = plimsoll_config::parse(configuration, "one-site.toml") else { unreachable!() };
    if let Err(diagnostics) = plimsoll_config::parse_workload(text, "fuzz.toml", &configuration.promises) {
        assert!(!diagnostics.to_string().is_empty());
    }
});
