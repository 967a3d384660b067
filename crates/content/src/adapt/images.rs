//! Images that are written again: those of the last run, and the rest reduced now.

use super::manifest::{self, Image, Known, Reduced};
use super::{Job, output::Output};
use crate::image::{self, Reduction};
use crate::policy::Level;
use crate::rewrite::Widths;
use crate::rewrite::decide::Decisions;
use crate::site::Site;
use crate::work::{self, Watch};
use std::collections::BTreeMap;
use std::io;

/// What became of the images.
#[derive(Default)]
pub(super) struct Images {
    /// Those that were written again, in this run or before.
    pub(super) files: BTreeMap<String, (Image, Vec<u8>)>,
    /// Widths before, of those with fewer pixels now.
    pub(super) widths: Widths,
    /// The key of every image that was tried, by path.
    pub(super) keys: BTreeMap<String, String>,
    /// What is wrong with those that could not be read.
    pub(super) wrong: BTreeMap<String, String>,
    /// How many stayed as they are: nothing smaller was similar enough.
    pub(super) unreduced: usize,
    /// How many were tried in this run.
    pub(super) now: usize,
}

/// Reduces the images that the job's policy wants reduced, and that are not `known` from the last run.
pub(super) fn reduce(
    job: &Job,
    site: &Site,
    output: &Output,
    known: &Known,
    watch: &dyn Watch,
) -> io::Result<Images> {
    let lower: Vec<Level> = job.levels.iter().copied().filter(|level| *level != Level::Full).collect();
    let Some(level) = lower.first() else { return Ok(Images::default()) };
    let decisions = Decisions::new(site, &job.policy, *level, job.views.as_ref());
    let wanted: Vec<(&String, Reduction)> =
        site.tree.files.keys().filter_map(|path| Some((path, decisions.reduction(path)?))).collect();
    let tried = work::each(&wanted, watch, |(path, reduction)| {
        let bytes = site.tree.read_file(path)?;
        let key = manifest::key(&bytes, reduction);
        let places = lower.iter().map(|level| output.old(&format!("{level}/{path}")));
        let before = known.image(path, &key, places);
        Ok((key, before.is_none(), before.unwrap_or_else(|| reduced(&bytes, *reduction))))
    })?;
    let mut images = Images::default();
    for ((path, _), (key, is_new, result)) in wanted.into_iter().zip(tried) {
        images.now += usize::from(is_new);
        images.keys.insert(path.clone(), key);
        match result {
            Ok(Some((image, written))) => {
                let (now, before) = (image::dimensions(&written), site.dimensions.get(path));
                let smaller = now.zip(before).filter(|(now, before)| now.0 < before.0);
                images.widths.extend(smaller.map(|(_, before)| (path.clone(), before.0)));
                images.files.insert(path.clone(), (image, written));
            }
            Ok(None) => images.unreduced += 1,
            Err(what) => drop(images.wrong.insert(path.clone(), what)),
        }
    }
    Ok(images)
}

fn reduced(bytes: &[u8], reduction: Reduction) -> Reduced {
    let Some(found) = image::reduced(bytes, reduction)? else { return Ok(None) };
    let (before, after) = (bytes.len() as u64, found.written.len() as u64);
    // Rounded as in the manifest, so that the next run reads the same.
    let similarity = (found.similarity * 1e4).round() / 1e4;
    Ok(Some((Image { before, after, similarity }, found.written)))
}
