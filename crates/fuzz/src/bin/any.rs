//! The program of cargo-fuzz (`make fuzz`): it runs the target that the variable `TARGET` names.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<String> = LazyLock::new(|| std::env::var("TARGET").expect("TARGET names a target"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plimsoll_fuzz::run(&TARGET, bytes));
