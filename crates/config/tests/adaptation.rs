//! Policies of the adapter: the example, and what is wrong with others, in exact words.

use plimsoll_config::{Adaptation, parse_adaptation};
use std::path::Path;

#[test]
fn the_example_means_what_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adaptation/shop.toml");
    let source = std::fs::read_to_string(path).expect("the example can be read");
    let said = parse_adaptation(&source, "shop.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let pair = |path: &str, tag: &str| (path.to_owned(), tag.to_owned());
    let expected = Adaptation {
        levels: ["text", "lean", "light", "full"].map(str::to_owned).to_vec(),
        without: Some(vec!["lazy".to_owned()]),
        image_limit_bytes: Some(32 * 1024),
        factor: Some(8.0),
        similarity: Some(0.88),
        depth: Some(6),
        rules: vec![
            pair("*.woff2", "expendable"),
            pair("ads/**", "expendable"),
            pair("img/logo.*", "important"),
            pair("checkout/**", "important"),
        ],
        ..Adaptation::default()
    };
    assert_eq!(said, expected);
    assert_eq!(parse_adaptation("", "empty.toml").ok(), Some(Adaptation::default()));
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let source = "levels = [\"lite\"]\nfacter = 8\nsimilarity = 90\nimage_limit = \"32\"\n\
                  [[rule]]\npath = \"*.js\"\n[[rule]]\npath = []\ntag = \"unimportant\"\n";
    let wrong = parse_adaptation(source, "p.toml").expect_err("it is wrong").to_string();
    for part in [
        "p.toml:1:",
        "`\"light\"`",
        "did you mean `factor`?",
        "p.toml:3:",
        "a number from 0, at most 1",
        "p.toml:4:",
        "needs the key `tag`",
        "an empty list says nothing",
        "`\"important\"`",
    ] {
        assert!(wrong.contains(part), "no {part:?} in\n{wrong}");
    }
}
