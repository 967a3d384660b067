//! A page at the light or the lean level: which of its elements are replaced, and by what.
//!
//! Elements that scripts may look for stay: on a page with scripts, an element with `id`, `name` or an event attribute is never
//! taken out. The picture of an image map stays too, because it is a menu. A reference that leads nowhere stays as it was.

use super::decide::Decisions;
use super::names::Names;
use super::{Plain, text};
use crate::policy::{Level, Step, Tag};
use crate::roles::alternative_text;
use crate::site::survey::Sizer;
use crate::text::css;
use crate::text::document::{Document, Use, candidates};
use crate::text::markup::{Edits, Element, escaped};
use crate::text::reference::{Target, relative};

/// The number of images that load at once whatever the step `lazy` says, because visitors see them first.
const EAGER: usize = 3;

/// The style of the link in a frame's place: centred.
const FACADE: &str = "display:grid;place-items:center;height:100vh;margin:0;font:1rem sans-serif";

/// A page that is being rewritten.
struct Rewriter<'a> {
    decisions: &'a Decisions<'a>,
    path: &'a str,
    document: &'a Document,
    plain: &'a Plain,
    sizer: Sizer<'a, 'a>,
    names: Names<'a>,
    edits: Edits,
    /// How many images have been kept so far.
    kept: usize,
}

/// What replaces an image.
enum Instead {
    /// Its alternative text, if that is meaningful; in a link or button without any text, a sign or a word.
    Words,
    /// A link to the image.
    Link,
}

/// The page at `path` as it is at the level, in its encoding; `None` if it stays as it is.
pub(super) fn rewritten(
    decisions: &Decisions<'_>,
    path: &str,
    document: &Document,
    plain: &Plain,
) -> Option<Vec<u8>> {
    let ground = decisions.site.ground();
    let (sizer, names, edits) =
        (Sizer::of(document, &ground), Names::of(decisions, document), Edits::default());
    let mut rewriter = Rewriter { decisions, path, document, plain, sizer, names, edits, kept: 0 };
    (0..document.elements.len()).for_each(|at| rewriter.element(at));
    let text = rewriter.edits.apply(document.text())?;
    Some(document.decoded.encode(&text))
}

impl<'a> Rewriter<'a> {
    fn element(&mut self, at: usize) {
        let element = &self.document.elements[at];
        let tag = self.document.tag(at);
        self.edits.unset(self.document.text(), element, "data-plimsoll");
        self.cut_link(element, tag);
        if tag == Some(Tag::Important) || self.goes_as_tagged(at) {
            return;
        }
        if self.decisions.level == Level::Text {
            return text::element(&self.names, self.document, at, &mut self.edits);
        }
        match element.name.as_str() {
            "img" => self.image(at, tag),
            "source" => self.responsive(element),
            "video" | "audio" => self.media(element),
            "iframe" | "embed" | "object" if tag.is_none() => self.embed(element),
            "link" | "script" => self.linked(at, element),
            "style" => self.style(element),
            _ => {}
        }
        self.background(element, tag);
        if let Some(style) = element.get("style") {
            let without = css::without(style, |url| self.loses(url));
            without.into_iter().for_each(|style| self.edits.set(element, "style", &style));
        }
    }

    /// Turns a link to a page that the level does not have into its text.
    fn cut_link(&mut self, element: &Element, tag: Option<Tag>) {
        if !element.is(&["a", "area"]) || tag == Some(Tag::Important) {
            return;
        }
        let to = element.get("href").and_then(|href| self.file(href));
        if !to.is_some_and(|to| self.decisions.cut.contains(to.as_str())) {
            return;
        }
        // Without an address these attributes have no meaning (WHATWG HTML, 4.5.1).
        for name in ["href", "target", "rel", "download", "ping", "hreflang", "type", "referrerpolicy"] {
            self.edits.unset(self.document.text(), element, name);
        }
    }

