//! What a site's pages load and link to, on which all decisions and estimates are based.

use super::kind::Kind;
use super::layout::{self, Layout};
use super::tree::Tree;
use crate::policy::Tag;
use crate::roles::{Evidence, alternative_text};
use crate::text::boxes::{Boxes, Sizing};
use crate::text::css::{self, Purpose};
use crate::text::document::{Document, Reference, Use, candidates};
use crate::text::markup::Element;
use crate::text::reference::{Target, folder, resolve};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The references of a page to files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    /// The files that a view of the page loads, each once.
    pub(crate) embedded: BTreeSet<String>,
    /// Embedded files that are images in the text, which may be shown on another page instead.
    pub(crate) images: BTreeSet<String>,
    /// The images that the page still shows when its expendable elements are gone.
    pub(crate) lasting: BTreeSet<String>,
    /// The pages to which it links.
    pub(crate) links: BTreeSet<String>,
    /// The pages to which an important link leads.
    pub(crate) important_links: BTreeSet<String>,
    /// The number of references to missing files.
    pub(crate) dangling: u64,
    /// The number of files of other hosts that a view loads.
    pub(crate) external: u64,
    /// The page's title.
    pub(crate) title: Option<String>,
}

/// How all pages and sheets use a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// The largest part of its own width at which a page shows the image; above 1 only for drawings; 0 if no page shows it.
    pub(crate) scale: f64,
    /// Whether the file's own size matters somewhere, or may matter.
    pub(crate) fixed: bool,
    /// Whether it is used with the tag important.
    pub(crate) important: bool,
    /// Whether it is used with the tag degradable.
    pub(crate) degradable: bool,
    /// Whether it is used with the tag expendable.
    pub(crate) expendable: bool,
    /// Whether it is used without the tag expendable.
    pub(crate) otherwise: bool,
    /// Whether a page states its hash, so that browsers refuse it if it changes.
    pub(crate) hashed: bool,
}

impl Usage {
    /// Whether all uses of the file are expendable. A tag on one page says nothing about the others.
    pub(crate) fn is_expendable(&self) -> bool {
        self.expendable && !self.otherwise
    }
}

/// The facts that a survey of pages needs.
pub(crate) struct Ground<'a> {
    pub(crate) tree: &'a Tree,
    /// The first page of the site.
    pub(crate) first: Option<&'a str>,
    /// The sizes that each sheet sets; and the sheets that each sheet imports.
    pub(crate) sheets: &'a BTreeMap<String, Boxes>,
    pub(crate) imports: &'a BTreeMap<String, BTreeSet<String>>,
    /// The width and height of each image.
    pub(crate) dimensions: &'a BTreeMap<String, (usize, usize)>,
    /// The width and height of each SVG image.
    pub(crate) drawings: &'a BTreeMap<String, (usize, usize)>,
}

/// The pages, and the use of files by them.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) usage: BTreeMap<String, Usage>,
    /// The evidence of pages about the images that they show.
    pub(crate) evidence: BTreeMap<String, Evidence>,
    /// The sheets that each sheet loads.
    pub(crate) imports: BTreeMap<String, BTreeSet<String>>,
}

impl Survey {
    /// Adds a page to the survey.
    pub(crate) fn page(&mut self, path: &str, document: &Document, ground: &Ground<'_>) {
        let tree = ground.tree;
        let sizer = Sizer::of(document, ground);
        let mut page = Page { title: document.title(), ..Page::default() };
        let mut seen: BTreeMap<String, Evidence> = BTreeMap::new();
        for reference in &document.references {
            let Target::Local(named) = &reference.target else {
                let embedded = reference.target == Target::Elsewhere && reference.purpose.is_embedded();
                page.external += u64::from(embedded);
                continue;
            };
            let Some(file) = tree.find(named) else {
                page.dangling += 1;
                continue;
            };
            let tag = document.tag(reference.element);
            self.note(&file, reference, tag, &sizer);
            match reference.purpose {
                Use::Link if Kind::of(&file) == Kind::Page && file != path => {
                    if tag == Some(Tag::Important) {
                        page.important_links.insert(file.clone());
                    }
                    page.links.insert(file);
                }
                Use::Link if Kind::of(&file).is_image() => self.usage.entry(file).or_default().fixed = true,
                purpose if file != path && is_loaded(purpose, &document.elements[reference.element]) => {
                    if purpose == Use::Image {
                        seen.entry(file.clone())
                            .or_default()
                            .merge(&evidence(document, reference, &file, ground));
                    }
                    // If a program makes the image, each query may give another one.
                    let is_one = tree.files[&file].kind.is_image();
                    if matches!(purpose, Use::Image | Use::Candidate) && is_one {
                        let goes =
                            tag == Some(Tag::Expendable) || document.expendable(reference.element).is_some();
                        if !goes {
                            page.lasting.insert(file.clone());
                        }
                        page.images.insert(file.clone());
                    }
                    page.embedded.insert(file);
                }
                _ => {}
            }
        }
        for named in document.named_images() {
            if let Some(file) = tree.find(&named) {
                self.usage.entry(file).or_default().fixed = true;
            }
        }
        for (file, mut evidence) in seen {
            evidence.pages = 1;
            self.evidence.entry(file).or_default().merge(&evidence);
        }
        self.pages.insert(path.to_owned(), page);
    }

