//! Any text: a configuration or diagnostics, never a panic; and what parses is valid for the engine.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match plimsoll_config::parse(text, "fuzz.toml") {
    Ok(configuration) => assert_eq!(configuration.promises.validate(), Ok(())),
    Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
});
