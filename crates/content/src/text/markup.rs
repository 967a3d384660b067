//! A page's elements, with their places in its text.
//!
//! html5gum makes the tokens (WHATWG HTML, 13.2.5). Elements are matched with their ends by name, without the tree builder's
//! repairs: the page is changed in its text, by place, so everything else stays byte for byte as its author wrote it. If a tree
//! were written out again, every page would change, and every repair would have to be right.

use crate::policy::Tag;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, State, StringReader, Token, Tokenizer};
use std::collections::BTreeSet;
use std::ops::Range;

/// An element; or a tag that has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The name in lower case.
    pub(crate) name: String,
    /// The place of the start tag.
    pub(crate) tag: Range<usize>,
    /// The attributes in the order of the tag.
    pub(crate) attributes: Vec<Attribute>,
    /// The place of the end tag; `None` for an element without content, or one that is not closed.
    pub(crate) end: Option<Range<usize>>,
    /// The index of the element around it.
    pub(crate) parent: Option<usize>,
    /// Whether it contains text that a reader sees, not only tags and blanks. Text in a drawing does not count.
    pub(crate) has_text: bool,
}

/// An attribute of a start tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// The name in lower case.
    pub(crate) name: String,
    /// The value, decoded.
    pub(crate) value: String,
    /// The place of name, equals sign and value, without blanks around.
    pub(crate) range: Range<usize>,
}

/// Elements that never have content.
const VOID: [&str; 15] = [
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// The most elements that are open at once, as in browsers. A deeper element has no known end, so it is never removed whole.
/// Without this bound, a page of unclosed tags would take time in proportion to the square of its length.
const DEEPEST: usize = 512;

impl Element {
    /// The value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attribute(name).map(|attribute| attribute.value.as_str())
    }

    /// The value of an attribute without blanks around it; `None` if it is absent or blank.
    pub(crate) fn words(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|words| !words.is_empty())
    }

    /// Whether the element has one of these names.
    pub(crate) fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    /// The adaptation tag of the element itself.
    pub(crate) fn own_tag(&self) -> Option<Tag> {
        Tag::named(self.get("data-plimsoll")?.trim())
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The place of the whole element from its start tag to its end; the tag alone if it has no content. `None` if the end is
    /// not known.
    pub(crate) fn whole(&self) -> Option<Range<usize>> {
        let end = self.end.as_ref().map(|end| self.tag.start..end.end);
        end.or_else(|| self.is(&VOID).then(|| self.tag.clone()))
    }

    /// The place of the content between the tags.
    pub(crate) fn inside(&self) -> Option<Range<usize>> {
        self.end.as_ref().map(|end| self.tag.end..end.start)
    }
}

/// The tokens of a text. A start tag is self-closing only where browsers treat it so: in SVG and MathML, where even `style` or
/// `script` then has no content (WHATWG HTML, 13.2.6.5).
struct Tokens<'a> {
    tokenizer: Tokenizer<StringReader<'a>, DefaultEmitter<usize>>,
    /// The open elements at which SVG or MathML begins, or HTML within it.
    borders: Vec<HtmlString>,
}

impl Tokens<'_> {
    fn of(text: &str) -> Tokens<'_> {
        let mut emitter = DefaultEmitter::<usize>::new_with_span();
        emitter.naively_switch_states(true);
        Tokens { tokenizer: Tokenizer::new_with_emitter(text, emitter), borders: Vec::new() }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token<usize>;

    fn next(&mut self) -> Option<Token<usize>> {
        // Reading a string cannot fail.
        let Ok(mut token) = self.tokenizer.next()?;
        let begins_foreign = |name: &HtmlString| matches!(&name[..], b"svg" | b"math");
        match &mut token {
            Token::StartTag(tag) => {
                let begins = begins_foreign(&tag.name);
                tag.self_closing &= begins || self.borders.last().is_some_and(begins_foreign);
                let is_border = begins
                    || (!self.borders.is_empty()
                        && matches!(
                            &tag.name[..],
                            b"foreignobject" | b"desc" | b"title" | b"annotation-xml"
                        ));
                if tag.self_closing {
                    self.tokenizer.set_state(State::Data);
                } else if is_border && self.borders.len() < DEEPEST {
                    self.borders.push(tag.name.clone());
                }
            }
            Token::EndTag(tag) => {
                let depth = self.borders.iter().rposition(|name| *name == tag.name);
                self.borders.truncate(depth.unwrap_or(self.borders.len()));
            }
            _ => {}
        }
        Some(token)
    }
}

