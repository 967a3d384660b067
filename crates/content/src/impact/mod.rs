//! How many more visitors adaptation allows: the savings study of CA 3.
//!
//! Input: a [`Question`] about a site. Output: an [`Impact`], with the [`Figures`] at full and at each level; [`ratios`] turns
//! these into numbers of visitors.
//!
//! A level is measured in its tree, if there is one. Otherwise its pages are rewritten in memory, and its images are assumed to
//! be as small as the policy wants (CA 3.3).
//!
//! Both sides are counted as a server would send them to a browser of today: a text as its smallest compressed copy, an image
//! as its WebP if that is smaller. If there are trees, full is measured in its tree too. If a policy leaves compression out,
//! only compressed copies that the site itself has are counted.

mod figures;

use crate::adapt::manifest::{SiteMark, similarities};
use crate::adapt::output::MANIFEST;
use crate::adapt::trees::worth_compressing;
use crate::parallel::{self, Watch, refused};
use crate::policy::{Level, Policy, Step};
use crate::rewrite::decide::{Decisions, VARIANT};
use crate::rewrite::{Plain, rewritten};
use crate::site::kind::Kind;
use crate::site::survey::Page;
use crate::site::tree::Tree;
use crate::site::{Site, Views};
pub use figures::{Costs, Figures, Ratios, View, curve, ratios, text_ratios};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The inputs of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// The site's folder.
    pub site: PathBuf,
    /// The site's trees, if there are any.
    pub adapted: Option<PathBuf>,
    /// How the site's levels would be made.
    pub policy: Policy,
    /// Requests by path, as in an access log.
    pub views: Option<Views>,
}

/// The figures of a site at full and at the lower levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    /// The site as it is.
    pub full: Figures,
    /// Text, lean and light.
    pub levels: Vec<(Level, Figures)>,
    /// Whether the levels were measured in their trees, or estimated.
    pub measured: bool,
    /// Whether texts are counted as compressed beforehand, on both sides.
    pub compressed: bool,
    /// Whether the site's files differ from those from which its trees were made.
    pub changed_since: bool,
    /// The log's views of pages of the site, and all its views.
    pub matched: Option<(u64, u64)>,
    /// Examples to look at, in the site and in its trees.
    pub examples: Examples,
    /// The number of references to missing files, and of files of other hosts that views load. Neither is counted in the
    /// figures.
    pub uncounted: (u64, u64),
}

/// The paths of examples to look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Examples {
    /// The pages with the images that are least similar to their originals at the light level, the worst first; without trees,
    /// the first page and the most popular ones.
    pub pages: Vec<String>,
    /// The images that save the most bytes at the light level.
    pub images: Vec<String>,
}

/// The endings of compressed copies beside a text, which browsers take.
const COPIES: [&str; 2] = [".gz", ".br"];
/// The most pages, and the most images, among the examples.
const EXAMPLES: usize = 3;

/// The figures of a site.
///
/// # Errors
/// `InvalidInput`: the folder is no site, or the folder of trees is none; `Interrupted`; or a file cannot be read.
pub fn impact(question: &Question, watch: &dyn Watch) -> io::Result<Impact> {
    let site = Site::read(Tree::read(&question.site)?, watch)?;
    if site.survey.pages.is_empty() {
        let shown = question.site.display();
        return Err(refused(format!(
            "{shown}: no page in it; name a folder with files that end in .html or .htm"
        )));
    }
    let all = question.views.as_ref().map(|requests| requests.values().sum());
    let (views, matched) = question.views.as_ref().map(|requests| site.page_views(requests)).unzip();
    let views = views.as_ref();
    let trees = question.adapted.as_deref();
    let changed_since = trees.map(|out| check_same_site(&site, out)).transpose()?.unwrap_or_default();
    let compressed = match trees {
        Some(out) => has_copies(&site, out),
        None => question.policy.takes(Step::Compressed),
    };
    let full = full(&site, compressed, views, watch)?;
    let mut levels = Vec::new();
    for level in [Level::Text, Level::Lean, Level::Light] {
        let found = match trees {
            Some(out) => measured(&site, level, out, views, watch)?,
            None => Some(estimated(&Decisions::new(&site, &question.policy, level, views), views, watch)?),
        };
        levels.extend(found.map(|figures| (level, figures)));
    }
    let pages = site.survey.pages.values();
    let uncounted = pages.fold((0, 0), |sum, page| (sum.0 + page.dangling, sum.1 + page.external));
    let examples = examples(&site, question.adapted.as_deref(), views);
    Ok(Impact {
        full,
        levels,
        measured: question.adapted.is_some(),
        compressed,
        changed_since,
        matched: matched.zip(all),
        examples,
        uncounted,
    })
}

fn examples(site: &Site, trees: Option<&Path>, views: Option<&Views>) -> Examples {
    let first = site.first();
    let ranked = site.ranked(views).into_iter().filter(|(path, _)| Some(*path) != first.as_ref());
    let first = first.as_ref().and_then(|first| site.survey.pages.get_key_value(first));
    let similar = trees.map(|trees| similarities(&trees.join(MANIFEST))).unwrap_or_default();
    let least =
        |page: &Page| page.embedded.iter().filter_map(|file| similar.get(file)).copied().fold(1.0, f64::min);
    let mut pages: Vec<(&String, f64)> =
        first.into_iter().chain(ranked).map(|(path, page)| (path, least(page))).collect();
    // The sort is stable, so if two pages are equally good, the more popular one comes first.
    pages.sort_by(|one, other| one.1.total_cmp(&other.1));
    let pages = pages.into_iter().take(EXAMPLES).map(|(path, _)| path.clone()).collect();
    let saved = |(path, bytes): (&String, u64)| {
        let after = fs::metadata(trees?.join(Level::Light.name()).join(path)).ok()?.len();
        (after < bytes).then(|| (bytes - after, path.clone()))
    };
    let images = site.tree.files.iter().filter(|(_, file)| file.kind == Kind::Image);
    let mut images: Vec<(u64, String)> =
        images.filter_map(|(path, file)| saved((path, file.bytes))).collect();
    images.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
    Examples { pages, images: images.into_iter().take(EXAMPLES).map(|(_, path)| path).collect() }
}

