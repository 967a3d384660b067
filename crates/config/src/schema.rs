//! docs/plimsoll.schema.json and docs/plimsoll-workload.schema.json, made from the tables of keys: JSON Schema 2020-12, for editors.
//!
//! It knows forms, not meaning: what only `resolve` can know (names that exist, hosts given once) it lets pass.
//! The writer of JSON below is thirty lines; a crate for it would be a dependency for one file of documentation.

use crate::field::Section;
use crate::keys::File;
use crate::reference::one_line;
use crate::shape::{KeyShape, Presence, SectionShape, Shape, sections};
use crate::workload::keys as workload;
use std::ops::Bound;

/// The JSON Schema of the configuration.
pub fn json_schema() -> String {
    schema_of(File::shape(), "Plimsoll configuration")
}

/// The JSON Schema of the workload.
pub fn workload_schema() -> String {
    schema_of(workload::File::shape(), "Plimsoll workload")
}

/// The JSON Schema of the adapter's policy.
pub fn adaptation_schema() -> String {
    schema_of(crate::adaptation::keys::File::shape(), "Plimsoll adaptation")
}

/// The JSON Schema of an agent's file.
pub fn agent_schema() -> String {
    schema_of(crate::agent::keys::File::shape(), "Plimsoll agent")
}

fn schema_of(file: SectionShape, title: &str) -> String {
    let all = sections(file);
    let root = section(&all[0]);
    let definitions = all[1..].iter().map(|each| (definition(each.title), section(each))).collect();
    let mut members = vec![
        ("$schema".to_owned(), Json::text("https://json-schema.org/draft/2020-12/schema")),
        ("title".to_owned(), Json::text(title)),
    ];
    if let Json::Object(root) = root {
        members.extend(root);
    }
    members.push(("$defs".to_owned(), Json::Object(definitions)));
    let mut text = String::new();
    Json::Object(members).write(0, &mut text);
    text.push('\n');
    text
}

/// `[upstream.NAME.capacity]` is the definition `upstream.NAME.capacity`.
fn definition(title: &str) -> String {
    title.trim_matches(['[', ']']).to_owned()
}

fn section(shape: &SectionShape) -> Json {
    let required: Vec<Json> =
        shape.keys.iter().filter(|key| key.is_needed()).map(|key| Json::Text(key.name.to_owned())).collect();
    let mut members = vec![
        ("description".to_owned(), Json::Text(one_line(shape.doc))),
        ("type".to_owned(), Json::text("object")),
        ("additionalProperties".to_owned(), Json::Boolean(false)),
        (
            "properties".to_owned(),
            Json::Object(shape.keys.iter().map(|k| (k.name.to_owned(), key(k))).collect()),
        ),
    ];
    if !required.is_empty() {
        members.push(("required".to_owned(), Json::Array(required)));
    }
    Json::Object(members)
}

fn key(key: &KeyShape) -> Json {
    let mut doc = one_line(key.doc);
    if let Presence::Default(shown) = &key.presence
        && !shown.is_empty()
    {
        doc.push_str(&format!(" Default: {shown}."));
    }
    if let Shape::Word(words) = key.shape {
        let words: Vec<String> = words.iter().map(|(word, meaning)| format!("{word}: {meaning}")).collect();
        doc.push_str(&format!(" {}.", words.join("; ")));
    }
    let mut members = vec![("description".to_owned(), Json::Text(doc))];
    members.extend(value(&key.shape));
    Json::Object(members)
}

fn value(shape: &Shape) -> Vec<(String, Json)> {
    let typed = |name: &str| ("type".to_owned(), Json::text(name));
    let reference = |section: fn() -> SectionShape| {
        ("$ref".to_owned(), Json::Text(format!("#/$defs/{}", definition(section().title))))
    };
    match shape {
        Shape::Boolean => vec![typed("boolean")],
        Shape::Whole { min, max } => vec![
            typed("integer"),
            ("minimum".to_owned(), Json::Number(*min as f64)),
            ("maximum".to_owned(), Json::Number(*max as f64)),
        ],
        Shape::Number { from, to } => {
            let mut members = vec![typed("number")];
            members.extend(match from {
                Bound::Excluded(least) => Some(("exclusiveMinimum".to_owned(), Json::Number(*least))),
                Bound::Included(least) => Some(("minimum".to_owned(), Json::Number(*least))),
                Bound::Unbounded => None,
            });
            members.push(("maximum".to_owned(), Json::Number(*to)));
            members
        }
        Shape::Text(text) => {
            let mut members = vec![typed("string")];
            members.extend(text.pattern.map(|pattern| ("pattern".to_owned(), Json::text(pattern))));
            members.push(("examples".to_owned(), Json::Array(vec![Json::text(text.example)])));
            members
        }
        Shape::Word(words) => {
            vec![("enum".to_owned(), Json::Array(words.iter().map(|(word, _)| Json::text(word)).collect()))]
        }
        Shape::Either(one, other) => {
            let either = [one, other].map(|shape| Json::Object(value(shape)));
            vec![("anyOf".to_owned(), Json::Array(either.into()))]
        }
        Shape::OneOrMany(inner) => {
            let list = vec![
                typed("array"),
                ("items".to_owned(), Json::Object(value(inner))),
                ("minItems".to_owned(), Json::Number(1.0)),
            ];
            vec![("anyOf".to_owned(), Json::Array(vec![Json::Object(value(inner)), Json::Object(list)]))]
        }
        Shape::Pairs { value: inner, .. } => {
            vec![typed("object"), ("additionalProperties".to_owned(), Json::Object(value(inner)))]
        }
        Shape::Section(section) => vec![reference(*section)],
        Shape::Named(section) => {
            vec![
                typed("object"),
                ("additionalProperties".to_owned(), Json::Object(vec![reference(*section)])),
            ]
        }
        Shape::Many(section) => {
            vec![typed("array"), ("items".to_owned(), Json::Object(vec![reference(*section)]))]
        }
    }
}

/// JSON, as far as a schema needs it.
enum Json {
    Boolean(bool),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        };
        match self {
            Json::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(value) => out.push_str(&value.to_string()),
            Json::Text(text) => write_text(text, out),
            Json::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write(depth, out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    indent(depth + 1, out);
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                indent(depth, out);
                out.push('}');
            }
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
