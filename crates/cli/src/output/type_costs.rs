//! Types whose requests cost too differently for a deadline, in words.
//!
//! A deadline is promised to a share of the admitted requests. Where fewer of a type's requests would be in time even alone, no
//! order of service keeps that, and admission has to guess which of them will.

use plimsoll_core::telemetry::status::{SiteStatus, Status, TypeStatus};

/// A type is no longer named once this part of what may be late is late alone.
pub(crate) const UNNAMED: f64 = 0.7;
/// Below this share the type takes too long for the deadline, and nearly all of its requests are refused.
const EVEN: f64 = 0.5;
/// The number of requests from which the share is known.
const ENOUGH: u64 = 200;

/// What is to be said of a type of whose requests this share is in time alone.
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

/// The largest share of its requests that a class of the site is promised to have in time; 1 where no class has a deadline.
pub(crate) fn promised(status: &Status, site: &SiteStatus) -> f64 {
    let own = status.classes.iter().filter(|class| class.site == site.name && !class.is_gone());
    let shares = own.filter_map(|class| Some(class.deadline?.in_time / 100.0));
    shares.reduce(f64::max).unwrap_or(1.0)
}

/// The types of a site of which enough is known, and the share of their requests that is in time alone.
pub(crate) fn known(site: &SiteStatus) -> impl Iterator<Item = (&TypeStatus, f64)> {
    let enough = site.types.iter().filter(|own| own.requests >= ENOUGH);
    enough.filter_map(|own| Some((own, own.in_time?)))
}
