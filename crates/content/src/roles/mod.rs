//! Decides what an image is for on its site, from evidence: where it stands, how large it is shown, what it leads to, the texts
//! about it, and on how many pages it is.
//!
//! The first of these that holds decides ([`Reason`] has the words): a tag or a rule; the logo; a size that only icons and bars
//! have; few bytes; a link to a page of its own; an alternative text; a size that no ornament has; many pages. The manifest has
//! every decision with its reason, so that an operator sees what to overrule by a tag.

pub(crate) mod alternative_text;

use crate::policy::{Tag, words as policy_words};

policy_words! {
    /// What an image is for.
    Role {
        /// The site's own sign: on every page, at every level that has images.
        Logo = "logo",
        /// What a page of its own is about, such as a product: kept wherever it is shown.
        Product = "product",
        /// What its page shows; at the lean level on one page.
        Content = "content",
        /// A small sign, such as a heart or an arrow.
        Icon = "icon",
        /// An ornament, a bar, a spacer.
        Decoration = "decoration",
    }

    /// Why an image has its role.
    Reason {
        /// A tag in a page.
        Tagged = "a tag in a page",
        /// A rule of the policy.
        Ruled = "a rule of the policy",
        /// At the head of pages, and it leads to the first one.
        LeadsHome = "it leads to the first page",
        /// Its name, class or text says so.
        NamedLogo = "its name or text says logo",
        /// No side is longer than an icon's.
        IconSized = "no larger than an icon",
        /// A thin line.
        Bar = "a thin bar",
        /// Few bytes: what the paper calls cosmetic.
        FewBytes = "fewer bytes than the limit",
        /// It leads to another page of the site.
        LeadsToPage = "it leads to a page",
        /// Its alternative text says what it shows.
        Described = "its text says what it shows",
        /// It is large.
        Large = "large",
        /// It is on many pages, and nothing is said of it.
        Repeated = "on many pages without a text",
        /// Nothing speaks against it.
        Unknown = "nothing speaks against it",
    }
}

impl Role {
    /// Whether such an image may go at the lean level.
    pub fn is_cosmetic(self) -> bool {
        matches!(self, Role::Icon | Role::Decoration)
    }

    /// Whether such an image is kept on every page.
    pub fn is_everywhere(self) -> bool {
        matches!(self, Role::Logo | Role::Product)
    }
}

/// The evidence about an image from all pages together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    /// The number of pages that show it as an image.
    pub(crate) pages: u64,
    /// Whether it stands in a link to the first page, at the head of a page.
    pub(crate) leads_home: bool,
    /// Whether a name or text says that it is the logo.
    pub(crate) named_logo: bool,
    /// Whether it stands in a link to another page.
    pub(crate) leads_to_page: bool,
    /// Whether its alternative text says what it shows.
    pub(crate) described: bool,
}

impl Evidence {
    /// Adds the evidence of other pages.
    pub(crate) fn merge(&mut self, other: &Evidence) {
        self.pages += other.pages;
        self.leads_home |= other.leads_home;
        self.named_logo |= other.named_logo;
        self.leads_to_page |= other.leads_to_page;
        self.described |= other.described;
    }
}

/// An image file's own facts, besides the evidence of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PictureFacts {
    /// Width and height at which pages show it, or its own (pixels).
    pub(crate) size: Option<(usize, usize)>,
    pub(crate) bytes: u64,
    pub(crate) tagged: Option<Tag>,
    pub(crate) ruled: Option<Tag>,
    /// An image below this size (byte) is cosmetic; 0: none is.
    pub(crate) cosmetic_limit: u64,
    /// The number of pages of the site.
    pub(crate) site_pages: u64,
}

/// A picture whose sides are at most this long (pixels) is an icon or a bullet.
const ICON: usize = 32;
/// A bar or separator is at most this thick (pixels), and at least this many times as long.
const BAR: (usize, usize) = (10, 8);
/// An image whose sides are both at least this long (pixels) is no ornament.
const LARGE: usize = 100;
/// An image without a text that is on at least this number of pages, and on at least this part of all, is an ornament.
const REPEATED: (u64, f64) = (3, 0.5);

/// What the image is for, and why.
pub(crate) fn role(picture: &PictureFacts, evidence: &Evidence) -> (Role, Reason) {
    let tag = |tag: Tag| if tag == Tag::Expendable { Role::Decoration } else { Role::Content };
    if let Some(tagged) = picture.tagged {
        return (tag(tagged), Reason::Tagged);
    }
    if let Some(ruled) = picture.ruled {
        return (tag(ruled), Reason::Ruled);
    }
    let (thin, long) =
        picture.size.map_or((LARGE, LARGE), |(width, height)| (width.min(height), width.max(height)));
    let cosmetic = picture.cosmetic_limit > 0;
    let repeated =
        evidence.pages >= REPEATED.0 && evidence.pages as f64 >= REPEATED.1 * picture.site_pages as f64;
    match () {
        () if evidence.leads_home && long > ICON => (Role::Logo, Reason::LeadsHome),
        () if evidence.named_logo && long > ICON => (Role::Logo, Reason::NamedLogo),
        () if cosmetic && long <= ICON => (Role::Icon, Reason::IconSized),
        () if cosmetic && thin <= BAR.0 && long >= BAR.1 * thin => (Role::Decoration, Reason::Bar),
        () if cosmetic && picture.bytes < picture.cosmetic_limit => (Role::Icon, Reason::FewBytes),
        () if evidence.leads_to_page && (!repeated || thin >= LARGE) => (Role::Product, Reason::LeadsToPage),
        () if evidence.described => (Role::Content, Reason::Described),
        () if thin >= LARGE => (Role::Content, Reason::Large),
        () if cosmetic && repeated => (Role::Decoration, Reason::Repeated),
        () => (Role::Content, Reason::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_holds_decides() {
        let plain = PictureFacts {
            size: Some((300, 200)),
            bytes: 9000,
            tagged: None,
            ruled: None,
            cosmetic_limit: 1024,
            site_pages: 10,
        };
        let once = Evidence { pages: 1, ..Evidence::default() };
        let everywhere = Evidence { pages: 10, ..Evidence::default() };
        let links = Evidence { leads_to_page: true, ..once.clone() };
        let small = PictureFacts { size: Some((60, 60)), ..plain };
        for (picture, evidence, expected) in [
            (plain, &once, (Role::Content, Reason::Large)),
            (
                PictureFacts { tagged: Some(Tag::Expendable), ..plain },
                &links,
                (Role::Decoration, Reason::Tagged),
            ),
            (
                PictureFacts { ruled: Some(Tag::Important), ..small },
                &everywhere,
                (Role::Content, Reason::Ruled),
            ),
            (plain, &links, (Role::Product, Reason::LeadsToPage)),
            (small, &Evidence { leads_home: true, ..everywhere.clone() }, (Role::Logo, Reason::LeadsHome)),
            (small, &everywhere, (Role::Decoration, Reason::Repeated)),
            (small, &once, (Role::Content, Reason::Unknown)),
            (PictureFacts { size: Some((16, 16)), ..plain }, &links, (Role::Icon, Reason::IconSized)),
            (PictureFacts { size: Some((600, 4)), ..plain }, &once, (Role::Decoration, Reason::Bar)),
            (PictureFacts { bytes: 900, ..plain }, &once, (Role::Icon, Reason::FewBytes)),
            (PictureFacts { bytes: 900, cosmetic_limit: 0, ..plain }, &once, (Role::Content, Reason::Large)),
        ] {
            assert_eq!(role(&picture, evidence), expected, "{picture:?}");
        }
    }
}
