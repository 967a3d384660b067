//! Preconditions (RFC 9110, 13), in the order of its section 13.2.2.
//!
//! `if-none-match` silences `if-modified-since`, `if-match` silences `if-unmodified-since`. Tags are compared as text
//! between commas: none of ours has a comma, and a piece of a foreign tag lacks one of its quotes.

use super::FileFields;
use super::resource::Variant;

/// What the preconditions say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    Holds,
    NotModified,
    Fails,
}

/// Decides for GET and HEAD.
pub(super) fn evaluate(fields: &FileFields<'_>, variant: &Variant) -> Precondition {
    let unchanged = match (fields.if_match, fields.if_unmodified_since.and_then(seconds)) {
        (Some(tags), _) => any(tags, |tag| tag == variant.etag),
        (None, Some(date)) => variant.modified_seconds().is_none_or(|modified| modified <= date),
        (None, None) => true,
    };
    if !unchanged {
        return Precondition::Fails;
    }
    let known = match (fields.if_none_match, fields.if_modified_since.and_then(seconds)) {
        // Weak comparison: a proxy on the way may have marked our tag as weak.
        (Some(tags), _) => any(tags, |tag| tag.strip_prefix("W/").unwrap_or(tag) == variant.etag),
        (None, Some(date)) => variant.modified_seconds().is_some_and(|modified| modified <= date),
        (None, None) => false,
    };
    if known { Precondition::NotModified } else { Precondition::Holds }
}

/// Whether `if-range` lets a range be taken: it holds, or is not there. Strong comparison only.
///
/// A date is strong only if the file had rested when it was read, else a second change may bear the same second.
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

/// An HTTP date in seconds since 1970; `None` if it is none, or before that.
fn seconds(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date).ok()?;
    Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}
