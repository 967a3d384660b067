//! The words that stand for a picture that is gone (CA 2): what its author says of it, and what to call a link that showed
//! nothing else, or nobody could follow it.

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
    /// Where the images stand whose alternative text the link or button around them says too.
    repeated: BTreeSet<usize>,
}

impl<'a> Names<'a> {
    pub(super) fn of(decisions: &'a Decisions<'a>, document: &'a Document) -> Names<'a> {
        Names { decisions, document, repeated: repeated(document) }
    }

    /// The words in the place of a picture of which `alt` tells, apart from the words around it. None where a link or
    /// button around it says the same.
    pub(super) fn picture(&self, image: &Element, alt: Option<&str>) -> String {
        let is_new = !self.repeated.contains(&image.tag.start);
        let Some(alt) = alt.filter(|_| is_new) else { return String::new() };
        let (text, place) = (self.document.text(), self.document.picture(image));
        let mut after = text[place.end..].chars();
        let touches = match after.next() {
            // The next picture may leave words too.
            Some('<') => after.next().is_some_and(char::is_alphabetic),
            next => next.is_some_and(char::is_alphanumeric),
        };
        let blank = |wanted: bool| if wanted { " " } else { "" };
        let before =
            alt.starts_with(char::is_alphanumeric) && text[..place.start].ends_with(char::is_alphanumeric);
        format!("{}{alt}{}", blank(before), blank(touches && alt.ends_with(char::is_alphanumeric)))
    }

    /// The words for a link or button: its name for those who do not see it, those of its picture, its title, those of the page
    /// that it leads to, or the address.
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

/// What an image may stand in that is named by its text.
const NAMED: [&str; 5] = ["a", "button", "label", "option", "summary"];
/// A longer link (bytes of the page) is an article, which may well say what an image in it shows.
pub(super) const LONGEST: usize = 4096;

/// Images in links and buttons whose text has the words of the image's own in it.
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

/// The words of a text in lower case, each between blanks; `None` where there is none.
fn plain(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let plain = words.fold(String::from(" "), |all, word| all + word + " ");
    (plain.len() > 1).then_some(plain)
}

/// The last name of a path, in words: `shop/red-shoe.html` is "red shoe".
fn words_of(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    stem.split(['-', '_', '+']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
