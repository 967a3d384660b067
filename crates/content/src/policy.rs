//! What is to be done: the levels, the steps of adaptation, their limits, and rules for single files.

use std::fmt;

/// A content tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Text only: the lower bound of CA 3.
    Text,
    /// The policies of CA 3.3, and more in their spirit.
    Light,
    /// The site as it is.
    Full,
}

impl Level {
    /// All levels, from lowest to highest quality.
    pub const ALL: [Level; 3] = [Level::Text, Level::Light, Level::Full];

    /// The level's name, and its folder's.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Text => "text",
            Level::Light => "light",
            Level::Full => "full",
        }
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// A step of adaptation at the light level. Each can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Large images are written again in fewer bytes (CA 2, 3.3).
    Images,
    /// Images of medium size too, but with care: half the factor, and half as far from the original at most.
    Medium,
    /// Cosmetic images give way to their alternative text (CA 2, 3.3).
    Cosmetic,
    /// Each image is embedded in one page; in others a link takes its place (CA 3.3).
    OnePage,
    /// Small backgrounds of style sheets, and `background` attributes, go.
    Backgrounds,
    /// The smallest of the candidates for several screens stays alone.
    Responsive,
    /// Images below the first few load when they come into view.
    Lazy,
    /// Videos load when they are started; until then their poster is shown.
    Video,
    /// What is tagged or ruled expendable goes, scripts and fonts too.
    Expendable,
    /// Each text has a compressed copy beside it: `page.html.gz`. At full too.
    Compressed,
    /// What no browser draws goes from SVG images.
    Vector,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 11] = [
        Step::Images,
        Step::Medium,
        Step::Cosmetic,
        Step::OnePage,
        Step::Backgrounds,
        Step::Responsive,
        Step::Lazy,
        Step::Video,
        Step::Expendable,
        Step::Compressed,
        Step::Vector,
    ];

    /// The step's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Images => "images",
            Step::Medium => "medium",
            Step::Cosmetic => "cosmetic",
            Step::OnePage => "one-page",
            Step::Backgrounds => "backgrounds",
            Step::Responsive => "responsive",
            Step::Lazy => "lazy",
            Step::Video => "video",
            Step::Expendable => "expendable",
            Step::Compressed => "compressed",
            Step::Vector => "vector",
        }
    }

    /// The step of this name.
    pub fn named(name: &str) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.name() == name)
    }
}

/// An adaptation tag (CA 2): `data-plimsoll="..."` on an element, or a rule for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// May go.
    Expendable,
    /// May be reduced, but stays where it is.
    Degradable,
    /// Is not touched.
    Important,
}

impl Tag {
    /// All of them.
    pub const ALL: [Tag; 3] = [Tag::Expendable, Tag::Degradable, Tag::Important];

    /// The tag as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Tag::Expendable => "expendable",
            Tag::Degradable => "degradable",
            Tag::Important => "important",
        }
    }

    /// The tag that is written so.
    pub fn named(name: &str) -> Option<Tag> {
        Tag::ALL.into_iter().find(|tag| tag.name() == name.trim())
    }
}

/// A tag for every file whose path matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A path in the site; `*` is any text within a folder's name, `**` any text. Without a slash it is a file's name
    /// in any folder.
    pub pattern: String,
    /// What they are.
    pub tag: Tag,
}

/// All that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Steps that are left out.
    pub without: Vec<Step>,
    /// Images above this size are reduced (byte).
    pub image_limit_bytes: u64,
    /// Images above this size are of medium size (byte).
    pub medium_limit_bytes: u64,
    /// The factor by which bytes are reduced.
    pub factor: f64,
    /// The least structural similarity to the original.
    pub similarity: f64,
    /// AVIFs too, by programs that have to be there, and slowly.
    pub avif: bool,
    /// Images below this size are cosmetic (byte).
    pub cosmetic_limit_bytes: u64,
    /// Pages so many links from the first are the last that a lower level has.
    pub depth: Option<u32>,
    /// The last that matches counts.
    pub rules: Vec<Rule>,
}

impl Default for Policy {
    /// The paper's figures (CA 3.3); similarity by what is required of reduced photos.
    fn default() -> Self {
        Policy {
            without: Vec::new(),
            image_limit_bytes: 32 * 1024,
            medium_limit_bytes: 4 * 1024,
            factor: 8.0,
            similarity: 0.90,
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

    /// What the rules say of a file.
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

/// Whether `*` (no slash) and `**` (anything) in the pattern can stand for what the path has there.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // Where to try again: after the last star of each sort, and how much of the path it took. A star that crosses
    // slashes can do all that one before it could.
    let (mut p, mut at) = (0, 0);
    let mut again: [Option<(usize, usize)>; 2] = [None, None];
    loop {
        match pattern.get(p) {
            Some(b'*') => {
                let any = pattern.get(p + 1) == Some(&b'*');
                p += 1 + usize::from(any);
                if any {
                    again = [None, Some((p, at))];
                } else {
                    again[0] = Some((p, at));
                }
                continue;
            }
            None if at == path.len() => return true,
            Some(letter) if path.get(at) == Some(letter) => {
                (p, at) = (p + 1, at + 1);
                continue;
            }
            _ => {}
        }
        let grown = match again {
            [Some((from, taken)), _] if path.get(taken).is_some_and(|byte| *byte != b'/') => {
                (0, from, taken + 1)
            }
            [_, Some((from, taken))] if taken < path.len() => (1, from, taken + 1),
            _ => return false,
        };
        let (which, from, taken) = grown;
        if which == 1 {
            again[0] = None;
        }
        again[which] = Some((from, taken));
        (p, at) = (from, taken);
    }
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
