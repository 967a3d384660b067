//! Files that somebody made to cost much: each takes time in proportion to its length, and memory within a bound.

#![expect(clippy::unwrap_used, reason = "a test fails where its files do")]

use plimsoll_content::{Job, Level, Policy, Unwatched, adapt};
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// About as many bytes as a page of this size has; a step that costs the square of them takes minutes.
const LENGTH: usize = 800_000;

/// The unit as often as fits, between a beginning and an end.
fn filled(begin: &str, unit: &str, end: &str) -> String {
    format!("{begin}{}{end}", unit.repeat(LENGTH / unit.len()))
}

/// Attributes of different names, so that none is dropped as a copy.
fn many_attributes() -> String {
    let attributes: String = (0..LENGTH / 10).map(|number| format!(" on{number}=x")).collect();
    format!("<p{attributes}>text")
}

/// A PNG of one bit a pixel that says how large it is; its rows do not matter.
fn large_png(width: u32, height: u32) -> Vec<u8> {
    let mut written = Vec::new();
    let mut encoder = png::Encoder::new(&mut written, width, height);
    encoder.set_depth(png::BitDepth::One);
    encoder.set_compression(png::Compression::High);
    let rows = vec![0; width.div_ceil(8) as usize * height as usize];
    encoder.write_header().unwrap().write_image_data(&rows).unwrap();
    written
}

fn site() -> Vec<(&'static str, Vec<u8>)> {
    let texts = [
        ("deep.html", filled("", "<b>x", "")),
        ("never-open.html", filled("<i><u><s>", "x</b>", "")),
        ("deep-and-closed.html", filled(&"<b>".repeat(600), "<i>x</i>", &"</b>".repeat(600))),
        ("links.html", filled("", "<link rel=stylesheet href=a.css>", "")),
        ("scripts.html", filled("", "<script src=a.js></script>", "")),
        ("expendable.html", filled("", "<div data-plimsoll=expendable>x", "")),
        ("videos.html", filled("", "<video>", "")),
        ("images.html", filled("<a>", "<img src=a.png>", "")),
        ("icons.html", filled(&"<a>".repeat(500), "<i></i>", &"</a>".repeat(500))),
        ("drawings.html", filled("", "<svg></math>", "")),
        ("named.html", filled(&"<a>x<img alt=y>".repeat(500), "<img src=a.png alt=y>", &"</a>".repeat(500))),
        ("blocks.html", filled("", "<p data-plimsoll=expendable><img src=a.png></p>", "")),
        ("candidates.html", filled("<img src=a.png srcset='", "a.png 2x,", "'>")),
        ("attributes.html", many_attributes()),
        ("strings.css", filled("a{b:", "\"c\" ", "}")),
        ("comments.css", filled("", "/**/", "a{b:'c'}")),
        ("comments-and-strings.css", filled("", "/**/'c'", "")),
        ("urls.css", filled("a{background:", "url(a.png) ", "}")),
        ("faces.css", filled("", "@font-face{src:url(a);", "")),
        ("comments.svg", filled("<svg>", "<!--", "")),
        ("open.svg", filled("<svg>", "<metadata>", "")),
        ("nested.svg", filled("<svg>", "<metadata>", "</metadata>")),
        ("roots.svg", filled("", "<svgs>", "")),
        ("quotes.svg", filled("<svg>", "<a b='", "")),
    ];
    let mut files: Vec<_> = texts.map(|(name, text)| (name, text.into_bytes())).into();
    files.push(("large.png", large_png(10_000, 9_990)));
    let page = b"<p>a page <img src=large.png data-plimsoll=degradable>";
    files.push(("index.html", page.to_vec()));
    files
}

/// Seconds of processor time that this process has used.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[test]
fn hostile_files_cost_in_proportion_to_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let site_folder = folder.path().join("site");
    fs::create_dir(&site_folder).unwrap();
    for (name, bytes) in site() {
        fs::write(site_folder.join(name), bytes).unwrap();
    }
    let levels = vec![Level::Full, Level::Light, Level::Text];
    let job = Job {
        site: site_folder,
        out: folder.path().join("out"),
        levels,
        policy: Policy::default(),
        ..Job::default()
    };
    let before = processor_time();
    let adapted = adapt(&job, &Unwatched, &|_| Err(String::new())).unwrap();
    let took = processor_time() - before;
    // About 4 s as tests are built. With steps that cost the square, the page of unclosed tags alone took four minutes.
    assert!(took < 60.0, "{took} s of processor time for {} files", adapted.trees[0].files);
    let problem = adapted.problems.iter().find(|problem| problem.path == "large.png").unwrap();
    assert!(problem.what.contains("10000 x 9990 pixels"), "{problem:?}");
    let same = |level: &str| fs::read(folder.path().join("out").join(level).join("large.png")).unwrap();
    assert_eq!(same("light"), same("full"), "what is not reduced is copied");
}
