//! A page: its elements, and what each of its references is for.

use super::charset::{Decoded, decode};
use super::css::{self, Purpose};
use super::markup::{Element, elements};
use super::reference::{Target, folder, resolve};
use crate::policy::Tag;
use crate::site::kind::Kind;
use std::ops::Range;

/// What a reference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// `<img src>`.
    Image,
    /// A candidate among several for an image: `srcset`.
    Candidate,
    /// `<input type=image>`, `<object>` or `<embed>`, which is shown as part of the page and must not be replaced.
    Part,
    /// A video's picture.
    Poster,
    /// An icon for the browser's tab.
    Icon,
    Sheet,
    Script,
    Frame,
    /// The file of an old `background` attribute.
    Background,
    /// A URL in a `style` attribute or element.
    Style,
    /// A file that a browser may load early, or not at all, such as a preload, a video or a manifest.
    Hint,
    /// A link that a reader may follow.
    Link,
}

impl Use {
    /// Whether a view of the page loads the file.
    pub(crate) fn is_embedded(self) -> bool {
        !matches!(self, Use::Candidate | Use::Hint | Use::Link)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The index of the element with the reference.
    pub(crate) element: usize,
    pub(crate) purpose: Use,
    pub(crate) target: Target,
}

/// A page that was read.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) decoded: Decoded,
    pub(crate) elements: Vec<Element>,
    /// The folder to which the page's references are relative.
    pub(crate) folder: String,
    pub(crate) references: Vec<Reference>,
    /// Whether the page has scripts, which may look for its elements.
    pub(crate) has_scripts: bool,
    /// The places of elements that are removed whole as expendable; none is within another.
    expendable: Vec<Range<usize>>,
}

impl Document {
    /// Reads the page at `path`; `None` if the bytes are no text.
    pub(crate) fn read(path: &str, bytes: &[u8]) -> Option<Document> {
        let decoded = decode(bytes)?;
        let elements = elements(&decoded.text);
        let base = elements.iter().find(|element| element.name == "base").and_then(|base| base.get("href"));
        let folder = match base.map(|base| resolve(folder(path), base)) {
            Some(Target::Local(base)) => folder(&base).to_owned(),
            // All relative references of the page then lead to another host.
            Some(Target::Elsewhere) => "//".to_owned(),
            _ => folder(path).to_owned(),
        };
        let has_scripts = elements.iter().any(|element| element.name == "script");
        let (references, expendable) = (Vec::new(), expendable(&elements));
        let mut document = Document { decoded, elements, folder, references, has_scripts, expendable };
        (0..document.elements.len()).for_each(|at| document.collect(at));
        Some(document)
    }

    pub(crate) fn text(&self) -> &str {
        &self.decoded.text
    }

    /// Where a reference on this page leads.
    pub(crate) fn resolve(&self, reference: &str) -> Target {
        match (self.folder.as_str(), resolve(&self.folder, reference)) {
            ("//", Target::Local(_)) if !reference.trim_start().starts_with('/') => Target::Elsewhere,
            (_, target) => target,
        }
    }

