//! The references under docs/ are what the tables of keys say, and the schemas are sound.
//!
//! After a change of a table, rewrite the references: `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated`.

use plimsoll_config::FileFormat;
use serde_json::Value;
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
fn the_references_are_current() {
    same("configuration.md", &FileFormat::Configuration.reference());
    same("workload.md", &FileFormat::Workload.reference());
    same("adaptation.md", &FileFormat::Adaptation.reference());
    same("agent-keys.md", &FileFormat::Agent.reference());
}

/// Every `$ref` within a value.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_schema_defines_what_it_refers_to_and_allows_no_other_key() {
    let sections = |reference: &str| {
        let titles = reference.lines().filter_map(|line| line.strip_prefix("## `"));
        titles
            .map(|title| title.trim_end_matches('`').trim_matches(['[', ']']).to_owned())
            .collect::<Vec<_>>()
    };
    for format in [FileFormat::Configuration, FileFormat::Workload, FileFormat::Adaptation, FileFormat::Agent]
    {
        let (schema, reference) = (format.schema(), format.reference());
        let schema: Value = serde_json::from_str(&schema).expect("a schema is JSON");
        let definitions = schema["$defs"].as_object().expect("a schema has definitions");
        for name in references(&schema) {
            let defined = name.strip_prefix("#/$defs/").and_then(|name| definitions.get(name));
            assert!(defined.is_some_and(|section| section["additionalProperties"] == false), "{name}");
        }
        let mut documented = sections(&reference);
        documented.sort();
        assert_eq!(definitions.keys().cloned().collect::<Vec<_>>(), documented);
    }
}

#[test]
fn a_schema_says_what_a_key_takes() {
    let schema: Value = serde_json::from_str(&FileFormat::Configuration.schema()).expect("a schema is JSON");
    let upstream = &schema["$defs"]["upstream.NAME.capacity"]["properties"];
    assert_eq!(upstream["load_line"]["maximum"], 1.0);
    assert_eq!(upstream["load_line"]["exclusiveMinimum"], 0.0);
    assert!(upstream["workers"]["description"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(schema["$defs"]["site"]["required"], serde_json::json!(["name"]));
    assert_eq!(schema["properties"]["site"]["items"]["$ref"], "#/$defs/site");
}
