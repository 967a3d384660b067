//! Makes the trees of a site.
//!
//! ```text
//! folder, snapshots -> site -> images and fonts reduced -> for each level: decide, rewrite, write -> publish
//! ```
//!
//! Input: a [`Job`]. Output: trees beside a manifest, published all at once, and a report ([`Adapted`]).
//!
//! Every tree is complete: it has every file of the site, also images that its own pages no longer show, so that a page that
//! was loaded a moment before at another level finds all its parts. The manifest says what a tree lacks (pages cut by depth;
//! with `sparse`, whatever is as at full), and a server that reads the manifest takes it from the next level.

mod fonts;
mod image_copies;
pub(crate) mod manifest;
pub(crate) mod output;
pub(crate) mod trees;

use crate::image;
use crate::parallel::{self, Watch, refused};
use crate::policy::{Level, Policy};
use crate::site::kind::Kind;
use crate::site::tree::Tree;
use crate::site::{PROGRAM, Site, Views, snapshot};
use manifest::{Image, Known, Problem, SiteMark, TreeEntry};
use output::{MANIFEST, Output};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The settings of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// The site's folder, which is only read.
    pub site: PathBuf,
    /// The folder for the trees, one for each level under its name.
    pub out: PathBuf,
    /// The levels to make.
    pub levels: Vec<Level>,
    /// How the site is adapted.
    pub policy: Policy,
    /// Requests by path, as in an access log; an image stays on the most popular page that has it.
    pub views: Option<Views>,
    /// Addresses of dynamic pages; lower trees store them as they are now.
    pub snapshots: Vec<String>,
    /// Whether files that are the same at full are left out of lower trees.
    pub sparse: bool,
    /// Whether the trees are made even if most files of the last run are missing from the site.
    pub force: bool,
}

impl Job {
    /// The highest level that is made, below which a tree may have gaps.
    fn highest(&self) -> Option<Level> {
        self.levels.iter().copied().max()
    }
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapted {
    /// The trees that were made, one for each level.
    pub trees: Vec<TreeEntry>,
    /// The number of files in the site's folder, without the dynamic pages that were fetched.
    pub site_files: u64,
    /// Images that were written again, by level and path.
    pub images: BTreeMap<Level, BTreeMap<String, Image>>,
    /// Images above the limit that stayed as they are at the highest level that reduces images, because nothing smaller was
    /// similar enough.
    pub unreduced: usize,
    /// Web fonts that were written again: bytes before and after, by path.
    pub fonts: BTreeMap<String, (u64, u64)>,
    /// Problems with files of the site.
    pub problems: Vec<Problem>,
    /// Images that were reduced in this run, not taken from the last one.
    pub reduced_now: usize,
    /// Files that were written in this run, not taken from the last one.
    pub written: usize,
}

/// Fetches the page at an address, or returns why that failed.
pub type Fetch<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + Sync + 'a;

/// Makes the trees. `fetch` fetches the job's dynamic pages.
///
/// # Errors
/// `InvalidInput`: the site or the output folder cannot be used; `Interrupted`: the user stopped the run; or a file cannot be
/// read or written. The old trees are then unchanged.
pub fn adapt(job: &Job, watch: &dyn Watch, fetch: &Fetch<'_>) -> io::Result<Adapted> {
    let mut tree = Tree::read(&job.site)?;
    let output = Output::begin(&tree.root, &job.out)?;
    if !job.force {
        check_most_are_there(&tree, job.snapshots.len(), manifest::site_files(&output.old(MANIFEST)))?;
    }
    let (site_files, mark) = (tree.files.len() as u64, SiteMark::of(&tree));
    let fetched = parallel::each(&job.snapshots, watch, |address| {
        let path = snapshot::path(address)?;
        let page = fetch(address);
        Ok((path, page.map_err(|what| io::Error::other(format!("cannot store {address}: {what}")))?))
    })?;
    fetched.into_iter().try_for_each(|(path, bytes)| tree.take(path, bytes))?;
    let site = Site::read(tree, watch)?;
    if job.policy.avif && site.tree.files.keys().any(|path| Kind::is_avif(path)) {
        image::check_avif().map_err(refused)?;
    }
    let views = job.views.as_ref().map(|requests| site.page_views(requests).0);
    let job = &Job { views, ..job.clone() };
    let images = image_copies::reduce(job, &site, &output, &Known::read(&output.old(MANIFEST)), watch)?;
    let fonts = fonts::reduce(job, &site, watch)?;
    let sizes =
        fonts.files.iter().map(|(path, after)| (path.clone(), (site.bytes(path), after.len() as u64)));
    let mut adapted = Adapted {
        site_files,
        reduced_now: images.now,
        unreduced: images.unreduced,
        images: [Level::Light, Level::Lean].iter().map(|level| (*level, images.best(*level))).collect(),
        fonts: sizes.collect(),
        problems: problems(job, &site, &images, &fonts),
        ..Adapted::default()
    };
    let writer = trees::Writer { job, site: &site, images: &images, fonts: &fonts, output: &output };
    for &level in &job.levels {
        let (tree, written) = writer.write(level, watch)?;
        adapted.trees.push(tree);
        adapted.written += written;
    }
    output.write(MANIFEST, &manifest::manifest(&adapted, mark, &site, &job.policy, &images.tried)?, None)?;
    output.publish()?;
    Ok(adapted)
}

/// Refuses a site that has lost more than half of the files that the last run saw in its folder, because a disk may not be
/// mounted or a build may have failed, and good trees would be replaced by empty ones. Dynamic pages are not files of the
/// folder: fetched ones do not make up for lost files and are not missed, and a site may consist of them alone.
fn check_most_are_there(tree: &Tree, snapshots: usize, before: u64) -> io::Result<()> {
    let (shown, now) = (tree.root.display(), tree.files.len() as u64);
    if now == 0 && snapshots == 0 {
        return Err(refused(format!(
            "{shown}: no file is in it; is it mounted? `--force` makes empty trees"
        )));
    }
    if now < before.div_ceil(2) {
        return Err(refused(format!(
            "{shown}: {now} files, where the last run saw {before}; the trees stay as they are. `--force` makes them anew"
        )));
    }
    Ok(())
}

/// The problems of the site: its own, fonts that cannot be read, and images that are copied although they are large.
fn problems(job: &Job, site: &Site, images: &image_copies::Images, fonts: &fonts::Fonts) -> Vec<Problem> {
    let copied = site.dimensions.keys().filter(|path| {
        Kind::is_avif(path) && !job.policy.avif && site.bytes(path) > job.policy.image_limit_bytes
    });
    let what = "an AVIF, copied as it is; `--avif` reduces it, slowly";
    let copied = copied.map(|path| Problem::new(path, what));
    let unread = fonts.wrong.iter().map(|(path, what)| (path, what));
    let wrong = images
        .wrong()
        .chain(unread)
        .map(|(path, what)| Problem::new(path, &format!("{what}: copied as it is")));
    let mut all: Vec<Problem> = site.problems.iter().cloned().chain(copied).chain(wrong).collect();
    // A site may have a thousand programs, which are no problem if a server runs them, so they come last.
    all.sort_by(|one, other| (one.what == PROGRAM, one).cmp(&(other.what == PROGRAM, other)));
    all
}