    fn note(&mut self, file: &str, reference: &Reference, tag: Option<Tag>, sizer: &Sizer<'_, '_>) {
        let purpose = reference.purpose;
        let element = &sizer.document.elements[reference.element];
        let usage = self.usage.entry(file.to_owned()).or_default();
        match purpose {
            Use::Link | Use::Hint => {}
            Use::Image => match sizer.layout(element, file) {
                Some(layout) => usage.scale = usage.scale.max(layout.scale),
                None => usage.fixed = true,
            },
            _ => usage.fixed = true,
        }
        usage.important |= tag == Some(Tag::Important) && purpose != Use::Link;
        usage.degradable |= tag == Some(Tag::Degradable);
        usage.hashed |= element.words("integrity").is_some();
        if !matches!(purpose, Use::Link | Use::Hint) {
            usage.expendable |= tag == Some(Tag::Expendable);
            usage.otherwise |= tag != Some(Tag::Expendable);
        }
    }

    /// Adds a style sheet to the survey.
    pub(crate) fn sheet(&mut self, path: &str, text: &str, tree: &Tree) {
        for url in css::urls(text) {
            let Target::Local(named) = resolve(folder(path), &url.url) else { continue };
            let Some(file) = tree.find(&named) else { continue };
            let usage = self.usage.entry(file.clone()).or_default();
            (usage.fixed, usage.otherwise) = (true, true);
            if url.purpose == Purpose::Import {
                self.imports.entry(path.to_owned()).or_default().insert(file);
            }
        }
    }

    /// Adds the survey of other files.
    pub(crate) fn merge(&mut self, part: Survey) {
        self.pages.extend(part.pages);
        self.imports.extend(part.imports);
        for (path, evidence) in part.evidence {
            self.evidence.entry(path).or_default().merge(&evidence);
        }
        for (path, usage) in part.usage {
            let all = self.usage.entry(path).or_default();
            all.scale = all.scale.max(usage.scale);
            all.fixed |= usage.fixed;
            all.important |= usage.important;
            all.degradable |= usage.degradable;
            all.expendable |= usage.expendable;
            all.otherwise |= usage.otherwise;
            all.hashed |= usage.hashed;
        }
    }

    /// Completes the survey when all files are added: pages also load the sheets that their sheets import.
    ///
    /// Which backgrounds and fonts of a sheet a page loads depends on its elements. They are not counted, so the estimated
    /// savings are rather too small.
    pub(crate) fn finish(&mut self) {
        for page in self.pages.values_mut() {
            let mut open: Vec<String> = page.embedded.iter().cloned().collect();
            while let Some(sheet) = open.pop() {
                for import in self.imports.get(&sheet).into_iter().flatten() {
                    if page.embedded.insert(import.clone()) {
                        open.push(import.clone());
                    }
                }
            }
        }
    }

    /// The number of links from the `first` page to each page. A page in a frame is as near as the page that shows it.
    pub(crate) fn depths(&self, first: &str, important: bool) -> BTreeMap<&str, u32> {
        let mut depths: BTreeMap<&str, u32> = BTreeMap::new();
        let mut open = VecDeque::new();
        if let Some((first, _)) = self.pages.get_key_value(first) {
            depths.insert(first, 0);
            open.push_back(first.as_str());
        }
        while let Some(path) = open.pop_front() {
            let (page, depth) = (&self.pages[path], depths[path]);
            let links = page.links.iter().map(|link| {
                // With `important`, an important link makes its page as near as the first one.
                (link, if important && page.important_links.contains(link) { 0 } else { depth + 1 })
            });
            let frames = page.embedded.iter().map(|frame| (frame, depth));
            for (to, depth) in frames.chain(links) {
                let Some((to, _)) = self.pages.get_key_value(to) else { continue };
                if depths.get(to.as_str()).is_none_or(|&known| depth < known) {
                    depths.insert(to, depth);
                    open.push_back(to);
                }
            }
        }
        depths
    }
}

/// Computes the sizes of the images of one page.
pub(crate) struct Sizer<'a, 'g> {
    ground: &'g Ground<'a>,
    document: &'g Document,
    /// The sizes that the page's sheets set; `None` if the sheets may contain anything.
    boxes: Option<(Vec<&'g Boxes>, Vec<Boxes>)>,
}

impl<'a, 'g> Sizer<'a, 'g> {
    pub(crate) fn of(document: &'g Document, ground: &'g Ground<'a>) -> Sizer<'a, 'g> {
        let sheet = |named: &str| {
            let mut files: Vec<String> = ground.tree.find(named).into_iter().collect();
            let mut at = 0;
            while let Some(file) = files.get(at) {
                let imports: Vec<String> = ground.imports.get(file).into_iter().flatten().cloned().collect();
                files
                    .extend(imports.into_iter().filter(|import| !files.contains(import)).collect::<Vec<_>>());
                at += 1;
            }
            files.iter().filter_map(|file| ground.sheets.get(file)).collect()
        };
        Sizer { ground, document, boxes: layout::boxes(document, sheet) }
    }

