//! The trees of a site, made.
//!
//! ```text
//! tree -> site (pages, sheets and image heads read) -> images reduced -> for each level: decide, rewrite, write -> publish
//! ```
//!
//! Every tree is whole: it has every file of the site, also images that its pages do not show any more, so that a page
//! that was loaded at another level a moment before finds all its parts. What a tree does not have (pages cut by depth;
//! with `sparse`, whatever is as at full) the manifest says, and a server that reads it takes the next level's.

use crate::css;
use crate::decide::Decisions;
use crate::document::Document;
use crate::image::{self, Reduction};
use crate::impact::page_views;
use crate::kind::Kind;
use crate::manifest::{self, Image, Known, TreeEntry};
use crate::output::{MANIFEST, Output};
use crate::policy::{Level, Policy, Step, Tag};
use crate::rewrite::{rewritten, width_before};
use crate::site::Site;
use crate::snapshot;
use crate::svg;
use crate::tree::Tree;
use crate::work::{self, Watch};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A compressed copy that is not at least so much smaller is not written.
const WORTH: f64 = 0.95;

/// What is to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// The site's folder. Nothing in it is touched.
    pub site: PathBuf,
    /// The folder for the trees, one for each level under its name.
    pub out: PathBuf,
    /// Which.
    pub levels: Vec<Level>,
    /// How.
    pub policy: Policy,
    /// Requests by path, as they stand in an access log: an image stays on the most popular page that has it.
    pub views: Option<BTreeMap<String, u64>>,
    /// Addresses of dynamic pages, which lower trees have as they are now.
    pub snapshots: Vec<String>,
    /// Leave out of lower trees what is the same at full.
    pub sparse: bool,
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapted {
    /// The trees.
    pub trees: Vec<TreeEntry>,
    /// Images that were written again, by path.
    pub images: BTreeMap<String, Image>,
    /// Images above the limit that stayed as they are: nothing smaller was similar enough.
    pub unreduced: usize,
    /// What is wrong with files: the path, and what.
    pub problems: Vec<(String, String)>,
    /// Images that were reduced in this run, and not taken from the last.
    pub reduced_now: usize,
    /// Files that were written in this run, and not taken from the last.
    pub written: usize,
}

/// What became of a file at a level.
enum Outcome {
    Same,
    Changed(Vec<u8>),
    Missing,
}

/// Makes the trees.
///
/// # Errors
/// `InvalidInput`: the site or the output cannot be taken; `Interrupted`: the user stopped it; or a file cannot be read
/// or written. The old trees are then as they were.
pub fn adapt(job: &Job, watch: &dyn Watch) -> io::Result<Adapted> {
    let mut tree = Tree::read(&job.site).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", job.site.display()))
    })?;
    let output = Output::begin(&tree.root, &job.out)?;
    for snapshot in work::each(&job.snapshots, watch, |address| snapshot::fetch(address))? {
        tree.take(snapshot);
    }
    let site = Site::read(tree, watch)?;
    if job.policy.avif && site.tree.files.keys().any(|path| Kind::is_avif(path)) {
        image::check_avif().map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
    }
    let known = Known::read(&output.old(MANIFEST));
    let mut adapted = Adapted { problems: site.problems.clone(), ..Adapted::default() };
    let large = site.dimensions.keys().filter(|path| site.bytes(path) > job.policy.image_limit_bytes);
    let copied = large.filter(|path| Kind::is_avif(path) && !job.policy.avif);
    let what = "an AVIF, copied as it is; `--avif` reduces it, slowly";
    adapted.problems.extend(copied.map(|path| (path.clone(), what.to_owned())));
    let views = job.views.as_ref().map(|requests| page_views(&site, requests).0);
    let job = &Job { views, ..job.clone() };
    let images = reduce_images(job, &site, &output, &known, watch)?;
    adapted.reduced_now = images.now;
    adapted.unreduced = images.unreduced;
    let wrong = images.wrong.iter().map(|(path, what)| (path.clone(), format!("{what}: copied as it is")));
    adapted.problems.extend(wrong);
    let writer = Writer { job, site: &site, images: &images, output: &output };
    for &level in &job.levels {
        let (tree, written) = write_tree(&writer, level, watch)?;
        adapted.trees.push(tree);
        adapted.written += written;
    }
    adapted.images = images.files.iter().map(|(path, (image, _))| (path.clone(), *image)).collect();
    adapted.problems.sort();
    output.write(MANIFEST, &manifest::manifest(&adapted, &images.keys, &images.wrong)?)?;
    output.publish()?;
    Ok(adapted)
}

