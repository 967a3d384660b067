//! The readers and writers of untrusted files, each as one function of bytes, for the fuzz targets (`crates/fuzz`). No other
//! code calls them.

use crate::image::{Reduction, dimensions};
use crate::policy::{Level, Policy};
use crate::rewrite::decide::Decisions;
use crate::rewrite::rewritten;
use crate::site::Site;
use crate::site::kind::Kind;
use crate::site::survey::Survey;
use crate::site::tree::{File, Tree};
use crate::text::boxes::Boxes;
use crate::text::document::Document;
use crate::text::{charset, css, svg};
use std::collections::BTreeMap;

/// The most pixels of an image that is reduced here, because a fuzz target runs thousands of times.
const MOST_PIXELS: usize = 1 << 16;

/// A page or style sheet at this path of a small site, as it is at the level; `None` if it stays as it is.
pub fn at_level(path: &str, bytes: &[u8], level: Level) -> Option<Vec<u8>> {
    let mut tree = Tree::default();
    for (name, bytes) in [("a.css", &b"b{}"[..]), ("b.html", b"<p>b"), (path, bytes)] {
        let _ = tree.take(name.to_owned(), bytes.to_vec());
        tree.files.insert(name.to_owned(), File { kind: Kind::of(name), bytes: bytes.len() as u64 });
    }
    for (name, bytes) in [("a.png", 100), ("b.jpg", 100_000), ("a.js", 10)] {
        tree.files.insert(name.to_owned(), File { kind: Kind::of(name), bytes });
    }
    let dimensions = BTreeMap::from([("a.png".to_owned(), (16, 16)), ("b.jpg".to_owned(), (800, 600))]);
    let (survey, drawings, sheets, problems) = Default::default();
    let mut site = Site { tree, survey, dimensions, drawings, sheets, problems };
    if Kind::of(path) == Kind::Style {
        site.sheets.insert(path.to_owned(), Boxes::of(&String::from_utf8_lossy(bytes)));
    }
    for page in ["b.html", path] {
        if Kind::of(page) == Kind::Page
            && let Some(document) = Document::read(page, &site.tree.snapshots[page])
        {
            let mut part = Survey::default();
            part.page(page, &document, &site.ground());
            site.survey.merge(part);
        }
    }
    site.survey.finish();
    let policy = Policy::default();
    let plain = BTreeMap::from([("b.jpg".to_owned(), "b.1x.jpg".to_owned())]);
    rewritten(&Decisions::new(&site, &policy, level, None), path, bytes, &plain)
}

/// The names of a page's elements, in their order; `None` if the bytes are no text.
pub fn element_names(bytes: &[u8]) -> Option<Vec<String>> {
    Some(Document::read("index.html", bytes)?.elements.into_iter().map(|element| element.name).collect())
}

/// The text of a sheet, and its references with their places; `None` if the bytes are no text.
pub fn sheet_urls(bytes: &[u8]) -> Option<(String, Vec<std::ops::Range<usize>>)> {
    let text = charset::decode(bytes)?.text;
    let ranges = css::urls(&text).into_iter().map(|url| url.range).collect();
    Some((text, ranges))
}

/// An SVG image without elements that draw nothing; `None` if it stays as it is.
pub fn drawing(bytes: &[u8]) -> Option<Vec<u8>> {
    svg::without_silence(bytes)
}

/// An image's width and height, from its head.
pub fn image_size(bytes: &[u8]) -> Option<(usize, usize)> {
    dimensions(bytes)
}

/// A small image in fewer bytes. AVIF is left out, since another program reads it.
pub fn reduced_image(bytes: &[u8]) -> Option<Vec<u8>> {
    let (width, height) = dimensions(bytes)?;
    let is_avif = bytes.get(4..8) == Some(b"ftyp");
    if is_avif || width.saturating_mul(height) > MOST_PIXELS {
        return None;
    }
    let size = (width > 1 && height > 1).then_some((width / 2, height / 2));
    let reduction =
        Reduction { factor: Some(4.0), similarity: 0.8, enough: 0.9, size, any_format: true, variant: true };
    let copies = crate::image::reduced(bytes, reduction).ok()?;
    Some(copies.named.or(copies.variant)?.written)
}
