//! A site as it was read: its files, what its pages load and link to, and the sizes of its images.
//!
//! Input: the site's folder ([`tree`]) and dynamic pages that were fetched ([`snapshot`]). Output: a [`Site`], on which all
//! decisions and figures are based; it does not change.

pub(crate) mod kind;
pub(crate) mod layout;
pub(crate) mod snapshot;
pub(crate) mod survey;
pub(crate) mod tree;

use crate::Problem;
use crate::image;
use crate::parallel::{self, Watch, about};
use crate::text::boxes::Boxes;
use crate::text::document::Document;
use crate::text::reference::{Target, resolve};
use crate::text::svg;
use kind::Kind;
use plimsoll_gateway::is_program;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use survey::{Ground, Page, Survey};
use tree::Tree;

/// Requests or views by path.
pub(crate) type Views = BTreeMap<String, u64>;

/// The site as it was read.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) tree: Tree,
    pub(crate) survey: Survey,
    /// The width and height of each image, if its head has them.
    pub(crate) dimensions: BTreeMap<String, (usize, usize)>,
    /// The width and height of each SVG image that states them.
    pub(crate) drawings: BTreeMap<String, (usize, usize)>,
    /// The sizes that each sheet sets.
    pub(crate) sheets: BTreeMap<String, Boxes>,
    /// Problems with files of the site.
    pub(crate) problems: Vec<Problem>,
}

/// How many bytes of an image's file are read to find its size, because metadata or comments may come first.
const HEAD: u64 = 256 * 1024;

/// The message about a program among the files.
pub(crate) const PROGRAM: &str = "a program, copied for a server that runs it; the gateway does not send its source: name its page by `snapshot`";

/// The results of reading one file.
#[derive(Default)]
struct Seen {
    survey: Survey,
    boxes: Option<Boxes>,
    dimensions: Option<(usize, usize)>,
    drawing: Option<(usize, usize)>,
    problem: Option<&'static str>,
}

impl Site {
    /// Reads every page and sheet, and the head of every image.
    ///
    /// # Errors
    /// A file cannot be read, or the user stopped the run.
    pub(crate) fn read(tree: Tree, watch: &dyn Watch) -> io::Result<Site> {
        let problems = tree.skipped.clone();
        let (survey, dimensions, drawings, sheets) = Default::default();
        let mut site = Site { tree, survey, dimensions, drawings, sheets, problems };
        // What pages show depends on sheets and on images' sizes, so sheets and images are read first.
        let is_page = |path: &&String| site.tree.files[*path].kind == Kind::Page;
        let (pages, others): (Vec<&String>, Vec<&String>) = site.tree.files.keys().partition(is_page);
        let (pages, others): (Vec<String>, Vec<String>) =
            (pages.into_iter().cloned().collect(), others.into_iter().cloned().collect());
        for paths in [others, pages] {
            let found = parallel::each(&paths, watch, |path| look(&site.ground(), path))?;
            for (path, seen) in paths.into_iter().zip(found) {
                site.survey.merge(seen.survey);
                site.dimensions.extend(seen.dimensions.map(|size| (path.clone(), size)));
                site.drawings.extend(seen.drawing.map(|size| (path.clone(), size)));
                site.sheets.extend(seen.boxes.map(|boxes| (path.clone(), boxes)));
                site.problems.extend(seen.problem.map(|what| Problem::new(&path, what)));
            }
        }
        site.survey.finish();
        Ok(site)
    }

