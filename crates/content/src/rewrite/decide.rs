//! Decides what happens to each file at a level, before anything is written.

use crate::image::Reduction;
use crate::policy::{Level, Policy, Step, Tag};
use crate::roles::{self, Evidence, PictureFacts, Reason, Role};
use crate::site::kind::Kind;
use crate::site::survey::Usage;
use crate::site::tree::File;
use crate::site::{Site, Views};
use crate::text::css::{Purpose, SheetUrl};
use crate::text::reference::{Target, folder, resolve};
use std::collections::{BTreeMap, BTreeSet};

/// The pixels of an image for each pixel that a plain screen shows; screens of twice the density are common.
const DENSITY: f64 = 2.0;
/// An image is scaled only if less than this part of its width remains.
const WORTH_SCALING: f64 = 0.85;
/// The ending of the WebP beside an image, added to the image's whole name.
pub(crate) const VARIANT: &str = ".webp";

/// Roles by path.
pub(crate) type Roles<'a> = BTreeMap<&'a str, (Role, Reason)>;

/// Decisions on files, for one level below full.
#[derive(Debug)]
pub(crate) struct Decisions<'a> {
    pub(crate) site: &'a Site,
    pub(crate) policy: &'a Policy,
    pub(crate) level: Level,
    /// What each image is for, and why.
    pub(crate) roles: Roles<'a>,
    /// For each image on several pages, the page that keeps it.
    pub(crate) owner: BTreeMap<&'a str, &'a str>,
    /// Pages that are too many links away from the first page.
    pub(crate) cut: BTreeSet<&'a str>,
}

/// The role of each image that pages show, and why.
pub(crate) fn roles<'a>(site: &'a Site, policy: &Policy) -> Roles<'a> {
    let nothing = Evidence::default();
    let of = |(path, file): (&'a String, &File)| {
        let usage = site.survey.usage.get(path).copied().unwrap_or_default();
        let tagged = match usage {
            Usage { important: true, .. } => Some(Tag::Important),
            Usage { degradable: true, .. } => Some(Tag::Degradable),
            usage => usage.is_expendable().then_some(Tag::Expendable),
        };
        let picture = PictureFacts {
            size: shown(site, path),
            bytes: file.bytes,
            tagged,
            ruled: policy.rule(path),
            cosmetic_limit: policy.cosmetic_limit_bytes,
            site_pages: site.survey.pages.len() as u64,
        };
        let evidence = site.survey.evidence.get(path).unwrap_or(&nothing);
        (path.as_str(), roles::role(&picture, evidence))
    };
    site.tree.files.iter().filter(|(_, file)| file.kind.is_image()).map(of).collect()
}

/// The largest width and height at which pages show an image; its own if that is not known.
pub(crate) fn shown(site: &Site, path: &str) -> Option<(usize, usize)> {
    let own = *site.dimensions.get(path).or_else(|| site.drawings.get(path))?;
    let usage = site.survey.usage.get(path).copied().unwrap_or_default();
    Some(if usage.fixed || usage.scale <= 0.0 { own } else { scaled(own, usage.scale) })
}

fn scaled((width, height): (usize, usize), scale: f64) -> (usize, usize) {
    let side = |side: usize| ((side as f64 * scale).ceil() as usize).max(1);
    (side(width), side(height))
}