/// The elements of a page, in the order of their start tags.
pub(crate) fn elements(text: &str) -> Vec<Element> {
    let (mut elements, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    for token in Tokens::of(text) {
        match token {
            Token::StartTag(tag) => {
                let name = lossy(&tag.name);
                let mut attributes: Vec<Attribute> = tag
                    .attributes
                    .iter()
                    .map(|(name, value)| {
                        // For a value without quotes, the span includes the character that ended it.
                        let range = value.span.start..value.span.end.min(tag.span.end - 1);
                        let trimmed = text[range.clone()].trim_end().len();
                        Attribute {
                            name: lossy(name),
                            value: lossy(&value.value),
                            range: range.start..range.start + trimmed,
                        }
                    })
                    .collect();
                attributes.sort_by_key(|attribute| attribute.range.start);
                let end = tag.self_closing.then_some(tag.span.end..tag.span.end);
                let (parent, tag) = (open.last().copied(), tag.span.start..tag.span.end);
                if !VOID.contains(&name.as_str()) && end.is_none() && open.len() < DEEPEST {
                    open.push(elements.len());
                }
                elements.push(Element { name, tag, attributes, end, parent, has_text: false });
            }
            Token::EndTag(tag) => {
                let name = lossy(&tag.name);
                if let Some(depth) = open.iter().rposition(|&at| elements[at].name == name) {
                    elements[open[depth]].end = Some(tag.span.start..tag.span.end);
                    open.truncate(depth);
                }
            }
            Token::String(string) if !string.trim_ascii().is_empty() => {
                // If an element is known to have text, so are all around it; but text in `svg`, `style` or `script` does not
                // count for the elements around.
                for &at in open.iter().rev() {
                    let is_hidden = elements[at].is(&["svg", "style", "script"]);
                    if is_hidden || std::mem::replace(&mut elements[at].has_text, true) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    elements
}

/// The text in a part of a page, with a blank for each tag.
pub(crate) fn said(text: &str) -> String {
    let mut found = String::new();
    for token in Tokens::of(text) {
        match token {
            Token::String(string) => found += &lossy(&string.value),
            _ => found.push(' '),
        }
    }
    found
}

/// The characters that a page's text and attributes write as references, and some that they contain directly.
pub(crate) fn decoded(text: &str) -> BTreeSet<char> {
    let mut found = BTreeSet::new();
    let mut take = |text: &HtmlString| found.extend(lossy(text).chars());
    for token in Tokens::of(text) {
        match token {
            Token::StartTag(tag) => tag.attributes.values().for_each(|value| take(&value.value)),
            Token::String(string) => take(&string.value),
            _ => {}
        }
    }
    found
}

fn lossy(text: &HtmlString) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// `text` escaped for an element's content or a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Changes to a text at given places.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    /// Removes an element with its content, if its end is known.
    pub(crate) fn remove(&mut self, element: &Element) {
        if let Some(whole) = element.whole() {
            self.replace(whole, "");
        }
    }

    /// Sets an attribute's value; if the attribute is absent, adds it behind the tag's name.
    pub(crate) fn set(&mut self, element: &Element, name: &str, value: &str) {
        let text = format!("{name}=\"{}\"", escaped(value));
        match element.attribute(name) {
            Some(attribute) => self.replace(attribute.range.clone(), text),
            None => {
                let at = element.tag.start + 1 + element.name.len();
                self.replace(at..at, format!(" {text}"));
            }
        }
    }

    /// Removes an attribute with this name, and the blank before it.
    pub(crate) fn unset(&mut self, source: &str, element: &Element, name: &str) {
        if let Some(attribute) = element.attribute(name) {
            self.take_out(source, element, attribute);
        }
    }

    /// Removes this attribute of the element, and the blank before it.
    pub(crate) fn take_out(&mut self, source: &str, element: &Element, attribute: &Attribute) {
        let before = &source[element.tag.start..attribute.range.start];
        let start = element.tag.start + before.trim_end().len();
        self.replace(start..attribute.range.end, "");
    }

    /// The text with all changes; if a change lies within another, only the outer one is made. `None` if the text stays the
    /// same.
    pub(crate) fn apply(mut self, source: &str) -> Option<String> {
        // Insertions come first, in the order in which they were made; then, of two changes that begin together, the longer one
        // is the outer one.
        self.0.sort_by_key(|(range, _)| (range.start, !range.is_empty(), std::cmp::Reverse(range.len())));
        let (mut out, mut at) = (String::with_capacity(source.len()), 0);
        for (range, text) in self.0 {
            if range.start < at {
                continue;
            }
            out.push_str(&source[at..range.start]);
            out.push_str(&text);
            at = range.end;
        }
        out.push_str(&source[at..]);
        (out != source).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html>\r\n<BODY Background=x.gif><p>é<A HREF='a&amp;b.html'><IMG SRC=\"a b.png\" alt=x>\r\n\
                        </A><a href=c>text</a><script>if (a<b) '<img src=no>'</script><br/><div><p>open</div>";

    #[test]
    fn elements_stand_where_they_say() {
        let elements = elements(PAGE);
        let names: Vec<&str> = elements.iter().map(|element| element.name.as_str()).collect();
        assert_eq!(names, ["body", "p", "a", "img", "a", "script", "br", "div", "p"]);
        let img = &elements[3];
        assert_eq!((img.get("src"), img.get("alt"), img.get("title")), (Some("a b.png"), Some("x"), None));
        assert_eq!(&PAGE[img.attributes[0].range.clone()], "SRC=\"a b.png\"");
        assert_eq!(elements[2].get("href"), Some("a&b.html"));
        assert_eq!((elements[3].parent, elements[2].has_text, elements[4].has_text), (Some(2), false, true));
        assert_eq!(&PAGE[elements[5].inside().unwrap()], "if (a<b) '<img src=no>'");
        assert_eq!((elements[1].whole(), elements[8].whole()), (None, None), "nothing closes them");
        assert_eq!(&PAGE[elements[7].whole().unwrap()], "<div><p>open</div>");
    }

    #[test]
    fn a_tag_closes_itself_in_a_drawing_alone() {
        let page = "<a><svg><style/><title/><path/><g><desc><style/>x</style></desc></g>y</svg></a><math/><p><style/>z</style>";
        let elements = elements(page);
        let whole = |element: &Element| element.whole().map_or("", |whole| &page[whole]);
        let of = |name: &str| elements.iter().filter(|one| one.name == name).map(whole).collect::<Vec<_>>();
        assert_eq!(of("style"), ["<style/>", "<style/>x</style>", "<style/>z</style>"]);
        assert_eq!((of("path"), of("math")), (vec!["<path/>"], vec!["<math/>"]));
        assert!(of("svg")[0].ends_with("y</svg>"));
        assert!(!elements[0].has_text, "the drawing's text is none of the link's");
        assert_eq!(elements.last().and_then(|last| last.parent).map(|at| &elements[at].name[..]), Some("p"));
        assert_eq!(decoded("<svg><style/></svg>&eacute;"), BTreeSet::from(['\u{e9}']));
    }

    #[test]
    fn edits_keep_all_else() {
        let elements = elements(PAGE);
        let mut edits = Edits::default();
        edits.unset(PAGE, &elements[0], "background");
        edits.set(&elements[3], "alt", "\"<&");
        edits.set(&elements[3], "width", "10");
        edits.replace(elements[4].whole().unwrap(), "link");
        edits.set(&elements[4], "href", "inside what is replaced");
        let expected = PAGE
            .replace(" Background=x.gif", "")
            .replace("<IMG", "<IMG width=\"10\"")
            .replace("alt=x", "alt=\"&quot;&lt;&amp;\"")
            .replace("<a href=c>text</a>", "link");
        assert_eq!(edits.apply(PAGE), Some(expected));
    }

    #[test]
    fn a_valueless_attribute_at_the_tags_end() {
        let page = "<img src=a>";
        let mut edits = Edits::default();
        edits.unset(page, &elements(page)[0], "src");
        edits.set(&elements(page)[0], "alt", "");
        assert_eq!(edits.apply(page).unwrap(), "<img alt=\"\">");
        for (page, expected) in
            [("<img src=a b>", "<img b>"), ("<img b src=a>", "<img b>"), ("<img src=a/>", "<img>")]
        {
            let elements = elements(page);
            let mut edits = Edits::default();
            edits.unset(page, &elements[0], "src");
            assert_eq!(edits.apply(page).unwrap(), expected);
        }
    }
}
