//! Golden diagnostics: each tests/diagnostics/NAME.toml, a configuration, and each tests/workloads/NAME.toml, a
//! workload, is refused with exactly NAME.txt.
//!
//! After a change of the texts, read the difference, then rewrite them:
//! `PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test diagnostics`.

mod against;

use plimsoll_config::{Code, Diagnostics, parse, parse_workload};
use std::path::{Path, PathBuf};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(kind)
}

fn refused(name: &str) -> Diagnostics {
    let source = std::fs::read_to_string(folder("diagnostics").join(name)).expect("the file can be read");
    match parse(&source, name) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

fn refused_workload(name: &str) -> Diagnostics {
    let source = std::fs::read_to_string(folder("workloads").join(name)).expect("the file can be read");
    match parse_workload(&source, name, &against::promises_for(&source)) {
        Ok(_) => panic!("{name} was accepted"),
        Err(diagnostics) => diagnostics,
    }
}

fn names(kind: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder(kind)).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    assert!(names.len() >= 8, "only {names:?} found");
    names
}

/// Compares what each file of a kind is refused with.
fn in_these_words(kind: &str, refused: fn(&str) -> Diagnostics) {
    let mut wrong = Vec::new();
    for name in names(kind) {
        let shown = format!("{:#}\n", refused(&name));
        let path = folder(kind).join(&name).with_extension("txt");
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            std::fs::write(&path, &shown).expect("golden files can be written");
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != shown {
            wrong.push(format!("--- {} now is\n{shown}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_bad_file_is_refused_in_these_words() {
    in_these_words("diagnostics", refused);
}

#[test]
fn each_bad_workload_is_refused_in_these_words() {
    in_these_words("workloads", refused_workload);
}

#[test]
fn every_code_is_shown_by_some_file() {
    let all: Vec<Code> =
        names("diagnostics").iter().flat_map(|name| refused(name).all).map(|found| found.code).collect();
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

/// A key that could do nothing is refused, with what stands in its way.
#[test]
fn clients_are_turned_away_by_their_address_only_where_it_determines_all() {
    let says = |site: &str| {
        let file = "[gateway]\nlisten = \"127.0.0.1:8080\"\nreject_at_accept = true\n\n\
                    [upstream.app]\naddress = \"127.0.0.1:9000\"\n\n";
        match parse(&format!("{file}{site}"), "file.toml") {
            Ok(_) => String::new(),
            Err(diagnostics) => diagnostics.to_string(),
        }
    };
    let site = "[[site]]\nname = \"shop\"\n";
    for (keys, why) in [
        ("host = \"a.example\"", "known only by its host"),
        ("client = \"cookie:id\"", "known only by the request"),
        ("choice = \"random\"", "anew for each request"),
        ("guarantee = { rate = \"10/s\" }", "inside the guarantee"),
        ("exempt = [{ path = \"/healthz\" }]", "exempt request"),
        ("class = [{ name = \"buy\", match = { path = \"/buy\" } }]", "class is known only by the request"),
    ] {
        let said = says(&format!("{site}{keys}\n"));
        assert!(said.contains("no connection could be closed") && said.contains(why), "{keys}: {said}");
    }
    for keys in [
        "",
        "exempt = [{ path = \"/healthz\", client = \"10.0.0.1\" }]",
        "class = [{ name = \"in\", match = { client = \"10.0.0.0/8\" } }, { name = \"buy\", match = { path = \"/buy\" } }]",
    ] {
        assert_eq!(says(&format!("{site}{keys}\n")), "", "{keys}");
    }
    assert_eq!(says(""), "", "the implied site has every host");
    assert_eq!(says("[kernel]\nshed = true\n"), "");
}

/// The system turns away those alone who were turned away at accept before.
#[test]
fn the_kernel_sheds_nobody_where_nobody_is_turned_away_at_accept() {
    let file = "[gateway]\nlisten = \"127.0.0.1:8080\"\n\n[kernel]\nshed = true\n\n\
                [upstream.app]\naddress = \"127.0.0.1:9000\"\n";
    let said = parse(file, "file.toml").unwrap_err().to_string();
    assert!(
        said.contains("no client would ever be turned away so") && said.contains("reject_at_accept"),
        "{said}"
    );
}

/// Apache's module and Python's middleware have room for it.
#[test]
fn a_prefix_has_at_most_255_bytes() {
    let with = |length: usize| {
        let prefix = "p".repeat(length - 1);
        let file = format!(
            "[gateway]\nlisten = \"127.0.0.1:8080\"\n[upstream.app]\naddress = \"127.0.0.1:9000\"\n\
             capacity = {{ workers = 4 }}\n[[site]]\nname = \"www\"\n[[site.level]]\nname = \"light\"\n\
             prefix = \"/{prefix}\"\n[[site.level]]\nname = \"full\"\n"
        );
        parse(&file, "prefix.toml").map(drop).map_err(|wrong| wrong.to_string())
    };
    assert_eq!(with(255), Ok(()));
    let wrong = with(256).unwrap_err();
    assert!(
        wrong.contains("a prefix of 256 bytes is too long") && wrong.contains("at most 255 bytes"),
        "{wrong}"
    );
}

/// Full quality is the last level, so that what it names serves the site.
#[test]
fn a_site_whose_levels_name_their_upstreams_needs_none_of_its_own() {
    let upstream = |name: &str, port: u16| {
        format!("[upstream.{name}]\naddress = \"127.0.0.1:{port}\"\ncapacity = {{ workers = 4 }}\n")
    };
    let level = |name: &str, more: &str| format!("[[site.level]]\nname = \"{name}\"\n{more}\n");
    let (small, large) = (upstream("small", 8001), upstream("large", 8002));
    let head = format!("[gateway]\nlisten = \"127.0.0.1:8080\"\n{small}{large}[[site]]\nname = \"shop\"\n");
    let full = level("full", "upstream = \"large\"");
    for light in [level("light", "upstream = \"small\""), level("light", "prefix = \"/light\"")] {
        let read = parse(&format!("{head}{light}{full}"), "levels.toml");
        let site = read.unwrap_or_else(|wrong| panic!("{wrong}")).promises.sites.remove(0);
        assert_eq!((site.plant, site.levels[1].plant), (1, Some(1)));
    }
    let unknown = parse(&format!("{head}{}", full.replace("large", "larger")), "levels.toml");
    assert_eq!(
        unknown.map(drop).unwrap_err().to_string().matches("error[").count(),
        1,
        "said once, at its level"
    );
    let none =
        parse(&format!("{head}{}", level("full", "")), "levels.toml").map(drop).unwrap_err().to_string();
    assert!(none.contains("does not say what serves it"), "{none}");
}
