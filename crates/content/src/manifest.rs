//! `manifest.json` beside the trees: what a server needs to know of them, and what the next run need not do again.
//!
//! ```json
//! { "plimsoll": 1,
//!   "trees": [ { "level": "light", "tree": "light", "files": 383, "bytes": 1200000, "missing": ["far/away.html"] } ],
//!   "images": { "photo.jpg": { "before": 102400, "after": 12000, "similarity": 0.93, "key": "…" } },
//!   "problems": [ { "path": "broken.gif", "what": "…" } ] }
//! ```
//!
//! Trees are from lowest to highest. A path that is `missing` from one is to be had from the next.

use crate::adapt::Adapted;
use crate::image::Reduction;
use crate::policy::Level;
use serde_json::{Map, Value, json};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

/// The form of the file, and the way in which images are reduced: a change of either makes all anew.
const VERSION: u64 = 1;

/// A tree that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its level; its folder has the same name.
    pub level: Level,
    /// Its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files of the site that it does not have.
    pub missing: Vec<String>,
}

/// An image that was written again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Image {
    /// Its bytes before.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// Structural similarity of the two.
    pub similarity: f64,
}

/// What came of an image: smaller, as it was, or what is wrong with it.
pub(crate) type Reduced = Result<Option<(Image, Vec<u8>)>, String>;

/// What is written.
pub(crate) struct Manifest<'a> {
    pub(crate) adapted: &'a Adapted,
    pub(crate) keys: &'a BTreeMap<String, String>,
    /// What is wrong with images that could not be read.
    pub(crate) wrong: &'a BTreeMap<String, String>,
}

impl fmt::Display for Manifest<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trees: Vec<Value> = self
            .adapted
            .trees
            .iter()
            .map(|tree| {
                let TreeEntry { level, files, bytes, missing } = tree;
                json!({ "level": level.name(), "tree": level.name(), "files": files, "bytes": bytes, "missing": missing })
            })
            .collect();
        let images: Map<String, Value> = self
            .keys
            .iter()
            .map(|(path, key)| {
                let entry = match self.adapted.images.get(path) {
                    Some(Image { before, after, similarity }) => {
                        json!({ "key": key, "before": before, "after": after, "similarity": similarity })
                    }
                    None => json!({ "key": key, "problem": self.wrong.get(path) }),
                };
                (path.clone(), entry)
            })
            .collect();
        let problems = self.adapted.problems.iter().map(|(path, what)| json!({ "path": path, "what": what }));
        let problems: Vec<Value> = problems.collect();
        let all = json!({ "plimsoll": VERSION, "trees": trees, "images": images, "problems": problems });
        writeln!(to, "{all:#}")
    }
}

/// What the last run left.
#[derive(Debug, Default)]
pub(crate) struct Known(Map<String, Value>);

impl Known {
    /// From its manifest; nothing, if there is none or it is of another version.
    pub(crate) fn read(path: &Path) -> Known {
        let read = || {
            let manifest: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
            (manifest["plimsoll"] == VERSION).then(|| manifest["images"].as_object().cloned()).flatten()
        };
        Known(read().unwrap_or_default())
    }

    /// By what an image is known again: its bytes, and what is to be done with it. No secret is guarded by it; two
    /// images meet in 128 bits by chance alone, and never.
    #[expect(clippy::unused_self, reason = "it belongs to what is known")]
    pub(crate) fn key(&self, bytes: &[u8], reduction: &Reduction) -> String {
        let mut hasher = SipHasher13::new();
        hasher.write(bytes);
        hasher.write_u64(reduction.factor.to_bits());
        hasher.write_u64(reduction.similarity.to_bits());
        hasher.write_u8(u8::from(reduction.resizable));
        format!("{:032x}", hasher.finish128().as_u128())
    }

    /// What came of the image with this key, if it is known and still there, in one of these places.
    pub(crate) fn image(
        &self,
        path: &str,
        key: &str,
        places: impl Iterator<Item = PathBuf>,
    ) -> Option<Reduced> {
        let entry = self.0.get(path).filter(|entry| entry["key"] == key)?;
        if let Some(problem) = entry["problem"].as_str() {
            return Some(Err(problem.to_owned()));
        }
        let Some(after) = entry["after"].as_u64() else { return Some(Ok(None)) };
        let (before, similarity) = (entry["before"].as_u64()?, entry["similarity"].as_f64()?);
        let mut files = places.filter_map(|place| fs::read(place).ok());
        let bytes = files.find(|bytes| bytes.len() as u64 == after)?;
        Some(Ok(Some((Image { before, after, similarity }, bytes))))
    }
}
