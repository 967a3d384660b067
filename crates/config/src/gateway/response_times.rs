//! The promised response times of classes: a delay, or a ratio of delays.

use super::classes::ClassKeys;
use super::sites::SiteKeys;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Percentile, Whole};
use plimsoll_core::promises::Delay;
use plimsoll_core::time::Duration;
use std::ops::Range;

/// A class's delay or ratio; never both.
#[derive(Clone, Copy, Default)]
pub(super) struct ResponsePromise {
    pub(super) delay: Option<Delay>,
    pub(super) ratio: Option<f64>,
}

/// The promise of a class: its own, or otherwise its site's delay.
pub(super) fn of_class(class: &ClassKeys, site: &SiteKeys, findings: &mut Findings) -> ResponsePromise {
    let own = delay(class.delay.as_ref(), class.percentile.as_ref(), findings);
    if let (Some(delay), Some(ratio)) = (&class.delay, &class.ratio) {
        refuse!(findings, Conflict at &ratio.span,
            "a class has a delay or a ratio, not both",
            help: "keep `delay` for a time of its own, `ratio` for one relative to the site's other classes",
            beside &delay.span => "`delay` is given");
    }
    match &class.ratio {
        Some(ratio) => ResponsePromise { delay: None, ratio: Some(ratio.value.0) },
        None => ResponsePromise {
            delay: own.or(promised(site.delay.as_ref(), site.percentile.as_ref())),
            ratio: None,
        },
    }
}

/// The promise of the class `default`: its ratio, or otherwise its site's delay.
pub(super) fn of_default(site: &SiteKeys, findings: &mut Findings) -> ResponsePromise {
    let delay = delay(site.delay.as_ref(), site.percentile.as_ref(), findings);
    match &site.default_ratio {
        Some(ratio) => ResponsePromise { delay: None, ratio: Some(ratio.value.0) },
        None => ResponsePromise { delay, ratio: None },
    }
}

fn delay(
    target: Option<&Located<Duration>>,
    percentile: Option<&Located<Percentile>>,
    findings: &mut Findings,
) -> Option<Delay> {
    if let (None, Some(percentile)) = (target, percentile) {
        refuse!(findings, Conflict at &percentile.span,
            "a percentile of what?",
            help: "write the delay beside it: `delay = \"200ms\"`, and so many of a hundred responses keep it");
    }
    promised(target, percentile)
}

fn promised(target: Option<&Located<Duration>>, percentile: Option<&Located<Percentile>>) -> Option<Delay> {
    let percentile = percentile.map(|percentile| percentile.value.0);
    target.map(|delay| Delay { target: delay.value, percentile })
}

/// A ratio, the priority configured for the same class, and their places.
struct RatioEntry<'a> {
    span: &'a Range<usize>,
    priority: Option<&'a Located<Whole<1, 100>>>,
}

impl RatioEntry<'_> {
    /// The place of the priority; if there is none, that of the ratio.
    fn shown(&self) -> &Range<usize> {
        self.priority.map_or(self.span, |priority| &priority.span)
    }
}

/// Refuses promises without effect: a single ratio, which has nothing to compare with, and a site's delay that holds for none
/// of its classes.
pub(super) fn check(keys: &Located<SiteKeys>, findings: &mut Findings) {
    // If something was refused, it may be the key that seems to be missing.
    let Located { value: site, sound, .. } = keys;
    let classes = &site.class.value.0;
    // A ratio beside a delay was refused already.
    let own = classes.iter().filter(|class| class.value.delay.is_none());
    let own = own.map(|class| (class.value.ratio.as_ref(), class.value.priority.as_ref()));
    let all = own.chain([(site.default_ratio.as_ref(), site.default_priority.as_ref())]);
    let ratios: Vec<RatioEntry<'_>> =
        all.filter_map(|(ratio, priority)| Some(RatioEntry { span: &ratio?.span, priority })).collect();
    same_priority(&ratios, findings);
    if !sound {
        return;
    }
    if let [alone] = ratios.as_slice() {
        refuse!(findings, Conflict at alone.span,
            "one class alone has a ratio: there is nothing to hold it against",
            help: "give another class of the site one, or `default_ratio` to what matches none; for a time of its own write `delay`");
    }
    if ratios.is_empty() && site.strict_ratios.value {
        refuse!(findings, Conflict at &site.strict_ratios.span,
            "no class of this site has a ratio",
            help: "give two of them a `ratio`, or leave `strict_ratios` out");
    }
    let has_own = |class: &Located<ClassKeys>| class.value.delay.is_some() || class.value.ratio.is_some();
    if let (Some(delay), Some(_)) = (&site.delay, &site.default_ratio)
        && classes.iter().all(has_own)
    {
        refuse!(findings, Unreachable at &delay.span,
            "every class of this site has a delay or a ratio of its own",
            help: "leave out either this or `default_ratio`");
    }
}

/// Refuses two priorities among classes with ratios: the higher would always go first, whatever the ratio.
fn same_priority(ratios: &[RatioEntry<'_>], findings: &mut Findings) {
    let priority = |place: &RatioEntry<'_>| place.priority.map(|priority| priority.value.0);
    let Some(first) = ratios.first() else { return };
    let Some(other) = ratios.iter().find(|place| priority(place) != priority(first)) else { return };
    let what = if first.priority.is_some() { "another priority is given" } else { "one without is given" };
    refuse!(findings, Conflict at other.shown(),
        "classes with a ratio have one priority: the ratio sets them apart",
        help: "leave `priority` out of them, or give all of them the same",
        beside first.shown() => what);
}