    fn collect(&mut self, at: usize) {
        let element = &self.elements[at];
        let mut found: Vec<(Use, String)> = Vec::new();
        let mut take = |purpose: Use, attribute: &str| {
            found.extend(element.get(attribute).map(|value| (purpose, value.to_owned())));
        };
        match element.name.as_str() {
            "img" => take(Use::Image, "src"),
            "input" if element.get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) => {
                take(Use::Part, "src");
            }
            "object" => take(Use::Part, "data"),
            "embed" => take(Use::Part, "src"),
            "video" | "audio" | "source" | "track" => {
                take(Use::Poster, "poster");
                take(Use::Hint, "src");
            }
            "script" => take(Use::Script, "src"),
            "iframe" | "frame" => take(Use::Frame, "src"),
            "a" | "area" => take(Use::Link, "href"),
            "link" => take(link_use(element), "href"),
            "image" => take(Use::Part, "href"),
            _ => {}
        }
        take(Use::Background, "background");
        for (candidate, _) in candidates(element.get("srcset").unwrap_or_default()) {
            found.push((Use::Candidate, candidate.to_owned()));
        }
        let inline = match element.inside() {
            Some(inside) if element.name == "style" => &self.text()[inside],
            _ => element.get("style").unwrap_or_default(),
        };
        for url in css::urls(inline) {
            // Which font faces and imports of a page's own style are loaded is as uncertain as in its sheets.
            let purpose = if matches!(url.purpose, Purpose::Font(_)) { Use::Hint } else { Use::Style };
            found.push((purpose, url.url));
        }
        for (purpose, reference) in found {
            let target = self.resolve(&reference);
            self.references.push(Reference { element: at, purpose, target });
        }
    }

    /// The page's title.
    pub(crate) fn title(&self) -> Option<String> {
        let is_title =
            |element: &&Element| element.name == "title" && self.around(element, &["svg"]).is_none();
        let title = self.elements.iter().find(is_title)?;
        let words: Vec<&str> = self.text()[title.inside()?].split_ascii_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// Images that attributes for scripts name, such as `data-large`, as paths in the site that may not exist.
    pub(crate) fn named_images(&self) -> Vec<String> {
        let attributes = self.elements.iter().flat_map(|element| &element.attributes);
        let data = attributes.filter(|attribute| attribute.name.starts_with("data-"));
        let local = data.filter_map(|attribute| match self.resolve(&attribute.value) {
            Target::Local(named) if Kind::of(&named).is_image() => Some(named),
            _ => None,
        });
        local.collect()
    }

    /// The references of the element at `at`. References are in the order of the elements.
    pub(crate) fn references_of(&self, at: usize) -> &[Reference] {
        let first = self.references.partition_point(|reference| reference.element < at);
        let length = self.references[first..].partition_point(|reference| reference.element == at);
        &self.references[first..first + length]
    }

    /// The tag that applies to an element: its own, or that of the nearest element around it.
    pub(crate) fn tag(&self, at: usize) -> Option<Tag> {
        self.outward(&self.elements[at]).find_map(Element::own_tag)
    }

    /// The element that is removed with the one at `at` as expendable: itself, or one around it.
    pub(crate) fn expendable(&self, at: usize) -> Option<&Range<usize>> {
        let start = self.elements[at].tag.start;
        let next = self.expendable.partition_point(|whole| whole.start <= start);
        self.expendable[..next].last().filter(|whole| start < whole.end)
    }

    /// The element and those around it, from the innermost to the outermost.
    pub(crate) fn outward<'a>(&'a self, element: &'a Element) -> impl Iterator<Item = &'a Element> {
        std::iter::successors(Some(element), |inner| self.parent(inner))
    }

    pub(crate) fn parent(&self, element: &Element) -> Option<&Element> {
        element.parent.map(|parent| &self.elements[parent])
    }

    /// The nearest element around this one that has one of the names.
    pub(crate) fn around<'a>(&'a self, element: &'a Element, names: &[&str]) -> Option<&'a Element> {
        self.outward(element).skip(1).find(|outer| outer.is(names))
    }

    /// The elements within the one at `at`, which ends at `end`.
    pub(crate) fn within(&self, at: usize, end: usize) -> impl Iterator<Item = &Element> {
        within(&self.elements, at, end)
    }

    /// The part of the page that is removed with an image: the `<picture>` around it, or its tag alone.
    pub(crate) fn picture(&self, image: &Element) -> Range<usize> {
        let picture = self.parent(image).filter(|parent| parent.is(&["picture"]));
        picture.and_then(Element::whole).unwrap_or_else(|| image.tag.clone())
    }
}

fn within(elements: &[Element], at: usize, end: usize) -> impl Iterator<Item = &Element> {
    elements[at + 1..].iter().take_while(move |inner| inner.tag.start < end)
}

