//! What to call a link whose picture is gone: it has to say something, or nobody could follow it.

use super::decide::Decisions;
use crate::text::document::Document;
use crate::text::markup::Element;
use crate::text::reference::Target;

/// The words for a link or button: those of its picture, its own, those of the page that it leads to, or the address.
pub(super) fn link(
    decisions: &Decisions<'_>,
    document: &Document,
    link: &Element,
    alt: Option<&str>,
) -> String {
    let own = || ["title", "aria-label"].into_iter().find_map(|name| link.words(name));
    if let Some(words) = alt.or_else(own) {
        return words.to_owned();
    }
    let site = decisions.site;
    let href = link.words("href").filter(|href| *href != "#").unwrap_or_default();
    let to = match document.resolve(href) {
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

/// The last name of a path, in words: `shop/red-shoe.html` is "red shoe".
fn words_of(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path).trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    stem.split(['-', '_', '+']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