    /// Removes an element that is itself tagged expendable, unless it contains something important.
    fn goes_as_tagged(&mut self, at: usize) -> bool {
        let Some(whole) = self.document.expendable(at).filter(|_| self.decisions.takes(Step::Expendable))
        else {
            return false;
        };
        if whole.start == self.document.elements[at].tag.start {
            self.edits.replace(whole.clone(), "");
        }
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

    /// What replaces an image; `None` if it stays.
    fn instead(&self, at: usize, file: &str, tag: Option<Tag>) -> Option<Instead> {
        let (decisions, element) = (self.decisions, &self.document.elements[at]);
        let tag = tag.or_else(|| decisions.file_tag(file));
        let for_scripts = |name: &str| ["id", "name"].contains(&name) || name.starts_with("on");
        let wanted_by_script =
            self.document.has_scripts && element.attributes.iter().any(|one| for_scripts(&one.name));
        if wanted_by_script || element.get("usemap").is_some() || element.get("ismap").is_some() {
            return None;
        }
        match tag {
            Some(Tag::Important | Tag::Degradable) => None,
            Some(Tag::Expendable) if decisions.takes(Step::Expendable) => Some(Instead::Words),
            _ if decisions.is_cosmetic(file) => Some(Instead::Words),
            _ => decisions.is_elsewhere(file, self.path).then_some(Instead::Link),
        }
    }

    fn replace_image(&mut self, at: usize, file: &str, instead: &Instead) {
        let element = &self.document.elements[at];
        let linked = self.document.around(element, &["a", "button", "label", "option", "summary"]);
        let alt = element.words("alt").and_then(|alt| alternative_text::telling(alt, file));
        let text = match (instead, linked, alt) {
            (_, Some(link), _) if !link.has_text => self.in_link(link, at, file, alt),
            (Instead::Link, None, Some(alt)) => {
                // The reference stays as it was written, with its base and query.
                let src =
                    element.get("src").map_or_else(|| relative(&self.document.folder, file), str::to_owned);
                format!("<a href=\"{}\">{}</a>", escaped(&src), escaped(alt))
            }
            _ => escaped(&self.names.picture(element, alt)),
        };
        self.edits.replace(self.document.picture(element), text);
    }

    /// The words for a removed image in a link or button without any text, which visitors could not follow if nothing were
    /// left: its first picture gets a sign or words. If another picture stays, the image may still get words of its own.
    fn in_link(&self, link: &Element, at: usize, file: &str, alt: Option<&str>) -> String {
        let element = &self.document.elements[at];
        let mut images = self.images_in(link).peekable();
        if images.peek().is_some_and(|&first| first != at) {
            let alt = alt.filter(|_| !link.is(&["a", "button"]));
            return escaped(&self.names.picture(element, alt));
        }
        let stays = |other: &usize| {
            let image = &self.document.elements[*other];
            let file = image.get("src").and_then(|src| self.file(src));
            file.is_none_or(|file| self.instead(*other, &file, self.document.tag(*other)).is_none())
        };
        let mut staying = images.filter(stays).peekable();
        if staying.peek().is_some() {
            let repeats = staying.any(|other| self.document.elements[other].words("alt") == alt);
            return escaped(&self.names.picture(element, alt.filter(|_| !repeats)));
        }
        let sign = self.sign(element, file, alt);
        sign.unwrap_or_else(|| escaped(&self.names.link(link, alt)))
    }

    /// The images in a link; empty if the link's end is not known.
    fn images_in(&self, link: &Element) -> impl Iterator<Item = usize> {
        let (elements, whole) = (&self.document.elements, link.whole().unwrap_or_default());
        let first = elements.partition_point(|other| other.tag.start < whole.start);
        let inside = (first..elements.len()).take_while(move |&other| elements[other].tag.start < whole.end);
        inside.filter(|&other| elements[other].name == "img")
    }

    /// The sign in the place of an icon. Its element has the icon's class, so that sheets place it as they placed the icon; the
    /// icon's description becomes its title.
    fn sign(&self, element: &Element, file: &str, alt: Option<&str>) -> Option<String> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let glyph = alternative_text::glyph(element.get("class").unwrap_or_default())
            .or_else(|| alternative_text::glyph(name))?;
        let said = |name: &str, value: Option<&str>| {
            value.map(|value| format!(" {name}=\"{}\"", escaped(value))).unwrap_or_default()
        };
        let class = said("class", element.words("class"));
        Some(format!("<span{class}{}>{glyph}</span>", said("title", alt)))
    }

    fn keep_image(&mut self, element: &Element, file: &str) {
        self.responsive(element);
        self.kept += 1;
        let usage = self.decisions.site.survey.usage.get(file).copied().unwrap_or_default();
        let layout = self.sizer.layout(element, file).filter(|_| !usage.fixed);
        let mut has_room = element.get("width").is_some() && element.get("height").is_some();
        if let (Some(layout), Some(&(width, height))) = (layout, self.decisions.site.dimensions.get(file))
            && self.decisions.takes(Step::Sizes)
        {
            for (wanted, name, side) in [(layout.set[0], "width", width), (layout.set[1], "height", height)] {
                if wanted {
                    self.edits.set(element, name, &side.to_string());
                }
            }
            has_room |= layout.set == [true, true];
            if let Some(srcset) = self.plain.get(file).and_then(|plain| self.srcset(element, plain)) {
                self.edits.set(element, "srcset", &srcset);
            }
        }
        // An image that loads late must not move the content below it.
        let late = self.kept > EAGER && (has_room || self.decisions.level == Level::Lean);
        if self.decisions.takes(Step::Lazy) && late && element.get("loading").is_none() {
            self.edits.set(element, "loading", "lazy");
        }
    }

