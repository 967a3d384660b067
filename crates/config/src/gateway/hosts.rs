//! Checks the hosts of sites: each belongs to one site, and each can be reached.

use super::http::HostPattern;
use super::sites::SiteKeys;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::Located;
use std::collections::BTreeMap;
use std::ops::Range;

/// The hosts of earlier sites.
#[derive(Default)]
struct KnownHosts<'a> {
    all: BTreeMap<&'a str, &'a Range<usize>>,
    /// Hosts with a star, each with the number of its site.
    patterns: Vec<(&'a str, &'a Range<usize>, usize)>,
}

/// Checks that each host belongs to one site, that a narrow pattern comes before a wide one, and that a site for every host
/// comes last, because the first site that matches takes the request.
pub(super) fn check(sites: &[Located<SiteKeys>], findings: &mut Findings) {
    let mut known = KnownHosts::default();
    let mut every: Option<&Range<usize>> = None;
    for (number, site) in sites.iter().enumerate() {
        let hosts = site.value.host.as_ref().map_or(&[][..], |hosts| &hosts.value.0);
        if let Some(every) = every {
            refuse!(findings, Unreachable at &site.span,
                "no request reaches this site: one before it takes every host",
                help: "move the site without `host` to the end, or give it one",
                beside every => "that one is");
        }
        for host in hosts.iter().filter(|_| every.is_none()) {
            host_is_reached(host, number, &mut known, findings);
        }
        if site.value.host.is_none() && site.sound || hosts.iter().any(|host| host.value.0 == "*") {
            every = every.or(Some(&site.span));
        }
    }
}

fn host_is_reached<'a>(
    host: &'a Located<HostPattern>,
    site: usize,
    known: &mut KnownHosts<'a>,
    findings: &mut Findings,
) {
    let Located { value: HostPattern(name), span, .. } = host;
    let wider = known.patterns.iter().find(|(wide, _, of)| *of != site && covers(wide, name));
    if let Some(first) = known.all.get(name.as_str()) {
        refuse!(findings, Duplicate at span,
            format!("the host `{name}` is given twice"),
            help: "keep it in one site: the first takes all its requests",
            beside first => "it is");
    } else if let Some((wide, first, _)) = wider {
        refuse!(findings, Unreachable at span,
            format!("no request for `{name}` reaches this site"),
            help: "move this site before that one: the first that matches is taken",
            beside first => format!("`{wide}` takes them"));
    }
    known.all.insert(name, span);
    if name.contains('*') {
        known.patterns.push((name, span, site));
    }
}

/// Whether `wide` has a star, and everything that `narrow` matches is matched by it too.
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    // Neither end of `wide` holds a star, so a star of `narrow` is never taken for a letter of them.
    wide.split_once('*').is_some_and(|(start, end)| {
        let letters = narrow.len() - narrow.matches('*').count();
        letters >= start.len() + end.len() && narrow.starts_with(start) && narrow.ends_with(end)
    })
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_wide_pattern_covers_a_narrow_one() {
        assert!(covers("*", "shop.example"));
        assert!(covers("*.example", "api.example"));
        assert!(covers("*.example", "*.shop.example"));
        assert!(covers("api.*", "api.example"));
        assert!(!covers("*.shop.example", "*.example"));
        assert!(!covers("*.example", "example"));
        assert!(!covers("api.example", "api.example.org"));
        assert!(!covers("ab*bc", "abc"));
        assert!(!covers("a*", "*a"));
    }
}
