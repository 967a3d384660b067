//! Removes from SVG images what no browser draws: comments, metadata, an editor's settings.
//!
//! Only these are removed, by place; paths and numbers stay as they were drawn. Rounding coordinates would save more but may be
//! visible, and a vector picture is small once it is compressed, as the step `compressed` does.

use super::markup::{Edits, elements};

/// Elements that draw nothing and hold nothing that is drawn (SVG 2, 5.10; Inkscape's own).
const SILENT: [&str; 3] = ["metadata", "sodipodi:namedview", "inkscape:perspective"];

/// The image without these; `None` if there is nothing to remove, or if it is no text or broken.
pub(crate) fn without_silence(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (mut edits, mut at) = (Edits::default(), 0);
    while let Some(next) = text[at..].find('<') {
        at += next;
        let rest = &text[at..];
        let length = if rest.starts_with("<!--") {
            Some(rest.find("-->")? + 3)
        } else {
            match SILENT.into_iter().find(|name| is_tag(rest, "<", name)) {
                Some(name) => silent(rest, name)?,
                None => None,
            }
        };
        if let Some(length) = length {
            edits.replace(at..at + length, "");
        }
        at += length.unwrap_or_else(|| kept(rest));
    }
    edits.apply(text).map(String::into_bytes)
}

/// The width and height that the image states: by attributes in pixels, otherwise by the part of the plane that it shows (SVG
/// 2, 8.2). `None` if it states neither.
pub(crate) fn size(text: &str) -> Option<(usize, usize)> {
    let mut rest = &text[text.find('<')?..];
    while !is_tag(rest, "<", "svg") {
        let length = if rest.starts_with("<!--") { rest.find("-->")? + 3 } else { kept(rest) };
        rest = &rest[length..];
        rest = &rest[rest.find('<')?..];
    }
    let root = elements(&rest[..kept(rest)]).into_iter().next()?;
    let pixels = |text: &str| text.trim().trim_end_matches("px").parse::<f64>().ok();
    let attribute = |name: &str| root.get(name).and_then(pixels);
    let plane = || {
        let numbers: Vec<f64> = root
            .get("viewbox")?
            .split(|c: char| c == ',' || c.is_ascii_whitespace())
            .filter_map(pixels)
            .collect();
        (numbers.len() == 4).then(|| (numbers[2], numbers[3]))
    };
    let (width, height) = attribute("width").zip(attribute("height")).or_else(plane)?;
    let whole = |side: f64| (1.0..1e6).contains(&side).then_some(side.ceil() as usize);
    whole(width).zip(whole(height))
}

/// Whether `text` begins with the tag of the element with this name: `<` opens it, `</` closes it.
fn is_tag(text: &str, bracket: &str, name: &str) -> bool {
    let after = text.strip_prefix(bracket).and_then(|text| text.strip_prefix(name));
    after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/'))
}

/// The length of the silent element with which `text` begins; `Some(None)` if another element of its name lies in it, which no
/// editor writes. `None` if its end is missing, so that the image is broken.
fn silent(text: &str, name: &str) -> Option<Option<usize>> {
    let head = kept(text);
    if text[..head].ends_with("/>") {
        return Some(Some(head));
    }
    let inside = text[head..].match_indices('<').map(|(at, _)| head + at);
    for at in inside {
        if is_tag(&text[at..], "</", name) {
            return Some(Some(at + kept(&text[at..])));
        }
        if is_tag(&text[at..], "<", name) {
            return Some(None);
        }
    }
    None
}

/// The length of the tag, or of the section of raw text, with which `text` begins. A quoted value may contain a `>`.
fn kept(text: &str) -> usize {
    if text.starts_with("<![CDATA[") {
        return text.find("]]>").map_or(text.len(), |end| end + 3);
    }
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_the_root_says_them() {
        for (image, expected) in [
            (
                "<?xml version='1.0'?><!-- <svg> --><svg width='24' height=\"16.5px\" viewBox='0 0 9 9'/>",
                Some((24, 17)),
            ),
            (
                "<svg:x/><svg width='24' height=\"16.5px\" viewBox='0 0 9 9'><rect width='1'/></svg>",
                Some((24, 17)),
            ),
            ("<svg width='100%' height='100%' viewBox='0 0 512,384'>", Some((512, 384))),
            ("<svg width='2em' height='2em'>", None),
            ("<svg viewBox='0 0 1e999 0'>", None),
            ("<svg", None),
            ("", None),
        ] {
            assert_eq!(size(image), expected, "{image}");
        }
    }

    #[test]
    fn only_what_draws_nothing_goes() {
        let image = "<?xml version='1.0'?><svg><!-- a > b --><metadata id='m'><rdf:RDF>x</rdf:RDF></metadata>\
                     <sodipodi:namedview a='>'/><style><![CDATA[ a > b {} <!-- x --> ]]></style>\
                     <metadatas/><path d='M0 0' title='<!-- no -->'/></svg>";
        let expected = "<?xml version='1.0'?><svg><style><![CDATA[ a > b {} <!-- x --> ]]></style>\
                        <metadatas/><path d='M0 0' title='<!-- no -->'/></svg>";
        assert_eq!(without_silence(image.as_bytes()).unwrap(), expected.as_bytes());
        for same in ["<svg/>", "<svg><!-- open", "<svg><metadata>", "\u{fc} < >", ""] {
            assert_eq!(without_silence(same.as_bytes()), None, "{same}");
        }
        assert_eq!(without_silence(b"\xff<!-- -->"), None, "not in UTF-8: as it is");
    }
}
