//! The crates that others may embed state their public API in a file, so that a change of it is seen as one.
//!
//! After a change that is meant: `PLIMSOLL_BLESS=1 cargo test -p plimsoll-e2e --test end_to_end public_api`.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_engine_has_the_api_that_it_states() {
    judge("core");
}

#[test]
fn the_layer_has_the_api_that_it_states() {
    judge("tower");
}

/// Every public item of `crates/NAME`, without what each type has by derivation or by itself, beside `public-api.txt`.
fn judge(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is above");
    let items = public_api::Builder::from_rustdoc_json(documented(root, name))
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .expect("public-api reads what this toolchain's rustdoc writes; another toolchain needs another version of it");
    let found = items.to_string();
    let file = root.join(format!("crates/{name}/public-api.txt"));
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&file, &found).expect("the file can be written");
    }
    let stated = std::fs::read_to_string(&file).expect("the crate states its API");
    let differing: Vec<String> =
        lines_of_one(&found, &stated, '+').chain(lines_of_one(&stated, &found, '-')).collect();
    assert!(differing.is_empty(), "plimsoll-{name}: if it is meant, bless it:\n{}", differing.join("\n"));
}

fn lines_of_one<'a>(one: &'a str, other: &'a str, sign: char) -> impl Iterator<Item = String> + 'a {
    one.lines()
        .filter(|line| !other.lines().any(|theirs| theirs == *line))
        .map(move |line| format!("{sign} {line}"))
}

/// What rustdoc knows about a crate, as JSON: unstable, so the stable toolchain is told to give it all the same.
fn documented(root: &Path, name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public-api");
    let done = Command::new(env!("CARGO"))
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .args([
            "rustdoc",
            "--quiet",
            "--locked",
            "--lib",
            "--package",
            &format!("plimsoll-{name}"),
            "--target-dir",
        ])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json", "--cap-lints", "allow"])
        .status()
        .expect("cargo starts");
    assert!(done.success(), "rustdoc of plimsoll-{name}: {done}");
    target.join(format!("doc/plimsoll_{name}.json"))
}
