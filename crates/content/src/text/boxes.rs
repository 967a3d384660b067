//! How large an element is shown, as far as style sheets size it by simple declarations.
//!
//! A rule counts if its last compound selector and the one before it match (Selectors 4, 3.1), whatever stands further to the
//! left, and in every medium, so that rather too many rules count than too few. Only declarations that size a box are read. If
//! a size is not a whole number of pixels it is unknown, and an image of unknown size keeps its own.

use super::document::Document;
use super::markup::Element;

/// The sizes that a sheet sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Boxes(Vec<(Selector, Sizing)>);

/// The last two compounds of a selector.
#[derive(Clone, Debug, PartialEq)]
struct Selector {
    last: Compound,
    before: Option<Compound>,
}

/// A name, classes and an identifier; an empty compound matches every element.
#[derive(Clone, Debug, Default, PartialEq)]
struct Compound {
    name: Option<String>,
    classes: Vec<String>,
    id: Option<String>,
}

/// The size that declarations give a box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sizing {
    /// The width and height in pixels, each the largest that any rule sets.
    pub(crate) pixels: [Option<f64>; 2],
    /// Whether a width or height depends on the surroundings.
    pub(crate) unknown: bool,
    /// Whether the box becomes narrower if there is no room.
    pub(crate) shrinks: bool,
    /// Whether its height follows from its width.
    pub(crate) follows: bool,
}

impl Sizing {
    /// The combination of both.
    pub(crate) fn and(self, other: Sizing) -> Sizing {
        let larger = |at: usize| match (self.pixels[at], other.pixels[at]) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        Sizing {
            pixels: [larger(0), larger(1)],
            unknown: self.unknown || other.unknown,
            shrinks: self.shrinks || other.shrinks,
            follows: self.follows || other.follows,
        }
    }

    /// Reads the sizes in declarations, such as those of a `style` attribute.
    pub(crate) fn of(declarations: &str) -> Sizing {
        let mut sizing = Sizing::default();
        for declaration in declarations.split(';') {
            let Some((name, value)) = declaration.split_once(':') else { continue };
            let value = value.trim().trim_end_matches("!important").trim_end().to_ascii_lowercase();
            match (name.trim().to_ascii_lowercase().as_str(), value.as_str()) {
                ("height", "auto") => sizing.follows = true,
                ("width", "auto") | ("max-width" | "max-height", "none") => {}
                ("width", value) => sizing.take(0, value),
                ("height", value) => sizing.take(1, value),
                ("max-width", _) => sizing.shrinks = true,
                ("min-width" | "min-height" | "max-height" | "aspect-ratio" | "zoom", _) => {
                    sizing.unknown = true;
                }
                _ => {}
            }
        }
        sizing
    }

    fn take(&mut self, side: usize, value: &str) {
        match value.strip_suffix("px").and_then(|number| number.parse().ok()) {
            Some(pixels) => self.pixels[side] = Some(pixels),
            None => self.unknown = true,
        }
    }

    fn says_something(&self) -> bool {
        *self != Sizing::default()
    }
}

impl Boxes {
    /// Reads the sizes that a sheet sets.
    pub(crate) fn of(sheet: &str) -> Boxes {
        let sheet = without_comments(sheet);
        let (mut found, mut preludes, mut start) = (Vec::new(), Vec::new(), 0);
        for (at, byte) in sheet.bytes().enumerate() {
            match byte {
                b'{' => {
                    preludes.push(&sheet[start..at]);
                    start = at + 1;
                }
                b'}' => {
                    let prelude: &str = preludes.pop().unwrap_or("@");
                    let sizing = Sizing::of(&sheet[start..at]);
                    if sizing.says_something() && !prelude.trim_start().starts_with('@') {
                        found.extend(selectors(prelude).map(|selector| (selector, sizing)));
                    }
                    start = at + 1;
                }
                // Between rules, a semicolon ends an import; within a rule, the declarations go on.
                b';' if preludes.last().is_none_or(|prelude| prelude.trim_start().starts_with('@')) => {
                    start = at + 1
                }
                _ => {}
            }
        }
        Boxes(found)
    }

