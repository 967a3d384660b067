//! The user's wishes: the levels, the steps of adaptation, their limits, and rules for single files.

use std::fmt;

/// Makes enums whose variants are written as words in files and options.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$what])* $variant,)+ }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// The word for the variant.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The variant with this word.
            pub fn named(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    )+};
}
pub(crate) use words;

words! {
    /// The quality of a content tree, from lowest to highest; the tree's folder has the same name.
    Level {
        /// Text only: the lower bound of CA 3.
        Text = "text",
        /// The policies of CA 3.3, and more in their spirit: what is content stays, each image on one page.
        Lean = "lean",
        /// What a visitor takes for the site, in fewer bytes.
        Light = "light",
        /// The site as it is.
        Full = "full",
    }

    /// A step of adaptation at the light and the lean level, or at the lean one alone. Each can be turned off.
    Step {
        /// Large images are written again in fewer bytes (CA 2, 3.3).
        Images = "images",
        /// Images of medium size too; at the lean level by half the factor, and one and a half times as far from the original
        /// as at the light level at most.
        Medium = "medium",
        /// Images get the size at which pages show them, for screens of one and of two densities.
        Sizes = "sizes",
        /// A WebP stands beside each image, for clients that take it: `photo.jpg.webp`.
        Variants = "webp",
        /// Photographs that came as PNG or GIF become JPEG, or WebP where something shows through, under their name (CA 2,
        /// Fig. 1).
        Photographs = "photographs",
        /// Cosmetic images leave their alternative text, or a glyph where they were a link's only content (CA 2, 3.3). Lean.
        Cosmetic = "cosmetic",
        /// Each image is embedded in one page; the logo and products' pictures in all (CA 3.3). Lean.
        OnePage = "one-page",
        /// Small backgrounds of style sheets, and `background` attributes, go. Lean.
        Backgrounds = "backgrounds",
        /// The smallest of the candidates for several screens stays alone. Lean.
        Responsive = "responsive",
        /// Images below the first few load when they come into view.
        Lazy = "lazy",
        /// Videos load when they are started; until then their poster is shown.
        Video = "video",
        /// Frames of other hosts, such as maps and films, show a link that loads them.
        Embeds = "embeds",
        /// Elements and files that are tagged or ruled expendable go, scripts and fonts too.
        Expendable = "expendable",
        /// Each text has a compressed copy beside it: `page.html.gz`. At full too.
        Compressed = "compressed",
        /// SVG images lose what no browser draws.
        Vector = "vector",
        /// Web fonts have the characters that pages can show, and no others.
        Fonts = "fonts",
    }

    /// An adaptation tag (CA 2): `data-plimsoll="..."` on an element, or a rule for files.
    Tag {
        /// The element or file may go.
        Expendable = "expendable",
        /// It may be reduced, but stays where it is.
        Degradable = "degradable",
        /// It is not touched.
        Important = "important",
    }
}

impl fmt::Display for Level {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// A tag for every file whose path matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A pattern of paths in the site; `*` is any text within a name, `**` any text. Without a slash it is a file's name in any
    /// folder.
    pub pattern: String,
    /// The tag of these files.
    pub tag: Tag,
}

/// How a site is adapted.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Steps that are left out.
    pub without: Vec<Step>,
    /// Images above this size are reduced (byte).
    pub image_limit_bytes: u64,
    /// Images above this size are of medium size (byte).
    pub medium_limit_bytes: u64,
    /// The factor by which bytes are reduced at the lean level.
    pub factor: f64,
    /// The least structural similarity of an image at the light level to its original, in colour and in its worst
    /// region. At the lean level it may be twice as far from the original.
    pub similarity: f64,
    /// Whether AVIFs are reduced too, by other programs and slowly.
    pub avif: bool,
    /// Images below this size (byte) are cosmetic, unless a tag, a rule or the site's logo decides otherwise.
    pub cosmetic_limit_bytes: u64,
    /// The number of links from the first page beyond which lower levels have no pages; `None`: they have all pages.
    pub depth: Option<u32>,
    /// Tags for files; the last rule that matches counts.
    pub rules: Vec<Rule>,
}

