//! What adaptation is worth: the savings study of CA 3.
//!
//! Comes in: a [`Question`] about a site. Goes out: an [`Impact`], the [`Figures`] at full and at each level; [`ratios`]
//! makes numbers of visitors of them.
//!
//! A level is measured in its tree, where there is one; else its pages are rewritten in memory, and its images taken to
//! be as small as the policy wants (CA 3.3). Where a text has a copy compressed beforehand beside it (`page.html.gz`), at
//! full as in a tree, its bytes count: so browsers get it.

mod figures;

use crate::adapt::output::MANIFEST;
use crate::adapt::trees::worth_compressing;
use crate::policy::{Level, Policy, Step};
use crate::rewrite::decide::Decisions;
use crate::rewrite::{Widths, rewritten};
use crate::site::kind::Kind;
use crate::site::tree::Tree;
use crate::site::{Site, Views};
use crate::work::{self, Watch, refused};
pub use figures::{Costs, Figures, Ratios, curve, ratios, text_ratios};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
    pub views: Option<Views>,
}

/// The figures of a site at full and at the lower levels.
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

/// The most pages, and the most images.
const EXAMPLES: usize = 3;

/// The figures of a site.
///
/// # Errors
/// `InvalidInput`: the site is none, or what should be its trees; `Interrupted`; or a file cannot be read.
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
    let full =
        Figures::of(&site.survey, views, |path| packed(&site, path).unwrap_or_else(|| site.bytes(path)));
    let mut levels = Vec::new();
    for level in [Level::Text, Level::Light] {
        let found = match &question.adapted {
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
        matched: matched.zip(all),
        examples,
        uncounted,
    })
}

fn examples(site: &Site, trees: Option<&Path>, views: Option<&Views>) -> Examples {
    let first = site.first();
    let ranked = site.ranked(views).into_iter().map(|(path, _)| path.clone());
    let others = ranked.filter(|path| Some(path) != first.as_ref());
    let pages = first.iter().cloned().chain(others).take(EXAMPLES).collect();
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

/// The level as it would be.
fn estimated(decisions: &Decisions<'_>, views: Option<&Views>, watch: &dyn Watch) -> io::Result<Figures> {
    let site = decisions.site;
    let read = |path: &str| {
        let original = site.tree.read_file(path)?;
        Ok(rewritten(decisions, path, &original, &Widths::new()).unwrap_or(original))
    };
    let texts = site.tree.files.iter().filter(|(path, file)| file.kind.is_text(path));
    let texts: Vec<&str> = texts.map(|(path, _)| path.as_str()).collect();
    let text_bytes = work::each(&texts, watch, |path| {
        let text = read(path)?;
        let copied = decisions.policy.takes(Step::Compressed) || packed(site, path).is_some();
        let packed = if copied { worth_compressing(&text)? } else { None };
        Ok(packed.unwrap_or(text).len() as u64)
    })?;
    let text_bytes: BTreeMap<&str, u64> = texts.into_iter().zip(text_bytes).collect();
    Ok(Figures::of(&site.surveyed_as(&read, watch)?, views, |path| match decisions.reduction(path) {
        Some(reduction) => (site.bytes(path) as f64 / reduction.factor) as u64,
        None => text_bytes.get(path).copied().unwrap_or_else(|| site.bytes(path)),
    }))
}

/// The level as it is in its tree below `out`; `None` if there is none. What the tree lacks, the site has.
fn measured(
    site: &Site,
    level: Level,
    out: &Path,
    views: Option<&Views>,
    watch: &dyn Watch,
) -> io::Result<Option<Figures>> {
    let (tree, shown) = (out.join(level.name()), out.display());
    if !out.join(MANIFEST).is_file() {
        return Err(refused(format!("{shown}: no trees in it; make them: `plimsoll adapt SITE {shown}`")));
    }
    if !tree.is_dir() {
        return Ok(None);
    }
    let read = |path: &str| fs::read(tree.join(path)).or_else(|_| site.tree.read_file(path));
    let size = |path: &str| fs::metadata(tree.join(path)).ok().map(|found| found.len());
    Ok(Some(Figures::of(&site.surveyed_as(&read, watch)?, views, |path| {
        let here = size(&format!("{path}.gz")).or_else(|| size(path));
        here.or_else(|| packed(site, path)).unwrap_or_else(|| site.bytes(path))
    })))
}

/// Bytes of the compressed copy beside a file of the site.
fn packed(site: &Site, path: &str) -> Option<u64> {
    site.tree.files.get(&format!("{path}.gz")).map(|file| file.bytes)
}