    /// The facts of the site that a survey of pages needs.
    pub(crate) fn ground(&self) -> Ground<'_> {
        let Site { tree, survey, dimensions, drawings, sheets, .. } = self;
        Ground { tree, first: self.first_path(), sheets, imports: &survey.imports, dimensions, drawings }
    }

    fn first_path(&self) -> Option<&str> {
        let first = self.first()?;
        self.tree.files.get_key_value(&first).map(|(path, _)| path.as_str())
    }

    /// The survey of the site's pages as another tree has them; `read` gives their bytes, and `tree` has its files.
    pub(crate) fn surveyed_as(
        &self,
        tree: &Tree,
        read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
        watch: &dyn Watch,
    ) -> io::Result<Survey> {
        let pages: Vec<&String> = self.survey.pages.keys().collect();
        let ground = Ground { tree, ..self.ground() };
        let parts = parallel::each(&pages, watch, |path| {
            let mut part = Survey::default();
            if let Some(document) = Document::read(path, &read(path)?) {
                part.page(path, &document, &ground);
            }
            Ok(part)
        })?;
        let mut survey = Survey { imports: self.survey.imports.clone(), ..Survey::default() };
        parts.into_iter().for_each(|part| survey.merge(part));
        survey.finish();
        Ok(survey)
    }

    /// The first page of the site.
    pub(crate) fn first(&self) -> Option<String> {
        self.tree.find("")
    }

    pub(crate) fn bytes(&self, path: &str) -> u64 {
        self.tree.files.get(path).map_or(0, |file| file.bytes)
    }

    /// The views of each page, from requests by path; and the number of requests for pages.
    pub(crate) fn page_views(&self, requests: &Views) -> (Views, u64) {
        let mut views = Views::new();
        for (path, count) in requests {
            let Target::Local(named) = resolve("", path) else { continue };
            if let Some(page) = self.tree.find(&named).filter(|page| self.survey.pages.contains_key(page)) {
                *views.entry(page).or_insert(0) += count;
            }
        }
        let matched = views.values().sum();
        (views, matched)
    }

    /// The pages by popularity: by views, if there is a log; otherwise, pages with fewer links from the first page come first.
    pub(crate) fn ranked<'a>(&'a self, views: Option<&Views>) -> Vec<(&'a String, &'a Page)> {
        let first = self.first();
        let depths = first.as_ref().map(|first| self.survey.depths(first, false)).unwrap_or_default();
        let mut pages: Vec<(&String, &Page)> = self.survey.pages.iter().collect();
        pages.sort_by_key(|(path, _)| {
            let views = views.and_then(|views| views.get(*path)).copied().unwrap_or(0);
            (std::cmp::Reverse(views), depths.get(path.as_str()).copied().unwrap_or(u32::MAX))
        });
        pages
    }
}

fn look(ground: &Ground<'_>, path: &str) -> io::Result<Seen> {
    let tree = ground.tree;
    let mut seen = Seen::default();
    match tree.files[path].kind {
        Kind::Page => match Document::read(path, &tree.read_file(path)?) {
            Some(document) => seen.survey.page(path, &document, ground),
            None => seen.problem = Some("not text in any known encoding: copied as it is"),
        },
        Kind::Style => {
            let bytes = tree.read_file(path)?;
            let text = String::from_utf8_lossy(&bytes);
            seen.survey.sheet(path, &text, tree);
            seen.boxes = Some(Boxes::of(&text));
        }
        Kind::Image => {
            let head = head(tree, path)?;
            seen.dimensions = image::dimensions(&head);
            seen.problem = seen.dimensions.is_none().then_some("a broken image, or none: copied as it is");
            if image::is_turned(&head) {
                // Viewers turn the image, so its sides as shown are not those of its file.
                seen.survey.usage.entry(path.to_owned()).or_default().fixed = true;
            }
        }
        Kind::OtherImage if Kind::is_svg(path) => {
            seen.drawing = svg::size(&String::from_utf8_lossy(&head(tree, path)?));
        }
        _ => {}
    }
    if is_program(path.as_bytes(), || tree.read_file(path).unwrap_or_default()) {
        seen.problem = Some(PROGRAM);
    }
    Ok(seen)
}

fn head(tree: &Tree, path: &str) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = fs::File::open(tree.root.join(path)).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(|error| about(Path::new(path), &error))?;
    Ok(head)
}
