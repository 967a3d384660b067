//! How large a page shows an image, and which attributes fix that size without moving anything.
//!
//! If attributes or simple declarations of style sheets size an image, it is shown at that size whatever its file has, so the
//! file may have fewer pixels. If nothing sizes it, it has the size of its file; attributes with that size are then set, and
//! the file may have fewer pixels too. If a sheet uses sizes that cannot be evaluated here (percents, units of the font), or
//! comes from elsewhere, the size is unknown and the file keeps its pixels.

use crate::text::boxes::{Boxes, Sizing};
use crate::text::document::{Document, Use};
use crate::text::markup::Element;
use crate::text::reference::Target;

/// How an image is laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layout {
    /// The part of the image's own width and height at which it is shown; above 1 only for a drawing, which has no pixels of
    /// its own.
    pub(crate) scale: f64,
    /// Whether the attributes width and height must be set, so that the file's size does not matter.
    pub(crate) set: [bool; 2],
}

/// Hosts whose sheets contain only fonts.
const FONT_HOSTS: [&str; 2] = ["fonts.googleapis.com", "fonts.bunny.net"];

/// The sheets of a page: those of the site, from `sheets`, and those in the page. `None` if it loads a sheet of another host,
/// which may contain anything.
pub(crate) fn boxes<'a>(
    document: &Document,
    sheet: impl Fn(&str) -> Vec<&'a Boxes>,
) -> Option<(Vec<&'a Boxes>, Vec<Boxes>)> {
    let mut known = Vec::new();
    for reference in document.references.iter().filter(|reference| reference.purpose == Use::Sheet) {
        match &reference.target {
            Target::Local(named) => known.extend(sheet(named)),
            Target::Elsewhere => {
                let href = document.elements[reference.element].get("href").unwrap_or_default();
                FONT_HOSTS.iter().any(|host| href.contains(host)).then_some(())?;
            }
            Target::Here => return None,
        }
    }
    let styles = document.elements.iter().filter(|element| element.name == "style");
    let own = styles.filter_map(Element::inside).map(|inside| Boxes::of(&document.text()[inside])).collect();
    Some((known, own))
}

/// The layout of an image with this width and height; `None` if it is not known.
pub(crate) fn layout(element: &Element, sheets: Sizing, own: (usize, usize)) -> Option<Layout> {
    let layout = of_drawing(element, sheets, own)?;
    Some(Layout { scale: layout.scale.min(1.0), ..layout })
}

/// The layout of a drawing with this own width and height; `None` if it is not known.
pub(crate) fn of_drawing(element: &Element, sheets: Sizing, own: (usize, usize)) -> Option<Layout> {
    let inline = element.get("style").map(Sizing::of).unwrap_or_default();
    let attribute = |name: &str| match element.get(name).map(str::trim) {
        None | Some("") => Some(None),
        Some(text) => text.trim_end_matches("px").parse::<f64>().ok().map(Some),
    };
    let attributes = [attribute("width")?, attribute("height")?];
    let all = sheets.and(inline);
    if all.unknown || own.0 == 0 || own.1 == 0 {
        return None;
    }
    let side = |at: usize| inline.pixels[at].or(sheets.pixels[at]).or(attributes[at]);
    let scales = [side(0).map(|width| width / own.0 as f64), side(1).map(|height| height / own.1 as f64)];
    let scale = scales.into_iter().flatten().reduce(f64::max);
    // If the width may shrink, a height without `auto` would not follow it.
    let set = match scale {
        None => [true, all.follows || !all.shrinks],
        Some(_) => [false, false],
    };
    let scale = scale.unwrap_or(1.0);
    (scale > 0.0).then_some(Layout { scale, set })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: &str, sheet: &str) -> Option<Layout> {
        let document = Document::read("a.html", tag.as_bytes()).unwrap();
        layout(&document.elements[0], Boxes::of(sheet).sizing(&document, &document.elements[0]), (800, 400))
    }

    #[test]
    fn sizes_on_the_page() {
        let sized = |scale, set| Some(Layout { scale, set });
        for (tag, sheet, expected) in [
            ("<img>", "", sized(1.0, [true, true])),
            ("<img width=400>", "", sized(0.5, [false, false])),
            ("<img width=200 height=200>", "", sized(0.5, [false, false])),
            ("<img width=1600>", "", sized(1.0, [false, false])),
            ("<img style='height:100px'>", "", sized(0.25, [false, false])),
            ("<img width=400>", "img{width:200px}", sized(0.25, [false, false])),
            ("<img>", "img{max-width:100%}", sized(1.0, [true, false])),
            ("<img>", "img{max-width:100%;height:auto}", sized(1.0, [true, true])),
            ("<img>", "img{width:100%}", None),
            ("<img width='50%'>", "", None),
            ("<img width=0>", "", None),
        ] {
            assert_eq!(of(tag, sheet), expected, "{tag} {sheet}");
        }
    }
}