    /// The size that the sheet gives an element.
    pub(crate) fn sizing(&self, document: &Document, element: &Element) -> Sizing {
        let fits = |selector: &&(Selector, Sizing)| selector.0.fits(document, element);
        self.0.iter().filter(fits).fold(Sizing::default(), |sum, (_, sizing)| sum.and(*sizing))
    }
}

fn without_comments(sheet: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(sheet.len()), sheet);
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// The selectors of a rule that may match an element by their last parts. Pseudo-elements are left out, because their boxes are
/// not the element's.
fn selectors(prelude: &str) -> impl Iterator<Item = Selector> {
    let is_box =
        |selector: &&str| ![":before", ":after", "::"].iter().any(|pseudo| selector.contains(pseudo));
    prelude.split(',').filter(is_box).filter_map(|selector| {
        let mut parts = selector.split(|c: char| c.is_ascii_whitespace() || ">+~".contains(c));
        let mut next = || parts.rfind(|part| !part.is_empty());
        let last = Compound::of(next()?);
        Some(Selector { last, before: next().map(Compound::of) })
    })
}

impl Compound {
    /// Reads a compound. States and attributes are assumed to match.
    fn of(text: &str) -> Compound {
        let plain = &text[..text.find([':', '[']).unwrap_or(text.len())];
        let mut compound = Compound::default();
        let mut rest = plain;
        while !rest.is_empty() {
            let end = rest[1..].find(['.', '#']).map_or(rest.len(), |end| end + 1);
            let (part, after) = rest.split_at(end);
            match part.as_bytes()[0] {
                b'.' => compound.classes.push(part[1..].to_owned()),
                b'#' => compound.id = Some(part[1..].to_owned()),
                b'*' => {}
                _ => compound.name = Some(part.to_ascii_lowercase()),
            }
            rest = after;
        }
        compound
    }

    fn fits(&self, element: &Element) -> bool {
        let class = element.get("class").unwrap_or_default();
        self.name.as_ref().is_none_or(|name| *name == element.name)
            && self.id.as_ref().is_none_or(|id| element.get("id") == Some(id))
            && self.classes.iter().all(|wanted| class.split_ascii_whitespace().any(|class| class == wanted))
    }
}

impl Selector {
    fn fits(&self, document: &Document, element: &Element) -> bool {
        let mut around = document.outward(element).skip(1);
        self.last.fits(element)
            && self.before.as_ref().is_none_or(|before| around.any(|outer| before.fits(outer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizing(sheet: &str) -> Sizing {
        let page = "<div class='row a'><p id=p><img class='b c' id=i></p></div>";
        let document = Document::read("a.html", page.as_bytes()).unwrap();
        let image = document.elements.iter().find(|element| element.name == "img").unwrap();
        Boxes::of(sheet).sizing(&document, image)
    }

    #[test]
    fn rules_that_fit_size_the_image() {
        let of = Sizing::of;
        for (sheet, expected) in [
            ("img{width:10px}", of("width:10px")),
            ("@import 'x'; @media print { .row p > IMG.b { WIDTH : 10px ; color: red } }", of("width:10px")),
            ("/* img{height:1px} */ .a .c, .z { height:10px }", of("height:10px")),
            (".row > * { width: 100% }", of("width:100%")),
            (".d > * { width: 100% } img::before, .z img, .b.z { width:1px }", Sizing::default()),
            ("#i:hover{max-width:100%;height:auto}", of("max-width:100%;height:auto")),
            ("img{width:10px} .b{width:12px !important}", of("width:12px")),
            ("@font-face{src:url(a)} img{color:red", Sizing::default()),
            ("}}}{", Sizing::default()),
        ] {
            assert_eq!(sizing(sheet), expected, "{sheet}");
        }
        assert!(of("width:50%").unknown && of("width: calc(1px + 2px)").unknown);
        let fluid = of("max-width:100%;height:auto");
        assert!(fluid.shrinks && fluid.follows && !fluid.unknown);
    }
}
