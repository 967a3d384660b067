//! Preconditions (RFC 9110, 13), in the order of its section 13.2.2.
//!
//! `if-none-match` overrides `if-modified-since`, and `if-match` overrides `if-unmodified-since`. Tags are compared as
//! text between commas: tags of this server have no comma, and a piece of a foreign tag lacks one of its quotes.

use super::FileFields;
use super::resource::Variant;

/// The result of the preconditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    Holds,
    NotModified,
    Fails,
}

/// Evaluates the preconditions of a GET or HEAD.
pub(super) fn evaluate(fields: &FileFields<'_>, variant: &Variant) -> Precondition {
    let unchanged = match (fields.if_match.as_deref(), fields.if_unmodified_since.and_then(seconds)) {
        (Some(tags), _) => any(tags, |tag| tag == variant.etag),
        (None, Some(date)) => variant.modified_seconds().is_none_or(|modified| modified <= date),
        (None, None) => true,
    };
    if !unchanged {
        return Precondition::Fails;
    }
    let known = match (fields.if_none_match.as_deref(), fields.if_modified_since.and_then(seconds)) {
        // The comparison is weak: a proxy on the way may have marked the tag as weak.
        (Some(tags), _) => any(tags, |tag| tag.strip_prefix("W/").unwrap_or(tag) == variant.etag),
        (None, Some(date)) => variant.modified_seconds().is_some_and(|modified| modified <= date),
        (None, None) => false,
    };
    if known { Precondition::NotModified } else { Precondition::Holds }
}

/// Whether a range may be served: `if-range` holds, or is absent. The comparison is strong. A date counts as strong only
/// for a settled file, since an unsettled one may have changed again within the same second.
pub(super) fn range_applies(fields: &FileFields<'_>, variant: &Variant) -> bool {
    match fields.if_range {
        None => true,
        Some(tag) if tag.ends_with('"') => tag == variant.etag,
        Some(date) => {
            variant.settled && seconds(date).is_some_and(|date| variant.modified_seconds() == Some(date))
        }
    }
}

fn any(tags: &str, matches: impl Fn(&str) -> bool) -> bool {
    tags == "*" || tags.split(',').any(|tag| matches(tag.trim()))
}

/// An HTTP date in seconds since 1970; `None` for an earlier date, or for text that is no date.
fn seconds(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date).ok()?;
    Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}
