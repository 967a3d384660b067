//! A site as it was read: its files, what its pages load and link to, and the sizes of its images.
//!
//! Comes in: the site's folder ([`tree`]) and dynamic pages that were fetched ([`snapshot`]). Goes out: a [`Site`], on
//! which all decisions and figures rest; it does not change.

pub(crate) mod kind;
pub(crate) mod snapshot;
pub(crate) mod survey;
pub(crate) mod tree;

use crate::Problem;
use crate::image;
use crate::text::document::Document;
use crate::text::reference::{Target, resolve};
use crate::work::{self, Watch};
use kind::Kind;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use survey::{Page, Survey};
use tree::Tree;

/// Requests or views by path.
pub(crate) type Views = BTreeMap<String, u64>;

/// The site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) tree: Tree,
    pub(crate) survey: Survey,
    /// Width and height of the images whose head says so.
    pub(crate) dimensions: BTreeMap<String, (usize, usize)>,
    /// What is wrong with files.
    pub(crate) problems: Vec<Problem>,
}

/// The bytes of an image's file that are read for its size; metadata may come before it.
const HEAD: u64 = 256 * 1024;

/// What was found in one file.
#[derive(Default)]
struct Seen {
    survey: Survey,
    dimensions: Option<(usize, usize)>,
    problem: Option<&'static str>,
}

impl Site {
    /// Reads every page and sheet, and the head of every image.
    ///
    /// # Errors
    /// A file cannot be read, or the user does not want to wait any longer.
    pub(crate) fn read(tree: Tree, watch: &dyn Watch) -> io::Result<Site> {
        let paths: Vec<&String> = tree.files.keys().collect();
        let found = work::each(&paths, watch, |path| look(&tree, path))?;
        let (mut survey, mut dimensions) = (Survey::default(), BTreeMap::new());
        let mut problems = tree.skipped.clone();
        for (path, seen) in paths.into_iter().zip(found) {
            survey.merge(seen.survey);
            dimensions.extend(seen.dimensions.map(|size| (path.clone(), size)));
            problems.extend(seen.problem.map(|what| Problem::new(path, what)));
        }
        survey.finish();
        Ok(Site { tree, survey, dimensions, problems })
    }

    /// The survey of the site's pages as another tree has them; `read` gives their bytes.
    pub(crate) fn surveyed_as(
        &self,
        read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
        watch: &dyn Watch,
    ) -> io::Result<Survey> {
        let pages: Vec<&String> = self.survey.pages.keys().collect();
        let parts = work::each(&pages, watch, |path| {
            let mut part = Survey::default();
            if let Some(document) = Document::read(path, &read(path)?) {
                part.page(path, &document, &self.tree);
            }
            Ok(part)
        })?;
        let mut survey = Survey { imports: self.survey.imports.clone(), ..Survey::default() };
        parts.into_iter().for_each(|part| survey.merge(part));
        survey.finish();
        Ok(survey)
    }

    /// The page that the site begins with.
    pub(crate) fn first(&self) -> Option<String> {
        self.tree.find("")
    }

    pub(crate) fn bytes(&self, path: &str) -> u64 {
        self.tree.files.get(path).map_or(0, |file| file.bytes)
    }

    /// Views by page, from requests by path; and how many requests were for pages.
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

    /// The pages by popularity: by views, if there is a log; else the fewer links from the first page, the more popular.
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

fn look(tree: &Tree, path: &str) -> io::Result<Seen> {
    let mut seen = Seen::default();
    match tree.files[path].kind {
        Kind::Page => match Document::read(path, &tree.read_file(path)?) {
            Some(document) => seen.survey.page(path, &document, tree),
            None => seen.problem = Some("not text in any known encoding: copied as it is"),
        },
        Kind::Style => seen.survey.sheet(path, &String::from_utf8_lossy(&tree.read_file(path)?), tree),
        Kind::Image => {
            let mut head = Vec::new();
            fs::File::open(tree.root.join(path))?.take(HEAD).read_to_end(&mut head)?;
            seen.dimensions = image::dimensions(&head);
            seen.problem = seen.dimensions.is_none().then_some("a broken image, or none: copied as it is");
        }
        _ => {}
    }
    Ok(seen)
}
