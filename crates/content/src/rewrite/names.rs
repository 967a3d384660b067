//! The words in the place of a removed picture (CA 2): what its author says about it; and the words for a link that showed
//! nothing else, because otherwise a visitor could not follow it.

use super::decide::Decisions;
use super::text::is_script;
use crate::text::document::Document;
use crate::text::markup::{Element, said};
use crate::text::reference::Target;
use std::collections::{BTreeMap, BTreeSet};

/// Words for the pictures of a page.
pub(super) struct Names<'a> {
    decisions: &'a Decisions<'a>,
    document: &'a Document,
    /// The places of images whose alternative text is repeated by the link or button around them.
    repeated: BTreeSet<usize>,
}

impl<'a> Names<'a> {
    pub(super) fn of(decisions: &'a Decisions<'a>, document: &'a Document) -> Names<'a> {
        Names { decisions, document, repeated: repeated(document) }
    }

    /// The words in the place of a picture with the alternative text `alt`, separated from the words around it; empty if a link
    /// or button around it says the same.
    pub(super) fn picture(&self, image: &Element, alt: Option<&str>) -> String {
        let is_new = !self.repeated.contains(&image.tag.start);
        let Some(alt) = alt.filter(|_| is_new) else { return String::new() };
        let (text, place) = (self.document.text(), self.document.picture(image));
        let mut after = text[place.end..].chars();
        let touches = match after.next() {
            // The next picture may leave words too, so a blank is needed.
            Some('<') => after.next().is_some_and(char::is_alphabetic),
            next => next.is_some_and(char::is_alphanumeric),
        };
        let blank = |wanted: bool| if wanted { " " } else { "" };
        let before =
            alt.starts_with(char::is_alphanumeric) && text[..place.start].ends_with(char::is_alphanumeric);
        format!("{}{alt}{}", blank(before), blank(touches && alt.ends_with(char::is_alphanumeric)))
    }

    /// The words for a link or button: its name for screen readers, the words of its picture, its title, the title of the page
    /// that it leads to, or its address.
    pub(super) fn link(&self, link: &Element, alt: Option<&str>) -> String {
        if let Some(words) = link.words("aria-label").or(alt).or_else(|| link.words("title")) {
            return words.to_owned();
        }
        let site = self.decisions.site;
        let href = link.words("href").filter(|href| *href != "#" && !is_script(href)).unwrap_or_default();
        let to = match self.document.resolve(href) {
            Target::Local(named) => site.tree.find(&named),
            Target::Here if href.is_empty() => return String::new(),
            _ => None,
        };
        if to.is_some() && to == site.first() {
            return "Home".to_owned();
        }
        let title = to.as_ref().and_then(|to| site.survey.pages.get(to)).and_then(|page| page.title.clone());
        title.unwrap_or_else(|| words_of(to.as_deref().unwrap_or(href)))
    }
}

/// Elements that are named by their text.
const NAMED: [&str; 5] = ["a", "button", "label", "option", "summary"];
/// A longer link (bytes of the page) is an article, which may repeat the words of an image in it.
pub(super) const LONGEST: usize = 4096;

/// The images in links and buttons whose text contains the image's own words.
fn repeated(document: &Document) -> BTreeSet<usize> {
    let mut texts: BTreeMap<usize, Option<String>> = BTreeMap::new();
    let images = document.elements.iter().filter(|element| element.name == "img");
    let again = images.filter(|image| {
        let link = document.around(image, &NAMED).filter(|link| link.has_text);
        let inside = link.and_then(Element::inside).filter(|inside| inside.len() <= LONGEST);
        let Some((inside, alt)) = inside.zip(image.words("alt").and_then(plain)) else { return false };
        let text = texts.entry(inside.start).or_insert_with(|| plain(&said(&document.text()[inside])));
        text.as_ref().is_some_and(|text| text.contains(&alt))
    });
    again.map(|image| image.tag.start).collect()
}

/// The words of a text in lower case, each between blanks; `None` if there are none.
fn plain(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let plain = words.fold(String::from(" "), |all, word| all + word + " ");
    (plain.len() > 1).then_some(plain)
}

/// The last name of a path in words: for `shop/red-shoe.html`, "red shoe".
fn words_of(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    stem.split(['-', '_', '+']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
