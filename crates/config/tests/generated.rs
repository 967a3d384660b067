//! docs/configuration.md and docs/plimsoll.schema.json are what the table of keys says.
//!
//! After a change of the table, rewrite them: `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated`.

use std::path::Path;

fn same(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, generated).expect("docs can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/{name} is not what the table of keys says; rewrite it with\n\
         PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated"
    );
}

#[test]
fn the_reference_is_current() {
    same("configuration.md", &plimsoll_config::reference());
}

#[test]
fn the_schema_is_current() {
    same("plimsoll.schema.json", &plimsoll_config::json_schema());
}