/// Refuses trees of another site; true if the site's files differ from those from which the trees were made.
fn check_same_site(site: &Site, out: &Path) -> io::Result<bool> {
    let (manifest, shown) = (out.join(MANIFEST), out.display());
    if !manifest.is_file() {
        return Err(refused(format!("{shown}: no trees in it; make them: `plimsoll adapt SITE {shown}`")));
    }
    let (now, Some(then)) = (SiteMark::of(&site.tree), SiteMark::read(&manifest)) else {
        return Err(refused(format!(
            "{shown}: its trees are of an older version; make them again: `plimsoll adapt`"
        )));
    };
    if !now.is_same_site(&then) {
        return Err(refused(format!(
            "{shown}: these are the trees of {}, not of {}; name that site, or make trees of this one: `plimsoll adapt`",
            then.root, now.root
        )));
    }
    Ok(now.files != then.files)
}

/// Whether `adapt` has put compressed copies beside the texts of the trees.
fn has_copies(site: &Site, out: &Path) -> bool {
    let mut trees = Level::ALL.map(|level| out.join(level.name())).into_iter().filter(|tree| tree.is_dir());
    trees.any(|tree| {
        let is_copied = |path: &String| {
            let copy = format!("{path}.gz");
            !site.tree.files.contains_key(&copy) && tree.join(copy).is_file()
        };
        site.tree.files.keys().any(is_copied)
    })
}

/// The figures of the site as it is, with its texts compressed if those of the levels are.
fn full(site: &Site, compressed: bool, views: Option<&Views>, watch: &dyn Watch) -> io::Result<Figures> {
    let texts = text_bytes(site, compressed, &|path| site.tree.read_file(path), watch)?;
    Ok(Figures::of(&site.survey, views, |path| texts.get(path).copied().unwrap_or_else(|| site.bytes(path))))
}

/// The bytes of each text of the site as a browser would receive it.
fn text_bytes<'a>(
    site: &'a Site,
    compressed: bool,
    read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
    watch: &dyn Watch,
) -> io::Result<BTreeMap<&'a str, u64>> {
    let texts = site.tree.files.iter().filter(|(path, file)| file.kind.is_text(path));
    let texts: Vec<&str> = texts.map(|(path, _)| path.as_str()).collect();
    let bytes = parallel::each(&texts, watch, |path| {
        let text = read(path)?;
        let is_copied = compressed || packed(site, path).is_some();
        let copy = if is_copied { worth_compressing(&text)?.map(|copy| copy.len() as u64) } else { None };
        Ok([copy, packed(site, path)].into_iter().flatten().fold(text.len() as u64, u64::min))
    })?;
    Ok(texts.into_iter().zip(bytes).collect())
}

/// The assumed factor by which images at the light level are smaller: the least that the sites of `e2e/tests/real_sites.rs`
/// reach.
const LIGHT_FACTOR: f64 = 2.5;

/// The estimated figures of a level without a tree.
fn estimated(decisions: &Decisions<'_>, views: Option<&Views>, watch: &dyn Watch) -> io::Result<Figures> {
    let site = decisions.site;
    let read = |path: &str| {
        let original = site.tree.read_file(path)?;
        Ok(rewritten(decisions, path, &original, &Plain::new()).unwrap_or(original))
    };
    let texts = text_bytes(site, decisions.policy.takes(Step::Compressed), &read, watch)?;
    let survey = site.surveyed_as(&site.tree, &read, watch)?;
    Ok(Figures::of(&survey, views, |path| match decisions.reduction(path) {
        Some(reduction) => (site.bytes(path) as f64 / reduction.factor.unwrap_or(LIGHT_FACTOR)) as u64,
        None => texts.get(path).copied().unwrap_or_else(|| site.bytes(path)),
    }))
}

/// The measured figures of the level in its tree below `out`; `None` if there is no tree. Files that the tree lacks are the
/// site's.
fn measured(
    site: &Site,
    level: Level,
    out: &Path,
    views: Option<&Views>,
    watch: &dyn Watch,
) -> io::Result<Option<Figures>> {
    let folder = out.join(level.name());
    if !folder.is_dir() {
        return Ok(None);
    }
    let own = Tree::read(&folder)?;
    let read = |path: &str| fs::read(folder.join(path)).or_else(|_| site.tree.read_file(path));
    let mut tree = site.tree.clone();
    for (path, file) in &own.files {
        tree.files.entry(path.clone()).or_insert(*file);
    }
    // The sizes of the file and of the copies beside it that a client may accept.
    let size = |path: &str| own.files.get(path).map(|found| found.bytes);
    let served = |path: &str| {
        let copies =
            COPIES.into_iter().chain([VARIANT]).filter_map(|ending| size(&format!("{path}{ending}")));
        copies.chain(size(path)).min()
    };
    Ok(Some(Figures::of(&site.surveyed_as(&tree, &read, watch)?, views, |path| {
        served(path).or_else(|| packed(site, path)).unwrap_or_else(|| site.bytes(path))
    })))
}

/// The bytes of the smallest compressed copy that the site itself has of a file.
fn packed(site: &Site, path: &str) -> Option<u64> {
    let copy = |ending: &str| site.tree.files.get(&format!("{path}{ending}"));
    COPIES.into_iter().filter_map(copy).map(|file| file.bytes).min()
}
