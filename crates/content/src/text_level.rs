//! A page as text: nothing that a browser has to load.
//!
//! Scripts go with their events, styles with what they hide, media leave a link or their alternative text. Frames stay:
//! they are how such a site is read.

use crate::document::Document;
use crate::markup::{Edits, Element, escaped};

/// Changes the element at `at`.
pub(crate) fn element(document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    match element.name.as_str() {
        "img" => image(document, at, edits),
        "script" | "style" | "svg" | "canvas" => drop_whole(element, edits),
        "link" => link(element, edits),
        "video" | "audio" | "embed" | "iframe" => media(document, at, edits),
        // The element's content is for browsers that cannot show the element itself.
        "object" | "map" => unwrap(element, edits),
        "param" => edits.replace(element.tag.clone(), ""),
        "area" => area(element, edits),
        "input" => input(document, element, edits),
        "a" if element.get("href").is_some_and(is_script) => edits.unset(document.text(), element, "href"),
        _ => {}
    }
    for attribute in &element.attributes {
        let name = attribute.name.as_str();
        if name.starts_with("on") || name == "style" || name == "background" {
            edits.unset(document.text(), element, name);
        }
    }
}

fn is_script(href: &str) -> bool {
    href.trim_start().get(..11).is_some_and(|scheme| scheme.eq_ignore_ascii_case("javascript:"))
}

fn drop_whole(element: &Element, edits: &mut Edits) {
    if let Some(whole) = element.whole() {
        edits.replace(whole, "");
    }
}

fn unwrap(element: &Element, edits: &mut Edits) {
    if let Some(end) = &element.end {
        edits.replace(element.tag.clone(), "");
        edits.replace(end.clone(), "");
    }
}

fn image(document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    let parent = element.parent.map(|parent| &document.elements[parent]);
    let picture = parent.filter(|parent| parent.name == "picture").and_then(Element::whole);
    let linked = document
        .ancestors(at)
        .skip(1)
        .find(|&at| matches!(document.elements[at].name.as_str(), "a" | "button"));
    let alt = element.get("alt").map(str::trim).filter(|alt| !alt.is_empty());
    let title = element.get("title").map(str::trim).filter(|title| !title.is_empty());
    let name = element.get("src").map(|src| src.split(['?', '#']).next().unwrap_or_default());
    let name = name.and_then(|src| src.rsplit('/').next()).and_then(|name| name.split('.').next());
    let text = match linked {
        Some(link) if !document.elements[link].has_text => alt.or(title).or(name).unwrap_or("image"),
        _ => alt.unwrap_or_default(),
    };
    edits.replace(picture.unwrap_or_else(|| element.tag.clone()), escaped(text));
}

/// Sheets, icons and what is loaded early go; what is for machines (canonical, alternate) stays.
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

/// A link to it.
fn media(document: &Document, at: usize, edits: &mut Edits) {
    let element = &document.elements[at];
    let Some(whole) = element.whole() else { return };
    let inner = document.elements[at + 1..].iter().take_while(|inner| inner.tag.start < whole.end);
    let source = element.get("src").or_else(|| inner.into_iter().find_map(|inner| inner.get("src")));
    let in_link = document.ancestors(at).skip(1).any(|at| document.elements[at].name == "a");
    let title = element.get("title").or(element.get("aria-label")).unwrap_or(&element.name);
    let text = match source {
        Some(source) if !in_link && !is_script(source) && !source.starts_with("about:") => {
            format!("<a href=\"{}\">{}</a>", escaped(source), escaped(title))
        }
        _ => String::new(),
    };
    edits.replace(whole, text);
}

/// A place on a picture becomes a link of its own.
fn area(element: &Element, edits: &mut Edits) {
    let text = match element.get("href").filter(|href| !is_script(href)) {
        Some(href) => {
            let alt = element.get("alt").map(str::trim).filter(|alt| !alt.is_empty()).unwrap_or(href);
            format!("<a href=\"{}\">{}</a> ", escaped(href), escaped(alt))
        }
        None => String::new(),
    };
    edits.replace(element.tag.clone(), text);
}

/// A button with a picture on it becomes one with its text.
fn input(document: &Document, element: &Element, edits: &mut Edits) {
    if element.get("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")) {
        edits.set(element, "type", "submit");
        if let Some(alt) = element.get("alt").filter(|_| element.get("value").is_none()) {
            edits.set(element, "value", alt);
        }
        for name in ["src", "alt", "width", "height"] {
            edits.unset(document.text(), element, name);
        }
    }
}
