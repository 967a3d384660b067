//! Sentences about types whose costs vary too much for a deadline.
//!
//! A deadline is promised to a share of the admitted requests. If a smaller share of a type's requests would be in time even
//! when served alone, no order of service keeps the promise, and admission must guess which requests will be in time.

use plimsoll_core::telemetry::status::{SiteStatus, Status, TypeStatus};

/// A type's warning ends once the share of its requests that is late even alone falls below this part of what may be late.
pub(crate) const UNNAMED: f64 = 0.7;
/// If a smaller share than this is in time alone, the type takes too long for the deadline, and nearly all its requests are
/// refused.
const EVEN: f64 = 0.5;
/// The number of requests from which on the share counts as known.
const ENOUGH: u64 = 200;

/// A sentence about a type with this share of requests that would be in time if served alone.
pub(crate) fn verdict(name: &str, in_time: f64) -> String {
    let late = 100.0 * (1.0 - in_time);
    if in_time < EVEN {
        return format!(
            "type `{name}` takes too long for the deadline: {late:.0} % of its requests are late even alone"
        );
    }
    format!(
        "requests of type `{name}` cost too differently for the deadline: {late:.1} % of them are late even alone; distinguish \
         them by [[site.type]], or give the long ones a class without a deadline"
    )
}

/// The largest share of in-time requests that is promised to a class of the site; 1 if no class has a deadline.
pub(crate) fn promised(status: &Status, site: &SiteStatus) -> f64 {
    let own = status.classes.iter().filter(|class| class.site == site.name && !class.is_gone());
    let shares = own.filter_map(|class| Some(class.deadline?.in_time / 100.0));
    shares.reduce(f64::max).unwrap_or(1.0)
}

/// The types of a site that have enough requests, and the share of their requests that would be in time if served alone.
pub(crate) fn known(site: &SiteStatus) -> impl Iterator<Item = (&TypeStatus, f64)> {
    let enough = site.types.iter().filter(|own| own.requests >= ENOUGH);
    enough.filter_map(|own| Some((own, own.in_time?)))
}
