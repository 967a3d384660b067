//! Patterns of paths, hosts and values, as a configuration writes them.

use alloc::string::String;

/// Text with at most one `*`, which stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A pattern without a star, which only the same text matches.
    Exact(String),
    /// The text before the star and the text after it.
    Star(String, String),
}

impl Pattern {
    /// The pattern that a text is.
    pub fn new(text: &str) -> Self {
        match text.split_once('*') {
            Some((before, after)) => Pattern::Star(before.into(), after.into()),
            None => Pattern::Exact(text.into()),
        }
    }

    /// Whether a text is what the pattern says.
    pub fn matches(&self, text: &str) -> bool {
        self.compare(text.as_bytes(), <[u8]>::eq)
    }

    /// Whether the pattern matches a text, whatever the case of ASCII letters.
    pub fn matches_ignoring_case(&self, text: &str) -> bool {
        self.compare(text.as_bytes(), <[u8]>::eq_ignore_ascii_case)
    }

    fn compare(&self, text: &[u8], equal: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        match self {
            Pattern::Exact(exact) => equal(text, exact.as_bytes()),
            Pattern::Star(before, after) => {
                text.len() >= before.len() + after.len()
                    && equal(&text[..before.len()], before.as_bytes())
                    && equal(&text[text.len() - after.len()..], after.as_bytes())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_at_most_one_star() {
        for (pattern, text, expected) in [
            ("/upload", "/upload", true),
            ("/upload", "/upload/", false),
            ("/upload/*", "/upload/a/b", true),
            ("/upload/*", "/upload", false),
            ("*.bin", "/a/b.bin", true),
            ("/a*a", "/a", false),
            ("/a*a", "/aa", true),
            ("*", "", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
        let name = Pattern::new("*.Example");
        assert!(name.matches_ignoring_case("A.eXAMPLE") && !name.matches("a.example"));
    }
}
