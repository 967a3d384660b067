//! Types whose requests cost too differently for a deadline, in words.
//!
//! A deadline is promised to 99 of a hundred admitted requests. Where fewer of a type's requests would be in time even alone,
//! no order of service keeps that, and admission has to guess which of them will.

use plimsoll_core::telemetry::status::{SiteStatus, TypeStatus};

/// The share of a type's requests that must be in time alone, and the one from which on they are again.
pub(crate) const NAMED: f64 = 0.99;
pub(crate) const UNNAMED: f64 = 0.993;
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
        "requests of type `{name}` cost too differently for the deadline: {late:.1} % of them are late even alone; tell them \
         apart by [[site.type]], or give the long ones a class without a deadline"
    )
}

/// The types of a site of which enough is known, and the share of their requests that is in time alone.
pub(crate) fn known(site: &SiteStatus) -> impl Iterator<Item = (&TypeStatus, f64)> {
    let enough = site.types.iter().filter(|own| own.requests >= ENOUGH);
    enough.filter_map(|own| Some((own, own.in_time?)))
}
