//! `manifest.json` beside the trees: what a server needs to know about them, what each image is for, and the results that the
//! next run need not compute again.
//!
//! ```json
//! { "plimsoll": 2,
//!   "site": { "root": "/var/www/html", "files": "5d41…" }, "site_files": 380,
//!   "trees": [ { "level": "light", "tree": "light", "files": 383, "bytes": 1200000, "missing": ["far/away.html"] } ],
//!   "images": { "photo.jpg": { "role": "product", "why": "it leads to a page", "pages": 2, "shown": [300, 200],
//!     "copies": { "light": { "key": "…", "before": 102400, "named": { "bytes": 12000, "similarity": 0.93 } } } } },
//!   "fonts": { "icons.woff2": { "before": 78196, "after": 2100 } },
//!   "problems": [ { "path": "broken.gif", "what": "…" } ] }
//! ```
//!
//! `site_files` counts the files of the site's folder, without the dynamic pages that were fetched. Trees are listed from
//! lowest to highest. If a path is `missing` from a tree, the next tree has it.

use super::Adapted;
use crate::image::{Copies, Found, Reduction};
use crate::policy::{Level, Policy};
use crate::rewrite::decide;
use crate::site::Site;
use crate::site::tree::Tree;
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the file's format; if it changes, everything is made again.
const VERSION: u64 = 2;
/// The version of the method by which images are reduced and compared; if it changes, images are made again.
const METHOD: u64 = 3;

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Image {
    /// The image's size in bytes before it was written again.
    pub before: u64,
    /// The size in bytes after, for a client that accepts every format.
    pub after: u64,
    /// The structural similarity of both in the worst region; for a moving GIF, in the least similar frame that was kept.
    pub similarity: f64,
}

/// A problem with a file of the site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The path of the file in the site.
    pub path: String,
    /// What is wrong with the file, and what was done with it.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(path: &str, what: &str) -> Problem {
        Problem { path: path.to_owned(), what: what.to_owned() }
    }
}

/// The result of reducing an image; if the image stayed as it is, it has neither a file nor an error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tried {
    key: String,
    before: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    named: Option<Written>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webp: Option<Written>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// One written file of an image.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Written {
    bytes: u64,
    similarity: f64,
}

impl Tried {
    pub(crate) fn of(key: String, before: u64, copies: &Result<Copies, String>) -> Tried {
        let written = |found: &Option<Found>| {
            found
                .as_ref()
                .map(|found| Written { bytes: found.written.len() as u64, similarity: found.similarity })
        };
        match copies {
            Ok(copies) => {
                let (named, webp) = (written(&copies.named), written(&copies.variant));
                Tried { key, before, named, webp, problem: None }
            }
            Err(what) => Tried { key, before, problem: Some(what.clone()), ..Tried::default() },
        }
    }

    /// The smaller of the written files.
    pub(crate) fn best(&self) -> Option<Image> {
        let best = self.named.into_iter().chain(self.webp).min_by_key(|written| written.bytes)?;
        Some(Image { before: self.before, after: best.bytes, similarity: best.similarity })
    }
}

/// The content of `manifest.json`.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    plimsoll: u64,
    site: SiteMark,
    site_files: u64,
    trees: Vec<ManifestTree<'a>>,
    images: BTreeMap<&'a str, ManifestImage<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fonts: BTreeMap<&'a str, ManifestFont>,
    problems: &'a [Problem],
}

/// Identifies the site of trees: where the site was, and a hash of its files' paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteMark {
    pub(crate) root: String,
    pub(crate) files: String,
}

impl SiteMark {
    pub(crate) fn of(tree: &Tree) -> SiteMark {
        let mut hasher = SipHasher13::new();
        for path in tree.files.keys() {
            hasher.write(path.as_bytes());
            hasher.write_u8(0);
        }
        let files = format!("{:032x}", hasher.finish128().as_u128());
        SiteMark { root: tree.root.display().to_string(), files }
    }

    /// The mark in the manifest at `path`; `None` if it has none.
    pub(crate) fn read(path: &Path) -> Option<SiteMark> {
        #[derive(Deserialize)]
        struct Marked {
            site: SiteMark,
        }
        let read = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Marked>(&text).ok());
        read.map(|marked| marked.site)
    }

    /// Whether trees with the other mark may be those of this site: the place or the files are the same.
    pub(crate) fn is_same_site(&self, other: &SiteMark) -> bool {
        self.root == other.root || self.files == other.files
    }
}

/// An image, what it is for and why, and what was tried with it.
#[derive(Debug, Serialize)]
struct ManifestImage<'a> {
    role: &'static str,
    why: &'static str,
    pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    copies: BTreeMap<&'a str, &'a Tried>,
}

/// The bytes of a reduced font before and after.
#[derive(Debug, Serialize)]
struct ManifestFont {
    before: u64,
    after: u64,
}

#[derive(Debug, Serialize)]
struct ManifestTree<'a> {
    level: &'a str,
    tree: &'a str,
    files: u64,
    bytes: u64,
    missing: &'a [String],
}

