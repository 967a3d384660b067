//! A page at a lower level: which of its elements give way to what.
//!
//! What scripts may look for stays: an element with `id`, `name` or an event's attribute, on a page with scripts, is
//! never taken out. So does a map's picture: it is a menu. A reference that leads nowhere stays as it was.

use crate::css;
use crate::decide::Decisions;
use crate::document::{Document, Use, candidates};
use crate::image;
use crate::markup::{Edits, Element, escaped};
use crate::policy::{Level, Step, Tag};
use crate::reference::{Target, relative};
use std::collections::BTreeMap;

/// Images that load at once, whatever the step `lazy` says: those that are seen first.
const EAGER: usize = 3;

/// A page that is being rewritten.
struct Rewriter<'a> {
    decisions: &'a Decisions<'a>,
    path: &'a str,
    document: &'a Document,
    /// Images that were written again with fewer pixels, and their widths before.
    widths: &'a BTreeMap<String, usize>,
    edits: Edits,
    /// Images that stay, so far.
    kept: usize,
}

/// What an image leaves behind.
enum Instead {
    Text,
    Link,
}

/// The page at `path` as it is at the level, in its encoding; `None` if it stays as it is.
pub(crate) fn rewritten(
    decisions: &Decisions<'_>,
    path: &str,
    document: &Document,
    widths: &BTreeMap<String, usize>,
) -> Option<Vec<u8>> {
    let edits = Edits::default();
    let mut rewriter = Rewriter { decisions, path, document, widths, edits, kept: 0 };
    for at in 0..document.elements.len() {
        rewriter.element(at);
    }
    let text = rewriter.edits.apply(document.text());
    (text != document.text()).then(|| document.decoded.encode(&text))
}

impl<'a> Rewriter<'a> {
    fn element(&mut self, at: usize) {
        let element = &self.document.elements[at];
        let tag = self.document.tag(at);
        self.edits.unset(self.document.text(), element, "data-plimsoll");
        self.cut_link(element, tag);
        if tag == Some(Tag::Important) {
            return;
        }
        if self.goes_as_tagged(at) {
            return;
        }
        if self.decisions.level == Level::Text {
            return crate::text_level::element(self.document, at, &mut self.edits);
        }
        match element.name.as_str() {
            "img" => self.image(at, tag),
            "source" => self.responsive(element),
            "video" | "audio" => self.media(element),
            "link" | "script" => self.linked(at, element),
            "style" => self.style(element),
            _ => {}
        }
        self.background(at, element, tag);
        if let Some(style) = element.get("style") {
            let without = css::without(style, |url| self.loses(url));
            if let Some(style) = without {
                self.edits.set(element, "style", &style);
            }
        }
    }

    /// A link to a page that the level does not have becomes the text that it was.
    fn cut_link(&mut self, element: &Element, tag: Option<Tag>) {
        if !matches!(element.name.as_str(), "a" | "area") || tag == Some(Tag::Important) {
            return;
        }
        let Some(Target::Local(named)) = element.get("href").map(|href| self.document.resolve(href)) else {
            return;
        };
        let to = self.decisions.site.tree.find(&named);
        if !to.is_some_and(|to| self.decisions.cut.contains(to.as_str())) {
            return;
        }
        // These have no sense without an address (WHATWG HTML, 4.5.1).
        for name in ["href", "target", "rel", "download", "ping", "hreflang", "type", "referrerpolicy"] {
            self.edits.unset(self.document.text(), element, name);
        }
    }

    /// An element that is tagged expendable itself goes whole, unless something important is in it.
    fn goes_as_tagged(&mut self, at: usize) -> bool {
        let element = &self.document.elements[at];
        let own = element.get("data-plimsoll").and_then(Tag::named);
        if own != Some(Tag::Expendable)
            || !self.decisions.policy.takes(Step::Expendable)
            || element.name == "img"
        {
            return false;
        }
        let Some(whole) = element.whole() else { return false };
        let inside = self.document.elements[at + 1..].iter().take_while(|inner| inner.tag.start < whole.end);
        let important =
            |inner: &Element| inner.get("data-plimsoll").and_then(Tag::named) == Some(Tag::Important);
        if ["html", "head", "body"].contains(&element.name.as_str()) || inside.into_iter().any(important) {
            return false;
        }
        self.edits.replace(whole, "");
        true
    }

    fn file(&self, reference: &str) -> Option<String> {
        match self.document.resolve(reference) {
            Target::Local(named) => self.decisions.site.tree.find(&named),
            _ => None,
        }
    }

    fn image(&mut self, at: usize, tag: Option<Tag>) {
        let element = &self.document.elements[at];
        let Some(file) = element.get("src").and_then(|src| self.file(src)) else {
            return self.responsive(element);
        };
        match self.instead(at, &file, tag) {
            Some(instead) => self.replace_image(at, &file, &instead),
            None => self.keep_image(element, &file),
        }
    }

    /// What an image gives way to; `None` if it stays.
    fn instead(&self, at: usize, file: &str, tag: Option<Tag>) -> Option<Instead> {
        let (decisions, element) = (self.decisions, &self.document.elements[at]);
        let tag = tag.or_else(|| decisions.file_tag(file));
        let wanted_by_script = self.document.has_scripts
            && element
                .attributes
                .iter()
                .any(|one| ["id", "name"].contains(&one.name.as_str()) || one.name.starts_with("on"));
        if wanted_by_script || element.get("usemap").is_some() || element.get("ismap").is_some() {
            return None;
        }
        match tag {
            Some(Tag::Important | Tag::Degradable) => None,
            Some(Tag::Expendable) if decisions.policy.takes(Step::Expendable) => Some(Instead::Text),
            _ if decisions.cosmetic.contains(file) => Some(Instead::Text),
            _ => decisions.owner.get(file).is_some_and(|owner| *owner != self.path).then_some(Instead::Link),
        }
    }

