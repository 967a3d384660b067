//! A page at the text level, on which a browser has nothing to load.
//!
//! Scripts go, with event attributes; styles go, with the elements that they hide; media leave a link or their alternative
//! text. Frames stay, because such a site is read through them.

use super::names::{LONGEST, Names};
use crate::roles::alternative_text;
use crate::text::document::Document;
use crate::text::markup::{Edits, Element, escaped, said};

/// Changes the element at `at`.
pub(super) fn element(names: &Names<'_>, document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    match element.name.as_str() {
        "img" => image(names, document, element, edits),
        "script" | "style" | "svg" | "canvas" => edits.remove(element),
        "link" => link(element, edits),
        "video" | "audio" | "embed" | "iframe" => media(document, at, edits),
        // The element's content is for browsers that cannot show the element itself.
        "object" | "map" => unwrap(element, edits),
        "param" => edits.replace(element.tag.clone(), ""),
        "area" => area(element, edits),
        "input" => input(document, element, edits),
        "a" | "button" => link_or_button(names, document, at, edits),
        _ => {}
    }
    for attribute in &element.attributes {
        let name = attribute.name.as_str();
        if name.starts_with("on") || name == "style" || name == "background" {
            edits.take_out(document.text(), element, attribute);
        }
    }
}

pub(super) fn is_script(href: &str) -> bool {
    href.trim_start().get(..11).is_some_and(|scheme| scheme.eq_ignore_ascii_case("javascript:"))
}

fn unwrap(element: &Element, edits: &mut Edits) {
    if let Some(end) = &element.end {
        edits.replace(element.tag.clone(), "");
        edits.replace(end.clone(), "");
    }
}

/// An author's words about a picture stay; names that a template or a camera left do not.
fn image(names: &Names<'_>, document: &Document, element: &Element, edits: &mut Edits) {
    let path = element.get("src").map_or("", |src| src.split(['?', '#']).next().unwrap_or(src));
    let alt = element.words("alt").and_then(|alt| alternative_text::telling(alt, path));
    let text = match document.around(element, &["a", "button"]) {
        // A link without any text could not be followed, so its first picture leaves words.
        Some(link) if !link.has_text => {
            let before = link.tag.end..element.tag.start;
            let from = document.elements.partition_point(|other| other.tag.start < before.start);
            let mut inside =
                document.elements[from..].iter().take_while(|other| other.tag.start < before.end);
            match inside.any(|other| other.name == "img") {
                true => String::new(),
                false => names.link(link, alt),
            }
        }
        _ => names.picture(element, alt),
    };
    edits.replace(document.picture(element), escaped(&text));
}

/// If a link or button shows only an icon, drawn in the page or by its style, it gets words; if it has an image, the image
/// leaves them.
fn link_or_button(names: &Names<'_>, document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    if element.get("href").is_some_and(is_script) {
        edits.unset(document.text(), element, "href");
    }
    let Some(inside) = element.inside().filter(|_| !element.has_text) else { return };
    let within = || document.within(at, inside.end);
    if within().any(|inner| inner.is(&["img", "input", "select"])) {
        return;
    }
    let title =
        |inner: &Element| inner.inside().filter(|inside| inner.name == "title" && inside.len() <= LONGEST);
    let icon = within().find_map(|inner| match title(inner) {
        Some(title) => Some(said(&document.text()[title])),
        None => inner.words("aria-label").or_else(|| inner.words("title")).map(str::to_owned),
    });
    let icon = icon.as_deref().and_then(|words| alternative_text::telling(words, ""));
    edits.replace(inside.start..inside.start, escaped(&names.link(element, icon)));
}

/// Sheets, icons and files that are loaded early go; links for machines (canonical, alternate) stay.
fn link(element: &Element, edits: &mut Edits) {
    let rel = element.get("rel").unwrap_or_default().to_ascii_lowercase();
    let loads =
        ["stylesheet", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest"];
    if rel.split_ascii_whitespace().any(|word| loads.contains(&word)) {
        edits.replace(element.tag.clone(), "");
    } else if rel.split_ascii_whitespace().any(|word| word == "icon") {
        edits.set(element, "href", "data:,");
    }
}

/// A video, a sound or a frame of another kind becomes a link to its file.
fn media(document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    let Some(whole) = element.whole() else { return };
    let source = element.get("src");
    let source = source.or_else(|| document.within(at, whole.end).find_map(|inner| inner.get("src")));
    let in_link = document.around(element, &["a"]).is_some();
    let title = element.get("title").or(element.get("aria-label")).unwrap_or(&element.name);
    let text = match source {
        Some(source) if !in_link && !is_script(source) && !source.starts_with("about:") => {
            format!("<a href=\"{}\">{}</a>", escaped(source), escaped(title))
        }
        _ => String::new(),
    };
    edits.replace(whole, text);
}

/// An area of an image map becomes a link of its own.
fn area(element: &Element, edits: &mut Edits) {
    let text = match element.get("href").filter(|href| !is_script(href)) {
        Some(href) => {
            format!("<a href=\"{}\">{}</a> ", escaped(href), escaped(element.words("alt").unwrap_or(href)))
        }
        None => String::new(),
    };
    edits.replace(element.tag.clone(), text);
}

/// An image button becomes a button with its text.
fn input(document: &Document, element: &Element, edits: &mut Edits) {
    if element.get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) {
        edits.set(element, "type", "submit");
        let said = ["alt", "aria-label", "title"].into_iter().find_map(|name| element.words(name));
        if let Some(words) = said.filter(|_| element.get("value").is_none()) {
            edits.set(element, "value", words);
        }
        for name in ["src", "alt", "width", "height"] {
            edits.unset(document.text(), element, name);
        }
    }
}