impl<'a> Decisions<'a> {
    pub(crate) fn new(
        site: &'a Site,
        policy: &'a Policy,
        level: Level,
        views: Option<&Views>,
    ) -> Decisions<'a> {
        let (owner, cut) = (BTreeMap::new(), BTreeSet::new());
        let mut decisions = Decisions { site, policy, level, roles: roles(site, policy), owner, cut };
        if let (Some(depth), Some(first)) = (policy.depth, site.first()) {
            let depths = site.survey.depths(&first, true);
            let far = depths.into_iter().filter(|(_, links)| *links > depth).map(|(path, _)| path);
            decisions.cut = far.filter(|path| !decisions.is_important(path)).collect();
            // An important page keeps all its links, so the pages that they lead to must exist.
            for (path, page) in &site.survey.pages {
                if decisions.is_important(path) {
                    decisions.cut.retain(|cut| !page.links.contains(*cut));
                }
            }
        }
        if decisions.takes(Step::OnePage) {
            // A page that is cut cannot keep an image for the others, nor can a block that goes. Important pages stay whole.
            for (path, page) in site.ranked(views) {
                let loses = decisions.takes(Step::Expendable) && !decisions.is_important(path);
                let images = if loses { &page.lasting } else { &page.images };
                if !decisions.cut.contains(path.as_str()) {
                    for image in images {
                        decisions.owner.entry(image).or_insert(path);
                    }
                }
            }
        }
        decisions
    }

    /// Whether a step is taken at this level.
    pub(crate) fn takes(&self, step: Step) -> bool {
        self.policy.takes_at(self.level, step)
    }

    /// Whether an image goes at this level, as an icon or an ornament.
    pub(crate) fn is_cosmetic(&self, path: &str) -> bool {
        self.takes(Step::Cosmetic) && self.role(path).is_some_and(Role::is_cosmetic)
    }

    /// Whether this page leaves the image to another page.
    pub(crate) fn is_elsewhere(&self, file: &str, page: &str) -> bool {
        self.owner.get(file).is_some_and(|owner| *owner != page)
            && !self.role(file).is_some_and(Role::is_everywhere)
    }

    pub(crate) fn role(&self, path: &str) -> Option<Role> {
        self.roles.get(path).map(|(role, _)| *role)
    }

    /// The tag of a file for all its uses. A tag in a page takes precedence over a rule, and important over the other tags.
    pub(crate) fn file_tag(&self, path: &str) -> Option<Tag> {
        let usage = self.site.survey.usage.get(path).copied().unwrap_or_default();
        if usage.important {
            return Some(Tag::Important);
        }
        if usage.degradable { Some(Tag::Degradable) } else { self.policy.rule(path) }
    }

    /// Whether the file must not be changed.
    pub(crate) fn is_important(&self, path: &str) -> bool {
        self.file_tag(path) == Some(Tag::Important)
    }

    /// Whether the file may be left out.
    pub(crate) fn is_expendable(&self, path: &str) -> bool {
        self.takes(Step::Expendable) && self.file_tag(path) == Some(Tag::Expendable)
    }

    /// How an image is written again; `None` if it is not.
    pub(crate) fn reduction(&self, path: &str) -> Option<Reduction> {
        let (file, tag) = (self.site.tree.files.get(path)?, self.file_tag(path));
        let sound = file.kind == Kind::Image && self.site.dimensions.contains_key(path);
        let wanted = self.policy.avif || !Kind::is_avif(path);
        let has_images = matches!(self.level, Level::Lean | Level::Light);
        if !has_images || !sound || !wanted || tag == Some(Tag::Important) {
            return None;
        }
        let Policy { factor, image_limit_bytes, medium_limit_bytes, .. } = *self.policy;
        let variant = format!("{path}{VARIANT}");
        let reduction = Reduction {
            factor: None,
            similarity: self.policy.least_similarity(self.level),
            // An image must not have more bytes at a lower level than at a higher one.
            enough: self.policy.similarity,
            size: self.size(path, if self.level == Level::Lean { 1.0 } else { DENSITY }),
            any_format: self.takes(Step::Photographs),
            variant: self.takes(Step::Variants) && self.site.tree.is_free(&variant),
        };
        // An image that is tagged degradable is reduced as if it were large.
        let large = file.bytes > image_limit_bytes || tag == Some(Tag::Degradable);
        let medium = file.bytes > medium_limit_bytes && !large;
        match (large, medium, self.level) {
            (true, ..) if !self.takes(Step::Images) => None,
            (_, true, _) if !self.takes(Step::Medium) => None,
            (true, _, Level::Lean) => Some(Reduction { factor: Some(factor), ..reduction }),
            (_, true, Level::Lean) => {
                let similarity = f64::midpoint(self.policy.similarity, reduction.similarity);
                Some(Reduction { factor: Some((factor / 2.0).max(1.0)), similarity, ..reduction })
            }
            (true, ..) | (_, true, _) => Some(reduction),
            _ => None,
        }
    }

    /// How the copy of an image for plain screens is written, beside the copy for screens of twice the density.
    pub(crate) fn plain(&self, path: &str) -> Option<(String, Reduction)> {
        let reduction = self.reduction(path).filter(|_| self.level == Level::Light)?;
        let size = self.size(path, 1.0)?;
        let (stem, ending) = path.rsplit_once('.')?;
        let name = format!("{stem}.1x.{ending}");
        self.site.tree.is_free(&name).then_some((name, Reduction { size: Some(size), ..reduction }))
    }

    /// The width and height that an image gets, if they are smaller than its own.
    fn size(&self, path: &str, density: f64) -> Option<(usize, usize)> {
        let usage = self.site.survey.usage.get(path).copied().unwrap_or_default();
        let scale = usage.scale * density;
        let wanted = self.takes(Step::Sizes) && !usage.fixed && scale > 0.0 && scale < WORTH_SCALING;
        wanted.then(|| scaled(self.site.dimensions[path], scale))
    }

    /// Whether this file is taken out of the sheet at `path`.
    pub(crate) fn sheet_loses(&self, path: &str, url: &SheetUrl) -> bool {
        let Target::Local(named) = resolve(folder(path), &url.url) else { return false };
        self.style_loses(&named, &url.purpose)
    }

    /// Whether the file at this path is taken out of a style sheet or a `style` attribute.
    pub(crate) fn style_loses(&self, named: &str, purpose: &Purpose) -> bool {
        let Some(file) = self.site.tree.find(named) else { return false };
        let small = *purpose == Purpose::Background
            && self.takes(Step::Backgrounds)
            && self.site.bytes(&file) < self.policy.cosmetic_limit_bytes
            && self.site.tree.files[&file].kind.is_image()
            && self.file_tag(&file).is_none();
        small || self.is_expendable(&file)
    }
}
