//! A site that was read whole: its tree, its survey, the sizes of its images.

use crate::document::Document;
use crate::image;
use crate::kind::Kind;
use crate::survey::{Page, Survey};
use crate::tree::Tree;
use crate::work::{self, Watch};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};

/// The site.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) tree: Tree,
    pub(crate) survey: Survey,
    /// Width and height of the images whose head says so.
    pub(crate) dimensions: BTreeMap<String, (usize, usize)>,
    /// What is wrong with files: the path, and what.
    pub(crate) problems: Vec<(String, String)>,
}

/// The bytes of an image's file that are read for its size; metadata may come before it.
const HEAD: u64 = 256 * 1024;

/// What was found in one file.
enum Seen {
    Page(Box<Survey>),
    Sheet(Box<Survey>),
    Image((usize, usize)),
    Problem(&'static str),
    Nothing,
}

impl Site {
    /// Reads every page and sheet, and the head of every image.
    ///
    /// # Errors
    /// A file cannot be read, or the user does not want to wait any longer.
    pub(crate) fn read(tree: Tree, watch: &dyn Watch) -> io::Result<Site> {
        let paths: Vec<&String> = tree.files.keys().collect();
        let found = work::each(&paths, watch, |path| look(&tree, path))?;
        let mut site = Site {
            survey: Survey::default(),
            dimensions: BTreeMap::new(),
            problems: Vec::new(),
            tree: Tree::default(),
        };
        site.problems.clone_from(&tree.skipped);
        for (path, found) in paths.into_iter().zip(found) {
            match found {
                Seen::Page(part) | Seen::Sheet(part) => site.survey.merge(*part),
                Seen::Image(size) => drop(site.dimensions.insert(path.clone(), size)),
                Seen::Problem(what) => site.problems.push((path.clone(), what.to_owned())),
                Seen::Nothing => {}
            }
        }
        site.survey.finish();
        site.tree = tree;
        Ok(site)
    }

    /// The page that the site begins with.
    pub(crate) fn first(&self) -> Option<String> {
        self.tree.find("")
    }

    pub(crate) fn bytes(&self, path: &str) -> u64 {
        self.tree.files.get(path).map_or(0, |file| file.bytes)
    }

    /// A page's popularity: views, if there is a log; else the fewer links from the first page, the more.
    pub(crate) fn ranked<'a>(&'a self, views: Option<&BTreeMap<String, u64>>) -> Vec<(&'a String, &'a Page)> {
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
    let find = |path: &str| tree.find(path);
    match tree.files[path].kind {
        Kind::Page => {
            let bytes = tree.read_file(path)?;
            let Some(document) = Document::read(path, &bytes) else {
                return Ok(Seen::Problem("not text in any known encoding: copied as it is"));
            };
            let mut survey = Survey::default();
            survey.page(path, bytes.len() as u64, &document, &find);
            Ok(Seen::Page(Box::new(survey)))
        }
        Kind::Style => {
            let text = tree.read_file(path)?;
            let mut survey = Survey::default();
            survey.sheet(path, &String::from_utf8_lossy(&text), &find);
            Ok(Seen::Sheet(Box::new(survey)))
        }
        Kind::Image => {
            let mut head = Vec::new();
            fs::File::open(tree.root.join(path))?.take(HEAD).read_to_end(&mut head)?;
            Ok(match image::dimensions(&head) {
                Some(size) => Seen::Image(size),
                None => Seen::Problem("a broken image, or none: copied as it is"),
            })
        }
        _ => Ok(Seen::Nothing),
    }
}

impl Survey {
    fn merge(&mut self, part: Survey) {
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
}
