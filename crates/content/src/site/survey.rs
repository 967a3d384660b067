//! What a site's pages load and link to: all that decisions and estimates rest on.

use super::kind::Kind;
use super::tree::Tree;
use crate::policy::Tag;
use crate::text::css::{self, Purpose};
use crate::text::document::{Document, Reference, Use};
use crate::text::reference::{Target, folder, resolve};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a page says of the files that it refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    /// Files that a view of it loads, each once.
    pub(crate) embedded: BTreeSet<String>,
    /// Embedded files that are images in the text, which another page may show in its place.
    pub(crate) images: BTreeSet<String>,
    /// Pages that it leads to.
    pub(crate) links: BTreeSet<String>,
    /// Pages whose link is tagged important.
    pub(crate) important_links: BTreeSet<String>,
    /// References to files that are not there.
    pub(crate) dangling: u64,
    /// Files of other hosts that a view loads.
    pub(crate) external: u64,
}

/// How a file is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// As an image whose size on the page an attribute can give.
    pub(crate) sizable: bool,
    /// Where the file's own size counts.
    pub(crate) fixed: bool,
    /// With the tag important.
    pub(crate) important: bool,
    /// With the tag degradable.
    pub(crate) degradable: bool,
}

/// Pages and the files that they use.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) usage: BTreeMap<String, Usage>,
    /// Sheets that a sheet loads.
    pub(crate) imports: BTreeMap<String, BTreeSet<String>>,
}

impl Survey {
    /// Takes in a page.
    pub(crate) fn page(&mut self, path: &str, document: &Document, tree: &Tree) {
        let mut page = Page::default();
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
            self.note(&file, reference, tag, document);
            match reference.purpose {
                Use::Link if Kind::of(&file) == Kind::Page && file != path => {
                    if tag == Some(Tag::Important) {
                        page.important_links.insert(file.clone());
                    }
                    page.links.insert(file);
                }
                purpose if purpose.is_embedded() && file != path => {
                    if purpose == Use::Image {
                        page.images.insert(file.clone());
                    }
                    page.embedded.insert(file);
                }
                _ => {}
            }
        }
        self.pages.insert(path.to_owned(), page);
    }

    fn note(&mut self, file: &str, reference: &Reference, tag: Option<Tag>, document: &Document) {
        let purpose = reference.purpose;
        let element = &document.elements[reference.element];
        let in_picture = document.parent(element).is_some_and(|parent| parent.is(&["picture"]));
        let chosen = element.get("srcset").is_some() || in_picture;
        let usage = self.usage.entry(file.to_owned()).or_default();
        match purpose {
            // An image has to keep its size if it is one of several candidates, or has places on it to click at.
            Use::Image if element.get("usemap").is_none() && !chosen => usage.sizable = true,
            Use::Link | Use::Hint => {}
            _ => usage.fixed = true,
        }
        usage.important |= tag == Some(Tag::Important) && purpose != Use::Link;
        usage.degradable |= tag == Some(Tag::Degradable);
    }

    /// Takes in a style sheet.
    pub(crate) fn sheet(&mut self, path: &str, text: &str, tree: &Tree) {
        for url in css::urls(text) {
            let Target::Local(named) = resolve(folder(path), &url.url) else { continue };
            let Some(file) = tree.find(&named) else { continue };
            self.usage.entry(file.clone()).or_default().fixed = true;
            if url.purpose == Purpose::Import {
                self.imports.entry(path.to_owned()).or_default().insert(file);
            }
        }
    }

    /// Takes in what was found in other files.
    pub(crate) fn merge(&mut self, part: Survey) {
        self.pages.extend(part.pages);
        self.imports.extend(part.imports);
        for (path, usage) in part.usage {
            let all = self.usage.entry(path).or_default();
            all.sizable |= usage.sizable;
            all.fixed |= usage.fixed;
            all.important |= usage.important;
            all.degradable |= usage.degradable;
        }
    }

    /// To be called when all files are taken in: pages load the sheets that their sheets import.
    ///
    /// Which backgrounds and fonts of a sheet a page loads depends on its elements; they are not counted, so that what
    /// is estimated to be saved is rather too little.
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

    /// How many links each page is away from the `first`. Pages in frames are as near as the page that shows them.
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
                // An important link makes its page as near as the first one.
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
            survey.page(path, &document, &tree);
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
