//! `manifest.json` beside the trees: what a server needs to know of them, and what the next run need not do again.
//!
//! ```json
//! { "plimsoll": 1,
//!   "site_files": 380,
//!   "trees": [ { "level": "light", "tree": "light", "files": 383, "bytes": 1200000, "missing": ["far/away.html"] } ],
//!   "images": { "photo.jpg": { "before": 102400, "after": 12000, "similarity": 0.93, "key": "…" } },
//!   "problems": [ { "path": "broken.gif", "what": "…" } ] }
//! ```
//!
//! `site_files` are those of the site's folder, without the dynamic pages that were fetched. Trees are from lowest to
//! highest. A path that is `missing` from one is to be had from the next.

use super::Adapted;
use crate::image::Reduction;
use crate::policy::Level;
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

/// The form of the file, and the way in which images are reduced: a change of either makes all anew.
const VERSION: u64 = 1;

/// A tree that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The level of the tree; its folder has the same name.
    pub level: Level,
    /// The number of its files.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
    /// Files of the site that the tree does not have.
    pub missing: Vec<String>,
}

/// An image that was written again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// Structural similarity of the two.
    pub similarity: f64,
}

/// What is wrong with a file of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The path of the file in the site.
    pub path: String,
    /// What is wrong with it, and what became of it.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(path: &str, what: &str) -> Problem {
        Problem { path: path.to_owned(), what: what.to_owned() }
    }
}

/// What came of an image: smaller, as it was, or what is wrong with it.
pub(crate) type Reduced = Result<Option<(Image, Vec<u8>)>, String>;

/// The file.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    plimsoll: u64,
    site_files: u64,
    trees: Vec<ManifestTree<'a>>,
    images: BTreeMap<&'a str, KnownImage>,
    problems: &'a [Problem],
}

#[derive(Debug, Serialize)]
struct ManifestTree<'a> {
    level: &'a str,
    tree: &'a str,
    files: u64,
    bytes: u64,
    missing: &'a [String],
}

/// An image that was tried: neither made smaller nor wrong if it stayed as it is.
#[derive(Debug, Serialize, Deserialize)]
struct KnownImage {
    key: String,
    #[serde(flatten)]
    image: Option<Image>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The number of files that the site's folder had when the manifest at `path` was written; 0 if there is none that can be
/// read. The trees cannot tell it: they have dynamic pages too, and sparse ones lack what is as at full.
pub(crate) fn site_files(path: &Path) -> u64 {
    #[derive(Deserialize)]
    struct Counted {
        site_files: u64,
    }
    let read = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Counted>(&text).ok());
    read.map_or(0, |manifest| manifest.site_files)
}

/// The text of a manifest. `keys` are those of all images that were tried; `wrong` says what is wrong with those that
/// could not be read.
pub(crate) fn manifest(
    adapted: &Adapted,
    keys: &BTreeMap<String, String>,
    wrong: &BTreeMap<String, String>,
) -> io::Result<Vec<u8>> {
    let trees = adapted.trees.iter().map(|entry| {
        let level = entry.level.name();
        ManifestTree { level, tree: level, files: entry.files, bytes: entry.bytes, missing: &entry.missing }
    });
    let images = keys.iter().map(|(path, key)| {
        let (image, problem) = (adapted.images.get(path).copied(), wrong.get(path).cloned());
        (path.as_str(), KnownImage { key: key.clone(), image, problem })
    });
    let manifest = Manifest {
        plimsoll: VERSION,
        site_files: adapted.site_files,
        trees: trees.collect(),
        images: images.collect(),
        problems: &adapted.problems,
    };
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    Ok(text)
}

/// What the last run left.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Known {
    plimsoll: u64,
    images: BTreeMap<String, KnownImage>,
}

impl Known {
    /// The manifest of the last run; nothing, if there is none or it is of another version.
    pub(crate) fn read(path: &Path) -> Known {
        let known = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        known.filter(|known: &Known| known.plimsoll == VERSION).unwrap_or_default()
    }

    /// What came of the image with this key, if it is known and still there, in one of these places.
    pub(crate) fn image(
        &self,
        path: &str,
        key: &str,
        places: impl Iterator<Item = PathBuf>,
    ) -> Option<Reduced> {
        let entry = self.images.get(path).filter(|entry| entry.key == key)?;
        if let Some(problem) = &entry.problem {
            return Some(Err(problem.clone()));
        }
        let Some(image) = entry.image else { return Some(Ok(None)) };
        let mut files = places.filter_map(|place| fs::read(place).ok());
        let bytes = files.find(|bytes| bytes.len() as u64 == image.after)?;
        Some(Ok(Some((image, bytes))))
    }
}

/// The key by which an image is known again: a hash of its bytes and of what is to be done with it. No secret is guarded
/// by the key, and two images meet in 128 bits by chance alone, which never happens.
pub(crate) fn key(bytes: &[u8], reduction: &Reduction) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.write_u64(reduction.factor.to_bits());
    hasher.write_u64(reduction.similarity.to_bits());
    hasher.write_u8(u8::from(reduction.resizable));
    hasher.write_u8(u8::from(reduction.any_format));
    format!("{:032x}", hasher.finish128().as_u128())
}
