//! What an image is for on its site, decided by evidence: where it stands, how large it is shown, what it leads to, what is
//! said of it, and on how many pages.
//!
//! The first of these that holds decides ([`Reason`] has the words): a tag or a rule; the logo; a size that only icons and
//! bars have; few bytes; a picture that leads to a page of its own; words of its own;
//! a size that nobody gives to ornaments; many pages. Every decision stands in the manifest beside its reason, so that an
//! operator sees what to overrule by a tag.

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
    /// Whether it may go at the lean level.
    pub fn is_cosmetic(self) -> bool {
        matches!(self, Role::Icon | Role::Decoration)
    }

    /// Whether it is kept on every page.
    pub fn is_everywhere(self) -> bool {
        matches!(self, Role::Logo | Role::Product)
    }
}

/// What pages say of an image, all together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    /// It is shown as an image in this number of pages.
    pub(crate) pages: u64,
    /// It stands in a link to the first page, at the head of a page.
    pub(crate) leads_home: bool,
    /// Something says that it is the logo.
    pub(crate) named_logo: bool,
    /// It stands in a link to another page.
    pub(crate) leads_to_page: bool,
    /// Its alternative text says what it shows.
    pub(crate) described: bool,
}

impl Evidence {
    /// Takes in what other pages say.
    pub(crate) fn merge(&mut self, other: &Evidence) {
        self.pages += other.pages;
        self.leads_home |= other.leads_home;
        self.named_logo |= other.named_logo;
        self.leads_to_page |= other.leads_to_page;
        self.described |= other.described;
    }
}

/// A file and what is known of it besides the evidence of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PictureFacts {
    /// Width and height at which pages show it, or its own (pixels).
    pub(crate) size: Option<(usize, usize)>,
    pub(crate) bytes: u64,
    pub(crate) tagged: Option<Tag>,
    pub(crate) ruled: Option<Tag>,
    /// Below this it is cosmetic (byte); 0: nothing is.
    pub(crate) cosmetic_limit: u64,
    /// The pages of the site.
    pub(crate) site_pages: u64,
}

/// A small picture: an icon or a bullet (pixels a side).
const ICON: usize = 32;
/// The most thickness of a bar or separator (pixels), and how many times as long it is at least.
const BAR: (usize, usize) = (10, 8);
/// An image with both sides this long is no ornament (pixels).
const LARGE: usize = 100;
/// An image on at least this number of pages, and on this part of them, is an ornament if nothing is said of it.
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