    /// A `srcset` with the image's own reference for screens of twice the density, and with the name of the copy for `plain`
    /// screens. The references stay in the form of the page, because it may be reached by another address. A reference with a
    /// query gets no `srcset`, because the query may name a version.
    fn srcset(&self, element: &Element, plain: &str) -> Option<String> {
        // A blank would end the reference in a `srcset`.
        let src = element.get("src")?.trim().replace(' ', "%20");
        let (path, fragment) = src.split_at(src.find('#').unwrap_or(src.len()));
        let (stem, ending) = path.rsplit_once('.')?;
        let copy = format!("{stem}.1x.{ending}");
        let leads_there = self.document.resolve(&copy) == Target::Local(plain.to_owned());
        (leads_there && !src.contains('?')).then(|| format!("{copy}{fragment} 1x, {src} 2x"))
    }

    /// A frame of another host shows a link that loads its content; an object is replaced by a link.
    fn embed(&mut self, element: &Element) {
        let Some(source) = element.get("src").or_else(|| element.get("data")) else { return };
        let (Target::Elsewhere, Some(whole)) = (self.document.resolve(source), element.whole()) else {
            return;
        };
        // A frame with a text of its own does not load its address.
        if !self.decisions.takes(Step::Embeds) || element.get("srcdoc").is_some() {
            return;
        }
        let host = source.split("//").nth(1).and_then(|rest| rest.split(['/', '?']).next()).unwrap_or(source);
        let title = element.words("title").or_else(|| element.words("aria-label")).unwrap_or(host);
        let class = element.words("class").map(|class| format!(" class=\"{}\"", escaped(class)));
        let class = class.unwrap_or_default();
        if element.name == "iframe" {
            // The frame keeps its place and size, so that nothing below it moves.
            let link =
                format!("<body style=\"{FACADE}\"><a href=\"{}\">{}</a>", escaped(source), escaped(title));
            self.edits.set(element, "srcdoc", &link);
            self.edits.unset(self.document.text(), element, "src");
            return;
        }
        self.edits.replace(whole, format!("<a href=\"{}\"{class}>{}</a>", escaped(source), escaped(title)));
    }

    /// Keeps the smallest of several candidates with its descriptor, so that the layout stays the same.
    fn responsive(&mut self, element: &Element) {
        let Some(srcset) = element.get("srcset") else { return };
        let weight =
            |said: &str| said.strip_suffix(['x', 'w']).map_or(Ok(1.0), str::parse::<f64>).unwrap_or(1.0);
        let all = candidates(srcset);
        let smallest = all.iter().min_by(|one, other| weight(one.1).total_cmp(&weight(other.1)));
        if let Some((url, said)) = smallest
            && all.len() > 1
            && self.decisions.takes(Step::Responsive)
        {
            self.edits.set(element, "srcset", format!("{url} {said}").trim());
        }
    }

    fn media(&mut self, element: &Element) {
        if !self.decisions.takes(Step::Video) {
            return;
        }
        // A video without a poster would be a black box, and an autoplaying video would visibly stand still.
        let shows = element.get("poster").is_some() && element.get("autoplay").is_none();
        if self.decisions.level == Level::Light && element.name == "video" && !shows {
            return;
        }
        self.edits.unset(self.document.text(), element, "autoplay");
        if element.get("preload") != Some("none") {
            self.edits.set(element, "preload", "none");
        }
    }

    /// Handles sheets, scripts, icons, and files that are loaded early.
    fn linked(&mut self, at: usize, element: &Element) {
        let mut references = self.document.references_of(at).iter();
        let Some(reference) = references.find(|reference| reference.purpose != Use::Candidate) else {
            return;
        };
        let Target::Local(named) = &reference.target else { return };
        let Some(file) = self.decisions.site.tree.find(named) else { return };
        if self.decisions.is_expendable(&file) {
            self.edits.remove(element);
        } else if reference.purpose == Use::Icon
            && self.decisions.takes(Step::Cosmetic)
            && self.decisions.level == Level::Lean
            && self.decisions.file_tag(&file).is_none()
        {
            // On a page without an icon, browsers would request /favicon.ico.
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

    fn background(&mut self, element: &Element, tag: Option<Tag>) {
        let Some(file) = element.get("background").and_then(|background| self.file(background)) else {
            return;
        };
        let tag = tag.or_else(|| self.decisions.file_tag(&file));
        if self.decisions.takes(Step::Backgrounds) && tag.is_none_or(|tag| tag == Tag::Expendable) {
            self.edits.unset(self.document.text(), element, "background");
        }
    }
}