    fn replace_image(&mut self, at: usize, file: &str, instead: &Instead) {
        let element = &self.document.elements[at];
        // With the image, the `<picture>` around it goes.
        let picture = element
            .parent
            .map(|parent| &self.document.elements[parent])
            .filter(|parent| parent.name == "picture");
        let whole = picture.and_then(Element::whole).unwrap_or_else(|| element.tag.clone());
        let linked = self.document.ancestors(at).skip(1).find(|&at| {
            matches!(
                self.document.elements[at].name.as_str(),
                "a" | "button" | "label" | "option" | "summary"
            )
        });
        let words = words(element, file);
        let text = match (element.get("alt").map(str::trim), linked) {
            (Some(alt), _) if !alt.is_empty() => escaped(alt),
            // A link that a page does not show would be a dead one.
            (_, Some(link)) if !self.document.elements[link].has_text => escaped(&words),
            (_, None) if matches!(instead, Instead::Link) => escaped(&words),
            _ => String::new(),
        };
        let text = match (instead, linked) {
            (Instead::Link, None) => {
                // The reference stays as the page wrote it, with base and query.
                let src =
                    element.get("src").map_or_else(|| relative(&self.document.folder, file), str::to_owned);
                format!("<a href=\"{}\">{text}</a>", escaped(&src))
            }
            _ => text,
        };
        self.edits.replace(whole, text);
    }

    fn keep_image(&mut self, element: &Element, file: &str) {
        self.responsive(element);
        if let Some(width) = self.widths.get(file)
            && element.get("width").is_none()
            && element.get("height").is_none()
        {
            self.edits.set(element, "width", &width.to_string());
        }
        self.kept += 1;
        if self.decisions.policy.takes(Step::Lazy) && self.kept > EAGER && element.get("loading").is_none() {
            self.edits.set(element, "loading", "lazy");
        }
    }

    /// The smallest of several candidates, with its descriptor, so that the page is laid out as before.
    fn responsive(&mut self, element: &Element) {
        let Some(srcset) = element.get("srcset") else { return };
        let weight = |said: &str| said[..said.len().saturating_sub(1)].parse::<f64>().unwrap_or(1.0);
        let all = candidates(srcset);
        let smallest = all.iter().min_by(|one, other| weight(one.1).total_cmp(&weight(other.1)));
        if let Some((url, said)) = smallest
            && all.len() > 1
            && self.decisions.policy.takes(Step::Responsive)
        {
            self.edits.set(element, "srcset", format!("{url} {said}").trim());
        }
    }

    fn media(&mut self, element: &Element) {
        if !self.decisions.policy.takes(Step::Video) {
            return;
        }
        self.edits.unset(self.document.text(), element, "autoplay");
        if element.get("preload") != Some("none") {
            self.edits.set(element, "preload", "none");
        }
    }

    /// Sheets, scripts, icons, and what is loaded early.
    fn linked(&mut self, at: usize, element: &Element) {
        let references = self.document.references.iter().filter(|reference| reference.element == at);
        let Some(reference) = references.into_iter().find(|reference| reference.purpose != Use::Candidate)
        else {
            return;
        };
        let Target::Local(named) = &reference.target else { return };
        let Some(file) = self.decisions.site.tree.find(named) else { return };
        if self.decisions.is_expendable(&file) {
            if let Some(whole) = element.whole() {
                self.edits.replace(whole, "");
            }
        } else if reference.purpose == Use::Icon
            && self.decisions.policy.takes(Step::Cosmetic)
            && self.decisions.file_tag(&file).is_none()
        {
            // Without any, browsers ask for /favicon.ico.
            self.edits.set(element, "href", "data:,");
        }
    }

    fn style(&mut self, element: &Element) {
        let Some(inside) = element.inside() else { return };
        if let Some(text) = css::without(&self.document.text()[inside.clone()], |url| self.loses(url)) {
            self.edits.replace(inside, text);
        }
    }

    fn loses(&self, url: &css::SheetUrl) -> bool {
        match self.document.resolve(&url.url) {
            Target::Local(named) => self.decisions.style_loses(&named, &url.purpose),
            _ => false,
        }
    }

    fn background(&mut self, at: usize, element: &Element, tag: Option<Tag>) {
        let Some(file) = element.get("background").and_then(|background| self.file(background)) else {
            return;
        };
        let tag = tag.or_else(|| self.decisions.file_tag(&file));
        let known =
            self.document.references.iter().any(|one| one.element == at && one.purpose == Use::Background);
        if known
            && self.decisions.policy.takes(Step::Backgrounds)
            && tag.is_none_or(|tag| tag == Tag::Expendable)
        {
            self.edits.unset(self.document.text(), element, "background");
        }
    }
}

/// What to call an image that has no alternative text: its title, or its file's name.
fn words(element: &Element, file: &str) -> String {
    let title = element.get("title").map(str::trim).filter(|title| !title.is_empty());
    let name = file.rsplit('/').next().unwrap_or(file);
    title.unwrap_or(name.split_once('.').map_or(name, |(stem, _)| stem)).to_owned()
}

/// The width that an image had before it was written again, if it has fewer pixels now.
pub(crate) fn width_before(original: (usize, usize), written: &[u8]) -> Option<usize> {
    let (width, _) = image::dimensions(written)?;
    (width < original.0).then_some(original.0)
}
