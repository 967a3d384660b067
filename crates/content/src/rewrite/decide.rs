//! What becomes of each file at a level, before anything is written.

use crate::image::Reduction;
use crate::policy::{Level, Policy, Step, Tag};
use crate::site::kind::Kind;
use crate::site::{Site, Views};
use crate::text::css::{Purpose, SheetUrl};
use crate::text::reference::{Target, folder, resolve};
use std::collections::{BTreeMap, BTreeSet};

/// A small picture: an icon or a bullet (pixels a side).
const ICON: usize = 32;
/// The most thickness of a bar or separator (pixels), and how many times as long it is at least.
const BAR: (usize, usize) = (10, 8);

/// Decisions on files, for one level below full.
#[derive(Debug)]
pub(crate) struct Decisions<'a> {
    pub(crate) site: &'a Site,
    pub(crate) policy: &'a Policy,
    pub(crate) level: Level,
    /// Images that are cosmetic.
    pub(crate) cosmetic: BTreeSet<&'a str>,
    /// For each image on several pages, the page that keeps it.
    pub(crate) owner: BTreeMap<&'a str, &'a str>,
    /// Pages that are too many links away.
    pub(crate) cut: BTreeSet<&'a str>,
}

impl<'a> Decisions<'a> {
    pub(crate) fn new(
        site: &'a Site,
        policy: &'a Policy,
        level: Level,
        views: Option<&Views>,
    ) -> Decisions<'a> {
        let (cosmetic, owner, cut) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let mut decisions = Decisions { site, policy, level, cosmetic, owner, cut };
        if policy.takes(Step::Cosmetic) {
            let images = site.tree.files.iter().filter(|(_, file)| file.kind.is_image());
            let cosmetic = images.filter(|(path, file)| decisions.is_cosmetic(path, file.bytes));
            decisions.cosmetic = cosmetic.map(|(path, _)| path.as_str()).collect();
        }
        if policy.takes(Step::OnePage) {
            for (path, page) in site.ranked(views) {
                for image in &page.images {
                    decisions.owner.entry(image).or_insert(path);
                }
            }
        }
        if let (Some(depth), Some(first)) = (policy.depth, site.first()) {
            let depths = site.survey.depths(&first, true);
            let far = depths.into_iter().filter(|(_, links)| *links > depth).map(|(path, _)| path);
            decisions.cut = far.filter(|path| !decisions.is_important(path)).collect();
            // A page that is not touched keeps its links, so they have to lead somewhere.
            for (path, page) in &site.survey.pages {
                if decisions.is_important(path) {
                    decisions.cut.retain(|cut| !page.links.contains(*cut));
                }
            }
        }
        decisions
    }

    /// Small in bytes, or by its shape an icon, a bullet, a bar.
    fn is_cosmetic(&self, path: &str, bytes: u64) -> bool {
        let limit = self.policy.cosmetic_limit_bytes;
        let shape = self.site.dimensions.get(path).is_some_and(|&(width, height)| {
            let (thin, long) = (width.min(height), width.max(height));
            long <= ICON || (thin <= BAR.0 && long >= BAR.1 * thin)
        });
        // Without a limit there are no cosmetic images at all.
        limit > 0 && (bytes < limit || shape)
    }

    /// The tag of a file wherever it is used. A tag in a page counts more than a rule, and important more than the others.
    pub(crate) fn file_tag(&self, path: &str) -> Option<Tag> {
        let usage = self.site.survey.usage.get(path).copied().unwrap_or_default();
        if usage.important {
            return Some(Tag::Important);
        }
        if usage.degradable { Some(Tag::Degradable) } else { self.policy.rule(path) }
    }

    /// Whether the file is not touched.
    pub(crate) fn is_important(&self, path: &str) -> bool {
        self.file_tag(path) == Some(Tag::Important)
    }

    /// Whether the file may go.
    pub(crate) fn is_expendable(&self, path: &str) -> bool {
        self.policy.takes(Step::Expendable) && self.file_tag(path) == Some(Tag::Expendable)
    }

    /// Whether, and how, an image is written again.
    pub(crate) fn reduction(&self, path: &str) -> Option<Reduction> {
        let (file, tag) = (self.site.tree.files.get(path)?, self.file_tag(path));
        let sound = file.kind == Kind::Image && self.site.dimensions.contains_key(path);
        let wanted = self.policy.avif || !Kind::is_avif(path);
        if self.level == Level::Full || !sound || !wanted || tag == Some(Tag::Important) {
            return None;
        }
        let Policy { factor, similarity, image_limit_bytes, medium_limit_bytes, .. } = *self.policy;
        let usage = self.site.survey.usage.get(path).copied().unwrap_or_default();
        let resizable = usage.sizable && !usage.fixed;
        let any_format = self.policy.takes(Step::Photographs);
        // What is tagged degradable is reduced as if it were large.
        let large = file.bytes > image_limit_bytes || tag == Some(Tag::Degradable);
        if large && self.policy.takes(Step::Images) {
            return Some(Reduction { factor, similarity, resizable, any_format });
        }
        let medium = file.bytes > medium_limit_bytes && !large && self.policy.takes(Step::Medium);
        let (factor, similarity) = ((factor / 2.0).max(1.0), f64::midpoint(1.0, similarity));
        medium.then_some(Reduction { factor, similarity, resizable, any_format })
    }

    /// Whether the sheet at `path` goes without this file.
    pub(crate) fn sheet_loses(&self, path: &str, url: &SheetUrl) -> bool {
        let Target::Local(named) = resolve(folder(path), &url.url) else { return false };
        self.style_loses(&named, &url.purpose)
    }

    /// Whether a style sheet or attribute goes without the file at this path.
    pub(crate) fn style_loses(&self, named: &str, purpose: &Purpose) -> bool {
        let Some(file) = self.site.tree.find(named) else { return false };
        let small = *purpose == Purpose::Background
            && self.policy.takes(Step::Backgrounds)
            && self.site.bytes(&file) < self.policy.cosmetic_limit_bytes
            && self.site.tree.files[&file].kind.is_image()
            && self.file_tag(&file).is_none();
        small || self.is_expendable(&file)
    }
}