/// The number of files in the site's folder when the manifest at `path` was written; 0 if there is no readable manifest. The
/// trees do not show that number, because they also have dynamic pages, and sparse trees lack files that are as at full.
pub(crate) fn site_files(path: &Path) -> u64 {
    #[derive(Deserialize)]
    struct Counted {
        site_files: u64,
    }
    let read = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Counted>(&text).ok());
    read.map_or(0, |manifest| manifest.site_files)
}

/// The text of a manifest, with the mark of the site's folder and what was `tried` with each image.
pub(crate) fn manifest(
    adapted: &Adapted,
    mark: SiteMark,
    site: &Site,
    policy: &Policy,
    tried: &BTreeMap<String, BTreeMap<String, Tried>>,
) -> io::Result<Vec<u8>> {
    let trees = adapted.trees.iter().map(|entry| {
        let level = entry.level.name();
        ManifestTree { level, tree: level, files: entry.files, bytes: entry.bytes, missing: &entry.missing }
    });
    let roles = decide::roles(site, policy);
    let images = roles.into_iter().filter_map(|(path, (role, reason))| {
        let evidence = site.survey.evidence.get(path);
        let copies: BTreeMap<&str, &Tried> =
            tried.get(path).into_iter().flatten().map(|(copy, tried)| (copy.as_str(), tried)).collect();
        // An image that no page shows as such, for instance a background, has no role.
        (evidence.is_some() || !copies.is_empty()).then(|| {
            let shown = evidence.and_then(|_| decide::shown(site, path));
            let pages = evidence.map_or(0, |evidence| evidence.pages);
            let (role, why) = if pages > 0 {
                (role.name(), reason.name())
            } else {
                ("none", "no page shows it as an image")
            };
            (path, ManifestImage { role, why, pages, shown, copies })
        })
    });
    let fonts = adapted.fonts.iter();
    let fonts = fonts.map(|(path, &(before, after))| (path.as_str(), ManifestFont { before, after }));
    let manifest = Manifest {
        plimsoll: VERSION,
        site: mark,
        site_files: adapted.site_files,
        trees: trees.collect(),
        images: images.collect(),
        fonts: fonts.collect(),
        problems: &adapted.problems,
    };
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    Ok(text)
}

/// The results of the last run.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Known {
    plimsoll: u64,
    images: BTreeMap<String, KnownImage>,
}

#[derive(Debug, Deserialize)]
struct KnownImage {
    #[serde(default)]
    copies: BTreeMap<String, Tried>,
}

/// The similarity of each image at the light level, or at the lean level if there is no light one, from the manifest at `path`.
pub(crate) fn similarities(path: &Path) -> BTreeMap<String, f64> {
    let of = |(path, image): (String, KnownImage)| {
        let tried = ["light", "lean"].into_iter().find_map(|copy| image.copies.get(copy))?;
        Some((path, tried.best()?.similarity))
    };
    Known::read(path).images.into_iter().filter_map(of).collect()
}

/// Whether a folder's file of the manifest's name is a manifest, of whatever version. Web applications have such a file too.
pub(crate) fn is_manifest(path: &Path) -> bool {
    let found: Option<serde_json::Value> =
        fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    found.is_some_and(|found| found["plimsoll"].is_u64() && found["trees"].is_array())
}

impl Known {
    /// The manifest of the last run; empty if there is none or it has another version.
    pub(crate) fn read(path: &Path) -> Known {
        let known = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        known.filter(|known: &Known| known.plimsoll == VERSION).unwrap_or_default()
    }

    /// The last run's result for this copy of an image, if the key is the same and the files are still in their places.
    pub(crate) fn copies(
        &self,
        path: &str,
        copy: &str,
        key: &str,
        places: &[PathBuf; 2],
    ) -> Option<Result<Copies, String>> {
        let tried = self.images.get(path)?.copies.get(copy).filter(|tried| tried.key == key)?;
        if let Some(problem) = &tried.problem {
            return Some(Err(problem.clone()));
        }
        let found = |written: Option<Written>, place: &Path| match written {
            None => Some(None),
            Some(Written { bytes, similarity }) => {
                let written = fs::read(place).ok().filter(|found| found.len() as u64 == bytes)?;
                Some(Some(Found { written, similarity }))
            }
        };
        Some(Ok(Copies { named: found(tried.named, &places[0])?, variant: found(tried.webp, &places[1])? }))
    }
}

/// The key by which the next run recognizes an image: a hash of its bytes and of the reduction. The key protects no secret, and
/// with 128 bits two images never have the same key by chance.
pub(crate) fn key(bytes: &[u8], reduction: &Reduction) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(METHOD);
    hasher.write(bytes);
    hasher.write_u64(reduction.factor.unwrap_or(0.0).to_bits());
    hasher.write_u64(reduction.similarity.to_bits());
    hasher.write_u64(reduction.enough.to_bits());
    let (width, height) = reduction.size.unwrap_or_default();
    hasher.write_u64(width as u64);
    hasher.write_u64(height as u64);
    hasher.write_u8(u8::from(reduction.any_format));
    hasher.write_u8(u8::from(reduction.variant));
    format!("{:032x}", hasher.finish128().as_u128())
}
