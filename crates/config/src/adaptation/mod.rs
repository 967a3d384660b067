//! The policy file of `plimsoll adapt` and `plimsoll impact`: how a site's lighter copies are made.
//!
//! Input: the text of a policy. Output: [`Adaptation`], in which every key that the file leaves out is absent, because the
//! adapter has the defaults and the command line has an option for each key. Levels, steps and tags are given as words; the
//! adapter has types of its own for them.

pub(crate) mod keys;

use crate::diagnostic::Diagnostics;
use crate::syntax::{Field, Located, listed};

/// The settings of a policy file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adaptation {
    /// The levels to make, by name; empty if the file does not name any.
    pub levels: Vec<String>,
    /// The steps to leave out, by name.
    pub without: Option<Vec<String>>,
    /// Images above this size are reduced (byte).
    pub image_limit_bytes: Option<u64>,
    /// Images above this size are of medium size (byte).
    pub medium_limit_bytes: Option<u64>,
    /// Images below this size are cosmetic (byte).
    pub cosmetic_limit_bytes: Option<u64>,
    /// The factor by which bytes are reduced.
    pub factor: Option<f64>,
    /// The least structural similarity.
    pub similarity: Option<f64>,
    /// Whether AVIF images are reduced too.
    pub avif: Option<bool>,
    /// The number of links from the first page beyond which pages are left out.
    pub depth: Option<u32>,
    /// Whether lower trees have only the files that differ.
    pub sparse: Option<bool>,
    /// Addresses of dynamic pages to store.
    pub snapshots: Vec<String>,
    /// Patterns of paths, each with a tag, in the file's order.
    pub rules: Vec<(String, String)>,
}

/// Reads a policy. `name` is the file's name as the user gave it, for diagnostics.
///
/// # Errors
/// All errors of the file at once.
pub fn parse_adaptation(source: &str, name: &str) -> Result<Adaptation, Diagnostics> {
    crate::syntax::read_file(source, name, |file: &keys::AdaptationKeys, _| Some(resolve(file)))
}

fn resolve(file: &keys::AdaptationKeys) -> Adaptation {
    let size = |size: &Option<Located<crate::syntax::Size>>| size.as_ref().map(|size| size.value.0);
    let rules = file.rule.value.0.iter().flat_map(|rule| {
        let paths = rule.value.path.iter().flat_map(|paths| &paths.value.0);
        let tag = rule.value.tag.as_ref().map(|tag| word(&tag.value)).unwrap_or_default();
        paths.map(move |path| (path.value.0.clone(), tag.clone())).collect::<Vec<_>>()
    });
    Adaptation {
        levels: listed(&file.levels, word),
        without: file.without.as_ref().map(|_| listed(&file.without, word)),
        image_limit_bytes: size(&file.image_limit),
        medium_limit_bytes: size(&file.medium_limit),
        cosmetic_limit_bytes: size(&file.cosmetic_limit),
        factor: file.factor.as_ref().map(|factor| factor.value.0),
        similarity: file.similarity.as_ref().map(|similarity| similarity.value.0),
        avif: file.avif.as_ref().map(|avif| avif.value),
        depth: file.depth.as_ref().map(|depth| depth.value.0 as u32),
        sparse: file.sparse.as_ref().map(|sparse| sparse.value),
        snapshots: listed(&file.snapshot, |address| address.0.clone()),
        rules: rules.collect(),
    }
}

fn word<T: Field>(value: &T) -> String {
    value.show().trim_matches('"').to_owned()
}
