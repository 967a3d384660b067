//! The dashboard's types are those of the documents: after a change write them anew with
//! `PLIMSOLL_BLESS=1 cargo test -p plimsoll-gateway types`.

use super::*;
use crate::admin::document::ReloadDocument;
use std::collections::BTreeMap;
use std::path::Path;
use ts_rs::{Config, TS, TypeVisitor};

/// Declarations by name.
struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
    /// What each is.
    docs: BTreeMap<String, String>,
}

impl Declarations {
    fn new() -> Self {
        let config = Config::new().with_large_int("number");
        Declarations { config, found: BTreeMap::new(), docs: BTreeMap::new() }
    }
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if T::output_path().is_none() || self.found.contains_key(&T::name(&self.config)) {
            return;
        }
        let declaration = T::decl(&self.config);
        self.found.insert(T::name(&self.config), declaration);
        self.docs.insert(T::name(&self.config), sentence(&T::docs().unwrap_or_default()));
        T::visit_dependencies(self);
    }
}

#[test]
fn the_dashboard_has_the_types_of_the_documents() {
    let mut all = Declarations::new();
    all.visit::<StatusDocument<'static>>();
    all.visit::<JournalDocument>();
    all.visit::<WhatIfDocument>();
    let declared: String =
        all.found.values().map(|declaration| format!("\nexport {}\n", compact(declaration))).collect();
    let rejections = Reason::ALL.into_iter().filter(|reason| reason.is_rejection()).map(Reason::as_str);
    let rejections = serde_json::to_string(&rejections.collect::<Vec<_>>()).unwrap();
    let text = format!(
        "// What the gateway sends, from its Rust types: crates/gateway/src/admin. Do not edit.\n{declared}\n\
         /** The reasons with which a request is turned away. */\nexport const REJECTIONS: readonly string[] = {rejections};\n"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboard/src/documents.ts");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "dashboard/src/documents.ts is not what the documents are; `make generate` writes it"
    );
}

/// A declaration whose comments have no lines of their own for where they begin and end.
fn compact(declaration: &str) -> String {
    let begun = declaration.replace("/**\n * ", "/** ").replace("\n */\n", " */\n");
    begun.replace("{ \n", "{\n").replace(", \n", ",\n")
}

/// The text of a comment, in one line.
fn sentence(comment: &str) -> String {
    let lines = comment.lines().map(|line| line.trim().trim_start_matches("/**").trim_end_matches("*/"));
    let words = lines.flat_map(|line| line.trim().trim_start_matches('*').split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

/// A type in words.
fn in_words(kind: &str) -> String {
    if let Some(known) = kind.strip_suffix(" | null") {
        return format!("{} or null", in_words(known));
    }
    if let Some(items) = kind.strip_prefix("Array<").and_then(|items| items.strip_suffix('>')) {
        return format!("list: {}", in_words(items));
    }
    match kind {
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "number" => "number".to_owned(),
        "{ [key in string]: number }" | "Record<string, number>" => "numbers by name".to_owned(),
        words if words.starts_with('"') => words.replace('"', "`").replace(" | ", ", "),
        name => format!("[{name}](#{})", name.to_lowercase()),
    }
}

/// The rows of a declared object: key, type and comment.
fn rows(declaration: &str) -> Vec<[String; 3]> {
    let body = declaration.split_once("= {").map_or("", |(_, body)| body);
    let body = body.trim_end_matches([';', ' ', '\n']);
    let body = body.strip_suffix('}').expect("an object ends");
    let mut rows = Vec::new();
    for part in body.split("/**").skip(1) {
        let (comment, key) = part.split_once("*/").expect("a comment ends");
        let key = key.trim().trim_end_matches(',');
        let (name, kind) = key.split_once(": ").expect("a key and its type");
        rows.push([name.to_owned(), in_words(kind), sentence(comment)]);
    }
    assert_eq!(rows.len(), keys(body), "each key has a comment: {declaration}");
    rows
}

/// How many keys an object has: those of a nested one are not counted, for none is written out.
fn keys(body: &str) -> usize {
    let without_comments: String =
        body.split("/**").map(|part| part.split_once("*/").map_or(part, |(_, rest)| rest)).collect();
    without_comments.replace("[key in string]: number", "").matches(": ").count()
}

/// After a change of the documents: `make generate`.
#[test]
fn the_reference_of_the_admin_listener_is_that_of_the_documents() {
    let mut all = Declarations::new();
    all.visit::<StatusDocument<'static>>();
    all.visit::<JournalDocument>();
    all.visit::<WhatIfDocument>();
    all.visit::<ReloadDocument<'static>>();
    let mut written = include_str!("admin_head.md").to_owned();
    // What is asked for comes first, then what it has in it, by name.
    let asked = ["StatusDocument", "JournalDocument", "WhatIfDocument", "ReloadDocument"];
    let others = all.found.keys().map(String::as_str).filter(|name| !asked.contains(name));
    for name in asked.into_iter().chain(others) {
        let (doc, declaration) = (&all.docs[name], &all.found[name]);
        written += &format!("\n## {name}\n\n{doc}\n");
        match declaration.split_once(" = ") {
            Some((_, body)) if body.starts_with('{') => {
                written += "\n| key | type | is |\n|---|---|---|\n";
                for [key, kind, comment] in rows(declaration) {
                    written += &format!("| `{key}` | {kind} | {comment} |\n");
                }
            }
            Some((_, words)) => written += &format!("\nOne of {}.\n", in_words(words.trim_end_matches(';'))),
            None => panic!("{declaration}"),
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/admin.md");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == written, "docs/admin.md is not what the documents are; `make generate` writes it");
}
