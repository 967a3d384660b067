//! docs/configuration.md, docs/workload.md and their schemas are what the tables of keys say.
//!
//! After a change of a table, rewrite them: `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated`.

use std::path::Path;

fn same(name: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, generated).expect("docs can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/{name} is not what its table of keys says; rewrite it with\n\
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

#[test]
fn the_reference_of_workloads_is_current() {
    same("workload.md", &plimsoll_config::workload_reference());
}

#[test]
fn the_schema_of_workloads_is_current() {
    same("plimsoll-workload.schema.json", &plimsoll_config::workload_schema());
}

#[test]
fn the_reference_of_adaptation_is_current() {
    same("adaptation.md", &plimsoll_config::adaptation_reference());
}

#[test]
fn the_schema_of_adaptation_is_current() {
    same("plimsoll-adaptation.schema.json", &plimsoll_config::adaptation_schema());
}

#[test]
fn the_reference_of_agents_is_current() {
    same("agent-keys.md", &plimsoll_config::agent_reference());
}

#[test]
fn the_schema_of_agents_is_current() {
    same("plimsoll-agent.schema.json", &plimsoll_config::agent_schema());
}
