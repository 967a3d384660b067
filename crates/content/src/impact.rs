//! What adaptation is worth: the savings study of CA 3.
//!
//! A site has h pages and d objects embedded in them. Let Emb be the mean number of objects in a page,
//! `Emb_min = d / h`, H the mean size of a page and I that of an object (byte). With a server's cost a for a request (s)
//! and b for a byte (s), one page without a cache costs `a (1 + Emb) + b (H + I Emb)` (CA 3.1); one page of a visit that
//! sees the whole site, with a cache that loses nothing, the same with Emb_min (CA 3.2). The ratio of this at full to
//! that at another level is how many times as many visitors the server carries there: optimistic, and pessimistic.
//! *Text* in the paper's sense is `a + b H`, the pages as they are and nothing else.
//!
//! The paper takes one I for both. The objects that are on many pages are the small ones, so its optimistic estimate
//! has too many bytes; beside it stands what a view of a page costs as counted, object by object. With an access log,
//! the same is weighted by the views of each page, which the paper could not do.
//!
//! Where a text has a copy compressed beforehand beside it (`page.html.gz`), at full as in a tree, its bytes count: so
//! browsers get it.
//!
//! A level is measured in its tree, where there is one; else its pages are rewritten in memory, and its images taken to
//! be as small as the policy wants (CA 3.3).

use crate::adapt::{sheet, worth_compressing};
use crate::decide::Decisions;
use crate::document::Document;
use crate::kind::Kind;
use crate::output::MANIFEST;
use crate::policy::{Level, Policy, Step, Tag};
use crate::rewrite::rewritten;
use crate::site::Site;
use crate::survey::Survey;
use crate::tree::Tree;
use crate::work::{self, Watch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What a request and its bytes cost a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// a (s).
    pub per_request: f64,
    /// b (s).
    pub per_byte: f64,
}

impl Default for Costs {
    /// Apache 1.3 on a K460: 1.6 ms and 65 us per KB (CA 2, footnote 2).
    fn default() -> Self {
        Costs { per_request: 1.6e-3, per_byte: 65e-6 / 1024.0 }
    }
}

impl Costs {
    /// U = aR + bW.
    pub fn of(self, requests: f64, bytes: f64) -> f64 {
        self.per_request * requests + self.per_byte * bytes
    }
}

/// The figures of a site at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// h.
    pub pages: u64,
    /// d.
    pub objects: u64,
    /// Emb.
    pub embedded: f64,
    /// H (byte).
    pub page_bytes: f64,
    /// I (byte).
    pub object_bytes: f64,
    /// Bytes of a view as counted: the page and all that it loads, mean over pages.
    pub view_bytes: f64,
    /// Requests and bytes of a view, weighted by the log's views of each page.
    pub popular: Option<(f64, f64)>,
    /// H, weighted likewise (byte).
    pub popular_page_bytes: Option<f64>,
}

impl Figures {
    /// Emb_min = d / h.
    pub fn embedded_least(&self) -> f64 {
        self.objects as f64 / (self.pages as f64).max(1.0)
    }

    /// Requests of a view: 1 + Emb.
    pub fn view_requests(&self) -> f64 {
        1.0 + self.embedded
    }

    fn cost(&self, costs: Costs, embedded: f64) -> f64 {
        costs.of(1.0 + embedded, self.page_bytes + self.object_bytes * embedded)
    }
}

/// How many times as many visitors a server carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// CA 3.1: no caches.
    pub optimistic: f64,
    /// CA 3.2: caches that lose nothing.
    pub pessimistic: f64,
    /// A view as counted, object by object.
    pub counted: f64,
    /// The same, weighted by views.
    pub popular: Option<f64>,
}

/// The ratios of `full` to the paper's text: `a + b H`.
pub fn text_ratios(full: &Figures, costs: Costs) -> Ratios {
    let bare = Figures {
        objects: 0,
        embedded: 0.0,
        object_bytes: 0.0,
        view_bytes: full.page_bytes,
        popular: full.popular_page_bytes.map(|bytes| (1.0, bytes)),
        ..*full
    };
    ratios(full, &bare, costs)
}