/// The outermost elements, in order, that are tagged expendable themselves and contain nothing important.
fn expendable(elements: &[Element]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        let is_tagged =
            element.own_tag() == Some(Tag::Expendable) && !element.is(&["img", "html", "head", "body"]);
        if !is_tagged || found.last().is_some_and(|outer| element.tag.start < outer.end) {
            continue;
        }
        let Some(whole) = element.whole() else { continue };
        if within(elements, at, whole.end).all(|inner| inner.own_tag() != Some(Tag::Important)) {
            found.push(whole);
        }
    }
    found
}

fn link_use(element: &Element) -> Use {
    let rel = element.get("rel").unwrap_or_default().to_ascii_lowercase();
    let has = |word: &str| rel.split_ascii_whitespace().any(|part| part == word);
    if has("stylesheet") && !has("alternate") {
        Use::Sheet
    } else if has("icon") {
        Use::Icon
    } else {
        Use::Hint
    }
}

/// The candidates of a `srcset`, each with its descriptor, such as `2x` or `640w` (WHATWG HTML, 4.8.4.2.1).
pub(crate) fn candidates(srcset: &str) -> Vec<(&str, &str)> {
    let mut rest = srcset;
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return found;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        if let Some(bare) = url.strip_suffix(',') {
            found.push((bare.trim_end_matches(','), ""));
            rest = after;
        } else {
            let end = after.find(',').unwrap_or(after.len());
            found.push((url, after[..end].trim()));
            rest = &after[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_references_are_for() {
        let page = "<base href='../x/'><link rel='Shortcut Icon' href=i><link rel=stylesheet href=s.css>\
                    <style>@import 'u.css'; p { background: url(v.png) } @font-face { src: url(w.woff) }</style>\
                    <body background=b.gif><img src=a srcset='c 1x, d,e 2x, f'><a href=/>q</a>\
                    <p style='background:url(g)'><video poster=h src=j></video><script src=//other/k></script>";
        let document = Document::read("a/b.html", page.as_bytes()).unwrap();
        let local = |path: &str| Target::Local(path.to_owned());
        let found: Vec<(Use, Target)> = document
            .references
            .iter()
            .map(|reference| (reference.purpose, reference.target.clone()))
            .collect();
        let expected = [
            (Use::Icon, local("x/i")),
            (Use::Sheet, local("x/s.css")),
            (Use::Style, local("x/u.css")),
            (Use::Style, local("x/v.png")),
            (Use::Hint, local("x/w.woff")),
            (Use::Background, local("x/b.gif")),
            (Use::Image, local("x/a")),
            (Use::Candidate, local("x/c")),
            (Use::Candidate, local("x/d,e")),
            (Use::Candidate, local("x/f")),
            (Use::Link, local("")),
            (Use::Style, local("x/g")),
            (Use::Poster, local("x/h")),
            (Use::Hint, local("x/j")),
            (Use::Script, Target::Elsewhere),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_nearest_tag_counts() {
        let page =
            "<div data-plimsoll=important><p><img><span data-plimsoll=expendable><img></span></p></div><img>";
        let document = Document::read("a", page.as_bytes()).unwrap();
        let tags: Vec<Option<Tag>> = (0..document.elements.len())
            .filter(|&at| document.elements[at].name == "img")
            .map(|at| document.tag(at))
            .collect();
        assert_eq!(tags, [Some(Tag::Important), Some(Tag::Expendable), None]);
    }

    #[test]
    fn what_goes_with_an_expendable_element() {
        let page = "<aside data-plimsoll=expendable><p data-plimsoll=degradable><img alt=1></p></aside><img alt=2>\
                    <div data-plimsoll=expendable><b data-plimsoll=important>x</b><img alt=3>\
                    <i data-plimsoll=expendable><img alt=4></i></div><img alt=5 data-plimsoll=expendable>";
        let document = Document::read("a", page.as_bytes()).unwrap();
        let going: Vec<&str> = (0..document.elements.len())
            .filter(|&at| document.expendable(at).is_some())
            .filter_map(|at| document.elements[at].get("alt"))
            .collect();
        assert_eq!(
            going,
            ["1", "4"],
            "an image of its own is no block, and what holds something important stays"
        );
    }
}
