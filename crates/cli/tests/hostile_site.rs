//! `plimsoll adapt` on files that somebody made to cost much: twice the length takes about twice the time, and pixels are
//! bounded.
//!
//! One test in a process of its own, since it measures what its children took.
#![cfg(feature = "adapt")]

use nix::sys::resource::{Usage, UsageWho, getrusage};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The length of a file; it is adapted with twice as many bytes, too.
const LENGTH: usize = 400_000;
/// What starting the program may take of a processor, at the most (s).
const FLOOR: f64 = 0.5;
/// The most memory that one of these files may take: 84 MiB for the longest text. Decoded, the image took 1.1 GB.
const MOST_KIB: i64 = 256 * 1024;

/// Beginnings, what is repeated, and ends: each costs the square of its length, or worse, where a step looks back or ahead from
/// each place.
const REPEATED: &[(&str, &str, &str, &str)] = &[
    ("unclosed.html", "", "<b>x", ""),
    ("closed-and-never-open.html", "<i><u><s>", "x</b>", ""),
    ("links.html", "", "<link rel=stylesheet href=a.css>", ""),
    ("expendable.html", "", "<div data-plimsoll=expendable>x", ""),
    ("images.html", "<a>", "<img src=a.png>", ""),
    ("candidates.html", "<img src=a.png srcset='", "a.png 2x,", "'>"),
    ("attributes.html", "<p ", "a=b ", ">x"),
    ("comments.html", "", "<!--", ""),
    ("scripts.html", "", "<script>", ""),
    ("strings.css", "a{b:", "\"c\" ", "}"),
    ("comments.css", "", "/**/'c'", ""),
    ("open-comments.css", "", "/*", ""),
    ("urls.css", "a{background:", "url(a.png) ", "}"),
    ("open-urls.css", "a{background:", "url(", ""),
    ("faces.css", "", "@font-face{src:url(a);", ""),
    ("comments.svg", "<svg>", "<!--", ""),
    ("metadata.svg", "<svg>", "<metadata>", ""),
    ("quotes.svg", "<svg>", "<a b='", ""),
    ("cdata.svg", "<svg>", "<![CDATA[", ""),
];

fn adapted(folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(folder).args(["adapt", "site", "trees", "--json"]);
    command.output().expect("the binary runs")
}

/// Adapts a site of one page and this file, and returns what that took of the processors (s).
fn seconds(name: &str, text: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    fs::create_dir(&site).expect("a folder");
    fs::write(site.join("index.html"), format!("<p>a page <a href={name}>")).expect("a page");
    fs::write(site.join(name), text).expect("a file");
    let used = |usage: Usage| {
        let [user, system] = [usage.user_time(), usage.system_time()];
        [user, system].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6).sum::<f64>()
    };
    let children = || used(getrusage(UsageWho::RUSAGE_CHILDREN).expect("the use of processors"));
    let before = children();
    let output = adapted(folder.path());
    assert!(output.status.success(), "{name}: {output:?}");
    children() - before
}

#[test]
fn time_follows_length_and_memory_is_bounded() {
    for (name, begin, unit, end) in REPEATED {
        let filled = |length: usize| format!("{begin}{}{end}", unit.repeat(length / unit.len()));
        let [once, twice] = [LENGTH, 2 * LENGTH].map(|length| seconds(name, &filled(length)));
        assert!(twice < 3.0 * once + FLOOR, "{name}: {once:.2} s, with twice the length {twice:.2} s");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    fs::create_dir(&site).expect("a folder");
    fs::write(site.join("index.html"), "<img src=large.png data-plimsoll=degradable>").expect("a page");
    let large = include_bytes!("data/large.png");
    fs::write(site.join("large.png"), large).expect("an image");
    let output = adapted(folder.path());
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let problem = all["problems"][0]["what"].as_str().unwrap_or_default();
    assert!(problem.contains("10000 x 9990 pixels"), "{all}");
    let copy = fs::read(folder.path().join("trees/light/large.png")).expect("its copy");
    assert_eq!(copy, large, "what is not reduced is copied");
    // The largest of all children until now; each had its own file.
    let most = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the use of memory").max_rss();
    assert!(most < MOST_KIB, "{most} KiB");
}
