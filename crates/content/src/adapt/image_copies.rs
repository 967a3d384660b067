//! Copies of images in fewer bytes: those that are known from the last run, and the rest reduced now.

use super::manifest::{self, Image, Known, Tried};
use super::{Job, output::Output};
use crate::image::{self, Copies, Found, Reduction};
use crate::parallel::{self, Watch};
use crate::policy::Level;
use crate::rewrite::Plain;
use crate::rewrite::decide::{Decisions, VARIANT};
use crate::site::Site;
use std::collections::BTreeMap;
use std::io;

/// The results of reducing the images.
#[derive(Default)]
pub(super) struct Images {
    /// The written files by level and path in the tree, from this run or an earlier one. They include files that the site
    /// itself does not have: copies for plain screens, and WebPs.
    pub(super) files: BTreeMap<Level, BTreeMap<String, Vec<u8>>>,
    /// Copies for plain screens, by the path of their image.
    pub(super) plain: Plain,
    /// What was tried with each image, by the image's path and by the name of the copy.
    pub(super) tried: BTreeMap<String, BTreeMap<String, Tried>>,
    /// How many images stayed as they are, because nothing smaller was similar enough.
    pub(super) unreduced: usize,
    /// How many images were tried in this run.
    pub(super) now: usize,
}

/// One copy of an image that is wanted.
struct WantedCopy<'a> {
    path: &'a String,
    level: Level,
    /// The path in the tree at which the copy is written; its WebP is written beside it.
    to: String,
    reduction: Reduction,
}

impl WantedCopy<'_> {
    /// The name of the copy in the manifest.
    fn copy(&self) -> String {
        format!("{}{}", self.level, if self.is_plain() { " 1x" } else { "" })
    }

    fn is_plain(&self) -> bool {
        self.to != *self.path
    }

    fn files(&self) -> [String; 2] {
        [self.to.clone(), format!("{}{VARIANT}", self.to)]
    }
}

/// Reduces the images that the job's policy wants reduced and that are not `known` from the last run.
pub(super) fn reduce(
    job: &Job,
    site: &Site,
    output: &Output,
    known: &Known,
    watch: &dyn Watch,
) -> io::Result<Images> {
    let wanted = wanted(job, site);
    let tried = parallel::each(&wanted, watch, |wanted| {
        let bytes = site.tree.read_file(wanted.path)?;
        let key = manifest::key(&bytes, &wanted.reduction);
        let places = wanted.files().map(|file| output.old(&format!("{}/{file}", wanted.level)));
        let before = known.copies(wanted.path, &wanted.copy(), &key, &places);
        let is_new = before.is_none();
        let copies = before.unwrap_or_else(|| image::reduced(&bytes, wanted.reduction).map(rounded));
        Ok((is_new, Tried::of(key, bytes.len() as u64, &copies), copies))
    })?;
    let mut images = Images::default();
    for (wanted, (is_new, tried, copies)) in wanted.into_iter().zip(tried) {
        images.now += usize::from(is_new);
        images.tried.entry(wanted.path.clone()).or_default().insert(wanted.copy(), tried);
        let Ok(copies) = copies else { continue };
        let is_least =
            wanted.level == job.levels.iter().copied().filter(has_images).max().unwrap_or(Level::Light);
        if is_least && !wanted.is_plain() && copies == Copies::default() {
            images.unreduced += 1;
        }
        // If a copy for plain screens is not worth its bytes it is left out, together with its WebP.
        if wanted.is_plain() {
            if copies.named.is_none() {
                continue;
            }
            images.plain.insert(wanted.path.clone(), wanted.to.clone());
        }
        let files = images.files.entry(wanted.level).or_default();
        for (file, found) in wanted.files().into_iter().zip([copies.named, copies.variant]) {
            files.extend(found.map(|found| (file, found.written)));
        }
    }
    Ok(images)
}

fn has_images(level: &Level) -> bool {
    matches!(level, Level::Lean | Level::Light)
}

fn wanted<'a>(job: &Job, site: &'a Site) -> Vec<WantedCopy<'a>> {
    let mut all = Vec::new();
    for &level in job.levels.iter().filter(|level| has_images(level)) {
        let decisions = Decisions::new(site, &job.policy, level, job.views.as_ref());
        for path in site.tree.files.keys() {
            if let Some(reduction) = decisions.reduction(path) {
                all.push(WantedCopy { path, level, to: path.clone(), reduction });
            }
            if let Some((to, reduction)) = decisions.plain(path) {
                all.push(WantedCopy { path, level, to, reduction });
            }
        }
    }
    all
}

/// Rounds similarities as the manifest does, so that the next run reads the same values.
fn rounded(copies: Copies) -> Copies {
    let round = |found: Found| Found { similarity: (found.similarity * 1e4).round() / 1e4, ..found };
    Copies { named: copies.named.map(round), variant: copies.variant.map(round) }
}

impl Images {
    /// For the report, the smallest file of each image at a level.
    pub(super) fn best(&self, level: Level) -> BTreeMap<String, Image> {
        let name = level.name();
        let best =
            self.tried.iter().filter_map(|(path, copies)| Some((path.clone(), copies.get(name)?.best()?)));
        best.collect()
    }

    /// The images that could not be read, and why.
    pub(super) fn wrong(&self) -> impl Iterator<Item = (&String, &String)> {
        self.tried.iter().filter_map(|(path, copies)| {
            Some((path, copies.values().find_map(|tried| tried.problem.as_ref())?))
        })
    }
}
