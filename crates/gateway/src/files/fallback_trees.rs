//! Which trees belong together: a file that one tree lacks is served from the next.
//!
//! `plimsoll adapt` writes `manifest.json` beside its trees, which lists them from lowest to highest quality. A tree may lack
//! files: pages that were cut, and with `--sparse` all files that are the same in the next tree. If a name does not exist
//! beneath one tree, the same name is looked for beneath the next tree.
//!
//! Only the order of the trees is read from the manifest; the disk shows which files are missing. The manifest is looked for
//! when a name does not exist, at most once per [`REVALIDATE`], and it is read again when it has changed or been replaced
//! (`adapt` replaces the whole folder). A folder without a manifest, or with a foreign file of that name, has no trees and no
//! fallback.

use super::REVALIDATE;
use super::resource::Stamp;
use super::tree::Tree;
use rustix::io::Errno;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::time::Instant;

const MANIFEST: &[u8] = b"manifest.json";
/// The versions of the manifest whose order of trees is understood; version 2 adds facts about images and the site.
const VERSIONS: RangeInclusive<u64> = 1..=2;
/// The longest manifest that is read, since reading holds up the thread.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Order {
    /// The trees' names with the final slash, from lowest to highest quality.
    trees: Vec<Vec<u8>>,
    /// The stamp of the manifest that was read.
    stamp: Option<Stamp>,
    looked: Option<Instant>,
}

impl Order {
    /// `name` in the next tree, if it lies in a tree that has a next one.
    pub(super) fn above(&mut self, root: &Tree, now: Instant, name: &[u8]) -> Option<Vec<u8>> {
        self.follow(root, now);
        let at = self.trees.iter().position(|tree| name.starts_with(tree))?;
        Some([self.trees.get(at + 1)?, &name[self.trees[at].len()..]].concat())
    }

    /// Forgets the order, since the root leads to another folder.
    pub(super) fn forget(&mut self) {
        *self = Order::default();
    }

    fn follow(&mut self, root: &Tree, now: Instant) {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < REVALIDATE) {
            return;
        }
        self.looked = Some(now);
        match root.open_name(MANIFEST) {
            Ok(file) => {
                let stamp = Stamp::of(&file).ok().map(|(stamp, _)| stamp);
                if stamp.is_none() || stamp != self.stamp {
                    *self = Order { trees: read(file).unwrap_or_default(), stamp, looked: self.looked };
                }
            }
            // Any other error, such as a lack of descriptors, says nothing about the trees.
            Err(Errno::NOENT) => *self = Order { looked: self.looked, ..Order::default() },
            Err(_) => {}
        }
    }
}

fn read(file: File) -> Option<Vec<Vec<u8>>> {
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).ok()?;
    if text.len() as u64 > MOST_BYTES {
        return None;
    }
    let manifest: Value = serde_json::from_slice(&text).ok()?;
    manifest["plimsoll"].as_u64().filter(|version| VERSIONS.contains(version))?;
    let trees = manifest["trees"].as_array()?.iter();
    trees.map(|entry| entry["tree"].as_str().filter(|tree| is_folder(tree))).map(prefix).collect()
}

/// Whether the name is that of one folder of the root; nothing else in a manifest may become part of a path.
fn is_folder(tree: &str) -> bool {
    !tree.is_empty() && !tree.starts_with('.') && !tree.contains(['/', '\0'])
}

fn prefix(tree: Option<&str>) -> Option<Vec<u8>> {
    tree.map(|tree| [tree.as_bytes(), b"/"].concat())
}
