//! Any text as a signed cookie: nothing that was not signed by the key counts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::settings::Signed;

fuzz_target!(|text: &str| {
    let mut signed = Signed::new(vec!["plan".to_owned()], Vec::new());
    signed.set_keys("a key of at least thirty-two characters").expect("a key");
    assert_eq!(signed.cookie("plan", text), None);
    // Nor does any text break the reading of keys.
    let _ = signed.set_keys(text);
});