/// Images that were written again.
#[derive(Default)]
struct Images {
    files: BTreeMap<String, (Image, Vec<u8>)>,
    /// Widths before, of those with fewer pixels now.
    widths: BTreeMap<String, usize>,
    /// The key of every image that was tried, by path.
    keys: BTreeMap<String, String>,
    wrong: BTreeMap<String, String>,
    unreduced: usize,
    now: usize,
}

/// What every level is written from and to.
struct Writer<'a> {
    job: &'a Job,
    site: &'a Site,
    images: &'a Images,
    output: &'a Output,
}

/// An image that was tried.
struct Tried {
    key: String,
    again: bool,
    result: manifest::Reduced,
}

fn reduce_images(
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
        let tree = |level: &Level| output.old(&format!("{level}/{path}"));
        if let Some(result) = known.image(path, &key, lower.iter().map(tree)) {
            return Ok(Tried { key, again: false, result });
        }
        let result = image::reduced(&bytes, *reduction).map(|found| {
            found.map(|found| {
                let (before, after) = (bytes.len() as u64, found.written.len() as u64);
                // Rounded as in the manifest, so that the next run reads the same.
                let similarity = (found.similarity * 1e4).round() / 1e4;
                (Image { before, after, similarity }, found.written)
            })
        });
        Ok(Tried { key, again: true, result })
    })?;
    let mut images = Images::default();
    for ((path, _), tried) in wanted.into_iter().zip(tried) {
        images.now += usize::from(tried.again);
        images.keys.insert(path.clone(), tried.key);
        match tried.result {
            Ok(found) => {
                images.unreduced += usize::from(found.is_none());
                let Some((image, written)) = found else { continue };
                let width = site.dimensions.get(path).and_then(|size| width_before(*size, &written));
                images.widths.extend(width.map(|width| (path.clone(), width)));
                images.files.insert(path.clone(), (image, written));
            }
            Err(what) => drop(images.wrong.insert(path.clone(), what)),
        }
    }
    Ok(images)
}