/// How many times as far from its original an image may be at the lean level.
const LEAN_DISTANCE: f64 = 2.0;

impl Default for Policy {
    /// The paper's figures (CA 3.3); the similarity comes from comparing pictures by eye (docs/measurements.md).
    fn default() -> Self {
        Policy {
            without: Vec::new(),
            image_limit_bytes: 32 * 1024,
            medium_limit_bytes: 1024,
            factor: 8.0,
            similarity: 0.85,
            avif: false,
            cosmetic_limit_bytes: 1024,
            depth: None,
            rules: Vec::new(),
        }
    }
}

impl Policy {
    /// Whether a step is taken.
    pub(crate) fn takes(&self, step: Step) -> bool {
        !self.without.contains(&step)
    }

    /// Whether a step is taken at a level.
    pub(crate) fn takes_at(&self, level: Level, step: Step) -> bool {
        let lean_alone =
            matches!(step, Step::Cosmetic | Step::OnePage | Step::Backgrounds | Step::Responsive);
        self.takes(step) && (level == Level::Lean || !lean_alone)
    }

    /// The least similarity of an image at a level.
    pub(crate) fn least_similarity(&self, level: Level) -> f64 {
        let distance = 1.0 - self.similarity;
        1.0 - if level == Level::Lean { LEAN_DISTANCE * distance } else { distance }
    }

    /// The tag that the rules give a file.
    pub(crate) fn rule(&self, path: &str) -> Option<Tag> {
        self.rules.iter().rev().find(|rule| rule.matches(path)).map(|rule| rule.tag)
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let pattern = self.pattern.trim_start_matches('/');
        let path = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
        matches(pattern.as_bytes(), path.as_bytes())
    }
}

/// Whether the pattern, with `*` for any text without a slash and `**` for any text, matches the whole path.
fn matches(mut pattern: &[u8], path: &[u8]) -> bool {
    // For each place in the path: whether the pattern read so far matches the path up to there.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    while let Some((&letter, rest)) = pattern.split_first() {
        pattern = rest;
        if letter == b'*' {
            let slashes = rest.first() == Some(&b'*');
            for at in 0..path.len() {
                reached[at + 1] |= reached[at] && (slashes || path[at] != b'/');
            }
        } else {
            for at in (0..path.len()).rev() {
                reached[at + 1] = reached[at] && path[at] == letter;
            }
            reached[0] = false;
        }
    }
    reached[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("*.woff2", "fonts/a.woff2", true),
            ("/*.woff2", "fonts/a.woff2", true),
            ("fonts/*", "fonts/a.woff2", true),
            ("fonts/*", "fonts/b/a.woff2", false),
            ("fonts/**", "fonts/b/a.woff2", true),
            ("**/a*.png", "x/y/abc.png", true),
            ("**/a*.png", "x/y/b/c.png", false),
            ("**/a*b/**c", "x/aab/y/bc", true),
            ("a*b*c", "aXbbXc", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("**", "", true),
        ] {
            let rule = Rule { pattern: pattern.to_owned(), tag: Tag::Expendable };
            assert_eq!(rule.matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_last_rule_counts() {
        let rule = |pattern: &str, tag| Rule { pattern: pattern.to_owned(), tag };
        let rules = vec![rule("*.png", Tag::Expendable), rule("logo.png", Tag::Important)];
        let policy = Policy { rules, ..Policy::default() };
        assert_eq!(policy.rule("a/logo.png"), Some(Tag::Important));
        assert_eq!(policy.rule("a/x.png"), Some(Tag::Expendable));
        assert_eq!(policy.rule("a/x.gif"), None);
    }
}
