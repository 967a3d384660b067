//! JSON Schema 2020-12 for editors, made from the tables of keys.
//!
//! A schema checks only forms: it accepts values that only resolving can refuse, such as a name that does not exist.

use super::one_line;
use crate::syntax::{KeyShape, Presence, SectionShape, Shape};
use serde_json::{Map, Value, json};
use std::ops::Bound;

/// The schema of a file with these sections, the root first.
pub(super) fn schema(title: &str, all: &[SectionShape]) -> String {
    let mut schema = section(&all[0]);
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".to_owned(), title.into());
    let definitions = all[1..].iter().map(|each| (definition(each.title), section(each).into()));
    schema.insert("$defs".to_owned(), Value::Object(definitions.collect()));
    let mut schema = Value::Object(schema);
    schema.sort_all_objects();
    format!("{schema:#}\n")
}

/// The name of a section's definition: `[upstream.NAME.capacity]` becomes `upstream.NAME.capacity`.
fn definition(title: &str) -> String {
    title.trim_matches(['[', ']']).to_owned()
}

fn section(shape: &SectionShape) -> Map<String, Value> {
    let properties = shape.keys.iter().map(|each| (each.name.to_owned(), key(each).into()));
    let mut members = Map::new();
    members.insert("description".to_owned(), one_line(shape.doc).into());
    members.insert("type".to_owned(), "object".into());
    members.insert("additionalProperties".to_owned(), false.into());
    members.insert("properties".to_owned(), Value::Object(properties.collect()));
    let required: Vec<&str> = shape.keys.iter().filter(|key| key.is_needed()).map(|key| key.name).collect();
    if !required.is_empty() {
        members.insert("required".to_owned(), required.into());
    }
    members
}

fn key(key: &KeyShape) -> Map<String, Value> {
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
    let mut members = value(&key.shape);
    members.insert("description".to_owned(), doc.into());
    members
}

fn value(shape: &Shape) -> Map<String, Value> {
    let reference =
        |section: fn() -> SectionShape| json!({ "$ref": format!("#/$defs/{}", definition(section().title)) });
    let members = match shape {
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Whole { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number { from, to } => match from {
            Bound::Excluded(least) => json!({ "type": "number", "exclusiveMinimum": least, "maximum": to }),
            Bound::Included(least) => json!({ "type": "number", "minimum": least, "maximum": to }),
            Bound::Unbounded => json!({ "type": "number", "maximum": to }),
        },
        Shape::Text(text) => match text.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern, "examples": [text.example] }),
            None => json!({ "type": "string", "examples": [text.example] }),
        },
        Shape::Word(words) => json!({ "enum": words.iter().map(|(word, _)| word).collect::<Vec<_>>() }),
        Shape::Either(one, other) => json!({ "anyOf": [value(one), value(other)] }),
        Shape::OneOrMany(inner) => {
            json!({ "anyOf": [value(inner), { "type": "array", "items": value(inner), "minItems": 1 }] })
        }
        Shape::Pairs { value: inner, .. } => {
            json!({ "type": "object", "additionalProperties": value(inner) })
        }
        Shape::Section(section) => reference(*section),
        Shape::NamedSections(section) => {
            json!({ "type": "object", "additionalProperties": reference(*section) })
        }
        Shape::Sections(section) => json!({ "type": "array", "items": reference(*section) }),
    };
    match members {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
