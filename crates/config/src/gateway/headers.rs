//! Rules that change the header fields of requests and responses: the gateway's, and each site's after them.

use super::file::ConfigurationKeys;
use super::http::{HeaderValue, SetHeaderName};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, OneOrMany, Pairs, Table, section};
use plimsoll_gateway::settings::{HeaderRules, SiteHeaders};
use std::collections::BTreeMap;
use std::ops::Range;

section! { "header rules"
    /// How header fields are changed. First the fields that are set or removed are dropped, whatever their value; then
    /// those that are set or added are written. A site's own rules are applied after the gateway's. Values are sent as they
    /// stand here: they have no variables.
    HeaderRuleKeys {
        /// Fields that replace those of the same name: `{ x-site = "shop" }`.
        set: Pairs<SetHeaderName, HeaderValue>, optional;
        /// Fields that are sent beside those of the same name, one or a list for each name.
        add: Pairs<SetHeaderName, OneOrMany<HeaderValue>>, optional;
        /// Names of fields that are left out.
        remove: OneOrMany<SetHeaderName>, optional;
    }
}

/// The key of header rules, which may be absent.
pub(super) type OptionalRules = Option<Located<Table<HeaderRuleKeys>>>;

impl HeaderRuleKeys {
    fn rules(&self) -> HeaderRules {
        let set = || self.set.iter().flat_map(|set| &set.value.0);
        let removed = self.remove.iter().flat_map(|names| &names.value.0).map(|name| &name.value.0);
        let dropped = set().map(|(name, _)| &name.value.0).chain(removed).cloned().collect();
        let set = set().map(|(name, value)| (name.value.0.clone(), value.value.0.clone()));
        let add = self.add.iter().flat_map(|add| &add.value.0).flat_map(|(name, values)| {
            values.value.0.iter().map(|value| (name.value.0.clone(), value.value.0.clone()))
        });
        HeaderRules::new(dropped, set.chain(add).collect())
    }

    /// Each name in the rules, with its place.
    fn names(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        let set = self.set.iter().flat_map(|set| &set.value.0).map(|(name, _)| name);
        let add = self.add.iter().flat_map(|add| &add.value.0).map(|(name, _)| name);
        let remove = self.remove.iter().flat_map(|names| &names.value.0);
        set.chain(add).chain(remove).map(|name| (name.value.0.as_str(), &name.span))
    }
}

/// The rules of each site; if the file lists no site, those of the one implied site.
pub(super) fn resolve(file: &ConfigurationKeys, findings: &mut Findings) -> Vec<SiteHeaders> {
    let keys = &file.gateway.value;
    let sites = &file.site.value.0;
    let written = WrittenNames::of(file);
    check(&keys.request_headers, &written.request, findings);
    check(&keys.response_headers, &written.response, findings);
    for site in sites {
        check(&site.value.request_headers, &written.request, findings);
        check(&site.value.response_headers, &written.response, findings);
    }
    let gateway =
        SiteHeaders { request: rules(&keys.request_headers), response: rules(&keys.response_headers) };
    if sites.is_empty() {
        return vec![gateway];
    }
    let of_site = |site: &Located<super::sites::SiteKeys>| SiteHeaders {
        request: gateway.request.followed_by(&rules(&site.value.request_headers)),
        response: gateway.response.followed_by(&rules(&site.value.response_headers)),
    };
    sites.iter().map(of_site).collect()
}

fn rules(keys: &OptionalRules) -> HeaderRules {
    keys.as_ref().map_or_else(HeaderRules::default, |keys| keys.value.0.rules())
}

/// The names of fields that the gateway writes because of another key, and the part of the file that has the key.
struct WrittenNames<'a> {
    request: BTreeMap<&'a str, &'static str>,
    response: BTreeMap<&'a str, &'static str>,
}

impl<'a> WrittenNames<'a> {
    fn of(file: &'a ConfigurationKeys) -> Self {
        let tls = file.tls.as_ref().map(|tls| &tls.value.0);
        let levels = file.site.value.0.iter().flat_map(|site| &site.value.level.value.0);
        let set_by_levels = levels.flat_map(|level| level.value.headers.iter().flat_map(|set| &set.value.0));
        let set_by_levels =
            set_by_levels.map(|(name, _)| (name.value.0.as_str(), "the `headers` of a level"));
        // If two keys write the same field, the last one counts.
        let certificate = tls.and_then(|tls| tls.client_header.as_ref());
        let certificate = certificate.map(|name| (name.value.0.as_str(), "`client_header` of `[tls]`"));
        let hsts = tls.and_then(|tls| tls.hsts.as_ref());
        let hsts = hsts.map(|_| ("strict-transport-security", "`hsts` of `[tls]`"));
        let report = (file.report.value.header.value.0.as_str(), "`[report]`");
        WrittenNames {
            request: set_by_levels.chain(certificate).collect(),
            response: hsts.into_iter().chain([report]).collect(),
        }
    }
}

/// Refuses rules that contradict each other, and rules for fields that the gateway writes anyway.
fn check(rules: &OptionalRules, written: &BTreeMap<&str, &'static str>, findings: &mut Findings) {
    let Some(rules) = rules else { return };
    let keys = &rules.value.0;
    if rules.sound && keys.names().next().is_none() {
        refuse!(findings, BadValue at &rules.span,
            "rules without a header change nothing", help: "write `set`, `add` or `remove`, or leave the key out");
    }
    let mut known: Vec<(&str, &Range<usize>)> = Vec::new();
    for (name, span) in keys.names() {
        if let Some((_, first)) = known.iter().find(|(other, _)| *other == name) {
            refuse!(findings, Conflict at span,
                format!("two rules are about `{name}`"),
                help: "`set` replaces what came, `add` leaves it: keep one of the rules",
                beside first => "the first is");
        }
        if let Some(author) = written.get(name) {
            refuse!(findings, Conflict at span,
                format!("{author} has the gateway write `{name}` already"), help: "leave it out here");
        }
        known.push((name, span));
    }
}