/// The ratios of `full` to another level.
pub fn ratios(full: &Figures, level: &Figures, costs: Costs) -> Ratios {
    let counted = |figures: &Figures| costs.of(figures.view_requests(), figures.view_bytes);
    let popular = full
        .popular
        .zip(level.popular)
        .map(|(one, other)| costs.of(one.0, one.1) / costs.of(other.0, other.1));
    Ratios {
        optimistic: full.cost(costs, full.embedded) / level.cost(costs, level.embedded),
        pessimistic: full.cost(costs, full.embedded_least()) / level.cost(costs, level.embedded_least()),
        counted: counted(full) / counted(level),
        popular,
    }
}

/// A site, at full and below.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    /// The site as it is.
    pub full: Figures,
    /// Text and light.
    pub levels: Vec<(Level, Figures)>,
    /// Whether the levels were measured in their trees, or estimated.
    pub measured: bool,
    /// Views of the log that are of pages of the site, and all.
    pub matched: Option<(u64, u64)>,
    /// What is worth a look, in the site and in its trees.
    pub examples: Examples,
    /// References to files that are not there; files of other hosts that views load. Neither is counted.
    pub uncounted: (u64, u64),
}

/// Paths of what is worth a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examples {
    /// The first page, and the most popular ones.
    pub pages: Vec<String>,
    /// Images that the light level has in fewer bytes: those that save the most.
    pub images: Vec<String>,
}

/// So many of each.
const EXAMPLES: usize = 3;

/// What is to be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The site's folder.
    pub site: PathBuf,
    /// The site's trees, if there are any.
    pub adapted: Option<PathBuf>,
    /// How its levels would be made.
    pub policy: Policy,
    /// Requests by path, as they stand in an access log.
    pub views: Option<BTreeMap<String, u64>>,
}

/// The figures of a site.
///
/// # Errors
/// `InvalidInput`: the site is none, or what should be its trees; `Interrupted`; or a file cannot be read.
pub fn impact(question: &Question, watch: &dyn Watch) -> io::Result<Impact> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let shown = question.site.display();
    let tree = Tree::read(&question.site).map_err(|error| wrong(format!("{shown}: {error}")))?;
    let site = Site::read(tree, watch)?;
    if site.survey.pages.is_empty() {
        return Err(wrong(format!("{shown}: no page in it (a file that ends in .html or .htm)")));
    }
    let (views, matched) = match &question.views {
        Some(views) => {
            let (pages, matched) = page_views(&site, views);
            (Some(pages), Some((matched, views.values().sum())))
        }
        None => (None, None),
    };
    let full = figures(&site.survey, views.as_ref(), |path, _| {
        packed(&site, path).unwrap_or_else(|| site.bytes(path))
    });
    let mut levels = Vec::new();
    for level in [Level::Text, Level::Light] {
        let decisions = Decisions::new(&site, &question.policy, level, views.as_ref());
        let found = match &question.adapted {
            Some(out) => measured(&site, &out.join(level.name()), out, views.as_ref(), watch)?,
            None => Some(estimated(&decisions, views.as_ref(), watch)?),
        };
        levels.extend(found.map(|figures| (level, figures)));
    }
    let pages = site.survey.pages.values();
    let uncounted = pages.fold((0, 0), |sum, page| (sum.0 + page.dangling, sum.1 + page.external));
    let examples = examples(&site, question.adapted.as_deref(), views.as_ref());
    Ok(Impact { full, levels, measured: question.adapted.is_some(), matched, examples, uncounted })
}

fn examples(site: &Site, trees: Option<&Path>, views: Option<&BTreeMap<String, u64>>) -> Examples {
    let first = site.first();
    let ranked = site.ranked(views).into_iter().map(|(path, _)| path.clone());
    let others = ranked.filter(|path| Some(path) != first.as_ref());
    let pages = first.iter().cloned().chain(others).take(EXAMPLES).collect();
    let Some(light) = trees.map(|trees| trees.join(Level::Light.name())) else {
        return Examples { pages, images: Vec::new() };
    };
    let images = site.tree.files.iter().filter(|(_, file)| file.kind == Kind::Image);
    let mut images: Vec<(u64, &String)> = images
        .filter_map(|(path, file)| {
            let after = fs::metadata(light.join(path)).ok()?.len();
            (after < file.bytes).then(|| (file.bytes - after, path))
        })
        .collect();
    images.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    Examples { pages, images: images.into_iter().take(EXAMPLES).map(|(_, path)| path.clone()).collect() }
}

