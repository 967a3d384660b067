//! `manifest.json` beside the trees: what a server needs to know of them, what each image is for, and what the next run need
//! not do again.
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
//! `site_files` are those of the site's folder, without the dynamic pages that were fetched. Trees are from lowest to
//! highest. A path that is `missing` from one is to be had from the next.

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

/// The form of the file: a change makes all anew.
const VERSION: u64 = 2;
/// The way in which images are reduced and compared: a change makes them anew.
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
    /// The image's size before it was encoded again (byte).
    pub before: u64,
    /// Bytes after, as a client gets it that takes every format.
    pub after: u64,
    /// Structural similarity of the two in the worst region; of a GIF that moves, in the least similar frame that is left.
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

/// What was tried with an image: neither smaller nor wrong if it stayed as it is.
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

/// A file that was written.
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

    /// The smaller one of what was written.
    pub(crate) fn best(&self) -> Option<Image> {
        let best = self.named.into_iter().chain(self.webp).min_by_key(|written| written.bytes)?;
        Some(Image { before: self.before, after: best.bytes, similarity: best.similarity })
    }
}

/// The file.
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

/// By what trees are known as those of a site: where it was, and a hash of the paths of its files.
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

    /// The mark in the manifest at `path`, if it has one.
    pub(crate) fn read(path: &Path) -> Option<SiteMark> {
        #[derive(Deserialize)]
        struct Marked {
            site: SiteMark,
        }
        let read = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Marked>(&text).ok());
        read.map(|marked| marked.site)
    }

    /// Whether trees with the other mark can be those of this site: from the same place, or with the same files.
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

/// The bytes of a font that was reduced.
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
        // What no page shows as an image, such as a background, has no role.
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

/// What the last run left.
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

/// How similar the images at the light level are, or at the lean one where there is no light, by the manifest at `path`.
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
    /// The manifest of the last run; nothing, if there is none or it is of another version.
    pub(crate) fn read(path: &Path) -> Known {
        let known = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        known.filter(|known: &Known| known.plimsoll == VERSION).unwrap_or_default()
    }

    /// What came of this copy of an image, if its key is known and the files are still in their places.
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

/// The key by which an image is known again: a hash of its bytes and of what is to be done with it. No secret is guarded
/// by the key, and two images meet in 128 bits by chance alone, which never happens.
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
