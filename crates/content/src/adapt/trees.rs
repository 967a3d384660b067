//! Writes one tree: every file of the site as it is at a level, with compressed copies beside its texts.

use super::fonts::Fonts;
use super::image_copies::Images;
use super::manifest::TreeEntry;
use super::{Job, output::Output};
use crate::parallel::{self, Watch, about};
use crate::policy::{Level, Step};
use crate::rewrite::decide::{Decisions, VARIANT};
use crate::rewrite::rewritten;
use crate::site::Site;
use crate::site::kind::Kind;
use crate::text::svg;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;

/// A compressed copy is written only if it has less than this part of the bytes.
const WORTH: f64 = 0.95;

/// What happens to a file at a level.
enum Outcome {
    Same,
    Changed(Vec<u8>),
    Missing,
}

/// The inputs and outputs that are the same for every level.
pub(super) struct Writer<'a> {
    pub(super) job: &'a Job,
    pub(super) site: &'a Site,
    pub(super) images: &'a Images,
    pub(super) fonts: &'a Fonts,
    pub(super) output: &'a Output,
}

impl Writer<'_> {
    /// Writes a tree; also returns how many of its files were not taken from the last run.
    pub(super) fn write(&self, level: Level, watch: &dyn Watch) -> io::Result<(TreeEntry, usize)> {
        let decisions = Decisions::new(self.site, &self.job.policy, level, self.job.views.as_ref());
        let paths: Vec<&String> = self.site.tree.files.keys().collect();
        fs::create_dir_all(self.output.place(level.name())?)?;
        let done = parallel::each(&paths, watch, |path| self.file(&decisions, path))?;
        for (path, to) in &self.site.tree.links {
            let place = self.output.place(&format!("{level}/{path}"))?;
            symlink(to, &place).map_err(|error| about(&place, &error))?;
        }
        let mut tree = TreeEntry { level, files: 0, bytes: 0, missing: Vec::new() };
        let mut written_now = self.copies(level, &mut tree)?;
        for (path, file) in paths.into_iter().zip(done) {
            match file {
                Some((size, written)) => {
                    tree.files += 1;
                    tree.bytes += size;
                    written_now += usize::from(written);
                }
                None => tree.missing.push(path.clone()),
            }
        }
        Ok((tree, written_now))
    }

    /// Writes the copies of images that the site does not have; returns how many were not taken from the last run.
    ///
    /// The copy for plain screens is in every tree, because a page that was loaded at the light level may request it after its
    /// client has moved to another level. If a lower tree may lack files, it leaves the copy to the next.
    fn copies(&self, level: Level, tree: &mut TreeEntry) -> io::Result<usize> {
        let Writer { job, site, images, output, .. } = *self;
        let own = images.files.get(&level);
        let is_new = |path: &&String| site.tree.is_free(path);
        let mut written = 0;
        let light = images.files.get(&Level::Light).filter(|_| Some(level) == job.highest() || !job.sparse);
        let originals: BTreeMap<&str, &str> =
            images.plain.iter().map(|(path, plain)| (plain.as_str(), path.as_str())).collect();
        let plain = light.into_iter().flatten().filter(|(path, _)| originals.contains_key(path.as_str()));
        let all = own.into_iter().flatten().filter(|(path, _)| is_new(path));
        let all: BTreeMap<&String, &Vec<u8>> = plain.chain(all).collect();
        for (path, bytes) in all {
            tree.files += 1;
            tree.bytes += bytes.len() as u64;
            let named = path
                .strip_suffix(VARIANT)
                .filter(|named| site.tree.files.contains_key(*named) || originals.contains_key(named));
            let named = named.unwrap_or(path);
            let of = site.tree.root.join(originals.get(named).unwrap_or(&named));
            written += usize::from(output.write(&format!("{level}/{path}"), bytes, Some(&of))?);
        }
        Ok(written)
    }

    /// Writes a file. Returns its bytes, and whether it was not taken from the last run; `None` if the tree does not have the
    /// file.
    fn file(&self, decisions: &Decisions<'_>, path: &str) -> io::Result<Option<(u64, bool)>> {
        let Writer { job, site, output, .. } = *self;
        let (level, place) = (decisions.level, format!("{}/{path}", decisions.level));
        let (file, snapshot) = (site.tree.root.join(path), site.tree.snapshots.get(path));
        // A fetched page may be read by anyone, so it gets the default rights.
        let of = snapshot.is_none().then_some(file.as_path());
        let outcome = if level == Level::Full { Outcome::Same } else { self.outcome(decisions, path)? };
        let done = match (&outcome, snapshot) {
            (Outcome::Missing, _) => return Ok(None),
            (Outcome::Changed(bytes), _) => (bytes.len() as u64, output.write(&place, bytes, of)?),
            // At full a program makes the page for every request; a file with its path is the program.
            (Outcome::Same, Some(_)) if level == Level::Full && !file.is_file() => return Ok(None),
            (Outcome::Same, Some(bytes)) if level != Level::Full => {
                (site.bytes(path), output.write(&place, bytes, of)?)
            }
            (Outcome::Same, _) if job.sparse && Some(level) != job.highest() => return Ok(None),
            (Outcome::Same, _) => (site.bytes(path), output.copy(&file, &place)?),
        };
        let is_program = level == Level::Full && snapshot.is_some();
        let is_text = site.tree.files[path].kind.is_text(path);
        if job.policy.takes(Step::Compressed) && is_text && !is_program {
            let same = || site.tree.read_file(path);
            let bytes = if let Outcome::Changed(bytes) = outcome { bytes } else { same()? };
            let copy = format!("{path}.gz");
            if site.tree.is_free(&copy)
                && let Some(bytes) = worth_compressing(&bytes)?
            {
                output.write(&format!("{level}/{copy}"), &bytes, of)?;
            }
        }
        Ok(Some(done))
    }

    /// What happens to a file at a level below full.
    fn outcome(&self, decisions: &Decisions<'_>, path: &str) -> io::Result<Outcome> {
        let Writer { images, fonts, .. } = *self;
        let tree = &decisions.site.tree;
        if decisions.cut.contains(path) {
            return Ok(Outcome::Missing);
        }
        if decisions.is_important(path) {
            return Ok(Outcome::Same);
        }
        let changed = match tree.files[path].kind {
            Kind::Page | Kind::Style => rewritten(decisions, path, &tree.read_file(path)?, &images.plain),
            Kind::Image => image(decisions.level, path, images).cloned(),
            Kind::Font => fonts.files.get(path).cloned(),
            Kind::OtherImage if Kind::is_svg(path) && decisions.policy.takes(Step::Vector) => {
                svg::without_silence(&tree.read_file(path)?)
            }
            Kind::Compressed => return self.stale(decisions, path),
            _ => None,
        };
        Ok(changed.map_or(Outcome::Same, Outcome::Changed))
    }

    /// What happens to a compressed copy that the site itself has: if the original file changes, a gzip copy is made again, and
    /// any other copy is left out.
    fn stale(&self, decisions: &Decisions<'_>, path: &str) -> io::Result<Outcome> {
        let original =
            path.rsplit_once('.').filter(|(stem, _)| decisions.site.tree.files.contains_key(*stem));
        let Some((original, ending)) = original else { return Ok(Outcome::Same) };
        Ok(match self.outcome(decisions, original)? {
            Outcome::Changed(bytes) if ending == "gz" => Outcome::Changed(compressed(&bytes)?),
            Outcome::Changed(_) | Outcome::Missing => Outcome::Missing,
            Outcome::Same => Outcome::Same,
        })
    }
}

/// The image as it is at a level. Pages of the text level show no images; its tree has the images of the next level that has
/// any.
fn image<'a>(level: Level, path: &str, images: &'a Images) -> Option<&'a Vec<u8>> {
    let mut levels =
        [Level::Lean, Level::Light].into_iter().filter(|one| level == *one || level == Level::Text);
    levels.find_map(|level| images.files.get(&level)?.get(path))
}

/// The compressed text, unless it is hardly smaller.
pub(crate) fn worth_compressing(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let packed = compressed(bytes)?;
    Ok(((packed.len() as f64) < WORTH * bytes.len() as f64).then_some(packed))
}

/// The gzip data has neither name nor time, so that the same bytes always make the same file.
fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
