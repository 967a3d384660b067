//! Golden diagnostics: each tests/diagnostics/NAME.toml is refused with exactly NAME.txt.
//!
//! After a change of the texts, read the difference, then rewrite them:
//! `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test diagnostics`.

use plimsoll_config::{Code, Diagnostics, parse};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

fn refused(name: &str) -> Diagnostics {
    let source = std::fs::read_to_string(folder().join(name)).expect("the file can be read");
    match parse(&source, name) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert!(names.len() >= 8, "only {names:?} found");
    names
}

#[test]
fn each_bad_file_is_refused_in_these_words() {
    let mut wrong = Vec::new();
    for name in names() {
        let shown = format!("{}\n", refused(&name));
        let path = folder().join(&name).with_extension("txt");
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            std::fs::write(&path, &shown).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != shown {
            wrong.push(format!("--- {} now is\n{shown}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_is_shown_by_some_file() {
    let all: Vec<Code> = names().iter().flat_map(|name| refused(name).all).map(|found| found.code).collect();
    for code in Code::ALL {
        assert!(all.contains(&code), "no file under tests/diagnostics is refused as `{code}`");
    }
}

#[test]
fn a_diagnostic_has_its_place_as_plain_fields() {
    let diagnostics = refused("unknown-keys.toml");
    let found = diagnostics.all.iter().find(|found| found.message.contains("max_conections")).unwrap();
    assert_eq!((found.code, found.line, found.column), (Code::UnknownKey, 8, 1));
    assert_eq!(&diagnostics.source()[found.span.clone()], "max_conections");
    assert_eq!(found.help, "did you mean `max_connections`?");
}
