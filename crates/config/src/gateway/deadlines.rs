//! Deadlines: their preferences, and the types by which requests' costs are told apart.

use super::classes::{ClassKeys, MatchKeys, match_condition};
use super::control::ControlKeys;
use super::file::unique;
use super::sites::{SiteKeys, name_of, text_of};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Name, Table, Weight, section};
use plimsoll_core::promises::{Admission, DEFAULT_TYPES, Prefer, RequestType, Share, Site};
use plimsoll_core::time::Duration;
use std::ops::Range;

section! { "[[site.type]]"
    /// Requests of about the same cost to the server.
    TypeKeys {
        /// The type's name in status and metrics.
        name: Name, required("give the type a name: `name = \"report\"`");
        /// The condition by which a request belongs to the type.
        condition as "match": Table<MatchKeys>, required("say who belongs to it: `match = { path = \"/reports/*\" }`");
        /// The cost of a request relative to a small static file, until it is measured. The types that every site has cost:
        /// `static` 1, `dynamic` 10, `audio` 20, `video` 100.
        cost: Weight, default(Weight(10.0));
    }
}

/// Reads a relative deadline.
pub(super) fn deadline(keys: Option<&Located<Duration>>, findings: &mut Findings) -> Option<Duration> {
    let deadline = keys?;
    if deadline.value.is_zero() {
        refuse!(findings, OutOfRange at &deadline.span,
            "a deadline that nothing meets", help: "write something above zero, such as `\"500ms\"`");
    }
    Some(deadline.value)
}

/// Whether a class without a deadline of its own has its site's. A class with a ratio has not, because its turns with other
/// classes decide when its requests start.
pub(super) fn has_the_sites(class: &ClassKeys, site: &SiteKeys) -> bool {
    site.deadline.is_some() && class.ratio.is_none()
}

/// Reads the shares of a budget.
pub(super) fn shares(keys: &ControlKeys, findings: &mut Findings) -> Vec<Share> {
    let Some(shares) = &keys.shares else { return Vec::new() };
    belongs_to_budget("shares", &shares.span, keys, findings);
    let shares_of: Vec<Share> = shares.value.0.iter().map(|share| share.value.0).collect();
    if shares_of.iter().map(|share| share.least).sum::<f64>() > 1.0 + 1e-9 {
        refuse!(findings, OutOfRange at &shares.span,
            "the least shares are more than all there is", help: "lower them until they add up to 1 at most");
    }
    shares_of
}

/// Refuses a key that has no effect without a budget.
pub(super) fn belongs_to_budget(key: &str, span: &Range<usize>, keys: &ControlKeys, findings: &mut Findings) {
    if keys.admission.value != Admission::Budget {
        refuse!(findings, Conflict at span,
            format!("`{key}` belongs to `admission = \"budget\"`"),
            help: "leave it out, or write that beside it");
    }
}

/// A site's own types.
pub(super) fn types(site: &SiteKeys, findings: &mut Findings) -> Vec<RequestType> {
    let keys = &site.types.value.0;
    unique(keys.iter().filter_map(|own| name_of(own.value.name.as_ref())), "types", findings);
    for name in keys.iter().filter_map(|own| own.value.name.as_ref()) {
        if DEFAULT_TYPES.iter().any(|(known, _)| *known == name.value.0) {
            refuse!(findings, Duplicate at &name.span,
                format!("every site has a type `{}` of its own, by extension", name.value.0),
                help: "choose another name");
        }
    }
    let own = |Located { value: own, .. }: &Located<TypeKeys>, findings: &mut Findings| RequestType {
        name: text_of(own.name.as_ref()),
        condition: match_condition(own.condition.as_ref(), findings),
        quantum: own.cost.value.0,
    };
    keys.iter().map(|keys| own(keys, findings)).collect()
}

/// Refuses keys of a site that have no effect without a deadline, and keys that exclude one.
pub(super) fn check(keys: &Located<SiteKeys>, findings: &mut Findings) {
    let Located { value: site, sound, .. } = keys;
    let classes = &site.class.value.0;
    classes.iter().for_each(|class| check_class(&class.value, site, findings));
    let has_own = |class: &Located<ClassKeys>| class.value.deadline.is_some() || class.value.ratio.is_some();
    if let (Some(deadline), Some(_), true) = (&site.deadline, &site.default_ratio, *sound)
        && classes.iter().all(has_own)
    {
        refuse!(findings, Unreachable at &deadline.span,
            "every class of this site has a deadline or a ratio of its own",
            help: "leave this out, or the ratio of a class that is to keep it");
    }
    // If something was refused, it may be the key that seems to be missing.
    let has_deadline = site.deadline.is_some() || classes.iter().any(|class| class.value.deadline.is_some());
    if has_deadline || !sound {
        return;
    }
    if site.in_time.value.0 != Site::IN_TIME {
        refuse!(findings, Conflict at &site.in_time.span,
            "`in_time` says how many requests keep a deadline, and this site has none",
            help: "write the deadline beside it, such as `deadline = \"1s\"`");
    }
    if site.prefer.value != Prefer::default() {
        refuse!(findings, Conflict at &site.prefer.span,
            "`prefer` says what a deadline prefers, and this site has none",
            help: "write the deadline beside it, such as `deadline = \"1s\"`");
    }
}

/// Refuses the same keys of a class.
fn check_class(class: &ClassKeys, site: &SiteKeys, findings: &mut Findings) {
    let is_without = class.deadline.is_none() && !has_the_sites(class, site);
    let help = match class.ratio {
        Some(_) => "leave it out: a class with a `ratio` has no deadline, its site's neither",
        None => "write the deadline beside it, such as `deadline = \"1s\"`",
    };
    if let Some(prefer) = class.prefer.as_ref().filter(|_| is_without) {
        refuse!(findings, Conflict at &prefer.span,
            "`prefer` says what a deadline prefers, and this class has none", help: help);
    }
    if let Some(in_time) = class.in_time.as_ref().filter(|_| is_without) {
        refuse!(findings, Conflict at &in_time.span,
            "`in_time` says how many requests keep a deadline, and this class has none", help: help);
    }
    if let (Some(deadline), Some(ratio)) = (&class.deadline, &class.ratio) {
        refuse!(findings, Conflict at &ratio.span,
            "a ratio lets a class wait for others, a deadline does not",
            help: "keep `deadline` for a time that is kept, `ratio` for one relative to the site's other classes",
            beside &deadline.span => "`deadline` is given");
    }
}
