//! A found type in words: its features, and the condition by which a configuration would describe it.

use crate::promises::Condition;
use crate::request::shape::{DEPTH, EXTENSION, METHOD, QUERY_KEY};
use crate::request::shape_table::ShapeText;
use alloc::{format, string::String, vec, vec::Vec};

/// The text of a feature of a shape.
pub(super) fn feature(text: &ShapeText, kind: usize) -> String {
    match kind {
        EXTENSION => text.parts().extension().into(),
        QUERY_KEY => text.query_key.clone(),
        METHOD => text.method.clone(),
        prefix => {
            text.path.split('/').skip(1).take(prefix + 1).map(|segment| format!("/{segment}")).collect()
        }
    }
}

/// The features that all requests of a type have.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    prefix: String,
    /// Whether paths go on after the prefix.
    goes_on: bool,
    extension: String,
    query_key: String,
    method: String,
}

impl Features {
    /// These features with one more. If both have a prefix, the longer prefix holds.
    pub(super) fn and(&self, kind: u8, value: &str, goes_on: bool) -> Features {
        let mut all = self.clone();
        match usize::from(kind) {
            EXTENSION => all.extension = value.into(),
            QUERY_KEY => all.query_key = value.into(),
            METHOD => all.method = value.into(),
            prefix if prefix < DEPTH && value.len() > all.prefix.len() => {
                (all.prefix, all.goes_on) = (value.into(), goes_on);
            }
            _ => {}
        }
        all
    }

    /// The condition. A pattern has one star, so if there are several, one star replaces the text from the first to the last.
    pub(super) fn condition(&self) -> Condition {
        let one = |text: &String| if text.is_empty() { Vec::new() } else { vec![text.clone()] };
        Condition {
            paths: self.paths(),
            methods: one(&self.method),
            query: one(&self.query_key),
            ..Condition::default()
        }
    }

    fn paths(&self) -> Vec<String> {
        let Features { prefix, extension, .. } = self;
        let ending = format!(".{extension}");
        match (prefix.is_empty(), extension.is_empty()) {
            (true, true) => Vec::new(),
            (true, false) => vec![format!("*{ending}")],
            (false, false) if prefix.ends_with(&ending) => vec![one_star(prefix)],
            (false, false) => vec![one_star(&format!("{prefix}/*{ending}"))],
            (false, true) if !self.goes_on || prefix.ends_with('*') => vec![one_star(prefix)],
            (false, true) if prefix.contains('*') => vec![one_star(prefix), one_star(&format!("{prefix}/*"))],
            (false, true) => vec![prefix.clone(), format!("{prefix}/*")],
        }
    }
}

fn one_star(pattern: &str) -> String {
    match (pattern.find('*'), pattern.rfind('*')) {
        (Some(first), Some(last)) => format!("{}*{}", &pattern[..first], &pattern[last + 1..]),
        _ => pattern.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(prefix: &str, goes_on: bool, extension: &str) -> Vec<String> {
        let features = Features::default().and(2, prefix, goes_on).and(EXTENSION as u8, extension, false);
        features.condition().paths
    }

    #[test]
    fn conditions_are_patterns_of_one_star() {
        assert_eq!(paths("/report", false, ""), ["/report"]);
        assert_eq!(paths("/report", true, ""), ["/report", "/report/*"]);
        assert_eq!(paths("/item/*/report", false, ""), ["/item/*/report"]);
        assert_eq!(paths("/user/*/album/*", true, ""), ["/user/*"]);
        assert_eq!(paths("/a/*/b/*/c", false, ""), ["/a/*/c"]);
        assert_eq!(paths("", false, "jar"), ["*.jar"]);
        assert_eq!(paths("/down", true, "jar"), ["/down/*.jar"]);
        assert_eq!(paths("/down/page-*.jar", false, "jar"), ["/down/page-*.jar"]);
    }

    #[test]
    fn features_add_up() {
        let post = Features::default().and(0, "/api", true).and(METHOD as u8, "POST", false);
        let deep = post.and(QUERY_KEY as u8, "deep", false).and(1, "/api/search", false);
        let condition = deep.condition();
        assert_eq!((condition.methods, condition.query), (vec!["POST".into()], vec!["deep".into()]));
        assert_eq!(condition.paths, ["/api/search"]);
    }
}
