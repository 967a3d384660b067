//! The C header is the one that the functions make. `PLIMSOLL_BLESS=1` writes it.

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language, RenameRule, Style};
use std::path::Path;

const HEAD: &str = "\
/* libplimsoll: the processes of a server share one controller (docs/module.md).
 *
 * Made from crates/ffi/src/api.rs by cbindgen. All functions but plimsoll_close may be called by several threads at once. */";

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = Config {
        language: Language::C,
        header: Some(HEAD.to_owned()),
        include_guard: Some("PLIMSOLL_H".to_owned()),
        cpp_compat: true,
        style: Style::Both,
        usize_is_size_t: true,
        documentation_style: DocumentationStyle::C,
        no_includes: true,
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        export: ExportConfig {
            include: vec!["plimsoll_outcome".to_owned(), "Fault".to_owned()],
            rename: [("Fault".to_owned(), "plimsoll_error".to_owned())].into(),
            ..ExportConfig::default()
        },
        ..Config::default()
    };
    config.enumeration.rename_variants = RenameRule::QualifiedScreamingSnakeCase;
    let sources = ["src/fault.rs", "src/structures.rs", "src/api.rs"].map(|source| root.join(source));
    let builder =
        sources.iter().fold(Builder::new().with_config(config), |builder, source| builder.with_src(source));
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let (path, made) = (root.join("include/plimsoll.h"), String::from_utf8(made).expect("text"));
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), made, "PLIMSOLL_BLESS=1 writes it");
}
