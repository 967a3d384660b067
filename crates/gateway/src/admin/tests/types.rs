//! The dashboard's types are those of the documents: after a change write them anew with
//! `PLIMSOLL_BLESS=1 cargo test -p plimsoll-gateway types`.

use super::*;
use std::collections::BTreeMap;
use std::path::Path;
use ts_rs::{Config, TS, TypeVisitor};

/// Declarations by name.
struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if T::output_path().is_none() || self.found.contains_key(&T::name(&self.config)) {
            return;
        }
        let declaration = T::decl(&self.config);
        self.found.insert(T::name(&self.config), declaration);
        T::visit_dependencies(self);
    }
}

#[test]
fn the_dashboard_has_the_types_of_the_documents() {
    let mut all = Declarations { config: Config::new().with_large_int("number"), found: BTreeMap::new() };
    all.visit::<StatusDocument<'static>>();
    all.visit::<JournalDocument>();
    all.visit::<WhatIfDocument>();
    let declared: String =
        all.found.values().map(|declaration| format!("\nexport {declaration}\n")).collect();
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
