//! Rules that change the fields of a message on its way through the gateway. They are compiled when a configuration is loaded.

use super::field::is_alike;
use super::write::write_field;

/// Rules that change the fields of a message: some fields are dropped, then lines are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderRules {
    dropped: Vec<String>,
    added: Vec<(String, String)>,
    lines: Vec<u8>,
}

impl HeaderRules {
    /// Drops every field of the names in `dropped`, then adds the fields in `added`. A field that is to be replaced is in both
    /// lists. All names are in lower case; names and values must be valid in HTTP.
    pub fn new(dropped: Vec<String>, added: Vec<(String, String)>) -> Self {
        let mut lines = Vec::new();
        added.iter().for_each(|(name, value)| write_field(&mut lines, name.as_bytes(), value.as_bytes()));
        HeaderRules { dropped, added, lines }
    }

    /// These rules, followed by `own`, which apply to the result of these.
    pub fn followed_by(&self, own: &HeaderRules) -> Self {
        let stays = |(name, _): &&(String, String)| !own.drops(name.as_bytes());
        let added = self.added.iter().filter(stays).chain(&own.added).cloned().collect();
        HeaderRules::new([self.dropped.as_slice(), &own.dropped].concat(), added)
    }

    /// The names that are dropped.
    pub(crate) fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Whether a field of this name is dropped, with names compared as a server behind CGI compares them.
    pub(crate) fn drops(&self, name: &[u8]) -> bool {
        self.dropped.iter().any(|dropped| is_alike(dropped.as_bytes(), name))
    }

    /// The lines that are added.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Appends those of `lines`, each with its line's end, that are not dropped.
    pub(crate) fn write_kept(&self, lines: &str, out: &mut Vec<u8>) {
        if self.dropped.is_empty() {
            return out.extend_from_slice(lines.as_bytes());
        }
        for line in lines.split_inclusive("\r\n") {
            let name = line.split(':').next().unwrap_or_default();
            if !self.drops(name.as_bytes()) {
                out.extend_from_slice(line.as_bytes());
            }
        }
    }
}

/// The rules of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteHeaders {
    /// The rules for the fields that the upstream gets.
    pub request: HeaderRules,
    /// The rules for the fields that the client gets from an upstream or a folder.
    pub response: HeaderRules,
}

impl SiteHeaders {
    /// The rules of a site that has none.
    pub(crate) const NONE: &'static SiteHeaders = &SiteHeaders {
        request: HeaderRules { dropped: Vec::new(), added: Vec::new(), lines: Vec::new() },
        response: HeaderRules { dropped: Vec::new(), added: Vec::new(), lines: Vec::new() },
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(dropped: &[&str], added: &[(&str, &str)]) -> HeaderRules {
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        HeaderRules::new(
            dropped.iter().map(|&name| name.to_owned()).collect(),
            added.iter().map(own).collect(),
        )
    }

    #[test]
    fn names_are_recognized_in_any_case_and_with_underscores() {
        let rules = rules(&["x-plan"], &[]);
        for name in ["x-plan", "X-Plan", "X_PLAN"] {
            assert!(rules.drops(name.as_bytes()), "{name}");
        }
        assert!(!rules.drops(b"x-plans"));
    }

    #[test]
    fn a_sites_rules_are_applied_to_what_the_gateways_made() {
        let gateway = rules(&["server", "x-a"], &[("x-a", "1"), ("x-b", "1")]);
        let both = gateway.followed_by(&rules(&["x-a", "x-c"], &[("x-a", "2"), ("x-b", "2")]));
        assert_eq!(both.lines(), b"x-b: 1\r\nx-a: 2\r\nx-b: 2\r\n", "set again, added to");
        assert!([&b"server"[..], b"x-a", b"x-c"].iter().all(|name| both.drops(name)));
        assert!(!both.drops(b"x-b"));
        assert_eq!(gateway.followed_by(&rules(&["x-a", "x-b"], &[])).lines(), b"", "removed again");
    }

    #[test]
    fn lines_are_kept_or_dropped_whole() {
        let mut out = Vec::new();
        let lines = "etag: \"a:b\"\r\ncontent-type: text/html\r\nvary: accept\r\n";
        rules(&["Content-Type"], &[]).write_kept(lines, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "etag: \"a:b\"\r\nvary: accept\r\n");
    }
}