/// Views by page, from requests by path; and how many requests were for pages.
pub(crate) fn page_views(site: &Site, requests: &BTreeMap<String, u64>) -> (BTreeMap<String, u64>, u64) {
    let (mut views, mut matched) = (BTreeMap::new(), 0);
    for (path, count) in requests {
        let crate::reference::Target::Local(named) = crate::reference::resolve("", path) else { continue };
        if let Some(page) = site.tree.find(&named).filter(|page| site.survey.pages.contains_key(page)) {
            *views.entry(page).or_insert(0) += count;
            matched += count;
        }
    }
    (views, matched)
}

/// The level as it would be.
fn estimated(
    decisions: &Decisions<'_>,
    views: Option<&BTreeMap<String, u64>>,
    watch: &dyn Watch,
) -> io::Result<Figures> {
    let (site, none) = (decisions.site, BTreeMap::new());
    let read = |path: &str| {
        let original = site.tree.read_file(path)?;
        let changed = match site.tree.files[path].kind {
            _ if decisions.file_tag(path) == Some(Tag::Important) => None,
            Kind::Page => Document::read(path, &original)
                .and_then(|document| rewritten(decisions, path, &document, &none)),
            Kind::Style => sheet(decisions, path, &original),
            _ => None,
        };
        Ok(changed.unwrap_or(original))
    };
    let texts = site.tree.files.iter().filter(|(path, file)| file.kind.is_text(path));
    let texts: Vec<&String> = texts.map(|(path, _)| path).collect();
    let text_bytes = work::each(&texts, watch, |path| {
        let text = read(path)?;
        let copied = decisions.policy.takes(Step::Compressed) || packed(site, path).is_some();
        let packed = if copied { worth_compressing(&text)? } else { None };
        Ok(packed.unwrap_or(text).len() as u64)
    })?;
    let text_bytes: BTreeMap<&str, u64> = texts.iter().map(|path| path.as_str()).zip(text_bytes).collect();
    let bytes = |path: &str, _: Option<u64>| match decisions.reduction(path) {
        Some(reduction) => (site.bytes(path) as f64 / reduction.factor) as u64,
        None => text_bytes.get(path).copied().unwrap_or_else(|| site.bytes(path)),
    };
    let survey = survey(site, &read, watch)?;
    Ok(figures(&survey, views, bytes))
}

