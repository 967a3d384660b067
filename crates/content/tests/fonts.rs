//! Web fonts with the signs that pages show: a real font of icons. In a browser: `e2e/tests/real_sites.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails where its files do")]

use plimsoll_content::{Adapted, Job, Level, Policy, Rule, Step, Tag, Unwatched, adapt};
use std::fs;
use std::path::Path;

const FONT: &[u8] = include_bytes!("data/fa-regular-400.woff2");
const SHEET: &str = "@font-face { font-family: I; src: url(i.woff2) format('woff2') } i { font-family: I }
    .i-star:before { content: '\\f005' } .i-heart:before { content: '\\f004' } .i-bell:before { content: '\\f0f3' }";

fn site(root: &Path, page: &str, font: &[u8]) {
    fs::create_dir_all(root).unwrap();
    fs::write(root.join("index.html"), page).unwrap();
    fs::write(root.join("i.css"), SHEET).unwrap();
    fs::write(root.join("i.woff2"), font).unwrap();
}

fn adapted(root: &Path, policy: Policy) -> (Adapted, Vec<u8>) {
    let job = Job {
        site: root.join("site"),
        out: root.join("trees"),
        levels: vec![Level::Light, Level::Full],
        policy,
        ..Job::default()
    };
    let made = adapt(&job, &Unwatched, &|_| Err("none".to_owned())).unwrap();
    (made, fs::read(job.out.join("light/i.woff2")).unwrap())
}

/// With a script that names characters which are none, as many libraries do.
const PAGE: &str =
    "<link rel=stylesheet href=i.css><i class=i-star></i><script>r = /[\\0-\\x1f\\uffff]/</script>";

#[test]
fn a_font_keeps_the_signs_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    site(&root.join("site"), PAGE, FONT);
    let (made, one) = adapted(root, Policy::default());
    assert_eq!(made.fonts["i.woff2"], (FONT.len() as u64, one.len() as u64));
    assert!(one.starts_with(b"wOF2") && 10 * one.len() < FONT.len(), "{} bytes", one.len());
    assert_eq!(fs::read(root.join("trees/full/i.woff2")).unwrap(), FONT, "full is the site");
    // The same again, and nothing is written.
    let (again, same) = adapted(root, Policy::default());
    assert!(same == one && again.written == 0, "{}", again.written);
    // One more sign is more bytes: it is there.
    site(&root.join("site"), &format!("{PAGE}<i class='i-bell'></i>"), FONT);
    let two = adapted(root, Policy::default()).1;
    assert!(two.len() > one.len() + 50 && 10 * two.len() < FONT.len(), "{} {}", one.len(), two.len());
    // A script that puts names together may mean any of the sheet's.
    site(&root.join("site"), &format!("{PAGE}<script>c = 'i-' + name</script>"), FONT);
    assert!(adapted(root, Policy::default()).1.len() > two.len() + 50);
}

#[test]
fn a_user_keeps_fonts_whole() {
    let folder = tempfile::tempdir().unwrap();
    site(&folder.path().join("site"), PAGE, FONT);
    let important = vec![Rule { pattern: "*.woff2".to_owned(), tag: Tag::Important }];
    for policy in [
        Policy { without: vec![Step::Fonts], ..Policy::default() },
        Policy { rules: important, ..Policy::default() },
    ] {
        let (made, font) = adapted(folder.path(), policy);
        assert!(made.fonts.is_empty() && font == FONT);
    }
}

/// Damage of any kind leaves the file as it is, or a font that was read again and compared.
#[test]
fn a_damaged_font_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut reduced = 0;
    for round in 0..60_usize {
        let mut font = FONT.to_vec();
        for place in 0..=round % 4 {
            let at = (round * 7919 + place * 104_729) % if round % 2 == 0 { 80 } else { font.len() };
            font[at] ^= 1 << (round % 8);
        }
        font.truncate(font.len() - if round % 5 == 0 { round * 97 % font.len() } else { 0 });
        site(&folder.path().join("site"), PAGE, &font);
        let (made, light) = adapted(folder.path(), Policy::default());
        reduced += usize::from(light != font);
        assert_eq!(made.fonts.contains_key("i.woff2"), light != font, "{round}");
    }
    assert!(reduced < 60, "no damage was ever seen");
    site(&folder.path().join("site"), PAGE, b"wOF2 and nothing more");
    let (made, light) = adapted(folder.path(), Policy::default());
    assert_eq!(light, b"wOF2 and nothing more");
    assert!(
        made.problems.iter().any(|problem| problem.what.contains("copied as it is")),
        "{:?}",
        made.problems
    );
}