    /// The layout of an image of the page; `None` if it is not known, if the image is one of several candidates, or if it is an
    /// image map.
    pub(crate) fn layout(&self, element: &Element, file: &str) -> Option<Layout> {
        let document = self.document;
        let (sheets, own) = self.boxes.as_ref()?;
        let in_picture = document.parent(element).is_some_and(|parent| parent.is(&["picture"]));
        if in_picture || element.get("srcset").is_some() || element.get("usemap").is_some() {
            return None;
        }
        let all = sheets.iter().copied().chain(own).map(|boxes| boxes.sizing(document, element));
        let sizing = all.fold(Sizing::default(), Sizing::and);
        match self.ground.dimensions.get(file) {
            Some(own) => layout::layout(element, sizing, *own),
            None => layout::of_drawing(element, sizing, *self.ground.drawings.get(file)?),
        }
    }
}

/// Whether a view of the page loads the file of this reference. If there are candidates for screens of several densities, the
/// one for the plainest screen is loaded instead of the image's own file.
fn is_loaded(purpose: Use, element: &Element) -> bool {
    let has_densities = || {
        let all = candidates(element.get("srcset").unwrap_or_default());
        element.name == "img" && all.iter().any(|(_, said)| *said == "1x")
    };
    match purpose {
        Use::Image => !has_densities(),
        purpose => purpose.is_embedded(),
    }
}

/// The evidence about an image from its place on a page.
fn evidence(document: &Document, reference: &Reference, file: &str, ground: &Ground<'_>) -> Evidence {
    let element = &document.elements[reference.element];
    let link = document.around(element, &["a"]);
    let to = link.and_then(|link| link.get("href")).map(|href| document.resolve(href));
    let to = match to {
        Some(Target::Local(named)) => ground.tree.find(&named),
        _ => None,
    };
    let home = to.is_some() && to.as_deref() == ground.first;
    let is_page = to.as_deref().is_some_and(|to| Kind::of(to) == Kind::Page);
    let alt = element.words("alt").unwrap_or_default();
    let class = [Some(element), link].into_iter().flatten();
    let texts = class.flat_map(|of| [of.get("class"), of.get("id")]).flatten().chain([alt]);
    let name = file.rsplit('/').next().unwrap_or(file);
    Evidence {
        pages: 0,
        leads_home: home && document.around(element, &["main", "article"]).is_none(),
        named_logo: texts.chain([name]).any(alternative_text::says_logo),
        leads_to_page: is_page && !home,
        described: alternative_text::telling(alt, file)
            .is_some_and(|alt| alt.chars().any(char::is_alphanumeric)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    fn survey(pages: &[(&str, &str)]) -> Survey {
        let mut survey = Survey::default();
        let names = ["a.png", "b.png", "s.css"].into_iter().chain(pages.iter().map(|(path, _)| *path));
        let file = |name: &str| (name.to_owned(), File { kind: Kind::of(name), bytes: 1 });
        let tree = Tree { files: names.map(file).collect(), ..Tree::default() };
        for (path, text) in pages {
            let document = Document::read(path, text.as_bytes()).unwrap();
            let ground = Ground {
                tree: &tree,
                first: None,
                sheets: &BTreeMap::new(),
                imports: &BTreeMap::new(),
                dimensions: &BTreeMap::new(),
                drawings: &BTreeMap::new(),
            };
            survey.page(path, &document, &ground);
        }
        survey.finish();
        survey
    }

    #[test]
    fn a_view_loads_each_file_once() {
        let survey = survey(&[(
            "x.html",
            "<img src=a.png><img src='a.png?2'><img src=no.png><img src=//h/a.png><a href=b.png>b</a><link rel=stylesheet href=s.css>",
        )]);
        let page = &survey.pages["x.html"];
        assert_eq!(page.embedded.iter().collect::<Vec<_>>(), ["a.png", "s.css"]);
        assert_eq!((page.images.len(), page.dangling, page.external), (1, 1, 1));
    }

    #[test]
    fn depth_is_counted_in_links() {
        let survey = survey(&[
            ("i.html", "<a href=1.html>1</a><iframe src=f.html></iframe>"),
            ("f.html", "<a href=g.html>g</a>"),
            ("g.html", ""),
            ("1.html", "<a href=2.html>2</a><a href=i.html>i</a>"),
            ("2.html", "<a data-plimsoll=important href=3.html>3</a>"),
            ("3.html", "<a href=4.html></a>"),
            ("4.html", ""),
            ("alone.html", ""),
        ]);
        let depths = |important| survey.depths("i.html", important).into_iter().collect::<Vec<_>>();
        let common = [("1.html", 1), ("2.html", 2)];
        let rest = [("f.html", 0), ("g.html", 1), ("i.html", 0)];
        assert_eq!(depths(false), [&common[..], &[("3.html", 3), ("4.html", 4)], &rest].concat());
        assert_eq!(depths(true), [&common[..], &[("3.html", 0), ("4.html", 1)], &rest].concat());
    }
}