/// The level as it is in its tree; `None` if there is none. What the tree lacks, the site has.
fn measured(
    site: &Site,
    tree: &Path,
    out: &Path,
    views: Option<&BTreeMap<String, u64>>,
    watch: &dyn Watch,
) -> io::Result<Option<Figures>> {
    if !out.join(MANIFEST).is_file() {
        let what =
            format!("{}: no trees in it; make them: `plimsoll adapt SITE {}`", out.display(), out.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    if !tree.is_dir() {
        return Ok(None);
    }
    let read = |path: &str| fs::read(tree.join(path)).or_else(|_| site.tree.read_file(path));
    let survey = survey(site, &read, watch)?;
    let size = |path: &str| fs::metadata(tree.join(path)).ok().map(|found| found.len());
    let bytes = |path: &str, _: Option<u64>| {
        let here = size(&format!("{path}.gz")).or_else(|| size(path));
        here.or_else(|| packed(site, path)).unwrap_or_else(|| site.bytes(path))
    };
    Ok(Some(figures(&survey, views, bytes)))
}

/// The site's pages, read in another way.
fn survey(
    site: &Site,
    read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
    watch: &dyn Watch,
) -> io::Result<Survey> {
    let pages: Vec<&String> = site.survey.pages.keys().collect();
    let parts = work::each(&pages, watch, |path| {
        let bytes = read(path)?;
        let mut part = Survey::default();
        if let Some(document) = Document::read(path, &bytes) {
            part.page(path, bytes.len() as u64, &document, &|path| site.tree.find(path));
        }
        Ok(part)
    })?;
    let mut survey = Survey { imports: site.survey.imports.clone(), ..Survey::default() };
    for part in parts {
        survey.pages.extend(part.pages);
    }
    survey.finish();
    Ok(survey)
}

/// Bytes of the compressed copy beside a file of the site.
fn packed(site: &Site, path: &str) -> Option<u64> {
    site.tree.files.get(&format!("{path}.gz")).map(|file| file.bytes)
}

/// The figures of pages whose files have these `bytes`; of a page, it is told those of its text.
fn figures(
    survey: &Survey,
    views: Option<&BTreeMap<String, u64>>,
    bytes: impl Fn(&str, Option<u64>) -> u64,
) -> Figures {
    let pages = survey.pages.len() as f64;
    let objects: BTreeSet<&String> = survey.pages.values().flat_map(|page| &page.embedded).collect();
    let object_bytes: u64 = objects.iter().map(|path| bytes(path, None)).sum();
    let (mut embedded, mut page_bytes, mut view_bytes) = (0, 0, 0);
    let (mut weight, mut popular, mut popular_pages) = (0.0, (0.0, 0.0), 0.0);
    for (path, page) in &survey.pages {
        let own = bytes(path, Some(page.bytes));
        let view = own + page.embedded.iter().map(|path| bytes(path, None)).sum::<u64>();
        embedded += page.embedded.len();
        page_bytes += own;
        view_bytes += view;
        let count = views.and_then(|views| views.get(path)).copied().unwrap_or(0) as f64;
        weight += count;
        popular.0 += count * (1 + page.embedded.len()) as f64;
        popular.1 += count * view as f64;
        popular_pages += count * own as f64;
    }
    Figures {
        pages: survey.pages.len() as u64,
        objects: objects.len() as u64,
        embedded: embedded as f64 / pages,
        page_bytes: page_bytes as f64 / pages,
        object_bytes: object_bytes as f64 / (objects.len() as f64).max(1.0),
        view_bytes: view_bytes as f64 / pages,
        popular: (weight > 0.0).then(|| (popular.0 / weight, popular.1 / weight)),
        popular_page_bytes: (weight > 0.0).then(|| popular_pages / weight),
    }
}

/// The curve of CA Fig. 2 and 3: for each improvement x (%), `(ratio - 1) 100`, the part of the sites (%) that improve
/// by at least x. A step down after each site's own x.
pub fn curve(ratios: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut improvements: Vec<f64> = ratios.into_iter().map(|ratio| (ratio - 1.0) * 100.0).collect();
    improvements.sort_by(f64::total_cmp);
    let of = improvements.len() as f64;
    let mut points = vec![(0.0, 100.0)];
    for (below, x) in improvements.iter().enumerate() {
        points.push((*x, (of - below as f64) / of * 100.0));
    }
    points.extend(improvements.last().map(|last| (*last * 1.05 + 1.0, 0.0)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_ratios() {
        // h = 10 pages of 4 KB, 5 objects of 8 KB, each on every page: Emb 5, Emb_min 0.5.
        let full = Figures {
            pages: 10,
            objects: 5,
            embedded: 5.0,
            page_bytes: 4096.0,
            object_bytes: 8192.0,
            view_bytes: 4096.0 + 5.0 * 8192.0,
            popular: Some((2.0, 3.0 * 1024.0)),
            popular_page_bytes: Some(1024.0),
        };
        let ratios = text_ratios(&full, Costs::default());
        let (a, b) = (1.6, 0.065);
        let expected = |embedded: f64| (a * (1.0 + embedded) + b * (4.0 + 8.0 * embedded)) / (a + b * 4.0);
        assert!((ratios.optimistic - expected(5.0)).abs() < 1e-9);
        assert!((ratios.pessimistic - expected(0.5)).abs() < 1e-9);
        assert!((ratios.counted - ratios.optimistic).abs() < 1e-9, "objects of one size: no difference");
        // Two requests of 3 KB in place of one of 1 KB: a visitor of the small pages gains less.
        let popular = ratios.popular.expect("it is weighted");
        assert!((popular - (2.0 * a + 3.0 * b) / (a + b)).abs() < 1e-9, "{popular}");
    }

    #[test]
    fn the_part_of_sites_that_improve_at_least_so_much() {
        assert_eq!(curve([3.0, 1.5])[..3], [(0.0, 100.0), (50.0, 100.0), (200.0, 50.0)]);
        assert_eq!(curve([]), [(0.0, 100.0)]);
    }
}