fn write_tree(writer: &Writer<'_>, level: Level, watch: &dyn Watch) -> io::Result<(TreeEntry, usize)> {
    let Writer { job, site, images, output } = *writer;
    let decisions = Decisions::new(site, &job.policy, level, job.views.as_ref());
    let paths: Vec<&String> = site.tree.files.keys().collect();
    std::fs::create_dir_all(output.place(level.name())?)?;
    let done = work::each(&paths, watch, |path| {
        let place = format!("{level}/{path}");
        let dynamic = level == Level::Full && site.tree.snapshots.contains_key(*path);
        let text =
            job.policy.takes(Step::Compressed) && site.tree.files[*path].kind.is_text(path) && !dynamic;
        let outcome = match level {
            Level::Full => Outcome::Same,
            _ => outcome(&decisions, path, images)?,
        };
        let (size, written) = match &outcome {
            Outcome::Missing => return Ok((None, 0)),
            // At full the page is made anew for every request; a file at its path stands for its program.
            Outcome::Same if site.tree.snapshots.contains_key(*path) => match level {
                Level::Full if !site.tree.root.join(path).is_file() => return Ok((None, 0)),
                Level::Full => (site.bytes(path), output.copy(&site.tree.root.join(path), &place)?),
                _ => (site.bytes(path), output.write(&place, &site.tree.snapshots[*path])?),
            },
            Outcome::Same if job.sparse && level != Level::Full => return Ok((None, 0)),
            Outcome::Same => (site.bytes(path), output.copy(&site.tree.root.join(path), &place)?),
            Outcome::Changed(bytes) => (bytes.len() as u64, output.write(&place, bytes)?),
        };
        let packed_name = format!("{path}.gz");
        if text && !site.tree.files.contains_key(&packed_name) {
            let bytes =
                if let Outcome::Changed(bytes) = outcome { bytes } else { site.tree.read_file(path)? };
            if let Some(packed) = worth_compressing(&bytes)? {
                output.write(&format!("{level}/{packed_name}"), &packed)?;
            }
        }
        Ok((Some(size), usize::from(written)))
    })?;
    for (path, to) in &site.tree.links {
        symlink(to, output.place(&format!("{level}/{path}"))?)?;
    }
    let mut tree = TreeEntry { level, files: 0, bytes: 0, missing: Vec::new() };
    let mut written_now = 0;
    for (path, (size, written)) in paths.into_iter().zip(done) {
        written_now += written;
        match size {
            Some(size) => {
                tree.files += 1;
                tree.bytes += size;
            }
            None => tree.missing.push(path.clone()),
        }
    }
    Ok((tree, written_now))
}

/// What becomes of a file at a level below full.
fn outcome(decisions: &Decisions<'_>, path: &str, images: &Images) -> io::Result<Outcome> {
    let site = decisions.site;
    if decisions.cut.contains(path) {
        return Ok(Outcome::Missing);
    }
    if decisions.file_tag(path) == Some(Tag::Important) {
        return Ok(Outcome::Same);
    }
    let changed = match site.tree.files[path].kind {
        Kind::Page => {
            let document = Document::read(path, &site.tree.read_file(path)?);
            document.and_then(|document| rewritten(decisions, path, &document, &images.widths))
        }
        Kind::Style => sheet(decisions, path, &site.tree.read_file(path)?),
        Kind::Image => images.files.get(path).map(|(_, bytes)| bytes.clone()),
        Kind::OtherImage if is_svg(path) && decisions.policy.takes(Step::Vector) => {
            svg::without_silence(&site.tree.read_file(path)?)
        }
        Kind::Compressed => return stale(decisions, path, images),
        _ => None,
    };
    Ok(changed.map_or(Outcome::Same, Outcome::Changed))
}

fn is_svg(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("svg"))
}

/// A style sheet without what it loses.
pub(crate) fn sheet(decisions: &Decisions<'_>, path: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    // Only ASCII is changed; any encoding that sheets are written in keeps it apart.
    let decoded = crate::charset::decode(bytes)?;
    let without = css::without(&decoded.text, |url| decisions.sheet_loses(path, url))?;
    Some(decoded.encode(&without))
}

/// A copy compressed beforehand of a file that is another now: made again if that can be done, else left out.
fn stale(decisions: &Decisions<'_>, path: &str, images: &Images) -> io::Result<Outcome> {
    let Some((original, ending)) = path.rsplit_once('.') else { return Ok(Outcome::Same) };
    if !decisions.site.tree.files.contains_key(original) {
        return Ok(Outcome::Same);
    }
    Ok(match outcome(decisions, original, images)? {
        Outcome::Changed(bytes) if ending == "gz" => Outcome::Changed(compressed(&bytes)?),
        Outcome::Changed(_) | Outcome::Missing => Outcome::Missing,
        Outcome::Same => Outcome::Same,
    })
}

/// A text compressed, unless it is hardly smaller so.
pub(crate) fn worth_compressing(bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let packed = compressed(bytes)?;
    Ok(((packed.len() as f64) < WORTH * bytes.len() as f64).then_some(packed))
}

/// Without a name or a time in it: the same bytes make the same bytes.
fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
